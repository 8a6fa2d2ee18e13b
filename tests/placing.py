# SPDX-License-Identifier: Apache-2.0
"""Graphs placed on a given number of threads, and their edges and levels as NumPy and SciPy see them."""

import numpy as np
from scipy.sparse.csgraph import dijkstra

import shoal
from shoal.config import RESOLVED

IS_ON_CPU = RESOLVED["devices"] == "cpu"  # not so with --backend cuda
THREADS = [1, 3] if IS_ON_CPU else [1]


def on_threads(graph, num_threads):
    """Place a graph on so many threads, however small it is; where a GPU is the default, there, with its own threads.

    The buffers are full of zeros: a frontier of a wrong length then fails a test, not the process.
    """
    if not IS_ON_CPU:
        return shoal.place(graph)
    placed = shoal.place(graph, f"cpu:1x{num_threads}")
    shard = placed.shards[0]
    shard.device.is_small = lambda graph: False
    workspace = shard.acquire_workspace()
    workspace.queue = np.zeros(8 * graph.num_vertices, graph.indices.dtype)
    workspace.levels = np.zeros(64, np.int64)
    shard.release_workspace(workspace)
    return placed


def edges_of(graph):
    """Sources and destinations of all edges, in the order of ``graph.indices``."""
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)), np.asarray(graph.indices)


def levels_of(graph, source):
    """Hops from ``source``; -1 where it does not reach."""
    distance = dijkstra(graph.to_scipy(), indices=source, unweighted=True)
    return np.where(np.isinf(distance), -1, distance).astype(np.int64)
