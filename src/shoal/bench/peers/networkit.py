# SPDX-License-Identifier: Apache-2.0
"""NetworKit: C++ with OpenMP; its searches use one thread.

It has no betweenness from listed sources.  Of its two component algorithms the sequential one is the faster on two
cores: 430 to 490 ms against 790 to 980 ms on kron20.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.bench import answers
from shoal.bench.kernels import DAMPING, NUM_ITERATIONS
from shoal.bench.peers import Reader
from shoal.graph import Graph
from shoal.interop.edges import single_edges

#: NetworKit's distance of a vertex that was not reached is the largest double.
_UNREACHED = np.finfo(np.float64).max


@dataclass
class _Native:
    graph: Any
    unweighted: Any


class NetworkitPeer:
    """Its PageRank would follow weights, so that kernel has a graph without them; the others ignore them at no cost."""

    uses_openmp: ClassVar[bool] = True
    notes: ClassVar[dict[str, str]] = {"bfs": "distances", "pagerank": "float64"}

    def __init__(self, num_threads: int) -> None:
        import networkit

        networkit.setNumberOfThreads(num_threads)
        self.networkit = networkit

    def prepare(self, graph: Graph, kernels: list[str]) -> _Native:
        built = self._build(graph)
        return _Native(built, self.networkit.graphtools.toUnweighted(built) if "pagerank" in kernels else None)

    def _build(self, graph: Graph) -> Any:
        src, dst, weights = single_edges(graph)
        # Other types of ids than uint64, and a SciPy matrix in place of arrays, crash it or lose the weights (11.2).
        ends = (src.astype(np.uint64), dst.astype(np.uint64))
        if weights is None:
            return self.networkit.GraphFromCoo(ends, graph.num_vertices)
        return self.networkit.GraphFromCoo((weights.astype(np.float64), ends), graph.num_vertices, weighted=True)

    def bfs(self, native: _Native, source: int) -> Reader:
        return self._search(self.networkit.distance.BFS(native.graph, source, storePaths=False))

    def sssp(self, native: _Native, source: int) -> Reader:
        return self._search(self.networkit.distance.Dijkstra(native.graph, source, storePaths=False))

    def _search(self, algorithm: Any) -> Reader:
        algorithm.run()

        def read() -> answers.Answer:
            distance = np.asarray(algorithm.getDistances())
            return answers.from_distances(distance, distance < _UNREACHED)

        return read

    def pagerank(self, native: _Native) -> Reader:
        centrality = self.networkit.centrality
        algorithm = centrality.PageRank(
            native.unweighted, damp=DAMPING, tol=0.0, distributeSinks=centrality.SinkHandling.DistributeSinks
        )
        algorithm.maxIterations = NUM_ITERATIONS
        algorithm.run()
        return lambda: answers.from_scores(np.asarray(algorithm.scores()))

    def cc(self, native: _Native) -> Reader:
        algorithm = self.networkit.components.ConnectedComponents(native.graph)
        algorithm.run()
        return lambda: answers.from_labels(np.asarray(algorithm.getPartition().getVector()))
