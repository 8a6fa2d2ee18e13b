# SPDX-License-Identifier: Apache-2.0
"""SciPy: ``scipy.sparse.csgraph`` and the product of a sparse matrix and a vector, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.bench import answers
from shoal.bench.kernels import DAMPING, NUM_ITERATIONS
from shoal.bench.peers import Reader
from shoal.graph import Graph


@dataclass
class _Native:
    # csgraph computes with float64 and would convert other types in every call.
    matrix: Any
    pattern: Any
    degree: np.ndarray


class ScipyPeer:
    """Every stored matrix is symmetric, so ``directed=True`` spares csgraph a transposed copy."""

    uses_openmp: ClassVar[bool] = False
    notes: ClassVar[dict[str, str]] = {
        "bfs": "order and parents",
        "pagerank": "float64, power iteration of its sparse product",
    }

    def __init__(self, num_threads: int) -> None:
        pass

    def prepare(self, graph: Graph, kernels: list[str]) -> _Native:
        from scipy.sparse import csr_array

        matrix = graph.to_scipy().astype(np.float64)
        pattern = csr_array((np.ones(graph.num_edges), matrix.indices, matrix.indptr), shape=matrix.shape)
        return _Native(matrix, pattern, graph.degree.astype(np.float64))

    def bfs(self, native: _Native, source: int) -> Reader:
        from scipy.sparse.csgraph import breadth_first_order

        _, parent = breadth_first_order(native.matrix, source, directed=True, return_predecessors=True)
        return lambda: answers.from_parents(parent, source)

    def sssp(self, native: _Native, source: int) -> Reader:
        from scipy.sparse.csgraph import dijkstra

        distance = dijkstra(native.matrix, directed=True, indices=source)
        return lambda: answers.from_distances(distance, np.isfinite(distance))

    def pagerank(self, native: _Native) -> Reader:
        num_vertices = native.degree.size
        is_dangling = native.degree == 0
        per_edge = DAMPING / np.where(is_dangling, 1.0, native.degree)
        rank = np.full(num_vertices, 1 / num_vertices)
        for _ in range(NUM_ITERATIONS):
            spread = 1 - DAMPING + DAMPING * rank[is_dangling].sum()
            rank = native.pattern @ (rank * per_edge)
            rank += spread / num_vertices
        return lambda: answers.from_scores(rank)

    def cc(self, native: _Native) -> Reader:
        from scipy.sparse.csgraph import connected_components

        _, label = connected_components(native.matrix, directed=False)
        return lambda: answers.from_labels(label)
