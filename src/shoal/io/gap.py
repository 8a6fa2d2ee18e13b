# SPDX-License-Identifier: Apache-2.0
"""Serialized graphs of the GAP benchmark: ``.sg`` without weights, ``.wsg`` with them.

One byte that says whether the graph is directed, the numbers of stored edges and of vertices (int64), n + 1 offsets
(int64), then the neighbours: int32, or pairs of int32 (neighbour, weight).  A directed graph has offsets and neighbours
of the reverse after that, which are not read.  Nothing is aligned, so the file is read rather than mapped.
Every neighbour is checked to be a vertex, and where the graph is undirected every edge to have one the other way round.
"""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

import numpy as np

from shoal.backends.cpu.threads import available_cores
from shoal.errors import ArgumentError, FileFormatError, GraphError
from shoal.graph import Graph
from shoal.io.assembly import graph_from_csr
from shoal.io.options import ReadOptions

_HEADER = struct.Struct("<bqq")


class _Header(NamedTuple):
    is_directed: bool
    is_weighted: bool
    num_edges: int
    num_vertices: int

    @property
    def neighbours_at(self) -> int:
        return _HEADER.size + 8 * (self.num_vertices + 1)

    @property
    def num_bytes(self) -> int:
        one_way = 8 * (self.num_vertices + 1) + (8 if self.is_weighted else 4) * self.num_edges
        return _HEADER.size + one_way * (2 if self.is_directed else 1)


def matches(start: bytes) -> bool:
    """Never say that a content is GAP's: it has no mark of its own."""
    return False


def read(path: str, options: ReadOptions) -> Graph:
    """Read offsets and neighbours, and check them once."""
    header = _read_header(path)
    options.check_num_vertices(path, header.num_vertices)
    wants_weights = options.wants_weights(path, header.is_weighted)
    with open(path, "rb", buffering=0) as file:
        offsets = _read_array(file, _HEADER.size, np.int64, header.num_vertices + 1)
        words = header.num_edges * (2 if header.is_weighted else 1)
        neighbours = _read_array(file, header.neighbours_at, np.int32, words)
    weights = None
    if header.is_weighted:
        pairs = neighbours.reshape(-1, 2)
        neighbours, weights = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    _check_offsets(path, offsets, header.num_edges)
    _check_neighbours(path, neighbours, header)
    if not header.is_directed:
        _check_twins(path, offsets, neighbours, weights)
    weights = weights if wants_weights else None
    return graph_from_csr(path, offsets, neighbours, weights, options, directed=header.is_directed, check=False)


def _read_header(path: str) -> _Header:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(_HEADER.size)
    if len(start) < _HEADER.size:
        raise FileFormatError(f"{path}, byte {size}: the file ends within the header of {_HEADER.size} bytes")
    flag, num_edges, num_vertices = _HEADER.unpack(start)
    if flag not in (0, 1):
        raise FileFormatError(f"{path}, byte 0: the flag for a directed graph is {flag}; it must be 0 or 1")
    if num_edges < 0 or num_vertices < 0:
        raise FileFormatError(f"{path}, byte 1: {num_edges} edges and {num_vertices} vertices; neither may be negative")
    # A suffix may be wrong, the size of the file cannot; only a graph without edges leaves it to the suffix.
    by_suffix = path.lower().endswith(".wsg")
    for is_weighted in (by_suffix, not by_suffix):
        header = _Header(bool(flag), is_weighted, num_edges, num_vertices)
        if header.num_bytes == size:
            return header
    expected = _Header(bool(flag), by_suffix, num_edges, num_vertices).num_bytes
    kind = "a directed" if flag else "an undirected"
    raise FileFormatError(
        f"{path}, byte 1: {kind} graph of {num_vertices} vertices and {num_edges} edges takes {expected} bytes; "
        f"the file has {size}"
    )


def _read_array(file: Any, start: int, dtype: Any, count: int) -> np.ndarray:
    """Read on all cores: one alone copies from the page cache at half the speed."""
    from concurrent.futures import ThreadPoolExecutor

    array = np.empty(count, dtype)
    view = array.data.cast("B") if count else memoryview(b"")
    num_threads = len(available_cores()) if len(view) > 2**22 else 1
    cuts = [len(view) * i // num_threads for i in range(num_threads + 1)]

    def read_part(thread: int) -> None:
        position, end = cuts[thread], cuts[thread + 1]
        while position < end:
            num_read = os.preadv(file.fileno(), [view[position : min(end, position + 2**26)]], start + position)
            if num_read == 0:
                raise FileFormatError(f"{file.name}, byte {start + position}: the file ends here")
            position += num_read

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(read_part, range(num_threads)))
    return array


def _check_offsets(path: str, offsets: np.ndarray, num_edges: int) -> None:
    falls = np.flatnonzero(offsets[1:] < offsets[:-1])
    if offsets[0] != 0 or offsets[-1] != num_edges or falls.size:
        place = int(falls[0]) + 1 if falls.size else 0 if offsets[0] else offsets.size - 1
        raise FileFormatError(
            f"{path}, byte {_HEADER.size + 8 * place}: offset {place} is {offsets[place]}; "
            f"offsets must ascend from 0 to {num_edges}"
        )


def _check_neighbours(path: str, neighbours: np.ndarray, header: _Header) -> None:
    # As unsigned numbers the negative ones are the largest: one pass instead of two.
    unsigned = neighbours.view(np.uint32)
    if unsigned.size and unsigned.max() >= header.num_vertices:
        place = int(np.argmax(unsigned >= header.num_vertices))
        byte = header.neighbours_at + place * (8 if header.is_weighted else 4)
        allowed = f"0 to {header.num_vertices - 1}" if header.num_vertices else "none"
        raise FileFormatError(f"{path}, byte {byte}: neighbour {neighbours[place]} is out of range; allowed: {allowed}")


def _check_twins(path: str, offsets: np.ndarray, neighbours: np.ndarray, weights: np.ndarray | None) -> None:
    from shoal.backends.cpu.csr import is_symmetric

    if not is_symmetric(offsets, neighbours, weights):
        raise FileFormatError(
            f"{path}, byte 0: says that the graph is undirected, and not every edge has one in the other direction "
            "with the same weight"
        )


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write the graph and, if it is directed, its reverse."""
    from shoal.io.files import replacing_stream

    if graph.num_vertices >= 2**31:
        raise GraphError(f"graph has {graph.num_vertices} vertices; a GAP file holds fewer than 2**31")
    if graph.weights is not None and graph.weights.dtype != np.int32:
        raise GraphError(f"graph has weights of {graph.weights.dtype}; a GAP file holds int32")
    for suffix, is_weighted in ((".sg", False), (".wsg", True)):
        if path.lower().endswith(suffix) and graph.is_weighted != is_weighted:
            raise ArgumentError(
                f"path={path!r} is not allowed; .sg is for graphs without weights and .wsg for graphs with weights"
            )
    with replacing_stream(path) as stream:
        stream.write(_HEADER.pack(graph.is_directed, graph.num_edges, graph.num_vertices))
        _write_rows(stream, graph)
        if graph.is_directed:
            _write_rows(stream, graph.reverse())


def _write_rows(stream: Any, graph: Graph) -> None:
    stream.write(graph.indptr.astype("<i8").data)
    neighbours = graph.indices.astype("<i4", copy=False)
    if graph.weights is not None:
        neighbours = np.column_stack((neighbours, graph.weights)).astype("<i4", copy=False).reshape(-1)
    stream.write(neighbours.data)
