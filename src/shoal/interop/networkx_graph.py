# SPDX-License-Identifier: Apache-2.0
"""NetworkX: all four of its graph classes, and views of them.

A graph there is a dict of dicts, whose objects have to be touched one by one; all loops over them are inside Python's
own `map` and `chain`.  Each undirected edge is in the rows of both ends, a loop once, just as in shoal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, compress
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import GraphError
from shoal.interop.edges import EdgeArrays, EndsAndWeights, edge_weights, has_parallel_edges, single_edges
from shoal.interop.libraries import import_library
from shoal.interop.names import name_vertices, vertex_names

if TYPE_CHECKING:
    from shoal.graph import Graph

_REMEDY = "networkx.convert_node_labels_to_integers numbers them"


def read(graph: Any, weight: str | None, default: float | None) -> EdgeArrays:
    """Return the edges of a NetworkX graph and the numbers that one attribute has there."""
    if not all(hasattr(graph, name) for name in ("adjacency", "is_directed", "is_multigraph")):
        raise GraphError(f"graph is a {type(graph).__name__}; it must be a NetworkX graph")
    nodes = list(graph)
    ids, labels = name_vertices(nodes, _REMEDY)
    index = dict(zip(nodes, ids.tolist(), strict=True))
    return EdgeArrays(*edge_arrays(graph, index, weight, default), len(nodes), graph.is_directed(), labels)


def edge_arrays(
    graph: Any, index: Mapping[Any, int], weight: str | None = None, default: float | None = None
) -> EndsAndWeights:
    """Return every edge once, by the numbers that ``index`` gives to nodes of any kind; parallel edges are several.

    Parameters
    ----------
    weight : an attribute of edges; None for no weights
    default : the weight of an edge without that attribute; without a default, none or all must have it
    """
    rows = dict(graph.adjacency())
    lengths = np.fromiter(map(len, rows.values()), np.int64, len(rows))
    src = np.repeat(np.fromiter(map(index.__getitem__, rows), np.int64, len(rows)), lengths)
    dst = np.fromiter(map(index.__getitem__, chain.from_iterable(rows.values())), np.int64, src.size)
    data: Iterable[Any] = chain.from_iterable(map(methodcaller("values"), rows.values()))
    if graph.is_multigraph():
        parallels = list(data)
        copies = np.fromiter(map(len, parallels), np.int64, src.size)
        src, dst = np.repeat(src, copies), np.repeat(dst, copies)
        data = chain.from_iterable(map(methodcaller("values"), parallels))
    if not graph.is_directed():
        keep = src <= dst
        src, dst, data = src[keep], dst[keep], compress(data, keep.tolist())
    if weight is None:
        return EndsAndWeights(src, dst, None)
    values = list(map(methodcaller("get", weight), data))
    return EndsAndWeights(
        src, dst, edge_weights(values, weight, default, lambda k: _edge_at(index, int(src[k]), int(dst[k])))
    )


def _edge_at(index: Mapping[Any, int], *ends: int) -> str:
    src, dst = (next(node for node, number in index.items() if number == end) for end in ends)
    return f"{src!r} -> {dst!r}"


def write(graph: Graph, weight: str) -> Any:
    """Return the graph as NetworkX's, a multigraph if it has parallel edges; labels become nodes."""
    networkx = import_library("networkx", "to_networkx")
    src, dst, weights = single_edges(graph)
    has_parallels = has_parallel_edges(src, dst)
    kinds = {
        (False, False): networkx.Graph,
        (True, False): networkx.DiGraph,
        (False, True): networkx.MultiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    made = kinds[graph.is_directed, has_parallels]()
    names = vertex_names(graph)
    made.add_nodes_from(names)
    if made.number_of_nodes() != graph.num_vertices:
        raise GraphError(
            f"{graph.num_vertices - made.number_of_nodes()} labels are those of several vertices; "
            "nodes of NetworkX must differ"
        )
    ends = [map(names.__getitem__, side.tolist()) for side in (src, dst)]
    if weights is None:
        made.add_edges_from(zip(*ends, strict=True))
    else:
        made.add_weighted_edges_from(zip(*ends, weights.tolist(), strict=True), weight=weight)
    return made
