# SPDX-License-Identifier: Apache-2.0
"""A graph with every edge turned from lower to higher degree: what triangles are counted on.

Vertices are numbered by rising degree, of equal degree by id; every edge is there once, from the lower number to the
higher, without loops and repetitions.  So a vertex has at most sqrt(2 m) edges, whatever its degree was, and each
triangle has one lowest vertex, at which it is found (Chiba and Nishizeki, 1985; Schank and Wagner, 2005).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.arrays import read_only
from shoal.config import RunConfig
from shoal.graph import Graph
from shoal.placement import Placed, placed_for

# Each has a number for every vertex, which soon is as much as the edges are; the kernels take a tenth of a call's time.
MAX_THREADS = 8


@dataclass(frozen=True, eq=False)
class Oriented:
    """An oriented graph, and the vertex of the first one that each of its vertices is."""

    graph: Graph
    order: np.ndarray

    def in_order(self, values: np.ndarray) -> np.ndarray:
        """Return values of the oriented graph's vertices in the order of the first graph's."""
        result = np.empty_like(values)
        result[self.order] = values
        return result

    @property
    def degree(self) -> np.ndarray:
        """Number of different neighbours of each vertex of the first graph, itself not counted."""
        count, indices = self.graph.num_vertices, self.graph.indices
        degree = self.graph.degree.astype(np.int64)
        step = max(count, 1)  # NumPy counts a copy of 64 bits: of so many at a time it is no more than the result
        for begin in range(0, len(indices), step):
            degree += np.bincount(indices[begin : begin + step], minlength=count)
        return self.in_order(degree)


def orient(graph: Graph) -> Oriented:
    """Return the oriented graph, made now or by an earlier call."""
    return graph._cached("oriented", lambda: _orient(graph))


def num_orienting_threads() -> int:
    """Return the number of threads that turn edges."""
    from shoal.backends.cpu.threads import available_cores

    return min(len(available_cores()), MAX_THREADS)


def _orient(graph: Graph) -> Oriented:
    from shoal.backends.cpu.kernels.orient import count_higher, list_higher
    from shoal.backends.cpu.threads import run_threads

    count, dtype = graph.num_vertices, graph.vertex_dtype
    order = np.argsort(graph.degree, kind="stable").astype(dtype, copy=False)
    rank = np.empty(count, dtype)
    rank[order] = np.arange(count, dtype=dtype)
    num_threads = num_orienting_threads()
    seen = np.full((num_threads, count), -1, dtype)
    given = (read_only(graph.indptr), read_only(graph.indices), read_only(order), read_only(rank), seen)
    indptr = np.zeros(count + 1, graph.edge_dtype)
    run_threads(count_higher, num_threads, *given, indptr)
    np.cumsum(indptr, out=indptr)
    seen.fill(-1)
    indices = np.empty(int(indptr[-1]), dtype)
    run_threads(list_higher, num_threads, *given, indptr, indices)
    oriented = Graph.from_csr(indptr, indices, vertex_dtype=dtype, edge_dtype=graph.edge_dtype, check=False)
    return Oriented(oriented, order)


def place_oriented(graph: Graph | Placed, config: RunConfig, oriented: Oriented) -> Graph | Placed:
    """Return the oriented graph as the given one is placed: a vertex stays on its device."""
    placed = placed_for(graph, config)
    if placed.num_devices == 1:
        return Placed(oriented.graph, placed.devices, 1, placed.partition, placed.duplication)
    key = ("placed", placed.devices, placed.duplication, np.asarray(placed.owner).tobytes())
    owner = np.asarray(placed.owner)[oriented.order]
    return oriented.graph._cached(
        key, lambda: Placed(oriented.graph, placed.devices, placed.num_devices, placed.partition, placed.duplication,
                            owner)
    )  # fmt: skip
