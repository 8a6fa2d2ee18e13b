# SPDX-License-Identifier: Apache-2.0
"""The timeline: a lane for each device, and in it what the device spent its time on.

A lane is one line for each kind and shade, broken between bars, so that thousands of bars are one shape each to a
browser.  What no superstep accounts for, between phases, stays blank.  Where there would be more bars than can be told
apart, a lane is a row of an image instead: the share of each slice of time that was work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.report.aggregation import has_a_bar_each, shares_over_time
from shoal.report.figures import Chart, Figure, format_seconds, make_figure, packed, time_unit
from shoal.report.kinds import IDLE, STEAL, WORK, Kind, measured_kinds, seconds_of, working_seconds
from shoal.report.trace import RunTrace

_CAPTION = (
    "What each device did when: good is lanes that are nearly all work (blue) and end together; a lane with much idle "
    "time (orange) has too little to do, and much packing and combining means that devices share too many edges."
)
_ALONE = "How the run's time went, superstep by superstep: good is one block of work (blue) without gaps."
_SHADES = "Shades of blue alternate, so that one sees where a superstep ends."
_STOLEN = "To steal is to work along the edges of other devices' vertices."
_ORDER = "How long a device did each in a superstep is known, not when: they are drawn one behind the other."


def draw_timeline(trace: RunTrace) -> Chart | None:
    """Return what each device did over time."""
    if not trace.supersteps:
        return None
    end = float((trace.begin + trace.column("seconds")).max())
    scale, unit = time_unit(end)
    lane = 34 if trace.num_devices <= 16 else 15
    draw = _draw_bars if has_a_bar_each(trace) else _draw_shares
    data, note = draw(trace, scale, lane)
    figure = _layout(trace, data, lane, end * scale, unit)
    caption = _CAPTION if trace.num_devices > 1 else _ALONE
    return Chart("timeline", "Timeline", caption, figure, f"{note} {_of_whole(trace, end)}".strip(), is_wide=True)


def _layout(trace: RunTrace, data: list[dict[str, Any]], lane: int, end: float, unit: str) -> Figure:
    return make_figure(
        data,
        height=lane * trace.num_devices + 110,
        xaxis={"title": {"text": f"time since the first superstep began ({unit})"}, "range": [0, max(end, 1e-9)]},
        yaxis={"range": [trace.num_devices - 0.5, -0.5], "fixedrange": True, "type": "category", "showgrid": False},
        dragmode="zoom",
        hovermode="closest",
        meta={"lane": lane},
    )


def _of_whole(trace: RunTrace, shown: float) -> str:
    """Return the words for what of the run's time no superstep had, if it is much."""
    whole = trace.stats["seconds"]
    if whole <= 1.1 * shown:
        return ""
    return (f"Of the run's {format_seconds(whole)} this is {format_seconds(shown)}; in the rest its state was put on "
            "the devices, and gathered.")  # fmt: skip


def _lane_name(device: int) -> str:
    return f"device {device}"


def _draw_shares(trace: RunTrace, scale: float, lane: int) -> tuple[list[dict[str, Any]], str]:
    """Return an image: the share of time at work by device and slice of time."""
    edges, shares = shares_over_time(trace, working_seconds(trace))
    colors = [[0, IDLE.color], [0.5, "#e4e7eb"], [1, WORK.color]]
    image = {
        "type": "heatmap", "x0": float((edges[0] + edges[1]) / 2 * scale), "dx": float(edges[1] * scale),
        "y": [_lane_name(device) for device in range(trace.num_devices)],
        "z": [[None if np.isnan(share) else round(share, 3) for share in row] for row in shares.tolist()],
        "zmin": 0, "zmax": 1, "colorscale": colors,
        "colorbar": {"title": {"text": "share at work"}, "tickformat": ".0%", "len": 1, "thickness": 14},
        "hovertemplate": "<b>%{y}</b>, %{x:.4g}<br>%{z:.0%} at work<extra></extra>",
        "meta": {"devices": list(range(trace.num_devices)), "fields": ["y", "z"]},
    }  # fmt: skip
    note = (f"The {len(trace.supersteps):,} supersteps are too many to be told apart: a cell is the share of "
            f"{format_seconds(float(edges[1]))} that the device was at work.")  # fmt: skip
    return [image], note


def _draw_bars(trace: RunTrace, scale: float, lane: int) -> tuple[list[dict[str, Any]], str]:
    """Return a bar for each kind, superstep and device."""
    kinds = measured_kinds(trace)
    bars = _Bars(trace, kinds, scale, lane * 0.7)
    words = [_SHADES] if bars.is_shaded else []
    words += [_STOLEN] if STEAL in kinds else []
    words += [_ORDER] if len(kinds) > 1 else []
    lines = [line for device in range(trace.num_devices) for line in bars.of_device(device)]
    named: set[str] = set()
    for line in lines:
        line["showlegend"] = line["name"] not in named
        named.add(line["name"])
    return lines, " ".join(words)


class _Bars:
    """The bars of all kinds, by superstep and device; those of a superstep stand one behind the other."""

    def __init__(self, trace: RunTrace, kinds: list[Kind], scale: float, width: float) -> None:
        self.trace, self.kinds, self.width = trace, kinds, width
        self.is_shaded = not trace.is_asynchronous and len(trace.supersteps) > 1
        self.numbers = np.arange(len(trace.supersteps))
        begin = trace.begin
        self.spans = []
        for kind in kinds:
            seconds = seconds_of(trace, kind)
            self.spans.append((begin * scale, (begin + seconds) * scale, seconds))
            begin = begin + seconds

    def of_device(self, device: int) -> list[dict[str, Any]]:
        """Return a device's lines, of the kinds that it has bars of."""
        lines = []
        for kind, span in zip(self.kinds, self.spans, strict=True):
            columns = [array[:, device] for array in span]
            if kind is WORK and self.is_shaded:
                lines.append(self._line(device, kind, kind.color, columns, slice(0, None, 2)))
                lines.append(self._line(device, kind, kind.shade, columns, slice(1, None, 2)))
            else:
                lines.append(self._line(device, kind, kind.color, columns, slice(None)))
        return [line for line in lines if line["y"]]

    def _line(self, device: int, kind: Kind, color: str, columns: list[np.ndarray], which: slice) -> dict[str, Any]:
        begin, end, seconds = (column[which] for column in columns)
        is_drawn = seconds > 0
        places = np.stack([begin, end, np.full_like(begin, np.nan)], axis=1)[is_drawn]
        said = np.stack([self.numbers[which], seconds], axis=1)[is_drawn]
        return {
            "type": "scatter",
            "mode": "lines",
            "x": packed(places.reshape(-1)),
            "y": [_lane_name(device)] * places.size,
            "customdata": packed(np.repeat(said, 3, axis=0).astype(np.float32)),
            "line": {"color": color, "width": self.width, "simplify": False},
            "name": kind.name,
            "legendgroup": kind.name,
            "hovertemplate": f"<b>{_lane_name(device)}</b>, superstep %{{customdata[0]:.0f}}<br>"
            f"{kind.name}: %{{customdata[1]:.3s}}s<extra></extra>",
            "meta": {"device": device},
        }
