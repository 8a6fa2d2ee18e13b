# SPDX-License-Identifier: Apache-2.0
"""Call: what was called, with which arguments, on which graph; so that only the same call is resumed.

How a call runs (devices, strategies) may change: results do not depend on it.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from shoal.config import CONFIG_NAMES
from shoal.errors import ArgumentError
from shoal.io.outline import place_of
from shoal.strategies.memory import fingerprint

#: Edges that are looked at: enough to tell graphs apart, and read in a moment.
_SAMPLES = 1 << 20


class Call:
    """A function of shoal's by name, its arguments, and the graph."""

    def __init__(self, name: str, arguments: dict[str, Any], command: dict[str, Any] | None = None) -> None:
        self.name, self.command = name, command
        self.arguments = {key: _plain(value) for key, value in arguments.items() if key not in CONFIG_NAMES}
        self.strategies = {key: _plain(value) for key, value in arguments.items() if key in CONFIG_NAMES}
        self.graph: dict[str, Any] = {}

    def add_graph(self, graph: Any) -> None:
        """Note which graph it is: known when the first run begins."""
        self.graph = {
            "num_vertices": graph.num_vertices,
            "num_edges": graph.num_edges,
            "is_directed": graph.is_directed,
            "offsets": fingerprint(graph),
            "edges": _sampled_edges(graph),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON knows it."""
        return {
            "name": self.name,
            "arguments": self.arguments,
            "strategies": self.strategies,
            "graph": self.graph,
            "command": self.command,
        }

    def check_same(self, path: str, kept: dict[str, Any]) -> None:
        """Refuse to go on with a call from the checkpoint of another."""
        given = self.to_dict()
        edges = {values["edges"] for values in (given["graph"], kept.get("graph", {})) if "edges" in values}
        if None in edges:  # one of them knew no edges
            given["graph"] |= {"edges": kept["graph"]["edges"]}
        for key in ("name", "arguments", "graph"):
            if given[key] != kept.get(key):
                raise ArgumentError(f"checkpoint={path!r} is of another call: its {key} was {kept.get(key)}, "
                                    f"and now is {given[key]}")  # fmt: skip


def _sampled_edges(graph: Any) -> int | None:
    """Return a number that tells edges apart, by those at even distances; None where they are not in this process."""
    if place_of(graph) is not None:
        return None
    digest = 0
    for array in (graph.indices, graph.weights):
        if array is not None:
            step = max(1, len(array) // _SAMPLES)
            digest = zlib.crc32(np.ascontiguousarray(array[::step]).view(np.uint8).data, digest)
    return digest


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it; of long arrays and of what it does not know something to tell them apart by."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    array = np.asarray(value)
    if array.dtype == object:
        return f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if array.size <= 64:
        return array.tolist()
    return f"{array.dtype} {list(array.shape)} {zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data):08x}"
