# SPDX-License-Identifier: Apache-2.0
"""The charts of a run beside its timeline: a function each, which gives nothing where a run has nothing to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shoal.machine import format_bytes
from shoal.report.aggregation import Groups, group_supersteps
from shoal.report.figures import (
    BLUE,
    GREEN,
    PURPLE,
    VERMILION,
    Chart,
    device_names,
    make_bars,
    make_figure,
    packed,
    superstep_axis,
    time_unit,
)
from shoal.report.kinds import measured_kinds, seconds_of, working_seconds
from shoal.report.timeline import draw_timeline
from shoal.report.trace import RunTrace

WIDE = 50  # where the largest frontier is so many times the smallest, a linear axis would not show that one
_DIRECTIONS = {"push": BLUE, "pull": VERMILION, "push and pull": PURPLE}


def draw_frontier(trace: RunTrace) -> Chart | None:
    """Return the size and direction of every superstep's frontier."""
    if trace.is_asynchronous or not trace.supersteps:
        return None
    groups = group_supersteps(trace)
    sizes = trace.column("frontier_size").sum(axis=1)
    means, most = groups.mean(sizes), groups.maximum(sizes)
    directions = _directions_of(trace, groups)
    is_one = groups.are_single
    said = "%{y:,.0f} vertices" if is_one else "%{y:,.4s} vertices on average, %{customdata[1]:,.0f} at most"
    which = "superstep %{customdata[0]}" if is_one else "supersteps %{customdata[0]} to %{customdata[2]}"
    bars = []
    for name, color in _DIRECTIONS.items():
        chosen = np.flatnonzero(directions == name)
        if len(chosen) == 0:
            continue
        details = np.stack([groups.first, most, groups.last], axis=1)[chosen].astype(np.float64)
        bars.append({
            "type": "bar", "name": name, "marker": {"color": color, "line": {"width": 0}}, "showlegend": True,
            "x": packed(groups.middle[chosen]), "width": packed(groups.sizes[chosen] * 0.92),
            "y": packed(means[chosen]), "customdata": packed(details),
            "hovertemplate": f"<b>{which}</b>, {name}<br>{said}<extra></extra>",
        })  # fmt: skip
    is_wide = means.max(initial=0) > WIDE * means[means > 0].min(initial=np.inf)
    axis = {"type": "log", "dtick": 1, "exponentformat": "SI"} if is_wide else {"rangemode": "tozero"}
    title = "vertices, logarithmic" if is_wide else "vertices"
    figure = make_figure(bars, barmode="overlay", xaxis=superstep_axis(0, len(trace.supersteps) - 1),
                         yaxis={"title": {"text": title}, "fixedrange": True} | axis)  # fmt: skip
    caption = (
        "How many vertices each superstep began with, and which way it looked along edges: good is few supersteps with "
        "large frontiers, and pull where they are largest; thousands of small ones are what execution='async' is for."
    )
    note = "" if is_one else f"A bar stands for up to {int(groups.sizes.max()):,} supersteps, and shows their mean."
    return Chart("frontier", "Frontier", caption, figure, note, is_wide=True)


def _directions_of(trace: RunTrace, groups: Groups) -> np.ndarray:
    """Return the direction of each group's supersteps, or that it has both."""
    share = groups.sum(np.array([direction == "pull" for direction in trace.directions], np.int64)) / groups.sizes
    return np.where(share == 0, "push", np.where(share == 1, "pull", "push and pull"))


def draw_times(trace: RunTrace) -> Chart | None:
    """Return how long every superstep took, and on what."""
    if trace.is_asynchronous or not trace.supersteps:
        return None
    groups = group_supersteps(trace)
    scale, unit = time_unit(float(groups.mean(trace.column("seconds").max(axis=1)).max()))
    numbers = packed(np.stack([groups.first, groups.last], axis=1).astype(np.float64))
    bars = [
        {
            "type": "bar", "name": kind.name, "marker": {"color": kind.color, "line": {"width": 0}}, "showlegend": True,
            "x": packed(groups.middle), "width": packed(groups.sizes * 0.92), "customdata": numbers,
            "y": packed(groups.mean(seconds_of(trace, kind).mean(axis=1)) * scale),
            "hovertemplate": "<b>supersteps %{customdata[0]} to %{customdata[1]}</b><br>"
            f"{kind.name}: %{{y:.4g}} {unit}<extra></extra>",
        }
        for kind in measured_kinds(trace)
    ]  # fmt: skip
    figure = make_figure(bars, barmode="stack", xaxis=superstep_axis(0, len(trace.supersteps) - 1),
                         yaxis={"title": {"text": f"time of a superstep ({unit})"}, "rangemode": "tozero",
                                "fixedrange": True})  # fmt: skip
    caption = (
        "How long each superstep took, as a mean over the devices: good is time that follows the frontier's size; "
        "where small frontiers take as long as large ones, it is meetings that take the time."
    )
    note = "" if groups.are_single else f"A bar is the mean of up to {int(groups.sizes.max()):,} supersteps."
    return Chart("times", "Time of supersteps", caption, figure, note, is_wide=True)


def draw_load(trace: RunTrace) -> Chart | None:
    """Return how edges and time are spread over devices."""
    if trace.num_devices == 1 or not trace.supersteps:
        return None
    edges = trace.column("edges_visited").sum(axis=0)
    seconds = working_seconds(trace).sum(axis=0)
    scale, unit = time_unit(float(seconds.max()))
    figure = make_bars(
        trace.num_devices,
        [
            _bars(trace, "edges visited", edges, BLUE, "%{y:,.0f} edges", yaxis="y", offsetgroup=0),
            _bars(trace, "time at work", seconds * scale, GREEN, f"%{{y:.4g}} {unit}", yaxis="y2", offsetgroup=1),
        ],
        "edges visited",
        barmode="group",
        yaxis2={"title": {"text": f"time at work ({unit})"}, "rangemode": "tozero", "overlaying": "y", "side": "right",
                "showgrid": False, "fixedrange": True, "tickmode": "auto"},
        margin={"l": 70, "r": 70, "t": 40, "b": 56},
    )  # fmt: skip
    caption = (
        "What each device had to do: good is bars of one height, for all devices wait for the one that has most; "
        "if edges are even but times are not, some devices are slower."
    )
    return Chart("load", "Load balance", caption, figure, f"The busiest device has {_excess(edges)} of the edges and "
                 f"{_excess(seconds)} of the time at work of the mean.")  # fmt: skip


def _excess(values: np.ndarray) -> str:
    mean = values.mean()
    return f"{values.max() / mean:.2f} times" if mean > 0 else "as much"


def draw_visits(trace: RunTrace) -> Chart | None:
    """Return how many vertices each device visited without supersteps."""
    if not trace.is_asynchronous:
        return None
    visits = trace.column("frontier_size").sum(axis=0)
    bars = _bars(trace, "visits", visits, PURPLE, "%{y:,.0f} visits")
    figure = make_bars(trace.num_devices, [bars], "visits of vertices")
    num_vertices = trace.graph["num_vertices"]
    note = (
        f"The graph has {num_vertices:,} vertices; there were {visits.sum() / max(num_vertices, 1):.2f} visits of each."
    )
    caption = (
        "How often devices visited a vertex without supersteps: good is little more than one visit of each vertex, "
        "since a vertex that is visited too early is visited again."
    )
    return Chart("visits", "Visits", caption, figure, note)


def draw_bytes(trace: RunTrace) -> Chart | None:
    """Return what devices sent to one another: pair by pair where the run counted that, else by sender."""
    pairs = trace.stats.get("bytes_by_pair")
    if trace.num_devices == 1 or not trace.supersteps:
        return None
    if pairs is None:
        return _draw_senders(trace)
    names = device_names(trace.num_devices)
    matrix = {
        "type": "heatmap", "x": names, "y": names, "z": pairs, "colorscale": "Cividis", "zmin": 0, "xgap": 1, "ygap": 1,
        "colorbar": {"title": {"text": "bytes"}, "exponentformat": "SI"},
        "hovertemplate": "device %{y} to device %{x}<br>%{z:,.4s}B<extra></extra>",
        "meta": {"devices": list(range(trace.num_devices)), "fields": ["y", "z"]},
    }  # fmt: skip
    figure = make_figure([matrix], height=min(26 * trace.num_devices, 560) + 160,
                         xaxis={"title": {"text": "receiver"}, "type": "category"},
                         yaxis={"title": {"text": "sender"}, "type": "category", "autorange": "reversed"})  # fmt: skip
    caption = (
        "Bytes from each device to each other: good is an even square and a low scale; a bright cell is a pair that "
        "shares many edges, and a partition that cuts fewer would spare it."
    )
    return Chart("bytes", "Bytes between devices", caption, figure)


def _draw_senders(trace: RunTrace) -> Chart:
    sent = trace.column("bytes_sent").sum(axis=0)
    figure = make_bars(trace.num_devices, [_bars(trace, "bytes sent", sent, BLUE, "%{y:,.4s}B")], "bytes sent")
    caption = (
        "Bytes that each device sent to all others together: good is low and even; a partition that cuts fewer edges, "
        "or another communication, sends less."
    )
    return Chart("bytes", "Bytes sent", caption, figure, "The run counted what each device sent, not to whom.")


def draw_stealing(trace: RunTrace) -> Chart | None:
    """Return the edges that devices took over from one another."""
    stolen = trace.column("stolen_edges").sum(axis=0)
    if not stolen.any():
        return None
    bars = _bars(trace, "stolen edges", stolen, VERMILION, "%{y:,.0f} edges")
    figure = make_bars(trace.num_devices, [bars], "stolen edges")
    caption = (
        "Edges that devices looked at for others who had too much to do: good is few, and most of them with devices "
        "that would have been idle."
    )
    return Chart("stealing", "Stealing", caption, figure)


def draw_groups(trace: RunTrace) -> Chart | None:
    """Return how many devices took part in each superstep, where they may hand their parts to others."""
    sizes = np.array(trace.stats.get("group_sizes", ()))
    if len(sizes) == 0:
        return None
    groups = group_supersteps(trace)
    bars = {
        "type": "bar", "name": "devices", "marker": {"color": GREEN, "line": {"width": 0}},
        "x": packed(groups.middle), "width": packed(groups.sizes), "y": packed(groups.mean(sizes)),
        "customdata": packed(np.stack([groups.first, groups.last], axis=1).astype(np.float64)),
        "hovertemplate": "<b>supersteps %{customdata[0]} to %{customdata[1]}</b><br>%{y:.3g} devices<extra></extra>",
    }  # fmt: skip
    figure = make_figure([bars], xaxis=superstep_axis(0, len(trace.supersteps) - 1),
                         yaxis={"title": {"text": "devices"}, "rangemode": "tozero", "fixedrange": True})  # fmt: skip
    caption = (
        "How many devices took part in each superstep: good is all of them where frontiers are large, and few where "
        "devices would meet for longer than they work; each change takes time."
    )
    changes = trace.stats.get("regroupings", ())
    seconds = sum(change["seconds"] for change in changes)
    note = f"The group changed {len(changes)} times, in {1e3 * seconds:.3g} ms together."
    return Chart("groups", "Devices taking part", caption, figure, note, is_wide=True)


def draw_memory(trace: RunTrace) -> Chart | None:
    """Return the most that each device took, beside the limit if there is one."""
    peaks = np.array(trace.stats["peak_memory_bytes_by_device"], np.float64)
    if len(peaks) != trace.num_devices:
        return None
    limit = trace.memory_limit_bytes
    scale, unit = _bytes_unit(max(peaks.max(initial=0), limit or 0))
    names = device_names(trace.num_devices)
    data = [_bars(trace, "peak", peaks * scale, GREEN, f"%{{y:.4g}} {unit}")]
    if limit is not None:
        data.append({
            "type": "scatter", "mode": "markers", "name": "limit", "x": names, "y": [limit * scale] * len(names),
            "marker": {"symbol": "line-ew", "size": 36, "line": {"width": 3, "color": VERMILION}},
            "hovertemplate": f"limit: %{{y:.4g}} {unit}<extra></extra>",
            "meta": {"devices": list(range(len(names))), "fields": ["x", "y"]},
        })  # fmt: skip
    figure = make_bars(trace.num_devices, data, f"memory beside the graph ({unit})", showlegend=True)
    caption = (
        "The most memory that the run took on each device, for its fields, lists and mail: good is even bars, well "
        "under the limit where there is one."
    )
    return Chart("memory", "Memory", caption, figure, _memory_note(trace, limit))


def _memory_note(trace: RunTrace, limit: int | None) -> str:
    graph = f"The graph itself has {format_bytes(trace.graph['bytes'])} more."
    if limit is not None:
        return f"memory_limit is {format_bytes(limit)} for each device. {graph}"
    gpus = trace.environment.get("gpus")
    have = f"a GPU has {format_bytes(gpus[0]['memory_bytes'])}" if gpus else (
        f"the machine has {format_bytes(trace.environment['memory_bytes'])}")  # fmt: skip
    return f"No memory_limit was set; {have}. {graph}"


def _bytes_unit(most: float) -> tuple[float, str]:
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next(((1 / size, name) for size, name in units if most >= size), (1.0, "bytes"))


def _bars(
    trace: RunTrace, name: str, values: np.ndarray | Sequence[float], color: str, said: str, **more: Any
) -> dict[str, Any]:
    """Return a bar for each device."""
    names = device_names(trace.num_devices)
    return {
        "type": "bar", "name": name, "x": names, "y": np.asarray(values, np.float64).tolist(),
        "marker": {"color": color}, "hovertemplate": f"<b>device %{{x}}</b><br>{name}: {said}<extra></extra>",
        "meta": {"devices": list(range(len(names))), "fields": ["x", "y"]},
    } | more  # fmt: skip


#: In the order of the page.
CHARTS: tuple[Callable[[RunTrace], Chart | None], ...] = (
    draw_timeline,
    draw_frontier,
    draw_times,
    draw_visits,
    draw_load,
    draw_bytes,
    draw_stealing,
    draw_groups,
    draw_memory,
)


def draw_charts(trace: RunTrace) -> list[Chart]:
    """Return all charts that there is something to show in."""
    return [chart for draw in CHARTS if (chart := draw(trace)) is not None]
