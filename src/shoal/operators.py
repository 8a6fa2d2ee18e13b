# SPDX-License-Identifier: Apache-2.0
"""Operators: the vocabulary of a step.  Calling one records it; a backend compiles the recording.

advance   visit the edges of a frontier; destinations for which the rule says True make the next frontier
gather    for every vertex, combine a value over its incoming edges, then finish the vertex
tally     for every vertex, sum a value over its incoming edges by key, then hand it each key with its sum
intersect visit edges with the number of neighbours that their two ends have in common
filter    keep the vertices for which a rule says True
compute   run a rule on every vertex of a frontier
reduce    combine what a rule returns for every vertex into scalars
update    set a scalar from scalars
swap      exchange two fields of the same type
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import ProgramError, check_choice, check_integer
from shoal.program import Combiner, Field, Phase, Program, Scalar, Vertex, add, maximum, minimum
from shoal.rules import RESERVED, Rule
from shoal.values import shown

DIRECTIONS = ("auto", "push", "pull")
GATHER_DTYPES = ("float64", "int64")
#: Rules that say what travels between devices, where an advance goes without supersteps.
CALLBACKS = ("pack", "unpack", "on_send", "on_receive")


@dataclass(frozen=True, eq=False)
class Frontier:
    """A set of vertices while a step is recorded: the step's input, every vertex, or an operator's output."""

    kind: str  # "input", "all" or "output"


#: Every vertex of the graph.
everything = Frontier("all")


@dataclass(frozen=True, eq=False)
class Operator:
    """One recorded operator: its kind, where its vertices come from and go, its rules by role, and its options."""

    kind: str
    frontier: Frontier | None
    output: Frontier | None = None
    rules: dict[str, Rule] = field(default_factory=dict)
    into: tuple[str, ...] = ()
    combine: Combiner | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Recording:
    """The operators of one step, in order, and the frontier it returned."""

    program: Program
    fields: dict[str, Field]
    frontier: Frontier = field(default_factory=lambda: Frontier("input"))
    operators: list[Operator] = field(default_factory=list)
    result: Frontier | None = None

    @property
    def title(self) -> str:
        """Name of the program's class."""
        return type(self.program).__name__

    @property
    def uses_weights(self) -> bool:
        """Whether a rule asks for an edge's weight."""
        return any("weight" in rule.parameters for operator in self.operators for rule in operator.rules.values())

    def name_of(self, value: Any) -> str:
        """Return the name under which the program declares ``value``."""
        names = [name for name, declared in self.fields.items() if declared is value]
        if not names:
            raise ProgramError(f"{shown(value)} is not a field of {self.title}; fields: {', '.join(self.fields)}")
        if len(names) > 1:
            raise ProgramError(f"{self.title}: {' and '.join(names)} are one declaration; declare each by itself")
        return names[0]

    def check_frontier(self, place: str, value: Any) -> Frontier:
        """Return ``value`` if it is a frontier of this step."""
        if not isinstance(value, Frontier):
            raise ProgramError(f"{place}: {shown(value)} is not a frontier; {_FRONTIERS}")
        made_here = [self.frontier, *(operator.output for operator in self.operators)]
        if value.kind != "all" and not any(value is frontier for frontier in made_here):
            raise ProgramError(f"{place}: this frontier was made by another step or program; {_FRONTIERS}")
        return value


_FRONTIERS = "a frontier is step's argument, everything, or what an operator of the same step returned"
_recording = threading.local()


def record(program: Program, step: Any) -> Recording:
    """Run ``step`` once with a stand-in frontier and return what it recorded."""
    recording = Recording(program, program.fields())
    outer = getattr(_recording, "current", None)
    _recording.current = recording
    try:
        result = step(recording.frontier)
    finally:
        _recording.current = outer
    place = f"{recording.title}.{getattr(step, '__name__', 'step')}"
    if result is not None:
        recording.result = recording.check_frontier(f"what {place} returns", result)
    if not recording.operators:
        raise ProgramError(f"{place} records no operator")
    return recording


def advance(
    frontier: Frontier,
    rule: Rule,
    *,
    where: Rule | None = None,
    direction: str = "push",
    early_exit: bool = True,
    unique: bool = False,
    priority: Rule | None = None,
    first_edges: int | None = None,
    skip_edges: int = 0,
    callbacks: Mapping[str, Rule] | None = None,
) -> Frontier:
    """Visit the edges of ``frontier``; destinations for which ``rule`` says True make the frontier returned.

    Parameters
    ----------
    where : a rule over a vertex: only destinations for which it is true are looked at; in a program that pulls, a
        vertex for which it is false stays so for the rest of the phase
    direction : ``"push"`` from the frontier, ``"pull"`` by the destinations (needs ``where``), or ``"auto"``
    early_exit : leave a destination as soon as ``where`` is no longer true of it; with False every edge counts: a push
        does not ask ``where`` at all, a pull asks once per destination
    unique : the author's word that in one superstep the rule says True at most once for a destination; without it
        the output is de-duplicated.  With ``priority``: that the rule says True only where it lowers the destination's
        priority, which nothing else changes; it saves a mark for each vertex that waits
    priority : a rule over a vertex that returns a whole number: the vertices of the lowest number go first
    first_edges, skip_edges : only so many edges of each vertex, after skipping so many (push without priority only)
    callbacks : rules that say what travels between devices without supersteps, by name: see
        `shoal.dataflow.DistributedWorklist`
    """
    check_choice("direction", direction, DIRECTIONS)
    if (first_edges is not None or skip_edges) and (direction != "push" or priority is not None):
        raise ProgramError("advance: first_edges and skip_edges need direction='push' and no priority")
    if direction != "push" and priority is not None:
        raise ProgramError(
            f"advance: direction={direction!r} and priority exclude each other; an ordered advance pushes"
        )
    if direction != "push" and where is None:
        raise ProgramError("advance: a pull needs where=, the rule that says which destinations still want a visit")
    rules = {"rule": _check_rule("advance", "rule", rule)}
    if where is not None:
        rules["where"] = _check_rule("advance", "where", where)
    if priority is not None:
        rules["priority"] = _check_rule("advance", "priority", priority)
    for name, callback in (callbacks or {}).items():
        rules[check_choice("callbacks", name, CALLBACKS)] = _check_rule("advance", name, callback)
    options = {
        "direction": direction,
        "early_exit": bool(early_exit),
        "unique": bool(unique),
        "first_edges": None if first_edges is None else check_integer("first_edges", first_edges, 0),
        "skip_edges": check_integer("skip_edges", skip_edges, 0),
    }
    output = Frontier("output")
    _append(Operator("advance", _check_frontier("advance", frontier), output, rules, options=options))
    return output


def gather(
    frontier: Frontier,
    rule: Rule,
    *,
    finish: Rule,
    combine: Combiner = add,
    dtype: str = "float64",
    into: Scalar | Sequence[Scalar] = (),
) -> None:
    """For every vertex, combine ``rule`` over its incoming edges and hand the total to ``finish`` as ``value``.

    ``finish`` stores what it wants; what it returns is combined into the scalars ``into``, each by its own combiner.
    ``dtype`` is the type of the total: ``"float64"``, or ``"int64"`` for whole numbers.
    """
    _current("gather")
    options = {"dtype": check_choice("dtype", dtype, GATHER_DTYPES)}
    if combine not in (add, minimum, maximum):
        raise ProgramError(f"gather: combine={combine!r} is not known; allowed: add, minimum, maximum")
    rules = {"rule": _check_rule("gather", "rule", rule), "finish": _check_rule("gather", "finish", finish)}
    _append(
        Operator("gather", _check_frontier("gather", frontier), None, rules, _names("gather", into), combine, options)
    )


def tally(frontier: Frontier, rule: Rule, *, key: Rule, choose: Rule) -> None:
    """For every vertex, sum ``rule`` over its incoming edges by ``key``; hand each key and its sum to ``choose``.

    Keys are whole numbers; sums are float64, in the order of the edges.  ``choose`` gets ``vertex``, ``key`` and
    ``value`` once for each key that the vertex's edges have, in the order in which they first come; it keeps what it
    wants in fields of its vertex.
    """
    given = {"rule": rule, "key": key, "choose": choose}
    rules = {role: _check_rule("tally", role, value) for role, value in given.items()}
    _append(Operator("tally", _check_frontier("tally", frontier), None, rules))


def intersect(frontier: Frontier, rule: Rule) -> None:
    """Run ``rule`` on every edge that leaves ``frontier``, with what is in both its ends' lists of neighbours.

    ``shared`` is the number of edges from ``dst`` to neighbours of ``src``, ``between`` that of edges from neighbours
    of ``src`` to ``dst``.  Neighbours are those that edges lead to; in an undirected graph the two are the same.  Work
    goes with the degree of every neighbour: where edges lead from lower to higher degrees, hubs cost little.
    """
    rules = {"rule": _check_rule("intersect", "rule", rule)}
    _append(Operator("intersect", _check_frontier("intersect", frontier), None, rules))


def filter(frontier: Frontier, rule: Rule) -> Frontier:
    """Return the vertices of ``frontier`` for which ``rule`` says True."""
    output = Frontier("output")
    rules = {"rule": _check_rule("filter", "rule", rule)}
    _append(Operator("filter", _check_frontier("filter", frontier), output, rules))
    return output


def compute(frontier: Frontier, rule: Rule) -> None:
    """Run ``rule`` on every vertex of ``frontier``."""
    rules = {"rule": _check_rule("compute", "rule", rule)}
    _append(Operator("compute", _check_frontier("compute", frontier), None, rules))


def reduce(frontier: Frontier, rule: Rule, *, into: Scalar | Sequence[Scalar]) -> None:
    """Combine what ``rule`` returns for every vertex into scalars, each by its own combiner, in a fixed order."""
    rules = {"rule": _check_rule("reduce", "rule", rule)}
    names = _names("reduce", into)
    if not names:
        raise ProgramError("reduce: into=() is not allowed; it must be a Scalar of the program, or several")
    _append(Operator("reduce", _check_frontier("reduce", frontier), None, rules, names))


def update(scalar: Scalar, rule: Rule) -> None:
    """Set ``scalar`` to what ``rule``, over fields and the superstep's number, returns."""
    if isinstance(scalar, (tuple, list)):
        raise ProgramError(f"update: {shown(scalar)} is not allowed; an update sets one Scalar")
    _append(Operator("update", None, None, {"rule": _check_rule("update", "rule", rule)}, _names("update", scalar)))


def swap(left: Field, right: Field) -> None:
    """Exchange two fields at the end of the superstep."""
    recording = _current("swap")
    names = recording.name_of(left), recording.name_of(right)
    for name, declared in zip(names, (left, right), strict=True):
        if not isinstance(declared, (Vertex, Scalar)):
            raise ProgramError(f"swap: {name} is a {type(declared).__name__}, which does not change")
    if _shape(left) != _shape(right):
        raise ProgramError(f"swap: {names[0]} and {names[1]} are of different types: {left} and {right}")
    _append(Operator("swap", None, None, {}, names))


def _shape(declared: Field) -> tuple:
    """Return what two fields must share to change places."""
    return type(declared), declared.dtype, getattr(declared, "width", None)


def _current(operator: str) -> Recording:
    recording = getattr(_recording, "current", None)
    if recording is None:
        raise ProgramError(f"{operator}() may be called only while a program's step is recorded")
    return recording


def _append(operator: Operator) -> None:
    recording = _current(operator.kind)
    for role, rule in operator.rules.items():
        _check_parameters(recording, operator.kind, role, rule)
        if "edge" in rule.parameters and operator.options.get("direction", "push") != "push":
            raise ProgramError(f"{rule.where()}: a rule that may pull has no 'edge' (incoming edges are numbered "
                               "otherwise); take 'weight'")  # fmt: skip
    recording.operators.append(operator)


def _names(operator: str, into: Any) -> tuple[str, ...]:
    """Return the names of the scalars that an operator writes."""
    recording = _current(operator)
    scalars = into if isinstance(into, (tuple, list)) else (into,)
    names = tuple(recording.name_of(scalar) for scalar in scalars)
    for name in names:
        kind = type(recording.fields[name]).__name__
        if not isinstance(recording.fields[name], Scalar):
            raise ProgramError(f"{operator}: {name} is a {kind}; only a Scalar of the program is written to")
        if names.count(name) > 1:
            raise ProgramError(f"{operator}: {name} is named twice; each Scalar is written to once")
    return names


def _check_rule(operator: str, argument: str, value: Any) -> Rule:
    if not isinstance(value, Rule):
        raise ProgramError(f"{operator}: {argument}={value!r} is not a rule; mark the function with @rule")
    return value


def _check_frontier(operator: str, value: Any) -> Frontier:
    return _current(operator).check_frontier(operator, value)


_EDGE_NAMES = ("src", "dst", "edge", "weight")
_ALWAYS = ("superstep", "frontier_size", "num_vertices", "current_priority")
#: Reserved parameter names that each role of a rule may use.
_PROVIDED = {
    ("advance", "rule"): _EDGE_NAMES,
    ("advance", "where"): ("vertex",),
    ("advance", "priority"): ("vertex",),
    ("advance", "pack"): ("vertex",),
    ("advance", "unpack"): ("vertex", "value"),
    ("advance", "on_send"): ("vertex", "is_owned"),
    ("advance", "on_receive"): ("vertex", "value", "is_owned"),
    ("gather", "rule"): ("src", "dst", "weight"),
    ("gather", "finish"): ("vertex", "value"),
    ("tally", "rule"): ("src", "dst", "weight"),
    ("tally", "key"): ("src", "dst", "weight"),
    ("tally", "choose"): ("vertex", "key", "value"),
    ("intersect", "rule"): (*_EDGE_NAMES, "shared", "between"),
    ("filter", "rule"): ("vertex",),
    ("compute", "rule"): ("vertex",),
    ("reduce", "rule"): ("vertex",),
    ("update", "rule"): (),
    ("phase", "until"): (),
}


def _check_parameters(recording: Recording, operator: str, role: str, rule: Rule) -> None:
    """Refuse a rule whose parameters are not what its role provides, naming the rule and its line."""
    provided = _PROVIDED[operator, role] + _ALWAYS
    for name in rule.parameters:
        if name in recording.fields or name in provided:
            continue
        why = f"{operator} does not provide it" if name in RESERVED else "it is no field of the program"
        allowed = ", ".join((*provided, *recording.fields))
        raise ProgramError(f"{rule.where()}: parameter {name!r} is not known ({why}); allowed: {allowed}")


def check_phase(recording: Recording, phase: Phase) -> None:
    """Refuse an ``until`` rule with parameters it cannot have, and a phase that has no way to end."""
    if phase.until is not None:
        _check_parameters(recording, "phase", "until", _check_rule("Phase", "until", phase.until))
        return
    is_ordered = any("priority" in operator.rules for operator in recording.operators)
    keeps_its_frontier = recording.result is None or recording.result.kind != "output"
    if keeps_its_frontier and not is_ordered and phase.begin != "replay" and phase.max_supersteps is None:
        step = getattr(phase.step, "__name__", "step")
        raise ProgramError(
            f"{recording.title}.{step} returns no frontier that could become empty, so its phase never ends; "
            "return an operator's output, or add until= or max_supersteps= to the Phase"
        )


def force_direction(recording: Recording, direction: str) -> None:
    """Make the advances that can go both ways go one, unless ``direction`` is ``"auto"``."""
    for operator in recording.operators:
        if operator.options.get("direction") == "auto":
            operator.options["direction"] = direction


def mark_outputs(recording: Recording) -> None:
    """Let every advance de-duplicate: what it finds once here may come from other devices too."""
    for operator in recording.operators:
        if operator.kind == "advance" and "priority" not in operator.rules:
            operator.options["unique"] = False
