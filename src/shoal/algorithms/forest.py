# SPDX-License-Identifier: Apache-2.0
"""Minimum spanning forest by Boruvka's rounds: every tree takes the lightest edge that leaves it.

Of edges as light as one another the first counts, by its smaller end and then by its larger one, so the forest is the
same everywhere, and trees that join one another in a ring can only be two that took the same edge.  A vertex gathers
the lightest of its own edges that leave its tree: of one vertex that order is the order of the other ends.  Whole
weights and narrow ids make one word of weight and end, whose least is found at once; others take a gather each.  Then
the vertices of a tree agree at its root, first on the weight, then on the edge; roots hook on to the trees that their
edges lead to (of two that take the same edge the smaller one stays), and every vertex follows the pointers to its root.
Vertices all of whose edges are inside a tree are not looked at again.
Papers: Boruvka, 1926; Vineet, Harish, Patidar, Narayanan, HPG 2009.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.verify_forest import verify_forest
from shoal.arrays import on_host
from shoal.calls import public_call
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.operators import compute, everything, filter, gather
from shoal.placement import Placed
from shoal.program import Phase, Program, Vertex, minimum
from shoal.results import ForestResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

NOBODY = 2**63 - 1
HALF = 32  # bits of a word's upper half, a weight, and of its lower half, a vertex
LOWER = 2**32 - 1
LARGEST = 3_037_000_499  # vertices whose pairs have numbers of 63 bits


class Forest(Program):
    """Every vertex's tree, by its root, and for every vertex that once was a root the edge by which it hooked on."""

    root = Vertex("vertex", combine=minimum)
    above = Vertex("vertex", combine=minimum)  # where a root hooks on
    near = Vertex("int64")  # the other end of a vertex's lightest edge out of its tree
    near_weight = Vertex("float64")
    least = Vertex("float64", fill=np.inf, combine=minimum)  # of a root: the weight that its tree takes,
    pair = Vertex("int64", fill=NOBODY, combine=minimum)  # and the ends of the edge, as one number
    taken = Vertex("int64", fill=NOBODY)
    taken_weight = Vertex("float64")

    def __init__(self, is_packed: bool) -> None:
        self.is_packed = is_packed

    def start(self) -> None:
        self.root[:] = np.arange(len(self.root))  # type: ignore[arg-type]

    @rule
    def leaving_word(src, dst, weight, root):
        return NOBODY if root[src] == root[dst] else (weight << HALF) | src

    @rule
    def keep_word(vertex, value, near, near_weight):
        near[vertex] = NOBODY if value == NOBODY else value & LOWER
        near_weight[vertex] = value >> HALF

    @rule
    def leaving_weight(src, dst, weight, root):
        return np.inf if root[src] == root[dst] else weight

    @rule
    def keep_weight(vertex, value, near_weight):
        near_weight[vertex] = value

    @rule
    def leaving_end(src, dst, weight, root, near_weight):
        return src if root[src] != root[dst] and weight == near_weight[dst] else NOBODY

    @rule
    def keep_end(vertex, value, near):
        near[vertex] = value

    @rule
    def offer_weight(vertex, near, near_weight, root, least):
        if near[vertex] != NOBODY:
            atomic.min(least, root[vertex], near_weight[vertex])

    @rule
    def offer_pair(vertex, near, near_weight, root, least, pair, num_vertices):
        if near[vertex] != NOBODY and near_weight[vertex] == least[root[vertex]]:
            low = min(vertex, near[vertex])
            high = max(vertex, near[vertex])
            atomic.min(pair, root[vertex], low * num_vertices + high)

    @rule
    def hook(vertex, root, above, pair, num_vertices):
        target = root[vertex]
        if target == vertex and pair[vertex] != NOBODY:
            target = root[pair[vertex] // num_vertices]
            if target == vertex:
                target = root[pair[vertex] % num_vertices]
        above[vertex] = target

    @rule
    def settle(vertex, root, above, least, pair, taken, taken_weight):
        target = above[vertex]
        if root[vertex] == vertex and target != vertex and (above[target] != vertex or target < vertex):
            root[vertex] = target
            taken[vertex] = pair[vertex]
            taken_weight[vertex] = least[vertex]
        least[vertex] = np.inf
        pair[vertex] = NOBODY

    @rule
    def follow(vertex, root):
        above = root[vertex]
        higher = root[above]
        while higher != above:
            root[vertex] = higher  # as soon as it is known: others come this way
            above = higher
            higher = root[above]

    @rule
    def is_open(vertex, near):
        return near[vertex] != NOBODY

    def step(self, frontier):
        if self.is_packed:
            gather(frontier, self.leaving_word, finish=self.keep_word, combine=minimum, dtype="int64")
        else:
            gather(frontier, self.leaving_weight, finish=self.keep_weight, combine=minimum)
            gather(frontier, self.leaving_end, finish=self.keep_end, combine=minimum, dtype="int64")
        compute(frontier, self.offer_weight)
        compute(frontier, self.offer_pair)
        compute(everything, self.hook)
        compute(everything, self.settle)
        compute(everything, self.follow)
        return filter(frontier, self.is_open)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, begin="all")]


_program = functools.cache(Forest)


def fits_words(weight: np.dtype | None, vertex: np.dtype) -> bool:
    """Whether a weight and a vertex fit a word together."""
    return (weight is None or weight == np.int32) and vertex == np.int32


def forest_program(graph: Graph) -> Forest:
    """Return the program that a call runs."""
    return _program(fits_words(None if graph.weights is None else graph.weights.dtype, graph.vertex_dtype))


@public_call
def minimum_spanning_forest(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> ForestResult:
    """Find a tree of least weight in every component of an undirected graph.

    Of edges of the same weight the one with the smaller ends is taken.  Without weights every edge counts one.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.minimum_spanning_forest(shoal.Graph.from_edges([0, 1, 0], [1, 2, 2], weights=[5, 1, 2]))
    >>> r.src.tolist(), r.dst.tolist(), r.weight.tolist(), r.total_weight
    ([0, 1], [2, 2], [2, 1], 3)
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    _check_graph(plain)
    outcome = run_configured(forest_program(plain), graph, config, {})
    taken = outcome.state["taken"]
    chosen = np.flatnonzero(taken != NOBODY)
    chosen = chosen[np.argsort(taken[chosen])]
    low, high = (part.astype(plain.vertex_dtype) for part in divmod(taken[chosen], max(plain.num_vertices, 1)))
    weight = None if plain.weights is None else outcome.state["taken_weight"][chosen].astype(plain.weights.dtype)
    total = len(chosen) if weight is None else weight.sum(dtype=np.int64 if weight.dtype.kind == "i" else None).item()
    if validate:
        verify_forest(plain, on_host(low), on_host(high), on_host(weight))
    return ForestResult(plain, outcome.stats, low, high, weight, total)


def _check_graph(graph: Graph) -> None:
    if graph.is_directed:
        raise ArgumentError("minimum_spanning_forest: the graph is directed, but only others have such forests; "
                            "run it on graph.symmetrized()")  # fmt: skip
    if graph.max_weight is not None and not graph.max_weight < np.inf:
        raise ArgumentError(f"minimum_spanning_forest needs finite weights; the graph has weight {graph.max_weight}")
    if graph.num_vertices > LARGEST:
        raise ArgumentError(f"minimum_spanning_forest: the graph has {graph.num_vertices} vertices; at most {LARGEST} "
                            "are allowed")  # fmt: skip
