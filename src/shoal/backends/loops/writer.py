# SPDX-License-Identifier: Apache-2.0
"""PhaseWriter: collects the functions of a generated module, each rule and kernel once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from shoal.backends.loops.flow import Flow
from shoal.backends.loops.specialize import GLOBAL_IDS, Renumbering, RuleCall, Specializer, specialize, write_rule
from shoal.exchanges import Sharing
from shoal.operators import Operator
from shoal.program import Field, Phase, Scalar, Vertex
from shoal.rules import Rule

#: Values that a rule may ask for by name, and the control slots they are in.
_CARRIED = {"superstep": "SUPERSTEP", "frontier_size": "SIZE", "num_vertices": "NUM_VERTICES",
            "current_priority": "CURRENT"}  # fmt: skip


_PLACES = frozenset(("src", "dst", "vertex"))
_RULE_NAME = "rule_to_be_named"


def field_name(name: str) -> str:
    """Return the name of a program's field in generated code, where it meets no local variable."""
    return f"field_{name}"


def value_name(name: str) -> str:
    """Return the name under which a kernel keeps a scalar's value."""
    return f"value_{name}"


def partial_name(name: str) -> str:
    """Return the name of the array with a scalar's value for each block of vertices."""
    return f"partial_{name}"


def mail_name(name: str) -> str:
    """Return the name of the array through which devices send a field's values."""
    return f"mail_{name}"


def source_name(name: str) -> str:
    """Return the name of the table of the arrays in which devices have a field, for those that read it there."""
    return f"source_{name}"


def posted_name(name: str) -> str:
    """Return the name of the array with every device's part of a scalar."""
    return f"posted_{name}"


def earlier_name(name: str) -> str:
    """Return the name of the array with a field's values before an operator."""
    return f"earlier_{name}"


def write_function(name: str, parameters: Iterable[str], body: list[str]) -> str:
    """Return the source of a small function."""
    return f"@inner(forceinline=True)\ndef {name}({', '.join(parameters)}):\n    " + "\n    ".join(body or ["pass"])


def indent(lines: list[str]) -> list[str]:
    """Return statements one level deeper."""
    return [f"    {line}" for line in lines]


def tail(names: Iterable[str]) -> str:
    """Return the end of an argument list."""
    return "".join(f", {name}" for name in names)


@dataclass
class PhaseWriter:
    """What is written so far, and what the writers of the operators need to know."""

    flow: Flow
    phase: Phase
    fields: dict[str, Field]
    dtypes: dict[str, np.dtype]
    is_weighted: bool
    is_fresh: bool = False  # whether rules say which elements they must read anew: a GPU's caches do not know
    parts: list[str] = field(default_factory=list)
    rules: list[tuple[str, Rule]] = field(default_factory=list)
    uses_in_edges: bool = False
    deals: bool = False  # devices may give vertices of their frontiers to one another
    regroups: bool = False  # devices may hand their parts over for some supersteps
    partials: dict[str, np.dtype] = field(default_factory=dict)  # by scalar
    mailed: dict[str, None] = field(default_factory=dict)  # fields that are sent, in order
    remembered: dict[str, None] = field(default_factory=dict)  # fields whose values before an operator are kept
    carried: list[tuple[str, ...]] = field(default_factory=list)  # the fields of each exchange's items
    _rule_names: dict[Any, str] = field(default_factory=dict)

    @property
    def is_renumbered(self) -> bool:
        """Whether a device's ids are not the graph's."""
        return self.flow.is_renumbered

    @property
    def sharing(self) -> Sharing | None:
        """What several devices exchange; None on one."""
        return self.flow.sharing

    def number(self, operator: Operator) -> int:
        """Return the operator's place in the step, which is part of the names of its functions."""
        return self.flow.operators.index(operator)

    def rule_function(self, rule: Rule, owned: str | None = None) -> str:
        """Write a rule (and the rules it calls) once; return its generated name."""
        if not self.is_renumbered:
            return self._write_rule(rule, owned, None)
        arrays = frozenset(name for name in rule.parameters if isinstance(self.fields.get(name), Vertex))
        return self._write_renumbered(rule, _PLACES & set(rule.parameters), arrays, owned)

    def _write_renumbered(
        self, rule: Rule, places: frozenset[str], arrays: frozenset[str], owned: str | None = None
    ) -> str:
        return self._write_rule(rule, owned, Renumbering(places, arrays, self._write_renumbered))

    def _write_rule(self, rule: Rule, owned: str | None, renumbering: Renumbering | None) -> str:
        variant = None if renumbering is None else (renumbering.places, renumbering.arrays)
        key = (id(rule), owned, variant)
        if key not in self._rule_names:
            names = {}
            if renumbering is None:
                names = {local: self.rule_function(callee) for local, callee in rule.callees.items()}
            # Writes the rules that it calls first.
            text = write_rule(rule, _RULE_NAME, names, owned, renumbering, is_fresh=self.is_fresh)
            name = f"rule_{len(self._rule_names)}_{rule.name}"
            self._rule_names[key] = name
            self.rules.append((name, rule))
            self.parts.append("@inner(forceinline=True)\n" + text.replace(f"def {_RULE_NAME}(", f"def {name}(", 1))
        return self._rule_names[key]

    def call(self, rule: Rule, *, owned: str | None = None, is_serial: bool = False) -> RuleCall:
        """Return how ``rule`` is called; in a serial part carried values are read at the call."""
        arguments = {"weight": "weights[{edge}]" if self.is_weighted else "1"}
        parameters = rule.parameters
        if self.sharing is not None:
            arguments["edge"] = "np.int64(edge_ids[{edge}])"  # the graph's number of the device's edge
        if self.is_renumbered:
            parameters = (*parameters, GLOBAL_IDS)
            arguments[GLOBAL_IDS] = GLOBAL_IDS
        for name in rule.parameters:
            if name in _CARRIED:
                arguments[name] = f"control[{_CARRIED[name]}]" if is_serial else name
            elif isinstance(self.fields.get(name), Scalar):
                arguments[name] = f"{field_name(name)}[0]" if is_serial else value_name(name)
            elif name in self.fields:
                arguments[name] = field_name(name)
        return RuleCall(self.rule_function(rule, owned), parameters, arguments)

    def state(self, *rules: Rule | None) -> list[str]:
        """Return the generated names of the fields that any of ``rules`` uses, in the program's order."""
        used = {name for rule in rules if rule for name in rule.parameters}
        return [field_name(name) for name in self.fields if name in used] + [GLOBAL_IDS] * self.is_renumbered

    def kernel(
        self, module: ModuleType, template: str, operator: Operator, hooks: dict, options: dict[str, Any],
        rules: list[Rule | None], names: dict[str, str] | None = None, extra_state: Iterable[str] = (),
        shared: tuple[str, ...] = (), is_inlined: bool = False,
    ) -> str:  # fmt: skip
        """Write one kernel of an operator and return the end of its argument list, the state.

        What is called for every vertex must be inlined: to hand over some forty arrays takes longer than its edges.
        """
        name = f"{template}_{self.number(operator)}"
        state = [*self.state(*rules), *extra_state]
        options = {"IS_SHARDED": self.sharing is not None, **options}
        shared = shared if self.sharing is not None else ()
        renamed = {template: name, **(names or {})}
        specializer = Specializer(hooks, renamed, options, state, self._prologue(*rules), shared)
        decorator = "@inner(forceinline=True)\n" if is_inlined else "@inner()\n"
        self.parts.append(decorator + specialize(module, template, specializer))
        return tail([*state, *shared])

    def _prologue(self, *rules: Rule | None) -> list[str]:
        """Return statements that read carried values once, at a kernel's start."""
        used = [name for rule in rules if rule for name in rule.parameters]
        carried = [f"{name} = control[{slot}]" for name, slot in _CARRIED.items() if name in used]
        scalars = [name for name in self.fields if name in used and isinstance(self.fields[name], Scalar)]
        return carried + [f"{value_name(name)} = {field_name(name)}[0]" for name in scalars]
