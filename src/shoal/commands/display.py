# SPDX-License-Identifier: Apache-2.0
"""All that is drawn on a terminal: tables on standard output, and on standard error what is being done."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from shoal.progress import Progress, observe

Stage = Callable[[str], None]


@contextmanager
def stages(is_quiet: bool) -> Iterator[Stage]:
    """Give a function that names what is being done: a spinner with the seconds it takes, gone when it is over.

    While an algorithm runs, it also says in which superstep.
    """
    if is_quiet or not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich import progress
    from rich.console import Console

    texts = [progress.TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[run]")]
    columns = (progress.SpinnerColumn(), *texts, progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("", total=None, run="")

        def begin(name: str) -> None:
            line.reset(task, description=name, run="")

        with observe(lambda run: line.update(task, run=describe_run(run))):
            yield begin


def describe_run(run: Progress) -> str:
    """Return where a run is, in a few words."""
    return f"superstep {run.superstep:,}, frontier {run.frontier_size:,} vertices"


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object; what JSON has no number for (infinity, NaN) becomes null."""
    print(json.dumps(_plain(value)))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """Print names and values as a table of two columns."""
    from rich import box

    table = _table(title, box.SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), format_value(value))
    _print(table)


def print_rows(title: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Print columns of equal length as a table."""
    from rich import box

    table = _table(title, box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(format_value, row))
    _print(table)


def _table(title: str, style: Any, **options: Any) -> Any:
    from rich.table import Table
    from rich.text import Text

    return Table(title=Text(title), title_justify="left", title_style="bold", box=style, pad_edge=False, **options)


def _print(table: Any) -> None:
    from rich.console import Console

    Console(markup=False, highlight=False).print(table)


def format_value(value: Any) -> str:
    """Return a value for a person: thousands apart, six digits of a fraction."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if value is None:
        return "-"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:,.6g}"
    return str(value)
