# SPDX-License-Identifier: Apache-2.0
"""The order in which a textbook search visits vertices, found from their distances, or leaves known components.

A queue (breadth-first) or a heap whose equal entries come out in the order in which they went in (Dijkstra) visits
vertices by distance; of two at one distance, the one whose first explaining neighbour was visited first comes first,
and of two of the same neighbour the one that its row names first.  So one pass over the edges, in that order, finds the
order and the parents of such a search, whoever found the distances.

A depth-first search leaves a strongly connected component with the first vertex that it met there: when it has left all
components that can be reached from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.graph import Graph


class Visits(NamedTuple):
    """The vertices reached, in order, and of every vertex of the graph its parent (-1: none; a source: itself)."""

    order: np.ndarray
    parent: np.ndarray


def visiting_order(graph: Graph, sources: np.ndarray, distance: np.ndarray) -> Visits:
    """Return in which order a sequential search from ``sources`` visits what has a distance, and from where.

    Parameters
    ----------
    sources : vertices at distance 0 that are there from the beginning, in the order in which they are visited
    distance : hops, -1 for unreachable; or lengths by the graph's weights, none negative, inf for unreachable

    Examples
    --------
    >>> import shoal
    >>> g = shoal.Graph.from_csr([0, 2, 3, 4, 4], [2, 1, 3, 3], directed=True)
    >>> visiting_order(g, np.array([0]), shoal.bfs(g, 0).distance).order.tolist()
    [0, 2, 1, 3]
    """
    from shoal.backends.cpu.kernels.visiting import visit_in_order

    is_weighted = distance.dtype.kind == "f"
    reached = np.flatnonzero(np.isfinite(distance) if is_weighted else distance >= 0)
    place, starts = _places(distance, reached)
    order = np.zeros(reached.size, graph.vertex_dtype)
    parent = np.full(graph.num_vertices, -1, graph.vertex_dtype)
    order[: len(sources)] = sources
    parent[sources] = sources
    starts[0] = len(sources)
    weights = graph.weights if is_weighted else None
    visit_in_order(graph.indptr, graph.indices, weights, distance, place, starts, order, parent)
    return Visits(order, parent)


def leaving_order(graph: Graph, label: np.ndarray) -> np.ndarray:
    """Return labels of strongly connected components in the order in which a depth-first search leaves them.

    The search begins at vertex 0, then at the next one that it has not met, and takes edges in the order of the rows.

    Parameters
    ----------
    label : of every vertex, the smallest vertex of its component

    Examples
    --------
    >>> import shoal
    >>> g = shoal.Graph.from_csr([0, 2, 3, 4, 4], [2, 1, 3, 3], directed=True)
    >>> leaving_order(g, shoal.strongly_connected_components(g).label).tolist()
    [3, 2, 1, 0]
    """
    from shoal.backends.cpu.kernels.visiting import leave_in_order

    order = np.zeros(np.count_nonzero(label == np.arange(len(label))), label.dtype)
    next_edge = -1 - graph.indptr[:-1].astype(np.int64)
    first_met = np.full(len(label), -1, np.int64)
    leave_in_order(graph.indptr, graph.indices, label, next_edge, first_met, np.zeros(len(label), np.int64), order)
    return order


def _places(distance: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each vertex's distance among those that occur, and where each distance begins."""
    if distance.dtype.kind == "i":  # hops are numbers without gaps
        place, counts = distance, np.bincount(distance[reached])
    else:
        _, numbers, counts = np.unique(distance[reached], return_inverse=True, return_counts=True)
        place = np.zeros(distance.size, np.int32 if distance.size < 2**31 else np.int64)
        place[reached] = numbers
    starts = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return place, starts
