# SPDX-License-Identifier: Apache-2.0
"""shoal itself, through its public functions, on a graph that was placed before the clock starts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import shoal
from shoal.bench import answers
from shoal.bench.kernels import DAMPING, NUM_ITERATIONS
from shoal.bench.peers import Reader
from shoal.graph import Graph


class ShoalPeer:
    """Searches give distances, and breadth-first search parents too."""

    uses_openmp: ClassVar[bool] = False
    notes: ClassVar[dict[str, str]] = {"bfs": "distances and parents", "pagerank": "float64"}

    def __init__(self, num_threads: int) -> None:
        pass  # the device "cpu" takes every core the process may use

    def prepare(self, graph: Graph, kernels: list[str]) -> Any:
        return shoal.place(graph, devices="cpu")

    def bfs(self, native: Any, source: int) -> Reader:
        found = shoal.bfs(native, source)
        return lambda: answers.from_distances(found.distance, found.distance >= 0)

    def sssp(self, native: Any, source: int) -> Reader:
        found = shoal.sssp(native, source, parents=False)
        return lambda: answers.from_distances(found.distance, np.isfinite(found.distance))

    def pagerank(self, native: Any) -> Reader:
        found = shoal.pagerank(native, damping=DAMPING, iterations=NUM_ITERATIONS)
        return lambda: answers.from_scores(found.rank)

    def cc(self, native: Any) -> Reader:
        found = shoal.connected_components(native)
        return lambda: answers.from_labels(found.label)

    def bc(self, native: Any, sources: list[int]) -> Reader:
        found = shoal.betweenness_centrality(native, sources=sources)

        def read() -> answers.Answer:
            # A source is between others in one search fewer, and NetworkX's normalisation makes up for it; undo that.
            centrality = found.centrality.copy()
            centrality[sources] *= (len(sources) - 1) / len(sources)
            return answers.from_scores(centrality)

        return read
