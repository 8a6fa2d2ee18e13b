# SPDX-License-Identifier: Apache-2.0
"""Key files: edges in any order as keys in files, a file for each range of buckets of sources.

Rows are collected until there are a chunk of them, and then written as the keys with which a graph in memory is sorted
(`backends.cpu.csr`): bucket by bucket, so that of a chunk each range has one piece.  A key has both ends of an edge and
is as wide as one of them where vertices are not too many: half is written, and read again, of what two ends would take.
While a chunk is written, the next one is read.  All arrays are kept: new pages of memory cost more than sorting does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.backends.cpu.csr import CSR, Layout, choose_layout, scatter_keys, sort_keys
from shoal.backends.cpu.kernels import spreading
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.io.write_behind import WriteBehind
from shoal.progress import WorkReporter
from shoal.sharding.edge_survey import Batch

#: With fewer bits beside the other end there would be more buckets than a core's second-level cache has lines, and
#: keys are wide.  So are those of graphs of more than 2**25 vertices.
_MIN_SPARE_BITS = 6
#: Of wide keys so many buckets that one of a thousand million edges still fits in the caches.
_INDEX_BITS = 14


@dataclass(frozen=True)
class SortOptions:
    """How edges become rows: what `Graph.from_edges` is asked for, and by which end they are sorted."""

    is_mirrored: bool
    keeps_loops: bool
    deduplicate: bool
    is_reversed: bool = False


class Columns(NamedTuple):
    """Keys and maybe the weights of their edges."""

    keys: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, size: int, key_dtype: np.dtype, weight_dtype: np.dtype | None) -> Columns:
        """Make room for so many."""
        return cls(np.empty(size, key_dtype), None if weight_dtype is None else np.empty(size, weight_dtype))

    def part(self, begin: int, end: int) -> Columns:
        """Return some of them."""
        return Columns(self.keys[begin:end], None if self.weights is None else self.weights[begin:end])

    def named(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the columns that there are."""
        for name, column in self._asdict().items():
            if column is not None:
                yield name, column


def layout_of(num_vertices: int, vertex_dtype: np.dtype) -> Layout:
    """Return how edges among so many vertices are keys."""
    return choose_layout(num_vertices, vertex_dtype, min_spare_bits=_MIN_SPARE_BITS, index_bits=_INDEX_BITS)


class KeyFiles:
    """The edges of ranges of buckets.

    Parameters
    ----------
    bounds : first bucket of each range, and the number of all
    chunk_rows : rows of edges that are spread at once
    """

    def __init__(
        self, prefix: str, layout: Layout, bounds: np.ndarray, types: tuple[np.dtype, np.dtype | None],
        chunk_rows: int, new_ids: np.ndarray | None, options: SortOptions,
    ) -> None:  # fmt: skip
        self.layout, self.bounds, self.options, self.new_ids = layout, bounds, options, new_ids
        self.vertex_dtype, self.weight_dtype = types
        self.chunk_rows = chunk_rows
        names = ("keys",) if self.weight_dtype is None else ("keys", "weights")
        self.paths = [{name: f"{prefix}-{k}.{name}" for name in names} for k in range(bounds.size - 1)]
        self.starts: list[np.ndarray] = []  # of the buckets, in each chunk
        self._loaded = Columns.of(0, layout.key_dtype, self.weight_dtype)

    def spread(self, batches: Iterable[Batch], num_rows: int) -> None:
        """Write all edges, ``num_rows`` rows."""
        work, done = WorkReporter("spread", num_rows, "edges"), 0
        size = min(self.chunk_rows, num_rows)
        ends = np.empty((2, size), self.vertex_dtype)
        weights = None if self.weight_dtype is None else np.empty(size, self.weight_dtype)
        room = Columns.of(size * (1 + self.options.is_mirrored), self.layout.key_dtype, self.weight_dtype)
        filled = 0
        with ExitStack() as stack:
            files = [
                {name: stack.enter_context(open(path, "wb", buffering=0)) for name, path in paths.items()}
                for paths in self.paths
            ]
            writer = stack.enter_context(WriteBehind())
            for batch in batches:
                for piece in _pieces(batch, size):
                    if filled + piece.src.size > size:
                        self._flush(ends[:, :filled], _until(weights, filled), room, writer, files)
                        filled = 0
                    end = filled + piece.src.size
                    self._copy(piece, ends[:, filled:end], None if weights is None else weights[filled:end])
                    filled = end
                done += batch.src.size
                work.report(done)
            self._flush(ends[:, :filled], _until(weights, filled), room, writer, files)

    def _copy(self, piece: Batch, ends: np.ndarray, weights: np.ndarray | None) -> None:
        """Take some rows over."""
        src, dst = (piece.dst, piece.src) if self.options.is_reversed else (piece.src, piece.dst)
        run_threads(spreading.copy_ends, _num_threads(src.size), src, dst, self.new_ids, *ends)
        if weights is not None:
            weights[:] = piece.weights

    def _flush(
        self, ends: np.ndarray, weights: np.ndarray | None, room: Columns, writer: WriteBehind, files: list[Any]
    ) -> None:
        """Write a chunk of rows; the room is free when what was in it before is written."""
        writer.wait()
        starts = scatter_keys(self.layout, ends[0], ends[1], weights, room.keys, room.weights,
                              is_mirrored=self.options.is_mirrored,
                              drop_self_loops=not self.options.keeps_loops)  # fmt: skip
        self.starts.append(starts)
        writer.submit(self._write, room, starts[self.bounds], files)

    def _write(self, room: Columns, bounds: np.ndarray, files: list[Any]) -> None:
        for number, there in enumerate(files):
            for name, column in room.part(bounds[number], bounds[number + 1]).named():
                column.tofile(there[name])

    def size(self, number: int) -> int:
        """Return the number of edges of a range."""
        first, last = self.bounds[number : number + 2]
        return int(sum(starts[last] - starts[first] for starts in self.starts))

    def take(self, number: int, room: Columns) -> CSR:
        """Return the sorted rows of a range, whose files are gone then; they lie in the room."""
        first, last = self.bounds[number : number + 2]
        places = np.array([starts[first : last + 1] for starts in self.starts]).reshape(-1, last - first + 1)
        origins = np.append(0, np.cumsum(places[:, -1] - places[:, 0]))
        places += (origins[:-1] - places[:, 0])[:, np.newaxis]
        size = int(origins[-1])
        if self._loaded.keys.size < size:
            self._loaded = Columns.of(size, self.layout.key_dtype, self.weight_dtype)
        loaded, keys = self._loaded.part(0, size), room.part(0, size)
        for name, column in loaded.named():
            with open(self.paths[number][name], "rb", buffering=0) as file:
                read_array(file, column)
            os.unlink(self.paths[number][name])
        starts = np.append(0, np.cumsum(np.diff(places, axis=1).sum(axis=0)))
        threads = _num_threads(size)
        cuts = np.searchsorted(starts, size * np.arange(threads + 1) // threads)
        cuts[-1] = last - first
        run_threads(spreading.gather_buckets, threads, cuts, places, starts, *loaded, *keys)
        return sort_keys(self.layout, starts, keys.keys, keys.weights, deduplicate=self.options.deduplicate)


def _pieces(batch: Batch, size: int) -> Iterator[Batch]:
    """Yield the rows of a batch, at most so many at once."""
    if batch.src.size <= size:
        yield batch
        return
    for begin in range(0, batch.src.size, size):
        part = slice(begin, begin + size)
        yield Batch(batch.src[part], batch.dst[part], None if batch.weights is None else batch.weights[part])


def _until(column: np.ndarray | None, end: int) -> np.ndarray | None:
    return None if column is None else column[:end]


def read_array(file: Any, array: np.ndarray) -> None:
    """Fill an array from where a file is."""
    rest = array.view(np.uint8).data
    while rest:
        count = file.readinto(rest)
        if not count:
            raise OSError(f"{file.name}: is shorter than what was written")
        rest = rest[count:]


def _num_threads(size: int) -> int:
    """Return how many threads a piece of work of so many edges deserves."""
    return min(len(available_cores()), 1 + (size >> 16))  # starting one costs what 2**16 edges do
