# SPDX-License-Identifier: Apache-2.0
"""One run of one phase on several CPU devices: a `LoopRun` for each, and the one door to all their loops.

The threads of all devices enter their loops together and come back together, with one reason: where one device needs
memory or has a full trace, the others wait for it.  If one fails, all are stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cpu.border import Shared
from shoal.backends.cpu.loop_run import LoopRun
from shoal.backends.cpu.threads import run_threads
from shoal.backends.cpu.worklist_run import Channels
from shoal.backends.loops import control as slot
from shoal.backends.loops.together import RunsTogether
from shoal.errors import OutOfMemoryError, ShoalError


class ManyRuns(RunsTogether):
    """The runs of one phase on all devices; `resume` until it is done."""

    def __init__(self, runs: Sequence[LoopRun], shared: Shared | Channels) -> None:
        super().__init__(runs, shared)
        self._take_part(runs)

    def _take_part(self, members: Sequence[Any]) -> None:
        """Let the loops of these devices run from now on, and no others'."""
        self.members = members
        self.places = [(run, thread) for run in members for thread in range(run.num_threads)]

    def resume(self) -> Reason:
        """Run until the loops come back and return why."""
        for run in self.members:
            run.begin()
        watch = self.runs[0].watch
        self._run_loops(None if watch is None else self.runs[0].report)
        return max([run.end() for run in self.members])

    def grow(self) -> None:
        """Give more memory to the devices that need it."""
        for run in self.members:
            run.grow()

    def come_back(self, num_supersteps: int, clock: int | None) -> None:
        """Come back after so many supersteps, or at a clock in nanoseconds: asked before each time."""
        for run in self.runs:
            run.come_back(num_supersteps, clock)

    def come_back_now(self) -> None:
        """Come back after the superstep under way; asked from anywhere."""
        for run in self.runs:
            run.come_back_now()

    def _run_loops(self, on_wait: Callable[[], None] | None) -> None:
        """Run the loops of all devices until they come back."""
        run_threads(self._loop, len(self.places), on_interrupt=self.stop, on_wait=on_wait)

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        if not self.runs[0].loaded.source.deals:
            return super().thefts
        return self.shared.thefts

    def _loop(self, number: int, count: int) -> Any:
        run, thread = self.places[number]
        try:
            run.loop(thread, run.num_threads, *run.arguments)
        except ShoalError:
            raise  # it names the device
        except Exception as error:
            kind = OutOfMemoryError if isinstance(error, MemoryError) else RuntimeError
            what = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise kind(f"{run.title}: {run.place} failed: {what}") from error

    def stop(self) -> None:
        """Make all loops come back at the next chance; the run cannot be resumed."""
        for run in self.runs:
            run.stop()
        self.shared.world[slot.WORLD_ABANDONED] = 1
