# SPDX-License-Identifier: Apache-2.0
"""Shortest paths by weights of any sign.

Which of several shortest paths comes out, and in which order, follows from NetworkX's queue: edges are relaxed as
there, but compiled.  Weights are checked when a function is called, as in `weighted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from shoal.algorithms.relaxing_order import Relaxed, relaxing_order
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import refusing, weight_is_named
from shoal_networkx.weighted import length_to, named_lengths, python_lengths

_named = refusing(weight_is_named)


@_named
def bellman_ford_path(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """Return a shortest path."""
    return single_source_bellman_ford(G, source, target=target, weight=weight)[1]


@_named
def bellman_ford_path_length(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the length of a shortest path."""
    if source == target and source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    length = _length_to(G, source, target, weight)
    if length is None:
        raise nx.NetworkXNoPath(f"node {target} not reachable from {source}")
    return length


@_named
def single_source_bellman_ford(G: ConvertedGraph, source: Any, target: Any = None, weight: Any = "weight") -> Any:
    """Return lengths and paths from a source, or both for one target."""
    if source == target and source not in G:
        raise nx.NodeNotFound(f"Node {source} is not found in the graph")
    if source == target:
        return 0, [source]
    found = _relaxed(G, source, weight)
    if target is None:
        return named_lengths(G, found.order, found.distance, 1, weight), _paths(G, found)
    vertex = G.index.get(target)
    if vertex is None or not np.isfinite(found.distance[vertex]):
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    return python_lengths(G, found.distance[vertex], weight), _path_to(G, found, vertex)


@_named
def single_source_bellman_ford_path(G: ConvertedGraph, source: Any, weight: Any = "weight") -> dict[Any, list[Any]]:
    """Return paths from a source."""
    return _paths(G, _relaxed(G, source, weight))


@_named
def single_source_bellman_ford_path_length(G: ConvertedGraph, source: Any, weight: Any = "weight") -> dict[Any, Any]:
    """Return lengths from a source."""
    return lengths_by_queue(G, source, weight)


@_named
def all_pairs_bellman_ford_path(G: ConvertedGraph, weight: Any = "weight") -> Iterator[Any]:
    """Return an iterator over all nodes with paths from them."""
    G.lengths(weight, any_sign=True)
    return ((node, single_source_bellman_ford_path(G, node, weight)) for node in G)


@_named
def all_pairs_bellman_ford_path_length(G: ConvertedGraph, weight: Any = "weight") -> Iterator[Any]:
    """Return an iterator over all nodes with lengths from them."""
    G.lengths(weight, any_sign=True)
    return ((node, lengths_by_queue(G, node, weight)) for node in G)


def lengths_by_queue(G: ConvertedGraph, node: Any, weight: Any, turned: bool = False) -> dict[Any, Any]:
    """Return the lengths of paths from a node, or to it."""
    found = _relaxed(G, node, weight, turned)
    return named_lengths(G, found.order, found.distance, 1, weight)


def paths_to_by_queue(G: ConvertedGraph, target: Any, weight: Any) -> dict[Any, list[Any]]:
    """Return the paths to a target."""
    paths = _paths(G, _relaxed(G, target, weight, turned=True))
    return {node: path[::-1] for node, path in paths.items()}


def _length_to(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    """Return the length of a shortest path, which without negative weights is Dijkstra's; None for no path."""
    least = G.lengths(weight, any_sign=True).min_weight
    if source in G and (least is None or least >= 0):
        return length_to(G, source, target, weight)
    found, vertex = _relaxed(G, source, weight), G.index.get(target)
    if vertex is None or not np.isfinite(found.distance[vertex]):
        return None
    return python_lengths(G, found.distance[vertex], weight)


def _relaxed(G: ConvertedGraph, source: Any, weight: Any, turned: bool = False) -> Relaxed:
    hash(source)
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    found = relaxing_order(G.lengths(weight, turned, any_sign=True), G.index[source])
    if found is None:
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    return found


def _path_to(G: ConvertedGraph, found: Relaxed, vertex: int) -> list[Any]:
    path = [vertex]
    while path[-1] != found.order[0]:
        path.append(int(found.parent[path[-1]]))
    return [G.names[vertex] for vertex in reversed(path)]


def _paths(G: ConvertedGraph, found: Relaxed) -> dict[Any, list[Any]]:
    """Return the path to every vertex reached; a parent may have been met later than its child."""
    parent, source = found.parent.tolist(), int(found.order[0])
    paths = {source: [G.names[source]]}
    for vertex in found.order.tolist():
        missing = []
        while vertex not in paths:
            missing.append(vertex)
            vertex = parent[vertex]
        for vertex in reversed(missing):
            paths[vertex] = [*paths[parent[vertex]], G.names[vertex]]
    return {G.names[vertex]: paths[vertex] for vertex in found.order.tolist()}
