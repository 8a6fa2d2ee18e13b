# SPDX-License-Identifier: Apache-2.0
"""What the algorithms' public functions share: checks of sources and targets, and splitting off the strategies."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.config import CONFIG_NAMES, DEFAULT, RunConfig, parse_devices
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.placement import Placed


def make_config(strategies: dict[str, Any]) -> RunConfig:
    """Return the RunConfig of keyword arguments; refuse a name that is no strategy."""
    if not strategies:
        return DEFAULT
    for name in strategies:
        if name not in CONFIG_NAMES:
            raise ArgumentError(f"{name}={strategies[name]!r}: there is no such argument; strategies: "
                                f"{', '.join(sorted(CONFIG_NAMES))}")  # fmt: skip
    return RunConfig(**strategies)


def graph_of(graph: Graph | Placed) -> Graph:
    """Return the graph behind a placed graph, or the graph itself."""
    if isinstance(graph, Placed):
        return graph.graph
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a shoal.Graph or what shoal.place returned")
    return graph


def check_undirected(name: str, graph: Graph) -> None:
    """Refuse a directed graph, with the way to an undirected one."""
    if graph.is_directed:
        raise ArgumentError(f"graph is directed; {name} is for undirected graphs: graph.symmetrized() is the one that "
                            "has an edge wherever this one has one in either direction")  # fmt: skip


def reversed_of(graph: Graph | Placed) -> Graph | Placed:
    """Return the graph with every edge turned round; a placed one on the same devices."""
    if not isinstance(graph, Placed):
        return graph.reverse()
    return graph.with_edges("reverse", graph.graph.reverse) if graph.graph.is_directed else graph


def both_ways(graph: Graph | Placed) -> Graph | Placed:
    """Return the undirected graph with both directions of every edge, parallel ones too; made once."""
    plain = graph_of(graph)
    if not plain.is_directed:
        return graph
    make = functools.partial(plain._cached, "both ways", lambda: plain.symmetrized(deduplicate=False))
    return graph.with_edges("both ways", make) if isinstance(graph, Placed) else make()


def kind_of(graph: Graph | Placed, config: RunConfig) -> str:
    """Return what the devices of a call are."""
    return graph.kind if isinstance(graph, Placed) else parse_devices(config.devices).kind


def check_vertex(name: str, value: Any, num_vertices: int) -> int:
    """Return one vertex id as an int."""
    return int(check_vertices(name, [value], num_vertices)[0])


def check_vertices(name: str, values: Any, num_vertices: int) -> np.ndarray:
    """Return vertex ids as an int64 array; every one must be a vertex of the graph."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{name}={values!r} is not a list of vertex ids") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        shown = values[0] if isinstance(values, list) and len(values) == 1 else values
        raise ArgumentError(f"{name}={shown!r} is not allowed; it must be a vertex id or a list of them: "
                            f"{_range(num_vertices)}")  # fmt: skip
    bad = np.flatnonzero((array < 0) | (array >= num_vertices))
    if len(bad):
        raise ArgumentError(f"{name}={array[bad[0]]} is not a vertex of the graph; allowed: {_range(num_vertices)}")
    return array.astype(np.int64)


def _range(num_vertices: int) -> str:
    if num_vertices == 0:
        return "none, the graph has no vertices"
    return f"whole numbers from 0 to {num_vertices - 1}"


def is_batch(source: Any) -> bool:
    """Whether ``source`` is a list of sources rather than one."""
    if hasattr(source, "ndim"):
        return source.ndim > 0
    return hasattr(source, "__len__") and not isinstance(source, str)


def as_list(values: Any) -> Any:
    """Return a list of vertices as it is, and one vertex as a list of it."""
    return values if is_batch(values) else [values]
