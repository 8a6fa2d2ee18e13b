# SPDX-License-Identifier: Apache-2.0
"""Stats: what a run did, in counts that can be checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

_DIRECTIONS = ("push", "pull")


@dataclass
class Stats:
    """Totals of a run and, per superstep, the same over the devices.

    ``trace`` has a row per superstep: begin and end (ns), frontier size, edges looked at, direction, output size.
    """

    seconds: float
    peak_memory_bytes: int
    config: dict[str, Any]
    trace: np.ndarray
    algorithm: str = ""
    num_threads: int = 1
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def num_supersteps(self) -> int:
        """Number of supersteps over all phases."""
        return len(self.trace)

    @property
    def edges_visited(self) -> int:
        """Edges looked at (W)."""
        return int(self.trace[:, 3].sum())

    def including(self, other: Stats) -> Stats:
        """Add a run that belongs to the same call; return the sum."""
        self.seconds += other.seconds
        self.peak_memory_bytes = max(self.peak_memory_bytes, other.peak_memory_bytes)
        self.trace = np.concatenate([self.trace, other.trace])
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dicts."""
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
        if self.config["stats"] == "full":
            totals["supersteps"] = [_superstep(row) for row in self.trace.tolist()]
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
