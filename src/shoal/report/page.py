# SPDX-License-Identifier: Apache-2.0
"""One HTML file without a network: words, charts and the library that draws them, which is in it once."""

from __future__ import annotations

import html
import importlib.util
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from shoal.errors import ArgumentError
from shoal.report.charts import draw_charts
from shoal.report.figures import Chart
from shoal.report.tables import environment_of, phases_of, strategies_of, totals_of
from shoal.report.trace import RunTrace

_FOLDER = Path(__file__).parent
_HELP = (
    "Drag across a chart to zoom in, double-click to see all of it again, point at a bar to read its numbers, click a "
    "name in a legend to hide it."
)


def check_plotly(argument: str, path: object) -> None:
    """Refuse to make a page without plotly, before anything is run."""
    if importlib.util.find_spec("plotly") is None:
        raise ArgumentError(f"{argument}={str(path)!r} needs plotly; install it with: pip install 'shoal[report]'")


def make_page(trace: RunTrace) -> str:
    """Return the page of a run."""
    charts = draw_charts(trace)
    wide = [make_section(chart) for chart in charts if chart.is_wide]
    narrow = [make_section(chart) for chart in charts if not chart.is_wide]
    parts = [_cards(totals_of(trace)), _filter(trace.num_devices), _paragraph(_HELP), *wide]
    parts += ['<div class="pairs">', *narrow, "</div>", _strategies(trace), _phases(trace), _environment(trace)]
    graph = trace.graph
    kind = ("directed" if graph["is_directed"] else "undirected") + (", weighted" if graph["is_weighted"] else "")
    subtitle = f"{graph['num_vertices']:,} vertices, {graph['num_edges']:,} stored edges, {kind}; {trace.created}"
    return assemble(trace.title, subtitle, parts, charts)


def assemble(title: str, subtitle: str, parts: Iterable[str], charts: Sequence[Chart]) -> str:
    """Return a whole page: its parts in order, and what draws the charts in them."""
    from plotly.offline import get_plotlyjs

    figures = json.dumps({chart.name: chart.figure for chart in charts}, separators=(",", ":"), allow_nan=False)
    figures = figures.replace("<", "\\u003c")  # a name in a figure must not end the element that it is in
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_read('page.css')}</style></head><body>",
        f"<header><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p></header><main>",
        *parts,
        "</main>",
        f'<script type="application/json" id="figures">{figures}</script>',
        f"<script>{get_plotlyjs()}</script>",
        f"<script>{_read('page.js')}</script>",
        "</body></html>",
    ]) + "\n"  # fmt: skip


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _paragraph(text: str, style: str = "help") -> str:
    return f'<p class="{style}">{html.escape(text)}</p>'


def _cards(totals: dict[str, str]) -> str:
    cards = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in totals.items()
    )
    return f'<dl id="totals">{cards}</dl>'


def _filter(num_devices: int) -> str:
    """Return the row of devices to choose from; nothing where there is no choice."""
    if num_devices == 1:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" value="{device}" checked>{device}</label>' for device in range(num_devices)
    )
    return (
        f'<fieldset id="devices"><legend>Devices shown</legend><button type="button" value="all">all</button>'
        f'<button type="button" value="none">none</button>{boxes}</fieldset>'
    )


def make_section(chart: Chart) -> str:
    """Return a chart's place on the page, with its words."""
    note = _paragraph(chart.note, "note") if chart.note else ""
    return (
        f'<section id="{chart.name}"><h2>{html.escape(chart.title)}</h2>{_paragraph(chart.caption, "caption")}{note}'
        f'<div class="plot" id="plot-{chart.name}" style="height:{chart.figure["layout"]["height"]}px"></div></section>'
    )


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its first column names the rows."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = "".join(
        f"<tr><th>{html.escape(row[0])}</th>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _strategies(trace: RunTrace) -> str:
    table = make_table(("strategy", "taken", "why"), strategies_of(trace))
    words = "How the run was carried out, and why: good is what shoal chose by itself, unless you measured better."
    return f'<section id="strategies"><h2>Strategies</h2>{_paragraph(words, "caption")}{table}</section>'


def _phases(trace: RunTrace) -> str:
    rows, num_more = phases_of(trace)
    if len(rows) < 2:
        return ""
    more = _paragraph(f"And {num_more:,} more phases.", "note") if num_more else ""
    words = "The phases one after the other: good is most supersteps where the algorithm's own work is."
    table = make_table(("program", "step", "supersteps"), rows)
    return f'<section id="phases"><h2>Phases</h2>{_paragraph(words, "caption")}{table}{more}</section>'


def _environment(trace: RunTrace) -> str:
    table = make_table(("fact", "value"), environment_of(trace).items())
    words = "Where the run was: compare times only with those of the same machine and versions."
    return f'<section id="environment"><h2>Environment</h2>{_paragraph(words, "caption")}{table}</section>'
