# SPDX-License-Identifier: Apache-2.0
"""igraph: C on one thread.

Its PageRank solves to convergence and tells no number of iterations, so it is left out.  Results are made into Python
lists inside the call, and weights are read from an array in it: that is part of what a caller waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.bench import answers
from shoal.bench.peers import Reader
from shoal.graph import Graph
from shoal.interop.edges import single_edges


@dataclass
class _Native:
    graph: Any
    weights: np.ndarray | None


class IgraphPeer:
    """Distances by ``Graph.distances``, which does breadth-first search where there are no weights."""

    uses_openmp: ClassVar[bool] = False
    notes: ClassVar[dict[str, str]] = {"bfs": "distances"}

    def __init__(self, num_threads: int) -> None:
        import igraph

        self.igraph = igraph

    def prepare(self, graph: Graph, kernels: list[str]) -> _Native:
        src, dst, weights = single_edges(graph)
        ends = np.stack([src, dst], axis=1).astype(np.int64)
        return _Native(
            self.igraph.Graph(graph.num_vertices, ends), None if weights is None else weights.astype(np.float64)
        )

    def bfs(self, native: _Native, source: int) -> Reader:
        return _read_distances(native.graph.distances(source=[source]))

    def sssp(self, native: _Native, source: int) -> Reader:
        return _read_distances(native.graph.distances(source=[source], weights=native.weights, algorithm="dijkstra"))

    def cc(self, native: _Native) -> Reader:
        # It remembers that a graph is connected, and would answer every call after the first from that.  A class's own
        # code cannot write this name as an attribute: Python would put the name of the class before it.
        getattr(native.graph, "__invalidate_cache")()
        # The method of the base class gives the bare membership, without the VertexClustering around it.
        label = self.igraph.GraphBase.connected_components(native.graph)
        return lambda: answers.from_labels(np.asarray(label))

    def bc(self, native: _Native, sources: list[int]) -> Reader:
        centrality = native.graph.betweenness(directed=False, sources=sources)
        return lambda: answers.from_scores(np.asarray(centrality))


def _read_distances(rows: list[list[float]]) -> Reader:
    def read() -> answers.Answer:
        distance = np.asarray(rows[0], dtype=np.float64)
        return answers.from_distances(distance, np.isfinite(distance))

    return read
