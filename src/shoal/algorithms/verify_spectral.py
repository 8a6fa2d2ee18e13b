# SPDX-License-Identifier: Apache-2.0
"""Verify eigenvector and Katz centrality, and hubs and authorities, by their equations.

Each is a vector that one more multiplication with the adjacency matrix leaves where it is, but for its scale.  By how
much it may move follows from when the iteration stopped: for Katz and HITS by the largest sum of a row's weights, which
bounds what a change of the vector becomes; for eigenvectors, where no such bound holds, a few times the tolerance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array, edge_chunks
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph

ROUNDING = 1e-9  # what sums over the edges of a hub may differ by, as a part of the whole
SLACK = 4.0  # how many times the last change of a power iteration the next may be, while it settles


def verify_eigenvector(
    graph: Graph, centrality: np.ndarray, *, tolerance: float = 1e-6, weighted: bool = False
) -> None:
    """Raise ValidationError unless ``centrality`` has length 1 and A^T stretches it only."""
    x = _check_values("centrality", graph, centrality)
    if graph.num_vertices == 0:
        return
    _check_total("the squares of the centralities", float((x * x).sum()), 1.0)
    moved = x + multiply(graph, x, weighted=weighted, towards_dst=True)
    moved /= np.sqrt((moved * moved).sum())
    _check_still("centrality", x, moved, SLACK * tolerance + ROUNDING * np.abs(x).sum())


def verify_katz(
    graph: Graph, centrality: np.ndarray, *, alpha: float = 0.1, beta: Any = 1.0, tolerance: float = 1e-6,
    normalized: bool = True, weighted: bool = False,
) -> None:  # fmt: skip
    """Raise ValidationError unless centrality = alpha A^T centrality + beta, but for the scale if ``normalized``."""
    x = _check_values("centrality", graph, centrality)
    if graph.num_vertices == 0:
        return
    beta = np.broadcast_to(np.asarray(beta, np.float64), x.shape)
    walked = alpha * multiply(graph, x, weighted=weighted, towards_dst=True)
    scale = 1.0
    if normalized and beta.any():
        _check_total("the squares of the centralities", float((x * x).sum()), 1.0)
        scale = float((x - walked).sum() / beta.sum())
    bound = alpha * heaviest_row(graph, weighted) * tolerance * abs(scale)
    _check_still("centrality", x, walked + scale * beta, bound + ROUNDING * np.abs(x).sum())


def verify_hits(
    graph: Graph, hub: np.ndarray, authority: np.ndarray, *, tolerance: float = 1e-8, weighted: bool = False
) -> None:
    """Raise ValidationError unless hubs are what A makes of authorities and these what A^T makes of hubs."""
    h, a = _check_values("hub", graph, hub), _check_values("authority", graph, authority)
    flow = multiply(graph, h, weighted=weighted, towards_dst=True)
    if not flow.any():  # no edges, or none that a hub could have
        heaviest = heaviest_row(graph, weighted)
        if heaviest > 0 or h.any() or a.any():
            raise ValidationError("hub is zero wherever an edge leaves a vertex")
        return
    _check_total("the hubs", float(h.sum()), 1.0)
    _check_total("the authorities", float(a.sum()), 1.0)
    back = multiply(graph, a, weighted=weighted, towards_dst=False)
    _check_still("hub", h, back / max(back.sum(), np.finfo(float).tiny), ROUNDING)
    bound = 2 * heaviest_row(graph, weighted) * tolerance / flow.sum()
    _check_still("authority", a, flow / flow.sum(), bound + ROUNDING)


def multiply(graph: Graph, x: np.ndarray, *, weighted: bool, towards_dst: bool) -> np.ndarray:
    """Return A^T x (what comes to each vertex along its incoming edges) or A x."""
    total = np.zeros(graph.num_vertices)
    for chunk in edge_chunks(graph):
        here, there = (chunk.src, chunk.dst) if towards_dst else (chunk.dst, chunk.src)
        flow = x[here]
        if weighted and chunk.weight is not None:
            flow = flow * chunk.weight
        total += np.bincount(there, weights=flow, minlength=graph.num_vertices)
    return total


def heaviest_row(graph: Graph, weighted: bool) -> float:
    """Return the largest sum of weights of the edges that leave a vertex."""
    return float(multiply(graph, np.ones(graph.num_vertices), weighted=weighted, towards_dst=False).max(initial=0.0))


def _check_values(name: str, graph: Graph, values: np.ndarray) -> np.ndarray:
    array = check_array(name, values, graph.num_vertices, "f").astype(np.float64)
    check_all(
        np.isfinite(array) & (array >= 0), lambda v: f"{name}[{v}]={array[v]}: it must be finite and not negative"
    )
    return array


def _check_total(what: str, total: float, expected: float) -> None:
    if abs(total - expected) > ROUNDING:
        raise ValidationError(f"{what} sum to {total!r}; they must sum to {expected:g}")


def _check_still(name: str, before: np.ndarray, after: np.ndarray, bound: float) -> None:
    change = np.abs(after - before)
    if not change.sum() <= bound:
        v = int(np.argmax(change))
        raise ValidationError(
            f"one more iteration moves {name} by {change.sum():.3e} (L1), more than {bound:.3e}; "
            f"most at vertex {v}: from {float(before[v])!r} to {float(after[v])!r}"
        )
