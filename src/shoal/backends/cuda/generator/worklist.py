# SPDX-License-Identifier: Apache-2.0
"""Write the kernel of a phase without supersteps: every row of blocks is a device, and goes round by itself."""

from __future__ import annotations

import numpy as np

from shoal.backends.base import Types
from shoal.backends.cuda.generator.advance import edge_methods, push_call
from shoal.backends.cuda.generator.callbacks import (
    INCLUDE_CALLBACKS,
    has_callbacks,
    sending_methods,
    write_callbacks,
)
from shoal.backends.cuda.generator.exchange import Carried
from shoal.backends.cuda.generator.phase import (
    BITMAPS,
    BORDER,
    PhaseSource,
    kernel_head,
    kernel_of_rows,
    make_source,
    parameters_of,
)
from shoal.backends.cuda.generator.writer import INT64, VERTEX, KernelWriter, meeting, method
from shoal.backends.cuda.launch import BLOCKS_PER_PROCESSOR
from shoal.operators import Operator, Recording
from shoal.program import Phase
from shoal.worklists import Worklist, find_worklist

INCLUDE_WORKLIST = '#include "worklist.cuh"\n'
#: What the kernel takes behind all others: see `shoal.backends.cuda.channels`.
CHANNEL_PARAMETERS = {
    "channel_lines": "Index*", "rooms": "const Index*", "hops": "const Index*", "arrived": "Index*",
    "is_free": "Index*",
}  # fmt: skip


def write_worklist(
    recording: Recording, phase: Phase, dtypes: dict[str, np.dtype], types: Types, *, title: str,
    duplication: str | None, load_balance: str, has_priority: bool,
) -> PhaseSource:  # fmt: skip
    """Return the source of a phase without supersteps; see `write_phase`."""
    writer = KernelWriter(recording, phase, dtypes, types, duplication, load_balance)
    step = find_worklist(recording)
    has_priority = has_priority and "priority" in step.advance.rules
    _write_round(writer, step, has_priority)
    body = [
        *kernel_head(writer),
        f"Border<Id> border{{{BORDER}}};",
        "const Channels channels{channel_lines, rooms, hops, arrived, is_free};",
        "const Pile<Id> pile{{pile_a, pile_b}, remaining};",
        "while (true) {",
        *BITMAPS,
        "border.listed = listed + control[LIST_SIDE] * count;",
        *writer.lines,
        "if (control[REASON] != 0 || control[IS_LOST] != 0) return;",
        "}",
    ]
    kernel = kernel_of_rows(parameters_of(writer, in_rows=True) | CHANNEL_PARAMETERS, body, BLOCKS_PER_PROCESSOR)
    includes = INCLUDE_CALLBACKS if has_callbacks(step.advance) else INCLUDE_WORKLIST
    return make_source(writer, kernel, BLOCKS_PER_PROCESSOR, title, includes=includes,
                       is_asynchronous=True, has_priority=has_priority)  # fmt: skip


def _write_round(writer: KernelWriter, step: Worklist, has_priority: bool) -> None:
    """Add the statements of one round."""
    op = _write_rules(writer, step, has_priority)
    kind = writer.name(step.advance, "push")
    values, item_bytes = _write_values(writer, step.advance) if writer.sharing is not None else ("", 0)
    writer.lines += [
        f"const auto op = {op};",
        "const int side = static_cast<int>(control[PILE_SIDE]);",
        "const bool takes_near = control[TASK] == TAKE_NEAR;",
        "const int far_side = takes_near ? 1 - side : side;",
        "if (control[TASK] == FIND_LOWEST) find_lowest(op, control, pile);",
        *_before_visits(step, kind, values),
        push_call(writer, kind, "visit", "queue, control[BEGIN], control[END]"),
        "}",
        meeting("if (threadIdx.x == 0) end_visits(control, border, channels);"),
    ]
    if values:
        told = f"end_sending(control, border, channels, sizeof(Id) + {item_bytes}); decide(control, border, channels);"
        writer.lines += [
            "if (control[NUM_LISTED] > 0) {",
            "const Id* const earlier = border.listed;",
            "border.listed = listed + control[LIST_SIDE] * count;",
            "send(values, border, channels, earlier, control[NUM_LISTED]);",
            meeting(f"if (threadIdx.x == 0) {{ {told} }}"),
            "}",
        ]


def _before_visits(step: Worklist, kind: str, values: str) -> list[str]:
    """Return the statements of a round up to its visits, which may run beside what has arrived, but for callbacks."""
    made = [f"const auto values = {values};"] if values else []
    outputs = [
        "const Output<Id> near{queue, control[OUT_BASE], OUTPUT, count};",
        "const Output<Id> far{pile.lists[far_side], 0, PILE + far_side * LINE, count};",
        f"Spread<{kind}, Id> visit{{indices, {{op, make_outbox<0>(control, near), make_outbox<1>(control, far), back, "
        "remaining, control[CURRENT]}};",
    ]
    taking_near = "if (takes_near) take_near(pile, side, control[PILE + side * LINE], control[BEFORE], visit.enter);"
    taking_up = []
    if step.computes:  # before anybody adds to what is taken
        taking_up = ["if (control[END] > control[BEGIN]) {", "take_up(op, queue, control[BEGIN], control[END]);",
                     meeting(), "}"]  # fmt: skip
    if values and has_callbacks(step.advance):
        receiving = "receive_in_turn(values, border, channels, visit.enter, front, control, generation);"
        return [*made, "{", *outputs, receiving, *taking_up, taking_near]
    receiving = "receive(values, border, channels, visit.enter);"
    return [*taking_up, *made, "{", *outputs, taking_near, *([receiving] if values else [])]


def _write_rules(writer: KernelWriter, step: Worklist, has_priority: bool) -> str:
    """Write the structure of the step's rules; return the text that makes one."""
    operator = step.advance
    methods, rules = edge_methods(writer, operator, incoming=False)
    number, passes = "FIRST", "true"
    if has_priority:
        rules.append(operator.rules["priority"])
        number = writer.value_rule("priority_of", operator.rules["priority"], VERTEX, INT64)
    if step.filter is not None:
        rules.append(step.filter.rules["rule"])
        passes = writer.flag_rule("passes_on", step.filter.rules["rule"], VERTEX)
    taken = []
    for place, compute in enumerate(step.computes):
        rules.append(compute.rules["rule"])
        taken.append(writer.flag_rule(f"take_up_{place}", compute.rules["rule"], VERTEX, is_used=False) + ";")
    passing = [method("bool passes(Index vertex) const", f"return {passes};")]
    if has_callbacks(operator):
        rules += [operator.rules["on_send"]] if "on_send" in operator.rules else []
        passing = sending_methods(writer, operator, passes)
    methods += [
        method("Index priority(Index vertex) const", f"return bounded({number});"),
        *passing,
        method("void take_up(Index vertex) const", " ".join(taken)),
    ]
    options = {
        "FROM_QUEUE": True, "CLEARS_MARKS": True, "SKIP_EDGES": 0, "FIRST_EDGES": -1,
        "HAS_WHERE": "where" in operator.rules and operator.options["early_exit"],
    }  # fmt: skip
    return writer.structure(operator, options, rules, methods, weights="weights", suffix="push")


def _write_values(writer: KernelWriter, operator: Operator) -> tuple[str, int]:
    """Write the structure of what travels; return the text that makes one, and the bytes of an item's values."""
    sharing, number = writer.sharing, writer.number(operator)
    assert sharing is not None
    values, resets = Carried(writer, list(sharing.collected(number)), f"{number}_collect"), sharing.resets(number)
    is_certain = sharing.is_certain(number)
    if has_callbacks(operator):
        write_callbacks(values, operator, resets)
        is_certain = is_certain and "unpack" not in operator.rules and "on_receive" not in operator.rules
    else:
        values.add("pack", values.write_pack())
        values.add("merge", values.write_merge())
        values.add("reset", values.write_reset(resets))
    return values.structure({"IS_CERTAIN": is_certain}), values.item_bytes
