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
from shoal.backends.cpu.compiler import base_folder
from shoal.backends.cpu.control import Reason
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.config import RunConfig, parse_bytes
from shoal.errors import Allocating, ProgramError
from shoal.execution.binding import begin, state_bytes
from shoal.execution.distribution import Distribution
from shoal.execution.plans import Plan, plan_of
from shoal.placement import Placed
from shoal.program import Constant, Field, Program
from shoal.stats import Stats, Trace
from shoal.strategies.memory import EDGES, RECORDED, SCHEMES, Allowance, Budget, factors_of


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
    budgets = [_budget(title, plan, shard, config) for shard in shards]
    with Allocating(title + ":", "the fields of", str(placed.graph.num_vertices), "vertices"):
        state, frontier = begin(program, plan.fields, placed.graph, shards[0].device, arguments)
    run = _Run(plan, shards, config, title, budgets, [Trace(keeps_rows=config.stats == "full") for _ in shards])
    began = time.perf_counter()
    if placed.graph.num_vertices:
        with Allocating(title + ":", "the buffers of the run"):
            if len(shards) == 1:
                run.on_one(state, frontier)
            else:
                run.on_many(state, frontier)
    seconds = time.perf_counter() - began
    peaks = [budget.num_bytes + peak for budget, peak in zip(budgets, run.peaks, strict=True)]
    total = sum(peaks) + _bytes_beside(plan, shards, state)
    num_threads = sum(shard.device.threads_for(placed.graph) for shard in shards)
    resolved = config.resolved() | {"memory": run.memory} | plan.choices.resolved()
    stats = Stats(seconds, total, resolved, run.traces, title, num_threads, device_peaks=peaks)
    return Outcome(plan.fields, state, stats)


def _budget(title: str, plan: Plan, shard: Shard, config: RunConfig) -> Budget:
    """Return what a run may take on a device; its fields are counted, and refused if they alone are too much."""
    limit = parse_bytes("memory_limit", config.memory_limit)
    num_bytes = state_bytes(plan.fields, shard.num_local, shard.graph.indices.dtype)
    budget = Budget(limit, title, f"device {shard.device.name}", num_bytes)
    budget.check(0)
    return budget


def _bytes_beside(plan: Plan, shards: tuple[Shard, ...], state: dict[str, Any]) -> int:
    """Return the bytes of arrays that are no device's own: constants, and a state that no device numbers alike."""
    part = shards[0].part
    is_beside = part is not None and part.global_ids is not None
    return sum(
        value.nbytes
        for name, value in state.items()
        if isinstance(value, np.ndarray) and (is_beside or isinstance(plan.fields[name], Constant))
    )


class _Run:
    """A run of a program: its phases in order, and what they took."""

    def __init__(
        self, plan: Plan, shards: tuple[Shard, ...], config: RunConfig, title: str, budgets: list[Budget],
        traces: list[Trace],
    ) -> None:  # fmt: skip
        self.plan, self.shards, self.config, self.title = plan, shards, config, title
        self.budgets, self.traces = budgets, traces
        self.memory = plan.memory if config.memory == "auto" else config.memory
        self.scheme = SCHEMES[self.memory]
        self.peaks = [0] * len(shards)  # bytes of each device's buffers

    def on_one(self, state: dict[str, Any], frontier: np.ndarray | None) -> None:
        """Run the phases on one device."""
        shard = self.shards[0]
        (workspace,) = workspaces = self._acquire()
        for number, (phase, code) in enumerate(self.plan.phases):
            first = None if phase.begin == "all" else frontier
            allowance = Allowance(self.scheme, self._factor(number), self.budgets[0])
            run = PhaseRun(code, phase, shard, workspace, state, first, self.config.do_a, self.config.do_b, self.title,
                           allowance)  # fmt: skip
            self._run_to_the_end(number, run, workspaces, [run])
            self.peaks[0] = max(self.peaks[0], run.peak_bytes)
        self._release(workspaces)

    def on_many(self, state: dict[str, Any], frontier: np.ndarray | None) -> None:
        """Run the phases on several devices, each with its part of the state; gather the state at the end."""
        workspaces = self._acquire()
        distribution = Distribution(self.plan, self.shards, workspaces, state, self.config, self.budgets)
        for number, (phase, code) in enumerate(self.plan.phases):
            first = None if phase.begin == "all" else frontier
            if number > 0:
                distribution.refresh_copies(code.source.flow.sharing)
            run = distribution.begin_phase(code, phase, first, self.title, self.scheme, self._factor(number))
            self._run_to_the_end(number, run, workspaces, run.runs)
            self.peaks = list(map(max, self.peaks, run.peak_bytes))
        distribution.gather(state)
        self._release(workspaces)

    def _factor(self, number: int) -> float:
        """Return how much room earlier runs on the graph needed in a phase, in parts of a device's vertices."""
        if self.scheme.first != RECORDED:
            return 1.0
        return factors_of(self.shards[0].graph, base_folder()).get(self._key(number))

    def _key(self, number: int) -> str:
        return f"{self.title} {number} {len(self.shards)}"

    def _acquire(self) -> list[Workspace]:
        """Return buffers for each device; a queue as long as there are edges is not for runs that never need it."""
        workspaces = [shard.acquire_workspace() for shard in self.shards]
        for workspace in workspaces:
            if workspace.has_edges_room and self.scheme.most != EDGES:
                workspace.drop_queue()
            workspace.has_edges_room = self.scheme.most == EDGES
        return workspaces

    def _release(self, workspaces: list[Workspace]) -> None:
        """Keep the buffers for the next run; not after a failure: whoever was interrupted may still hold them."""
        for shard, workspace in zip(self.shards, workspaces, strict=True):
            shard.release_workspace(workspace)

    def _run_to_the_end(
        self, number: int, run: PhaseRun | ManyRuns, workspaces: list[Workspace], parts: list[PhaseRun]
    ) -> None:
        """Run one phase to its end."""
        phase, code = self.plan.phases[number]
        if phase.max_supersteps == 0 or run.is_empty:
            for workspace in workspaces:
                workspace.num_levels = 0  # of this phase there is nothing to replay, nor of an earlier run's
            return
        reason = Reason.RUNNING
        while reason != Reason.DONE:
            reason = run.resume()
            for part, trace in zip(parts, self.traces, strict=True):
                for rows in part.rows:
                    trace.add(rows)
                part.rows.clear()
            if reason == Reason.NEEDS_MEMORY:
                run.grow()
            elif reason == Reason.OVERFLOW:
                raise ProgramError(
                    f"{self.title}: a vertex joined more frontiers than the phase allows (joins={phase.joins}) "
                    "or twice in a superstep although the rule is said to be unique"
                )
        flow = code.source.flow
        if self.scheme.first == RECORDED and (flow.grows or flow.ordered is not None):
            factors_of(self.shards[0].graph, base_folder()).keep(self._key(number), run.room_factor)
