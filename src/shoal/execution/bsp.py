# SPDX-License-Identifier: Apache-2.0
"""Bulk-synchronous execution: phase after phase, supersteps inside compiled loops.

Python enters only when the loops come back with a reason: done, more memory, or a full trace.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.backends.cpu.backend import Shard, Workspace
from shoal.backends.cpu.control import Reason
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.config import RunConfig
from shoal.errors import Allocating, ProgramError
from shoal.execution.binding import begin
from shoal.execution.distribution import Distribution
from shoal.execution.plans import Plan, plan_of
from shoal.placement import Placed
from shoal.program import Field, Phase, Program
from shoal.stats import Stats, Trace


@dataclass
class Outcome:
    """What a run leaves: every field's declaration and final value, and its statistics."""

    fields: dict[str, Field]
    state: dict[str, Any]
    stats: Stats


def execute(program: Program, placed: Placed, config: RunConfig, arguments: dict[str, Any]) -> Outcome:
    """Run all phases of ``program`` on the devices of a placed graph."""
    title = type(program).__name__
    if config.duplication == "auto" != placed.duplication:
        config = replace(config, duplication=placed.duplication)
    plan = plan_of(program, placed, config)
    with Allocating(title + ":", "the parts of the graph"):
        shards = placed.shards_for(plan.choices.duplication, with_in_edges=plan.uses_in_edges)
    with Allocating(title + ":", "the fields of", str(placed.graph.num_vertices), "vertices"):
        state, frontier = begin(program, plan.fields, placed.graph, shards[0].device, arguments)
    traces = [Trace(keeps_rows=config.stats == "full") for _ in shards]
    began = time.perf_counter()
    peak = 0
    if placed.graph.num_vertices:
        run = _run_on_one if len(shards) == 1 else _run_on_many
        with Allocating(title + ":", "the buffers of the run"):
            peak = run(program, plan, shards, state, frontier, config, traces)
    seconds = time.perf_counter() - began
    peak += sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))
    num_threads = sum(shard.device.threads_for(placed.graph) for shard in shards)
    resolved = config.resolved() | plan.choices.resolved()
    return Outcome(plan.fields, state, Stats(seconds, peak, resolved, traces, title, num_threads))


def _run_on_one(
    program: Program, plan: Plan, shards: tuple[Shard, ...], state: dict[str, Any], frontier: np.ndarray | None,
    config: RunConfig, traces: list[Trace],
) -> int:  # fmt: skip
    """Run the phases in order; return the largest memory that the buffers of one took."""
    shard = shards[0]
    workspace = shard.acquire_workspace()
    title = type(program).__name__
    peak = 0
    for phase, code in plan.phases:
        first = None if phase.begin == "all" else frontier
        run = PhaseRun(code, phase, shard, workspace, state, first, config.do_a, config.do_b, title)
        _run_to_the_end(title, phase, run, [workspace], [run], traces)
        peak = max(peak, run.nbytes)
    shard.release_workspace(workspace)  # not after a failure: whoever was interrupted may still hold it
    return peak


def _run_on_many(
    program: Program, plan: Plan, shards: tuple[Shard, ...], state: dict[str, Any], frontier: np.ndarray | None,
    config: RunConfig, traces: list[Trace],
) -> int:  # fmt: skip
    """Run the phases in order on several devices, each with its part of the state; gather the state at the end."""
    workspaces = [shard.acquire_workspace() for shard in shards]
    distribution = Distribution(plan, shards, workspaces, state, config)
    title = type(program).__name__
    peak = 0
    for number, (phase, code) in enumerate(plan.phases):
        first = None if phase.begin == "all" else frontier
        if number > 0:
            distribution.refresh_copies(code.source.flow.sharing)
        run = distribution.begin_phase(code, phase, first, title)
        _run_to_the_end(title, phase, run, workspaces, run.runs, traces)
        peak = max(peak, run.nbytes)
    distribution.gather(state)
    for shard, workspace in zip(shards, workspaces, strict=True):
        shard.release_workspace(workspace)
    return peak + distribution.nbytes


def _run_to_the_end(
    title: str, phase: Phase, run: PhaseRun | ManyRuns, workspaces: list[Workspace], parts: list[PhaseRun],
    traces: list[Trace],
) -> None:  # fmt: skip
    """Run one phase to its end."""
    if phase.max_supersteps == 0 or run.is_empty:
        for workspace in workspaces:
            workspace.num_levels = 0  # of this phase there is nothing to replay, nor of an earlier run's
        return
    while True:
        reason = run.resume()
        for part, trace in zip(parts, traces, strict=True):
            for rows in part.rows:
                trace.add(rows)
            part.rows.clear()
        if reason == Reason.DONE:
            return
        if reason == Reason.NEEDS_MEMORY:
            run.grow()
        elif reason == Reason.OVERFLOW:
            raise ProgramError(
                f"{title}: a vertex joined more frontiers than the phase allows (joins={phase.joins}) "
                "or twice in a superstep although the rule is said to be unique"
            )
