# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a result: what came out, the first and last vertices, and what the run took."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from shoal.machine import format_bytes

if TYPE_CHECKING:
    from shoal.results import Result
    from shoal.stats import Stats

#: Rows shown from either end: with more, a notebook's output scrolls.
NUM_ROWS = 5


def result_as_html(result: Result) -> str:
    """Return a caption, a table and a line of statistics; whatever is in a label, it is text."""
    summary = ", ".join(f"{escape(name)} = {_cell(value)}" for name, value in result.named_summary().items())
    size = result.num_rows
    head = result.named_columns(slice(0, min(NUM_ROWS, size)))
    tail = result.named_columns(slice(max(NUM_ROWS, size - NUM_ROWS), size))
    rows = _rows(head)
    if size > 2 * NUM_ROWS:
        rows.append("<tr>" + "<td>&#8942;</td>" * len(head) + "</tr>")
    rows += _rows(tail)
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    return (
        f"<div><p><b>{type(result).__name__}</b> of {result.graph.num_vertices:,} vertices: {summary}</p>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"<p>{escape(stats_line(result.stats))}</p></div>"
    )


def stats_line(stats: Stats) -> str:
    """Return what a run took, in one line."""
    devices = f"{len(stats.traces)} device{'s' * (len(stats.traces) != 1)}"
    return (
        f"{stats.seconds * 1e3:,.3f} ms on {devices}, {stats.num_supersteps:,} supersteps, "
        f"{stats.edges_visited:,} edges visited, {format_bytes(stats.peak_memory_bytes)} at most"
    )


def _rows(columns: dict[str, Any]) -> list[str]:
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return ["<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows]


def _cell(value: Any) -> str:
    return escape(f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value))
