# SPDX-License-Identifier: Apache-2.0
"""So much of a long run as an eye can tell apart: supersteps in a row, or slices of time, are taken together.

Sums and shares stay what they are, whatever is taken together; nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.report.trace import RunTrace

#: Bars of the timeline, all devices together, up to which every superstep has its own: drawn in a few tenths of a
#: second, and a screen has some 2,000 pixels across.
MAX_BARS = 4_000
#: Cells of the timeline where there are more: an image, and small on the page, with no more slices than pixels across.
MAX_CELLS, MAX_SLICES = 40_000, 2_000
#: Bars of a chart over supersteps.
MAX_GROUPS = 400


@dataclass(frozen=True)
class Groups:
    """Runs of supersteps: the first of each, and how many supersteps there are."""

    first: np.ndarray
    num_supersteps: int

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of supersteps in each group."""
        return np.diff(self.first, append=self.num_supersteps)

    @property
    def last(self) -> np.ndarray:
        """The last superstep of each group."""
        return self.first + self.sizes - 1

    @property
    def middle(self) -> np.ndarray:
        """The middle of each group, as a number of a superstep."""
        return (self.first + self.last) / 2

    @property
    def are_single(self) -> bool:
        """Whether every superstep stands for itself."""
        return len(self.first) == self.num_supersteps

    def sum(self, column: np.ndarray) -> np.ndarray:
        """Return the sums over each group's supersteps."""
        return np.add.reduceat(column, self.first, axis=0) if len(self.first) else column

    def mean(self, column: np.ndarray) -> np.ndarray:
        """Return the means over each group's supersteps."""
        return self.sum(column) / self.sizes

    def maximum(self, column: np.ndarray) -> np.ndarray:
        """Return the most of each group's supersteps."""
        return np.maximum.reduceat(column, self.first, axis=0) if len(self.first) else column


def group_supersteps(trace: RunTrace) -> Groups:
    """Take as many supersteps together as it takes to have few enough bars."""
    count = len(trace.supersteps)
    width = max(-(-count // MAX_GROUPS), 1)
    return Groups(np.arange(0, count, width), count)


def has_a_bar_each(trace: RunTrace) -> bool:
    """Whether every superstep of every device can have a bar of its own in the timeline."""
    return len(trace.supersteps) * trace.num_devices <= MAX_BARS


def shares_over_time(trace: RunTrace, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of equal slices of time, and which share of it each device spent on ``part`` of its seconds.

    A superstep's seconds of a part are taken as spread evenly over it; where a device was in no superstep is NaN.
    """
    begin, seconds = trace.begin, trace.column("seconds")
    num_slices = max(min(MAX_CELLS // trace.num_devices, MAX_SLICES), 1)
    edges = np.linspace(0.0, (begin + seconds).max(), num_slices + 1)
    shares = np.empty((trace.num_devices, num_slices))
    for device in range(trace.num_devices):
        times = np.stack([begin[:, device], (begin + seconds)[:, device]], axis=1).reshape(-1)
        times = np.maximum.accumulate(times)
        spent, covered = (_growth(edges, times, column[:, device]) for column in (part, seconds))
        with np.errstate(invalid="ignore", divide="ignore"):
            shares[device] = np.where(covered > 0, spent / covered, np.nan)
    return edges, np.clip(shares, 0.0, 1.0)


def _growth(edges: np.ndarray, times: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return how much of the seconds of supersteps, whose begins and ends are ``times``, falls in each slice."""
    ends = np.cumsum(seconds)
    return np.diff(np.interp(edges, times, np.stack([ends - seconds, ends], axis=1).reshape(-1)))
