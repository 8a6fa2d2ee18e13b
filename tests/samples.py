# SPDX-License-Identifier: Apache-2.0
"""Two small programs that tests of runs and of fields share: hops, and sums over a first frontier."""

import numpy as np

import shoal
from graphs import path_graph
from shoal import Constant, Phase, Program, Scalar, Vertex, advance, atomic, compute, minimum, reduce, rule

FAR = 2**31 - 1


class Hops(Program):
    level = Vertex("int32", fill=FAR, combine=minimum)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def discover(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    def step(self, frontier):
        return advance(frontier, self.discover)


class Totals(Program):
    """Sum ``weight_of`` over the first frontier, and say who was in it."""

    seen = Vertex("int64")
    own = Vertex("vertex", fill=-1)
    amount = Scalar("float64", fill=0.5)
    extra = Scalar("float64")
    factor = Constant("int32")
    weight_of = Constant("int32", is_array=True)

    def __init__(self, begin):
        self.begin = begin

    def start(self, factor=2, weight_of=(1,) * 6):
        self.factor = factor
        self.weight_of = weight_of
        return self.begin(self)

    @rule
    def see(vertex, seen, own, amount):
        seen[vertex] += 1 + 10 * amount
        own[vertex] = vertex

    @rule
    def weigh(vertex, factor, weight_of):
        return factor * weight_of[vertex]

    def step(self, frontier):
        compute(frontier, self.see)
        reduce(frontier, self.weigh, into=self.extra)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


SIX = path_graph(6)


def seen_by(begin, **options):
    """Vertices in the first frontier, where ``start`` returns ``begin(self)``."""
    return np.flatnonzero(shoal.run(Totals(begin), SIX, **options).seen).tolist()


def everyone(self):
    return None
