# SPDX-License-Identifier: Apache-2.0
"""What all charts have in common: a `Chart`, how its figure is laid out, and numbers in the units of people.

A figure is what Plotly draws, as plain values: ``data`` and ``layout``.  What belongs to a device says so under
``meta``, so that the page can leave devices out: a trace of one has ``{"device": 3}``; one with an entry for each
device has ``{"devices": [...], "fields": ["y", "z"]}``, the lists that are entries by device.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

Figure = dict[str, Any]

INK, GRID = "#1f2933", "#e4e7eb"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
BLUE, ORANGE, GREEN, VERMILION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"


@dataclass(frozen=True)
class Chart:
    """A figure with its words.

    Parameters
    ----------
    name : of the section on the page
    caption : one sentence on what it shows and what good looks like
    note : what must be said of this run's figure, if anything
    """

    name: str
    title: str
    caption: str
    figure: Figure
    note: str = ""
    is_wide: bool = False  # it needs the whole width of the page


def make_figure(data: list[dict[str, Any]], *, height: int = 320, **layout: Any) -> Figure:
    """Return a figure in the page's style; axes are given by name, as Plotly calls them."""
    for name in [key for key in layout if key.startswith(("xaxis", "yaxis"))]:
        layout[name] = {"gridcolor": GRID, "zerolinecolor": GRID, "automargin": True} | layout[name]
    common = {
        "height": height,
        "margin": {"l": 70, "r": 24, "t": 40, "b": 56},
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "hoverlabel": {"font": {"family": FONT}},
    }
    return {"data": data, "layout": common | layout}


def superstep_axis(first: int, last: int, title: str = "superstep") -> dict[str, Any]:
    """Return an axis of supersteps, which has whole numbers only."""
    axis = {"title": {"text": title}, "range": [first - 0.5, last + 0.5], "tickformat": ",d", "showgrid": False}
    return axis | ({"dtick": 1, "tick0": first} if last - first < 20 else {})


def packed(array: np.ndarray) -> dict[str, Any]:
    """Return numbers as Plotly takes them in the least room: their bytes."""
    numbers = np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
    shape = {"shape": ", ".join(map(str, numbers.shape))} if numbers.ndim > 1 else {}
    return {"dtype": f"f{numbers.itemsize}", "bdata": base64.b64encode(numbers.tobytes()).decode("ascii")} | shape


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a time reads well: how many of it a second has, and its name."""
    return (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")


def format_seconds(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    scale, unit = time_unit(seconds)
    return f"{seconds * scale:,.3g} {unit}" if seconds * scale < 1000 else f"{seconds * scale:,.0f} {unit}"


def device_names(num_devices: int) -> list[str]:
    """Return what stands below a device's bars."""
    return [str(number) for number in range(num_devices)]


def make_bars(num_devices: int, data: list[dict[str, Any]], title: str, **layout: Any) -> Figure:
    """Return a figure with bars for each device; ``title`` says what their height is."""
    gap = max(0.25, 1 - 0.12 * num_devices)  # one or two bars must not fill the page
    axis = {"title": {"text": title}, "rangemode": "tozero", "exponentformat": "SI", "fixedrange": True}
    return make_figure(
        data, bargap=gap, xaxis={"type": "category", "title": {"text": "device"}, "showgrid": False},
        **({"yaxis": axis} | layout),
    )  # fmt: skip
