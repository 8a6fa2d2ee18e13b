# SPDX-License-Identifier: Apache-2.0
"""Stats: what a run did, in counts that can be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_DIRECTIONS = ("push", "pull")
_EDGES = 3  # the column of edges looked at
#: A row has 48 bytes: 48 MB at most, however long a run is.  Road networks of a continent need some ten thousand rows.
MAX_ROWS = 1_000_000


@dataclass
class Trace:
    """The supersteps of a run: always their number and edges, and the first `MAX_ROWS` of their rows if wanted.

    A row: begin and end (ns), frontier size, edges looked at, direction, output size.
    """

    keeps_rows: bool = True
    num_supersteps: int = 0
    edges_visited: int = 0
    chunks: list[np.ndarray] = field(default_factory=list)
    num_rows: int = 0

    def add(self, rows: np.ndarray) -> None:
        """Count supersteps, and keep their rows as long as there is room."""
        self.num_supersteps += len(rows)
        self.edges_visited += int(np.add.reduce(rows[:, _EDGES]))
        self._keep(rows)

    def include(self, other: Trace) -> None:
        """Add another run's supersteps behind these."""
        if self.num_dropped == 0:  # rows behind a gap would seem to follow those before it
            for rows in other.chunks:
                self._keep(rows)
        self.num_supersteps += other.num_supersteps
        self.edges_visited += other.edges_visited

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


@dataclass
class Stats:
    """Totals of a run and, per superstep, the same over the devices."""

    seconds: float
    peak_memory_bytes: int
    config: dict[str, Any]
    trace: Trace
    algorithm: str = ""
    num_threads: int = 1
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def num_supersteps(self) -> int:
        """Number of supersteps over all phases."""
        return self.trace.num_supersteps

    @property
    def edges_visited(self) -> int:
        """Edges looked at (W)."""
        return self.trace.edges_visited

    def including(self, other: Stats) -> Stats:
        """Add a run that belongs to the same call; return the sum."""
        self.seconds += other.seconds
        self.peak_memory_bytes = max(self.peak_memory_bytes, other.peak_memory_bytes)
        self.trace.include(other.trace)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts.

        With ``stats="full"`` there is an entry in ``supersteps`` for each but the last ``supersteps_dropped``.
        """
        totals: dict[str, Any] = {
            "algorithm": self.algorithm,
            "seconds": self.seconds,
            "num_supersteps": self.num_supersteps,
            "edges_visited": self.edges_visited,
            "items_combined": 0,
            "messages": 0,
            "items_sent": 0,
            "bytes_sent": 0,
            "idle_seconds": 0.0,
            "peak_memory_bytes": self.peak_memory_bytes,
            "stolen_edges": 0,
            "work_items": 0,
            "num_devices": 1,
            "num_threads": self.num_threads,
            "config": dict(self.config),
            **self.extra,
        }
        if self.trace.keeps_rows:
            totals["supersteps"] = [_superstep(row) for row in self.trace.rows()]
            totals["supersteps_dropped"] = self.trace.num_dropped
        return totals

    def __repr__(self) -> str:
        return (
            f"Stats(seconds={self.seconds:.6f}, num_supersteps={self.num_supersteps}, "
            f"edges_visited={self.edges_visited}, peak_memory_bytes={self.peak_memory_bytes})"
        )


def _superstep(row: list[int]) -> dict[str, Any]:
    begin, end, frontier_size, edges, direction, _ = row
    return {
        "seconds": [(end - begin) / 1e9],
        "frontier_size": [frontier_size],
        "direction": [_DIRECTIONS[direction]],
        "edges_visited": [edges],
        "items_combined": [0],
        "messages": [0],
        "items_sent": [0],
        "bytes_sent": [0],
        "idle_seconds": [0.0],
        "stolen_edges": [0],
    }
