# SPDX-License-Identifier: Apache-2.0
"""Shortest paths by weights.

Lengths are sums from the source on, in floating point as NetworkX computes them, so they are equal bit by bit.  Weights
are checked when a function is called, also where it is a generator: NetworkX takes over only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import number, refusing, sources_are_counted, weight_is_named
from shoal_networkx.search import lengths_from, named_paths, path_to, visits

_named = refusing(weight_is_named)
_limited = refusing(weight_is_named, number("cutoff"))
_counted = refusing(weight_is_named, number("cutoff"), sources_are_counted)


@_named
def dijkstra_path(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """Return a shortest path."""
    return single_source_dijkstra(G, source, target=target, weight=weight)[1]


@_named
def dijkstra_path_length(G: ConvertedGraph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the length of a shortest path."""
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    length = length_to(G, source, target, weight)
    if length is None:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return length


@_limited
def single_source_dijkstra(
    G: ConvertedGraph, source: Any, target: Any = None, cutoff: Any = None, weight: Any = "weight"
) -> Any:
    """Return lengths and paths from a source, or both for one target."""
    return multi_source_dijkstra(G, {source}, target, cutoff, weight)


@_limited
def single_source_dijkstra_path(G: ConvertedGraph, source: Any, cutoff: Any = None, weight: Any = "weight") -> Any:
    """Return paths from a source."""
    return multi_source_dijkstra(G, {source}, None, cutoff, weight)[1]


@_limited
def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: Any = None, weight: Any = "weight"
) -> Any:
    """Return lengths from a source."""
    return multi_source_dijkstra_path_length(G, {source}, cutoff, weight)


@_counted
def multi_source_dijkstra(
    G: ConvertedGraph, sources: Any, target: Any = None, cutoff: Any = None, weight: Any = "weight"
) -> Any:
    """Return lengths and paths from the nearest source, or both for one target."""
    _check_sources(G, sources)
    if target in sources:
        return 0, [target]
    if target is None:
        return _lengths_and_paths(G, list(dict.fromkeys(sources)), cutoff, weight)
    found = _length_and_path(G, list(dict.fromkeys(sources)), target, cutoff, weight)
    if found is None:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return found


@_counted
def multi_source_dijkstra_path(G: ConvertedGraph, sources: Any, cutoff: Any = None, weight: Any = "weight") -> Any:
    """Return paths from the nearest source."""
    return multi_source_dijkstra(G, sources, None, cutoff, weight)[1]


@_counted
def multi_source_dijkstra_path_length(
    G: ConvertedGraph, sources: Any, cutoff: Any = None, weight: Any = "weight"
) -> Any:
    """Return lengths from the nearest source."""
    _check_sources(G, sources)
    vertices = _vertices(G, dict.fromkeys(sources))
    graph = G.lengths(weight)
    distance = _distances(graph, vertices, cutoff)
    return named_lengths(G, visits(graph, vertices, distance).order, distance, len(vertices), weight)


@_limited
def all_pairs_dijkstra(G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight") -> Iterator[Any]:
    """Return an iterator over all nodes with lengths and paths from them."""
    G.lengths(weight)
    return ((node, _lengths_and_paths(G, [node], cutoff, weight)) for node in G)


@_limited
def all_pairs_dijkstra_path(G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight") -> Iterator[Any]:
    """Return an iterator over all nodes with paths from them."""
    G.lengths(weight)
    return ((node, _lengths_and_paths(G, [node], cutoff, weight)[1]) for node in G)


@_limited
def all_pairs_dijkstra_path_length(G: ConvertedGraph, cutoff: Any = None, weight: Any = "weight") -> Iterator[Any]:
    """Return an iterator over all nodes with lengths from them."""
    G.lengths(weight)
    return ((node, multi_source_dijkstra_path_length(G, {node}, cutoff, weight)) for node in G)


def lengths_to(G: ConvertedGraph, target: Any, weight: Any) -> dict[Any, Any]:
    """Return the lengths of paths to a target."""
    graph, vertex = G.lengths(weight, turned=True), _vertices(G, [target])
    distance = _distances(graph, vertex, None)
    return named_lengths(G, visits(graph, vertex, distance).order, distance, 1, weight)


def paths_to(G: ConvertedGraph, target: Any, weight: Any) -> dict[Any, list[Any]]:
    """Return the paths to a target."""
    graph, vertex = G.lengths(weight, turned=True), _vertices(G, [target])
    return named_paths(
        G, visits(graph, vertex, _distances(graph, vertex, None)), vertex, lambda path, node: [node, *path]
    )


def _check_sources(G: ConvertedGraph, sources: Any) -> None:
    if not sources:
        raise ValueError("sources must not be empty")
    _vertices(G, sources)


def _vertices(G: ConvertedGraph, nodes: Any) -> list[int]:
    for node in nodes:
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} not found in graph")
    return [G.index[node] for node in nodes]


def _distances(graph: shoal.Graph, vertices: list[int], cutoff: Any, target: int | None = None) -> np.ndarray:
    """Return lengths; a source belongs to what is found, whatever the cutoff."""
    cutoff = None if cutoff is None or cutoff == np.inf else max(float(cutoff), 0.0)
    return lengths_from(graph, vertices, cutoff, None if target is None or len(vertices) > 1 else [target])


def length_to(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    """Return the length of a shortest path between two nodes; None for no path."""
    graph, vertex = G.lengths(weight), G.index.get(target)
    if vertex is None:
        return None
    length = _distances(graph, [G.index[source]], None, vertex)[vertex]
    return python_lengths(G, length, weight) if np.isfinite(length) else None


def _length_and_path(G: ConvertedGraph, sources: list[Any], target: Any, cutoff: Any, weight: Any) -> Any:
    graph, vertices, vertex = G.lengths(weight), _vertices(G, sources), G.index.get(target)
    if vertex is None:
        return None
    distance = _distances(graph, vertices, cutoff, vertex)
    if not np.isfinite(distance[vertex]):
        return None
    path = path_to(visits(graph, vertices, distance).parent, vertex)
    return python_lengths(G, distance[vertex], weight), G.names_of(path)


def _lengths_and_paths(G: ConvertedGraph, sources: list[Any], cutoff: Any, weight: Any) -> Any:
    graph, vertices = G.lengths(weight), _vertices(G, sources)
    distance = _distances(graph, vertices, cutoff)
    found = visits(graph, vertices, distance)
    return named_lengths(G, found.order, distance, len(vertices), weight), named_paths(G, found, vertices)


def named_lengths(
    G: ConvertedGraph, order: np.ndarray, distance: np.ndarray, num_sources: int, weight: Any
) -> dict[Any, Any]:
    """Return lengths by name; that of a source is NetworkX's own 0, an int."""
    lengths = [*[0] * num_sources, *python_lengths(G, distance[order[num_sources:]], weight)]
    return dict(zip(G.names_of(order), lengths, strict=True))


def python_lengths(G: ConvertedGraph, lengths: Any, weight: Any) -> Any:
    """Return lengths as ints where weights are, or else as floats."""
    is_whole = weight is None or G.values_of(weight).is_whole
    return lengths.astype(np.int64).tolist() if is_whole else lengths.tolist()
