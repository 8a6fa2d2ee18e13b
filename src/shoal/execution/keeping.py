# SPDX-License-Identifier: Apache-2.0
"""Keeping: a run with checkpoints, by the same door through which every loop comes back for memory or a full trace.

Between two supersteps the owners' values, the frontier and a few counters are all there is to know: copies, buffers and
directions follow from them, on any devices.  So going on is to begin a phase with these in the place of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Backend, CapturedRun, CapturingSession, Reason, Run, Session
from shoal.checkpoint.record import Begin, Record
from shoal.errors import Allocating, ArgumentError
from shoal.program import Constant, Vertex

if TYPE_CHECKING:
    from shoal.execution.bsp import _Run


def run_recorded(
    record: Record, run: _Run, backend: Backend, state: dict[str, Any], frontier: np.ndarray | None
) -> float:
    """Run a program, or go on with it, and keep what it does; return the seconds that earlier processes have spent."""
    if not backend.captures:
        raise ArgumentError(f"checkpoint={record.path!r} is not possible on {backend.kind}: what a phase has kept lies "
                            "in the GPU's memory; allowed: cpu and mpi devices")  # fmt: skip
    if run.config.execution == "async" and record.pace.supersteps is not None:
        raise ArgumentError(f"checkpoint_every={record.pace.supersteps} counts supersteps, and execution='async' has "
                            "none; allowed: a time, as '30s' or '5min'")  # fmt: skip
    graph = run.shards[0].graph
    begin = record.begin_run(run.title, graph, backend.ranks)
    if begin is not None:
        for name, array in begin.fields.items():
            state[name][...] = array
    before = 0.0 if begin is None else begin.seconds
    if begin is not None and begin.phase is None:
        return before
    keeper = Keeper(record, run.title, begin)
    with Allocating(run.title + ":", "the buffers of the run"):
        run.go(backend, state, frontier, keeper)
    values = {name: state[name] for name, declared in run.plan.fields.items() if not isinstance(declared, Constant)}
    fields = {name: value for name, value in values.items() if isinstance(run.plan.fields[name], Vertex)}
    scalars = {name: value for name, value in values.items() if name not in fields}
    record.end_run(run.title, fields, scalars, keeper.seconds)
    return before


class Keeper:
    """What looks after one run: where it begins, when it comes back, and what is written then."""

    def __init__(self, record: Record, title: str, begin: Begin | None) -> None:
        self.record, self.title, self.begin = record, title, begin
        self.began = time.monotonic()
        self.session: CapturingSession | None = None
        self.rows, self.num_supersteps = 0, 0

    @property
    def seconds(self) -> float:
        """Since the run began, in all processes that had it."""
        return time.monotonic() - self.began + (0.0 if self.begin is None else self.begin.seconds)

    def is_over(self, number: int) -> bool:
        """Whether an earlier process has left a phase behind it."""
        return self.begin is not None and self.begin.phase is not None and number < self.begin.phase

    def beginning(self, session: Session) -> Callable[..., Run]:
        """Return what begins a phase of a session: in the middle, where an earlier process stood there."""
        self.session = session  # type: ignore[assignment]  # the backend says that it captures
        assert self.session is not None
        if self.begin is None or self.begin.position is None:
            return self.session.begin_phase
        position, self.begin.position = self.begin.position, None
        return partial(self.session.begin_phase, position=position)

    def ask(self, run: Run) -> None:
        """Ask a run to come back when it is time."""
        self.rows, clock = self.record.span(run)
        asked: CapturedRun = run  # type: ignore[assignment]
        asked.come_back(self.rows, clock)

    def look(self, number: int, run: Run, reason: Reason, num_supersteps: int) -> None:
        """Write a snapshot of a run that came back, if it is time."""
        fresh, self.num_supersteps = num_supersteps - self.num_supersteps, num_supersteps
        if reason == Reason.BUDGET and self.record.pace.is_due(fresh, self.rows):
            assert self.session is not None
            self.record.save(self.title, number, self.session.capture(run), self.seconds)
