# SPDX-License-Identifier: Apache-2.0
"""Hops from a source: the smallest program.  State, one rule over an edge, one operator."""

import shoal
from shoal import Program, Vertex, advance, atomic, minimum, rule


class Hops(Program):
    level = Vertex("int32", fill=2**31 - 1, combine=minimum)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def discover(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)  # True (it improved): dst joins the next frontier

    def step(self, frontier):
        return advance(frontier, self.discover)


if __name__ == "__main__":
    graph = shoal.generate.grid(300, 300, drop=0.1)
    result = shoal.run(Hops(), graph, source=0)
    reached = result.level[result.level < 2**31 - 1]
    assert (reached == shoal.bfs(graph, 0).distance[result.level < 2**31 - 1]).all()
    print(f"{reached.size:,} of {graph.num_vertices:,} vertices reached, the farthest after {reached.max()} hops")
