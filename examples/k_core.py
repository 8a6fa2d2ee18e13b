# SPDX-License-Identifier: Apache-2.0
"""The k-core: what is left when vertices with fewer than k neighbours are taken away, again and again.

A vertex joins the frontier when it loses the edge it could not spare; then its neighbours lose theirs.  An edge is
looked at once, as in a breadth-first search; ``benchmarks/user_program.py`` compares the two.
"""

import numpy as np

import shoal
from shoal import Constant, Phase, Program, Vertex, add, advance, atomic, rule


class KCore(Program):
    edges_left = Vertex("int32", combine=add)
    k = Constant("int64")

    def start(self, k, degree):
        self.k = k
        self.edges_left[:] = degree
        return np.flatnonzero(degree < k)

    @rule
    def lose_edge(dst, edges_left, k):
        if edges_left[dst] < k:
            return False  # it has gone already
        # Of all that take an edge at once, one takes the last it could spare.
        return atomic.add(edges_left, dst, -1) == k

    def step(self, frontier):
        return advance(frontier, self.lose_edge, unique=True)

    def phases(self):
        return [Phase(self.step, joins=1)]  # a vertex goes once


if __name__ == "__main__":
    graph = shoal.generate.rmat(scale=16, seed=1)
    for k in (2, 10, 50):
        result = shoal.run(KCore(), graph, k=k, degree=graph.degree)
        size = np.count_nonzero(result.edges_left >= k)
        print(f"{k}-core: {size:,} of {graph.num_vertices:,} vertices, {result.stats.seconds * 1e3:.1f} ms")
