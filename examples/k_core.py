# SPDX-License-Identifier: Apache-2.0
"""The k-core: what is left when vertices with fewer than k neighbours are taken away, again and again.

A vertex that has too few edges joins the frontier; then its neighbours lose theirs.  Edges are taken first and who must
go is decided behind, when all have been: so it does not matter which threads, or which devices, took them.  An edge is
looked at once, as in a breadth-first search; ``benchmarks/user_program.py`` compares the two.
"""

import numpy as np

import shoal
from shoal import Constant, Phase, Program, Vertex, add, advance, atomic, filter, rule


class KCore(Program):
    edges_left = Vertex("int32", combine=add)
    in_core = Vertex("bool")
    k = Constant("int64")

    def start(self, k, degree):
        self.k = k
        self.edges_left[:] = degree
        self.in_core[:] = degree >= k
        return np.flatnonzero(degree < k)

    @rule
    def lose_edge(dst, edges_left, in_core):
        if not in_core[dst]:
            return False  # it has gone already
        atomic.add(edges_left, dst, -1)
        return True

    @rule
    def must_go(vertex, edges_left, in_core, k):
        in_core[vertex] = edges_left[vertex] >= k
        return not in_core[vertex]

    def step(self, frontier):
        return filter(advance(frontier, self.lose_edge), self.must_go)

    def phases(self):
        return [Phase(self.step, joins=1)]  # a vertex goes once


if __name__ == "__main__":
    graph = shoal.generate.rmat(scale=16, seed=1)
    for k in (2, 10, 50):
        result = shoal.run(KCore(), graph, k=k, degree=graph.degree)
        size = np.count_nonzero(result.in_core)
        print(f"{k}-core: {size:,} of {graph.num_vertices:,} vertices, {result.stats.seconds * 1e3:.1f} ms")
