# SPDX-License-Identifier: Apache-2.0
"""Write the dealing of a frontier's vertices among devices, around the push that visits them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from shoal.backends.cpu.generator.exchange import ENTERING
from shoal.backends.cpu.generator.statements import join
from shoal.backends.cpu.kernels import dealing
from shoal.backends.loops.specialize import RuleCall
from shoal.backends.loops.values import Values
from shoal.backends.loops.writer import PhaseWriter, indent
from shoal.operators import Operator
from shoal.rules import Rule

_COMMON = "thread, num_threads, control, world, deals"
#: Rows of the edges that are visited: those of the device's own vertices, and those that came along with others.
_ROWS = "rows_at, rows, rows_weights, rows_ids"
_OWN_ROWS = "indptr, indices, weights, edge_ids"
_SENT_ROWS = "sent_at, sent_rows, sent_weights, sent_ids"


def is_dealt(writer: PhaseWriter, operator: Operator) -> bool:
    """Whether devices may visit the edges of one another's vertices in an operator."""
    return writer.deals and writer.sharing is not None and writer.sharing.is_dealt(writer.number(operator))


def write_dealing(
    writer: PhaseWriter, operator: Operator, options: dict[str, Any], push: Callable[[str, str, str], str]
) -> list[str]:
    """Return the statements of a push whose vertices devices deal among one another, if that pays.

    ``push`` returns the call that visits a part of an array.  It stands in one place, in a loop over what is left of
    the device's own frontier and what each victim has for it, since it is compiled as often as it is written.
    """
    number = writer.number(operator)
    known = {"CLEARS_MARKS": options["CLEARS_MARKS"]}
    pack, take = _write_carrying(writer, operator, ("pack_dealt", "take_dealt"), {}, known)
    return [
        *_sharing_out(
            "weigh_frontier(thread, num_threads, control, world, queue, indptr, deals)", [],
            f"{pack.format('queue, front, mail_ids')}", f"{take.format('victim, mail_ids')}",
        ),
        "for victim in range(-1, num_victims):",
        "    sources, first, last = queue, control[BEGIN], control[DEALT_AT] if is_dealt else control[END]",
        f"    {_ROWS} = {_OWN_ROWS}",
        "    if victim >= 0:",
        "        first, last = dealt_range(control, world, deals, victim, 1)",
        "        if first == last:",
        "            continue",
        *indent(indent(_begin_stolen(number))),
        "        sources = mail_ids",
        "        if control[ROWS_COME] != 0:",
        f"            {_ROWS} = {_SENT_ROWS}",
        f"    {_with_rows(push('sources', 'first', 'last'))}",
        "    if victim >= 0:",
        *indent(indent(_end_stolen())),
    ]  # fmt: skip


def write_dealing_by_blocks(
    writer: PhaseWriter, operator: Operator, hooks: dict[str, Any], options: dict[str, Any], rules: list[Any],
    names: dict[str, str], shared: tuple[str, ...],
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Return the statements before and behind an advance by priority, of whose buckets devices deal blocks."""
    number, own = writer.number(operator), writer.state(*rules)
    entering = (*ENTERING, *own)
    enter = RuleCall(names["enter"], entering, {name: name for name in entering if name != "vertex"})
    pack, take = _write_carrying(
        writer, operator, ("pack_blocks", "take_blocks"), {**hooks, "ENTER": enter}, options, rules
    )
    state = writer.kernel(dealing, "relax_dealt", operator, hooks, options, rules, names, shared=shared)
    bins = "blocks, links, bins, bitmap_a, bitmap_b, control[CURRENT]"
    relaxed = f"thread, num_threads, control, deals, victim, mail_ids, {bins}, indptr, indices, weights{state}"
    before = [
        *join(["weigh_by_blocks(control)"]),
        *_sharing_out(
            "weigh_blocks(thread, num_threads, control, world, published, blocks, bitmap_a, indptr, deals)",
            ["control[NUM_PUBLISHED] = control[DEALT_AT] - control[BEGIN]"],
            f"{pack.format(f'published, {bins}, mail_ids')}", f"{take.format('victim, mail_ids')}",
        ),
    ]  # fmt: skip
    behind = [
        f"{_ROWS} = {_OWN_ROWS}",
        "if control[ROWS_COME] != 0:",
        f"    {_ROWS} = {_SENT_ROWS}",
        "for victim in range(num_victims):",
        *indent(_begin_stolen(number)),
        f"    {_with_rows(f'relax_dealt_{number}({relaxed})')}",
        *indent(_end_stolen()),
    ]
    return before, behind


def _sharing_out(weigh: str, decided: list[str], pack: str, take: str) -> list[str]:
    """Return the statements that weigh frontiers, decide, and hand over; all of it before any rule runs.

    What a rule finds at a copy is sent later, so nobody may write an owner's value over it.
    """
    return [
        "is_dealt = is_worth_dealing(control)",
        "num_victims = 0",
        "if is_dealt:",
        f"    {weigh}",
        *indent(join(["share_out(control, world, deals)"])),
        f"    {pack}",
        *indent(join(["meet(control, world)", *decided])),
        "    num_victims = world[WORLD_DEVICES]",
        "    for victim in range(num_victims):",
        f"        {take}",
        *indent(join([])),
    ]


def _with_rows(call: str) -> str:
    """Return a call that visits edges with the rows at hand in the place of the device's own."""
    for own, row in zip(_OWN_ROWS.split(", "), _ROWS.split(", "), strict=True):
        call = re.sub(rf"\b{own}\b", row, call)
    return call


def _begin_stolen(number: int) -> list[str]:
    counts = ["control[STOLEN] -= load(control, EDGES)", "control[SINCE] = nanoseconds()",
              "control[BY_PLACE] = control[ROWS_COME]"]  # fmt: skip
    return join([f"reset_work(work, {number}, num_threads)", *counts])


def _end_stolen() -> list[str]:
    return join(["control[STOLEN] += load(control, EDGES)", "control[STEALING] += nanoseconds() - control[SINCE]",
                 "control[BY_PLACE] = 0"])  # fmt: skip


def _write_carrying(
    writer: PhaseWriter, operator: Operator, templates: tuple[str, str], hooks: dict[str, Any], options: dict[str, Any],
    rules: Iterable[Rule | None] = (),
) -> tuple[str, str]:  # fmt: skip
    """Write what packs vertices that are given away and what takes them; return the calls, open for some arguments."""
    assert writer.sharing is not None
    values = Values(writer, list(writer.sharing.read_at_sources(writer.number(operator))), "dealt")
    hooks = {**hooks, "PACK": values.write_pack(), "TAKE": values.write_take()}
    extra = [name for name in hooks["PACK"].arguments if name not in writer.state(*rules)]
    calls = []
    for template in templates:
        state = writer.kernel(dealing, template, operator, hooks, options, list(rules), extra_state=extra)
        calls.append(f"{template}_{writer.number(operator)}({_COMMON}, {{}}{state})")
    return calls[0], calls[1]
