# SPDX-License-Identifier: Apache-2.0
"""External sort: edges in any order become the rows of a graph in a file.

Edges are spread over ranges of vertices by their sources, a file for each range; the ranges have about as many edges
each, so many as memory has room for.  Then each range is read, sorted into rows as `Graph.from_edges` sorts a graph,
and its rows are written behind those of the range before it.  The same edges give the same rows, whatever the ranges.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.arrays import choose_edge_dtype
from shoal.backends.cpu.csr import build_csr
from shoal.backends.cpu.kernels import spreading
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.progress import WorkReporter
from shoal.sharding.budget import Budget, open_files_limit
from shoal.sharding.edge_survey import Batch, Groups

#: More have pieces of a batch too small to be worth a call that writes them.
_MAX_RANGES = 512


@dataclass(frozen=True)
class SortOptions:
    """How edges become rows: what `Graph.from_edges` is asked for, and by which end they are sorted."""

    is_mirrored: bool
    keeps_loops: bool
    deduplicate: bool
    is_reversed: bool = False


class RowBlock(NamedTuple):
    """The values of some consecutive rows: of indices, or of weights."""

    first: int  # row
    last: int  # one more than the last row
    begin: int  # place of the first value among those of all rows
    values: np.ndarray


@dataclass
class SortedEdges:
    """The rows of a graph: their offsets in memory, all else in files."""

    indptr: np.ndarray
    paths: dict[str, str]
    dtypes: dict[str, np.dtype]
    weights: dict[str, Any]  # what is known of them

    @property
    def num_edges(self) -> int:
        """Number of stored edges."""
        return int(self.indptr[-1])

    @property
    def has_weights(self) -> bool:
        """Whether edges have weights."""
        return "weights" in self.paths

    def blocks(self, name: str, vertices: np.ndarray, max_edges: int) -> Iterator[RowBlock]:
        """Yield the rows between the first and the last of some ascending vertices, about so many edges at a time."""
        if not vertices.size:
            return
        first, last = int(vertices[0]), int(vertices[-1]) + 1
        dtype = self.dtypes[name]
        with open(self.paths[name], "rb", buffering=0) as file:
            while first < last:
                begin = int(self.indptr[first])
                stop = int(np.searchsorted(self.indptr, begin + max_edges, side="right")) - 1
                stop = min(max(stop, first + 1), last)
                count = int(self.indptr[stop]) - begin
                file.seek(begin * dtype.itemsize)
                yield RowBlock(first, stop, begin, np.fromfile(file, dtype, count))
                first = stop

    def remove(self) -> None:
        """Remove the files."""
        for path in self.paths.values():
            os.unlink(path)


def sort_edges(
    batches: Iterable[Batch], numbering: Numbering, groups: Groups, weight_dtype: np.dtype | None, num_rows: int,
    folder: str, options: SortOptions, budget: Budget,
) -> SortedEdges:  # fmt: skip
    """Sort edges, ``num_rows`` in all, into rows; ``groups`` says how many there are, copies of edges too."""
    vertex_dtype = numbering.dtype
    weight_bytes = 0 if weight_dtype is None else weight_dtype.itemsize
    per_edge = 3 * vertex_dtype.itemsize + 2 * weight_bytes  # both ends, and the sorted ones; weights before and after
    offsets = 2 * 8 * numbering.num_vertices  # those of all rows, and those of the range that is sorted
    limit = budget.edges(per_edge, beside=offsets)
    ranges = _choose_ranges(groups, numbering, limit, per_edge, budget)
    prefix = os.path.join(folder, "in" if options.is_reversed else "out")
    parts = _spread(batches, ranges, numbering, weight_dtype, num_rows, prefix, options)
    return _sort(parts, ranges, numbering, weight_dtype, prefix, options)


class Numbering(NamedTuple):
    """The vertices of ids: the same, or those that are there by rank."""

    num_ids: int
    num_vertices: int
    new_ids: np.ndarray | None

    @property
    def dtype(self) -> np.dtype:
        """Type of the vertices' ids."""
        return np.dtype(np.int32 if self.num_vertices < 2**31 else np.int64)

    def first_at(self, ids: np.ndarray) -> np.ndarray:
        """Return the first vertex whose id is not below each of some."""
        if self.new_ids is None:
            return np.minimum(ids, self.num_vertices)
        before = self.new_ids[np.minimum(ids, self.num_ids) - 1] + 1  # ranks that have begun by the id before
        return np.where(ids == 0, 0, before)


class _Ranges(NamedTuple):
    """The range of each group of 2**shift ids, the first vertex of each and their number, and the edges of each."""

    table: np.ndarray
    shift: int
    bounds: np.ndarray
    sizes: np.ndarray


def _choose_ranges(groups: Groups, numbering: Numbering, limit: int, per_edge: int, budget: Budget) -> _Ranges:
    """Cut the ids into ranges of at most ``limit`` edges."""
    counts = groups.counts[: -(-numbering.num_ids >> groups.shift)]
    ends = np.cumsum(counts)
    bounds = [0]
    while bounds[-1] < counts.size:
        before = int(ends[bounds[-1] - 1]) if bounds[-1] else 0
        bounds.append(max(bounds[-1] + 1, int(np.searchsorted(ends, before + limit, side="right"))))
    sizes = np.diff(np.append(0, ends)[bounds])
    most = min(_MAX_RANGES, open_files_limit() // 3)
    largest, total = int(sizes.max(initial=0)), int(sizes.sum())
    if largest > limit or sizes.size > most:
        needed = max(largest, -(-total // most)) * per_edge
        budget.check(int(1.2 * needed), f"sorting {total} edges, {largest} of them of few vertices,")
    table = np.repeat(np.arange(sizes.size, dtype=np.uint16), np.diff(bounds))
    return _Ranges(table, groups.shift, numbering.first_at(np.array(bounds) << groups.shift), sizes)


def _spread(
    batches: Iterable[Batch], ranges: _Ranges, numbering: Numbering, weight_dtype: np.dtype | None, num_rows: int,
    prefix: str, options: SortOptions,
) -> list[dict[str, str]]:  # fmt: skip
    """Write the edges of each range into files of its own, a column each; return their names."""
    columns = {"src": numbering.dtype, "dst": numbering.dtype}
    columns |= {} if weight_dtype is None else {"weights": weight_dtype}
    paths = [{name: f"{prefix}-{k}.{name}" for name in columns} for k in range(len(ranges.sizes))]
    work, done = WorkReporter("spread", num_rows, "edges"), 0
    with ExitStack() as stack:
        files = [
            {name: stack.enter_context(open(path, "wb", buffering=0)) for name, path in names.items()}
            for names in paths
        ]
        room = {name: np.empty(0, dtype) for name, dtype in columns.items()}  # kept: new pages cost more than spreading
        for batch in batches:
            bounds, spread = _spread_batch(batch, ranges, numbering.new_ids, room, options)
            for number, there in enumerate(files):
                for name, file in there.items():
                    spread[name][bounds[number] : bounds[number + 1]].tofile(file)
            done += batch.src.size
            work.report(done)
    return paths


def _spread_batch(
    batch: Batch, ranges: _Ranges, new_ids: np.ndarray | None, room: dict[str, np.ndarray], options: SortOptions
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Put the edges of a batch into a room by ranges, and return where each range begins."""
    ends = (batch.dst, batch.src) if options.is_reversed else (batch.src, batch.dst)
    how = (options.is_mirrored, options.keeps_loops, ranges.shift, ranges.table)
    counts = np.zeros((len(available_cores()), len(ranges.sizes)), np.int64)
    run_threads(spreading.count_ranges, len(counts), *ends, *how, counts)
    bounds = np.append(0, np.cumsum(counts.sum(axis=0)))
    cursors = np.cumsum(counts, axis=0) - counts + bounds[:-1]
    if bounds[-1] > room["src"].size:
        room |= {name: np.empty(bounds[-1], array.dtype) for name, array in room.items()}
    weights = None if batch.weights is None else batch.weights.astype(room["weights"].dtype, copy=False)
    run_threads(spreading.spread, len(counts), *ends, weights, new_ids, *how, cursors, room["src"], room["dst"],
                room.get("weights"))  # fmt: skip
    return bounds, room


def _sort(
    parts: list[dict[str, str]], ranges: _Ranges, numbering: Numbering, weight_dtype: np.dtype | None, prefix: str,
    options: SortOptions,
) -> SortedEdges:  # fmt: skip
    """Sort range after range and write the rows one behind the other."""
    num_vertices, vertex_dtype = numbering.num_vertices, numbering.dtype
    dtypes = {"indices": vertex_dtype} | ({} if weight_dtype is None else {"weights": weight_dtype})
    paths = {name: f"{prefix}.{name}" for name in dtypes}
    indptr = np.zeros(num_vertices + 1, np.int64)
    facts = WeightFacts()
    work = WorkReporter("sorted", int(ranges.sizes.sum()), "edges")
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(path, "wb", buffering=0)) for name, path in paths.items()}
        for number, names in enumerate(parts):
            first, last = (int(bound) for bound in ranges.bounds[number : number + 2])
            src, dst = (np.fromfile(names[name], vertex_dtype) for name in ("src", "dst"))
            weights = None if weight_dtype is None else np.fromfile(names["weights"], weight_dtype)
            for path in names.values():
                os.unlink(path)
            src -= first
            csr = build_csr(src, dst, weights, num_vertices, vertex_dtype, _wide_if_many,
                            deduplicate=options.deduplicate)  # fmt: skip
            del src, dst, weights
            indptr[first + 1 : last + 1] = np.diff(csr.indptr[: last - first + 1])
            csr.indices.tofile(files["indices"])
            if csr.weights is not None:
                facts.add(csr.weights)
                csr.weights.tofile(files["weights"])
            del csr
            work.report(int(ranges.sizes[: number + 1].sum()))
    np.cumsum(indptr, out=indptr)
    edge_dtype = choose_edge_dtype(None, vertex_dtype, int(indptr[-1]))
    return SortedEdges(indptr.astype(edge_dtype, copy=False), paths, dtypes, facts.to_dict())


def _wide_if_many(num_edges: int) -> np.dtype:
    return np.dtype(np.int32 if num_edges < 2**31 else np.int64)


class WeightFacts:
    """What algorithms ask of all weights, gathered piece by piece."""

    def __init__(self) -> None:
        self.least: list[Any] = []
        self.most: list[Any] = []
        self.total: float | int = 0
        self.num_zero = 0

    def add(self, weights: np.ndarray) -> None:
        """Look at some more."""
        if weights.size:
            self.least.append(weights.min().item())
            self.most.append(weights.max().item())
            wide = np.int64 if weights.dtype.kind == "i" else np.float64
            self.total += weights.sum(dtype=wide).item()
            self.num_zero += int(np.count_nonzero(weights == 0))

    def to_dict(self) -> dict[str, Any]:
        """Return them by name."""
        return {
            "min_weight": min(self.least, default=None),
            "max_weight": max(self.most, default=None),
            "sum_of_weights": self.total,
            "num_zero_weights": self.num_zero,
        }
