# SPDX-License-Identifier: Apache-2.0
"""A GPU as a device, and a graph on it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ArgumentError, ShoalError
from shoal.graph import Graph

if TYPE_CHECKING:
    from shoal.strategies.subgraph import Subgraph

PIECE = 1024  # edges of a piece of a vertex in a push; as in kernels/push.cuh
ROW = 4096  # the same in a gather; as in kernels/reduction.cuh


def import_cupy(asked: str = "devices='cuda'") -> Any:
    """Return CuPy, or say what is missing for what was asked."""
    try:
        import cupy
    except ImportError as error:
        raise ShoalError(f"{asked} needs CuPy ({error}); install it with: pip install 'shoal[cuda]'") from None
    return cupy


def count_gpus(asked: str = "devices='cuda'") -> int:
    """Return the number of GPUs, or say what is missing for what was asked."""
    cupy = import_cupy(asked)
    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ShoalError(f"{asked} needs a GPU and its driver: {error}") from None


class CUDADevice:
    """One GPU."""

    kind = "cuda"

    def __init__(self, number: int = 0) -> None:
        count = count_gpus()
        if not 0 <= number < count:
            raise ArgumentError(f"devices='cuda:{number}' is not there; this machine has {count} GPUs, from 0 on")
        self.number = number
        self.name = f"{self.kind}:{number}"

    @cached_property
    def properties(self) -> dict[str, Any]:
        """What CUDA tells of the GPU."""
        return import_cupy().cuda.runtime.getDeviceProperties(self.number)

    @property
    def num_processors(self) -> int:
        """Multiprocessors of the GPU."""
        return self.properties["multiProcessorCount"]

    def threads_for(self, graph: Graph) -> int:
        """Return the number of host threads that pays for this graph."""
        return 1

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, fill: Any) -> np.ndarray:
        """Return a new array on the host, where ``start`` sets its first values."""
        return np.full(shape, fill, dtype)

    def place(self, graph: Graph, part: Subgraph | None = None) -> Shard:
        """Return the graph as a shard; its arrays are copied to the GPU when they are first used."""
        return Shard(graph, self, part)

    def use(self) -> Any:
        """Return a context in which the GPU is the current one."""
        return import_cupy().cuda.Device(self.number)


@functools.cache
def find_device(number: int) -> CUDADevice:
    """Return a GPU by its number."""
    return CUDADevice(number)


@dataclass
class Shard:
    """A graph on a GPU."""

    graph: Graph
    device: CUDADevice
    part: Subgraph | None = None
    _edges: dict[bool, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def num_local(self) -> int:
        """Vertices that the device has."""
        return self.graph.num_vertices

    def edges(self, *, incoming: bool) -> tuple[Any, ...]:
        """Return indptr, indices, weights of the outgoing or incoming edges, on the GPU."""
        if incoming and not self.graph.is_directed:
            incoming = False
        if incoming not in self._edges:
            self._edges[incoming] = self._reverse() if incoming else self._upload()
        return self._edges[incoming]

    @property
    def resident_bytes(self) -> int:
        """What the graph's edges take on the GPU now."""
        there = {False: self._made_there or (), **self._edges}
        return sum(array.nbytes for arrays in there.values() for array in arrays if array is not None)

    @property
    def _made_there(self) -> tuple[Any, ...] | None:
        """The arrays of a graph that was made on the GPU."""
        return self.graph._cache.get(_resident_key(self.device.number))

    def _upload(self) -> tuple[Any, ...]:
        if self._made_there is not None:
            return self._made_there
        arrays = (self.graph.indptr, self.graph.indices, self.graph.weights)
        return tuple(None if array is None else import_cupy().asarray(array) for array in arrays)

    def _reverse(self) -> tuple[Any, ...]:
        from shoal.backends.cuda.building import reverse_csr

        indptr, indices, weights = self.edges(incoming=False)
        return tuple(reverse_csr(indptr, indices, weights, self.graph.num_vertices))

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
        if self.graph.max_degree <= PIECE:
            return 0
        cupy = import_cupy()
        degree = cupy.diff(self.edges(incoming=False)[0])
        return int((-(-degree[degree > PIECE] // PIECE)).sum())

    @cached_property
    def rows(self) -> tuple[Any, Any, Any]:
        """Vertices that many edges enter, where the pieces of each begin, and each piece's place among them."""
        cupy = import_cupy()
        degree = cupy.diff(self.edges(incoming=True)[0])
        vertices = cupy.flatnonzero(degree > ROW)
        counts = -(-degree[vertices].astype(cupy.int64) // ROW)
        firsts = cupy.zeros(len(vertices) + 1, cupy.int64)
        cupy.cumsum(counts, out=firsts[1:])
        owners = np.repeat(np.arange(len(vertices), dtype=self.graph.indices.dtype), counts.get())
        return vertices.astype(self.graph.indices.dtype), firsts, cupy.asarray(owners)


def keep_on_gpu(graph: Graph, arrays: Any) -> None:
    """Let a graph that was made on the current GPU keep its arrays there: indptr, indices, weights."""
    graph._cache[_resident_key(import_cupy().cuda.Device().id)] = tuple(arrays)


def _resident_key(number: int) -> tuple[str, int]:
    return ("on GPU", number)


def num_words(num_vertices: int) -> int:
    """Return the 32-bit words of a bitmap."""
    return math.ceil(num_vertices / 32)
