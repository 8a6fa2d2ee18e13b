# SPDX-License-Identifier: Apache-2.0
"""What every device did in every superstep of a run, as arrays: what there is to price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_integer, check_number

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

    def scaled(self, factor: float, items: float | None = None) -> Counts:
        """Return what a graph like this one with ``factor`` times the edges would count, in as many supersteps.

        Parameters
        ----------
        items : times as many items and bytes; those are of vertices, so that of a graph with other edges a vertex it is
            by how many times it has more vertices; by default ``factor``
        """
        times = check_number("factor", factor, 0, open_low=True, open_high=True)
        of_items = times if items is None else check_number("items", items, 0, open_low=True, open_high=True)
        factors = dict.fromkeys(_COLUMNS, of_items) | {"edges_visited": times}
        return Counts(*(np.rint(getattr(self, name) * factors[name]).astype(np.int64) for name in _COLUMNS))

    def with_item_bytes(self, bytes_per_item: float) -> Counts:
        """Return the counts of a program whose items take so many bytes each, such as an id without a parent."""
        times = check_number("bytes_per_item", bytes_per_item, 0, open_high=True)
        return replace(self, bytes_sent=np.rint(self.items_sent * times).astype(np.int64))

    def padded(self, num_supersteps: int) -> Counts:
        """Return the counts with supersteps at the end that only meet, so that there are at least so many."""
        more = check_integer("num_supersteps", num_supersteps, 1) - self.num_supersteps
        rows = ((0, max(more, 0)), (0, 0))
        return Counts(*(np.pad(getattr(self, name), rows) for name in _COLUMNS))
