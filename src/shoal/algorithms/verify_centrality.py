# SPDX-License-Identifier: Apache-2.0
"""Verify betweenness centrality.

Values must be finite and not negative, zero where no path can pass, and fulfil an identity: a shortest path of length
L passes L - 1 inner vertices, so the dependencies of one source sum to the sum of (distance - 1) over all vertices it
reaches (distance + 1 with endpoints).  Distances come from SciPy.  Small graphs are also recomputed, all sources at
once, by matrix products: a method that shares nothing with a traversal.

Parallel edges are different paths.  The scale of the values is that of NetworkX, also for listed or sampled sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms.verification import check_all, check_array
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from shoal.graph import Graph

# A path of 512 vertices, the worst case, is recomputed in about a second.
LARGEST_RECOMPUTED = 512
RELATIVE_TOLERANCE = 1e-6


def verify_betweenness(
    graph: Graph,
    centrality: np.ndarray,
    *,
    sources: Iterable[int] | None = None,
    normalized: bool = True,
    endpoints: bool = False,
) -> None:
    """Raise ValidationError unless ``centrality`` is the betweenness of ``graph`` summed over ``sources`` (None: all).

    Parameters
    ----------
    sources
        The vertices whose dependencies were summed, listed or sampled.  The verifier searches from each of them.
    normalized, endpoints
        As given to `shoal.betweenness_centrality`.
    """
    centrality = check_array("centrality", centrality, graph.num_vertices, "f")
    chosen = None if sources is None else np.asarray(list(sources), dtype=np.int64)
    scale = centrality_scale(graph, chosen, normalized, endpoints)
    _check_values(graph, centrality, scale, endpoints)
    # The scale of a lone source is 0/0 in NetworkX; it has no dependency on itself.
    total = np.where(np.isnan(scale), 0.0, centrality / scale)
    vertices = np.arange(graph.num_vertices) if chosen is None else chosen
    _check_sum(graph, total, vertices, endpoints)
    if graph.num_vertices <= LARGEST_RECOMPUTED:
        _check_recomputed(graph, total, vertices, endpoints)


def centrality_scale(graph: Graph, sources: np.ndarray | None, normalized: bool, endpoints: bool) -> np.ndarray:
    """Return the factor, per vertex, between a sum of dependencies and the value that NetworkX would report."""
    others = graph.num_vertices - (0 if endpoints else 1)
    if others < 2:
        return np.ones(graph.num_vertices)
    per_source = 1 / (others - 1) if normalized else others / (1 if graph.is_directed else 2)
    if sources is None:
        return np.full(graph.num_vertices, per_source / others)
    scale = np.full(graph.num_vertices, per_source / len(sources) if len(sources) else 1.0)
    if not endpoints:
        # A source never lies inside the paths that start at it, so it has one sample fewer than the other vertices.
        scale[sources] = per_source / (len(sources) - 1) if len(sources) > 1 else np.nan
    return scale


def _check_values(graph: Graph, centrality: np.ndarray, scale: np.ndarray, endpoints: bool) -> None:
    is_undefined = np.isnan(scale) & (np.isnan(centrality) | (centrality == 0))
    check_all(
        (np.isfinite(centrality) & (centrality >= 0)) | is_undefined,
        lambda v: f"centrality[{v}]={centrality[v]}: it must be finite and not negative",
    )
    if not endpoints:
        is_passable = graph.degree > 0
        check_all(
            is_passable | (centrality == 0) | is_undefined,
            lambda v: f"centrality[{v}]={centrality[v]}, but no edge leaves vertex {v}: no path passes it",
        )


def _check_sum(graph: Graph, total: np.ndarray, sources: np.ndarray, endpoints: bool) -> None:
    matrix = graph_matrix(graph)
    inner = 1 if endpoints else -1
    expected = 0.0
    for source in sources.tolist():
        _, sizes = levels_from(matrix, source)
        expected += float(np.dot(sizes, np.arange(1, len(sizes) + 1) + inner))
    if not np.isclose(total.sum(), expected, rtol=RELATIVE_TOLERANCE, atol=1e-9):
        raise ValidationError(
            f"the unscaled centralities sum to {total.sum()}, but the inner vertices of all shortest paths "
            f"from the {len(sources)} sources are {expected}"
        )


def graph_matrix(graph: Graph) -> csr_array:
    """Return the adjacency matrix with a one for every stored edge; SciPy's searches want float64."""
    from scipy.sparse import csr_array

    shape = (graph.num_vertices, graph.num_vertices)
    return csr_array((np.ones(graph.num_edges), graph.indices, graph.indptr), shape=shape)


def levels_from(matrix: csr_array, source: int) -> tuple[np.ndarray, list[int]]:
    """Return what ``source`` reaches, itself first, and how many vertices lie at distance 1, 2, … from it.

    SciPy gives the order of discovery and each vertex's predecessor.  Predecessors' positions in that order never
    fall, so the end of a level is found by one binary search for the end of the level before it.
    """
    from scipy.sparse.csgraph import breadth_first_order

    order, predecessor = breadth_first_order(matrix, source)
    position = np.empty(matrix.shape[0], np.int64)
    position[order] = np.arange(len(order))
    predecessor_position = position[predecessor[order[1:]]]
    sizes, found = [], 1
    while found < len(order):
        reached = 1 + int(np.searchsorted(predecessor_position, found))
        sizes.append(reached - found)
        found = reached
    return order, sizes


def _check_recomputed(graph: Graph, total: np.ndarray, sources: np.ndarray, endpoints: bool) -> None:
    expected = dependencies(graph, sources, endpoints)
    check_all(
        np.isclose(total, expected, rtol=RELATIVE_TOLERANCE, atol=1e-9),
        lambda v: f"vertex {v} has unscaled centrality {total[v]}, recomputed {expected[v]}",
    )


def dependencies(graph: Graph, sources: np.ndarray, endpoints: bool) -> np.ndarray:
    """Return each vertex's sum of dependencies over ``sources``, by products with the adjacency matrix."""
    _, num_paths, dependency = swept(graph_matrix(graph), sources)
    is_source = np.zeros(num_paths.shape, dtype=bool)
    is_source[np.arange(len(sources)), sources] = True
    dependency[is_source] = 0.0
    if endpoints:
        is_end = (num_paths > 0) & ~is_source
        dependency += is_end
        dependency[is_source] = is_end.sum(axis=1)
    return dependency.sum(axis=0)


def swept(matrix: csr_array, sources: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return (sources x vertices) arrays: numbers of shortest paths by level and in all, and dependencies."""
    levels = _path_counts(matrix, sources)
    num_paths = np.sum(levels, axis=0)
    dependency = np.zeros(num_paths.shape)
    safe_paths = np.where(num_paths > 0, num_paths, 1.0)
    for upper, lower in zip(levels[-2::-1], levels[:0:-1], strict=True):
        share = np.where(lower > 0, (1 + dependency) / safe_paths, 0.0)
        dependency += upper * (matrix @ share.T).T
    return levels, num_paths, dependency


def _path_counts(matrix: csr_array, sources: np.ndarray) -> list[np.ndarray]:
    """Return one (sources x vertices) array per level: the number of shortest paths to the vertices of that level."""
    num_sources, num_vertices = len(sources), matrix.shape[0]
    level = np.zeros((num_sources, num_vertices))
    level[np.arange(num_sources), sources] = 1.0
    levels, is_reached = [], np.zeros(level.shape, dtype=bool)
    while level.any():
        levels.append(level)
        is_reached |= level > 0
        level = (matrix.T @ level.T).T * ~is_reached
    return levels or [level]
