# SPDX-License-Identifier: Apache-2.0
"""Verify PageRank by its fixed point.

Ranks are not negative, sum to one, and one more step F of the power iteration hardly moves them.  F shrinks L1
distances by the damping factor: after a last change below ``tolerance`` the residual |F(rank) - rank| is below it too,
and after k steps from any start it is at most 2 * damping**k.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array, edge_chunks
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph

# What rounding alone may move: sums of float32 values over the edges of a hub are good to about four digits.
ROUNDING = {"float64": 1e-12, "float32": 1e-4}
SUM_TOLERANCE = {"float64": 1e-6, "float32": 1e-4}


def verify_pagerank(
    graph: Graph,
    rank: np.ndarray,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    personalization: Any = None,
    weighted: bool = False,
) -> None:
    """Raise ValidationError unless ``rank`` is the PageRank of ``graph`` to within ``tolerance`` (L1).

    Parameters
    ----------
    iterations
        The fixed number of iterations asked for; it sets the bound on the residual in place of ``tolerance``.
    personalization
        A value per vertex, or a mapping from vertices to values.
    """
    rank = check_array("rank", rank, graph.num_vertices, "f")
    if graph.num_vertices == 0:
        return
    check_all(np.isfinite(rank) & (rank >= 0), lambda v: f"rank[{v}]={rank[v]}: it must be finite and not negative")
    precision = "float64" if rank.dtype.itemsize >= 8 else "float32"
    _check_sum(rank, SUM_TOLERANCE[precision])
    bound = (tolerance if iterations is None else 2 * damping**iterations) + ROUNDING[precision]
    _check_residual(rank, pagerank_step(graph, rank, damping, personalization, weighted), bound)


def _check_sum(rank: np.ndarray, tolerance: float) -> None:
    total = float(rank.sum(dtype=np.float64))
    if abs(total - 1) > tolerance:
        raise ValidationError(f"the ranks sum to {total!r}; they must sum to 1 within {tolerance:g}")


def _check_residual(rank: np.ndarray, moved: np.ndarray, bound: float) -> None:
    change = np.abs(moved - rank)
    residual = float(change.sum())
    if residual > bound:
        v = int(np.argmax(change))
        raise ValidationError(
            f"one more iteration moves the ranks by {residual:.3e} (L1), more than {bound:.3e}; "
            f"most at vertex {v}: from {float(rank[v])!r} to {float(moved[v])!r}"
        )


def pagerank_step(graph: Graph, rank: np.ndarray, damping: float, personalization: Any, weighted: bool) -> np.ndarray:
    """Return one step of the power iteration from ``rank``, in float64.

    F(r) = damping * (A^T (r / strength) + dangling mass * p) + (1 - damping) * p, where p is the personalization.
    """
    start = teleport_distribution(personalization, graph.num_vertices)
    strength = out_strength(graph, weighted)
    is_dangling = strength == 0
    share = np.divide(rank, strength, out=np.zeros(len(rank)), where=~is_dangling)
    moved = np.zeros(graph.num_vertices)
    for chunk in edge_chunks(graph):
        flow = share[chunk.src]
        if weighted and chunk.weight is not None:
            flow *= chunk.weight
        moved += np.bincount(chunk.dst, weights=flow, minlength=graph.num_vertices)
    return damping * (moved + rank[is_dangling].sum(dtype=np.float64) * start) + (1 - damping) * start


def out_strength(graph: Graph, weighted: bool) -> np.ndarray:
    """Return the sum of each vertex's outgoing weights, or its number of outgoing edges."""
    if not weighted or graph.weights is None:
        return np.diff(graph.indptr).astype(np.float64)
    strength = np.zeros(graph.num_vertices)
    for chunk in edge_chunks(graph):
        strength += np.bincount(chunk.src, weights=chunk.weight, minlength=graph.num_vertices)
    return strength


def teleport_distribution(personalization: Any, num_vertices: int) -> np.ndarray:
    """Return the personalization as values that sum to one; None is uniform."""
    if personalization is None:
        return np.full(num_vertices, 1 / num_vertices)
    if isinstance(personalization, Mapping):
        values = np.zeros(num_vertices)
        values[list(personalization)] = list(personalization.values())
    else:
        values = np.asarray(personalization, dtype=np.float64)
    return values / values.sum()
