# SPDX-License-Identifier: Apache-2.0
"""The plot of a report: medians of every library as bars, one group for each graph and kernel."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from shoal.bench.kernels import KERNELS
from shoal.errors import ArgumentError

if TYPE_CHECKING:
    from shoal.bench.report import BenchmarkReport


def check_plotly(path: object) -> None:
    """Refuse to plot without plotly, before anything is measured."""
    if importlib.util.find_spec("plotly") is None:
        raise ArgumentError(f"plot_path={str(path)!r} needs plotly; install it with: pip install 'shoal[report]'")


def make_page(report: BenchmarkReport) -> str:
    """Return an HTML page that needs no network."""
    import plotly.graph_objects as go

    rows = report.rows()
    figure = go.Figure()
    for library in report.libraries:
        medians = [report.median_ms(*row, library) for row in rows]
        figure.add_bar(name=library, x=_labels(rows), y=medians, hovertemplate="%{y:.4g} ms")
    goals = [goal.here_ms if goal else None for goal in (report.goal(*row) for row in rows)]
    if any(goals):
        marker = {"symbol": "line-ew-open", "size": 30, "color": "black"}
        figure.add_scatter(name="goal here", x=_labels(rows), y=goals, mode="markers", marker=marker)
    figure.update_layout(
        title=f"{report.environment['cpu']}, {report.settings['num_threads']} threads, {report.date}",
        barmode="group",
        yaxis={"title": "median, ms", "type": "log"},
    )
    return figure.to_html(include_plotlyjs=True)


def _labels(rows: list[tuple[str, str]]) -> list[list[str]]:
    """Return a label of two levels: graph over kernel."""
    return [[graph for graph, _ in rows], [KERNELS[kernel].title for _, kernel in rows]]
