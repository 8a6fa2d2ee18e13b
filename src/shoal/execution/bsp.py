# SPDX-License-Identifier: Apache-2.0
"""Bulk-synchronous execution: phase after phase, supersteps inside compiled loops.

Python enters only when a loop comes back with a reason: done, more memory, or a full trace.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends.cpu.backend import Shard, Workspace
from shoal.backends.cpu.control import Reason
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.config import RunConfig
from shoal.errors import ProgramError
from shoal.execution.binding import begin
from shoal.execution.plans import Plan, plan_of
from shoal.program import Field, Phase, Program
from shoal.stats import Stats, Trace


@dataclass
class Outcome:
    """What a run leaves: every field's declaration and final value, and its statistics."""

    fields: dict[str, Field]
    state: dict[str, Any]
    stats: Stats


def execute(program: Program, shard: Shard, config: RunConfig, arguments: dict[str, Any]) -> Outcome:
    """Run all phases of ``program`` on one shard."""
    plan = plan_of(program, shard, config.direction)
    state, frontier = begin(program, plan.fields, shard, arguments)
    trace = Trace(keeps_rows=config.stats == "full")
    began = time.perf_counter()
    peak = _run_phases(program, plan, shard, state, frontier, config, trace) if shard.graph.num_vertices else 0
    seconds = time.perf_counter() - began
    peak += sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))
    num_threads = shard.device.threads_for(shard.graph)
    stats = Stats(seconds, peak, config.resolved(), trace, type(program).__name__, num_threads)
    return Outcome(plan.fields, state, stats)


def _run_phases(
    program: Program, plan: Plan, shard: Shard, state: dict[str, Any], frontier: np.ndarray | None, config: RunConfig,
    trace: Trace,
) -> int:  # fmt: skip
    """Run the phases in order; return the largest memory that the buffers of one took."""
    workspace = shard.acquire_workspace()
    title = type(program).__name__
    peak = 0
    for phase, code in plan.phases:
        first = None if phase.begin == "all" else frontier
        run = PhaseRun(code, phase, shard, workspace, state, first, config.do_a, config.do_b, title)
        _run_to_the_end(title, phase, run, workspace, trace)
        peak = max(peak, run.nbytes)
    shard.release_workspace(workspace)  # not after a failure: whoever was interrupted may still hold it
    return peak


def _run_to_the_end(title: str, phase: Phase, run: PhaseRun, workspace: Workspace, trace: Trace) -> None:
    """Run one phase to its end."""
    if phase.max_supersteps == 0 or run.is_empty:
        workspace.num_levels = 0  # of this phase there is nothing to replay, nor of an earlier run's
        return
    while True:
        reason = run.resume()
        for rows in run.rows:
            trace.add(rows)
        run.rows.clear()
        if reason == Reason.DONE:
            return
        if reason == Reason.NEEDS_MEMORY:
            run.grow()
        elif reason == Reason.OVERFLOW:
            raise ProgramError(
                f"{title}: a vertex joined more frontiers than the phase allows (joins={phase.joins}) "
                "or twice in a superstep although the rule is said to be unique"
            )
