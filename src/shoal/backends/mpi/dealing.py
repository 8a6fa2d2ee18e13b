# SPDX-License-Identifier: Apache-2.0
"""Dealing between ranks: the courier's part when devices weigh their frontiers and give vertices away.

The mail for thieves has a place for every vertex, the same one on all ranks, so a rank sends what its devices give to
those of another one from where they have packed it to the same place there.  Two collectives go before: the edges of
all frontiers, from which every device finds out for itself who gives what; and, if ranks are to deal with one another
at all, the cuts.  A rank that has the whole graph reads the edges of stolen vertices there.  Where ranks have only
their parts the rows come along: packed for each rank that receives them, with their lengths, and laid one behind the
other in the order of their places in the mail, which is how a push finds them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.backends.cpu.border import asks_edge_ids, edge_ids_for, row_types
from shoal.backends.cpu.kernels.dealing import CUTS, LEAST_SAVED, LOAD, PRICE, PRICE_UNIT, SLACK, START
from shoal.backends.cpu.kernels.ordered import ENTRIES
from shoal.backends.cpu.kernels.sent_rows import copy_rows_of, measure_rows, place_rows
from shoal.backends.loops import control as slot
from shoal.backends.mpi.pace import Pace

if TYPE_CHECKING:
    from shoal.backends.cpu.phase_run import PhaseRun
    from shoal.backends.mpi.session import RankSession, SharedByRanks

#: What it takes to bring a byte to another rank of the machine: to pack it and to copy it, on two busy cores.
SECONDS_PER_BYTE = 0.4e-9
#: What a stolen edge costs beside that, in visits of an owner: a thief's copies know less than their owners, so it
#: finds more, which goes back and is combined.  Two devices of one process whose edges are divided 99 to 1 gain a tenth
#: where half of them are stolen (a search on an R-MAT graph of scale 18), and not a half: so much is lost.
FOUND_ELSEWHERE = 0.8
#: Edges of which the last device must be rid for ranks to deal with one another, beside what it takes to bring them: at
#: 2 ns an edge an eighth of a millisecond, which is what the messages take, however short they are.
LEAST_SAVED_EDGES = 1 << 16
#: So much of the edges of all frontiers, at most, may what comes to a device be more than its share: chunks are given
#: away whole, and a hub's is large.  There is room for as much.
SLACK_PART = 16


class Parcel(NamedTuple):
    """What a device gives to those of a rank: its place in the mail, and the edges that come along."""

    victim: int
    rank: int
    first: int
    last: int
    edges: int


class Dealing:
    """What a rank's devices and those of others give one another in a phase."""

    def __init__(self, session: RankSession, shared: SharedByRanks, runs: Sequence[PhaseRun]) -> None:
        assert shared.deals is not None
        self.fleet, self.shared, self.parts = session.fleet, shared, session.parts
        self.workspace, self.pace = session.workspaces[0], Pace(session, runs)
        source = runs[0].loaded.source
        count = session.schedule.num_devices
        self.deals = shared.deals.reshape(count, -1)
        self.rank_of = np.array(session.rank_of)
        self.counts = np.bincount(self.rank_of, minlength=self.fleet.size).tolist()
        self.ends = np.cumsum([0, *self.counts])  # the devices of each rank
        self.entries = ENTRIES if source.flow.ordered is not None else 1
        self.mail = [shared.mail_ids, *(shared.mail[number] for number in _read_at_sources(source))]
        self.columns = row_columns(session, source)
        self.edges = {shard.part.device: _edges_of(shard, source) for shard in session.shards if shard.part is not None}
        self.deals[:, PRICE], self.deals[:, LEAST_SAVED] = self._price(session), LEAST_SAVED_EDGES
        if shared.rows_come:
            shape = [((len(shared.mail_ids),), shared.sent[0].dtype)]
            (self.lengths,) = self.workspace.reserve("lengths of rows", list(shape))
            for part in self.parts:
                self.deals[part.device, SLACK] = part.num_edges // SLACK_PART
            self.fleet.do(self._compile)  # before anybody waits for it

    def _price(self, session: RankSession) -> int:
        """Return what it takes to bring an edge to another rank, in parts of what visiting it takes a device."""
        graph = session.shards[0].graph
        num_bytes = sum(array.nbytes / max(len(array), 1) for array in self.mail)
        if self.shared.rows_come:
            num_bytes += self.shared.sent[0].itemsize
        num_bytes *= graph.num_vertices / max(graph.num_edges, 1)
        if self.shared.rows_come:
            num_bytes += sum(self.shared.sent[column].itemsize for column in self.columns)
        brought = num_bytes * SECONDS_PER_BYTE / self.pace.seconds_per_edge()
        return round((brought + FOUND_ELSEWHERE) * PRICE_UNIT)

    def _compile(self) -> None:
        """Call what is compiled with nothing to do."""
        nothing = self.shared.mail_ids[:0]
        for arrays in self.edges.values():
            measure_rows(nothing, arrays[0], self.lengths[:0])
            for column in self.columns:
                copy_rows_of(nothing, arrays[0], arrays[column], self.shared.sent[column][:0])
            place_rows(self.lengths[:0], 0, np.empty(1, self.lengths.dtype))

    def tell(self, what: int) -> None:
        """Exchange what a meeting is for."""
        if what == slot.TELLS_LOADS:
            self._share_loads()
        else:
            self._carry()

    def _share_loads(self) -> None:
        """Let all ranks know the edges of all frontiers; of others' cuts, which are of an earlier one, forget."""
        loads = self.deals[:, LOAD].copy()
        self.fleet.share_in_place(loads, self.counts)
        self.deals[:, LOAD] = loads
        self.deals[self.rank_of != self.fleet.rank, CUTS : CUTS + len(self.deals) + 1] = 0

    def _carry(self) -> None:
        """Send what this rank's devices give away, and receive what is for them."""
        given = self._find_parcels([part.device for part in self.parts])
        table = np.zeros((len(self.deals), len(self.deals) + 1 + self.fleet.size), np.int64)
        cuts, edges = table[:, : len(self.deals) + 1], table[:, len(self.deals) + 1 :]
        cuts[:] = self.deals[:, CUTS : CUTS + len(self.deals) + 1]
        if self.shared.rows_come:
            given = [self._measured(parcel) for parcel in given]
            for parcel in given:
                edges[parcel.victim, parcel.rank] = parcel.edges
        self.fleet.share_in_place(table, self.counts)
        self.deals[:, CUTS : CUTS + len(self.deals) + 1] = cuts
        coming = [
            parcel._replace(edges=int(edges[parcel.victim, parcel.rank]))
            for parcel in self._find_parcels(range(len(self.deals)))
            if parcel.rank == self.fleet.rank
        ]
        requests = self._receive(coming) + self._send([parcel for parcel in given if parcel.rank != self.fleet.rank])
        self.fleet.wait(requests)
        if self.shared.rows_come:
            self._place(coming)

    def _find_parcels(self, victims: Sequence[int]) -> list[Parcel]:
        """Return what devices give away, by the cuts; not within a rank that reads the edges where they are."""
        found = []
        for victim in victims:
            start, cuts = self.deals[victim, START], self.deals[victim, CUTS:][self.ends]
            for rank, (first, last) in enumerate(itertools.pairwise(cuts)):
                if first < last and (self.shared.rows_come or rank != self.rank_of[victim]):
                    place = int(start + first * self.entries), int(start + last * self.entries)
                    found.append(Parcel(victim, rank, *place, 0))
        return found

    def _measured(self, parcel: Parcel) -> Parcel:
        """Return a parcel of this rank's with the edges that come along; their number by vertex is noted."""
        span = slice(parcel.first, parcel.last)
        indptr = self.edges[parcel.victim][0]
        return parcel._replace(edges=measure_rows(self.shared.mail_ids[span], indptr, self.lengths[span]))

    def _send(self, given: Sequence[Parcel]) -> list[Any]:
        """Begin to send vertices and values from where they lie, the lengths of rows, and their elements, packed."""
        requests = []
        total = sum(parcel.edges for parcel in given)
        shapes: list[tuple[tuple[int, ...], np.dtype]] = [
            ((total,), self.shared.sent[column].dtype) for column in self.columns if self.shared.rows_come
        ]
        packed = self.workspace.reserve("packed rows", shapes)
        begin = 0
        for parcel in given:
            arrays = [array[parcel.first : parcel.last] for array in self.mail]
            if self.shared.rows_come:
                rows = [array[begin : begin + parcel.edges] for array in packed]
                begin += parcel.edges
                self._copy_rows(parcel, rows)
                arrays += [self.lengths[parcel.first : parcel.last], *rows]
            requests += [self.fleet.send(array, parcel.rank) for array in arrays if len(array)]
        return requests

    def _copy_rows(self, parcel: Parcel, targets: Sequence[np.ndarray]) -> None:
        """Copy the rows of a parcel of this rank's."""
        arrays, vertices = self.edges[parcel.victim], self.shared.mail_ids[parcel.first : parcel.last]
        for column, target in zip(self.columns, targets, strict=True):
            copy_rows_of(vertices, arrays[0], arrays[column], target)

    def _receive(self, coming: Sequence[Parcel]) -> list[Any]:
        """Begin to receive what comes from others; what a device of this rank gives is only put in its place."""
        requests = []
        begin = 0
        for parcel in coming:
            span, rank = slice(parcel.first, parcel.last), int(self.rank_of[parcel.victim])
            end = begin + parcel.edges
            rows = [self.shared.sent[column][begin:end] for column in self.columns] if self.shared.rows_come else []
            begin = end
            if rank == self.fleet.rank:
                self._copy_rows(parcel, rows)
                continue
            arrays = [array[span] for array in self.mail]
            arrays += [self.lengths[span], *rows] if self.shared.rows_come else []
            requests += [self.fleet.receive(array, rank) for array in arrays if len(array)]
        return requests

    def _place(self, coming: Sequence[Parcel]) -> None:
        """Note where the rows lie that came along."""
        begin = 0
        for parcel in coming:
            span = slice(parcel.first, parcel.last)
            place_rows(self.lengths[span], begin, self.shared.sent[0][parcel.first : parcel.last + 1])
            begin += parcel.edges


def _read_at_sources(source: Any) -> list[int]:
    """Return which fields of the mail the rules of dealt operators read at a source."""
    sharing = source.flow.sharing
    dealt = [number for number in range(len(source.flow.operators)) if sharing.is_dealt(number)]
    names = {name for number in dealt for name in sharing.read_at_sources(number)}
    return [number for number, name in enumerate(source.mailed) if name in names]


def _edges_of(shard: Any, source: Any) -> tuple[np.ndarray, ...]:
    """Return the offsets of a device's edges, and of each edge the destination, the weight and the graph's number."""
    return (*shard.edges(incoming=False, weighted=source.uses_weights), edge_ids_for(shard, source))


def row_columns(session: RankSession, source: Any) -> list[int]:
    """Return what code asks of edges, by its place behind their offsets."""
    is_weighted = source.uses_weights and session.parts[0].out_edges.weights is not None
    return [1, *([2] if is_weighted else []), *([3] if asks_edge_ids(source) else [])]


def reserve_rows(session: RankSession, source: Any, mail_length: int) -> list[np.ndarray]:
    """Return the arrays for rows that come along: where each begins, and elements of as many edges as can come.

    To a device comes no more than its share, which is no more than a device has in the mean, and the slack.  Memory
    that was not touched yet costs nothing.
    """
    num_edges, count = session.shards[0].graph.num_edges, session.schedule.num_devices
    room = min(len(session.parts) * (num_edges // count + num_edges // SLACK_PART), num_edges)
    columns = row_columns(session, source)
    lengths = [mail_length + 1, *(room if column in columns else 0 for column in (1, 2, 3))]
    types = row_types(session.parts[0], source)
    shapes: list[tuple[tuple[int, ...], np.dtype]] = [
        ((length,), dtype) for length, dtype in zip(lengths, types, strict=True)
    ]
    return session.workspaces[0].reserve("sent rows", shapes)
