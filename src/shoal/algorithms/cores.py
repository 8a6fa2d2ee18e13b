# SPDX-License-Identifier: Apache-2.0
"""Core numbers: the largest k such that a vertex belongs to a subgraph in which everybody has k neighbours.

Peel: take away all vertices with at most k edges left, and again, until none is left with so few; then raise k.  For
the lowest k, where most vertices of most graphs go, each k is a phase of its own: who has lost an edge is the frontier,
so a long unravelling (of a mesh from its corners) looks at every edge once.  What is left then is a small part of a
graph with hubs: in the last phase all of it is the frontier, and k is raised to the fewest edges that any of it has
left.  Edges are taken first and who must go is decided behind, when all have been: so it does not matter which threads,
or which devices, took them.
Papers: Matula and Beck, JACM 1983 (peeling); Dhulipala, Blelloch, Shun, SPAA 2017 (in rounds, on many threads).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import both_ways, graph_of, make_config
from shoal.algorithms.verify_cores import verify_cores, verify_k_core
from shoal.calls import public_call
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.operators import advance, filter, reduce, update
from shoal.placement import Placed
from shoal.program import Phase, Program, Scalar, Vertex, add, maximum, minimum
from shoal.results import CoreMembersResult, CoreResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

NOT_PEELED = -1
#: Values of k that have a phase of their own: 0 to 3, where road networks and meshes unravel.  Each looks at every
#: vertex once: with 32 of them a Kronecker graph took half as long again.
NUM_LEVELS = 4
NO_VERTEX = 2**63 - 1  # the fewest edges of nobody


class _Peeling(Program):
    """What both programs share: the edges that a vertex has left, and the k at which it went."""

    core = Vertex("int32", fill=NOT_PEELED)
    edges_left = Vertex("int32", combine=add)
    k = Scalar("int64", fill=NOT_PEELED, combine=maximum)

    @rule
    def peel(vertex, core, edges_left, k):
        if core[vertex] != NOT_PEELED or edges_left[vertex] > k:
            return False
        core[vertex] = k
        return True

    @rule
    def loosen(dst, core, edges_left):
        if core[dst] != NOT_PEELED:
            return False
        atomic.add(edges_left, dst, -1)
        return True


class CoreNumbers(_Peeling):
    """The k at which every vertex goes."""

    fewest = Scalar("int64", combine=minimum)

    def start(self, degree: np.ndarray) -> None:
        self.edges_left[:] = degree

    @rule
    def next_level(superstep, k):
        return k + 1 if superstep == 0 else k

    @rule
    def remains(vertex, core):
        return core[vertex] == NOT_PEELED

    @rule
    def count_left(vertex, core, edges_left):
        return edges_left[vertex] if core[vertex] == NOT_PEELED else NO_VERTEX

    @rule
    def raise_k(k, fewest):
        return k if fewest == NO_VERTEX else max(k, fewest)

    def level(self, frontier):
        update(self.k, self.next_level)
        return advance(filter(frontier, self.peel), self.loosen)

    def rest(self, frontier):
        advance(filter(frontier, self.peel), self.loosen)
        reduce(frontier, self.count_left, into=self.fewest)
        update(self.k, self.raise_k)
        return filter(frontier, self.remains)

    def phases(self) -> list[Phase]:
        return [Phase(self.level, begin="all")] * NUM_LEVELS + [Phase(self.rest, begin="all")]


class KCore(_Peeling):
    """Who is left when everybody with fewer than k edges has gone."""

    def start(self, degree: np.ndarray, k: int) -> np.ndarray:
        self.edges_left[:] = degree
        self.k[0] = k - 1
        return np.flatnonzero(degree < k)

    def step(self, frontier):
        return advance(filter(frontier, self.peel), self.loosen)


_program = functools.cache(lambda kind: kind())


@public_call
def core_number(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> CoreResult:
    """Find for every vertex the largest k such that it belongs to the k-core.

    The k-core is the largest subgraph in which everybody has k edges at least.  In a directed graph edges count in both
    directions, and parallel edges as often as they are stored.  Self-loops are refused, as in NetworkX.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.core_number(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3])).core.tolist()
    [2, 2, 2, 1]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    _check_self_loops("core_number", plain)
    there = both_ways(graph)
    outcome = run_configured(_program(CoreNumbers), there, config, {"degree": graph_of(there).degree})
    if validate:
        verify_cores(plain, outcome.state["core"])
    return CoreResult(plain, outcome.stats, outcome.state["core"])


@public_call
def k_core(graph: Graph | Placed, k: int, *, validate: bool = False, **strategies: Any) -> CoreMembersResult:
    """Find the k-core: what is left when vertices with fewer than ``k`` edges are taken away, again and again.

    Parameters
    ----------
    k : edges that every vertex of it has at least; directions, parallel edges and loops are as in `core_number`
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.k_core(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3]), k=2).in_core.tolist()
    [True, True, True, False]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    k = check_integer("k", k, 0, np.iinfo(np.int32).max)
    _check_self_loops("k_core", plain)
    there = both_ways(graph)
    outcome = run_configured(_program(KCore), there, config, {"degree": graph_of(there).degree, "k": k})
    in_core = outcome.state["core"] == NOT_PEELED
    if validate:
        verify_k_core(plain, in_core, k)
    return CoreMembersResult(plain, outcome.stats, in_core, k)


def _check_self_loops(name: str, graph: Graph) -> None:
    if graph.has_self_loops:
        raise ArgumentError(f"{name}: the graph has self-loops, for which cores are not defined; run it on "
                            "graph.without_self_loops()")  # fmt: skip
