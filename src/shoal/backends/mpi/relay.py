# SPDX-License-Identifier: Apache-2.0
"""Relay: the courier of devices without supersteps, which do not meet.

While their loops run it carries what they put into channels to other ranks, and what comes from there into channels;
and it takes part in the waves by which ranks find that all is done.  It never waits for one of these alone: whoever
waits for this rank can always go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cpu.loop_run import LoopRun
from shoal.backends.loops import control as slot
from shoal.backends.mpi.channels import RankChannels
from shoal.backends.mpi.fleet import Fleet, rest
from shoal.backends.mpi.lane import LAST, PAUSE, Lane
from shoal.backends.mpi.waves import Waves
from shoal.progress import PERIOD_SECONDS

#: How often it listens for news of other ranks.
_NEWS_SECONDS = 2e-3


class Relay:
    """Carries what a rank's devices send to others and what they are sent, until nothing is left on any rank."""

    def __init__(self, fleet: Fleet, channels: RankChannels, runs: Sequence[LoopRun]) -> None:
        self.fleet, self.channels, self.runs = fleet, channels, runs
        self.lanes = [Lane(fleet, channels, rank) for rank in range(fleet.size) if rank != fleet.rank]
        self.waves = Waves(fleet, channels)

    def serve(self, on_wait: Callable[[], None] | None = None) -> None:
        """Carry items until nothing is left, or the devices have been stopped."""
        self.waves.begin()
        self.untold = list(self.lanes)  # who has not been told of a pause
        self.fleet.in_use.append(self)
        for lane in self.lanes:
            lane.listen()
        began = moved = news = told = time.monotonic()
        while not self.waves.is_over:
            if self.channels.world[slot.WORLD_ABANDONED] != 0:
                return
            is_moving = self._carry() | self.waves.go_on()
            now = time.monotonic()
            if is_moving:
                moved = now
            if now - news > _NEWS_SECONDS:
                news = now
                self.fleet.look(began, self.fleet.timeout_seconds)
                if on_wait is not None and now - told > PERIOD_SECONDS:
                    told = now
                    on_wait()
            if not is_moving:
                rest(now - moved)
        self._end()
        self.fleet.in_use.remove(self)

    def _carry(self) -> bool:
        """Send and receive what there is; whether there was anything."""
        has_moved = False
        if self.untold and self._is_time_to_pause():
            self.untold = [lane for lane in self.untold if not lane.send(PAUSE)]
        for lane in self.lanes:
            flags = lane.receive()
            if flags is not None and flags & PAUSE:
                for run in self.runs:
                    run.come_back_now()
            has_moved |= lane.send() | (flags is not None)
        return has_moved

    def _is_time_to_pause(self) -> bool:
        """Whether the clock has come for one of the devices here."""
        return min(int(run.control[slot.BUDGET]) for run in self.runs) <= time.monotonic_ns()

    def _end(self) -> None:
        """Tell the other ranks that no message follows, and take in what they have still sent."""
        began, limit = time.monotonic(), self.fleet.timeout_seconds
        unsaid = list(self.lanes)
        while unsaid or not all(lane.is_over for lane in self.lanes):
            unsaid = [lane for lane in unsaid if not lane.send(LAST)]
            for lane in self.lanes:
                lane.receive()
            self.fleet.look(began, limit)
            rest(time.monotonic() - began)
        self.fleet.wait([request for lane in self.lanes for request in lane.going if request is not None])

    def agree(self, reason: Reason) -> Reason:
        """Return the most pressing reason of all ranks: where one has paused, others may have come to their end."""
        return Reason(int(np.concatenate(self.fleet.gather(np.array([reason], np.int64))).max()))

    def close(self) -> None:
        """Do nothing: a message that was received is no request any more."""
