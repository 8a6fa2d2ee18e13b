# SPDX-License-Identifier: Apache-2.0
"""Communities by label propagation: every vertex takes the label that is most frequent among its neighbours.

A vertex whose own label is among the most frequent keeps it; of several others the smallest wins.  Vertices look anew
only when a neighbour has changed.  If all moved at once two of them could exchange labels for ever, so there are two
phases.  In the first, `HASTY_SUPERSTEPS` long, about half of those that want to move do, drawn anew in each superstep.
In the second only those move that drew the lowest number among the neighbours that want to move too.  They are no
neighbours of one another, so each move makes the weight of edges between equal labels grow: the phase ends.
Numbers are drawn from vertex and superstep alone, and sums are in the order of the edges: results do not depend on
devices or threads.  (Raghavan, Albert and Kumara 2007; that moves of an independent set converge: Cordasco and Gargano
2010, whose sets are the classes of a colouring.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.algorithms.arguments import check_undirected, graph_of, make_config
from shoal.algorithms.draws import draw
from shoal.algorithms.verify_communities import verify_label_propagation
from shoal.calls import public_call
from shoal.errors import ArgumentError, ConvergenceError, check_integer
from shoal.graph import Graph
from shoal.operators import advance, compute, everything, filter, gather, reduce, tally
from shoal.placement import Placed
from shoal.program import Phase, Program, Scalar, Vertex, add, maximum, minimum
from shoal.results import CommunitiesResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

# By then few vertices of a social graph want to move, and the careful phase has few rounds: see the docs' figures.
HASTY_SUPERSTEPS = 20
NOBODY = 2**63 - 1


class LabelPropagation(Program):
    """A label for every vertex that is among the most frequent of its neighbours."""

    label = Vertex("vertex")
    best = Vertex("vertex")
    most = Vertex("float64")
    own = Vertex("float64")  # what the vertex's present label has
    is_due = Vertex("uint8", fill=1, combine=maximum)  # a neighbour has changed
    wants = Vertex("uint8")
    num_due = Scalar("int64", fill=1, combine=add)

    def __init__(self, is_weighted: bool, max_supersteps: int, num_hasty: int = HASTY_SUPERSTEPS) -> None:
        self.is_weighted = is_weighted
        self.num_hasty = min(num_hasty, max_supersteps)
        self.num_careful = max_supersteps - self.num_hasty

    def start(self) -> None:
        self.label[:] = np.arange(self.num_vertices)

    @rule
    def needs_a_look(vertex, is_due):
        return is_due[vertex] != 0

    @rule
    def begin(vertex, label, best, most, own):
        best[vertex] = label[vertex]
        most[vertex] = 0.0
        own[vertex] = 0.0

    @rule
    def one(src, dst):
        return 1.0

    @rule
    def weight(src, dst, weight):
        return weight

    @rule
    def label_of(src, label):
        return label[src]

    @rule
    def choose(vertex, key, value, label, best, most, own):
        if key == label[vertex]:
            own[vertex] = value
        if value > most[vertex] or (value == most[vertex] and key < best[vertex]):
            most[vertex] = value
            best[vertex] = key

    @rule
    def decide(vertex, most, own, wants, is_due):
        wants[vertex] = most[vertex] > own[vertex]
        is_due[vertex] = wants[vertex]

    @rule
    def moves_by_chance(vertex, superstep, label, best, wants, is_due):
        if wants[vertex] == 0 or draw(vertex, superstep) < 0:
            return False
        label[vertex] = best[vertex]
        wants[vertex] = 0
        is_due[vertex] = 0
        return True

    @rule
    def rival(src, superstep, wants):
        return draw(src, superstep) if wants[src] != 0 else NOBODY

    @rule
    def yield_to(vertex, value, superstep, wants):
        if value < draw(vertex, superstep):
            wants[vertex] = 2  # to move, but not now

    @rule
    def moves_alone(vertex, label, best, wants, is_due):
        if wants[vertex] != 1:
            return False
        label[vertex] = best[vertex]
        wants[vertex] = 0
        is_due[vertex] = 0
        return True

    @rule
    def wake(src, dst, is_due):
        atomic.max(is_due, dst, 1)

    @rule
    def due(vertex, is_due):
        return int(is_due[vertex])

    @rule
    def is_settled(num_due):
        return num_due == 0

    def look(self):
        due = filter(everything, self.needs_a_look)
        compute(due, self.begin)
        tally(due, self.weight if self.is_weighted else self.one, key=self.label_of, choose=self.choose)
        compute(due, self.decide)
        return due

    def hasten(self, frontier):
        due = self.look()
        moved = filter(due, self.moves_by_chance)
        advance(moved, self.wake)
        reduce(everything, self.due, into=self.num_due)

    def settle(self, frontier):
        due = self.look()
        gather(due, self.rival, finish=self.yield_to, combine=minimum, dtype="int64")
        moved = filter(due, self.moves_alone)
        advance(moved, self.wake)
        reduce(everything, self.due, into=self.num_due)

    def phases(self) -> list[Phase]:
        return [
            Phase(self.hasten, until=self.is_settled, max_supersteps=self.num_hasty),
            Phase(self.settle, until=self.is_settled, max_supersteps=self.num_careful),
        ]


@public_call
def label_propagation(
    graph: Graph | Placed,
    *,
    weighted: bool = False,
    max_supersteps: int = 10_000,
    validate: bool = False,
    **strategies: Any,
) -> CommunitiesResult:
    """Find communities by label propagation in an undirected graph.

    Parameters
    ----------
    weighted : neighbours count by the weights of the edges to them, which must not be negative
    max_supersteps : give up after so many (`ConvergenceError`)
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.label_propagation(shoal.Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]))
    >>> r.label.tolist(), r.count
    ([0, 0, 0, 3, 3, 3], 2)
    """
    plain, config = graph_of(graph), make_config(strategies)
    check_undirected("label_propagation", plain)
    check_weights(plain, weighted)
    limit = check_integer("max_supersteps", max_supersteps, 0)
    outcome = run_configured(LabelPropagation(weighted and plain.is_weighted, limit), graph, config, {})
    num_due = int(outcome.state["num_due"][0])
    if plain.num_vertices and num_due:
        raise ConvergenceError(f"label_propagation did not converge: after max_supersteps={limit} {num_due} vertices "
                               "have neighbours that changed in the last")  # fmt: skip
    label, count = smallest_members(outcome.state["label"])
    if validate:
        verify_label_propagation(plain, label, weighted=weighted)
    return CommunitiesResult(plain, outcome.stats, label, count)


def check_weights(graph: Graph, weighted: bool) -> None:
    """Refuse weights that cannot be summed up as shares."""
    if weighted and graph.weights is not None:
        for weight in (graph.min_weight, graph.max_weight):
            if weight is not None and not 0 <= weight < np.inf:
                raise ArgumentError(f"weighted=True needs finite weights of at least 0; the graph has weight {weight}")


def smallest_members(label: np.ndarray) -> tuple[np.ndarray, int]:
    """Name each community by its smallest vertex; return the labels and the number of communities."""
    _, first, community = np.unique(label, return_index=True, return_inverse=True)
    return first.astype(label.dtype)[community], len(first)
