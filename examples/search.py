# SPDX-License-Identifier: Apache-2.0
"""A breadth-first search that goes both ways, and finds a tree of shortest paths: ``shoal.bfs``, written by a user.

From a small frontier it is pushed: whoever claims a vertex first is its parent.  Into the many vertices that a large
frontier leads to it is pulled: each looks for a parent by itself and stops at the first.  One rule says both;
``where`` says who is still looking, ``unique`` and ``joins`` that a vertex is found once.
"""

import numpy as np

import shoal
from shoal import Phase, Program, Vertex, advance, atomic, first, rule


class Search(Program):
    distance = Vertex("int32", fill=-1, combine=first)
    parent = Vertex("vertex", fill=-1, combine=first)

    def start(self, source):
        self.distance[source] = 0
        self.parent[source] = source
        return [source]

    @rule
    def is_free(vertex, parent):
        return parent[vertex] == -1

    @rule
    def claim(src, dst, superstep, distance, parent):
        if not atomic.compare_exchange(parent, dst, -1, src):
            return False
        distance[dst] = superstep + 1
        return True

    def step(self, frontier):
        return advance(frontier, self.claim, where=self.is_free, direction="auto", unique=True)

    def phases(self):
        return [Phase(self.step, joins=1)]


if __name__ == "__main__":
    graph = shoal.generate.rmat(scale=14, seed=1)
    result = shoal.run(Search(), graph, source=int(graph.degree.argmax()))
    directions = [row["direction"][0] for row in result.stats.to_dict()["supersteps"]]
    print(f"{np.count_nonzero(result.distance >= 0):,} vertices reached; supersteps: {', '.join(directions)}")
