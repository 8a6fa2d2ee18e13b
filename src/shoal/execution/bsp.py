# SPDX-License-Identifier: Apache-2.0
"""Bulk-synchronous execution: phase after phase, supersteps inside compiled loops.

Python enters only when the loops come back with a reason: done, more memory, or a full trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shoal.backends import find_backend
from shoal.backends.base import DEALS, REGROUPS, Backend, Reason, Regrouping, Run, Shard
from shoal.checkpoint.record import current_record
from shoal.config import RunConfig, parse_bytes
from shoal.errors import Allocating, ProgramError
from shoal.execution.binding import begin
from shoal.execution.choices import explain
from shoal.execution.edges import describe_edges, ends_of
from shoal.execution.keeping import Keeper, run_recorded
from shoal.execution.plans import Plan, plan_of
from shoal.machine import base_folder
from shoal.placement import Placed
from shoal.program import Field, Program, Vertex
from shoal.stats import PhaseSpan, Stats, Trace
from shoal.strategies.communication import make_schedule
from shoal.strategies.memory import SCHEMES, Allowance, Budget, factors_of


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
        if plan.is_alone:
            shards = placed.alone.shards
        else:
            shards = placed.shards_for(plan.choices.duplication, with_in_edges=plan.uses_in_edges)
    if config.output == "device":
        shards[0].device.check_output()
    budgets = [_budget(title, plan, shard, config) for shard in shards]
    with Allocating(title + ":", "the fields of", str(placed.graph.num_vertices), "vertices"):
        state, frontier = begin(program, plan.fields, plan.dtypes, placed.graph, shards[0].device, arguments)
    run = _Run(plan, shards, config, title, budgets, [Trace(keeps_rows=config.stats == "full") for _ in shards])
    began = time.perf_counter()
    backend, record = find_backend(placed.kind), current_record()
    if placed.graph.num_vertices == 0:
        if config.output == "device":
            _upload(plan, shards[0], state)
    elif record is None:
        with Allocating(title + ":", "the buffers of the run"):
            run.go(backend, state, frontier)
    else:
        began -= run_recorded(record, run, backend, state, frontier)
    seconds = time.perf_counter() - began
    peaks = [budget.num_bytes + peak for budget, peak in zip(budgets, run.peaks, strict=True)]
    num_idle = placed.num_devices - len(shards)
    peaks += [0] * num_idle
    traces = run.traces + [run.traces[0].without_work() for _ in range(num_idle)]
    if plan.is_alone:
        run.traffic.append(partial(np.zeros, (placed.num_devices, placed.num_devices), np.int64))
    total = sum(peaks) + _bytes_beside(plan, shards, state)
    num_threads = sum(shard.device.threads_for(placed.graph) for shard in shards)
    devices = config.resolved()["devices"] if placed.devices == "auto" else placed.devices
    edges, why = describe_edges(placed.graph, placed.kind, ends_of(placed.graph, shards))
    taken = {"devices": devices, "memory": run.memory, "edges": edges}
    resolved = config.resolved() | taken | plan.choices.resolved()
    reasons = partial(explain, config, placed.kind, plan.choices, run.memory, why, is_alone=plan.is_alone)
    stats = Stats(seconds, total, resolved, traces, title, num_threads, device_peaks=peaks, phases=run.spans,
                  traffic=run.traffic, thefts=run.thefts, regroupings=run.regroupings, explain=reasons)  # fmt: skip
    return Outcome(plan.fields, state, stats)


def _budget(title: str, plan: Plan, shard: Shard, config: RunConfig) -> Budget:
    """Return what a run may take on a device; its fields are counted, and refused if they alone are too much."""
    limit = parse_bytes("memory_limit", config.memory_limit)
    num_bytes = plan.bytes_per_vertex * shard.num_local + plan.other_bytes
    budget = Budget(limit, title, f"device {shard.device.name}", num_bytes)
    budget.check(0)
    return budget


def _upload(plan: Plan, shard: Shard, state: dict[str, Any]) -> None:
    """Put the fields of no vertices on the device, so that a result's arrays are of one kind on every graph."""
    for name, declared in plan.fields.items():
        if isinstance(declared, Vertex):
            state[name] = shard.device.upload(state[name])


def _bytes_beside(plan: Plan, shards: tuple[Shard, ...], state: dict[str, Any]) -> int:
    """Return the bytes of arrays that are no device's own: constants, and a state that no device numbers alike."""
    part = shards[0].part
    names: Iterable[str] = plan.constants
    if part is not None and part.global_ids is not None:
        names = state
    return sum([state[name].nbytes for name in names if isinstance(state[name], np.ndarray)])


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
        self.spans: list[PhaseSpan] = []
        self.traffic: list[Callable[[], np.ndarray] | None] = []
        self.thefts: np.ndarray | None = None  # edges by their owner and who visited them, where devices steal
        if plan.choices.stealing in DEALS:
            self.thefts = np.zeros((len(shards), len(shards)), np.int64)
        self.regroupings: list[Regrouping] | None = [] if plan.choices.stealing in REGROUPS else None

    def go(
        self, backend: Backend, state: dict[str, Any], frontier: np.ndarray | None, keeper: Keeper | None = None
    ) -> None:
        """Run the phases in order; the state is that of all vertices, at the begin and at the end.

        With a keeper the first phase may be a later one, in the middle of which an earlier run stood.
        """
        plan, config = self.plan, self.config
        schedule = None
        if plan.choices.communication is not None and not plan.is_alone:
            schedule = make_schedule(plan.choices.communication, len(self.shards), config.fanout)
        session = backend.begin(
            self.shards, plan.fields, plan.phases, schedule, state, (config.do_a, config.do_b), self.title, self.scheme
        )
        for number, (phase, _) in enumerate(plan.phases):
            if keeper is not None and keeper.is_over(number):
                continue
            allowances = [Allowance(self.scheme, self._factor(number), budget) for budget in self.budgets]
            begin: Any = session.begin_phase if keeper is None else keeper.beginning(session)
            run = begin(number, None if phase.begin == "all" else frontier, allowances)
            if phase.max_supersteps == 0 or run.is_empty:
                session.skip_phase()
            else:
                first = self.traces[0].num_supersteps
                self._run_to_the_end(number, run, keeper)
                if len(self.shards) > 1:
                    self.traffic.append(run.traffic)
                if self.thefts is not None:
                    self.thefts += run.thefts
                if self.regroupings is not None:
                    self.regroupings += [each._replace(superstep=first + each.superstep) for each in run.regroupings]
            self.peaks = list(map(max, self.peaks, run.peaks))
            del run  # what only it needed makes room for the next
        if config.output == "device":
            session.hand_over(state)
        else:
            session.end(state)

    def _factor(self, number: int) -> float:
        """Return how much room earlier runs on the graph needed in a phase, in parts of a device's vertices."""
        if not self._records(number):
            return 1.0
        return factors_of(self.shards[0].graph, base_folder()).get(self._key(number))

    def _records(self, number: int) -> bool:
        """Whether what a phase needs is learnt from earlier runs."""
        return self.scheme.is_recorded and self.plan.phases[number][1].is_open

    def _key(self, number: int) -> str:
        return f"{self.title} {number} {len(self.shards)}"

    def _run_to_the_end(self, number: int, run: Run, keeper: Keeper | None) -> None:
        phase = self.plan.phases[number][0]
        before = self.traces[0].num_supersteps
        reason = Reason.RUNNING
        while reason != Reason.DONE:
            if keeper is not None:
                keeper.ask(run)
            reason = run.resume()
            for chunks, trace in zip(run.take_rows(), self.traces, strict=True):
                for rows in chunks:
                    trace.add(rows)
            if keeper is not None:
                keeper.look(number, run, reason, self.traces[0].num_supersteps)
            if reason == Reason.NEEDS_MEMORY:
                run.grow()
            elif reason == Reason.OVERFLOW:
                raise ProgramError(
                    f"{self.title}: a vertex joined more frontiers than the phase allows (joins={phase.joins}) "
                    "or twice in a superstep although the rule is said to be unique"
                )
        if self.traces[0].keeps_rows:
            step = getattr(phase.step, "__name__", "step")
            self.spans.append(PhaseSpan(self.title, step, self.traces[0].num_supersteps - before))
        if self._records(number):
            factors_of(self.shards[0].graph, base_folder()).keep(self._key(number), run.room_factor)
