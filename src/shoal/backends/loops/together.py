# SPDX-License-Identifier: Apache-2.0
"""RunsTogether: what the runs of one phase on several devices are as one, on any kind of device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shoal.backends.base import Regrouping
from shoal.backends.loops import control as slot


class RunsTogether:
    """A run of a phase for each device, and what they share."""

    def __init__(self, runs: Sequence[Any], shared: Any) -> None:
        self.runs, self.shared = runs, shared
        if runs[0].phase.begin == "replay":  # a device knows only its own part of what was kept
            total = sum(int(run.control[slot.LOCAL_SIZE]) for run in runs)
            for run in runs:
                run.control[slot.SIZE] = total

    def grow(self) -> None:
        """Give more memory to the devices that need it."""
        for run in self.runs:
            run.grow()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all, on any device."""
        return all(run.is_empty for run in self.runs)

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time, by device."""
        return [rows for run in self.runs for rows in run.take_rows()]

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        return np.zeros((len(self.runs), len(self.runs)), np.int64)

    @property
    def regroupings(self) -> list[Regrouping]:
        """Nothing: every device keeps its part."""
        return []

    @property
    def peaks(self) -> list[int]:
        """The most memory that each device's buffers took, with its share of what is for all."""
        return [run.peaks[0] + self.shared.bytes_of(number) for number, run in enumerate(self.runs)]

    @property
    def traffic(self) -> Callable[[], np.ndarray] | None:
        """What tells, when asked, the bytes that each device sent to each; None where they were not counted."""
        return self.shared.traffic

    @property
    def room_factor(self) -> float:
        """The most room that an output got on a device, in parts of its vertices."""
        return max(run.room_factor for run in self.runs)
