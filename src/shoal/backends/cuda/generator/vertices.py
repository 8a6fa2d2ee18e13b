# SPDX-License-Identifier: Apache-2.0
"""Write the operators over vertices: compute and filter, reduce and gather."""

from __future__ import annotations

import numpy as np

from shoal.backends.cuda.exports import c_type
from shoal.backends.cuda.generator.writer import VERTEX, KernelWriter, method, place_of, wide_dtype
from shoal.backends.loops.flow import Source
from shoal.backends.loops.writer import field_name
from shoal.errors import ProgramError
from shoal.operators import Operator, everything
from shoal.program import Combiner, Scalar, add

_COMBINERS = {"add": "Add", "minimum": "Minimum", "maximum": "Maximum"}
PARTIAL_BYTES = 256  # room for what an operator sums up in a block of threads
MAX_TOTALS = PARTIAL_BYTES // 16


def write_vertices(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements of a compute or filter."""
    source, rule = writer.flow.source(operator), operator.rules["rule"]
    is_filter = operator.kind == "filter"
    visit = writer.flag_rule(f"visit_{writer.number(operator)}", rule, VERTEX, is_used=is_filter)
    options = {"FROM_QUEUE": source.is_queued, "HAS_MARKS": writer.flow.is_marked(operator.frontier)}
    op = writer.structure(operator, options, [rule], [method("bool visit(Index vertex) const", f"return {visit};")])
    if is_filter:
        writer.lines.append(f"filter({op}, control, {place_of(source)}, {writer.output(operator)}, back);")
    else:
        writer.lines.append(f"compute({op}, {place_of(source)});")


def write_reduce(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements of a reduce."""
    source, rule = writer.flow.source(operator), operator.rules["rule"]
    totals = _write_totals(writer, operator)
    visit = writer.totals_rule(operator, f"visit_{writer.number(operator)}", rule, VERTEX)
    methods = [method(f"void visit(Index vertex, {totals}& totals) const", visit)]
    op = writer.structure(operator, {"FROM_QUEUE": source.is_queued}, [rule], methods)
    writer.lines.append(f"reduce({op}, {place_of(source)}, {_partials(writer, totals)});")
    _settle(writer, operator, totals)


def write_gather(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements of a gather."""
    writer.uses_in_edges = True
    number, source = writer.number(operator), writer.flow.source(operator)
    if writer.sharing is not None and operator.frontier is everything:
        source = Source("0", "control[NUM_LOCAL]", is_queued=False)  # tiles are of all that the device has
    rule, finish = operator.rules["rule"], operator.rules["finish"]
    dtype = np.dtype(operator.options["dtype"])
    totals = _write_totals(writer, operator)
    visit = writer.value_rule(f"visit_{number}", rule, writer.edge_places, dtype)
    done = writer.totals_rule(operator, f"finish_{number}", finish, VERTEX, dtype)
    assert operator.combine is not None
    combine = f"{_COMBINERS[operator.combine.name]}::combine(left, right)"
    methods = [
        f"using Value = {c_type(dtype)};",
        method("static Value zero()", f"return {_identity(operator.combine, dtype)};"),
        method("static Value add(Value left, Value right)", f"return {combine};"),
        method("Value visit(Index src, Index dst, Index edge) const", f"return {visit};"),
        writer.fetching(finish, "vertex"),
        method("bool is_owned(Index vertex) const", f"return {_owned(writer)};"),
        method(f"void finish(Index vertex, Value value, {totals}& totals) const", done),
    ]
    options = {"FROM_QUEUE": source.is_queued, "HAS_TOTALS": bool(operator.into)}
    op = writer.structure(operator, options, [rule, finish], methods, weights="in_weights")
    edges = "in_indptr, in_indices, rows"
    place = _partials(writer, totals)
    writer.lines.append(f"gather({op}, control, generation, {place_of(source)}, {edges}, {place});")
    if operator.into:
        _settle(writer, operator, totals)


def _owned(writer: KernelWriter) -> str:
    """Return whether a vertex is the device's own."""
    return "true" if writer.sharing is None else "border.owner[vertex] == border.device"


def _write_totals(writer: KernelWriter, operator: Operator) -> str:
    """Write the structure of an operator's totals and return its name."""
    if len(operator.into) > MAX_TOTALS:
        raise ProgramError(f"{operator.kind}: into= names {len(operator.into)} scalars; at most {MAX_TOTALS} are "
                           "allowed on a GPU")  # fmt: skip
    name = f"Totals{writer.number(operator)}"
    members, identities, merges = [], [], []
    for scalar in operator.into:
        declared = writer.fields[scalar]
        assert isinstance(declared, Scalar)
        kind, identity = _total_of(declared.combine, writer.dtypes[scalar])
        members.append(f"{kind} {scalar};")
        identities.append(f"{{{identity}}}")
        merges.append(f"{scalar}.merge(other.{scalar});")
    if not members:
        members, identities = ["long long nothing;"], ["0"]
    identity = method(f"static {name} identity()", f"return {{{', '.join(identities)}}};")
    merge = method(f"void merge(const {name}& other)", " ".join(merges))
    writer.structures.append(f"struct {name} {{ {' '.join(members)} {identity} {merge} }};")
    writer.totals.append(name)
    return name


def _partials(writer: KernelWriter, totals: str) -> str:
    """Return the place of a structure's values, one for each block of threads."""
    return f"reinterpret_cast<{totals}*>(partials + {writer.totals.index(totals)} * {PARTIAL_BYTES} * gridDim.x)"


def _settle(writer: KernelWriter, operator: Operator, totals: str) -> None:
    """Let the last block combine the values of all into the scalars."""
    kept = " ".join(f"{field_name(name)}[0] = total.{name}.value();" for name in operator.into)
    total = f"{totals} total = settle({_partials(writer, totals)});"
    if writer.sharing is not None:
        place = writer.totals.index(totals) * PARTIAL_BYTES
        kept = f"total = settle_devices(control, world, posted + {place} * world[WORLD_DEVICES], total); {kept}"
    writer.serial.block(f"{{ {total} if (threadIdx.x == 0) {{ {kept} }} }}")


def _identity(combiner: Combiner, dtype: np.dtype) -> str:
    """Return the value that changes nothing."""
    value = combiner.identity(dtype)
    if dtype.kind == "f":
        infinity = "__longlong_as_double(0x7ff0000000000000ll)"
        return f"{'-' if value < 0 else ''}{infinity}" if np.isinf(value) else repr(float(value))
    if int(value) == -(2**63):
        return "-9223372036854775807ll - 1"  # the number itself is none that C++ knows
    return f"{int(value)}{'ull' if dtype.kind == 'u' else 'll'}"


def _total_of(combiner: Combiner, dtype: np.dtype) -> tuple[str, str]:
    """Return the type of a scalar's total, and its first value; the limits are those of the scalar's own type."""
    wide = wide_dtype(dtype)
    if dtype.kind == "f" and combiner is add:
        return "ExactSum", "0.0, 0.0"
    limits = dtype if dtype.kind in "iu" else wide
    return f"Total<{_COMBINERS[combiner.name]}, {c_type(wide)}>", _identity(combiner, limits)
