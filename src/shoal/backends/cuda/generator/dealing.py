# SPDX-License-Identifier: Apache-2.0
"""Write the dealing of a frontier's vertices among devices, around the push that visits them.

The push stands in one place, in a loop over the device's own part and those that it steals.  There the names of what it
reads, rows, weights and numbers of edges, are those of the owner's arrays.
"""

from __future__ import annotations

from shoal.backends.base import DEALS
from shoal.backends.cuda.exports import c_type
from shoal.backends.cuda.generator.exchange import Carried
from shoal.backends.cuda.generator.writer import KernelWriter, meeting
from shoal.backends.loops.writer import source_name
from shoal.operators import Operator

INCLUDE_DEALING = '#include "dealing.cuh"\n'
#: What a kernel takes for it, by device; then, likewise, the fields that rules read at vertices whose edges they visit.
DEAL_PARAMETERS = {
    "deal_rows": "Index* const*", "deal_queues": "const Id* const*", "deal_indptrs": "const Offset* const*",
    "deal_indices": "const Id* const*", "deal_weights": "const Weight* const*", "deal_edge_ids": "const Offset* const*",
}  # fmt: skip
DEALING = "const Dealing<Id, Offset> dealing{border, deal_rows[border.device], deal_rows, deal_queues, deal_indptrs};"
END_STOLEN = "end_stolen(control, dealing.row);"
#: Where the push of a part is, and what it is called there: the queue and its bounds.
PART = "deal_queues[part.owner], part.begin, part.end"


def is_dealt(writer: KernelWriter, operator: Operator, stealing: str) -> bool:
    """Whether devices visit the edges of one another's vertices in an operator.

    Owners may go on as soon as they have pushed their part, so there must be an exchange, at which they wait for
    thieves; and thieves read owners' arrays by addresses that do not change places.
    """
    if stealing not in DEALS or writer.sharing is None:
        return False
    number = writer.number(operator)
    if not writer.sharing.is_dealt(number) or not writer.sharing.exchanges(number):
        return False
    swapped = {name for op in writer.flow.operators if op.kind == "swap" for name in op.into}
    return not swapped & set(writer.sharing.read_at_sources(number))


def dealt_parameters(writer: KernelWriter) -> dict[str, str]:
    """Return what a kernel takes to deal: names and types."""
    tables = {source_name(name): f"{c_type(writer.dtypes[name])}* const*" for name in writer.dealt_fields}
    return DEAL_PARAMETERS | tables


def write_dealing(writer: KernelWriter, operator: Operator, kind: str, push: list[str]) -> list[str]:
    """Return the statements of a push whose vertices devices deal among one another, if that pays.

    ``push`` visits a part; ``kind`` is the structure of its rules.
    """
    return [
        "{",
        "const bool is_dealt = is_worth_dealing(control);",
        "if (is_dealt) {",
        f"deal_frontier<{kind}>(control, generation, dealing, front);",
        *_taking(writer, operator),
        "}",
        "for (Index turn = 0; turn < (is_dealt ? border.devices : 1); turn++) {",
        "const Part part = dealing.part(control, is_dealt, turn);",
        "if (turn > 0) {",
        "if (part.begin >= part.end) continue;",
        meeting("if (threadIdx.x == 0) begin_stolen(control, dealing.row, part.owner);"),
        "}",
        *_places(writer, operator),
        *push,
        "}",
        "}",
    ]


def _taking(writer: KernelWriter, operator: Operator) -> list[str]:
    """Return the statements that copy what the rule reads at stolen vertices."""
    assert writer.sharing is not None
    names = writer.sharing.read_at_sources(writer.number(operator))
    if not names:
        return []
    writer.dealt_fields.update(dict.fromkeys(names))
    values = _Owned(writer, list(names), f"{writer.number(operator)}_dealt")
    values.add("take", values.write_take())
    return [f"take_stolen({values.structure({})}, control, dealing);", meeting()]


def _places(writer: KernelWriter, operator: Operator) -> list[str]:
    """Return the declarations of the owner's arrays, by the names that a push knows them by."""
    used = {name for rule in operator.rules.values() for name in rule.parameters}
    lines = [
        "const Offset* const indptr = deal_indptrs[part.owner];",
        "const Id* const indices = deal_indices[part.owner];",
    ]
    if writer.weight is not None:
        lines.append("[[maybe_unused]] const Weight* const weights = deal_weights[part.owner];")
    if "edge" in used:
        lines.append("const Offset* const edge_ids = deal_edge_ids[part.owner];")
    return lines


class _Owned(Carried):
    """Values that are read where their owners have them: in the place of mail are the owners' own arrays."""

    is_mailed = False

    def mail_member(self, field: str) -> dict[str, tuple[str, str]]:
        """Return the member with the owners' arrays."""
        return {f"mails_{field}": (f"{c_type(self.kernel.dtypes[field])}* const*", source_name(field))}
