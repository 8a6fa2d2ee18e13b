# SPDX-License-Identifier: Apache-2.0
"""The table of a report: one row for each graph and kernel, one column for each library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.bench.goals import SOURCE
from shoal.bench.kernels import KERNELS

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.bench.report import BenchmarkReport, Cell


#: Cores that other processes may keep busy before the table warns of it.
NOISY_CORES = 0.1


def make_table(report: BenchmarkReport) -> Table:
    """Return medians in ms; beside a library's, how many times shoal's it is."""
    from rich.table import Table

    has_goals = any(report.goal(*row) for row in report.rows())
    table = Table(title=_title(report), caption=_caption(report, has_goals), caption_justify="left")
    table.add_column("graph")
    table.add_column("kernel")
    for library in report.libraries:
        table.add_column(library, justify="right", style="bold" if library == "shoal" else None)
    if has_goals:
        table.add_column("goal here", justify="right")
        table.add_column("shoal / goal", justify="right")
    for index, row in enumerate(report.rows()):
        is_last = index + 1 == len(report.rows()) or report.rows()[index + 1][0] != row[0]
        table.add_row(*_values(report, *row, has_goals), end_section=is_last)
    return table


def _title(report: BenchmarkReport) -> str:
    threads = report.settings["num_threads"]
    return f"medians in ms, {threads} thread{'s' if threads != 1 else ''} ({report.environment['cpu']})"


def _caption(report: BenchmarkReport, has_goals: bool) -> str:
    lines = ["(times shoal's median)"] if "shoal" in report.libraries else []
    if has_goals:
        lines.append(f"goal here: {SOURCE}, scaled by the other libraries' times here and there")
    lines += [f"{graph['name']}: {graph['note']}" for graph in report.graphs if graph["note"]]
    lines += [
        f"{graph} {kernel}: {reason}" for graph, kernel in report.rows() if (reason := _unfit(report, graph, kernel))
    ]
    lines += [f"{c.graph} {c.kernel} {c.library}: answer differs" for c in report.disagreements]
    lines += [f"{c.graph} {c.kernel} {c.library}: {c.failure}" for c in report.failures]
    if not report.environment["threads_bound"]:
        lines.append("OpenMP threads are not bound to cores: their libraries were loaded before the run")
    if report.cores_of_others > NOISY_CORES:
        lines.append(
            f"other processes kept {report.cores_of_others:.1f} cores busy: times are longer than they would be"
        )
    return "\n".join(lines)


def _unfit(report: BenchmarkReport, graph: str, kernel: str) -> str:
    """Return why no library was measured in a row, if none was."""
    cells = [report.cell(graph, kernel, library) for library in report.libraries]
    return "" if any(cell.seconds or cell.failure for cell in cells) else cells[0].note


def _values(report: BenchmarkReport, graph: str, kernel: str, has_goals: bool) -> list[str]:
    values = [graph, KERNELS[kernel].title]
    values += [_library_value(report, report.cell(graph, kernel, name)) for name in report.libraries]
    return values + (_goal_values(report, graph, kernel) if has_goals else [])


def _library_value(report: BenchmarkReport, cell: Cell) -> str:
    if cell.median_ms is None:
        return "[red]failed[/]" if cell.failure else ""
    text = format_ms(cell.median_ms)
    ratio = report.ratio(cell.graph, cell.kernel, cell.library)
    if ratio is not None and cell.library != "shoal":
        text += f" [dim]({ratio:.2f}x)[/]"
    return f"[red]{text} wrong[/]" if cell.agrees is False else text


def _goal_values(report: BenchmarkReport, graph: str, kernel: str) -> list[str]:
    goal = report.goal(graph, kernel)
    if goal is None:
        return ["", ""]
    own = report.median_ms(graph, kernel, "shoal")
    return [format_ms(goal.here_ms), "" if own is None else f"{own / goal.here_ms:.2f}"]


def format_ms(value: float) -> str:
    """Return three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def print_report(report: BenchmarkReport, file: Any = None) -> None:
    """Print the table to a terminal or a file, as wide as it needs where that is no terminal."""
    from rich.console import Console

    console = Console(file=file)
    if not console.is_terminal:
        console = Console(file=file, width=max(console.width, 200))
    console.print(report.table())
