# SPDX-License-Identifier: Apache-2.0
"""rustworkx: Rust on one thread for these kernels.

Weights are Python objects and go through a Python function for every edge.  Its betweenness takes no list of sources.
PageRank ends with an exception unless it has converged, so after a fixed number of iterations there are no ranks.
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

#: Edges are handed over as Python tuples of about 120 bytes; this many at a time take 120 MB.
_EDGES_PER_CALL = 1_000_000


@dataclass
class _Native:
    graph: Any
    directed: Any
    num_vertices: int


class RustworkxPeer:
    """PageRank takes directed graphs only, so one is made where that kernel is asked for."""

    uses_openmp: ClassVar[bool] = False
    notes: ClassVar[dict[str, str]] = {
        "bfs": "layers",
        "pagerank": "float64; the library withholds the ranks, so they are not checked",
    }

    def __init__(self, num_threads: int) -> None:
        import rustworkx

        self.rustworkx = rustworkx

    def prepare(self, graph: Graph, kernels: list[str]) -> _Native:
        src, dst, weights = single_edges(graph)
        built = self.rustworkx.PyGraph(node_count_hint=graph.num_vertices, edge_count_hint=src.size)
        built.add_nodes_from(range(graph.num_vertices))
        for first in range(0, src.size, _EDGES_PER_CALL):
            part = slice(first, first + _EDGES_PER_CALL)
            costs = [1.0] * src[part].size if weights is None else weights[part].astype(np.float64).tolist()
            built.add_edges_from(list(zip(src[part].tolist(), dst[part].tolist(), costs, strict=True)))
        return _Native(built, built.to_directed() if "pagerank" in kernels else None, graph.num_vertices)

    def bfs(self, native: _Native, source: int) -> Reader:
        layers = self.rustworkx.bfs_layers(native.graph, [source])

        def read() -> answers.Answer:
            distance = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
            return answers.from_distances(distance, np.ones(distance.size, bool))

        return read

    def sssp(self, native: _Native, source: int) -> Reader:
        # The edge's own object is a float, which float() returns as it is: the cheapest function there is.
        lengths = self.rustworkx.dijkstra_shortest_path_lengths(native.graph, source, float)

        def read() -> answers.Answer:
            distance = np.array([0.0, *lengths.values()])  # the source itself is not listed
            return answers.from_distances(distance, np.ones(distance.size, bool))

        return read

    def pagerank(self, native: _Native) -> Reader:
        try:
            self.rustworkx.pagerank(native.directed, alpha=DAMPING, max_iter=NUM_ITERATIONS, tol=0.0)
        except self.rustworkx.FailedToConverge:
            return dict
        raise ArithmeticError("PageRank stopped before the fixed number of iterations")

    def cc(self, native: _Native) -> Reader:
        components = self.rustworkx.connected_components(native.graph)
        sizes = [len(component) for component in components]
        return lambda: answers.from_labels(np.repeat(np.arange(len(sizes)), sizes))
