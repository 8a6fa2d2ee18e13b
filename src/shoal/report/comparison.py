# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: what they took, how many times as much the second, and where their strategies differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.machine import format_bytes
from shoal.report.aggregation import group_supersteps
from shoal.report.figures import BLUE, VERMILION, Chart, format_seconds, make_figure, packed, superstep_axis, time_unit
from shoal.report.kinds import KINDS, seconds_of
from shoal.report.page import assemble, make_section, make_table
from shoal.report.tables import environment_of, strategies_of
from shoal.report.trace import RunTrace

_COUNTS = ("num_supersteps", "edges_visited", "work_items", "messages", "items_sent", "items_combined", "stolen_edges")
_BYTES = ("bytes_sent", "peak_memory_bytes")
#: The second is broken, so that one sees the first where they lie on one another.
_STYLES = ({"color": BLUE, "width": 3}, {"color": VERMILION, "width": 2, "dash": "dash"})


@dataclass(frozen=True)
class Row:
    """One number of both runs."""

    name: str
    first: float
    second: float

    @property
    def ratio(self) -> float | None:
        """How many times as much the second has; None if the first has none."""
        return self.second / self.first if self.first else None

    def in_words(self) -> tuple[str, str, str, str]:
        """Return the name, both numbers in their unit, and the ratio."""
        shown = format_seconds if "seconds" in self.name else format_bytes if "bytes" in self.name else "{:,.0f}".format
        ratio = "-" if self.ratio is None else f"{self.ratio:,.0f}x" if self.ratio >= 1000 else f"{self.ratio:.3g}x"
        return self.name.replace("_", " "), shown(self.first), shown(self.second), ratio  # type: ignore[arg-type]


@dataclass(frozen=True)
class TraceComparison:
    """Two traces and the names they are told apart by."""

    first: RunTrace
    second: RunTrace
    names: tuple[str, str]

    def rows(self) -> list[Row]:
        """Return the numbers of both, those that neither has left out."""
        first, second = self.first.stats, self.second.stats
        rows = [Row("seconds", first["seconds"], second["seconds"])]
        rows += [Row(f"{kind.name}_seconds", *(float(seconds_of(trace, kind).sum()) for trace in self.traces))
                 for kind in KINDS]  # fmt: skip
        rows += [Row(key, first[key], second[key]) for key in (*_COUNTS, *_BYTES)]
        return [row for row in rows if row.first or row.second]

    @property
    def traces(self) -> tuple[RunTrace, RunTrace]:
        """Both traces."""
        return self.first, self.second

    @property
    def _most_supersteps(self) -> int:
        return max(len(trace.supersteps) for trace in self.traces)

    def differences(self) -> list[tuple[str, str, str]]:
        """Return what was not the same in both: the call, the graph, strategies, the machine."""
        sides = [_circumstances(trace) for trace in self.traces]
        names = list(dict.fromkeys([*sides[0], *sides[1]]))
        pairs = [(name, sides[0].get(name, "-"), sides[1].get(name, "-")) for name in names]
        return [pair for pair in pairs if pair[1] != pair[2]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        rows = {row.name: {"first": row.first, "second": row.second, "ratio": row.ratio} for row in self.rows()}
        differences = {name: {"first": first, "second": second} for name, first, second in self.differences()}
        return {"names": list(self.names), "numbers": rows, "differences": differences}

    def make_page(self) -> str:
        """Return an HTML page of both."""
        head = ("", *self.names)
        numbers = make_table((*head, "second / first"), [row.in_words() for row in self.rows()])
        differences = self.differences()
        parts = [_section("Numbers", "What each run took: good is a second run with ratios below 1.", numbers)]
        if differences:
            words = (
                "What was not the same: a ratio says something about the one strategy that differs, if only one does."
            )
            parts.append(_section("Differences", words, make_table(head, differences)))
        charts = [chart for chart in (self._draw_times(), self._draw_frontiers()) if chart is not None]
        parts += map(make_section, charts)
        title = f"{self.names[0]} and {self.names[1]}"
        return assemble(title, f"{self.first.title}; {self.second.title}", parts, charts)

    def _draw_times(self) -> Chart | None:
        """Return how far each run had come when."""
        ends = [(trace.begin + trace.column("seconds")).max(axis=1, initial=0.0) for trace in self.traces]
        if any(trace.is_asynchronous or not trace.supersteps for trace in self.traces):
            return None
        scale, unit = time_unit(max(float(end.max(initial=0.0)) for end in ends))
        lines = []
        for trace, name, style, end in zip(self.traces, self.names, _STYLES, ends, strict=True):
            last = group_supersteps(trace).last
            lines.append(_line(name, style, last + 1, end[last] * scale, f"%{{y:.4g}} {unit}"))
        figure = make_figure(lines, xaxis=superstep_axis(1, self._most_supersteps, "supersteps done"),
                             yaxis={"title": {"text": f"time ({unit})"}, "rangemode": "tozero"})  # fmt: skip
        return Chart("times", "Time by superstep", "When each superstep was done: good is a line that stays low; a "
                     "jump is a superstep that took long.", figure)  # fmt: skip

    def _draw_frontiers(self) -> Chart | None:
        """Return the frontiers of both runs."""
        if any(trace.is_asynchronous or not trace.supersteps for trace in self.traces):
            return None
        lines = []
        for trace, name, style in zip(self.traces, self.names, _STYLES, strict=True):
            groups = group_supersteps(trace)
            sizes = groups.sum(trace.column("frontier_size").sum(axis=1)) / groups.sizes
            lines.append(_line(name, style, groups.first, sizes, "%{y:,.4s} vertices"))
        figure = make_figure(lines, xaxis=superstep_axis(0, self._most_supersteps - 1),
                             yaxis={"title": {"text": "vertices in the frontier"}, "rangemode": "tozero"})  # fmt: skip
        return Chart("frontiers", "Frontiers", "The frontiers of both runs: of the same algorithm on the same graph, "
                     "good is two lines that lie on one another.", figure)  # fmt: skip


def compare_traces(first: RunTrace, second: RunTrace, names: tuple[str, str]) -> TraceComparison:
    """Return two runs side by side; names that are alike get a number."""
    if names[0] == names[1]:
        names = (f"{names[0]} (1)", f"{names[1]} (2)")
    return TraceComparison(first, second, names)


def _circumstances(trace: RunTrace) -> dict[str, str]:
    graph = trace.graph
    facts = {"call": trace.call, "graph": f"{graph['num_vertices']:,} vertices, {graph['num_edges']:,} stored edges"}
    taken = {axis: name for axis, name, _ in strategies_of(trace)}
    others = {name: value for name, value in environment_of(trace).items() if name != "when"}
    return facts | taken | others


def _line(name: str, style: dict[str, Any], x: np.ndarray, y: np.ndarray, said: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers" if len(x) <= 100 else "lines", "name": name, "showlegend": True,
        "x": packed(x), "y": packed(y), "line": style, "marker": {"size": 6},
        "hovertemplate": f"<b>{_escaped(name)}</b>, superstep %{{x}}: {said}<extra></extra>",
    }  # fmt: skip


def _escaped(name: str) -> str:
    """Return a name as a template of Plotly takes it."""
    return name.replace("<", "&lt;").replace("%{", "% {")


def _section(title: str, caption: str, table: str) -> str:
    return f'<section id="{title.lower()}"><h2>{title}</h2><p class="caption">{caption}</p>{table}</section>'
