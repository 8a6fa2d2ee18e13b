# SPDX-License-Identifier: Apache-2.0
"""The trace of a run: all that a page about it shows, as one object and as a JSON file.

The file is one object: ``format`` and ``version`` (below), ``call`` (the function), ``created`` (UTC), ``graph``
(sizes), ``environment``, and ``stats``, which is `Stats.to_dict()` of a run with ``stats="full"``.  A reader refuses a
version that it does not know; keys that it does not know are kept, so that a trace may tell more than a page shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from shoal.config import parse_bytes
from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.files import check_readable, replacing
from shoal.io.trees import read_json
from shoal.report.environment import describe_environment
from shoal.report.shape import what_is_wrong
from shoal.stats import Stats

FORMAT = "shoal trace"
VERSION = 1
_PARTS = ("call", "created", "graph", "environment", "stats")


@dataclass(frozen=True)
class RunTrace:
    """One run: what was called on what, where, and its statistics as plain values."""

    call: str
    created: str
    graph: dict[str, Any]
    environment: dict[str, Any]
    stats: dict[str, Any]
    others: dict[str, Any] = field(default_factory=dict)  # what a file says beside these

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return int(self.stats["num_devices"])

    @property
    def supersteps(self) -> list[dict[str, Any]]:
        """The supersteps whose rows were kept."""
        return self.stats["supersteps"]

    @property
    def is_asynchronous(self) -> bool:
        """Whether devices went without supersteps, all the time: then a row is all that a device did in a phase."""
        return bool(self.supersteps) and all(row["direction"][0] == "async" for row in self.supersteps)

    @property
    def title(self) -> str:
        """The call and the devices, in words."""
        return f"{self.call} on {self.stats['config']['devices']}"

    @property
    def memory_limit_bytes(self) -> int | None:
        """What the run was allowed to take on each device beside the graph, if there was a limit."""
        return parse_bytes("memory_limit", self.stats["config"].get("memory_limit"))

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        return {}

    def column(self, key: str) -> np.ndarray:
        """Return one key of all supersteps as an array over supersteps and devices; 0 where it was not counted."""
        if key not in self._columns:
            zeros = [0] * self.num_devices
            rows = [row.get(key, zeros) for row in self.supersteps]
            self._columns[key] = np.array(rows, np.float64).reshape(len(rows), self.num_devices)
        return self._columns[key]

    @cached_property
    def begin(self) -> np.ndarray:
        """Seconds at which supersteps began, since the first did, on a clock that all devices share."""
        begin = self.column("begin_seconds")
        if len(begin) and len(self.environment.get("gpus", ())) > 1:
            # Each GPU has a clock of its own; all leave a superstep, and a phase, in the same moment.
            ended = begin[0] + self.column("seconds")[0]
            begin = begin - ended + ended.max()
        return begin - begin.min(initial=0.0)

    @property
    def directions(self) -> list[str]:
        """The direction of each superstep, which is that of all devices."""
        return [row["direction"][0] for row in self.supersteps]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {"format": FORMAT, "version": VERSION} | {name: getattr(self, name) for name in _PARTS} | self.others

    def write(self, path: str) -> None:
        """Write a file, whole or not at all."""
        text = json.dumps(self.to_dict(), separators=(",", ":"), default=_plain)
        with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(text + "\n")


def _plain(value: Any) -> Any:
    """Return what JSON has for a value that it does not know: numbers of NumPy, and names of all else."""
    return value.item() if isinstance(value, np.generic) else str(value)


def record_run(call: str, graph: Graph, stats: Stats) -> RunTrace:
    """Return the trace of a run that has just ended here."""
    sizes = {
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "is_directed": graph.is_directed,
        "is_weighted": graph.is_weighted,
        "bytes": graph.nbytes,
    }
    counts = stats.to_dict()
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return RunTrace(call, created, sizes, describe_environment(counts["config"]["devices"]), counts)


def read_trace(path: str) -> RunTrace:
    """Read a trace's file, or say why it is none."""
    check_readable(path)
    return trace_from(read_json(path), path)


def trace_from(value: Any, place: str) -> RunTrace:
    """Return the trace that `RunTrace.to_dict` gave; ``place`` says where it was found."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise FileFormatError(f"{place}: is no trace of shoal; report='run.json' writes one")
    if value.get("version") != VERSION:
        raise FileFormatError(f"{place}: is a trace of version {value.get('version')!r}; this shoal reads {VERSION}")
    wrong = what_is_wrong(value)
    if wrong:
        shown = ", ".join(name.removeprefix(".") for name in wrong[:3])
        raise FileFormatError(f"{place}: is no whole trace: wrong or missing: {shown}")
    others = {name: item for name, item in value.items() if name not in (*_PARTS, "format", "version")}
    return RunTrace(**{name: value[name] for name in _PARTS}, others=others)
