# SPDX-License-Identifier: Apache-2.0
"""Write the callbacks of a worklist: methods of what travels, and of the step's rules (see kernels/callbacks.cuh).

Whoever calls `pack`, `unpack` or `on_receive` has the vertex alone, so what these update there needs no atomics.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cuda.exports import Argument
from shoal.backends.cuda.generator.exchange import ANY_LENGTH, Carried
from shoal.backends.cuda.generator.writer import INT64, VERTEX, KernelWriter, method
from shoal.operators import CALLBACKS, Operator
from shoal.rules import Rule

INCLUDE_CALLBACKS = '#include "callbacks.cuh"\n'
_ITEM = {**VERTEX, "is_owned": "is_owned"}


def has_callbacks(operator: Operator) -> bool:
    """Whether rules say what travels."""
    return any(role in operator.rules for role in CALLBACKS)


def sending_methods(writer: KernelWriter, operator: Operator, passes: str) -> list[str]:
    """Return the methods that say whether a vertex is to be visited here; ``passes`` is what a filter says.

    ``passes`` is of what a visit has found, and may list it for others; ``accepts`` of what has arrived.
    """
    accepts = method("bool accepts(Index vertex) const", f"return {passes};")
    if "on_send" not in operator.rules:
        return [method("bool passes(Index vertex) const", f"return {passes};"), accepts]
    call = writer.value_rule("ask_on_send", operator.rules["on_send"], _ITEM, INT64)
    tells = "" if writer.sharing is None else "if ((flags & PASS) != 0) tell(border, vertex, true, true); "
    kept = f"const Index flags = on_send(vertex, 1); {tells}return (flags & KEEP) != 0;"
    return [
        method("Index on_send(Index vertex, [[maybe_unused]] Index is_owned) const", f"return {call};"),
        method("bool passes(Index vertex) const", f"if (!({passes})) return false; {kept}"),
        accepts,
    ]


def write_callbacks(values: Carried, operator: Operator, resets: set[str]) -> None:
    """Add the methods of what travels: the author's rules, and what is generated for a field where there is none."""
    rules = operator.rules
    if "pack" in rules:
        _add_pack(values, rules["pack"])
    else:
        values.add("pack", values.write_pack())
    if "unpack" in rules:
        call = values.kernel.flag_rule("unpack_value", rules["unpack"], VERTEX, owned="vertex", value=_dtype(values))
        _add(values, "bool merge(Index sender, Index slot, Index vertex) const", rules["unpack"], f"return {call};")
    else:
        values.add("merge", values.write_merge())
    _add_on_receive(values, rules.get("on_receive"))
    if "on_send" in rules or "on_receive" in rules:  # an owner that tells others keeps what it has
        values.add("reset_copy", values.write_reset(resets))
        values.members |= {"owner": ("const Device*", "border.owner"), "device": ("Index", "border.device")}
        reset = "if (owner[vertex] != device) reset_copy(vertex);"
        values.methods.append(method("void reset(Index vertex) const", reset))
    else:
        values.add("reset", values.write_reset(resets))


def _add_pack(values: Carried, rule: Rule) -> None:
    mail = Argument(f"mails_{values.names[0]}[device]", _dtype(values), ANY_LENGTH)
    call = values.kernel.storing_rule("pack_value", rule, VERTEX, mail, "slot", owned="vertex")
    values.members["device"] = ("Index", "border.device")
    _add(values, "void pack(Index slot, Index vertex) const", rule, f"{call};")


def _add_on_receive(values: Carried, rule: Rule | None) -> None:
    declaration = "Index on_receive(Index sender, Index slot, Index vertex, Index is_owned) const"
    if rule is None:
        values.methods.append(method(declaration, "return is_owned != 0 ? KEEP : PASS;"))
        return
    call = values.kernel.value_rule("ask_on_receive", rule, _ITEM, INT64, owned="vertex", value=_dtype(values))
    _add(values, declaration, rule, f"return {call};")


def _add(values: Carried, declaration: str, rule: Rule, body: str) -> None:
    """Add the method that calls a rule, and the members that it needs."""
    name = values.names[0]
    values.members |= values.kernel.members(set(rule.parameters))
    values.members |= values.mail_member(name)
    value = f"const auto value = mails_{name}[sender][slot]; " if "value" in rule.parameters else ""
    values.methods.append(method(declaration, value + body))


def _dtype(values: Carried) -> np.dtype:
    """Return the type of the one value that an item carries."""
    return values.kernel.dtypes[values.names[0]]
