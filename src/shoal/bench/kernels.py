# SPDX-License-Identifier: Apache-2.0
"""The kernels that are measured: what each is given, and how closely the libraries must agree on its answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.graph import Graph

DAMPING = 0.85
#: Every library that allows it runs so many iterations of PageRank; the others say in a note what they ran.
NUM_ITERATIONS = 20


@dataclass(frozen=True)
class Kernel:
    """One row of the table for each graph."""

    name: str
    title: str
    #: 0: the kernel starts nowhere; 1: at one vertex; more: at so many vertices in one call.
    num_starts: int
    #: Largest relative difference between two libraries' answers; 0 where answers are whole numbers.
    tolerance: float
    needs_weights: bool = False

    def arguments(self, sources: list[int], repetition: int) -> tuple:
        """Return what the kernel of one repetition takes after the graph: nothing, a source or a list of sources."""
        if self.num_starts == 0:
            return ()
        if self.num_starts == 1:
            return (sources[repetition % len(sources)],)
        first = repetition * self.num_starts
        return ([sources[(first + i) % len(sources)] for i in range(self.num_starts)],)


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("bfs", "BFS", 1, 0.0),
        Kernel("sssp", "SSSP", 1, 0.0, needs_weights=True),
        Kernel("pagerank", f"PageRank, {NUM_ITERATIONS} iterations", 0, 1e-6),
        Kernel("cc", "connected components", 0, 0.0),
        Kernel("bc", "betweenness, 4 sources", 4, 1e-6),
    )
}


def choose_sources(graph: Graph, num_sources: int, seed: int = 1) -> list[int]:
    """Draw vertices that have an edge, without repeating one while there are enough of them."""
    candidates = np.flatnonzero(graph.degree)
    if candidates.size == 0:
        return []
    generator = np.random.default_rng(seed)
    return generator.choice(candidates, num_sources, replace=candidates.size < num_sources).tolist()
