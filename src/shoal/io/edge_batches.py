# SPDX-License-Identifier: Apache-2.0
"""The edges of a graph as rows, a batch at a time, so that writing needs little memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from shoal.graph import Graph
from shoal.interop.edges import count_isolated

#: Edges of a batch, or of one vertex if that has more.
BATCH_EDGES = 2**20


def edge_batches(
    graph: Graph, *, both_directions: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Yield (src, dst, weights) in the order of the rows; an undirected edge once, from its smaller id.

    ``both_directions`` yields undirected edges as they are stored.
    """
    is_halved = not graph.is_directed and not both_directions
    wanted = np.arange(0, graph.num_edges, BATCH_EDGES)
    rows = np.unique(np.append(np.searchsorted(graph.indptr, wanted, side="right") - 1, graph.num_vertices))
    for first, last in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        start, end = int(graph.indptr[first]), int(graph.indptr[last])
        src = np.repeat(np.arange(first, last, dtype=graph.vertex_dtype), graph.degree[first:last])
        dst = graph.indices[start:end]
        weights = None if graph.weights is None else graph.weights[start:end]
        if is_halved:
            keep = src <= dst
            src, dst = src[keep], dst[keep]
            weights = None if weights is None else weights[keep]
        yield src, dst, weights


def count_loops(graph: Graph) -> int:
    """Count the edges from a vertex to itself."""
    return sum(int(np.count_nonzero(src == dst)) for src, dst, _ in edge_batches(graph, both_directions=True))


def count_rows(graph: Graph) -> int:
    """Count the rows of `edge_batches`."""
    return graph.num_edges if graph.is_directed else (graph.num_edges + count_loops(graph)) // 2


def warn_of_lost_vertices(graph: Graph, path: str) -> None:
    """Warn that vertices without edges will not be in a file that has rows of edges and nothing else."""
    num_lost = count_isolated(graph)
    if num_lost:
        warnings.warn(f"{path}: has no place for {num_lost} vertices without edges", stacklevel=4)
