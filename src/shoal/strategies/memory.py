# SPDX-License-Identifier: Apache-2.0
"""Memory schemes: how many entries of the queue an operator's output gets, before the run and later at most.

Those of Gunrock's multi-GPU paper, sections VI-B and VI-C.  An advance that puts out a vertex for every edge fills up
to |E_i| entries, one fused with the filter behind it |V_i|.  Here every advance is fused: the schemes differ only
in what they reserve.  Under each of them the room grows before a superstep that may need more, never past ``most``.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import OutOfMemoryError
from shoal.graph import Graph

VERTICES, EDGES, RECORDED = "vertices", "edges", "recorded"


@dataclass(frozen=True)
class Scheme:
    """Entries of an output: as many as a device has vertices or edges, or as an earlier run on the graph needed."""

    name: str
    first: str
    most: str

    def first_entries(self, num_vertices: int, num_edges: int, factor: float) -> int:
        """Return the entries before the run; the factor is that of earlier ones."""
        if self.first == RECORDED:
            # A hair less, so that what was kept as a fraction gives the same number again.
            return min(max(math.ceil(num_vertices * factor - 1e-6), 1), max(num_vertices, num_edges))
        return self._entries(self.first, num_vertices, num_edges)

    def most_entries(self, num_vertices: int, num_edges: int) -> int:
        """Return the entries that there may be at most."""
        return self._entries(self.most, num_vertices, num_edges)

    @property
    def may_have_edges_room(self) -> bool:
        """Whether there may be as many entries as edges."""
        return self.most == EDGES

    @property
    def is_recorded(self) -> bool:
        """Whether the first entries are those of earlier runs."""
        return self.first == RECORDED

    def _entries(self, kind: str, num_vertices: int, num_edges: int) -> int:
        return max(num_vertices, num_edges) if kind == EDGES else num_vertices


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("just-enough", VERTICES, EDGES),
        Scheme("fixed", RECORDED, VERTICES),
        Scheme("maximum", EDGES, EDGES),
        Scheme("fused", VERTICES, VERTICES),
    )
}
# Of the vertices, where no earlier run says better: a frontier of a road network is far smaller, and of a graph with
# hubs three doublings are cheap.
FIRST_FACTOR = 1 / 8


@dataclass
class Budget:
    """What a run may take on one device, beside the graph: its fields are counted, buffers are asked for."""

    limit: int | None
    title: str
    place: str
    num_bytes: int = 0  # of the fields

    def allows(self, num_bytes: int) -> bool:
        """Whether so many bytes of buffers fit."""
        return self.limit is None or self.num_bytes + num_bytes <= self.limit

    def check(self, num_bytes: int) -> None:
        """Refuse buffers of so many bytes if they do not fit."""
        if not self.allows(num_bytes):
            raise OutOfMemoryError(f"{self.title}: {self.place} needs {self.num_bytes + num_bytes} bytes beside the "
                                   f"graph; memory_limit={self.limit}")  # fmt: skip


@dataclass(frozen=True)
class Allowance:
    """How the buffers of one phase are sized on one device."""

    scheme: Scheme
    factor: float
    budget: Budget

    def beside(self, num_bytes: int) -> Allowance:
        """Return the same for a device on which so many bytes are taken already."""
        return replace(self, budget=replace(self.budget, num_bytes=self.budget.num_bytes + num_bytes))


@dataclass
class Factors:
    """For the scheme ``fixed``: how much room earlier runs on a graph needed, in parts of a device's vertices.

    They are kept with the graph, and in a file for the next process.
    """

    path: Path | None
    values: dict[str, float] = field(default_factory=dict)

    def get(self, key: str) -> float:
        """Return the factor for a phase of a program, from an earlier run or the first to try."""
        return self.values.get(key, FIRST_FACTOR)

    def keep(self, key: str, factor: float) -> None:
        """Note what a run needed."""
        if self.values.get(key) == factor:
            return
        self.values[key] = factor
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                whole = self.path.with_suffix(f".{os.getpid()}")  # nobody reads half a file
                whole.write_text(json.dumps(self.values))
                whole.replace(self.path)
            except OSError:  # nowhere to write: the next process tries anew
                self.path = None


def factors_of(graph: Graph, folder: Path) -> Factors:
    """Return the factors of earlier runs on a graph."""
    found = graph._cache.get("room factors")
    if found is None:
        path = folder / f"rooms_{fingerprint(graph):08x}.json"
        found = graph._cache["room factors"] = Factors(path, _read(path))
    return found


def _read(path: Path) -> dict[str, float]:
    """Return what was kept, as far as it makes sense: a broken file is no reason to fail."""
    try:
        values: Any = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {key: value for key, value in values.items() if isinstance(value, (int, float)) and 0 < value < math.inf}


SAMPLED_OFFSETS = 4096  # told apart by these, their sizes and kind, graphs are the same; if not, room grows as ever


def fingerprint(graph: Graph) -> int:
    """Return a number that tells a graph from most others."""
    return graph._cached("fingerprint", lambda: fingerprint_of(graph.indptr, graph.is_directed))


def fingerprint_of(indptr: np.ndarray, is_directed: bool) -> int:
    """Return that number of a graph with these offsets."""
    step = max(len(indptr) // SAMPLED_OFFSETS, 1)
    sizes = f"{len(indptr) - 1} {indptr[-1]} {is_directed}"
    return zlib.crc32(indptr[::step].tobytes(), zlib.crc32(sizes.encode()))
