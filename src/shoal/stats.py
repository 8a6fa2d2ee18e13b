# SPDX-License-Identifier: Apache-2.0
"""Stats: what a run did, in counts that can be checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

_DIRECTIONS = ("push", "pull", "async")
_ASYNC = 2  # the direction of a row that is about all a device did without supersteps
_BEGIN, _END, _FRONTIER, _EDGES, _DIRECTION = range(5)  # columns: as a row of `Trace` begins
#: Columns that are added up over supersteps and devices, with their names; nanoseconds become seconds.
_COUNTED = {"edges_visited": 3, "messages": 6, "items_sent": 7, "bytes_sent": 8, "items_combined": 9,
            "stolen_edges": 13}  # fmt: skip
#: Nanoseconds, with the names of their seconds.
_TIMED = {"idle_seconds": 10, "pack_seconds": 11, "combine_seconds": 12, "steal_seconds": 14}
_NUM_COLUMNS = 15
#: A row has 120 bytes: 120 MB at most, however long a run is.  Roads of a continent need some ten thousand rows.
MAX_ROWS = 1_000_000


@dataclass
class Trace:
    """The supersteps of a run on one device: always their number and sums, and the first `MAX_ROWS` rows if wanted.

    A row: begin and end (ns), frontier size, edges looked at, direction, output size, messages, items and bytes sent,
    items combined, ns spent waiting for other devices, packing what is sent, combining what was received, edges looked
    at in the place of other devices, ns spent on these.
    """

    keeps_rows: bool = True
    num_supersteps: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(_NUM_COLUMNS, np.int64))
    chunks: list[np.ndarray] = field(default_factory=list)
    num_rows: int = 0
    work_items: int = 0  # vertices visited without supersteps

    def add(self, rows: np.ndarray) -> None:
        """Count supersteps, and keep their rows as long as there is room."""
        self.num_supersteps += len(rows)
        self.sums += np.add.reduce(rows)
        if len(rows) and rows[0, _DIRECTION] == _ASYNC:  # the rows of one phase are alike
            self.work_items += int(rows[:, _FRONTIER].sum())
        self._keep(rows)

    def without_work(self) -> Trace:
        """Return the trace of a device that had no part in the run."""
        other = Trace(self.keeps_rows, self.num_supersteps)
        for rows in self.chunks:
            nothing = np.zeros_like(rows)
            nothing[:, _BEGIN] = nothing[:, _END] = rows[:, _BEGIN]
            nothing[:, _DIRECTION] = rows[:, _DIRECTION]
            other._keep(nothing)
        return other

    def include(self, other: Trace) -> None:
        """Add another run's supersteps behind these."""
        if self.num_dropped == 0:  # rows behind a gap would seem to follow those before it
            for rows in other.chunks:
                self._keep(rows)
        self.num_supersteps += other.num_supersteps
        self.sums += other.sums
        self.work_items += other.work_items

    def _keep(self, rows: np.ndarray) -> None:
        room = MAX_ROWS - self.num_rows
        if self.keeps_rows and len(rows) and room > 0:
            kept = rows if len(rows) <= room else rows[:room].copy()
            self.chunks.append(kept)
            self.num_rows += len(kept)

    @property
    def num_dropped(self) -> int:
        """Supersteps that were counted but whose rows are not kept."""
        return self.num_supersteps - self.num_rows

    def rows(self) -> list[list[int]]:
        """Return the rows that are kept, in order."""
        return [row for chunk in self.chunks for row in chunk.tolist()]


def async_row(
    began: int, ended: int, *, work_items: int, edges_visited: int, messages: int, items_sent: int, bytes_sent: int,
    items_combined: int,
) -> np.ndarray:  # fmt: skip
    """Return the one row of a device without supersteps."""
    return np.array([[
        began, ended, work_items, edges_visited, _ASYNC, 0, messages, items_sent, bytes_sent, items_combined,
        0, 0, 0, 0, 0,
    ]])  # fmt: skip


@dataclass(frozen=True)
class PhaseSpan:
    """A phase that has run: supersteps in a row, behind those of the phase before."""

    program: str
    step: str
    num_supersteps: int


@dataclass
class Stats:
    """Totals of a run and, per superstep, the same over the devices."""

    seconds: float
    peak_memory_bytes: int  # of all devices, and what is beside them
    config: dict[str, Any]
    traces: list[Trace]  # of each device
    algorithm: str = ""
    num_threads: int = 1
    extra: dict[str, Any] = field(default_factory=dict)
    device_peaks: list[int] = field(default_factory=list)  # bytes of each device
    phases: list[PhaseSpan] = field(default_factory=list)  # in order; none with ``stats="totals"``
    traffic: list[Callable[[], np.ndarray] | None] = field(default_factory=list)  # bytes from each to each, by phase
    explain: Callable[[], dict[str, str]] = dict  # why each strategy that was ``auto`` became what it is
    thefts: np.ndarray | None = None  # edges by their owner and the device that visited them, where devices steal
    regroupings: list[Any] | None = None  # superstep, who has whose part from there on, seconds; where they hand over

    @property
    def num_supersteps(self) -> int:
        """Number of supersteps over all phases."""
        return self.traces[0].num_supersteps

    @property
    def edges_visited(self) -> int:
        """Edges looked at (W)."""
        return self._total(_EDGES)

    def _total(self, column: int) -> int:
        return sum(int(trace.sums[column]) for trace in self.traces)

    def including(self, other: Stats) -> Stats:
        """Add a run that belongs to the same call; return the sum."""
        self.seconds += other.seconds
        self.peak_memory_bytes = max(self.peak_memory_bytes, other.peak_memory_bytes)
        self.device_peaks = list(map(max, self.device_peaks, other.device_peaks))
        if self.thefts is not None and other.thefts is not None:
            self.thefts = self.thefts + other.thefts
        if self.regroupings is not None and other.regroupings is not None:
            begin = self.num_supersteps
            self.regroupings += [each._replace(superstep=each.superstep + begin) for each in other.regroupings]
        for trace, more in zip(self.traces, other.traces, strict=True):
            trace.include(more)
        self.phases += other.phases
        self._add_traffic(other)
        return self

    def _add_traffic(self, other: Stats) -> None:
        """Keep one sum in the place of many phases' counts."""
        pairs = [stats.bytes_by_pair() for stats in (self, other)]
        self.traffic = [None if pairs[0] is None or pairs[1] is None else partial(np.copy, pairs[0] + pairs[1])]

    def bytes_by_pair(self) -> np.ndarray | None:
        """Return the bytes from each device to each; None where that was not counted, or there is one device."""
        if not self.traffic or None in self.traffic:
            return None
        return np.sum([tell() for tell in self.traffic if tell is not None], axis=0)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts.

        With ``stats="full"`` there is an entry in ``supersteps`` for each but the last ``supersteps_dropped``.
        """
        totals: dict[str, Any] = {
            "algorithm": self.algorithm,
            "seconds": self.seconds,
            "num_supersteps": self.num_supersteps,
            **{name: self._total(column) for name, column in _COUNTED.items()},
            **{name: self._total(column) / 1e9 for name, column in _TIMED.items()},
            "peak_memory_bytes": self.peak_memory_bytes,
            "peak_memory_bytes_by_device": list(self.device_peaks),
            "work_items": sum(trace.work_items for trace in self.traces),
            "num_devices": len(self.traces),
            "num_threads": self.num_threads,
            "config": dict(self.config),
            "reasons": self.explain(),
            **({} if self.thefts is None else {"thefts": self.thefts.tolist()}),
            **({} if self.regroupings is None else {"regroupings": [each._asdict() for each in self.regroupings]}),
            **self.extra,
        }
        pairs = self.bytes_by_pair()
        if pairs is not None:
            totals["bytes_by_pair"] = pairs.tolist()
        if self.traces[0].keeps_rows:
            by_device = [trace.rows() for trace in self.traces]
            origin = min([rows[0][_BEGIN] for rows in by_device if rows], default=0)
            totals["phases"] = [asdict(phase) for phase in self.phases]
            totals["supersteps"] = [_superstep(rows, origin) for rows in zip(*by_device, strict=True)]
            totals["supersteps_dropped"] = self.traces[0].num_dropped
            if self.regroupings is not None:
                totals["group_sizes"] = self._group_sizes()
        return totals

    def _group_sizes(self) -> list[int]:
        """Return for each superstep whose row is kept how many devices took part."""
        sizes = np.full(self.traces[0].num_rows, len(self.traces))
        ends = self._phase_ends()
        for each in self.regroupings or ():
            sizes[each.superstep : min(end for end in ends if end > each.superstep)] = len(set(each.hosts))
        return sizes.tolist()

    def _phase_ends(self) -> list[int]:
        """Return where each phase ends, in supersteps: there every device has its own part again."""
        return [*np.cumsum([phase.num_supersteps for phase in self.phases]).tolist(), self.num_supersteps + 1]

    def __repr__(self) -> str:
        edges = ", edges='mapped'" if self.config.get("edges") == "mapped" else ""
        return (
            f"Stats(seconds={self.seconds:.6f}, num_supersteps={self.num_supersteps}, "
            f"edges_visited={self.edges_visited}, peak_memory_bytes={self.peak_memory_bytes}{edges})"
        )


def _superstep(rows: tuple[list[int], ...], origin: int) -> dict[str, Any]:
    """Return one superstep: for every key a list over the devices; it begins so long after the first of all."""
    return {
        "begin_seconds": [(row[_BEGIN] - origin) / 1e9 for row in rows],
        "seconds": [(row[_END] - row[_BEGIN]) / 1e9 for row in rows],
        "frontier_size": [row[2] for row in rows],
        "direction": [_DIRECTIONS[row[4]] for row in rows],
        **{name: [row[column] for row in rows] for name, column in _COUNTED.items()},
        **{name: [row[column] / 1e9 for row in rows] for name, column in _TIMED.items()},
    }
