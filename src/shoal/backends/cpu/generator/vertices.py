# SPDX-License-Identifier: Apache-2.0
"""Write the kernels over vertices: compute and filter, and reduce and gather with what combines their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends.cpu.kernels import vertices
from shoal.backends.loops.specialize import RuleCall
from shoal.backends.loops.writer import PhaseWriter, field_name, partial_name, posted_name, write_function
from shoal.operators import Operator
from shoal.program import Combiner, Scalar, add

_COMBINE = {"add": "{0} + {1}", "minimum": "min({0}, {1})", "maximum": "max({0}, {1})"}


def write_vertices(writer: PhaseWriter, operator: Operator) -> tuple[list[str], list[str]]:
    """Return the statements of a compute or filter."""
    rule, flow = operator.rules["rule"], writer.flow
    source = flow.source(operator)
    options = {"FROM_QUEUE": source.is_queued, "HAS_MARKS": flow.is_marked(operator.frontier)}
    state = writer.kernel(vertices, operator.kind, operator, {"RULE": writer.call(rule)}, options, [rule])
    target = f", queue, {flow.target(operator)}, outbox, back" if operator.kind == "filter" else ""
    return _statements(writer, operator, f"{target}{state}")


def write_reduction(writer: PhaseWriter, operator: Operator) -> tuple[list[str], list[str]]:
    """Return the statements of a reduce or gather: the kernel, and the combination of its blocks, in order."""
    rules = list(operator.rules.values())
    number = writer.number(operator)
    hooks: dict[str, Any] = {"RULE": writer.call(operator.rules["rule"]), "STORE": _write_combiners(writer, operator)}
    names = {name: f"{name.lower()}_{number}" for name in ("IDENTITY", "COMBINE", "ZERO", "ADD")}
    edges = ""
    if operator.kind == "gather":
        writer.uses_in_edges = True
        hooks["FINISH"] = writer.call(operator.rules["finish"])
        edges = ", in_indptr, in_indices, in_weights"
    source = writer.flow.source(operator)
    partials = [partial_name(name) for name in operator.into]
    options = {"FROM_QUEUE": source.is_queued}
    state = writer.kernel(vertices, operator.kind, operator, hooks, options, list(rules), names, partials)
    fields = [field_name(name) for name in operator.into]
    shared = [] if writer.sharing is None else ["control", "world", *map(posted_name, operator.into)]
    count = f"num_blocks({source.end} - ({source.begin}))"
    settle = f"settle_{number}({', '.join([count, *partials, *fields, *shared])})"
    parallel, serial = _statements(writer, operator, f"{edges}{state}")
    return parallel, [settle, *serial]


def _statements(writer: PhaseWriter, operator: Operator, arguments: str) -> tuple[list[str], list[str]]:
    source, number = writer.flow.source(operator), writer.number(operator)
    call = (
        f"{operator.kind}_{number}(thread, num_threads, control, work, {number}, {source.begin}, {source.end}, "
        f"{source.array}{arguments})"
    )
    return [call], [f"reset_work(work, {number}, num_threads)"]


@dataclass(frozen=True)
class _Total:
    """A value that is combined: the type it has meanwhile, and how two become one."""

    dtype: np.dtype
    combiner: Combiner
    limits: np.dtype  # the type whose largest or smallest value changes nothing

    @property
    def identity(self) -> str:
        value = self.combiner.identity(self.limits)
        return f"np.{self.dtype}({'np.inf' if value == np.inf else '-np.inf' if value == -np.inf else value})"

    def combine(self, left: str, right: str) -> str:
        """Return the expression for a total and a value; a fraction is not taken for a whole number."""
        checked = f"np.float64({right})" if self.dtype.kind == "f" else f"np.{self.dtype}(whole({right}))"
        return _COMBINE[self.combiner.name].format(left, checked)

    def merge(self, left: str, right: str) -> str:
        """Return the expression for two totals as one."""
        return self.combine(left, right)

    def value(self, total: str) -> str:
        """Return the expression for what a total amounts to."""
        return total


class _ExactSum(_Total):
    """A sum of floats that does not depend on their order, and so not on the number of devices: see `add_exactly`."""

    def combine(self, left: str, right: str) -> str:
        return f"add_exactly({left}, np.float64({right}))"

    def merge(self, left: str, right: str) -> str:
        return f"add_exactly(add_exactly({left}, {right}.real), {right}.imag)"

    def value(self, total: str) -> str:
        return f"sum_of({total})"


def _total_of(writer: PhaseWriter, name: str) -> _Total:
    declared, dtype = writer.fields[name], writer.dtypes[name]
    assert isinstance(declared, Scalar)
    if dtype.kind == "f" and declared.combine is add:
        return _ExactSum(np.dtype(np.complex128), add, np.dtype(np.float64))
    wide = np.dtype({"f": np.float64, "u": np.uint64}.get(dtype.kind, np.int64))
    return _Total(wide, declared.combine, dtype if dtype.kind in "iu" else wide)


def _write_combiners(writer: PhaseWriter, operator: Operator) -> RuleCall:
    """Write the small functions that combine an operator's values; return the call that stores those of a block."""
    number = writer.number(operator)
    totals = {name: _total_of(writer, name) for name in operator.into}
    writer.partials.update({name: total.dtype for name, total in totals.items()})
    item = "{0}[{1}]" if len(totals) > 1 else "{0}"
    pairs = [total.combine(item.format("left", i), item.format("right", i)) for i, total in enumerate(totals.values())]
    identity = ", ".join(total.identity for total in totals.values())
    writer.parts += [
        write_function(f"identity_{number}", (), [f"return {identity or '0.0'}"]),
        write_function(f"combine_{number}", ("left", "right"), [f"return {', '.join(pairs) or 'left'}"]),
        _write_settle(number, totals, is_sharded=writer.sharing is not None),
    ]
    if operator.combine is not None:
        value_dtype = np.dtype(operator.options["dtype"])
        value = _Total(value_dtype, operator.combine, value_dtype)
        writer.parts += [
            write_function(f"zero_{number}", (), [f"return {value.identity}"]),
            write_function(f"add_{number}", ("left", "right"), [f"return {value.combine('left', 'right')}"]),
        ]
    partials = [partial_name(name) for name in totals]
    body = [f"{partial}[block] = {item.format('total', i)}" for i, partial in enumerate(partials)]
    parameters = ("block", "total", *partials)
    writer.parts.append(write_function(f"store_{number}", parameters, body))
    return RuleCall(f"store_{number}", parameters, {partial: partial for partial in partials})


def _write_settle(number: int, totals: dict[str, _Total], *, is_sharded: bool) -> str:
    """Write what combines the blocks' values, one after the other, and then the devices'."""
    parameters = ["count", *map(partial_name, totals), *map(field_name, totals)]
    if not is_sharded:
        body = _merge(totals, "count", partial_name, _keep_value)
        return write_function(f"settle_{number}", parameters, body)
    parameters += ["control", "world", *map(posted_name, totals)]
    body = [
        "if control[IS_REDUCED] != 0:",
        "    meet(control, world)",
        *_merge(totals, "count", partial_name, lambda name, _: f"{posted_name(name)}[control[DEVICE]] = total"),
        "control[TELLS] = TELLS_TOTALS",
        "meet(control, world)",
        *_merge(totals, "world[WORLD_DEVICES]", posted_name, _keep_value),
        "control[IS_REDUCED] = 1",
    ]
    return write_function(f"settle_{number}", parameters, body)


def _keep_value(name: str, total: _Total) -> str:
    return f"{field_name(name)}[0] = {total.value('total')}"


def _merge(totals: dict[str, _Total], count: str, array: Any, keep: Any) -> list[str]:
    """Return the statements that merge so many items of an array for each total, and keep it."""
    body = []
    for name, total in totals.items():
        body += [
            f"total = {total.identity}",
            f"for i in range({count}):",
            f"    total = {total.merge('total', f'{array(name)}[i]')}",
            keep(name, total),
        ]
    return body
