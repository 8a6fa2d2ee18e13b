# SPDX-License-Identifier: Apache-2.0
"""PageRank, a fixed number of iterations: ``shoal.pagerank``, written by a user.

A vertex passes its rank on in equal shares.  Shares are kept rather than ranks, so that an edge reads one number: in
what goes through all edges again and again, that is what counts.  What has no edges gives its rank to everybody.
"""

import numpy as np

import shoal
from shoal import Constant, Phase, Program, Scalar, Vertex, add, everything, gather, rule, swap


class Ranks(Program):
    rank = Vertex("float32")
    share = Vertex("float32")
    next_share = Vertex("float32")
    degree = Vertex("float32")
    stranded = Scalar("float64", combine=add)  # rank of the vertices without edges
    damping = Constant("float64")

    def __init__(self, iterations=20):
        self.iterations = iterations

    def start(self, degree, damping=0.85):
        self.rank[:] = 1 / len(degree)
        self.degree[:] = degree
        self.share[:] = self.rank / np.maximum(degree, 1)
        self.stranded[0] = self.rank[degree == 0].sum(dtype=np.float64)
        self.damping = damping

    @rule
    def received(src, share):
        return share[src]

    @rule
    def pass_on(vertex, value, rank, next_share, degree, stranded, damping, num_vertices):
        new = (1.0 - damping + damping * stranded) / num_vertices + damping * value
        rank[vertex] = new
        next_share[vertex] = new / max(degree[vertex], 1.0)
        return new if degree[vertex] == 0 else 0.0

    def step(self, frontier):
        gather(everything, self.received, finish=self.pass_on, into=self.stranded)
        swap(self.share, self.next_share)

    def phases(self):
        return [Phase(self.step, max_supersteps=self.iterations)]


if __name__ == "__main__":
    graph = shoal.generate.rmat(scale=14, seed=1)
    result = shoal.run(Ranks(), graph, degree=graph.degree)
    print(f"vertex {result.rank.argmax()} has rank {result.rank.max():.2e}; all of them sum to {result.rank.sum():.4f}")
