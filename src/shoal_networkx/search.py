# SPDX-License-Identifier: Apache-2.0
"""Searches by shoal's engine, put into NetworkX's order.

The engine finds distances, on whatever devices ``nx.config.backends.shoal.devices`` names; where a result has an order,
or paths of which there may be several, one pass over the edges finds which ones NetworkX would have met first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal.algorithms.bfs import BFS, MAX_BATCH
from shoal.algorithms.sssp import SSSP, choose_delta, distance_dtype
from shoal.algorithms.visiting_order import Visits, visiting_order
from shoal_networkx.graph import ConvertedGraph

#: No path has more edges: no graph has more vertices.
_MOST_LEVELS = 2**40


def strategies() -> dict[str, Any]:
    """Return the options of every run of the engine."""
    devices = nx.config.backends.shoal.devices
    return {} if devices == "auto" else {"devices": devices}


def levels_within(cutoff: float | None) -> int | None:
    """Return how many levels a search has that goes on while its level is below ``cutoff``; None for no end."""
    if cutoff is None or cutoff == math.inf:
        return None
    return min(math.ceil(cutoff), _MOST_LEVELS) if cutoff > 0 else 0


def hops_from(graph: shoal.Graph, sources: list[int], levels: int | None = None) -> np.ndarray:
    """Return the hops to every vertex from the nearest source, -1 for unreachable."""
    if len(sources) == 1:
        return shoal.bfs(graph, sources[0], cutoff=levels, **strategies()).distance
    found = shoal.run(BFSFromMany(levels), graph, sources=np.array(sources), **strategies())
    return found.distance  # type: ignore[attr-defined]


def hops_between(graph: shoal.Graph, source: int, target: int) -> int:
    """Return the hops from one vertex to another, -1 for unreachable."""
    return int(shoal.bfs(graph, source, targets=[target], **strategies()).distance[target])


def hops_from_each(graph: shoal.Graph, levels: int | None = None) -> Iterator[np.ndarray]:
    """Yield the hops from every vertex, found for as many sources at once as the engine takes."""
    for begin in range(0, graph.num_vertices, MAX_BATCH):
        batch = np.arange(begin, min(begin + MAX_BATCH, graph.num_vertices))
        yield from shoal.bfs(graph, batch, cutoff=levels, **strategies()).distance


def lengths_from(graph: shoal.Graph, sources: list[int], cutoff: float | None, targets: Any = None) -> np.ndarray:
    """Return the length of a shortest path to every vertex from the nearest source, inf for unreachable."""
    if len(sources) == 1:
        return shoal.sssp(graph, sources[0], cutoff=cutoff, targets=targets, parents=False, **strategies()).distance
    dtype = distance_dtype(graph)
    infinity = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    delta = max(choose_delta(graph), 1.0) if dtype.kind == "i" else choose_delta(graph)
    arguments = {"source": np.array(sources), "delta": delta, "cutoff": np.inf if cutoff is None else cutoff}
    program = SSSPFromMany(dtype)
    found = shoal.run(program, graph, **arguments, targets=(), infinity=infinity, **strategies())
    distance = found.distance  # type: ignore[attr-defined]
    return np.where(distance == infinity, np.inf, distance)


class BFSFromMany(BFS):
    """Hops from the nearest of several sources."""

    def start(self, sources: np.ndarray) -> np.ndarray:  # type: ignore[override]
        self.distance[sources] = 0  # type: ignore[index]
        self.parent[sources] = sources  # type: ignore[index]
        self.targets = ()  # type: ignore[assignment]
        return sources


class SSSPFromMany(SSSP):
    """Lengths of paths from the nearest of several sources."""

    def start(self, source: Any, **options: Any) -> np.ndarray:  # type: ignore[override]
        super().start(source, **options)
        return source


def visits(graph: shoal.Graph, sources: list[int], distance: np.ndarray) -> Visits:
    """Return the vertices in the order in which NetworkX visits them, and from where."""
    return visiting_order(graph, np.array(sources, graph.vertex_dtype), distance)


def tree_edges(found: Visits, num_sources: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return parents and children, in the order in which the children are visited."""
    children = found.order[num_sources:]
    return found.parent[children], children


def named_tree_edges(graph: ConvertedGraph, found: Visits, num_sources: int = 1) -> Iterable[tuple[Any, Any]]:
    """Return the edges of the tree by the names of their ends."""
    parents, children = tree_edges(found, num_sources)
    return zip(graph.names_of(parents), graph.names_of(children), strict=True)


def named_paths(
    graph: ConvertedGraph,
    found: Visits,
    sources: list[int],
    extend: Callable[[list[Any], Any], list[Any]] | None = None,
) -> dict[Any, list[Any]]:
    """Return the path to every vertex visited, by name; every path is one longer than that to its parent."""
    paths = {graph.names[source]: [graph.names[source]] for source in sources}
    for parent, child in named_tree_edges(graph, found, len(sources)):
        paths[child] = [*paths[parent], child] if extend is None else extend(paths[parent], child)
    return paths


def path_to(parent: np.ndarray, vertex: int) -> np.ndarray:
    """Return the vertices from the source to ``vertex``."""
    path = [vertex]
    while parent[path[-1]] != path[-1]:
        path.append(int(parent[path[-1]]))
    return np.array(path[::-1], np.int64)
