# SPDX-License-Identifier: Apache-2.0
"""Triangles and what follows from them, without weights, in undirected graphs.

Triangles of all nodes are counted at once and kept with the converted graph: whoever asks for one node will ask again.
Coefficients are quotients of whole numbers, and equal to NetworkX's bit by bit; one that is nothing is its int 0.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal.results import TransitivityResult
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import only_default, refusing
from shoal_networkx.search import strategies


def _undirected(given: dict[str, Any]) -> str | None:
    return "G is directed: shoal counts triangles of undirected graphs" if given["G"].is_directed() else None


def _several(given: dict[str, Any]) -> str | None:
    return "nodes is one node, of which NetworkX takes no mean" if given["nodes"] in given["G"] else None


_plain = (only_default("weight"), _undirected)


def triangles(G: ConvertedGraph, nodes: Any = None) -> Any:
    """Return the number of triangles of every node, of some, or of one."""
    if nodes is None:
        return G.by_name(_counts(G).triangles.tolist())
    _refuse_parallels(G)
    return _of(G, nodes, _counts(G).triangles.tolist())


@refusing(*_plain)
def clustering(G: ConvertedGraph, nodes: Any = None, weight: Any = None) -> Any:
    """Return which part of a node's pairs of neighbours are joined, of every node, of some, or of one."""
    _refuse_parallels(G)
    return _of(G, nodes, _coefficients(G))


@refusing(*_plain, _several)
def average_clustering(G: ConvertedGraph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> Any:
    """Return the mean of the coefficients of all nodes, or of some."""
    _refuse_parallels(G)
    found = list(_of(G, nodes, _coefficients(G)).values())
    if not count_zeros:
        found = [value for value in found if value > 0]
    return sum(found) / len(found)


@refusing(_undirected)
def transitivity(G: ConvertedGraph) -> Any:
    """Return which part of all pairs of edges with a common end are two sides of a triangle."""
    _refuse_parallels(G)
    return _counts(G).transitivity or 0


def _counts(G: ConvertedGraph) -> TransitivityResult:
    return G.kept("triangles", lambda: shoal.transitivity(G.hops(), **strategies()))


def _coefficients(G: ConvertedGraph) -> list[Any]:
    """Return the coefficients of all nodes."""
    return G.kept("clustering", lambda: _quotients(_counts(G).triangles, _counts(G).triads))


def _quotients(found: np.ndarray, pairs: np.ndarray) -> list[Any]:
    shares = np.divide(found, pairs, out=np.zeros(len(found)), where=pairs > 0)
    return [share or 0 for share in shares.tolist()]


def _of(G: ConvertedGraph, nodes: Any, values: list[Any]) -> Any:
    """Return the value of one node, or of several by name."""
    if nodes in G:
        return values[G.index[nodes]]
    known = nx.Graph()  # NetworkX says what may be given, and what is wrong
    known._node = known._adj = G.index
    return {node: values[G.index[node]] for node in known.nbunch_iter(nodes)}


def _refuse_parallels(G: ConvertedGraph) -> None:
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")
