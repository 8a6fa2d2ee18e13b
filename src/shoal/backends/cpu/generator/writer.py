# SPDX-License-Identifier: Apache-2.0
"""PhaseWriter: collects the functions of a generated module, each rule and kernel once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from shoal.backends.cpu.generator.flow import Flow
from shoal.backends.cpu.specialize import RuleCall, Specializer, specialize, write_rule
from shoal.operators import Operator
from shoal.program import Field, Phase, Scalar
from shoal.rules import Rule

#: Values that a rule may ask for by name, and the control slots they are in.
_CARRIED = {"superstep": "SUPERSTEP", "frontier_size": "SIZE", "num_vertices": "NUM_VERTICES",
            "current_priority": "CURRENT"}  # fmt: skip


def field_name(name: str) -> str:
    """Return the name of a program's field in generated code, where it meets no local variable."""
    return f"field_{name}"


def value_name(name: str) -> str:
    """Return the name under which a kernel keeps a scalar's value."""
    return f"value_{name}"


def partial_name(name: str) -> str:
    """Return the name of the array with a scalar's value for each block of vertices."""
    return f"partial_{name}"


def write_function(name: str, parameters: Iterable[str], body: list[str]) -> str:
    """Return the source of a small function."""
    return f"@inner(forceinline=True)\ndef {name}({', '.join(parameters)}):\n    " + "\n    ".join(body or ["pass"])


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
    parts: list[str] = field(default_factory=list)
    rules: list[tuple[str, Rule]] = field(default_factory=list)
    uses_in_edges: bool = False
    partials: dict[str, np.dtype] = field(default_factory=dict)  # by scalar
    _rule_names: dict[tuple[int, str | None], str] = field(default_factory=dict)

    def number(self, operator: Operator) -> int:
        """Return the operator's place in the step, which is part of the names of its functions."""
        return self.flow.operators.index(operator)

    def rule_function(self, rule: Rule, owned: str | None = None) -> str:
        """Write a rule (and the rules it calls) once; return its generated name."""
        key = (id(rule), owned)
        if key not in self._rule_names:
            names = {local: self.rule_function(callee) for local, callee in rule.callees.items()}
            name = f"rule_{len(self._rule_names)}_{rule.name}"
            self._rule_names[key] = name
            self.rules.append((name, rule))
            self.parts.append("@inner(forceinline=True)\n" + write_rule(rule, name, names, owned))
        return self._rule_names[key]

    def call(self, rule: Rule, *, owned: str | None = None, is_serial: bool = False) -> RuleCall:
        """Return how ``rule`` is called; in a serial part carried values are read at the call."""
        arguments = {"weight": "weights[{edge}]" if self.is_weighted else "1"}
        for name in rule.parameters:
            if name in _CARRIED:
                arguments[name] = f"control[{_CARRIED[name]}]" if is_serial else name
            elif isinstance(self.fields.get(name), Scalar):
                arguments[name] = f"{field_name(name)}[0]" if is_serial else value_name(name)
            elif name in self.fields:
                arguments[name] = field_name(name)
        return RuleCall(self.rule_function(rule, owned), rule.parameters, arguments)

    def state(self, *rules: Rule | None) -> list[str]:
        """Return the generated names of the fields that any of ``rules`` uses, in the program's order."""
        used = {name for rule in rules if rule for name in rule.parameters}
        return [field_name(name) for name in self.fields if name in used]

    def kernel(
        self, module: ModuleType, template: str, operator: Operator, hooks: dict, options: dict[str, Any],
        rules: list[Rule | None], names: dict[str, str] | None = None, extra_state: Iterable[str] = (),
    ) -> str:  # fmt: skip
        """Write one kernel of an operator and return the end of its argument list, the state."""
        name = f"{template}_{self.number(operator)}"
        state = [*self.state(*rules), *extra_state]
        specializer = Specializer(hooks, {template: name, **(names or {})}, options, state, self._prologue(*rules))
        self.parts.append("@inner()\n" + specialize(module, template, specializer))
        return tail(state)

    def _prologue(self, *rules: Rule | None) -> list[str]:
        """Return statements that read carried values once, at a kernel's start."""
        used = [name for rule in rules if rule for name in rule.parameters]
        carried = [f"{name} = control[{slot}]" for name, slot in _CARRIED.items() if name in used]
        scalars = [name for name in self.fields if name in used and isinstance(self.fields[name], Scalar)]
        return carried + [f"{value_name(name)} = {field_name(name)}[0]" for name in scalars]
