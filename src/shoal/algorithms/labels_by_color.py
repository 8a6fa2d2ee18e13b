# SPDX-License-Identifier: Apache-2.0
"""Label propagation by the classes of a colouring, one after the other: semi-synchronous, and of several labels the
largest.

Vertices of one colour are no neighbours: all at once find what they would find one after the other, and the labels are
those of a sequential program that goes through the classes.  (Cordasco and Gargano 2010)
"""

from __future__ import annotations

import numpy as np

from shoal.operators import advance, compute, everything, filter, reduce, tally
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add, maximum
from shoal.rules import atomic, rule

#: Labels of graphs without loops settle, mostly within ten rounds through the colours; with loops they may not.
MAX_SUPERSTEPS = 1_000_000


class LabelsByColor(Program):
    """Labels of one colour's vertices in each superstep, as NetworkX chooses them; of several the largest."""

    label = Vertex("vertex")
    color = Vertex("int32")
    best = Vertex("vertex")
    most = Vertex("float64")
    own = Vertex("float64")  # how many neighbours have the vertex's present label
    is_due = Vertex("uint8", fill=1, combine=maximum)  # a neighbour has changed
    num_due = Scalar("int64", fill=1, combine=add)
    num_colors = Constant("int64")

    def start(self, color: np.ndarray) -> None:
        self.label[:] = np.arange(len(color))
        self.color[:] = color
        self.num_colors = int(color.max(initial=0)) + 1

    @rule
    def has_its_turn(vertex, superstep, color, is_due, num_colors):
        return is_due[vertex] != 0 and color[vertex] == superstep % num_colors

    @rule
    def begin(vertex, label, best, most, own):
        best[vertex] = label[vertex]
        most[vertex] = 0.0
        own[vertex] = 0.0

    @rule
    def one(src, dst):
        return 1.0

    @rule
    def label_of(src, label):
        return label[src]

    @rule
    def choose(vertex, key, value, label, best, most, own):
        if key == label[vertex]:
            own[vertex] = value
        if value > most[vertex] or (value == most[vertex] and key > best[vertex]):
            most[vertex] = value
            best[vertex] = key

    @rule
    def moves(vertex, label, best, most, own, is_due):
        is_due[vertex] = 0
        if most[vertex] <= own[vertex]:
            return False
        label[vertex] = best[vertex]
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

    def look(self, frontier):
        due = filter(everything, self.has_its_turn)
        compute(due, self.begin)
        tally(due, self.one, key=self.label_of, choose=self.choose)
        moved = filter(due, self.moves)
        advance(moved, self.wake)
        reduce(everything, self.due, into=self.num_due)

    def phases(self) -> list[Phase]:
        return [Phase(self.look, until=self.is_settled, max_supersteps=MAX_SUPERSTEPS)]
