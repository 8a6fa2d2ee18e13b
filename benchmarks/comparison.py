# SPDX-License-Identifier: Apache-2.0
"""The comparison of libraries as tables: what is kept of a benchmark's JSON, and the rows made of it."""

from __future__ import annotations

import statistics
from typing import Any

from shoal.bench.goals import Goal, find_goal
from shoal.bench.kernels import KERNELS
from shoal.bench.table import format_ms
from tables import circumstances, markdown_table, noise

#: Fewer vertices than this: arrays over the vertices stay in the caches, and times say little about large graphs.
LARGE = 1 << 20
NOT_LARGE = (
    "A quick run on small graphs, which fit into the caches: it shows what is measured, not how fast large graphs are."
)

Row = tuple[str, str]


def summarize(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the tables need of a benchmark's JSON: medians, minima and counts in place of samples."""
    if "shoal" not in report["libraries"]:
        raise ValueError(f"libraries={report['libraries']} is not allowed; shoal must be among them")
    kept = ("command", "date", "environment", "libraries")
    settings = {name: report["settings"][name] for name in ("repetitions", "num_threads")}
    graphs = [{name: value for name, value in graph.items() if name != "sources"} for graph in report["graphs"]]
    results = [_summarize_cell(cell) for cell in report["results"]]
    return {
        "kind": "comparison",
        **{name: report[name] for name in kept},
        "settings": settings,
        "graphs": graphs,
        "results": results,
    }


def _summarize_cell(cell: dict[str, Any]) -> dict[str, Any]:
    kept = {name: cell[name] for name in ("graph", "kernel", "library", "agrees", "note", "failure")}
    seconds = cell["seconds"]
    times = {
        "median_ms": statistics.median(seconds) * 1e3 if seconds else None,
        "minimum_ms": min(seconds) * 1e3 if seconds else None,
        "num_samples": len(seconds),
    }
    return kept | times


class Comparison:
    """A kept comparison, to be asked by graph, kernel and library."""

    def __init__(self, summary: dict[str, Any]) -> None:
        self.summary = summary
        self.peers = [library for library in summary["libraries"] if library != "shoal"]
        self._cells = {(cell["graph"], cell["kernel"], cell["library"]): cell for cell in summary["results"]}
        self.rows: list[Row] = list(dict.fromkeys((cell["graph"], cell["kernel"]) for cell in summary["results"]))

    def cell(self, row: Row, library: str) -> dict[str, Any]:
        """Return one cell."""
        return self._cells[*row, library]

    def median_ms(self, row: Row, library: str) -> float | None:
        """Return a median; None where nothing, or something wrong, was measured."""
        cell = self.cell(row, library)
        return None if cell["agrees"] is False else cell["median_ms"]

    def goal(self, row: Row) -> Goal | None:
        """Return what is carried over from the other machine."""
        medians = {library: self.median_ms(row, library) for library in self.peers}
        return find_goal(*row, {library: median for library, median in medians.items() if median})

    @property
    def is_large(self) -> bool:
        """Whether a graph is large enough for its times to say something."""
        return any(graph["num_vertices"] >= LARGE for graph in self.summary["graphs"])


def comparison_table(summary: dict[str, Any]) -> list[str]:
    """Return the whole table: every library, and GAPBS where it is known."""
    comparison = Comparison(summary)
    goals = {row: comparison.goal(row) for row in comparison.rows}
    has_goals = any(goals.values())
    header = ["graph", "kernel", "shoal", *comparison.peers]
    if has_goals:
        header += ["GAPBS, carried over", "shoal by GAPBS"]
    rows = []
    for row in comparison.rows:
        graph, kernel = row
        libraries = [_library_cell(comparison, row, library) for library in ("shoal", *comparison.peers)]
        rows.append(
            [graph, KERNELS[kernel].title, *libraries, *(_goal_cells(comparison, row, goals[row]) if has_goals else [])]
        )
    return [*markdown_table(header, rows, right=set(range(2, len(header)))), "", *_notes(comparison, has_goals)]


def _library_cell(comparison: Comparison, row: Row, library: str) -> str:
    cell = comparison.cell(row, library)
    if cell["median_ms"] is None:
        return "failed" if cell["failure"] else ""
    text = format_ms(cell["median_ms"])
    own = comparison.median_ms(row, "shoal")
    if own and library != "shoal":
        text += f" ({format_ratio(cell['median_ms'] / own)})"
    once = "*" if cell["num_samples"] == 1 < comparison.summary["settings"]["repetitions"] else ""
    return text + once + (" wrong" if cell["agrees"] is False else "")


def format_ratio(ratio: float) -> str:
    """Return how many times: two digits after the point while they count."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def _goal_cells(comparison: Comparison, row: Row, goal: Goal | None) -> list[str]:
    own = comparison.median_ms(row, "shoal")
    if goal is None or own is None:
        return ["", ""]
    return [format_ms(goal.gapbs_here_ms), f"{own / goal.gapbs_here_ms:.2f}"]


def _notes(comparison: Comparison, has_goals: bool) -> list[str]:
    summary = comparison.summary
    threads, repetitions = summary["settings"]["num_threads"], summary["settings"]["repetitions"]
    lines = [f"Medians in ms of up to {repetitions} samples, {threads} threads (times shoal's median). *: one sample."]
    if has_goals:
        lines.append(
            "GAPBS (C++ and OpenMP) was measured on another machine, together with the peers; its times are carried "
            "over by what the peers take here and there."
        )
    if not comparison.is_large:
        lines.append(NOT_LARGE)
    graphs = [f"{g['name']} {g['num_vertices']:,} vertices, {g['num_edges']:,} stored edges" for g in summary["graphs"]]
    lines.append("; ".join(graphs) + ".")
    return ["  \n".join([*lines, circumstances(summary)])]


def summary_table(summary: dict[str, Any]) -> list[str]:
    """Return the short table: shoal, and how many times as long the best of the other libraries takes."""
    comparison = Comparison(summary)
    graphs = list(dict.fromkeys(graph for graph, _ in comparison.rows))
    kernels = list(dict.fromkeys(kernel for _, kernel in comparison.rows))
    rows = [[graph, *(_best_cell(comparison, (graph, kernel)) for kernel in kernels)] for graph in graphs]
    header = ["", *(KERNELS[kernel].title for kernel in kernels)]
    table = markdown_table(header, rows, right=set(range(1, len(header))))
    note = f"shoal's median in ms, and how many times as long the fastest other library takes; {summary['date'][:10]}, "
    note += (
        f"{summary['environment']['cpu']}, {summary['settings']['num_threads']} threads.{noise(summary['environment'])}"
    )
    return [*table, "", note if comparison.is_large else f"{note} {NOT_LARGE}"]


def _best_cell(comparison: Comparison, row: Row) -> str:
    if row not in comparison.rows or (own := comparison.median_ms(row, "shoal")) is None:
        return ""
    medians = {library: comparison.median_ms(row, library) for library in comparison.peers}
    others = {library: median for library, median in medians.items() if median}
    if not others:
        return format_ms(own)
    best = min(others, key=others.__getitem__)
    return f"{format_ms(own)} ({best} {format_ratio(others[best] / own)})"
