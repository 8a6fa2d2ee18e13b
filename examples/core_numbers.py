# SPDX-License-Identifier: Apache-2.0
"""Core numbers: the largest k such that a vertex belongs to a subgraph in which everybody has k neighbours.

Peel: take away all vertices with at most k edges left, and again, until none is left with so few; then raise k to the
fewest edges that any remaining vertex has.  The frontier is what remains.
"""

import numpy as np

import shoal
from shoal import Program, Scalar, Vertex, add, advance, atomic, filter, maximum, minimum, reduce, rule, update


class CoreNumbers(Program):
    core = Vertex("int32", fill=-1)  # -1: not peeled yet
    edges_left = Vertex("int32", combine=add)
    k = Scalar("float64", combine=maximum)
    fewest = Scalar("float64", combine=minimum)

    def start(self, degree):
        self.edges_left[:] = degree

    @rule
    def peel(vertex, core, edges_left, k):
        if edges_left[vertex] > k:
            return False
        core[vertex] = np.int32(k)
        return True

    @rule
    def loosen(dst, core, edges_left):
        if core[dst] == -1:
            atomic.add(edges_left, dst, -1)

    @rule
    def remains(vertex, core):
        return core[vertex] == -1

    @rule
    def count_left(vertex, core, edges_left):
        return edges_left[vertex] if core[vertex] == -1 else np.inf

    @rule
    def raise_k(k, fewest):
        return max(k, fewest)

    def step(self, frontier):
        peeled = filter(frontier, self.peel)
        advance(peeled, self.loosen)
        reduce(frontier, self.count_left, into=self.fewest)
        update(self.k, self.raise_k)
        return filter(frontier, self.remains)


if __name__ == "__main__":
    graph = shoal.generate.rmat(scale=14, seed=1)
    result = shoal.run(CoreNumbers(), graph, degree=graph.degree)
    top = result.core.max()
    print(f"the innermost core: {np.count_nonzero(result.core == top):,} vertices with {top} neighbours each")
    print(f"{result.stats.seconds * 1e3:.1f} ms, {result.stats.num_supersteps} supersteps")
