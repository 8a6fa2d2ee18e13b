# SPDX-License-Identifier: Apache-2.0
"""Write an advance: push, pull, or by priority."""

from __future__ import annotations

from shoal.accesses import find_accesses
from shoal.backends.cuda.generator.dealing import END_STOLEN, PART, write_dealing
from shoal.backends.cuda.generator.exchange import announcement, emptying, visiting, write_exchanges
from shoal.backends.cuda.generator.writer import END, INT64, VERTEX, KernelWriter, meeting, method, place_of
from shoal.operators import Operator
from shoal.rules import Rule

NO_PIECES = "control[NUM_PIECES] = 0;"  # the next push cuts its own
#: How a push deals edges, by the names of ``RunConfig.load_balance``: what it is called, and its last argument.
BALANCES = {
    "auto": ("push<{op}>", "pieces"),
    "thread": ("push_by<ByThread, {op}>", "Ledger{}"),
    "warp": ("push<{op}>", "Pieces<Id>{nullptr, nullptr, 0, max_degree}"),
    "block": ("push_by<ByBlock, {op}>", "Ledger{}"),
    "lrb": ("push_by<ByBins, {op}>", "ledger"),
    "merge-path": ("push_by<ByMergePath, {op}>", "ledger"),
}


def write_advance(writer: KernelWriter, operator: Operator) -> None:
    """Add the statements of an advance."""
    if operator is writer.flow.ordered:
        _write_ordered(writer, operator)
        return
    direction = operator.options["direction"]
    pushed = _push(writer, operator) if direction != "pull" else []
    if pushed:
        _end_push(writer, operator)
    pulled = _pull(writer, operator) if direction != "push" else []
    if not pushed or not pulled:
        writer.lines += pushed or pulled
        return
    writer.lines += [reconsider(writer), "if (control[DIRECTION] == PULL) {", *pulled, "} else {", *pushed, "}"]


def reconsider(writer: KernelWriter) -> str:
    """Return the statement by which a push may turn to pull after all."""
    agree = "Alone{}" if writer.sharing is None else "SumOfAll{world}"
    call = f"reconsider(control, generation, knobs, queue, indptr, max_degree, {agree});"
    return f"if (control[DIRECTION] == PUSH) {call}"


def edge_methods(writer: KernelWriter, operator: Operator, *, incoming: bool) -> tuple[list[str], list[Rule]]:
    """Write the rules of an advance and return the methods that call them."""
    number, suffix = writer.number(operator), "in" if incoming else "out"
    rule, where = operator.rules["rule"], operator.rules.get("where")
    # Several lanes may share a source, and in the long lists of a pull a destination: only `visit_own` is alone.
    visit = writer.flag_rule(f"visit_{number}_{suffix}", rule, writer.edge_places)
    body = f"return {visit};" if incoming else visiting(writer, operator, visit)
    methods = [method("bool visit(Index src, Index dst, Index edge) const", body)]
    if incoming:
        own = writer.flag_rule(f"visit_own_{number}", rule, writer.edge_places, owned="dst")
        methods.append(method("bool visit_own(Index src, Index dst, Index edge) const", f"return {own};"))
    ask = "true" if where is None else writer.flag_rule(f"where_{number}_{suffix}", where, VERTEX)
    methods.append(method("bool where(Index vertex) const", f"return {ask};"))
    return methods, [rule] if where is None else [rule, where]


def _push(writer: KernelWriter, operator: Operator) -> list[str]:
    flow, source = writer.flow, writer.flow.source(operator)
    first = operator.options["first_edges"]
    options = {
        "FROM_QUEUE": source.is_queued,
        "UNIQUE": operator.options["unique"],
        "CLEARS_MARKS": flow.clears_as_it_reads(operator),
        "HAS_WHERE": "where" in operator.rules and operator.options["early_exit"],
        "HAS_OUTPUT": flow.has_output(operator),
        "SKIP_EDGES": operator.options["skip_edges"],
        "FIRST_EDGES": -1 if first is None else first,
    }
    methods, rules = edge_methods(writer, operator, incoming=False)
    op = writer.structure(operator, options, rules, methods, weights="weights", suffix="push")
    kind = writer.name(operator, "push")
    is_dealt = operator in writer.dealt
    call = [
        "{",
        f"const auto op = {op};",
        f"Discover<{kind}, Id> visit{{op, indices, make_outbox<0>(control, {writer.output(operator)}), back}};",
        push_call(writer, kind, "visit", PART if is_dealt else place_of(source)),
        "}",
    ]
    if is_dealt:
        call = write_dealing(writer, operator, kind, call)
    if operator.options["direction"] == "push":
        return call
    lines = []
    if not operator.options["unique"]:
        lines += ["if (control[HAS_PULLED_LAST] != 0) {", "clear_words(back, num_words);", *emptying(writer, operator),
                  meeting(), "}"]  # fmt: skip
    if source.is_queued:
        adopt = writer.serial_function("serial_adopt_queue", {"control": writer.control()}, "adopt_queue(control)", END)
        lines += ["if (control[HAS_QUEUE] == 0) {", *_to_queue(writer, operator, "front", adopt), "}"]
    return [*lines, *call]


def _end_push(writer: KernelWriter, operator: Operator) -> None:
    """Add what one thread does behind a push."""
    writer.serial.one(NO_PIECES, *([END_STOLEN] if operator in writer.dealt else []))


def push_call(writer: KernelWriter, op: str, visit: str, place: str) -> str:
    """Return the statement that hands every edge of a frontier to ``visit``."""
    name, needed = BALANCES[writer.load_balance]
    writer.uses_ledger = writer.uses_ledger or needed == "ledger"
    writer.uses_balance = writer.uses_balance or name.startswith("push_by")
    return f"{name.format(op=op)}({visit}, control, generation, {place}, front, indptr, {needed});"


def _to_queue(writer: KernelWriter, operator: Operator, bitmap: str, serial: str = "") -> list[str]:
    """Return the statements that list the vertices of a bitmap behind the frontiers."""
    counter = writer.flow.output_counter(operator)
    place = f"Output<Id>{{queue, control[OUT_BASE], {counter}, queue_length - control[OUT_BASE]}}"
    return [
        f"bitmap_to_queue(control, {bitmap}, num_words, {place});",
        meeting(f"if (threadIdx.x == 0) {{ {serial} put(control, {counter}, 0); }}"),
    ]


def _pull(writer: KernelWriter, operator: Operator) -> list[str]:
    writer.uses_in_edges = True
    is_everything = operator.frontier is not None and operator.frontier.kind == "all"
    options = {
        "ALL_SOURCES": is_everything,
        "EARLY_EXIT": operator.options["early_exit"],
        "IS_SHAREABLE": _is_shareable(operator),
    }
    methods, rules = edge_methods(writer, operator, incoming=True)
    op = writer.structure(operator, options, rules, methods, weights="in_weights", suffix="pull")
    lines = [] if is_everything else [
        "if (control[HAS_BITMAP] == 0) {",
        "clear_words(front, num_words);",
        meeting(),
        "queue_to_bitmap(queue, control[BEGIN], control[END], front);",
        meeting(),
        "}",
        *announcement(writer, operator),
    ]  # fmt: skip
    lines.append(f"pull({op}, control, control[NUM_LOCAL], front, back, remaining, in_indptr, in_indices);")
    if writer.flow.needs_queue and writer.flow.is_result(operator):
        lines += [meeting(), *_to_queue(writer, operator, "back")]
    return lines


def _is_shareable(operator: Operator) -> bool:
    """Whether several edges of a destination may be visited at once: the rule can push, too, or it only stores."""
    if operator.options["direction"] == "auto":
        return True
    accesses = find_accesses(operator.rules["rule"])
    written = {access.array for access in accesses if access.writes}
    return not written & {access.array for access in accesses if access.reads}


def _write_ordered(writer: KernelWriter, operator: Operator) -> None:
    methods, rules = edge_methods(writer, operator, incoming=False)
    priority = operator.rules["priority"]
    call = writer.value_rule(f"priority_{writer.number(operator)}", priority, VERTEX, INT64)
    methods.append(method("Index priority(Index vertex) const", f"return bounded({call});"))
    options = {"FROM_QUEUE": True, "CLEARS_MARKS": True, "HAS_WHERE": "where" in operator.rules, "SKIP_EDGES": 0,
               "FIRST_EDGES": -1}  # fmt: skip
    op = writer.structure(operator, options, [*rules, priority], methods, weights="weights", suffix="push")
    kind = writer.name(operator, "push")
    # Where nobody asks in between, the pile's turn comes with the next superstep, which saves a meeting.
    is_shared = writer.sharing is not None
    is_asked = writer.phase.until is not None or len(writer.flow.operators) > 1 or is_shared
    agree = "LowestOfAll{world}" if is_shared else "Alone{}"
    # With an operator of its own: what rules are told changes with the pile's turn.
    due = [
        "if (control[PILE_DUE] != 0) {",
        f"take_lowest<{str(is_asked).lower()}>({op}, control, generation, pile, "
        f"Output<Id>{{queue, control[BEGIN], OUTPUT, control[NUM_LOCAL]}}, {agree});",
        "}",
    ]
    is_dealt = operator in writer.dealt
    rules_of_part = f"const auto op = {op};"
    places = [
        rules_of_part,
        "const int side = static_cast<int>(control[PILE_SIDE]);",
        "const Output<Id> near{queue, control[OUT_BASE], OUTPUT, control[NUM_LOCAL]};",
        "const Output<Id> far{pile.lists[side], 0, PILE + side * LINE, control[NUM_LOCAL]};",
    ]
    push = [
        f"Relax<{kind}, Id> relax{{op, indices, make_outbox<0>(control, near), make_outbox<1>(control, far), back, "
        "remaining, control[CURRENT]};",
        push_call(writer, kind, "relax", PART if is_dealt else "queue, control[BEGIN], control[END]"),
    ]
    writer.lines += [
        "{",
        "const Pile<Id> pile{{pile_a, pile_b}, remaining};",
        *([] if is_asked else due),
        *places,
        *(write_dealing(writer, operator, kind, [rules_of_part, *push]) if is_dealt else push),
    ]
    _end_push(writer, operator)
    write_exchanges(writer, operator)
    writer.serial.one(f"adopt_near(control, control[NUM_LOCAL]{', world' if is_shared else ''});")
    if is_asked:
        writer.lines += [writer.serial.take(), *due]
    writer.lines.append("}")
