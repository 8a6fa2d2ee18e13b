# SPDX-License-Identifier: Apache-2.0
"""External sort: edges in any order become the rows of a graph in files.

Edges are spread over ranges of vertices by their sources (`key_files`); the ranges have about as many edges each.  Then
each range is read and sorted into rows as `Graph.from_edges` sorts a graph, and while its rows are written, a file for
each range, the next one is read.  The same edges give the same rows, whatever the ranges.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shoal.arrays import choose_edge_dtype
from shoal.backends.cpu.csr import CSR, Layout
from shoal.io.write_behind import WriteBehind
from shoal.progress import WorkReporter
from shoal.sharding.budget import Budget, open_files_limit
from shoal.sharding.edge_survey import Batch, Groups
from shoal.sharding.key_files import Columns, KeyFiles, SortOptions, layout_of, read_array
from shoal.sharding.team import Team

#: More have pieces of a chunk too small to be worth a call that writes them.
_MAX_RANGES = 512
#: Edges of a range, where memory has room for more: the next one is read while the last one is written, and the fewer
#: each has, the sooner that begins; with fewer still the threads start too often.
_RANGE_EDGES = 2**24
#: Rows that are spread at once.  As many buckets as a graph has get pieces of some hundred keys each, and the memory is
#: half of what 2 GiB leave beside the arrays over vertices.
_CHUNK_ROWS = 2**24


class RowBlock(NamedTuple):
    """The values of some consecutive rows: of indices, or of weights."""

    first: int  # row
    last: int  # one more than the last row
    begin: int  # place of the first value among those of all rows
    values: np.ndarray


class RowFile(NamedTuple):
    """The files of some consecutive rows."""

    first: int  # row
    last: int  # one more than the last row
    paths: dict[str, str]


@dataclass
class SortedEdges:
    """The rows of a graph: their offsets in memory, all else in files."""

    indptr: np.ndarray
    files: list[RowFile]
    dtypes: dict[str, np.dtype]
    weights: dict[str, Any]  # what is known of them

    @property
    def num_edges(self) -> int:
        """Number of stored edges."""
        return int(self.indptr[-1])

    def blocks(self, name: str, vertices: np.ndarray, max_edges: int) -> Iterator[RowBlock]:
        """Yield the blocks, of about so many edges, that have rows of some ascending vertices, none of them empty.

        The values of a block are overwritten by those of the next but one.
        """
        rooms = [np.empty(0, self.dtypes[name])] * 2
        for there in self.files:
            here = vertices[slice(*np.searchsorted(vertices, [there.first, there.last]))]
            if not here.size:
                continue
            with open(there.paths[name], "rb", buffering=0) as file:
                first, last = int(here[0]), int(here[-1]) + 1
                while first < last:
                    begin, stop = int(self.indptr[first]), self._stop(first, last, max_edges)
                    count = int(self.indptr[stop]) - begin
                    if rooms[0].size < count:
                        rooms[0] = np.empty(max(count, min(max_edges, self.num_edges)), self.dtypes[name])
                    file.seek((begin - int(self.indptr[there.first])) * rooms[0].itemsize)
                    values = rooms[0][:count]
                    read_array(file, values)
                    yield RowBlock(first, stop, begin, values)
                    rooms.reverse()
                    place = int(np.searchsorted(here, stop))
                    first = int(here[place]) if place < here.size else last

    def _stop(self, first: int, last: int, max_edges: int) -> int:
        """Return the end of the rows from ``first`` on that have about so many edges: one row at least."""
        stop = int(np.searchsorted(self.indptr, self.indptr[first] + max_edges, side="right")) - 1
        return min(max(stop, first + 1), last)

    def remove(self, before: int | None = None) -> None:
        """Remove the files, or those of the rows before one: what is gone makes room for what is written."""
        gone = [there for there in self.files if before is None or there.last <= before]
        self.files = self.files[len(gone) :]
        for there in gone:
            for path in there.paths.values():
                os.unlink(path)


def sort_edges(
    batches: Iterable[Batch], numbering: Numbering, groups: Groups, weight_dtype: np.dtype | None, num_rows: int,
    folder: str, options: SortOptions, budget: Budget, team: Team,
) -> SortedEdges:  # fmt: skip
    """Sort edges, ``num_rows`` in all, into rows; ``groups`` says how many there are, copies of edges too.

    Each rank of a team has all edges and sorts those of some ranges; what is returned has the rows of all.
    """
    layout = layout_of(numbering.num_vertices, numbering.dtype)
    prefix = os.path.join(folder, f"{'in' if options.is_reversed else 'out'}-{team.rank}")
    plan = _Plan.of(layout, numbering, weight_dtype, num_rows, options, budget)
    bounds = _choose_bounds(groups, numbering, layout, plan, budget, team.size)
    first, last = (rank * (bounds.size - 1) // team.size for rank in (team.rank, team.rank + 1))
    bounds = bounds[first : last + 1]
    types = (numbering.dtype, weight_dtype)
    files = KeyFiles(prefix, layout, bounds, types, plan.chunk_rows, numbering.new_ids, options)
    team.do(lambda: files.spread(batches, num_rows))
    mine = team.do(lambda: _sort(files, numbering, plan, budget, prefix, team))
    return _join(team, mine, files, numbering)


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


class _Plan(NamedTuple):
    """How many rows are spread at once, how many edges are sorted at once, and bytes: of each of these, and beside."""

    chunk_rows: int
    limit: int
    bytes_per_edge: int
    beside: int

    @classmethod
    def of(
        cls, layout: Layout, numbering: Numbering, weight_dtype: np.dtype | None, num_rows: int, options: SortOptions,
        budget: Budget,
    ) -> _Plan:  # fmt: skip
        """Divide the memory."""
        weight = 0 if weight_dtype is None else weight_dtype.itemsize
        key = layout.key_dtype.itemsize + weight
        per_row = 2 * numbering.dtype.itemsize + weight + (1 + options.is_mirrored) * key
        chunk_rows = min(_CHUNK_ROWS, budget.edges(per_row))
        starts = 8 * (layout.num_buckets + 1) * (2 + num_rows // chunk_rows)
        offsets = 2 * 8 * numbering.num_vertices  # those of all rows, and those of the range that is sorted
        chunk_rows = min(chunk_rows, budget.edges(per_row, beside=starts))
        # As they come, sorted, while those before are written; and some as narrow as an end.
        per_edge = 3 * key + numbering.dtype.itemsize
        return cls(chunk_rows, budget.edges(per_edge, beside=starts + offsets), per_edge, starts + offsets)


def _choose_bounds(
    groups: Groups, numbering: Numbering, layout: Layout, plan: _Plan, budget: Budget, least: int
) -> np.ndarray:
    """Cut the buckets into ``least`` ranges or more, of about as many edges; return the first of each and the last."""
    counts = groups.counts[: -(-numbering.num_ids >> groups.shift)]
    ends = np.append(0, np.cumsum(counts))
    most = min(_MAX_RANGES, open_files_limit() // 2)
    total = int(ends[-1])
    fitting = plan.limit - plan.limit // 8  # ranges end where buckets do
    wanted = min(fitting, max(_RANGE_EDGES, -(-total // most)), 1 + total // least)
    if -(-total // plan.limit) > most:
        budget.check(int(1.2 * plan.bytes_per_edge * -(-total // most)), f"sorting {total} edges")
    places = np.searchsorted(ends, np.arange(wanted, total, wanted), side="right") - 1  # groups where ranges begin
    vertices = numbering.first_at(places << groups.shift)
    buckets = np.unique(vertices >> layout.bucket_bits)
    return np.concatenate([[0], buckets[buckets > 0], [layout.num_buckets]])


class _Rows(NamedTuple):
    """What one rank has sorted: the lengths of its rows, one behind the other, their files, and the weights."""

    lengths: np.ndarray
    files: list[RowFile]
    weights: WeightFacts


def _sort(
    files: KeyFiles, numbering: Numbering, plan: _Plan, budget: Budget, prefix: str, team: Team
) -> _Rows:  # fmt: skip
    """Sort range after range and write the rows of each."""
    layout = files.layout
    sizes = [files.size(number) for number in range(len(files.paths))]
    most = max(sizes, default=0)
    if most > plan.limit:
        budget.check(plan.beside + int(1.2 * plan.bytes_per_edge * most),
                     f"sorting {sum(sizes)} edges, {most} of them of few vertices,")  # fmt: skip
    begin, *ends = (min(int(bucket) << layout.bucket_bits, numbering.num_vertices) for bucket in files.bounds)
    found = _Rows(np.zeros(ends[-1] - begin if ends else 0, np.int64), [], WeightFacts())
    work, done = WorkReporter("sorted", sum(sizes), "edges"), 0
    rooms = [Columns.of(most, layout.key_dtype, files.weight_dtype) for _ in range(2)]
    first = begin
    with WriteBehind() as writer:
        for number, last in enumerate(team.watched(ends)):
            csr = files.take(number, rooms[number % 2])
            count = last - first
            np.subtract(csr.indptr[1 : count + 1], csr.indptr[:count], out=found.lengths[first - begin : last - begin])
            found.weights.add(csr.weights, csr.indptr[:: 1 << layout.bucket_bits])
            paths = {name: f"{prefix}-rows-{number}.{name}" for name in _row_dtypes(files)}
            found.files.append(RowFile(first, last, paths))
            writer.submit(_write_rows, paths, csr, numbering.dtype)
            done += sizes[number]
            work.report(done)
            first = last
    return found


def _row_dtypes(files: KeyFiles) -> dict[str, np.dtype]:
    """Return the types of what rows have, by name."""
    return {"indices": files.vertex_dtype} | ({} if files.weight_dtype is None else {"weights": files.weight_dtype})


def _join(team: Team, mine: _Rows, files: KeyFiles, numbering: Numbering) -> SortedEdges:
    """Return the rows of all ranks, one rank's behind the other's."""
    indptr = np.zeros(numbering.num_vertices + 1, np.int64)
    np.cumsum(np.concatenate(team.gather(mine.lengths)), out=indptr[1:])
    told = [json.loads(text) for text in team.gather_text(json.dumps([mine.files, mine.weights.ranges]))]
    rows = [RowFile(*each) for of_rank, _ in told for each in of_rank]
    facts = WeightFacts([each for _, of_rank in told for each in of_rank]).to_dict(files.weight_dtype)
    edge_dtype = choose_edge_dtype(None, numbering.dtype, int(indptr[-1]))
    return SortedEdges(indptr.astype(edge_dtype, copy=False), rows, _row_dtypes(files), facts)


def _write_rows(paths: dict[str, str], csr: CSR, dtype: np.dtype) -> None:
    csr.indices.astype(dtype, copy=False).tofile(paths["indices"])
    if csr.weights is not None:
        csr.weights.tofile(paths["weights"])


class WeightFacts:
    """What algorithms ask of all weights, gathered range by range: least, most, number of zeros, and the sum.

    Sums of buckets are the same whatever the ranges, and added as fractions: the ranges do not show in the sum of all.
    """

    def __init__(self, ranges: list[list[Any]] | None = None) -> None:
        self.ranges = [] if ranges is None else ranges

    def add(self, weights: np.ndarray | None, starts: np.ndarray) -> None:
        """Look at those of some buckets, which begin and end at ``starts``."""
        if weights is not None and weights.size:
            wide = np.int64 if weights.dtype.kind == "i" else np.float64
            sums = np.add.reduceat(weights, starts[:-1][starts[1:] > starts[:-1]], dtype=wide)
            total = sum(map(Fraction, sums.tolist())).as_integer_ratio() if np.isfinite(sums).all() else None
            num_zero = int(np.count_nonzero(weights == 0))
            self.ranges.append([weights.min().item(), weights.max().item(), num_zero, total])

    def to_dict(self, dtype: np.dtype | None) -> dict[str, Any]:
        """Return them by name, of weights of a type."""
        totals = [each[3] for each in self.ranges]
        total = float("inf") if None in totals else sum(Fraction(*each) for each in totals)
        return {
            "min_weight": min((each[0] for each in self.ranges), default=None),
            "max_weight": max((each[1] for each in self.ranges), default=None),
            "num_zero_weights": sum(each[2] for each in self.ranges),
            "sum_of_weights": int(total) if dtype is None or dtype.kind == "i" else _as_float(total),
        }


def _as_float(total: Any) -> float:
    try:
        return float(total)
    except OverflowError:
        return float("inf")
