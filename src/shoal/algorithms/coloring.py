# SPDX-License-Identifier: Apache-2.0
"""Greedy colouring: in a given order, each vertex takes the first colour that no neighbour has."""

from __future__ import annotations

import numpy as np

from shoal.graph import Graph


def greedy_coloring(graph: Graph, order: np.ndarray) -> np.ndarray:
    """Return a colour for every vertex, from 0 on; no edge but a loop has both ends of one colour.

    Examples
    --------
    >>> import shoal
    >>> greedy_coloring(shoal.Graph.from_edges([0, 1, 2], [1, 2, 3]), np.array([0, 3, 1, 2])).tolist()
    [0, 1, 2, 0]
    """
    from shoal.backends.cpu.kernels.coloring import color_in_order

    color = np.full(graph.num_vertices, -1, np.int32)
    # A vertex finds at most as many colours taken as it has neighbours.
    taken_by = np.full(int(graph.degree.max(initial=0)) + 2, -1, np.int64)
    color_in_order(graph.indptr, graph.indices, np.asarray(order, np.int64), taken_by, color)
    return color
