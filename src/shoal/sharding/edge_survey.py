# SPDX-License-Identifier: Apache-2.0
"""Survey: one look at all edges: how many there are and from where to where, which ids, and how wide weights are.

Edges are counted by groups of 2**shift ids, few enough that the counters stay in the second-level cache; when an id
comes that has no group yet, two groups become one.  Text is parsed once: a copy of its rows as numbers is kept on disk,
as reading that again costs far less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.arrays import as_weights, largest_id
from shoal.backends.cpu.kernels import spreading
from shoal.backends.cpu.kernels.vertex_ids import mark_present
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.errors import FileFormatError, GraphError
from shoal.io.edge_stream import EdgeStream
from shoal.progress import WorkReporter
from shoal.sharding.budget import Budget
from shoal.sharding.team import Team

_GROUP_BITS = 16
#: What the flags of ids have to begin with, where nobody says how many there are.
_FIRST_IDS = 2**16


class Batch(NamedTuple):
    """Some edges."""

    src: np.ndarray
    dst: np.ndarray
    weights: np.ndarray | None


class Spool:
    """Batches in a file, each as narrow as it was."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._types: list[tuple[int, list[np.dtype]]] = []

    def add(self, batch: Batch) -> None:
        """Write a batch."""
        columns = [column for column in batch if column is not None]
        self._types.append((batch.src.size, [column.dtype for column in columns]))
        with open(self.path, "ab", buffering=0) as file:
            for column in columns:
                column.tofile(file)

    def batches(self) -> Iterator[Batch]:
        """Read all of them again."""
        if not self._types:
            return
        with open(self.path, "rb", buffering=0) as file:
            for count, types in self._types:
                columns = [np.fromfile(file, dtype, count) for dtype in types]
                yield Batch(columns[0], columns[1], columns[2] if len(columns) > 2 else None)


class Groups:
    """Edges counted by groups of ids."""

    def __init__(self, *, is_mirrored: bool, keeps_loops: bool) -> None:
        self.options = (is_mirrored, keeps_loops)
        self.shift = 0
        self._counts = np.zeros((len(available_cores()), 1 << _GROUP_BITS), np.int64)

    @property
    def counts(self) -> np.ndarray:
        """Edges of each group."""
        return self._counts.sum(axis=0)

    def add(self, src: np.ndarray, dst: np.ndarray, largest: int) -> None:
        """Count some edges, whose largest id is known."""
        while largest >= 1 << (self.shift + _GROUP_BITS):
            self._widen()
        run_threads(spreading.count_groups, len(self._counts), src, dst, *self.options, self.shift, self._counts)

    def _widen(self) -> None:
        """Make one group of two."""
        self.shift += 1
        pairs = self._counts.reshape(len(self._counts), -1, 2).sum(axis=2)
        self._counts = np.concatenate([pairs, np.zeros_like(pairs)], axis=1)

    def of_all(self, team: Team) -> None:
        """Add what the other ranks have counted."""
        widest = max(int(shift) for shift in team.gather_text(str(self.shift)))
        while self.shift < widest:
            self._widen()
        self._counts = np.array(team.gather(self.counts))


@dataclass
class Survey:
    """What all edges are together.

    Parameters
    ----------
    num_ids : one more than the largest id, or the declared number of vertices
    is_present : flags of the ids that there are; None where the number of vertices is declared
    out, into : edges to store by their sources, and where asked for by their destinations
    """

    num_rows: int
    num_ids: int
    is_present: np.ndarray | None
    weight_dtype: np.dtype | None
    out: Groups
    into: Groups | None

    def of_all(self, team: Team) -> None:
        """Add what the other ranks have seen; of graphs whose number of vertices is declared."""
        self.num_rows = sum(int(count) for count in team.gather_text(str(self.num_rows)))
        for groups in (self.out, self.into):
            if groups is not None:
                groups.of_all(team)


class Surveyor:
    """Reads streams of edges; afterwards `batches` gives the edges again."""

    def __init__(
        self, streams: Sequence[EdgeStream], num_vertices: int | None, folder: str, budget: Budget, team: Team
    ) -> None:
        self.team = team
        self.streams, self.num_vertices, self.budget = streams, num_vertices, budget
        self.spools = {
            number: Spool(os.path.join(folder, f"rows-{number}.spool"))
            for number, stream in enumerate(streams)
            if not stream.is_quick
        }
        self.is_present = np.zeros(_FIRST_IDS if num_vertices is None else 0, np.uint8)

    def survey(self, *, is_mirrored: bool, keeps_loops: bool, has_reverse: bool) -> Survey:
        """Look at all edges."""
        out, into = (Groups(is_mirrored=is_mirrored, keeps_loops=keeps_loops) for _ in range(2))
        num_rows, highest = 0, -1
        types: set[np.dtype | None] = set()
        work = WorkReporter("counted", None, "edges")
        for number, stream in enumerate(self.streams):
            for batch in self.team.watched(_read(stream, team=self.team)):
                largest = self._check(stream, batch)
                highest = max(highest, largest)
                out.add(batch.src, batch.dst, largest)
                if has_reverse:
                    into.add(batch.dst, batch.src, largest)
                if number in self.spools:
                    self.spools[number].add(batch)
                types.add(None if batch.weights is None else batch.weights.dtype)
                num_rows += batch.src.size
                work.report(num_rows)
        is_declared = self.num_vertices is not None
        num_ids = self.num_vertices if self.num_vertices is not None else highest + 1
        present = None if is_declared else self.is_present[:num_ids]
        return Survey(num_rows, num_ids, present, self._weight_dtype(types), out, into if has_reverse else None)

    def batches(self) -> Iterator[Batch]:
        """Give all edges again."""
        for number, stream in enumerate(self.streams):
            yield from self.spools[number].batches() if number in self.spools else self.team.watched(_read(stream))

    def close(self) -> None:
        """Remove the copies."""
        for spool in self.spools.values():
            with suppress(FileNotFoundError):  # of a file without rows there is none
                os.unlink(spool.path)

    def _check(self, stream: EdgeStream, batch: Batch) -> int:
        """Return the largest id of a batch; where ids are not declared, keep which there are."""
        largest = max(largest_id("src", batch.src), largest_id("dst", batch.dst))
        if self.num_vertices is None:
            self._reserve(largest + 1)
            for ids in (batch.src, batch.dst):
                run_threads(mark_present, len(available_cores()), ids, self.is_present)
        elif largest >= self.num_vertices:
            raise FileFormatError(f"{stream.path}: has the vertex id {largest}; there are {self.num_vertices} vertices")
        return largest

    def _reserve(self, num_ids: int) -> None:
        """Make the flags longer, by as much as fits; pages that nobody touches cost nothing."""
        if num_ids > self.is_present.size:
            self.budget.check(num_ids, f"a flag for each of {num_ids} ids")
            longer = np.zeros(max(num_ids, min(2 * self.is_present.size, self.budget.left)), np.uint8)
            longer[: self.is_present.size] = self.is_present
            self.is_present = longer

    def _weight_dtype(self, types: set[np.dtype | None]) -> np.dtype | None:
        """Return the type that holds the weights of all batches exactly."""
        kinds = types - {None}
        if kinds and None in types:
            paths = ", ".join(stream.path for stream in self.streams)
            raise FileFormatError(f"some of {paths} have weights and others have none")
        return next(iter(kinds), None) if len(kinds) <= 1 else np.dtype(np.float64)


def _read(stream: EdgeStream, team: Team | None = None) -> Iterator[Batch]:
    """Yield the batches of a stream, or a rank's share of them, with weights of the types that a graph has."""
    for rows in stream.batches() if team is None else stream.share(team.rank, team.size):
        try:
            weights = None if rows.weights is None else as_weights(rows.weights, rows.src.size)
        except GraphError as error:
            raise FileFormatError(f"{stream.path}: {error}") from error
        yield Batch(rows.src, rows.dst, weights)
