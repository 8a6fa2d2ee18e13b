# SPDX-License-Identifier: Apache-2.0
"""What the scripts here share: a figure with the bound asked of it, tables of rows, fresh processes and the JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import shoal
from shoal.bench.environment import seconds_of_others
from shoal.bench.report import write_whole
from shoal.report.environment import describe_machine

_BEGIN, _OTHERS_AT_BEGIN = time.perf_counter(), seconds_of_others()


@dataclass(frozen=True)
class Figure:
    """One measured number; ``bound`` is the most it may be, if that was asked."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    #: The number is made of so many samples: their median, unless ``what`` says otherwise.
    num_samples: int = 1

    @property
    def verdict(self) -> str:
        """Whether the bound is kept, in a word."""
        if self.bound is None:
            return ""
        return "pass" if self.value <= self.bound else "fail"

    def cells(self) -> list[str]:
        """Return the figure as a row: what, value, bound, verdict."""
        bound = "" if self.bound is None else f"{format_number(self.bound)} {self.unit}"
        return [self.what, f"{format_number(self.value)} {self.unit}", bound, self.verdict]


def format_number(value: float) -> str:
    """Return three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


HEADER = ["what", "measured", "asked, at most", ""]
Row = dict[str, Any]


@dataclass(frozen=True)
class RowTable:
    """A table of measured rows, for results that are more than one number each."""

    title: str
    #: Head of each column, and its cells with the names of a row's entries in braces.
    columns: dict[str, str]
    #: So many columns, the first ones, are text; the others are numbers and stand at the right.
    num_names: int

    @property
    def header(self) -> list[str]:
        """The heads of the columns."""
        return list(self.columns)

    @property
    def right(self) -> set[int]:
        """Which columns are numbers."""
        return set(range(self.num_names, len(self.columns)))

    def cells(self, row: Row) -> list[str]:
        """Return a row as text."""
        texts = {key: value if isinstance(value, str) else format_number(value) for key, value in row.items()}
        return [cell.format_map(texts) for cell in self.columns.values()]


def parser(description: str | None, scale: int | None = None) -> argparse.ArgumentParser:
    """Return the options that every script has; ``scale`` is for those of one graph."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if scale is not None:
        made.add_argument("--scale", type=int, default=scale, help=f"the graph has 2**SCALE vertices ({scale})")
    made.add_argument("--json", metavar="FILE", help="write the figures to this file")
    return made


def describe(graph: shoal.Graph, scale: int) -> str:
    """Return on which graph figures were taken."""
    return f"R-MAT graph of scale {scale}: {graph.num_vertices:,} vertices, {graph.num_edges:,} stored edges"


def _without_folder(argument: str) -> str:
    """Return an argument of a command as it would be on another machine."""
    return Path(argument).name if argument.startswith("/") else argument


def publish(name: str, setting: str, figures: list[Figure], path: str | None, **others: Any) -> None:
    """Print the figures and write them with their circumstances to a file; ``setting`` says on what they were taken.

    ``others`` are kept beside the figures, for pictures.
    """
    print_table(f"{name}: {setting}", figures)
    if path is not None:
        write_whole(Path(path), json.dumps(to_dict(name, setting, figures) | others, indent=1) + "\n")


def _cores_of_others() -> float:
    """Return how many cores other processes, but not those this one started, kept busy since it began."""
    children = os.times()
    others = seconds_of_others() - _OTHERS_AT_BEGIN - children.children_user - children.children_system
    return max(0.0, others) / (time.perf_counter() - _BEGIN)


def to_dict(name: str, setting: str, figures: list[Figure]) -> dict[str, Any]:
    """Return figures with their circumstances, for JSON."""
    return {
        "kind": "figures",
        "name": name,
        "setting": setting,
        "command": shlex.join([Path(sys.orig_argv[0]).name, *map(_without_folder, sys.orig_argv[1:])]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": describe_machine()
        | {
            "versions": {"shoal": shoal.__version__},
            "cores_of_others": _cores_of_others(),
        },
        "figures": [asdict(figure) for figure in figures],
    }


def print_table(title: str, figures: list[Figure]) -> None:
    """Print a row for each figure."""
    print_rows(title, HEADER, [figure.cells() for figure in figures], right={1, 2})


def print_rows(title: str, header: list[str], rows: list[list[str]], right: set[int]) -> None:
    """Print a table; columns whose number is in ``right`` are aligned there."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for index, head in enumerate(header):
        table.add_column(head, justify="right" if index in right else "left")
    for cells in rows:
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a script with plain arguments in a process of its own and return what it returned."""
    file = Path(inspect.getfile(function)).resolve()
    code = (
        f"import json, sys; sys.path.insert(0, {str(file.parent)!r})\n"
        f"from {file.stem} import {function.__name__} as function\n"
        f"print(json.dumps(function(*{arguments!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)
