# SPDX-License-Identifier: Apache-2.0
"""NetworKit: nodes are numbers, with gaps where some were removed; names are a node attribute, weights are doubles."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import GraphError
from shoal.interop.edges import EdgeArrays, single_edges
from shoal.interop.libraries import import_library
from shoal.interop.names import name_vertices, vertex_names
from shoal.labels import is_numbered

if TYPE_CHECKING:
    from shoal.graph import Graph

#: The node attribute that has the labels.
_LABEL = "label"
#: An attribute of type int has C's int.
_INT_LIMIT = 2**31


def read(graph: Any) -> EdgeArrays:
    """Return the edges, and as labels the node attribute "label" or, after removals, the numbers of the nodes."""
    if not all(hasattr(graph, name) for name in ("iterEdges", "iterNodes", "upperNodeIdBound")):
        raise GraphError(f"graph is a {type(graph).__name__}; it must be a NetworKit Graph")
    nodes = list(graph.iterNodes())
    ids, labels = name_vertices(_labels(graph, nodes), "detach the node attribute 'label'")
    new_ids = np.empty(graph.upperNodeIdBound(), np.int64)
    new_ids[nodes] = ids
    src, dst, weights = _edges(graph)
    return EdgeArrays(new_ids[src], new_ids[dst], weights, len(nodes), graph.isDirected(), labels)


def _edges(graph: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    if not graph.isWeighted():
        src, dst = np.fromiter(chain.from_iterable(graph.iterEdges()), np.int64).reshape(-1, 2).T
        return src, dst, None
    rows = np.fromiter(chain.from_iterable(graph.iterEdgesWeights()), np.float64).reshape(-1, 3)
    src, dst = rows[:, :2].astype(np.int64).T  # ids below 2**53
    return src, dst, rows[:, 2]


def _labels(graph: Any, nodes: list[int]) -> list[Any]:
    for kind in (str, int):
        try:
            names = graph.getNodeAttribute(_LABEL, kind)
        except RuntimeError:  # of another type, or not there
            continue
        found = dict(iter(names))
        return [found.get(node) for node in nodes]
    return nodes


def write(graph: Graph) -> Any:
    """Return the graph as NetworKit's; labels are the node attribute "label"."""
    networkit = import_library("networkit", "to_networkit()")
    src, dst, weights = single_edges(graph)
    # Other types of ids than uint64 crash it (11.2).
    ends: Any = (src.astype(np.uint64), dst.astype(np.uint64))
    rows = ends if weights is None else (weights.astype(np.float64), ends)
    is_weighted = weights is not None
    made = networkit.GraphFromCoo(rows, graph.num_vertices, weighted=is_weighted, directed=graph.is_directed)
    if graph.labels is not None:
        _name_nodes(made, graph.labels, vertex_names(graph))
    return made


def _name_nodes(made: Any, labels: Any, names: list[Any]) -> None:
    if not is_numbered(labels):
        attribute = made.attachNodeAttribute(_LABEL, str)
    elif all(-_INT_LIMIT <= name < _INT_LIMIT for name in names):
        attribute = made.attachNodeAttribute(_LABEL, int)
    else:
        largest = max(names, key=abs)
        raise GraphError(f"label {largest} does not fit the 32 bits of NetworKit's attributes; make them strings")
    for node, name in enumerate(names):
        attribute[node] = name
