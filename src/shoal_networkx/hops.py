# SPDX-License-Identifier: Apache-2.0
"""Shortest paths where every edge counts one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from shoal.algorithms.visiting_order import Visits
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import both_ends, number, refusing
from shoal_networkx.search import (
    hops_between,
    hops_from,
    hops_from_each,
    levels_within,
    named_paths,
    visits,
)


@refusing(both_ends)
def has_path(G: ConvertedGraph, source: Any, target: Any) -> bool:
    """Return whether there is a path."""
    return hop_count(G, source, target) >= 0


@refusing(number("cutoff"))
def single_source_shortest_path_length(G: ConvertedGraph, source: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return the hops to every node that can be reached."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    return named_hops(G, source, cutoff)


@refusing(number("cutoff"))
def single_target_shortest_path_length(G: ConvertedGraph, target: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return the hops from every node that leads to the target."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} is not in G")
    return named_hops(G, target, cutoff, reverse=True)


@refusing(number("cutoff"))
def single_source_shortest_path(G: ConvertedGraph, source: Any, cutoff: Any = None) -> dict[Any, list[Any]]:
    """Return a path to every node that can be reached."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    return paths_by_hops(G, source, cutoff)


@refusing(number("cutoff"))
def single_target_shortest_path(G: ConvertedGraph, target: Any, cutoff: Any = None) -> dict[Any, list[Any]]:
    """Return a path from every node that leads to the target."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} not in G")
    return paths_by_hops(G, target, cutoff, reverse=True)


@refusing(number("cutoff"))
def all_pairs_shortest_path_length(G: ConvertedGraph, cutoff: Any = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield every node with the hops from it."""
    for vertex, distance in enumerate(hops_from_each(G.hops(), levels_within(cutoff))):
        yield G.names[vertex], _by_order(G, visits(G.hops(), [vertex], distance), distance)


@refusing(number("cutoff"))
def all_pairs_shortest_path(G: ConvertedGraph, cutoff: Any = None) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Yield every node with the paths from it."""
    for vertex, distance in enumerate(hops_from_each(G.hops(), levels_within(cutoff))):
        yield G.names[vertex], named_paths(G, visits(G.hops(), [vertex], distance), [vertex])


def _without_weights(given: dict[str, Any]) -> str | None:
    if given["weight"] is not None or given["method"] not in (None, "unweighted"):
        return f"weight={given['weight']!r}, method={given['method']!r}: shoal averages hops"
    return None


@refusing(_without_weights)
def average_shortest_path_length(G: ConvertedGraph, weight: Any = None, method: Any = None) -> float:
    """Return the hops between two nodes, on average."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if len(G) == 1:
        return 0
    total = 0
    for distance in hops_from_each(G.hops()):
        if distance.min() < 0:
            raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
        total += int(distance.sum(dtype=np.int64))
    return total / (len(G) * (len(G) - 1))


@refusing(number("cutoff"))
def predecessor(G: ConvertedGraph, source: Any, target: Any = None, cutoff: Any = None, return_seen: Any = None) -> Any:
    """Return all nodes that come before each on a shortest path."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    # What NetworkX compares with the cutoff is the level that it has just been through: there is at least one.
    levels = max(math.ceil(cutoff), 1) if cutoff and cutoff != math.inf else None
    distance = hops_from(G.hops(), [G.index[source]], levels)
    found = visits(G.hops(), [G.index[source]], distance)
    before = _all_parents(G, found, distance)
    if target is not None:
        is_reached = target in before
        parents = before[target] if is_reached else []
        return (parents, int(distance[G.index[target]]) if is_reached else -1) if return_seen else parents
    return (before, _by_order(G, found, distance)) if return_seen else before


def _all_parents(G: ConvertedGraph, found: Visits, distance: np.ndarray) -> dict[Any, list[Any]]:
    """Return, for the nodes visited and in their order, all neighbours one hop nearer, in theirs."""
    graph, order = G.hops(), found.order
    counts = graph.degree[order].astype(np.int64)
    starts = np.cumsum(counts) - counts
    src = np.repeat(order, counts)
    dst = graph.indices[np.arange(src.size) + np.repeat(graph.indptr[order] - starts, counts)]
    rank = np.empty(graph.num_vertices, np.int64)
    rank[order] = np.arange(order.size)
    is_tight = distance[src] + 1 == distance[dst]
    src, place = src[is_tight], rank[dst[is_tight]]
    parents = G.names_of(src[np.argsort(place, kind="stable")])
    ends = np.cumsum(np.bincount(place, minlength=order.size)).tolist()
    begins = [0, *ends[:-1]]
    return {node: parents[a:b] for node, a, b in zip(G.names_of(order), begins, ends, strict=True)}


def hop_count(G: ConvertedGraph, source: Any, target: Any) -> int:
    """Return the hops from one node to another, -1 for unreachable."""
    for role, node in (("Source", source), ("Target", target)):
        if node not in G:
            raise nx.NodeNotFound(f"{role} {node} is not in G")
    return hops_between(G.hops(), G.index[source], G.index[target])


def named_hops(G: ConvertedGraph, node: Any, cutoff: Any = None, reverse: bool = False) -> dict[Any, int]:
    """Return the hops from a node, or to it, by name and in NetworkX's order."""
    graph, vertex = G.hops(turned=reverse), G.index[node]
    distance = hops_from(graph, [vertex], levels_within(cutoff))
    return _by_order(G, visits(graph, [vertex], distance), distance)


def paths_by_hops(G: ConvertedGraph, node: Any, cutoff: Any = None, reverse: bool = False) -> dict[Any, list[Any]]:
    """Return the paths from a node, or to it."""
    graph, vertex = G.hops(turned=reverse), G.index[node]
    found = visits(graph, [vertex], hops_from(graph, [vertex], levels_within(cutoff)))
    return named_paths(G, found, [vertex], _put_before if reverse else None)


def _put_before(path: list[Any], node: Any) -> list[Any]:
    return [node, *path]


def _by_order(G: ConvertedGraph, found: Visits, distance: np.ndarray) -> dict[Any, int]:
    return dict(zip(G.names_of(found.order), distance[found.order].tolist(), strict=True))
