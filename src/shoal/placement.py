# SPDX-License-Identifier: Apache-2.0
"""Put a graph on devices once, to run many algorithms on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.config import DEFAULT, parse_devices
from shoal.errors import ArgumentError
from shoal.graph import Graph


@dataclass(frozen=True)
class Placed:
    """A graph on its devices; every algorithm takes it in place of a graph."""

    graph: Graph
    devices: str
    shards: tuple[Any, ...]


def place(graph: Graph, devices: str = DEFAULT.devices) -> Placed:
    """Put ``graph`` on ``devices`` and return it as it lies there.

    Examples
    --------
    >>> import shoal
    >>> placed = shoal.place(shoal.Graph.from_edges([0, 1], [1, 2]), devices="cpu")
    >>> shoal.bfs(placed, 0).distance.tolist()
    [0, 1, 2]
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a shoal.Graph")
    spec = parse_devices(devices)
    from shoal.backends.cpu.backend import CPUDevice

    device = CPUDevice(spec.threads_per_device)
    return Placed(graph, devices, (device.place(graph),))


def placed_on(graph: Graph | Placed, devices: str) -> Placed:
    """Return ``graph`` placed on ``devices``: as it is, or from the graph's own memory of earlier calls."""
    if isinstance(graph, Placed):
        if devices not in ("auto", graph.devices):
            raise ArgumentError(f"devices={devices!r} does not fit: the graph is placed on {graph.devices!r}")
        return graph
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a shoal.Graph or what shoal.place returned")
    placed = graph._cache.get(("placed", devices))
    if placed is None:
        placed = graph._cache[("placed", devices)] = place(graph, devices)
    return placed
