# SPDX-License-Identifier: Apache-2.0
"""igraph: a list of edges in, a list out; vertices are 0 to n - 1, and a vertex attribute may name them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import GraphError
from shoal.interop.edges import EdgeArrays, edge_weights, single_edges
from shoal.interop.libraries import import_library
from shoal.interop.names import name_vertices, vertex_names

if TYPE_CHECKING:
    from shoal.graph import Graph


def read(graph: Any, weight: str | None, names: str | None, default: float | None) -> EdgeArrays:
    """Return the edges, the numbers one attribute has there, and the names another one gives to vertices."""
    if not all(hasattr(graph, name) for name in ("get_edgelist", "vcount", "es", "vs")):
        raise GraphError(f"graph is a {type(graph).__name__}; it must be an igraph Graph")
    num_vertices, num_edges = graph.vcount(), graph.ecount()
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * num_edges).reshape(-1, 2)
    src, dst = ends.T
    weights = None
    if weight is not None:
        values = graph.es[weight] if weight in graph.es.attributes() else [None] * num_edges
        weights = edge_weights(values, weight, default, lambda k: f"{src[k]} -> {dst[k]}")
    labels = None
    if names is not None and names in graph.vs.attributes():
        ids, labels = name_vertices(graph.vs[names], f"names=None takes no {names!r} for a label")
        src, dst = ids[src], ids[dst]
    return EdgeArrays(src, dst, weights, num_vertices, graph.is_directed(), labels)


def write(graph: Graph, weight: str, names: str) -> Any:
    """Return the graph as igraph's, weights and labels as attributes."""
    igraph = import_library("igraph", "to_igraph()")
    src, dst, weights = single_edges(graph)
    # An iterator of pairs: arrays and lists of pairs take igraph six times as long.
    pairs = zip(src.tolist(), dst.tolist(), strict=True)
    made = igraph.Graph(n=graph.num_vertices, edges=pairs, directed=graph.is_directed)
    if weights is not None:
        made.es[weight] = weights.tolist()
    if graph.labels is not None:
        made.vs[names] = vertex_names(graph)
    return made
