# SPDX-License-Identifier: Apache-2.0
"""What every device did in every superstep of a run, as arrays: what there is to price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_number

_COLUMNS = ("edges_visited", "items_sent", "items_combined", "bytes_sent")


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of a run, each an int64 array with a row for each superstep and a column for each device."""

    edges_visited: np.ndarray
    items_sent: np.ndarray
    items_combined: np.ndarray
    bytes_sent: np.ndarray

    def __post_init__(self) -> None:
        shapes = {getattr(self, name).shape for name in _COLUMNS}
        if len(shapes) > 1 or self.edges_visited.ndim != 2:
            raise ArgumentError(f"counts have the shapes {sorted(shapes)}; all must be supersteps by devices")

    @classmethod
    def of(cls, stats_dict: Mapping[str, Any]) -> Counts:
        """Return the counts in what ``stats.to_dict()`` of a run with ``stats="full"`` returns.

        Examples
        --------
        >>> import shoal
        >>> stats = shoal.bfs(shoal.generate.grid(4, 4), 0, devices="cpu:2", direction="push").stats
        >>> Counts.of(stats.to_dict()).edges_visited.sum(axis=0).tolist()
        [24, 24]
        """
        rows = stats_dict.get("supersteps") if isinstance(stats_dict, Mapping) else None
        if not rows or stats_dict.get("supersteps_dropped"):
            raise ArgumentError('stats_dict has not all supersteps; it must be of a run with stats="full"')
        return cls(*(np.array([row[name] for row in rows], np.int64) for name in _COLUMNS))

    @property
    def num_supersteps(self) -> int:
        """Number of supersteps."""
        return len(self.edges_visited)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return self.edges_visited.shape[1]

    def scaled(self, factor: float) -> Counts:
        """Return what a graph like this one with ``factor`` times the edges would count, in as many supersteps."""
        times = check_number("factor", factor, 0, open_low=True, open_high=True)
        return Counts(*(np.rint(getattr(self, name) * times).astype(np.int64) for name in _COLUMNS))
