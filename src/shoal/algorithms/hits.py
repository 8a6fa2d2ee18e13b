# SPDX-License-Identifier: Apache-2.0
"""Hubs and authorities: good hubs point to good authorities, and those are whom good hubs point to.

authority <- A^T hub, hub <- A authority, then scaled to a sum of one, until the hubs hardly change.  The first is a
gather over incoming edges.  The second sums over the edges that leave a vertex: in an undirected graph these are the
same, so it is a gather, too; in a directed one it is a push in which every vertex adds to itself what it finds at the
other ends.  On a CPU a vertex's edges are one thread's, so that is a sum without atomics, in a fixed order, and nobody
needs the reverse of the graph in a second place.
Paper: Kleinberg, JACM 1999.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.iteration import check_converged, check_limits, uses_weights
from shoal.algorithms.verify_spectral import verify_hits
from shoal.calls import public_call
from shoal.graph import Graph
from shoal.operators import advance, everything, gather, reduce
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add
from shoal.results import HitsResult
from shoal.rules import atomic, rule
from shoal.run import run_configured


class Hits(Program):
    """Hubs, which sum to one, and authorities, which are scaled in the end."""

    hub = Vertex("float64")
    next_hub = Vertex("float64")
    authority = Vertex("float64")
    total = Scalar("float64", combine=add)
    change = Scalar("float64", fill=np.inf, combine=add)
    tolerance = Constant("float64")

    def __init__(self, max_iterations: int, is_weighted: bool, is_directed: bool) -> None:
        self.max_iterations = max_iterations
        self.is_weighted = is_weighted
        self.is_directed = is_directed

    def start(self, tolerance: float) -> None:
        self.hub[:] = 1.0 / max(len(self.hub), 1)  # type: ignore[arg-type]
        self.tolerance = tolerance

    @rule
    def hubs(src, hub):
        return hub[src]

    @rule
    def weighted_hubs(src, weight, hub):
        return hub[src] * weight

    @rule
    def become_authority(vertex, value, authority, next_hub):
        authority[vertex] = value
        next_hub[vertex] = 0.0

    @rule
    def authorities(src, authority):
        return authority[src]

    @rule
    def weighted_authorities(src, weight, authority):
        return authority[src] * weight

    @rule
    def become_hub(vertex, value, next_hub):
        next_hub[vertex] = value
        return value

    @rule
    def collect(src, dst, authority, next_hub):
        atomic.add(next_hub, src, authority[dst])

    @rule
    def weighted_collect(src, dst, weight, authority, next_hub):
        atomic.add(next_hub, src, authority[dst] * weight)

    @rule
    def own_hub(vertex, next_hub):
        return next_hub[vertex]

    @rule
    def scale(vertex, hub, next_hub, total):
        scaled = next_hub[vertex] / total if total > 0.0 else 0.0
        change = abs(scaled - hub[vertex])
        hub[vertex] = scaled
        return change

    @rule
    def has_converged(change, tolerance):
        return change < tolerance

    def step(self, frontier):
        gather(everything, self.weighted_hubs if self.is_weighted else self.hubs, finish=self.become_authority)
        if self.is_directed:
            advance(everything, self.weighted_collect if self.is_weighted else self.collect)
            reduce(everything, self.own_hub, into=self.total)
        else:
            authorities = self.weighted_authorities if self.is_weighted else self.authorities
            gather(everything, authorities, finish=self.become_hub, into=self.total)
        reduce(everything, self.scale, into=self.change)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, until=self.has_converged, max_supersteps=self.max_iterations)]


_program = functools.cache(Hits)


@public_call
def hits(
    graph: Graph | Placed,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
    *,
    weighted: bool = False,
    validate: bool = False,
    **strategies: Any,
) -> HitsResult:
    """Find how good a hub and how good an authority each vertex is; both sum to one (to nothing without edges).

    Parameters
    ----------
    tolerance : stop when the change of the hubs (the sum of the absolute differences) falls below it
    max_iterations : give up after so many (`ConvergenceError`)
    weighted : an edge counts by its weight
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.hits(shoal.Graph.from_edges([0, 1], [2, 2], directed=True))
    >>> r.hub.tolist(), r.authority.tolist()
    ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    limits = check_limits(tolerance, max_iterations)
    program = _program(limits.max_iterations, uses_weights(plain, weighted), plain.is_directed)
    outcome = run_configured(program, graph, config, {"tolerance": limits.tolerance})
    hub, authority, change = outcome.state["hub"], outcome.state["authority"], float(outcome.state["change"][0])
    hint = "the two largest singular values are near one another; allow more iterations, or a larger change"
    check_converged("hits", plain, change, limits, hint)
    total = float(authority.sum())
    authority /= total if total > 0 else 1.0
    if validate:
        verify_hits(plain, hub, authority, tolerance=limits.tolerance, weighted=weighted)
    return HitsResult(plain, outcome.stats, hub, authority, outcome.stats.num_supersteps, change)
