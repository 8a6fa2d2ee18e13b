# SPDX-License-Identifier: Apache-2.0
"""NetworkX's two functions for shortest paths of every kind, which choose by their arguments."""

from __future__ import annotations

from typing import Any

import networkx as nx

from shoal_networkx import bellman_ford, hops, weighted
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import refusing, weight_is_named


def _not_one_pair(given: dict[str, Any]) -> str | None:
    has_queue = given["method"] == "bellman-ford" and given["weight"] is not None
    if given["source"] is not None and given["target"] is not None and not has_queue:
        return "of several shortest paths between two nodes NetworkX takes the one where its two searches meet first"
    return None


@refusing(weight_is_named, _not_one_pair)
def shortest_path(
    G: ConvertedGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return the paths from a source, to a target, or between all nodes."""
    _check_method(method)
    if weight is not None:
        return _PATHS[method](G, source, target, weight)
    if source is None and target is None:
        return hops.all_pairs_shortest_path(G)
    if target is None:
        return hops.single_source_shortest_path(G, source)
    if target not in G:
        raise nx.NodeNotFound(f"Source {target} not in G")
    return hops.paths_by_hops(G, target, reverse=True)


@refusing(weight_is_named)
def shortest_path_length(
    G: ConvertedGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return lengths from a source, to a target, of one pair, or between all nodes."""
    _check_method(method)
    return _hops(G, source, target) if weight is None else _LENGTHS[method](G, source, target, weight)


def _paths_by_dijkstra(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    if source is None and target is None:
        return weighted.all_pairs_dijkstra_path(G, weight=weight)
    if source is None:
        return weighted.paths_to(G, target, weight)
    return weighted.single_source_dijkstra_path(G, source, weight=weight)


def _paths_by_queue(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    if source is None and target is None:
        return bellman_ford.all_pairs_bellman_ford_path(G, weight)
    if source is None:
        return bellman_ford.paths_to_by_queue(G, target, weight)
    if target is None:
        return bellman_ford.single_source_bellman_ford_path(G, source, weight)
    return bellman_ford.bellman_ford_path(G, source, target, weight)


def _lengths_by_dijkstra(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    if source is None and target is None:
        return weighted.all_pairs_dijkstra_path_length(G, weight=weight)
    if source is None:
        return weighted.lengths_to(G, target, weight)
    if target is None:
        return weighted.single_source_dijkstra_path_length(G, source, weight=weight)
    return weighted.dijkstra_path_length(G, source, target, weight)


def _lengths_by_queue(G: ConvertedGraph, source: Any, target: Any, weight: Any) -> Any:
    if source is None and target is None:
        return bellman_ford.all_pairs_bellman_ford_path_length(G, weight)
    if source is None:
        return bellman_ford.lengths_by_queue(G, target, weight, turned=True)
    if target is None:
        return bellman_ford.lengths_by_queue(G, source, weight)
    return bellman_ford.bellman_ford_path_length(G, source, target, weight)


#: By method, where there are weights.
_PATHS = {"dijkstra": _paths_by_dijkstra, "bellman-ford": _paths_by_queue}
_LENGTHS = {"dijkstra": _lengths_by_dijkstra, "bellman-ford": _lengths_by_queue}


def _hops(G: ConvertedGraph, source: Any, target: Any) -> Any:
    if source is None and target is None:
        return hops.all_pairs_shortest_path_length(G)
    if target is None:
        return hops.single_source_shortest_path_length(G, source)
    if source is None:
        if target not in G:
            raise nx.NodeNotFound(f"Source {target} is not in G")
        return hops.named_hops(G, target, reverse=True)
    count = hops.hop_count(G, source, target)
    if count < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return count


def _check_method(method: str) -> None:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
