# SPDX-License-Identifier: Apache-2.0
"""Waves: how ranks find that nothing is left below the threshold, or at all; no rank leads.

What a rank knows of another one's devices is old, so devices of several ranks do not raise the threshold themselves
(see `shoal.backends.cpu.kernels.quiet`).  In a wave each rank tells all others, of one moment in which its devices were
idle: the lowest priority that waits there, the items they have received, and those sent to each rank.  It is quiet if
each rank has received as many as all have sent to it.  One wave is enough, though the moments differ (Mattern's vector
counters): say a rank were the first to go on behind its moment.  It was sent an item before and had not received it, so
to be even it has received one that was sent behind the moment of its sender, which then went on earlier.

All ranks decide by the same numbers.  A wave ends when all have been idle, and a rank that was sent more than it has
received waits for that before it takes part again: so waves are few, and if nothing is left, the next one is quiet.  A
device that pauses may send what it has found ahead, but then it had something waiting, so that was not the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.backends.cpu.kernels.relay import (
    SAID_LOWEST,
    SAID_RECEIVED,
    SAID_SENT,
    raise_threshold,
    sum_up,
)
from shoal.backends.loops import control as slot
from shoal.backends.mpi.channels import RankChannels
from shoal.backends.mpi.fleet import Fleet


class Waves:
    """This rank's part in one wave after the other."""

    def __init__(self, fleet: Fleet, channels: RankChannels) -> None:
        self.fleet, self.channels = fleet, channels
        self.said = np.zeros(SAID_SENT + fleet.size, np.int64)
        self.row = np.zeros_like(self.said)  # as it goes to the others
        self.rows = np.zeros((fleet.size, len(self.row)), np.int64)
        self.begin()

    def begin(self) -> None:
        """Get ready, as the devices do: at the threshold that they find."""
        self.threshold = int(self.channels.world[slot.WORLD_THRESHOLD])
        self.expected = 0
        self.request: Any = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left anywhere."""
        return self.threshold == slot.NEVER

    def go_on(self) -> bool:
        """Take part in a wave if this rank is idle, or take over what has come of one; whether anything has changed."""
        if self.request is not None:
            return bool(self.request.Test()) and self._take_over()
        channels, rank = self.channels, self.fleet.rank
        if not sum_up(
            channels.world, channels.counts, channels.rank_of, rank, self.threshold, self.expected, self.said
        ):
            return False
        self.row[:] = self.said
        self.request = self.fleet.comm.Iallgather(self.row, self.rows)
        return True

    def _take_over(self) -> bool:
        self.request = None
        sent, received = self.rows[:, SAID_SENT:].sum(axis=0), self.rows[:, SAID_RECEIVED]
        self.expected = int(sent[self.fleet.rank])
        if (sent == received).all():
            self.threshold = raise_threshold(self.channels.world, int(self.rows[:, SAID_LOWEST].min()))
        return True
