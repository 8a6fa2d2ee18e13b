# SPDX-License-Identifier: Apache-2.0
"""Eigenvector centrality by power iteration: a vertex is as central as those who point to it are together.

x <- (A^T + I) x, then scaled to Euclidean length 1, until it hardly changes.  The identity moves all eigenvalues up by
one and leaves the vectors what they are: so of a bipartite graph, whose largest eigenvalue has a negative twin, the
iteration does not swing between two vectors.  (As in NetworkX.)
Paper: Bonacich, Journal of Mathematical Sociology 1972.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.iteration import check_converged, check_limits, uses_weights
from shoal.algorithms.verify_spectral import verify_eigenvector
from shoal.calls import public_call
from shoal.graph import Graph
from shoal.operators import everything, gather, reduce
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add
from shoal.results import IteratedCentralityResult
from shoal.rules import rule
from shoal.run import run_configured


class Eigenvector(Program):
    """A vector of length 1 that the adjacency matrix only stretches."""

    score = Vertex("float64")
    stretched = Vertex("float64")
    squares = Scalar("float64", combine=add)
    change = Scalar("float64", fill=np.inf, combine=add)
    tolerance = Constant("float64")

    def __init__(self, max_iterations: int, is_weighted: bool) -> None:
        self.max_iterations = max_iterations
        self.is_weighted = is_weighted

    def start(self, tolerance: float) -> None:
        self.score[:] = 1.0 / math.sqrt(max(len(self.score), 1))  # type: ignore[arg-type]
        self.tolerance = tolerance

    @rule
    def incoming(src, score):
        return score[src]

    @rule
    def weighted_incoming(src, weight, score):
        return score[src] * weight

    @rule
    def stretch(vertex, value, score, stretched):
        total = score[vertex] + value
        stretched[vertex] = total
        return total * total

    @rule
    def scale(vertex, score, stretched, squares):
        scaled = stretched[vertex] / math.sqrt(squares)
        change = abs(scaled - score[vertex])
        score[vertex] = scaled
        return change

    @rule
    def has_converged(change, tolerance):
        return change < tolerance

    def step(self, frontier):
        incoming = self.weighted_incoming if self.is_weighted else self.incoming
        gather(everything, incoming, finish=self.stretch, into=self.squares)
        reduce(everything, self.scale, into=self.change)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, until=self.has_converged, max_supersteps=self.max_iterations)]


_program = functools.cache(Eigenvector)


@public_call
def eigenvector_centrality(
    graph: Graph | Placed,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    *,
    weighted: bool = False,
    validate: bool = False,
    **strategies: Any,
) -> IteratedCentralityResult:
    """Find how central each vertex is by how central those are who point to it; the squares sum to one.

    Parameters
    ----------
    tolerance : stop when the change (the sum of the absolute differences) falls below it
    max_iterations : give up after so many (`ConvergenceError`)
    weighted : an edge counts by its weight
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.eigenvector_centrality(shoal.Graph.from_edges([0, 1], [1, 2])).centrality.round(3).tolist()
    [0.5, 0.707, 0.5]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    limits = check_limits(tolerance, max_iterations)
    program = _program(limits.max_iterations, uses_weights(plain, weighted))
    outcome = run_configured(program, graph, config, {"tolerance": limits.tolerance})
    centrality, change = outcome.state["score"], float(outcome.state["change"][0])
    hint = "the two largest eigenvalues are near one another; allow more iterations, or a larger change"
    check_converged("eigenvector_centrality", plain, change, limits, hint)
    if validate:
        verify_eigenvector(plain, centrality, tolerance=limits.tolerance, weighted=weighted)
    return IteratedCentralityResult(plain, outcome.stats, centrality, outcome.stats.num_supersteps, change)
