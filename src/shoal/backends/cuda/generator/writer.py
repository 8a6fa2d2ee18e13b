# SPDX-License-Identifier: Apache-2.0
"""KernelWriter: collects what the text of a kernel is made of, and the functions in Python that it calls.

A rule becomes a function of the Python module, compiled by Numba, and a method of the operator's structure in C++; its
members are the fields and numbers that the rule asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.accesses import contended_arrays, find_accesses, reads_elements_only
from shoal.backends.base import Types
from shoal.backends.cuda.exports import Argument, Export, c_type
from shoal.backends.loops.control import LINE, NUM_TRACE_COLUMNS, control_size
from shoal.backends.loops.flow import Flow, Source
from shoal.backends.loops.specialize import GLOBAL_IDS
from shoal.backends.loops.writer import PhaseWriter, field_name, value_name
from shoal.exchanges import Sharing
from shoal.operators import Operator, Recording
from shoal.program import Constant, Phase, Scalar, Vertex
from shoal.rules import Rule

INT64, INT32 = np.dtype(np.int64), np.dtype(np.int32)
#: Values that a rule may ask for by name, and the control slots they are in.
CARRIED = {"superstep": "SUPERSTEP", "frontier_size": "SIZE", "num_vertices": "NUM_VERTICES",
           "current_priority": "CURRENT"}  # fmt: skip
#: What a rule over an edge, or over a vertex, is given, in C++.
EDGE = {"src": "src", "dst": "dst", "edge": "edge", "weight": "weights[edge]"}
VERTEX = {"vertex": "vertex"}
END = "the end of a superstep"  # what is no rule's
OWN_LINES = 6  # of the control block, behind those of a CPU's loop


@dataclass
class Serial:
    """Statements that wait for the next meeting of all blocks: of one thread, or of a whole block."""

    lines: list[str] = field(default_factory=list)

    def one(self, *statements: str) -> None:
        """Add statements of one thread."""
        self.lines += [f"if (threadIdx.x == 0) {{ {' '.join(statements)} }}"]

    def block(self, *statements: str) -> None:
        """Add statements of all threads of a block."""
        self.lines += statements

    def take(self) -> str:
        """Return the meeting that does them."""
        body, self.lines = " ".join(self.lines), []
        return meeting(body)


def meeting(body: str = "") -> str:
    """Return the statement by which all blocks wait while one does ``body``."""
    return f"meet(control, generation, [&](Index* control) {{ {body} }});" if body else "meet(control, generation);"


def method(declaration: str, body: str) -> str:
    """Return a method of an operator's structure."""
    return f"INLINE {declaration} {{ {body} }}"


class KernelWriter:
    """What is written so far, and what the writers of the operators need to know."""

    def __init__(
        self, recording: Recording, phase: Phase, dtypes: dict[str, np.dtype], types: Types,
        duplication: str | None, load_balance: str = "auto", *, grows: bool = False,
    ) -> None:  # fmt: skip
        self.phase, self.fields, self.dtypes = phase, recording.fields, dtypes
        self.grows = grows  # whether the kernel looks if its outputs will fit
        self.vertex, self.edge, self.weight = types
        self.sharing = None if duplication is None else Sharing(recording, phase)
        self.flow = Flow(recording, phase, self.sharing, duplication == "one-hop")
        # Or else nobody keeps in a multiprocessor's cache what others may change.
        self.caches_in_l1 = all(map(self._may_be_cached, _rules_of(recording)))
        self.rules = PhaseWriter(self.flow, phase, recording.fields, dtypes, self.weight is not None, self.caches_in_l1)
        self.exports: list[Export] = []
        self.functions: list[str] = []  # in Python
        self.structures: list[str] = []  # in C++
        self.totals: list[str] = []  # the structures whose values blocks keep in `partials`
        self.lines: list[str] = []
        self.serial = Serial()
        self.uses_in_edges = False
        self.load_balance = load_balance
        self.dealt: list[Operator] = []  # advances whose vertices devices may visit for one another,
        self.dealt_fields: dict[str, None] = {}  # and what thieves read at these
        self.uses_balance = self.uses_ledger = False  # whether pushes take what is in balance.cuh

    def _may_be_cached(self, rule: Rule) -> bool:
        """Whether it can be said which elements the rule must read anew."""
        contended = contended_arrays(rule)
        declared = [self.fields.get(name) for name in contended]
        has_rows = any(isinstance(each, Vertex) and each.width is not None for each in declared)
        return not contended or (not has_rows and reads_elements_only(rule, contended))

    @property
    def control_length(self) -> int:
        """Length of the control block."""
        return control_size(len(self.flow.operators)) + OWN_LINES * LINE

    @property
    def edge_places(self) -> dict[str, str]:
        """What a rule over an edge is given, in C++; of several devices' edges the graph's number."""
        return EDGE if self.sharing is None else {**EDGE, "edge": "Index(edge_ids[edge])"}

    def number(self, operator: Operator) -> int:
        """Return the operator's place in the step, which is part of the names of its functions."""
        return self.flow.operators.index(operator)

    # Rules

    def flag_rule(
        self, name: str, rule: Rule, places: dict[str, str], *, owned: str | None = None, is_used: bool = True,
        value: np.dtype | None = None,
    ) -> str:  # fmt: skip
        """Write a rule that says yes or no; return the expression that calls it."""
        call, parameters = self._call(rule, owned)
        body = f"    return 1 if {call} else 0" if is_used else f"    {call}\n    return 0"
        self.functions.append(f"def {name}({', '.join(parameters)}):\n{body}")
        return self.export(name, self._arguments(rule, places, value), INT32, rule.where()).call + " != 0"

    def value_rule(
        self, name: str, rule: Rule, places: dict[str, str], dtype: np.dtype, *, owned: str | None = None,
        value: np.dtype | None = None,
    ) -> str:  # fmt: skip
        """Write a rule that returns a number; a fraction is not taken for a whole number."""
        call, parameters = self._call(rule, owned)
        call = f"whole({call})" if dtype.kind == "i" else call
        self.functions.append(f"def {name}({', '.join(parameters)}):\n    return np.{dtype}({call})")
        return self.export(name, self._arguments(rule, places, value), dtype, rule.where()).call

    def storing_rule(
        self, name: str, rule: Rule, places: dict[str, str], into: Argument, at: str, *, owned: str | None = None
    ) -> str:
        """Write a rule whose value is stored in an array, as the array's type; return the expression that does so."""
        call, parameters = self._call(rule, owned)
        self.functions.append(f"def {name}({', '.join([*parameters, 'into', 'at'])}):\n    into[at] = {call}")
        arguments = [*self._arguments(rule, places), into, Argument(at, INT64)]
        return self.export(name, arguments, None, rule.where()).call

    def totals_rule(
        self, operator: Operator, name: str, rule: Rule, places: dict[str, str], value: np.dtype | None = None
    ) -> str:
        """Write a rule whose values are combined into scalars; return the statements that do so."""
        call, parameters = self._call(rule)
        outs = [f"out{i}" for i in range(len(operator.into))]
        wide = {scalar: wide_dtype(self.dtypes[scalar]) for scalar in operator.into}
        body = [f"    found = {call}" if outs else f"    {call}"]
        for i, scalar in enumerate(operator.into):
            item = f"found[{i}]" if len(outs) > 1 else "found"
            number = f"np.float64({item})" if wide[scalar].kind == "f" else f"np.{wide[scalar]}(whole({item}))"
            body.append(f"    {outs[i]}[0] = {number}")
        self.functions.append(f"def {name}({', '.join([*parameters, *outs])}):\n" + "\n".join(body))
        found = [Argument(f"&found_{scalar}", wide[scalar], "1") for scalar in operator.into]
        export = self.export(name, [*self._arguments(rule, places, value), *found], None, rule.where())
        declared = " ".join(f"{c_type(wide[scalar])} found_{scalar} = 0;" for scalar in operator.into)
        added = " ".join(f"totals.{scalar}.add(found_{scalar});" for scalar in operator.into)
        return f"{declared} {export.call}; {added}"

    def serial_function(self, name: str, arguments: dict[str, Argument], body: str, title: str) -> str:
        """Write a function of one thread; return the statement that calls it."""
        if not any(export.name == name for export in self.exports):
            self.functions.append(f"def {name}({', '.join(arguments)}):\n    {body}")
            self.export(name, list(arguments.values()), None, title)
        return next(export.call for export in self.exports if export.name == name) + ";"

    def _call(self, rule: Rule, owned: str | None = None) -> tuple[str, list[str]]:
        function = self.rules.rule_function(rule, owned)
        parameters = [f"p{i}" for i in range(len(rule.parameters) + self.flow.is_renumbered)]
        given = list(parameters)
        if "is_owned" in rule.parameters:  # what comes as a number
            given[rule.parameters.index("is_owned")] += " != 0"
        return f"{function}({', '.join(given)})", parameters

    def export(self, name: str, arguments: list[Argument], result: np.dtype | None, title: str) -> Export:
        """Note a function that C++ calls."""
        export = Export(name, tuple(arguments), result, title)
        self.exports.append(export)
        return export

    # Arguments

    def control(self) -> Argument:
        """Return the control block as a function takes it."""
        return Argument("control", INT64, str(self.control_length))

    def trace(self) -> Argument:
        """Return the trace as a function takes it."""
        return Argument("trace", INT64, "trace_rows", NUM_TRACE_COLUMNS)

    def whole_field(self, name: str) -> Argument:
        """Return a field as a serial part takes it: scalars are arrays there."""
        if isinstance(self.fields[name], Scalar):
            return Argument(field_name(name), self.dtypes[name], "1")
        return self._field(name)

    def _arguments(self, rule: Rule, places: dict[str, str], value: np.dtype | None = None) -> list[Argument]:
        """Return what a rule takes inside a kernel, where scalars are numbers."""
        found = []
        for name in rule.parameters:
            if name == "weight":
                found.append(Argument("1", INT64) if self.weight is None else Argument(places[name], self.weight))
            elif name == "value":
                assert value is not None
                found.append(Argument("value", value))
            elif name in places or name in CARRIED:
                found.append(Argument(places.get(name, name), INT64))
            else:
                found.append(self._field(name))
        return found + self.global_ids()

    def global_ids(self) -> list[Argument]:
        """Return what every rule takes last where a device's ids are not the graph's."""
        renumbered = Argument(GLOBAL_IDS, self.vertex, "count", is_constant=True)
        return [renumbered] if self.flow.is_renumbered else []

    def _field(self, name: str) -> Argument:
        declared, dtype = self.fields[name], self.dtypes[name]
        if isinstance(declared, Scalar):
            return Argument(value_name(name), dtype)
        if isinstance(declared, Constant):
            length = f"length_{name}" if declared.is_array else None
            return Argument(field_name(name), dtype, length, is_constant=True)
        return Argument(field_name(name), dtype, "count", declared.width)

    # C++

    def name(self, operator: Operator, suffix: str = "") -> str:
        """Return the name of an operator's structure."""
        return f"Op{self.number(operator)}{suffix}"

    def structure(
        self, operator: Operator, options: dict[str, Any], rules: list[Rule], methods: list[str], *,
        weights: str | None = None, suffix: str = "",
    ) -> str:  # fmt: skip
        """Write the structure through which a kernel calls an operator's rules; return the text that makes one."""
        members = self.members({name for rule in rules for name in rule.parameters}, weights)
        if self.sharing is not None:
            members["border"] = ("const Border<Id>&", "border")
        constants = [
            f"static constexpr {'bool' if isinstance(value, bool) else 'Index'} {option} = {str(value).lower()};"
            for option, value in options.items()
        ]
        declared = [f"{kind} {member};" for member, (kind, _) in members.items()]
        name = self.name(operator, suffix)
        self.structures.append(f"struct {name} {{\n" + "\n".join([*constants, *declared, *methods]) + "\n};")
        return f"{name}{{{', '.join(value for _, value in members.values())}}}"

    def members(self, used: set[str], weights: str | None = None) -> dict[str, tuple[str, str]]:
        """Return the members that rules need: their types, and what they are set to."""
        members = {"count": ("Index", "control[NUM_LOCAL]")}
        if self.flow.is_renumbered:
            members[GLOBAL_IDS] = ("const Id*", GLOBAL_IDS)
        if self.sharing is not None and "edge" in used:
            members["edge_ids"] = ("const Offset*", "edge_ids")
        if weights is not None and self.weight is not None and "weight" in used:
            members["weights"] = (f"const {c_type(self.weight)}*", weights)
        for name, slot in CARRIED.items():
            if name in used:
                members[name] = ("Index", f"control[{slot}]")
        for name, declared in self.fields.items():
            if name not in used:
                continue
            if isinstance(declared, Scalar):
                members[value_name(name)] = (c_type(self.dtypes[name]), f"{field_name(name)}[0]")
            else:
                members |= self.whole_members(name)
        return members

    def whole_members(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the members for a field as a serial part has it."""
        declared, kind, place = self.fields[name], c_type(self.dtypes[name]), field_name(name)
        if isinstance(declared, Constant) and declared.is_array:
            return {place: (f"const {kind}*", place), f"length_{name}": ("Index", f"length_{name}")}
        return {place: (kind if isinstance(declared, Constant) else f"{kind}*", place)}

    def fetching(self, rule: Rule, place: str) -> str:
        """Return the method that begins to load what a rule reads at the vertex that one of its parameters names.

        Every lane loads one of the arrays: its neighbours, who have the vertices beside its own, load the others.
        """
        read = {access.array for access in find_accesses(rule) if access.reads and access.place == place}
        vertices = {name: declared for name, declared in self.fields.items() if isinstance(declared, Vertex)}
        places = [f"{field_name(name)} + vertex * {vertices[name].width or 1}" for name in vertices if name in read]
        turns = [
            f"if (shoal::lane() % {len(places)} == {turn}) shoal::fetch({each});" for turn, each in enumerate(places)
        ]
        body = " ".join(["shoal::await_fetched();", *turns]) if turns else ""
        return method("void fetch(Index vertex) const", body)

    def output(self, operator: Operator) -> str:
        """Return the place of an operator's output."""
        return f"Output<Id>{{queue, {self.flow.target(operator)}}}"


def _rules_of(recording: Recording) -> list[Rule]:
    """Return the rules of a step's operators, and those by which devices merge values."""
    merging = [each.combine for each in recording.fields.values() if isinstance(each, Vertex)]
    rules = [rule for operator in recording.operators for rule in operator.rules.values()]
    return rules + [rule for rule in merging if isinstance(rule, Rule)]


def array_of(source: Source) -> str:
    """Return the array that an operator's vertices are in, or none."""
    return source.array if source.is_queued else "(const Id*)nullptr"


def place_of(source: Source) -> str:
    """Return the vertices of an operator as kernels take them: an array, or none, and its bounds."""
    return f"{array_of(source)}, {source.begin}, {source.end}"


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """Return the type in which values of a scalar are combined."""
    return np.dtype({"f": np.float64, "u": np.uint64}.get(dtype.kind, np.int64))
