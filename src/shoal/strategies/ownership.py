# SPDX-License-Identifier: Apache-2.0
"""Ownership: the vertices of each device as lists, the rows of their edges, and what these edges mention.

A list is ascending, so a vertex's place in it, its address, orders a device's vertices as their ids do.  The marks are
one byte for each vertex, lent to one device after the other, and clear in between.  Nothing here depends on the number
of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.arrays import read_only
from shoal.graph import Graph

#: Looking at so many vertices or edges takes about 0.1 ms, what starting a thread costs.
_ITEMS_PER_THREAD = 1 << 16


class Rows(NamedTuple):
    """The rows of a device's vertices, one after the other."""

    offsets: np.ndarray  # of each row among the device's edges, and their number at the end
    first_edges: np.ndarray  # place of each row's first edge in the graph's indices
    indices: np.ndarray  # the graph's
    weights: np.ndarray | None  # the graph's

    @property
    def num_edges(self) -> int:
        """Number of edges in all rows."""
        return int(self.offsets[-1])

    def slice_of_graph(self) -> slice | None:
        """Return where the rows lie in the graph, None unless they lie one behind the other."""
        start = int(self.first_edges[0]) if self.first_edges.size else 0
        is_together = np.all(self.first_edges - self.offsets[:-1] == start)
        return slice(start, start + self.num_edges) if is_together else None


@dataclass(frozen=True, eq=False)
class Ownership:
    """Who owns what."""

    owner: np.ndarray  # of each vertex: uint16
    num_devices: int
    vertices: np.ndarray  # of device 0, then of device 1, ...
    starts: np.ndarray  # of each device's vertices, and their number at the end
    address: Any  # of each vertex: its place among its device's; None if not asked for
    num_threads: int | None
    marks: np.ndarray

    @classmethod
    def of(
        cls,
        owner: np.ndarray,
        num_devices: int,
        vertex_dtype: np.dtype,
        *,
        with_address: bool = False,
        num_threads: int | None = None,
    ) -> Ownership:
        """List the vertices of each device; ``owner`` is trusted."""
        from shoal.backends.cpu.kernels import duplication as kernels

        owner, size = read_only(owner), owner.size
        counts = np.zeros((_choose_threads(num_threads, size), num_devices), np.int64)
        _run(kernels.count_owned, len(counts), owner, counts)
        starts = np.zeros(num_devices + 1, np.int64)
        np.cumsum(counts.sum(axis=0), out=starts[1:])
        cursors = np.cumsum(counts, axis=0) - counts + starts[:-1]
        vertices = np.empty(size, vertex_dtype)
        address = np.empty(size, vertex_dtype) if with_address else None
        _run(kernels.list_owned, len(counts), owner, starts, cursors, vertices, address)
        marks = np.zeros(size, np.uint8)
        return cls(owner, num_devices, read_only(vertices), starts, address, num_threads, marks)

    def vertices_of(self, device: int) -> np.ndarray:
        """Return the ids of a device's vertices, ascending."""
        return self.vertices[self.starts[device] : self.starts[device + 1]]

    def rows_of(self, device: int, graph: Graph) -> Rows:
        """Return the rows of a device's vertices in ``graph``, which may be the reverse one."""
        vertices = self.vertices_of(device)
        first_edges = graph.indptr[vertices]
        offsets = np.zeros(vertices.size + 1, graph.edge_dtype)
        np.cumsum(graph.indptr[1:][vertices] - first_edges, out=offsets[1:])
        return Rows(read_only(offsets), read_only(first_edges), graph.indices, graph.weights)

    def mark(self, rows: Rows, bit: np.uint8) -> None:
        """Set a bit of the mark of each vertex that the rows mention."""
        self.run_over(rows, "mark_ends", rows.indices, bit, self.marks)

    def take_remote(self, device: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the marked vertices of other devices, ascending, and their marks; then nothing is marked any more."""
        from shoal.backends.cpu.kernels import duplication as kernels

        num_threads = _choose_threads(self.num_threads, self.owner.size)
        places = np.cumsum([0, *_run(kernels.count_remote, num_threads, device, self.owner, self.marks)])
        remote = np.empty(places[-1], self.vertices.dtype)
        remote_marks = np.empty(places[-1], np.uint8)
        _run(kernels.list_remote, num_threads, device, self.owner, places, self.marks, remote, remote_marks)
        return remote, remote_marks

    def count_by_owner(self, vertices: np.ndarray) -> np.ndarray:
        """Return how many of ``vertices`` each device owns."""
        return np.bincount(self.owner[vertices], minlength=self.num_devices)

    def run_over(self, rows: Rows, kernel: str, *args: Any) -> list[Any]:
        """Run a kernel over the edges of ``rows``, each thread over as many."""
        from shoal.backends.cpu.kernels import duplication as kernels

        num_threads = _choose_threads(self.num_threads, rows.num_edges)
        first_edges = rows.num_edges * np.arange(num_threads) // num_threads
        first_rows = np.searchsorted(rows.offsets, first_edges, side="right") - 1
        return _run(getattr(kernels, kernel), num_threads, first_rows, rows.offsets, rows.first_edges, *args)


def _choose_threads(num_threads: int | None, size: int) -> int:
    from shoal.backends.cpu.threads import available_cores

    return num_threads or min(len(available_cores()), 1 + size // _ITEMS_PER_THREAD)


def _run(kernel: Any, num_threads: int, *args: Any) -> list[Any]:
    from shoal.backends.cpu.threads import run_threads

    return run_threads(kernel, num_threads, *args)
