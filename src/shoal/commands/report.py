# SPDX-License-Identifier: Apache-2.0
"""``shoal report`` and ``shoal compare``: look at runs whose traces ``--report run.json`` wrote."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from shoal.commands import display
from shoal.commands.options import Json, Quiet, expanded

TracePath = Annotated[str, typer.Argument(metavar="TRACE", help="What --report run.json wrote.")]


@expanded
def report(
    path: TracePath,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=".html (a page; TRACE.html if not given) or .perfetto.json."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a page of a run from its trace, or a timeline for ui.perfetto.dev."""
    from shoal.report.tables import totals_of
    from shoal.report.targets import check_target, write_target
    from shoal.report.trace import read_trace

    target = output or os.path.splitext(path)[0] + ".html"
    check_target("output", target)
    trace = read_trace(path)
    write_target(trace, "output", target)
    totals = totals_of(trace)
    if json:
        display.print_json({"written": target, "totals": totals})
    elif not quiet:
        display.print_facts(trace.title, totals | {"written": target})


@expanded
def compare(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A trace, as --report run.json wrote it.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another.")],
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page of both.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put two runs side by side: what they took, and what was not the same."""
    from shoal.errors import ArgumentError
    from shoal.report.comparison import compare_traces
    from shoal.report.targets import check_target, write_page
    from shoal.report.trace import read_trace

    if html is not None:
        if not html.lower().endswith(".html"):
            raise ArgumentError(f"html={html!r} has no known suffix; allowed: .html")
        check_target("html", html)
    names = (os.path.basename(first), os.path.basename(second))
    found = compare_traces(read_trace(first), read_trace(second), names)
    if html is not None:
        write_page(found.make_page(), html)
    if json:
        display.print_json(found.to_dict() | ({} if html is None else {"written": html}))
    elif not quiet:
        display.print_comparison(found.names, [row.in_words() for row in found.rows()], found.differences())
