# SPDX-License-Identifier: Apache-2.0
"""A GPU as a device, and a graph on it."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ArgumentError
from shoal.machine import count_gpus, import_cupy

if TYPE_CHECKING:
    from shoal.backends.cuda.trees import CUDATrees
    from shoal.graph import Graph
    from shoal.strategies.subgraph import Subgraph

PIECE = 1024  # edges of a piece of a vertex in a push; as in kernels/push.cuh
ROW = 1024  # the same in a gather; as in kernels/reduction.cuh
#: The work in a gather's tile, in edges, and how much of it the end of a vertex is.  In smaller tiles the last 32
#: vertices are too few for a warp, larger ones differ more.
TILE, VERTEX_EDGES = 2048, 4
ALIGNED_TILE = 256  # vertices; in smaller tiles the first would move too far


class CUDADevice:
    """One GPU, or a share of its multiprocessors: number ``share`` of ``num_shares``."""

    kind = "cuda"
    is_here = True

    def __init__(self, number: int = 0, share: int = 0, num_shares: int = 1) -> None:
        count = count_gpus()
        if not 0 <= number < count:
            raise ArgumentError(f"devices='cuda:{number}' is not there; this machine has {count} GPUs, from 0 on")
        self.number, self.num_shares = number, num_shares
        self.name = f"{self.kind}:{number}" if num_shares == 1 else f"{self.kind}:{number}.{share}"
        if num_shares > 1 and num_shares > self.num_processors:
            raise ArgumentError(f"devices='cuda:{number}*{num_shares}' asks for {num_shares} devices on one GPU; it "
                                f"has {self.num_processors} multiprocessors, and each needs one")  # fmt: skip

    @cached_property
    def properties(self) -> dict[str, Any]:
        """What CUDA tells of the GPU."""
        return import_cupy().cuda.runtime.getDeviceProperties(self.number)

    @property
    def num_processors(self) -> int:
        """Multiprocessors of the GPU."""
        return self.properties["multiProcessorCount"]

    @property
    def own_processors(self) -> int:
        """Multiprocessors of the GPU that are the device's: others may have theirs there."""
        return self.num_processors // self.num_shares

    def threads_for(self, graph: Graph) -> int:
        """Return the number of host threads that pays for this graph."""
        return 1

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, fill: Any) -> np.ndarray:
        """Return a new array on the host, where ``start`` sets its first values."""
        return np.full(shape, fill, dtype)

    def place(self, graph: Graph, part: Subgraph | None = None) -> Shard:
        """Return the graph as a shard; its arrays are copied to the GPU when they are first used."""
        return Shard(graph, self, part)

    def place_whole(self, graph: Graph) -> Shard:
        """Return the graph as the shard that all devices of this GPU share; the graph keeps it."""
        return graph._cached(("whole on GPU", self.number), lambda: self.place(graph))

    def make_trees(self, graph: Graph) -> CUDATrees:
        """Return room for trees of a graph's vertices."""
        from shoal.backends.cuda.trees import CUDATrees

        return CUDATrees(self, graph)

    def check_output(self) -> None:
        """Refuse to leave arrays on a GPU that is not the current one: CuPy works on that one's."""
        current = import_cupy().cuda.Device().id
        if current != self.number:
            raise ArgumentError(f"output='device' with devices={self.name!r} needs that GPU to be CuPy's current one, "
                                f"which is {current}; run it inside: with cupy.cuda.Device({self.number})")  # fmt: skip

    def upload(self, array: np.ndarray) -> Any:
        """Return a copy of an array on the GPU."""
        with self.use():
            return import_cupy().asarray(array)

    def use(self) -> Any:
        """Return a context in which the GPU is the current one."""
        return import_cupy().cuda.Device(self.number)


@functools.cache
def find_device(number: int, share: int = 0, num_shares: int = 1) -> CUDADevice:
    """Return a GPU by its number, or one of its shares."""
    return CUDADevice(number, share, num_shares)


def find_devices(numbers: Sequence[int]) -> list[CUDADevice]:
    """Return a device for each number of a GPU; those of one number share it."""
    shares = [numbers[:i].count(number) for i, number in enumerate(numbers)]
    return [find_device(number, share, numbers.count(number)) for number, share in zip(numbers, shares, strict=True)]


class _Uploaded:
    """The arrays of a graph that a shard has copied to its GPU: as long as it is there, others need not do so again."""

    def __init__(self, arrays: tuple[Any, ...]) -> None:
        self.arrays = arrays


@dataclass
class Shard:
    """A graph on a GPU, or a device's part of it."""

    graph: Graph
    device: CUDADevice
    part: Subgraph | None = None
    _edges: dict[bool, tuple[Any, ...]] = field(default_factory=dict)
    _tiles: dict[int, Any] = field(default_factory=dict)
    tables: Any = None  # of a part, once a run has asked for them; see `shoal.backends.cuda.border`
    _uploaded: _Uploaded | None = None
    hubs: Any = None  # the graph in hub order, once a program has asked for it; see `shoal.backends.cuda.hubs`

    @property
    def num_local(self) -> int:
        """Vertices that the device has: its own and copies."""
        return self.graph.num_vertices if self.part is None else self.part.num_local

    @cached_property
    def max_degree(self) -> int:
        """Edges of one vertex on the device, at most."""
        if self.part is None:
            return self.graph.max_degree
        return int(np.diff(self.part.out_edges.indptr).max(initial=0))

    def edges(self, *, incoming: bool) -> tuple[Any, ...]:
        """Return indptr, indices, weights of the outgoing or incoming edges, on the GPU."""
        if incoming and not self.graph.is_directed:
            incoming = False
        if incoming not in self._edges:
            self._edges[incoming] = self._find_edges(incoming)
        return self._edges[incoming]

    @property
    def resident_bytes(self) -> int:
        """What the graph's edges take on the GPU now."""
        made = None if self.part is not None else _made_there(self.graph, self.device)
        there = {False: made or (), **self._edges}
        return sum(array.nbytes for arrays in there.values() for array in arrays if array is not None)

    def _find_edges(self, incoming: bool) -> tuple[Any, ...]:
        if self.part is None:
            return self._reverse() if incoming else self._upload(self.graph)
        edges = self.part.in_edges if incoming else self.part.out_edges
        assert edges is not None, "the part was made without incoming edges"
        return upload(edges)

    def _upload(self, graph: Graph) -> tuple[Any, ...]:
        made = _made_there(graph, self.device)
        if made is None:
            self._uploaded = _Uploaded(upload((graph.indptr, graph.indices, graph.weights)))
            graph._cache[_uploaded_key(self.device.number)] = weakref.ref(self._uploaded)
            made = self._uploaded.arrays
        return made

    def _reverse(self) -> tuple[Any, ...]:
        from shoal.backends.cuda.building import reverse_csr

        if (
            self.graph._ranked_by == "in"
        ):  # of the degrees that order it, the reverse's, the graph's offsets say nothing
            return self._upload(self.graph.reverse())
        indptr, indices, weights = self.edges(incoming=False)
        is_ranked = self.graph.is_optimized
        return tuple(reverse_csr(indptr, indices, weights, self.graph.num_vertices, is_ranked=is_ranked))

    @property
    def side_by_side(self) -> int:
        """The vertex from which on the incoming lists of 32 neighbouring ones stand side by side; here none do."""
        return self.num_local

    @cached_property
    def wanting(self) -> Any:
        """The vertices that an edge enters, as a bitmap of 32-bit words."""
        cupy = import_cupy()
        indptr = self.edges(incoming=True)[0]
        flags = cupy.zeros(num_words(self.num_local) * 32, cupy.uint8)
        flags[: self.num_local] = indptr[1:] > indptr[:-1]
        return cupy.packbits(flags, bitorder="little").view(cupy.uint32)

    @cached_property
    def max_pieces(self) -> int:
        """Pieces that a push cuts all vertices with many edges into."""
        if self.max_degree <= PIECE:
            return 0
        cupy = import_cupy()
        degree = cupy.diff(self.edges(incoming=False)[0])
        return int((-(-degree[degree > PIECE] // PIECE)).sum())

    @cached_property
    def rows(self) -> tuple[Any, Any, Any, Any]:
        """Vertices that many edges enter, where the pieces of each begin; of each piece its vertex's place and number.

        Pieces whose sources have similar ids stand together: what one has loaded, the next will find in a cache.
        """
        cupy = import_cupy()
        indptr, indices, _ = self.edges(incoming=True)
        degree = cupy.diff(indptr)
        vertices = cupy.flatnonzero(degree > ROW)
        counts = -(-degree[vertices].astype(cupy.int64) // ROW)
        firsts = cupy.zeros(len(vertices) + 1, cupy.int64)
        cupy.cumsum(counts, out=firsts[1:])
        owners = cupy.asarray(np.repeat(np.arange(len(vertices)), counts.get()))
        numbers = cupy.arange(len(owners)) - firsts[owners]
        order = cupy.argsort(indices[indptr[vertices[owners]] + numbers * ROW])
        tables = vertices, owners[order], numbers[order]
        vertices, owners, numbers = (table.astype(self.graph.indices.dtype) for table in tables)
        return vertices, firsts, owners, numbers

    def tiles(self, num_warps: int) -> Any:
        """Return where tiles of neighbouring vertices begin, whose edges are about equal: some for each warp."""
        if num_warps not in self._tiles:
            self._tiles[num_warps] = self._cut_tiles(num_warps)
        return self._tiles[num_warps]

    def _cut_tiles(self, num_warps: int) -> Any:
        cupy = import_cupy()
        degree = cupy.diff(self.edges(incoming=True)[0])
        work = cupy.cumsum(cupy.where(degree > ROW, 0, degree).astype(cupy.int64) + VERTEX_EDGES)
        total = int(work[-1]) if len(work) else 0
        count = max(math.ceil(total / (num_warps * TILE)) * num_warps, 1)
        bounds = cupy.arange(1, count, dtype=cupy.int64) * (total / count)
        inner = cupy.searchsorted(work, bounds.astype(cupy.int64))
        if self.num_local >= ALIGNED_TILE * count:
            inner -= inner % 32  # a warp's vertices come by 32
        if self.side_by_side < self.num_local:  # and they must, where their lists stand so
            inner = cupy.where(inner < self.side_by_side, inner, inner - inner % 32)
            inner = cupy.unique(cupy.concatenate([inner, cupy.asarray(np.array([self.side_by_side]))]))
        ends = cupy.asarray(np.array([0, self.num_local]))
        return cupy.concatenate([ends[:1], inner, ends[1:]]).astype(self.graph.indices.dtype)


def upload(arrays: Iterable[Any]) -> tuple[Any, ...]:
    """Return copies on the current GPU; of None there is none."""
    return tuple(None if array is None else import_cupy().asarray(array) for array in arrays)


def _made_there(graph: Graph, device: CUDADevice) -> tuple[Any, ...] | None:
    """Return the arrays of a graph that was made on the GPU, or that a shard has copied there."""
    uploaded = graph._cache.get(_uploaded_key(device.number), lambda: None)()
    return graph._cache.get(_resident_key(device.number), None if uploaded is None else uploaded.arrays)


def keep_on_gpu(graph: Graph, arrays: Any) -> None:
    """Let a graph that was made on the current GPU keep its arrays there: indptr, indices, weights."""
    graph._cache[_resident_key(import_cupy().cuda.Device().id)] = tuple(arrays)


def find_resident(graph: Graph) -> int | None:
    """Return the number of a GPU that keeps the graph's arrays, None if there is none."""
    kept = [key for key in tuple(graph._cache) if isinstance(key, tuple) and key == _resident_key(key[-1])]
    return kept[0][-1] if kept else None


def current_gpu(asked: str) -> int:
    """Return the number of the current GPU, or say what is missing for what was asked."""
    count_gpus(asked)
    return import_cupy().cuda.Device().id


def _uploaded_key(number: int) -> tuple[str, int]:
    return ("copied to GPU", number)


def _resident_key(number: int) -> tuple[str, int]:
    return ("on GPU", number)


def in_whole_words(array: Any) -> Any:
    """Return an array on the GPU with room to the end of its last word: atomics on narrow numbers take whole words."""
    missing = -array.nbytes % 4
    if missing == 0:
        return array
    room = import_cupy().empty(array.nbytes + missing, np.uint8)
    longer = room[: array.nbytes].view(array.dtype).reshape(array.shape)
    longer[...] = array
    return longer


def num_words(num_vertices: int) -> int:
    """Return the 32-bit words of a bitmap."""
    return math.ceil(num_vertices / 32)
