# SPDX-License-Identifier: Apache-2.0
"""Plans: a program's fields, checked, and its phases, compiled for the types of a graph.

The same program on the same types is planned once.  Programs are the same if their class and attributes are; that can
be told of plain attributes only (numbers, words, fields, rules), so a program with others is planned at every run.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.backends import find_backend
from shoal.backends.base import Code, Types, graph_types
from shoal.config import RunConfig
from shoal.errors import ArgumentError, ProgramError
from shoal.exchanges import Sharing
from shoal.execution.binding import state_bytes
from shoal.execution.choices import SINGLE, Choices, choose
from shoal.execution.edges import reason_to_leave
from shoal.operators import CALLBACKS, force_direction, record
from shoal.placement import Placed
from shoal.program import Constant, Field, Phase, Program, Scalar, Vertex, check_vertex_fills, field_dtype
from shoal.rules import Rule
from shoal.worklists import why_not

MAX_PLANS = 1024  # a plan is some kilobytes; a caller with ever new cutoffs must not fill the memory
MAX_ITEMS = 64  # of a word or tuple in a key: plans must not keep a caller's data alive

_PLAIN = frozenset((type(None), bool, int, float, Vertex, Scalar, Constant, Rule))


@dataclass(frozen=True)
class Plan:
    """What every run of a program on graphs of the same types begins with."""

    fields: dict[str, Field]
    dtypes: dict[str, Any]  # of their elements
    phases: list[tuple[Phase, Code]]  # with their compiled code
    choices: Choices = SINGLE
    is_alone: bool = False  # the first device does the work of all
    memory: str = "fused"  # what ``auto`` means
    bytes_per_vertex: int = 0
    other_bytes: int = 0  # of scalars

    @cached_property
    def constants(self) -> list[str]:
        """Names of the fields that no run changes."""
        return [name for name, declared in self.fields.items() if isinstance(declared, Constant)]

    @cached_property
    def uses_in_edges(self) -> bool:
        """Whether any phase looks at incoming edges."""
        return any(code.uses_in_edges for _, code in self.phases)


_plans: dict[Any, Plan] = {}
_lock = threading.Lock()  # held to write: of readers, each looks up once and keeps what it found


def plan_of(program: Program, placed: Placed, config: RunConfig) -> Plan:
    """Return the plan of a program on a placed graph, made now or at an earlier run."""
    types = graph_types(placed.graph)
    wanted: Any = (
        placed.kind, config.direction, config.load_balance, config.execution, config.priority, config.stealing,
    )  # fmt: skip
    if placed.num_devices > 1:
        wanted = (
            *wanted, placed.num_devices, config.duplication, config.communication, _may_be_alone(placed, config),
            reason_to_leave(placed),
        )  # fmt: skip
    try:
        attributes = vars(program).items()
        key = (type(program), *((name, _identity(value)) for name, value in attributes), types, wanted)
        plan = _plans.get(key)
    except TypeError:  # an attribute that is not plain
        return _make_plan(program, placed, types, config)
    if plan is None:
        plan = _make_plan(program, placed, types, config)
        with _lock:
            while len(_plans) >= MAX_PLANS:
                del _plans[next(iter(_plans))]  # the oldest
            _plans[key] = plan
    return plan


def _identity(value: Any) -> Any:
    """Return what stands for a plain value in a key, with its type: 1, 1.0 and True are equal, yet not the same."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is str and len(value) <= MAX_ITEMS:
        return value
    if kind is tuple and len(value) <= MAX_ITEMS:
        return tuple(map(_identity, value))
    raise TypeError(f"{kind.__name__} is not plain")


def _make_plan(program: Program, placed: Placed, types: Types, config: RunConfig) -> Plan:
    fields = program.fields()
    check_vertex_fills(program, fields, types[0])
    phases = program.phases()
    _check_phases(program, phases)
    if config.direction != "auto":
        _check_direction(program, phases, config.direction)
    choices, is_alone = SINGLE, False
    if placed.num_devices > 1:
        sharings = [sharing_of(program, phase, config.direction) for phase in phases]
        choices = choose(sharings, config, placed.kind, placed.num_devices, reason_to_leave(placed))
        is_alone = _may_be_alone(placed, config) and not any(sharing.is_steered for sharing in sharings)
    backend = find_backend(placed.kind)
    how = (config.direction, None if is_alone else choices.duplication, config.load_balance)
    priorities = [priority_of(program, phase, config) for phase in phases]
    if config.execution == "async" and not any(priorities):
        raise ArgumentError(f"execution='async' is not possible: {type(program).__name__} has phases of one superstep "
                            "only; allowed: auto, bsp")  # fmt: skip
    loaded = [
        backend.load(program, phase, types, *how, priority, choices.stealing or "none")
        for phase, priority in zip(phases, priorities, strict=True)
    ]
    # As in the paper, section VI-B: fixed where the program puts out nothing whose size the run would have to find.
    memory = "fused" if any(code.is_open for code in loaded) else "fixed"
    bytes_per_vertex, others = (state_bytes(fields, count, types[0]) for count in (1, 0))
    dtypes = {name: field_dtype(declared, types[0]) for name, declared in fields.items()}
    return Plan(
        fields, dtypes, list(zip(phases, loaded, strict=True)), choices, is_alone, memory, bytes_per_vertex - others,
        others,
    )  # fmt: skip


def _may_be_alone(placed: Placed, config: RunConfig) -> bool:
    """Whether one device, which has all edges, does sooner without supersteps what several would share."""
    is_little = placed.graph.num_edges < find_backend(placed.kind).least_shared_edges
    return config.execution == "async" and is_little and placed.has_whole_graph


def priority_of(program: Program, phase: Phase, config: RunConfig) -> str | None:
    """Return by which priority a phase goes without supersteps, and None if it goes in supersteps."""
    recording = record(program, phase.step)
    if config.execution != "async":
        if any(role in operator.rules for operator in recording.operators for role in CALLBACKS):
            raise ArgumentError(f"execution={config.execution!r} is not possible: {type(program).__name__} has "
                                "callbacks for what travels without supersteps; allowed: async")  # fmt: skip
        return None
    force_direction(recording, "push")
    reason = why_not(recording, phase)
    if reason is None:
        return str(config.resolved()["priority"])
    if phase.max_supersteps == 1:
        return None  # there is nothing that could wait for a second
    raise ArgumentError(f"execution='async' is not possible: {reason}; allowed: auto, bsp")


def sharing_of(program: Program, phase: Phase, direction: str) -> Sharing:
    """Return what devices exchange in a phase."""
    recording = record(program, phase.step)
    force_direction(recording, direction)
    return Sharing(recording, phase)


def _check_phases(program: Program, phases: Any) -> None:
    """Refuse what is no list of phases, and a replay of frontiers that nobody kept."""
    name = type(program).__name__
    if not isinstance(phases, (list, tuple)) or not phases or not all(isinstance(item, Phase) for item in phases):
        raise ProgramError(f"{name}.phases returned {phases!r}; it must return a list of at least one Phase")
    for number, phase in enumerate(phases):
        if phase.begin == "replay" and (number == 0 or not phases[number - 1].keep):
            raise ProgramError(f"{name}: phase {number} has begin='replay', but there is no phase right before it that "
                               "keeps its frontiers; give that one keep=True and joins=")  # fmt: skip


def _check_direction(program: Program, phases: list[Phase], direction: str) -> None:
    """Refuse a direction that the program cannot take: what counts are the advances that make frontiers, if any do."""
    making: set[str] = set()
    other: set[str] = set()
    for recording in (record(program, phase.step) for phase in phases):
        used = [recording.result, *(operator.frontier for operator in recording.operators)]
        for operator in recording.operators:
            if operator.kind == "advance":
                is_used = any(operator.output is frontier for frontier in used)
                (making if is_used else other).add(operator.options["direction"])
    possible = making or other
    if possible and not possible & {"auto", direction}:
        name, allowed = type(program).__name__, ", ".join(sorted(possible))
        raise ArgumentError(
            f"direction={direction!r} is not possible: {name} has no {direction} form; allowed: auto, {allowed}"
        )
