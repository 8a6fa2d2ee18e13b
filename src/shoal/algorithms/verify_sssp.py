# SPDX-License-Identifier: Apache-2.0
"""Verify shortest paths from one source.

A vector of distances is right exactly when the source has 0, no edge could shorten it (the triangle inequality), and
every other reached vertex is the end of a chain of tight edges, distance[src] + weight == distance[dst], from the
source.  Parents name that chain, so they must be tight edges that form a tree: following weights alone does not show
this, because a cycle of weight zero is tight all round.  Without parents the chain is looked for among all tight edges.

Sums are exact where weights are integers; float64 is compared at 1e-12 and float32 at 1e-6, relative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.algorithms.verification import EdgeChunk, check_all, check_array, check_parents, edge_chunks, verify_rows
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


class _Limits(NamedTuple):
    """Relative tolerance, and the distance up to which (below which, if `is_open`) every path must have been found."""

    tolerance: float
    complete: float
    is_open: bool


def verify_sssp(
    graph: Graph,
    source: Any,
    distance: np.ndarray,
    parent: np.ndarray | None = None,
    *,
    cutoff: float | None = None,
    targets: Any = None,
) -> None:
    """Raise ValidationError unless the arrays are shortest distances (and a tree of shortest paths) from ``source``.

    Parameters
    ----------
    source
        One vertex, or a batch; then ``distance`` and ``parent`` have one row per source.
    parent
        None leaves the tree out of the verification, not the distances.
    cutoff, targets
        As given to `shoal.sssp`: both let vertices stay unreached, beyond the cutoff or beyond the farthest vertex
        that was settled when the last target was.
    """
    verify_rows(source, distance, parent, lambda s, d, p: _verify_row(graph, s, d, p, cutoff, targets))


def _verify_row(graph: Graph, source: int, distance: Any, parent: Any, cutoff: float | None, targets: Any) -> None:
    distance = check_array("distance", distance, graph.num_vertices, "f")
    limits = _limits(graph, distance, cutoff, targets)
    _check_values(distance, source, cutoff)
    if parent is None:
        _check_chains(graph, source, distance, limits)
        return
    parent = check_array("parent", parent, graph.num_vertices, "i")
    check_parents(parent, np.isfinite(distance), source)
    _check_parent_edges(graph, source, distance, parent, limits)
    _check_rooted(parent, source)


def _limits(graph: Graph, distance: np.ndarray, cutoff: float | None, targets: Any) -> _Limits:
    dtypes = {distance.dtype} if graph.weights is None else {distance.dtype, graph.weights.dtype}
    is_exact = graph.weights is None or graph.weights.dtype.kind == "i"
    tolerance = 1e-6 if np.dtype("float32") in dtypes else 0.0 if is_exact else 1e-12
    complete = np.inf if cutoff is None else float(cutoff)
    if targets is not None and np.isfinite(distance[targets]).all():
        farthest = float(distance[np.isfinite(distance)].max())
        return _Limits(tolerance, min(farthest, complete), farthest <= complete)
    return _Limits(tolerance, complete, cutoff is None)


def _check_values(distance: np.ndarray, source: int, cutoff: float | None) -> None:
    if distance[source] != 0:
        raise ValidationError(f"distance[{source}]={distance[source]}, but vertex {source} is the source: it must be 0")
    check_all(distance >= 0, lambda v: f"distance[{v}]={distance[v]} is negative or not a number")
    if cutoff is not None:
        is_within = (distance <= cutoff) | np.isinf(distance)
        check_all(is_within, lambda v: f"distance[{v}]={distance[v]} is beyond the cutoff {cutoff}")


def _path_lengths(chunk: EdgeChunk, distance: np.ndarray) -> np.ndarray:
    """Return distance[src] + weight for each edge, in the distances' own precision (so that overflow is inf)."""
    start = distance[chunk.src]
    with np.errstate(over="ignore"):
        return start + (1 if chunk.weight is None else chunk.weight.astype(distance.dtype, copy=False))


def _check_triangles(chunk: EdgeChunk, distance: np.ndarray, length: np.ndarray, limits: _Limits) -> np.ndarray:
    """Check that no edge of the chunk shortens a path; return which edges are tight."""
    end = distance[chunk.dst]
    bound = limits.complete * (1 - limits.tolerance)
    may_stay = (length >= bound) if limits.is_open else (length > bound)
    check_all(
        (end <= length * (1 + limits.tolerance)) | (np.isinf(end) & may_stay),
        lambda i: (
            f"distance[{chunk.dst[i]}]={end[i]}, but edge {chunk.src[i]} -> {chunk.dst[i]} "
            f"gives a path of length {length[i]}"
        ),
    )
    return (end >= length * (1 - limits.tolerance)) & np.isfinite(length) & np.isfinite(end)


def _check_parent_edges(graph: Graph, source: int, distance: np.ndarray, parent: np.ndarray, limits: _Limits) -> None:
    is_met = np.isinf(distance)
    is_met[source] = True
    is_tight = is_met.copy()
    for chunk in edge_chunks(graph):
        tight = _check_triangles(chunk, distance, _path_lengths(chunk, distance), limits)
        is_tree_edge = parent[chunk.dst] == chunk.src
        is_met[chunk.dst[is_tree_edge]] = True
        is_tight[chunk.dst[is_tree_edge & tight]] = True
    check_all(is_met, lambda v: f"parent[{v}]={parent[v]}, but the graph has no edge {parent[v]} -> {v}")
    check_all(
        is_tight,
        lambda v: (
            f"distance[{v}]={distance[v]} is no sum of distance[{parent[v]}]={distance[parent[v]]} "
            f"and the weight of its parent's edge {parent[v]} -> {v}"
        ),
    )


def _check_rooted(parent: np.ndarray, source: int) -> None:
    """Check that parents lead to the source, by doubling the step: after k rounds each pointer has gone 2**k up."""
    ancestor = np.where(parent < 0, source, parent)
    for _ in range(max(1, len(parent).bit_length())):
        if (ancestor == source).all():
            return
        ancestor = ancestor[ancestor]
    check_all(ancestor == source, lambda v: f"the parents of vertex {v} run in a cycle and never reach source {source}")


def _check_chains(graph: Graph, source: int, distance: np.ndarray, limits: _Limits) -> None:
    """Check that tight edges lead from the source to every reached vertex.

    A tight edge from a strictly nearer vertex settles its end, by induction on the distance.  Vertices with no such
    edge must be reached from settled ones through edges between equal distances, which may form cycles.
    """
    is_settled = np.isinf(distance)
    is_settled[source] = True
    level_edges: list[tuple[np.ndarray, np.ndarray]] = []
    for chunk in edge_chunks(graph):
        tight = _check_triangles(chunk, distance, _path_lengths(chunk, distance), limits)
        src, dst = chunk.src[tight], chunk.dst[tight]
        is_nearer = distance[src] < distance[dst]
        is_settled[dst[is_nearer]] = True
        level_edges.append((src[~is_nearer], dst[~is_nearer]))
    if not is_settled.all():
        _spread(is_settled, level_edges)
    check_all(
        is_settled, lambda v: f"distance[{v}]={distance[v]}, but no chain of tight edges leads to {v} from the source"
    )


def _spread(is_settled: np.ndarray, edges: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Mark all that settled vertices reach along ``edges``: a search from one more vertex that leads to all of them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    root = len(is_settled)
    settled = np.flatnonzero(is_settled)
    src = np.concatenate([np.full(len(settled), root), *(src for src, _ in edges)])
    dst = np.concatenate([settled, *(dst for _, dst in edges)])
    matrix = coo_array((np.ones(len(src)), (src, dst)), shape=(root + 1, root + 1)).tocsr()
    order = breadth_first_order(matrix, root, return_predecessors=False)
    is_settled[order[1:]] = True
