# SPDX-License-Identifier: Apache-2.0
"""Local moves of the Louvain method: vertices change their communities while modularity grows.

Moving vertex v from community C to D gains k(v, D) - k(v, C) - resolution k(v) (K(D) - K(C) + k(v)) / 2m, times 1/m;
k(v, D) are the weights of its edges into D, K(D) those of all ends of edges in D, and a loop has two ends at v.
A superstep finds the best move of every vertex that has moved or has a neighbour that did, and lets some of them move
at once: those that draw it, anew in each superstep, so that neighbours that would exchange communities soon do not; and
of two communities of one vertex each that want to become one, the one of higher id moves.  Moves at once may undo one
another's gain, so the modularity is computed in every superstep, and the communities of the best one are kept: it never
falls.
Degrees are whole numbers (weights in units of a part of their sum), so that sums over communities are exact in any
order; sums over edges are in the order of the edges.  Results do not depend on devices or threads.
(Lu, Halappanavar and Kalyanaraman 2015, on parallel moves)
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.contraction import Level
from shoal.algorithms.draws import draw
from shoal.operators import advance, compute, everything, filter, reduce, tally, update
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add, maximum
from shoal.rules import atomic, rule

# A level ends when so many supersteps in a row, in which vertices moved, have not improved the best modularity by the
# least gain.  With twice as many nothing was gained on the graphs of the tests.
PATIENCE = 4


class LocalMoves(Program):
    """Communities of one level: that of every vertex, named by one of them or by a vertex that has left it."""

    community = Vertex("vertex")
    kept = Vertex("vertex")  # the communities of the best modularity so far
    best = Vertex("vertex")
    degree = Vertex("int64")
    loop = Vertex("float64")
    inside = Vertex("float64")  # weights of the edges into the vertex's own community
    gain = Vertex("float64")
    total = Vertex("int64", combine=add)  # degrees of a community, at the vertex that names it
    members = Vertex("int64", combine=add)
    is_due = Vertex("uint8", fill=1, combine=maximum)  # to be looked at; 2: it has just moved
    sum_inside = Scalar("float64", combine=add)
    sum_squares = Scalar("float64", combine=add)
    quality = Scalar("float64", fill=-2.0)
    best_quality = Scalar("float64", fill=-2.0)
    last_gain = Scalar("int64")  # the superstep in which the best modularity was found last
    num_wanting = Scalar("int64", combine=add)
    num_moved = Scalar("int64", combine=add)
    resolution = Constant("float64")
    unit = Constant("float64")  # weight of a unit of the degrees
    whole_degree = Constant("float64")  # units of all degrees: 2 m
    least_gain = Constant("float64")

    def __init__(self, is_weighted: bool, max_supersteps: int) -> None:
        self.is_weighted = is_weighted
        self.max_supersteps = max_supersteps

    def start(self, level: Level, community: np.ndarray, resolution: float, least_gain: float) -> None:
        self.community[:] = community
        self.degree, self.loop = level.degree, level.loop
        self.unit, self.whole_degree = level.unit, max(float(level.degree.sum()), 1.0)
        self.resolution, self.least_gain = resolution, least_gain

    @rule
    def empty(vertex, total, members):
        total[vertex] = 0
        members[vertex] = 0

    @rule
    def join(vertex, community, degree, total, members):
        atomic.add(total, community[vertex], degree[vertex])
        atomic.add(members, community[vertex], 1)

    @rule
    def needs_a_look(vertex, is_due):
        return is_due[vertex] != 0

    @rule
    def begin(vertex, community, best, inside, gain):
        best[vertex] = community[vertex]
        inside[vertex] = 0.0
        gain[vertex] = -np.inf

    @rule
    def one(src, dst):
        return 1.0 if src != dst else 0.0

    @rule
    def weight(src, dst, weight):
        return weight if src != dst else 0.0

    @rule
    def community_of(src, community):
        return community[src]

    @rule
    def choose(vertex, key, value, community, best, inside, gain, degree, total, resolution, unit, whole_degree):
        if key == community[vertex]:
            inside[vertex] = value
            return
        found = value - resolution * unit * (degree[vertex] * (total[key] / whole_degree))
        if found > gain[vertex] or (found == gain[vertex] and key < best[vertex]):
            gain[vertex] = found
            best[vertex] = key

    @rule
    def share(vertex, inside, loop, total, whole_degree):
        part = total[vertex] / whole_degree
        return inside[vertex] + 2.0 * loop[vertex], part * part

    @rule
    def modularity(sum_inside, sum_squares, resolution, unit, whole_degree):
        return sum_inside / (unit * whole_degree) - resolution * sum_squares

    @rule
    def note_gain(quality, best_quality, last_gain, least_gain, num_moved, superstep):
        return superstep if num_moved == 0 or quality > best_quality + least_gain else last_gain

    @rule
    def keep(vertex, community, kept, quality, best_quality):
        if quality > best_quality:
            kept[vertex] = community[vertex]

    @rule
    def higher(quality, best_quality):
        return max(quality, best_quality)

    @rule
    def move(
        vertex, superstep, community, best, inside, gain, degree, total, members, is_due, resolution, unit, whole_degree
    ):
        is_due[vertex] = 0
        own, other = community[vertex], best[vertex]
        stay = inside[vertex] - resolution * unit * (degree[vertex] * ((total[own] - degree[vertex]) / whole_degree))
        if other == own or gain[vertex] <= stay:
            return 0, 0
        if members[own] == 1 and members[other] == 1 and other > own:
            return 0, 0
        if draw(vertex, superstep) < 0:
            is_due[vertex] = 1
            return 1, 0
        is_due[vertex] = 2
        community[vertex] = other
        return 1, 1

    @rule
    def has_moved(vertex, is_due):
        return is_due[vertex] == 2

    @rule
    def wake(src, dst, is_due):
        atomic.max(is_due, dst, 1)

    @rule
    def is_settled(num_wanting, superstep, last_gain):
        return num_wanting == 0 or superstep - last_gain >= PATIENCE

    def step(self, frontier):
        compute(everything, self.empty)
        compute(everything, self.join)
        due = filter(everything, self.needs_a_look)
        compute(due, self.begin)
        weight = self.weight if self.is_weighted else self.one
        tally(due, weight, key=self.community_of, choose=self.choose)
        reduce(everything, self.share, into=(self.sum_inside, self.sum_squares))
        update(self.quality, self.modularity)
        update(self.last_gain, self.note_gain)
        compute(everything, self.keep)
        update(self.best_quality, self.higher)
        reduce(due, self.move, into=(self.num_wanting, self.num_moved))
        advance(filter(due, self.has_moved), self.wake)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, until=self.is_settled, max_supersteps=self.max_supersteps)]
