# SPDX-License-Identifier: Apache-2.0
"""LoopRun: the one door to a compiled loop on a CPU device, whatever is in the loop."""

from __future__ import annotations

import abc
import time
import traceback
from typing import Any

import numpy as np

from shoal.backends.base import Reason, Regrouping
from shoal.backends.cpu.device import Shard
from shoal.backends.cpu.phases import LoadedPhase
from shoal.backends.cpu.threads import run_threads
from shoal.backends.loops import control as slot
from shoal.errors import ProgramError
from shoal.program import Phase
from shoal.progress import Progress, current_watch


class LoopRun(abc.ABC):
    """A phase under way on one device: its control block, and the loop's other arguments; `resume` until it is done."""

    control: np.ndarray
    arguments: tuple
    num_threads: int
    is_inline = False  # on the caller's own thread
    traffic = None  # that of several devices is theirs together

    def __init__(self, loaded: LoadedPhase, phase: Phase, shard: Shard, title: str, *, is_shared: bool) -> None:
        self.loaded, self.phase, self.shard, self.title, self.is_shared = loaded, phase, shard, title, is_shared
        self.watch, self.began = current_watch(), time.monotonic()
        self.rows: list[np.ndarray] = []

    def resume(self) -> Reason:
        """Run until the loop comes back and return why; the trace's rows are taken over."""
        self.begin()
        if self.is_inline:
            self.loop(0, 1, *self.arguments)
        else:
            on_wait = None if self.watch is None else self.report
            run_threads(self.loop, self.num_threads, *self.arguments, on_interrupt=self.stop, on_wait=on_wait)
        return self.end()

    def begin(self) -> None:
        """Get ready to enter the loop."""
        self.control[slot.REASON] = 0
        self.control[slot.STARTED] = time.monotonic_ns()

    def come_back(self, num_supersteps: int, clock: int | None) -> None:
        """Come back at a clock in nanoseconds, and after so many supersteps if there are any."""
        self.control[slot.BUDGET] = slot.UNLIMITED if clock is None else clock

    def come_back_now(self) -> None:
        """Come back as soon as the run is where it can be left; asked from anywhere."""
        self.control[slot.BUDGET] = 0

    @abc.abstractmethod
    def end(self) -> Reason:
        """Take over what the loop has left, and return why it came back."""

    def loop(self, *arguments: Any) -> None:
        """Run the compiled loop on one thread; what it raises names the rule."""
        try:
            self.loaded.loop(*arguments)
        except Exception as error:
            raise ProgramError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        """Name the rule that failed: compiled code leaves its place in the generated module in the traceback."""
        frames = traceback.walk_tb(error.__traceback__)
        places = [line for frame, line in frames if frame.f_code.co_filename != __file__]
        rules = self.loaded.source.rule_lines
        failed = [rule.where() for line in places for first, last, rule in rules if first <= line <= last]
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        where = failed[-1] if failed else "a rule"
        device = f" on {self.place}" if self.is_shared else ""
        when = "" if self.loaded.source.is_asynchronous else f" in superstep {self.control[slot.SUPERSTEP]}"
        return f"{self.title}: {where} failed{device}{when}: {what}"

    def as_global(self, vertices: np.ndarray) -> np.ndarray:
        """Return vertices by the graph's ids."""
        global_ids = None if self.shard.part is None else self.shard.part.global_ids
        return vertices.copy() if global_ids is None else global_ids[vertices]

    @property
    def part(self) -> Any:
        """The device's part of the graph; None where it has all of it."""
        return self.shard.part

    @property
    def place(self) -> str:
        """The device, in words."""
        return f"device {self.shard.device.name}"

    def stop(self) -> None:
        """Make the loop come back at the next chance, on every thread; the run cannot be resumed."""
        self.control[slot.STOP] = Reason.STOPPED
        self.control[slot.ABANDONED] = 1

    def report(self) -> None:
        """Tell whoever watches where the run is."""
        assert self.watch is not None
        step = getattr(self.phase.step, "__name__", "step")
        superstep, size = (int(self.control[number]) for number in (slot.SUPERSTEP, slot.SIZE))
        seconds, limit = time.monotonic() - self.began, self.phase.max_supersteps
        self.watch.tell(Progress(self.title, step, superstep, size, seconds, limit))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all."""
        return bool(self.control[slot.SIZE] == 0)

    @property
    def thefts(self) -> np.ndarray:
        """Nothing: there is nobody to steal from."""
        return np.zeros((1, 1), np.int64)

    @property
    def regroupings(self) -> list[Regrouping]:
        """Nothing: every device keeps its part."""
        return []

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time."""
        rows, self.rows = self.rows, []
        return [rows]
