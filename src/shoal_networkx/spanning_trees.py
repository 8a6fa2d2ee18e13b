# SPDX-License-Identifier: Apache-2.0
"""Spanning trees of the least or the largest weight, as Kruskal's algorithm finds them.

Kruskal takes edges by weight, and of edges of the same weight those first that come first in the graph.  No two edges
have the same place in that order: with places as weights there is one lightest forest, and it is Kruskal's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal_networkx.conversion import whole_of
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import only_default, refusing, weight_is_named
from shoal_networkx.search import strategies


def _no_parallels(given: dict[str, Any]) -> str | None:
    return "G is a multigraph, whose edges have keys" if given["G"].is_multigraph() else None


def _data_or_none(given: dict[str, Any]) -> str | None:
    data = given["data"]
    return None if isinstance(data, bool) else f"data={data!r} is neither True nor False"


_kruskal = (only_default("algorithm", "kruskal"), weight_is_named, _no_parallels)


@refusing(*_kruskal, _data_or_none)
def minimum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the edges of a forest of least weight, the lightest first."""
    return _edges(G, weight, data, 1)


@refusing(*_kruskal, _data_or_none)
def maximum_spanning_edges(
    G: ConvertedGraph,
    algorithm: str = "kruskal",
    weight: Any = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the edges of a forest of the largest weight, the heaviest first."""
    return _edges(G, weight, data, -1)


@refusing(*_kruskal)
def minimum_spanning_tree(
    G: ConvertedGraph, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> nx.Graph:
    """Return a forest of least weight, with all attributes."""
    return _tree(G, weight, 1)


@refusing(*_kruskal)
def maximum_spanning_tree(
    G: ConvertedGraph, weight: Any = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> nx.Graph:
    """Return a forest of the largest weight, with all attributes."""
    return _tree(G, weight, -1)


def _tree(G: ConvertedGraph, weight: Any, sign: int) -> nx.Graph:
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    whole, tree = whole_of(G), nx.Graph()
    tree.graph.update(whole.graph)
    tree.add_nodes_from(whole.nodes.items())
    tree.add_edges_from(_edges(G, weight, True, sign))
    return tree


def _edges(G: ConvertedGraph, weight: Any, data: bool, sign: int) -> Iterator[Any]:
    values = G.values_of(weight).as_numbers().numbers
    assert values is not None
    forest = shoal.minimum_spanning_forest(_ranked(G, sign * values), **strategies())
    order = np.argsort(forest.weight)  # type: ignore[arg-type]
    ends = G.names_of(forest.src[order]), G.names_of(forest.dst[order])
    if not data:
        return zip(*ends, strict=True)
    rows = whole_of(G)._adj
    return ((u, v, rows[u][v]) for u, v in zip(*ends, strict=True))


def _ranked(G: ConvertedGraph, values: np.ndarray) -> shoal.Graph:
    """Return the graph with the places of edges, by their values and then by NetworkX's order, as weights."""
    rows = G.successors
    src, dst = np.repeat(np.arange(len(G)), np.diff(rows.indptr)), rows.indices
    first = np.flatnonzero(dst >= src)  # an edge is listed with that of its ends that comes first
    ranks = np.zeros(len(dst), np.int32)
    ranks[first[np.argsort(values[first], kind="stable")]] = np.arange(len(first))
    ahead, behind = np.flatnonzero(dst > src), np.flatnonzero(dst < src)
    ranks[behind[np.lexsort((src[behind], dst[behind]))]] = ranks[ahead[np.lexsort((dst[ahead], src[ahead]))]]
    return shoal.Graph.from_csr(rows.indptr, rows.indices, ranks, directed=False, check=False)
