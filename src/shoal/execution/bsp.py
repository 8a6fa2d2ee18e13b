# SPDX-License-Identifier: Apache-2.0
"""Bulk-synchronous execution: phase after phase, supersteps inside compiled loops.

Python enters only when a loop comes back with a reason: done, more memory, a full trace, or a request to stop.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends.cpu.backend import Shard, field_dtype
from shoal.backends.cpu.control import Reason
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.config import RunConfig
from shoal.errors import ArgumentError, ProgramError
from shoal.program import Constant, Field, Phase, Program, Vertex
from shoal.stats import Stats

MAX_PLANS = 1024  # a plan is some kilobytes; a caller with ever new cutoffs must not fill the memory
_plans: dict[Any, tuple[dict[str, Field], list[tuple[Phase, Any]]]] = {}


@dataclass
class Outcome:
    """What a run leaves: every field's final value, and its statistics."""

    state: dict[str, Any]
    stats: Stats


def execute(program: Program, shard: Shard, config: RunConfig, arguments: dict[str, Any]) -> Outcome:
    """Run all phases of ``program`` on one shard."""
    fields, phases = _plan(program, shard, config.direction)
    bound, state = _bind(program, fields, shard)
    frontier = _start(program, bound, fields, state, arguments, shard)
    workspace = shard.acquire_workspace()
    began = time.perf_counter()
    rows: list[np.ndarray] = []
    peak = 0
    try:
        if shard.graph.num_vertices > 0:
            for phase, code in phases:
                phase_rows, nbytes = _run_phase(program, phase, code, shard, workspace, state, frontier, config)
                rows += phase_rows
                peak = max(peak, nbytes)
    finally:
        shard.release_workspace(workspace)
    seconds = time.perf_counter() - began
    peak += sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))
    trace = np.concatenate(rows) if rows else np.empty((0, 6), np.int64)
    stats = Stats(
        seconds, peak, config.resolved(), trace, type(program).__name__, shard.device.threads_for(shard.graph)
    )
    return Outcome(state, stats)


def _plan(program: Program, shard: Shard, direction: str) -> tuple[dict[str, Field], list[tuple[Phase, Any]]]:
    """Return a program's fields and compiled phases; the same program on the same types is planned once."""
    try:
        key = (type(program), tuple(vars(program).items()), shard.types, direction)
        if key in _plans:
            return _plans[key]
    except TypeError:  # an attribute that cannot be hashed: plan it anew
        key = None
    phases = program.phases()
    plan = program.fields(), [(phase, shard.device.load(program, phase, shard, direction)) for phase in phases]
    if key is not None:
        if len(_plans) >= MAX_PLANS:
            _plans.clear()
        _plans[key] = plan
    return plan


def _bind(program: Program, fields: dict[str, Field], shard: Shard) -> tuple[Program, dict[str, Any]]:
    """Return a copy of the program whose fields are arrays, and those arrays."""
    bound = copy.copy(program)
    state: dict[str, Any] = {}
    for name, declared in fields.items():
        if isinstance(declared, Constant):
            state[name] = None
            continue
        length = shard.graph.num_vertices if isinstance(declared, Vertex) else 1
        shape = (length, declared.width) if isinstance(declared, Vertex) and declared.width else length
        dtype = field_dtype(declared, shard.graph.indices.dtype)
        state[name] = shard.device.allocate(shape, dtype, declared.fill)
        setattr(bound, name, state[name])
    bound.num_vertices = shard.graph.num_vertices  # type: ignore[attr-defined]
    return bound, state


def _start(
    program: Program, bound: Program, fields: dict[str, Field], state: dict[str, Any], arguments: dict, shard: Shard
) -> np.ndarray | None:
    """Let the program set its initial values; return the first frontier."""
    try:
        first = bound.start(**arguments)
    except TypeError as error:
        if "start()" in str(error):
            raise ArgumentError(
                f"{type(program).__name__}: {error}".replace(f"{type(program).__name__}.", "")
            ) from None
        raise
    for name, declared in fields.items():
        if isinstance(declared, Constant):
            state[name] = _constant(program, name, declared, getattr(bound, name), shard)
    if first is None:
        return None
    frontier = np.asarray(first, dtype=np.int64)
    if len(frontier) > 1:
        frontier = np.unique(frontier)
    if len(frontier) and (frontier[0] < 0 or frontier[-1] >= shard.graph.num_vertices):
        bad = frontier[0] if frontier[0] < 0 else frontier[-1]
        raise ArgumentError(f"start() returned vertex {bad}; allowed: 0 to {shard.graph.num_vertices - 1}")
    return frontier


def _constant(program: Program, name: str, declared: Constant, value: Any, shard: Shard) -> Any:
    if isinstance(value, Constant):
        raise ProgramError(f"{type(program).__name__}.{name} is a constant that start() did not set")
    dtype = field_dtype(declared, shard.graph.indices.dtype)
    return np.ascontiguousarray(value, dtype) if declared.is_array else dtype.type(value)


def _run_phase(
    program: Program, phase: Phase, code: Any, shard: Shard, workspace: Any, state: dict[str, Any],
    frontier: np.ndarray | None, config: RunConfig,
) -> tuple[list[np.ndarray], int]:  # fmt: skip
    """Run one phase to its end; return its trace and the memory of its buffers."""
    first = None if phase.begin == "all" else frontier
    run = PhaseRun(code, phase, shard, workspace, state, first, config.do_a, config.do_b)
    if phase.max_supersteps == 0 or run.is_empty:
        return run.rows, run.nbytes
    while True:
        reason = run.resume()
        if reason == Reason.DONE:
            return run.rows, run.nbytes
        if reason == Reason.NEEDS_MEMORY:
            run.grow()
        elif reason == Reason.OVERFLOW:
            raise ProgramError(
                f"{type(program).__name__}: a vertex joined more frontiers than the phase allows (joins={phase.joins}) "
                "or twice in a superstep although the rule is said to be unique"
            )
        elif reason == Reason.STOPPED:
            raise KeyboardInterrupt
