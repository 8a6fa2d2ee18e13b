# SPDX-License-Identifier: Apache-2.0
"""Pictures of modelled scaling: curves over the number of devices, and what the time is spent on, as bars.

The page is Plotly's, the picture Matplotlib's: Plotly needs a browser to draw one.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.bench.report import write_whole
from shoal.errors import ArgumentError
from shoal.io.files import replacing
from shoal.model.pricing import PARTS

if TYPE_CHECKING:
    from shoal.bench.scaling import Point, ScalingReport

_INCHES_PER_PANEL = (7.0, 3.6)
_Panel = tuple[str, str]


def check_plotters(plot: str | os.PathLike[str] | None, image: str | os.PathLike[str] | None) -> None:
    """Refuse to plot without what plots, or into a folder that is not there, before anything runs."""
    for argument, path, module in (("plot", plot, "plotly"), ("image", image, "matplotlib")):
        if path is None:
            continue
        if importlib.util.find_spec(module) is None:
            shown = f"{argument}={os.fspath(path)!r}"
            raise ArgumentError(f"{shown} needs {module}; install it with: pip install 'shoal[report]'")
        if not Path(path).absolute().parent.is_dir():
            raise ArgumentError(f"{argument}={os.fspath(path)!r} is in a folder that does not exist; make it first")


def _panels(report: ScalingReport) -> list[_Panel]:
    return list(dict.fromkeys((point.kind, point.algorithm) for point in report.points))


def _points(report: ScalingReport, panel: _Panel) -> list[Point]:
    return [point for point in report.points if (point.kind, point.algorithm) == panel]


def _series(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Return the points of each combination of strategies; that of one device begins all of them."""
    listed = list(points)
    alone = [point for point in listed if point.num_devices == 1]
    found: dict[str, list[Point]] = {}
    for point in listed:
        if point.num_devices > 1:
            found.setdefault(point.series, list(alone)).append(point)
    return found or {"one device": alone}


def _title(report: ScalingReport) -> str:
    return f"modelled on {report.topology.name}, cost of {report.cost.device}"


def _axis(panel: _Panel) -> str:
    kind, algorithm = panel
    return f"{algorithm}, {kind}: {'speedup' if kind == 'strong' else 'efficiency'}"


def write_page(report: ScalingReport, path: str | os.PathLike[str]) -> None:
    """Write an HTML page that needs no network: curves, and under each the breakdown of every run."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    panels = _panels(report)
    titles = [text for panel in panels for text in (_axis(panel), f"{panel[1]}, {panel[0]}: milliseconds")]
    figure = make_subplots(rows=len(panels), cols=2, subplot_titles=titles)
    for row, panel in enumerate(panels, 1):
        points = _points(report, panel)
        for name, curve in _series(points).items():
            x, y = [p.num_devices for p in curve], [report.speedup(p) for p in curve]
            figure.add_trace(go.Scatter(name=name, legendgroup=name, showlegend=row == 1, x=x, y=y), row=row, col=1)
        labels = [[str(p.num_devices) for p in points], [p.series for p in points]]
        for index, part in enumerate(PARTS):
            y = [1e3 * p.timeline.to_dict()[f"{part}_seconds"] for p in points]
            color = _COLORS[index]
            bar = go.Bar(name=part, legendgroup=part, showlegend=row == 1, x=labels, y=y, marker_color=color)
            figure.add_trace(bar, row=row, col=2)
    figure.update_layout(title=_title(report), barmode="stack", height=450 * len(panels))
    write_whole(Path(path), figure.to_html(include_plotlyjs=True))


_COLORS = ("#4477aa", "#ee6677", "#ccbb44", "#bbbbbb", "#aa3377")


#: Curves have the colour of how devices exchange, and the line of what they steal.
_EXCHANGE_COLORS = {("selective", 1): "C0", ("broadcast", 1): "C1", ("butterfly", 1): "C2", ("butterfly", 4): "C3"}
_LINES = {"none": "-", "frontier": "--", "ownership": ":", "both": "-."}


def _style(point: Point) -> tuple[str, str]:
    return _EXCHANGE_COLORS.get((point.communication, point.fanout), "C4"), _LINES[point.stealing]


def write_image(report: ScalingReport, path: str | os.PathLike[str]) -> None:
    """Write a PNG picture: curves, and beside them the breakdown with the first strategies."""
    from matplotlib.figure import Figure

    panels = _panels(report)
    width, height = _INCHES_PER_PANEL
    figure = Figure(figsize=(2 * width, height * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 2, squeeze=False)
    for (curves, bars), panel in zip(axes, panels, strict=True):
        series = _series(_points(report, panel))
        for name, points in series.items():
            x, y = [p.num_devices for p in points], [report.speedup(p) for p in points]
            color, line = _style(points[-1])
            curves.plot(x, y, line, color=color, marker=".", label=name)
        curves.set(xlabel="devices", title=_axis(panel))
        curves.legend(fontsize=5, loc="center left", bbox_to_anchor=(1, 0.5))
        name, points = next(iter(series.items()))
        bottoms = [0.0] * len(points)
        for color, part in zip(_COLORS, PARTS, strict=True):
            heights = [1e3 * p.timeline.to_dict()[f"{part}_seconds"] for p in points]
            bars.bar([str(p.num_devices) for p in points], heights, bottom=bottoms, label=part, color=color)
            bottoms = [low + more for low, more in zip(bottoms, heights, strict=True)]
        bars.set(xlabel="devices", ylabel="ms", title=name)
        bars.legend(fontsize=6)
    figure.suptitle(_title(report))
    with replacing(os.fspath(path)) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
