# SPDX-License-Identifier: Apache-2.0
"""The CPU as a device, a graph's part on it, and the buffers of its runs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.cpu.buffers import BufferSizes
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.backends.cpu.trees import CPUTrees
from shoal.backends.loops.flow import Flow
from shoal.graph import Graph
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Scheme
    from shoal.strategies.subgraph import Subgraph

# Starting two threads costs about 0.15 ms, as much as visiting a hundred thousand edges.
SMALL_EDGES = 1 << 17
LINE_BYTES = 64  # arrays that different threads write share no cache line

#: Stands for weights where there are none, or code takes none.
NO_WEIGHTS = read_only(np.zeros(1, np.int32))


@dataclass
class Workspace:
    """Buffers of one run on one device; kept by the shard for the next run."""

    queue: np.ndarray
    bitmap_a: np.ndarray
    bitmap_b: np.ndarray
    remaining: np.ndarray
    levels: np.ndarray
    num_levels: int = 0
    has_edges_room: bool = False  # the queue may be far longer than there are vertices
    blocks: dict[str, np.ndarray] = field(default_factory=dict)  # of bytes, for what only many devices need

    @property
    def nbytes(self) -> int:
        return self.queue.nbytes + 3 * self.bitmap_a.nbytes + self.levels.nbytes

    def reserve(self, name: str, shapes: list[tuple[tuple[int, ...], np.dtype]]) -> list[np.ndarray]:
        """Return arrays of the given shapes and types, in memory that is kept under ``name`` for the next run."""
        sizes = [-(-math.prod(shape) * dtype.itemsize // LINE_BYTES) * LINE_BYTES for shape, dtype in shapes]
        block = self.blocks.get(name)
        if block is None or block.nbytes < sum(sizes):
            block = self.blocks[name] = _on_line(np.zeros(sum(sizes) + LINE_BYTES, np.uint8), sum(sizes))
        begins = itertools.accumulate(sizes, initial=0)
        return [
            block[begin : begin + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
            for begin, (shape, dtype) in zip(begins, shapes, strict=False)
        ]

    def drop_queue(self) -> None:
        """Give the queue's memory back."""
        self.queue = np.empty(0, self.queue.dtype)

    def reserve_queue(self, length: int, *, num_kept: int) -> None:
        """Make the queue long enough; its first ``num_kept`` entries stay."""
        if len(self.queue) < length:
            kept, self.queue = self.queue[:num_kept], np.empty(length, self.queue.dtype)
            self.queue[:num_kept] = kept


@dataclass
class Shard:
    """A device's part of a graph: its edges by source, its incoming edges on demand, and buffers kept between runs.

    ``part`` says which part, where there are several devices.
    """

    graph: Graph
    device: CPUDevice
    part: Subgraph | None = None
    workspaces: list[Workspace] = field(default_factory=list)
    coarser: dict[int, list[Subgraph]] = field(default_factory=dict)  # parts of fewer devices: see `regrouping`
    _edges: dict[bool, tuple[np.ndarray, ...]] = field(default_factory=dict)
    _sizes: dict[Any, BufferSizes] = field(default_factory=dict)
    _longest_in: int | None = None

    @property
    def num_local(self) -> int:
        """Vertices that the device has: its own and copies."""
        return self.graph.num_vertices if self.part is None else self.part.num_local

    @property
    def num_edges(self) -> int:
        """Edges that the device has, by their sources."""
        return self.graph.num_edges if self.part is None else len(self.part.out_edges.indices)

    @cached_property
    def max_degree(self) -> int:
        """Edges of one vertex on the device, at most."""
        if self.part is None:
            return self.graph.max_degree
        return int(np.diff(self.part.out_edges.indptr).max(initial=0))

    def longest_list(self, *, incoming: bool) -> int:
        """Return the number of edges of one vertex on the device, at most."""
        if not incoming:
            return self.max_degree
        if self._longest_in is None:
            self._longest_in = int(np.diff(self.edges(incoming=True, weighted=False)[0]).max(initial=0))
        return self._longest_in

    def sizes_of(self, flow: Flow, phase: Phase, scheme: Scheme) -> BufferSizes:
        """Return how long the buffers of a phase are here; they are the same in every run."""
        key = (id(flow), phase.joins, scheme.name)  # the flow is held by what is found
        found = self._sizes.get(key)
        if found is None:
            threads = self.device.threads_for(self.graph)
            found = self._sizes[key] = BufferSizes(
                flow, phase, self.num_local, self.num_edges, scheme, threads, self.graph.num_vertices
            )
        return found

    def acquire_workspace(self, *, has_edges_room: bool = False) -> Workspace:
        """Return buffers nobody else uses, from an earlier run if there are any.

        A queue that may be as long as there are edges is not for a run that never needs so much.
        """
        workspace = self._find_workspace()
        if workspace.has_edges_room and not has_edges_room:
            workspace.drop_queue()
        workspace.has_edges_room = has_edges_room
        return workspace

    def _find_workspace(self) -> Workspace:
        try:
            return self.workspaces.pop()
        except IndexError:
            words = (self.num_local + 63) // 64
            queue = np.empty(0, self.graph.indices.dtype)
            first, second, remaining = np.empty((3, words), np.uint64)
            return Workspace(queue, first, second, remaining, np.empty(2, np.int64))

    def release_workspace(self, workspace: Workspace) -> None:
        """Keep the buffers for the next run."""
        self.workspaces.append(workspace)

    def edges(self, *, incoming: bool, weighted: bool) -> tuple[np.ndarray, ...]:
        """Return indptr, indices, weights of the outgoing or incoming edges, as read-only plain arrays.

        Where there are no weights, or code takes none, an array of one type stands for them.
        """
        if incoming not in self._edges:
            indptr, indices, weights = self._find_edges(incoming)
            weights = weights if weights is not None else NO_WEIGHTS
            self._edges[incoming] = tuple(read_only(np.asarray(array)) for array in (indptr, indices, weights))
        edges = self._edges[incoming]
        return edges if weighted else (*edges[:2], NO_WEIGHTS)

    def whole_edges(self, *, incoming: bool, weighted: bool) -> tuple[np.ndarray, ...]:
        """Return the same of all vertices, whoever owns them, by the graph's ids: they lie in everybody's memory."""
        graph = self.graph.reverse() if incoming else self.graph
        weights = graph.weights if weighted and graph.weights is not None else NO_WEIGHTS
        return tuple(read_only(np.asarray(array)) for array in (graph.indptr, graph.indices, weights))

    @cached_property
    def copies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Who has copies of a vertex, and by what id: see `Subgraph.copies`."""
        assert self.part is not None
        at, peers, ids = self.part.copies()
        return read_only(at), read_only(peers), read_only(ids)

    @cached_property
    def owned_bits(self) -> np.ndarray:
        """The vertices that the device owns, as a bitmap."""
        if self.part is not None:
            return self.part.owned_bits
        flags = np.zeros((self.num_local + 63) // 64 * 64, bool)
        flags[: self.num_local] = True
        return read_only(np.packbits(flags, bitorder="little").view(np.uint64))

    def _find_edges(self, incoming: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if self.part is not None:
            edges = self.part.in_edges if incoming else self.part.out_edges
            assert edges is not None, "the part was made without incoming edges"
            return edges.indptr, edges.indices, edges.weights
        graph = self.graph.reverse() if incoming else self.graph
        return graph.indptr, graph.indices, graph.weights


class CPUDevice:
    """All or some cores of this machine as one device."""

    kind = "cpu"
    is_here = True

    def __init__(self, num_threads: int | None = None, number: int = 0) -> None:
        self.num_threads = num_threads or len(available_cores())
        self.name = f"{self.kind}:{number}"

    def place(self, graph: Graph, part: Subgraph | None = None) -> Shard:
        """Return the graph, or the part of it that is this device's, as a shard; on a CPU nothing is copied."""
        return Shard(graph, self, part)

    def check_output(self) -> None:
        """Allow results to stay here: the device's memory is the host's."""

    def upload(self, array: np.ndarray) -> np.ndarray:
        """Return the array itself."""
        return array

    def make_trees(self, graph: Graph) -> CPUTrees:
        """Return room for trees of a graph's vertices."""
        return CPUTrees(graph)

    def is_small(self, graph: Graph) -> bool:
        """Whether a superstep is too short to start threads for."""
        return graph.num_edges < SMALL_EDGES

    def threads_for(self, graph: Graph) -> int:
        """Return the number of threads that pays for this graph."""
        return 1 if self.is_small(graph) else self.num_threads

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, fill: Any) -> np.ndarray:
        """Return a new array filled with one value; the device's threads touch the pages of one that is large."""
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        if size * dtype.itemsize < 1 << 22:
            if fill == 0:
                return np.zeros(shape, dtype)
            array = np.empty(shape, dtype)
            array.fill(fill)
            return array
        array = _on_line(np.empty(size + LINE_BYTES // dtype.itemsize, dtype), size)
        if self.num_threads == 1:
            array.fill(fill)
            return array.reshape(shape)
        from shoal.backends.cpu.kernels.fill import fill_part

        run_threads(fill_part, self.num_threads, array, array.dtype.type(fill))
        return array.reshape(shape)


def _on_line(room: np.ndarray, size: int) -> np.ndarray:
    """Return so many elements of an array from the begin of a cache line on.

    No row of 32 or 64 bytes then lies on two lines, as every other would behind an allocator's header.
    """
    begin = -room.ctypes.data % LINE_BYTES // room.itemsize
    return room[begin : begin + size]


def make_devices(count: int, threads_per_device: int | None) -> list[CPUDevice]:
    """Return devices that share the cores of this machine, or have so many threads each."""
    threads = threads_per_device or max(1, len(available_cores()) // count)
    return [CPUDevice(threads, number) for number in range(count)]
