# SPDX-License-Identifier: Apache-2.0
"""Write the kernels of an advance: push, pull, or by priority."""

from __future__ import annotations

from typing import Any

from shoal.accesses import find_accesses
from shoal.backends.cpu.generator.dealing import is_dealt, write_dealing, write_dealing_by_blocks
from shoal.backends.cpu.generator.exchange import (
    ORDERED_SHARED,
    PUSH_SHARED,
    write_announcement,
    write_change_hooks,
    write_emptying,
    write_exchanges,
)
from shoal.backends.cpu.generator.statements import join
from shoal.backends.cpu.kernels import advance, ordered
from shoal.backends.loops.specialize import RuleCall
from shoal.backends.loops.writer import PhaseWriter, field_name, indent, tail, write_function
from shoal.operators import Operator
from shoal.program import Vertex
from shoal.rules import Rule

Statements = tuple[list[str], list[str]]  # what all threads do, then what one does


def write_advance(writer: PhaseWriter, operator: Operator) -> Statements:
    """Return the statements of an advance."""
    if operator is writer.flow.ordered:
        return _write_ordered(writer, operator)
    direction = operator.options["direction"]
    options = _options(writer, operator)
    pushed = _push(writer, operator, options) if direction != "pull" else []
    pulled = _pull(writer, operator, options) if direction != "push" else []
    serial = [f"reset_work(work, {writer.number(operator)}, num_threads)"]
    if not pulled or not pushed:
        return pushed or pulled, serial
    return ["if control[DIRECTION] == PULL:", *indent(pulled), "else:", *indent(pushed)], serial


def _options(writer: PhaseWriter, operator: Operator) -> dict[str, Any]:
    first = operator.options["first_edges"]
    source = writer.flow.source(operator)
    return {
        "FROM_QUEUE": source.is_queued,
        "ALL_SOURCES": operator.frontier is not None and operator.frontier.kind == "all",
        "UNIQUE": operator.options["unique"],
        "IS_DEALT": is_dealt(writer, operator),
        "CLEARS_MARKS": writer.flow.clears_as_it_reads(operator),
        "HAS_WHERE": "where" in operator.rules and operator.options["early_exit"],
        "EARLY_EXIT": operator.options["early_exit"],
        "HAS_OUTPUT": writer.flow.has_output(operator),
        "SKIP_EDGES": operator.options["skip_edges"],
        "FIRST_EDGES": -1 if first is None else first,
    }


def _push(writer: PhaseWriter, operator: Operator, options: dict[str, Any]) -> list[str]:
    rule, where = operator.rules["rule"], operator.rules.get("where")
    hooks = {
        "RULE": writer.call(rule, owned="src"),
        "WHERE": writer.call(where) if where else True,
        "FETCH": _fetch(writer, operator, where or rule),
        **write_change_hooks(writer, operator),
    }
    state = writer.kernel(advance, "push", operator, hooks, options, [rule, where], shared=PUSH_SHARED)
    flow, number = writer.flow, writer.number(operator)
    source = flow.source(operator)

    def call(array: str, begin: str, end: str) -> str:
        return (
            f"push_{number}(thread, num_threads, control, work, {number}, {begin}, {end}, {array}, queue, "
            f"{flow.target(operator)}, outbox, front, back, indptr, indices, weights{state})"
        )

    lines = [call(source.array, source.begin, source.end)]
    if is_dealt(writer, operator):
        lines = write_dealing(writer, operator, options, call)
    if operator.options["direction"] == "push":
        return lines
    return [*_after_a_pull(writer, operator, reads_queue=source.is_queued), *lines]


def _fetch(writer: PhaseWriter, operator: Operator, rule: Rule) -> RuleCall:
    """Write the function that asks for a destination's state: what decides about it is read first."""
    fields = _vertex_fields(writer, set(rule.parameters))
    narrow = {name: declared for name, declared in fields.items() if declared.width is None}
    return _write_fetch(writer, f"fetch_{writer.number(operator)}", narrow)


def _read_at_sources(writer: PhaseWriter, rule: Rule) -> dict[str, Vertex]:
    """Return the fields that a rule over an edge reads at its source."""
    read = {access.array for access in find_accesses(rule) if access.place == "src" and access.reads}
    return _vertex_fields(writer, read)


def _vertex_fields(writer: PhaseWriter, names: set[str]) -> dict[str, Vertex]:
    return {name: field for name, field in writer.fields.items() if name in names and isinstance(field, Vertex)}


def _write_fetch(writer: PhaseWriter, name: str, fields: dict[str, Vertex]) -> RuleCall:
    """Write the function that asks for a vertex's values of ``fields``, of a row for its begin."""
    places = {field_name(name): "vertex" if field.width is None else "(vertex, 0)" for name, field in fields.items()}
    parameters = ("vertex", *places)
    body = [f"prefetch({array}, {place})" for array, place in places.items()]
    writer.parts.append(write_function(name, parameters, body))
    return RuleCall(name, parameters, {array: array for array in places})


def _after_a_pull(writer: PhaseWriter, operator: Operator, *, reads_queue: bool) -> list[str]:
    """Statements that a push after a pull needs: clean marks and copies, and the frontier as a queue."""
    counter = writer.flow.output_counter(operator)
    clean = [
        "if control[HAS_PULLED_LAST] != 0:",
        "    clear_words(thread, num_threads, back)",
        *indent(write_emptying(writer, operator)),
        "    barrier(control, num_threads)",
    ]
    convert = [
        "if control[HAS_QUEUE] == 0:",
        f"    bitmap_to_queue(thread, num_threads, control, {counter}, front, queue, control[OUT_BASE], outbox)",
        *indent(join(["adopt_queue(control)", f"store(control, {counter}, 0)"])),
    ]
    return (clean if not operator.options["unique"] else []) + (convert if reads_queue else [])


def _pull(writer: PhaseWriter, operator: Operator, options: dict[str, Any]) -> list[str]:
    writer.uses_in_edges = True
    rule, where = operator.rules["rule"], operator.rules["where"]
    hooks = {"RULE": writer.call(rule, owned="dst"), "WHERE": writer.call(where)}
    read = _read_at_sources(writer, rule)
    if any(declared.width for declared in read.values()):
        hooks["FETCH"] = _write_fetch(writer, f"fetch_source_{writer.number(operator)}", read)
    options = {**options, "READS_ROWS": "FETCH" in hooks}
    state = writer.kernel(advance, "pull", operator, hooks, options, [rule, where])
    flow, number = writer.flow, writer.number(operator)
    lines = [] if options["ALL_SOURCES"] else [
        "if control[HAS_BITMAP] == 0:",
        "    clear_words(thread, num_threads, front)",
        "    barrier(control, num_threads)",
        "    queue_to_bitmap(thread, num_threads, queue, control[BEGIN], control[END], front)",
        "    barrier(control, num_threads)",
        *write_announcement(writer, operator),
    ]  # fmt: skip
    lines += [
        f"pull_{number}(thread, num_threads, control, work, {number}, control[NUM_LOCAL], front, back, remaining, "
        f"in_indptr, in_indices, in_weights{state})",
    ]
    if flow.needs_queue and flow.is_result(operator):
        counter = flow.output_counter(operator)
        lines += [
            "barrier(control, num_threads)",
            f"bitmap_to_queue(thread, num_threads, control, {counter}, back, queue, control[OUT_BASE], outbox)",
            *join([f"store(control, {counter}, 0)"]),
        ]
    return lines


_ORDERED_TEMPLATES = {
    "enter": (), "relax_vertex": ORDERED_SHARED, "relax_block": ORDERED_SHARED, "sort_in": (), "take_spilled": (),
    "agree": ORDERED_SHARED, "ordered_push": ORDERED_SHARED,
}  # fmt: skip


def _write_ordered(writer: PhaseWriter, operator: Operator) -> Statements:
    rule, priority, where = operator.rules["rule"], operator.rules["priority"], operator.rules.get("where")
    hooks = {
        "RULE": writer.call(rule),
        "PRIORITY": writer.call(priority),
        "WHERE": writer.call(where) if where else True,
        **write_change_hooks(writer, operator),
    }
    rules: list[Rule | None] = [rule, priority, where]
    number = writer.number(operator)
    names = {template: f"{template}_{number}" for template in _ORDERED_TEMPLATES}
    options = {"HAS_WHERE": where is not None, "HAS_WEIGHTS": writer.is_weighted, "IS_STRICT": False}
    for template, shared in _ORDERED_TEMPLATES.items():
        is_inlined = template == "relax_vertex"
        writer.kernel(ordered, template, operator, hooks, options, rules, names, shared=shared, is_inlined=is_inlined)
    state = tail([*writer.state(*rules), *(ORDERED_SHARED if writer.sharing is not None else ())])
    bins = "blocks, links, bins, published, bitmap_a, bitmap_b"
    push = (
        f"ordered_push_{number}(thread, num_threads, control, work, {number}, {bins}, indptr, indices, weights{state})"
    )
    agree = f"agree_{number}(thread, num_threads, control, {bins}{state})"
    before: list[str] = []
    behind: list[str] = []
    if is_dealt(writer, operator):
        before, behind = write_dealing_by_blocks(writer, operator, hooks, options, rules, names, ORDERED_SHARED)
    body = [*before, push, *behind, *write_exchanges(writer, operator), agree]
    return body, [f"reset_work(work, {number}, num_threads)", "settle_buckets(control, published)"]
