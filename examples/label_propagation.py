# SPDX-License-Identifier: Apache-2.0
"""Label propagation from a few known vertices (Zhu and Ghahramani, 2002).

Some vertices are known to be on one side (1) or the other (0).  Every other vertex takes the mean of its neighbours,
again and again, until nothing changes: its value is the chance that a random walk meets the first side first.
"""

import numpy as np

import shoal
from shoal import Constant, Phase, Program, Scalar, Vertex, add, everything, gather, rule, swap


class LabelPropagation(Program):
    score = Vertex("float64", fill=0.5, combine=add)
    next_score = Vertex("float64")
    is_known = Vertex("uint8")
    change = Scalar("float64", fill=np.inf, combine=add)
    degree = Constant("int64", is_array=True)
    tolerance = Constant("float64")

    def start(self, known, degree, tolerance):
        vertices = list(known)
        self.score[vertices] = list(known.values())
        self.is_known[vertices] = 1
        self.degree, self.tolerance = degree, tolerance

    @rule
    def opinion(src, score):
        return score[src]

    @rule
    def adopt(vertex, value, score, next_score, is_known, degree):
        keeps = is_known[vertex] != 0 or degree[vertex] == 0
        next_score[vertex] = score[vertex] if keeps else value / degree[vertex]
        return abs(next_score[vertex] - score[vertex])

    @rule
    def is_settled(change, tolerance):
        return change < tolerance

    def step(self, frontier):
        gather(everything, self.opinion, finish=self.adopt, into=self.change)
        swap(self.score, self.next_score)

    def phases(self):
        return [Phase(self.step, until=self.is_settled, max_supersteps=10_000)]


if __name__ == "__main__":
    graph = shoal.generate.grid(40, 40)
    first, last = 0, graph.num_vertices - 1
    known = {first: 1.0, last: 0.0}
    result = shoal.run(LabelPropagation(), graph, known=known, degree=graph.degree, tolerance=1e-6)
    ours = np.count_nonzero(result.score > 0.5)
    print(f"{ours} of {graph.num_vertices} vertices lean to vertex {first}, after {result.stats.num_supersteps} rounds")
