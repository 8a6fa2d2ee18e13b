# SPDX-License-Identifier: Apache-2.0
"""Write the exchanges between devices: the functions over a field's values, and the statements of the rounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.backends.cpu.generator.statements import join
from shoal.backends.cpu.kernels import exchange
from shoal.backends.loops.specialize import RuleCall, Specializer, specialize
from shoal.backends.loops.values import Values, declared_vertex
from shoal.backends.loops.writer import (
    PhaseWriter,
    field_name,
    indent,
    tail,
    write_function,
)
from shoal.exchanges import Exchange, combining_rule
from shoal.operators import Operator

#: What kernels that visit edges take beside their state where there are several devices.
PUSH_SHARED = ("owner", "dirty", "voices", "border", "edge_ids")
ORDERED_SHARED = ("world", *PUSH_SHARED)

ENTERING = ("control", "blocks", "links", "bins", "waiting", "spill", "thread", "current", "vertex")
_ROUNDS = "for round_number in range(world[WORLD_ROUNDS]):"
_BEGIN, _END = "begin_round(control, world)", "end_round(control, world, round_number)"
_IS_PACKED = "if round_number == 0 or world[WORLD_FORWARDS] == FORWARDS_ALL:"
_RECEIVED = "thread, num_threads, control, world, round_number, receive_at, receive_from, mail_at, mail_ids"


def write_exchanges(writer: PhaseWriter, operator: Operator) -> list[str]:
    """Return the statements of the exchanges behind an operator."""
    if writer.sharing is None:
        return []
    lines: list[str] = []
    for found in writer.sharing.exchanges(writer.number(operator)):
        lines += join([_BEGIN])
        if found.kind == "mirror":
            lines += _write_mirror(writer, operator, found, announces=False)
        else:
            lines += _write_collection(writer, operator, found)
    return lines


def write_preparation(writer: PhaseWriter, operator: Operator) -> list[str]:
    """Return the statements before an operator whose changes will be looked for: they note what there is."""
    found = [] if writer.sharing is None else writer.sharing.exchanges(writer.number(operator))
    names = [name for exchange in found if exchange.kind == "replicate" for name in exchange.fields]
    if not names:
        return []
    return [*_Values(writer, names, f"{writer.number(operator)}_before").remembering(), *join([])]


def write_announcement(writer: PhaseWriter, operator: Operator) -> list[str]:
    """Return the statements that tell a pull of the sources in its frontier that other devices own."""
    if writer.sharing is None or operator.frontier is None:
        return []
    number = writer.number(operator)
    fields = writer.sharing.announced(number)
    if not writer.flow.sends_ids(operator):
        lines = _announce_bits()
    else:
        lines = _write_mirror(writer, operator, Exchange("mirror", fields, operator.frontier), announces=True)
    is_covered = writer.sharing.is_announced_by_push(number)
    lines = [*join([_BEGIN]), *lines]
    return ["if control[SHARES_OWN] == 0:", *indent(lines)] if is_covered else lines


def write_emptying(writer: PhaseWriter, operator: Operator) -> list[str]:
    """Return the statements that empty copies which a pull was told of, before a push adds to them again."""
    if writer.sharing is None:
        return []
    number = writer.number(operator)
    names = writer.sharing.pulled_resets(number)
    if not names:
        return []
    values = _Values(writer, list(names), f"{number}_pulled")
    reset = values.write_reset(set(names))
    emptied = values.kernel("empty_copies", {"RESET": reset}, {}, reset.arguments)
    return [f"{emptied}(thread, num_threads, control, owner{tail(reset.arguments)})"]


def _announce_bits() -> list[str]:
    """Return the statements that send a frontier as a bitmap, where all devices number vertices alike."""
    received = "thread, num_threads, control, world, round_number, receive_at, receive_from, mail_bits, front"
    return [
        _ROUNDS,
        *indent([
            _IS_PACKED,
            "    post_bits(thread, num_threads, control, front, mail_bits)",
            *join(["count_bits(control, world, num_receivers, round_number, 8 * front.shape[0])"]),
            f"take_bits({received})",
            *join([_END]),
        ]),
    ]  # fmt: skip


def write_change_hooks(writer: PhaseWriter, operator: Operator) -> dict[str, Any]:
    """Write the functions by which a push finds out whether a rule changed a copy: BEFORE and CHANGED."""
    if writer.sharing is None:
        return {}
    number = writer.number(operator)
    names = [n for n in writer.sharing.collected(number) if declared_vertex(writer, n).width is None]
    fields = [field_name(name) for name in names]
    values = "".join(f"{name}[vertex], " for name in fields)
    tests = [f"{name}[vertex] != before[{i}]" for i, name in enumerate(fields)]
    before, changed = f"before_{number}", f"changed_{number}"
    writer.parts += [
        write_function(before, ("vertex", *fields), [f"return ({values or '0, '})"]),
        write_function(changed, ("vertex", "before", *fields), [f"return {' or '.join(tests) or 'False'}"]),
    ]
    own = {name: name for name in fields}
    return {"BEFORE": RuleCall(before, ("vertex", *fields), own),
            "CHANGED": RuleCall(changed, ("vertex", "before", *fields), own)}  # fmt: skip


# Collections


def _write_collection(writer: PhaseWriter, operator: Operator, found: Exchange) -> list[str]:
    """Write the kernels of a collection, or of a replication; return its statements."""
    sharing, flow, number = writer.sharing, writer.flow, writer.number(operator)
    assert sharing is not None
    is_replicated = found.kind == "replicate"
    is_ordered = operator is flow.ordered
    names = list(found.fields)
    options = {
        "HAS_OUTPUT": flow.has_output(operator) and not is_replicated,
        "IS_ORDERED": is_ordered,
        "CAN_PULL": flow.pulls,
        "REACHES_ALL": is_replicated or sharing.reaches_all(number),
        "IS_DECIDED": bool(names) and all(combining_rule(declared_vertex(writer, name)) is not None for name in names),
        "IS_CERTAIN": sharing.is_certain(number) and not is_replicated,
        "IS_REPLICATED": is_replicated,
    }
    resets = set() if is_replicated else sharing.resets(number)
    values = _Values(writer, names, f"{number}_{found.kind}")
    pack, merge = values.write_pack(), values.write_merge()
    read = names if is_replicated else sharing.read_at_copies(number)
    hooks = {"PACK": pack, "PACK_COPY": values.write_pack(read, "_copy"), "MERGE": merge,
             "MERGE_COPY": values.write_merge(read, "_copy"), "RESET": values.write_reset(resets),
             "FETCH": values.write_fetch()}  # fmt: skip
    extra = []
    if is_ordered:
        extra = writer.state(*(operator.rules.get(role) for role in ("rule", "priority", "where")))
        taken = (*ENTERING, *extra)
        hooks["ENTER"] = RuleCall(f"enter_{number}", taken, {name: name for name in taken if name != "vertex"})
    renamed = {"forget": values.kernel("forget", hooks, options, pack.arguments)}
    packed = values.kernel("pack_collected", hooks, options, pack.arguments, renamed)
    merged = values.kernel("merge_collected", hooks, options, [*merge.arguments, *extra])
    base, output, capacity = flow.target(operator).rsplit(", ", 2)
    merging = (
        f"{merged}({_RECEIVED}, owner, dirty, voices, border, back, queue, {base}, {output}, {capacity}, outbox, "
        f"blocks, links, bins, bitmap_a, bitmap_b, control[CURRENT]{tail(dict.fromkeys([*merge.arguments, *extra]))})"
    )
    # How many of the device's own vertices joined, as the last barrier has seen it.
    num_own = (
        f"(control[{output}] if control[SHARES_OWN] != 0 else 0)" if options["HAS_OUTPUT"] and not is_ordered else "0"
    )
    packing = (f"{packed}(thread, num_threads, control, world, owner, address, border, dirty, voices, "
               f"mail_at, mail_ids, back, queue, {base}, {num_own}{tail(pack.arguments)})")  # fmt: skip
    listing, ending = [], values.cleaning(hooks, options, renamed)
    if is_replicated:
        listing, ending = values.changes(), []
    end = [_END, *(["store(control, BORDER, 0)"] if is_replicated else [])]
    lines = [
        _ROUNDS,
        *indent([_IS_PACKED, *indent([*listing, packing]), *join([values.posting(num_own)]), merging, *join(end)]),
        *ending,
        *join(["store(control, BORDER, 0)"]),
    ]
    if operator.options.get("direction") != "auto":
        return lines
    # A pull writes at this device's own vertices only, of which others hear when they are announced.
    return ["if control[DIRECTION] != PULL or control[SHARES_OWN] != 0:", *indent(lines)]


# Mirrors


def _write_mirror(writer: PhaseWriter, operator: Operator, found: Exchange, *, announces: bool) -> list[str]:
    """Write the kernels of a mirror and return its statements."""
    number = writer.number(operator)
    values = _Values(writer, list(found.fields), f"{number}_{'announce' if announces else 'mirror'}")
    pack, take = values.write_pack(), values.write_take()
    hooks, options = {"PACK": pack, "TAKE": take}, {"ANNOUNCES": announces}
    packed = values.kernel("pack_mirrored", hooks, options, pack.arguments)
    taken = values.kernel("take_mirrored", hooks, options, take.arguments)
    assert found.over is not None
    source = writer.flow.place(found.over)
    length = f"{source.end} - ({source.begin})"
    copies = "world, copy_at, copy_peers, copy_ids, border, mail_at, mail_ids"
    return [
        f"list_vertices(thread, num_threads, control, {source.array}, {source.begin}, {source.end}, border)",
        *join([f"store(control, BORDER, {length})"]),
        _ROUNDS,
        *indent([
            _IS_PACKED,
            f"    {packed}(thread, num_threads, control, {copies}{tail(pack.arguments)})",
            *join([values.posting()]),
            f"{taken}({_RECEIVED}, front, border{tail(take.arguments)})",
            *join([_END]),
        ]),
        *join(["store(control, BORDER, 0)"]),
    ]  # fmt: skip


class _Values(Values):
    """The values of some fields on their way between devices, and the kernels that carry them."""

    def posting(self, num_own: str = "0") -> str:
        """Return the serial statement between packing and merging; the exchange gets a number."""
        size, number = f"mail_ids.itemsize + {self.item_bytes}", len(self.writer.carried)
        self.writer.carried.append(tuple(self.names))
        return f"post_items(control, world, num_receivers, round_number, {num_own}, {size}, {number})"

    def kernel(
        self, template: str, hooks: dict, options: dict[str, Any], state: Iterable[str], names: Any = None
    ) -> str:
        """Write a kernel of `shoal.backends.cpu.kernels.exchange`; return its name."""
        name = f"{template}_{self.suffix}"
        specializer = Specializer(hooks, {template: name, **(names or {})}, options, list(dict.fromkeys(state)))
        self.writer.parts.append("@inner()\n" + specialize(exchange, template, specializer))
        return name

    def write_fetch(self) -> RuleCall:
        """Write FETCH: ask for a vertex's values before they are needed."""
        narrow = [name for name in self.names if declared_vertex(self.writer, name).width is None]
        body = self._each("prefetch({field}, {at})", narrow)
        return self._function("fetch", ("vertex",), self._arrays(field_name), body)

    def cleaning(self, hooks: dict, options: dict[str, Any], names: dict[str, str]) -> list[str]:
        """Write the end of a collection and return its statements: what is sent on is forgotten only now."""
        state = hooks["PACK"].arguments
        cleaned = self.kernel("clean_border", hooks, options, state, names)
        return [
            "if world[WORLD_FORWARDS] == FORWARDS_ALL:",
            f"    {cleaned}(thread, num_threads, control, owner, dirty, voices, border, back{tail(state)})",
        ]

    def changes(self) -> list[str]:
        """Write the search for what changed since the last exchange and return its statements."""
        self.writer.remembered.update(dict.fromkeys(self.names))
        differs = self.write_differs()
        listed = self.kernel("list_changes", {"DIFFERS": differs}, {}, differs.arguments)
        return [f"{listed}(thread, num_threads, control, border{tail(differs.arguments)})", *join([])]

    def remembering(self) -> list[str]:
        """Write what notes all values and return its statements."""
        remember = self.write_remember()
        kept = self.kernel("remember_values", {"REMEMBER": remember}, {}, remember.arguments)
        return [f"{kept}(thread, num_threads, control{tail(remember.arguments)})"]
