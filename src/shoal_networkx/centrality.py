# SPDX-License-Identifier: Apache-2.0
"""Centralities of nodes and edges."""

from __future__ import annotations

from typing import Any

import numpy as np

import shoal
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import only_default, refusing
from shoal_networkx.search import strategies


def _samples_are_counted(given: dict[str, Any]) -> str | None:
    k = given["k"]
    return None if k is None or (isinstance(k, int) and k > 0) else f"k={k!r} is not a number of nodes"


@refusing(only_default("weight"), _samples_are_counted)
def betweenness_centrality(
    G: ConvertedGraph,
    k: Any = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """Return the share of shortest paths that lead through each node."""
    if len(G) == 0:
        return {}
    sources = None
    if k is not None and k != len(G):
        sources = [G.index[node] for node in seed.sample(G.names, k)]
    found = shoal.betweenness_centrality(
        G.hops(), sources, normalized=bool(normalized), endpoints=bool(endpoints), **strategies()
    )
    return G.by_name(found.centrality.tolist())


def _keys_are_not_kept(given: dict[str, Any]) -> str | None:
    return "edges of a multigraph are named by their keys, which are not kept" if given["G"].is_multigraph() else None


@refusing(only_default("weight"), _samples_are_counted, _keys_are_not_kept)
def edge_betweenness_centrality(
    G: ConvertedGraph, k: Any = None, normalized: bool = True, weight: Any = None, seed: Any = None
) -> dict[tuple[Any, Any], float]:
    """Return the share of shortest paths that lead along each edge, in the order of ``G.edges()``."""
    sources = None if k is None else [G.index[node] for node in seed.sample(G.names, k)]
    found = shoal.edge_betweenness_centrality(G.hops(), sources, normalized=bool(normalized), **strategies())
    edges = zip(G.names_of(found.src), G.names_of(found.dst), strict=True)
    return dict(zip(edges, found.centrality.tolist(), strict=True))


def degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    """Return the degrees of nodes as parts of the largest possible."""
    if G.is_directed():
        return _shares(G, G.degrees(G.successors) + _in_degrees(G))
    return _shares(G, G.degrees_with_loops_twice())


def in_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    """Return the numbers of edges that enter nodes as parts of the largest possible."""
    return _shares(G, _in_degrees(G))


def out_degree_centrality(G: ConvertedGraph) -> dict[Any, float]:
    """Return the numbers of edges that leave nodes as parts of the largest possible."""
    return _shares(G, G.degrees(G.successors))


def _in_degrees(G: ConvertedGraph) -> np.ndarray:
    return np.bincount(G.successors.indices, G.parallels, minlength=len(G)).astype(np.int64)


def _shares(G: ConvertedGraph, degrees: np.ndarray) -> dict[Any, float]:
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    return G.by_name((degrees * (1.0 / (len(G) - 1.0))).tolist())
