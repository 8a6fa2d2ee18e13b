# SPDX-License-Identifier: Apache-2.0
"""The order in which Bellman and Ford's algorithm with a queue meets vertices, by weights of any sign.

Unlike a search by distance it may find a vertex long before it knows its distance, so that the order follows from
nothing but the relaxations themselves: they are done one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.graph import Graph


class Relaxed(NamedTuple):
    """The vertices reached, in the order in which they were met, and of every vertex its parent and distance."""

    order: np.ndarray
    parent: np.ndarray
    distance: np.ndarray


def relaxing_order(graph: Graph, source: int) -> Relaxed | None:
    """Return what is reached from a source by the graph's weights, of any sign; None if a cycle is negative.

    Examples
    --------
    >>> import shoal
    >>> g = shoal.Graph.from_csr([0, 2, 2, 3], [1, 2, 1], [2.0, 3.0, -2.0], directed=True)
    >>> found = relaxing_order(g, 0)
    >>> found.order.tolist(), found.distance.tolist(), found.parent.tolist()
    ([0, 1, 2], [0.0, 1.0, 3.0], [-1, 2, 0])
    """
    from shoal.backends.cpu.kernels.relaxing import UNBOUNDED, relax_in_order

    num_vertices, num_edges = graph.num_vertices, graph.num_edges
    weights = np.ones(num_edges) if graph.weights is None else graph.weights.astype(np.float64)
    distance = np.full(num_vertices, np.inf)
    parent, latest = np.full((2, num_vertices), -1, np.int64)
    order, queue, is_queued, times_queued, times_improved = np.zeros((5, num_vertices), np.int64)
    before, tail = np.empty((2, num_edges), np.int64)
    listed, branch = np.full(num_edges, -1, np.int64), np.full((num_vertices, 2), -1, np.int64)
    num_reached = relax_in_order(
        graph.indptr, graph.indices, weights, np.int64(source), distance, parent, order, queue, is_queued,
        times_queued, times_improved, latest, before, tail, listed, branch,
    )  # fmt: skip
    return None if num_reached == UNBOUNDED else Relaxed(order[:num_reached], parent, distance)
