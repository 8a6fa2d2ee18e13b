# SPDX-License-Identifier: Apache-2.0
"""Trees of vertices on a CPU device, which one thread joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from shoal.graph import Graph


class CPUTrees:
    """The trees of one device: see `shoal.backends.base.Trees`."""

    portion_edges = 1 << 16  # some hundred microseconds of work, far more than dealing them costs
    packet_labels = 1 << 16  # far longer to hook than to agree on a buffer

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.label = np.empty(0, graph.vertex_dtype)

    def begin(self) -> None:
        """Let every vertex be a tree."""
        self.label = np.arange(self.graph.num_vertices, dtype=self.graph.vertex_dtype)

    def hook_rows(self, begin: int, end: int) -> None:
        """Join both ends of the edges of some rows."""
        from shoal.backends.cpu.kernels.components import hook_rows

        graph = self.graph
        hook_rows(graph.indptr, graph.indices, begin, end, not graph.is_directed, self.label)

    def hook_labels(self, begin: int, labels: np.ndarray) -> None:
        """Join the vertices from ``begin`` on with their labels on another device."""
        from shoal.backends.cpu.kernels.components import hook_labels

        hook_labels(begin, labels, self.label)

    def compress(self) -> None:
        """Label every vertex with its root."""
        from shoal.backends.cpu.kernels.components import compress

        compress(self.label)
