# SPDX-License-Identifier: Apache-2.0
"""Verify betweenness centrality of edges.

Rows are the graph's edges, each once; values are finite and not negative, 0 for self-loops, and the same for parallel
edges.  A shortest path of length L has L edges, so they sum to the sum of distances from all sources.  And who is
reached by a source has one path more that comes in than goes on: of a directed graph that is known exactly at every
vertex, of another one it bounds the paths at a vertex from below, and is all there is where it has one neighbour.
Distances come from SciPy.  Small graphs are also recomputed, by matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array
from shoal.algorithms.verify_centrality import LARGEST_RECOMPUTED, RELATIVE_TOLERANCE, graph_matrix, levels_from, swept
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph

_CLOSE = {"rtol": RELATIVE_TOLERANCE, "atol": 1e-9}


def verify_edge_betweenness(
    graph: Graph,
    src: Any,
    dst: Any,
    centrality: np.ndarray,
    *,
    sources: Iterable[int] | None = None,
    normalized: bool = True,
) -> None:
    """Raise ValidationError unless ``centrality`` is the betweenness of the edges from ``src`` to ``dst``.

    Parameters
    ----------
    sources
        The vertices whose paths were counted, listed or sampled; None: all.  The verifier searches from each of them.
    normalized
        As given to `shoal.edge_betweenness_centrality`.
    """
    first, second = _edges_once(graph)
    src, dst = (check_array(name, ends, len(first), "i") for name, ends in (("src", src), ("dst", dst)))
    centrality = check_array("centrality", centrality, len(first), "f")
    order = np.lexsort((dst, src))
    src, dst, centrality = src[order], dst[order], centrality[order]
    check_all(
        (src == first) & (dst == second),
        lambda i: (
            f"there is a row for the edge {src[i]} -> {dst[i]} where there must be one for "
            f"{first[i]} -> {second[i]}: each edge has one, an undirected one from its smaller end"
        ),
    )
    _check_values(src, dst, centrality)
    vertices = np.arange(graph.num_vertices) if sources is None else np.asarray(list(sources), dtype=np.int64)
    total = centrality / edge_scale(graph, len(vertices), normalized)
    _check_paths(graph, src, dst, total, vertices)
    if graph.num_vertices <= LARGEST_RECOMPUTED:
        expected = edge_dependencies(graph, src, dst, vertices)
        check_all(
            np.isclose(total, expected, **_CLOSE),
            lambda i: f"edge {src[i]} -> {dst[i]} has unscaled centrality {total[i]}, recomputed {expected[i]}",
        )


def edge_scale(graph: Graph, num_sources: int, normalized: bool) -> float:
    """Return the factor between the number of paths along an edge and the value that NetworkX would report."""
    if graph.num_vertices < 2:
        return 1.0
    if normalized:
        return 1 / (num_sources * (graph.num_vertices - 1))
    return graph.num_vertices / num_sources / (1 if graph.is_directed else 2)


def _edges_once(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of every edge, an undirected one from its smaller end, ascending."""
    src = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    dst = np.asarray(graph.indices, dtype=np.int64)
    if not graph.is_directed:
        src, dst = src[src <= dst], dst[src <= dst]
    order = np.lexsort((dst, src))
    return src[order], dst[order]


def _check_values(src: np.ndarray, dst: np.ndarray, centrality: np.ndarray) -> None:
    check_all(
        np.isfinite(centrality) & (centrality >= 0),
        lambda i: f"centrality={centrality[i]} of the edge {src[i]} -> {dst[i]}: it must be finite and not negative",
    )
    check_all(
        (src != dst) | (centrality == 0),
        lambda i: f"centrality={centrality[i]} of the self-loop of vertex {src[i]}, which no path has",
    )
    is_parallel = (src[1:] == src[:-1]) & (dst[1:] == dst[:-1])
    check_all(
        ~is_parallel | np.isclose(centrality[1:], centrality[:-1], **_CLOSE),
        lambda i: f"parallel edges {src[i]} -> {dst[i]} have centrality {centrality[i]} and {centrality[i + 1]}",
    )


def _check_paths(graph: Graph, src: np.ndarray, dst: np.ndarray, total: np.ndarray, sources: np.ndarray) -> None:
    """Check the sum over all edges, and the paths that come to each vertex and leave it."""
    matrix = graph_matrix(graph)
    count, length = graph.num_vertices, 0.0
    arriving, leaving = np.zeros(count), np.zeros(count)  # paths that end at a vertex, and that begin there
    for source in sources.tolist():
        order, sizes = levels_from(matrix, source)
        length += float(np.dot(sizes, np.arange(1, len(sizes) + 1)))
        arriving[order[1:]] += 1
        leaving[source] += len(order) - 1
    if not np.isclose(total.sum(), length, **_CLOSE):
        raise ValidationError(f"the unscaled centralities sum to {total.sum()}, but the distances from the "
                              f"{len(sources)} sources to {length}")  # fmt: skip
    outgoing, incoming = (np.bincount(ends, total, count) for ends in (src, dst))
    if graph.is_directed:
        check_all(
            np.isclose(incoming - outgoing, arriving - leaving, rtol=RELATIVE_TOLERANCE, atol=_error(length)),
            lambda v: (
                f"vertex {v}: {incoming[v]} paths come and {outgoing[v]} go, but {arriving[v]} end and "
                f"{leaving[v]} begin there"
            ),
        )
        return
    passing, ends = incoming + outgoing, arriving + leaving
    has_one = _have_one_neighbour(graph)
    is_right = (passing >= ends - _error(length)) & (~has_one | np.isclose(passing, ends, **_CLOSE))
    check_all(is_right, lambda v: f"vertex {v}: {passing[v]} paths come or go, but {ends[v]} end or begin there")


def _error(length: float) -> float:
    """Return what rounding may do to differences of sums of paths."""
    return 1e-9 + 1e-9 * length


def _have_one_neighbour(graph: Graph) -> np.ndarray:
    """Return which vertices have one neighbour, by one edge or several, beside themselves."""
    src = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    other = src != graph.indices
    low, high = np.full(graph.num_vertices, graph.num_vertices), np.full(graph.num_vertices, -1)
    np.minimum.at(low, src[other], graph.indices[other])
    np.maximum.at(high, src[other], graph.indices[other])
    return low == high


def edge_dependencies(graph: Graph, src: np.ndarray, dst: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Return the number of paths from ``sources`` along each edge, with numbers of paths found by matrix products."""
    levels, num_paths, dependency = swept(graph_matrix(graph), sources)
    depth = np.full(num_paths.shape, -2)
    for level, paths in enumerate(levels):
        depth[paths > 0] = level
    total = np.zeros(len(src))
    ways = ((src, dst),) if graph.is_directed else ((src, dst), (dst, src))
    for k in range(len(sources)):
        for upper, lower in ways:
            leads_down = depth[k, lower] == depth[k, upper] + 1
            low, high = lower[leads_down], upper[leads_down]
            total[leads_down] += num_paths[k, high] / num_paths[k, low] * (1 + dependency[k, low])
    return total
