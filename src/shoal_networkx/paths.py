# SPDX-License-Identifier: Apache-2.0
"""NetworkX's two functions for shortest paths of every kind, which choose by their arguments."""

from __future__ import annotations

from typing import Any

import networkx as nx

from shoal_networkx import hops, weighted
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import refusing, weight_is_named


def _order_is_known(given: dict[str, Any]) -> str | None:
    has_ends = given["source"] is not None and given["target"] is not None
    if given["weight"] is not None and given["method"] == "bellman-ford" and not has_ends:
        return "method='bellman-ford': results have the order of NetworkX's own queue"
    return None


def _not_one_pair(given: dict[str, Any]) -> str | None:
    if given["source"] is not None and given["target"] is not None:
        return "of several shortest paths between two nodes NetworkX takes the one where its two searches meet first"
    return None


@refusing(weight_is_named, _order_is_known, _not_one_pair)
def shortest_path(
    G: ConvertedGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return the paths from a source, to a target, or between all nodes."""
    _check_method(method)
    if source is None and target is None:
        return hops.all_pairs_shortest_path(G) if weight is None else weighted.all_pairs_dijkstra_path(G, weight=weight)
    if target is None:
        if weight is None:
            return hops.single_source_shortest_path(G, source)
        return weighted.single_source_dijkstra_path(G, source, weight=weight)
    if weight is not None:
        return weighted.paths_to(G, target, weight)
    if target not in G:
        raise nx.NodeNotFound(f"Source {target} not in G")
    return hops.paths_by_hops(G, target, reverse=True)


@refusing(weight_is_named, _order_is_known)
def shortest_path_length(
    G: ConvertedGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return lengths from a source, to a target, of one pair, or between all nodes."""
    _check_method(method)
    if weight is None:
        return _hops(G, source, target)
    if source is None and target is None:
        return weighted.all_pairs_dijkstra_path_length(G, weight=weight)
    if source is None:
        return weighted.lengths_to(G, target, weight)
    if target is None:
        return weighted.single_source_dijkstra_path_length(G, source, weight=weight)
    one_pair = weighted.dijkstra_path_length if method == "dijkstra" else weighted.bellman_ford_path_length
    return one_pair(G, source, target, weight)


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
