# SPDX-License-Identifier: Apache-2.0
"""Katz centrality: the number of walks that end at a vertex, each counted alpha to the power of its length.

x <- alpha A^T x + beta from x = 0, until it hardly changes; where alpha is not below the inverse of the largest
eigenvalue, it grows without end.
Paper: Katz, Psychometrika 1953.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.iteration import check_converged, check_limits, uses_weights
from shoal.algorithms.verify_spectral import verify_katz
from shoal.calls import public_call
from shoal.errors import ArgumentError, check_number
from shoal.graph import Graph
from shoal.operators import everything, gather, swap
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add
from shoal.results import IteratedCentralityResult
from shoal.rules import rule
from shoal.run import run_configured


class Katz(Program):
    """Weighted numbers of walks; ``beta`` is a number, or has one for each vertex."""

    score = Vertex("float64")
    next_score = Vertex("float64")
    change = Scalar("float64", fill=np.inf, combine=add)
    alpha = Constant("float64")
    tolerance = Constant("float64")

    def __init__(self, max_iterations: int, is_weighted: bool, has_betas: bool) -> None:
        self.beta = Constant("float64", is_array=has_betas)
        self.max_iterations = max_iterations
        self.is_weighted = is_weighted
        self.has_betas = has_betas

    def start(self, alpha: float, beta: Any, tolerance: float) -> None:
        self.alpha, self.beta, self.tolerance = alpha, beta, tolerance

    @rule
    def incoming(src, score):
        return score[src]

    @rule
    def weighted_incoming(src, weight, score):
        return score[src] * weight

    @rule
    def add_one_beta(vertex, value, score, next_score, alpha, beta):
        next_score[vertex] = alpha * value + beta
        return abs(next_score[vertex] - score[vertex])

    @rule
    def add_own_beta(vertex, value, score, next_score, alpha, beta):
        next_score[vertex] = alpha * value + beta[vertex]
        return abs(next_score[vertex] - score[vertex])

    @rule
    def has_converged(change, tolerance):
        return change < tolerance

    def step(self, frontier):
        incoming = self.weighted_incoming if self.is_weighted else self.incoming
        renew = self.add_own_beta if self.has_betas else self.add_one_beta
        gather(everything, incoming, finish=renew, into=self.change)
        swap(self.score, self.next_score)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, until=self.has_converged, max_supersteps=self.max_iterations)]


_program = functools.cache(Katz)


@public_call
def katz_centrality(
    graph: Graph | Placed,
    alpha: float = 0.1,
    beta: Any = 1.0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    *,
    normalized: bool = True,
    weighted: bool = False,
    validate: bool = False,
    **strategies: Any,
) -> IteratedCentralityResult:
    """Find how many walks end at each vertex, long ones counting less.

    Parameters
    ----------
    alpha : what an edge more is worth; it must be below the inverse of the largest eigenvalue
    beta : what every vertex has by itself: a number, or one for each vertex
    tolerance : stop when the change (the sum of the absolute differences, before scaling) falls below it
    max_iterations : give up after so many (`ConvergenceError`)
    normalized : scale the values so that their squares sum to one
    weighted : an edge counts by its weight
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> graph = shoal.Graph.from_edges([0, 1], [1, 2], directed=True)
    >>> shoal.katz_centrality(graph, alpha=0.5, normalized=False).centrality.tolist()
    [1.0, 1.5, 1.75]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    alpha = check_number("alpha", alpha, 0)
    betas = _check_beta(beta, plain.num_vertices)
    limits = check_limits(tolerance, max_iterations)
    program = _program(limits.max_iterations, uses_weights(plain, weighted), betas.ndim == 1)
    arguments = {"alpha": alpha, "beta": betas if betas.ndim else float(betas), "tolerance": limits.tolerance}
    outcome = run_configured(program, graph, config, arguments)
    centrality, change = outcome.state["score"], float(outcome.state["change"][0])
    hint = (
        f"alpha={alpha:g} must be below the inverse of the largest eigenvalue, as what is below 1 / "
        "graph.max_degree is without weights"
    )
    check_converged("katz_centrality", plain, change, limits, hint)
    if normalized and plain.num_vertices:
        length = float(np.sqrt((centrality * centrality).sum()))
        centrality /= length if length > 0 else 1.0
    if validate:
        verify_katz(plain, centrality, alpha=alpha, beta=beta, tolerance=limits.tolerance, normalized=normalized,
                    weighted=weighted)  # fmt: skip
    return IteratedCentralityResult(plain, outcome.stats, centrality, outcome.stats.num_supersteps, change)


def _check_beta(beta: Any, num_vertices: int) -> np.ndarray:
    """Return beta as an array of none or of one dimension."""
    if np.ndim(beta) == 0:
        return np.array(check_number("beta", beta, 0))
    try:
        values = np.asarray(beta, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"beta={beta!r} is not allowed; it must be a number, or one for each vertex") from None
    if values.shape != (num_vertices,):
        raise ArgumentError(f"beta has shape {values.shape}; it must have one value for each of the {num_vertices} "
                            "vertices")  # fmt: skip
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise ArgumentError(f"beta must hold finite numbers of at least 0; the smallest is {values.min():g}")
    return values
