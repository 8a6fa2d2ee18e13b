# SPDX-License-Identifier: Apache-2.0
"""All that is drawn on a terminal: tables on standard output, and on standard error what is being done."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from shoal.machine import format_bytes
from shoal.progress import Progress, Work, observe

logger = logging.getLogger("shoal")

Stage = Callable[[str], None]


@contextmanager
def stages(is_quiet: bool) -> Iterator[Stage]:
    """Give a function that names what is being done: a line with the seconds that it takes, gone when it is over.

    While a file is read or a graph is built, it says how far that is and how long it will take; while an algorithm
    runs, in which superstep it is.
    """
    log = _Log()
    with contextlib.nullcontext(None) if is_quiet or not sys.stderr.isatty() else _line() as begin_on_terminal:

        def begin(name: str) -> None:
            log.begin(name)
            if begin_on_terminal is not None:
                begin_on_terminal(name)

        yield begin
    log.end()


class _Log:
    """Says what begins and how long it took."""

    def __init__(self) -> None:
        self.name, self.began = "", 0.0

    def begin(self, name: str) -> None:
        self.end()
        self.name, self.began = name, time.perf_counter()
        logger.info("%s", name)

    def end(self) -> None:
        if self.name:
            logger.info("%s took %.3f s", self.name, time.perf_counter() - self.began)


@contextmanager
def _line() -> Iterator[Stage]:
    """Draw on the terminal."""
    from rich import progress
    from rich.console import Console

    texts = [progress.TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[run]")]
    columns = (progress.SpinnerColumn(), *texts, progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("", total=None, run="")

        def begin(name: str) -> None:
            line.reset(task, description=name, run="")

        def show_run(run: Progress) -> None:
            line.update(task, run=describe_run(run))

        def show_work(work: Work) -> None:
            line.update(task, run=describe_work(work))

        with observe(show_run, work=show_work):
            yield begin


def describe_run(run: Progress) -> str:
    """Return where a run is, in a few words."""
    shown = f"superstep {run.superstep:,}, frontier {run.frontier_size:,} vertices"
    if not (run.superstep and run.seconds > 0):
        return shown
    rate = run.superstep / run.seconds
    left = "" if run.max_supersteps is None else f", {(run.max_supersteps - run.superstep) / rate:,.0f} s left at most"
    return f"{shown}, {rate:,.0f} a second{left}"


def describe_work(work: Work) -> str:
    """Return how far a piece of work is, how fast it goes, and how long it will take from now on."""
    in_bytes = work.unit == "bytes"
    rate = work.done / work.seconds if work.seconds > 0 else 0.0
    speed = f"{format_bytes(int(rate)) if in_bytes else f'{rate:,.0f}'} a second"
    if work.total is None or not rate:
        return f"{format_bytes(work.done) if in_bytes else f'{work.done:,} {work.unit}'} {work.name}, {speed}"
    left = max(work.total - work.done, 0) / rate
    return f"{work.done / max(work.total, 1):.0%} {work.name}, {speed}, {left:,.0f} s left"


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


def print_comparison(
    names: Sequence[str], numbers: Sequence[Sequence[str]], differences: Sequence[Sequence[str]]
) -> None:
    """Print what two runs took beside each other, and below it what was not the same."""
    from rich import box

    table = _table("two runs", box.SIMPLE_HEAD)
    table.add_column("")
    for name in (*names, "second / first"):
        table.add_column(_text(name), justify="right")
    for row in numbers:
        table.add_row(*map(_text, row))
    _print(table)
    if differences:
        table = _table("not the same", box.SIMPLE_HEAD)
        for name in ("", *names):
            table.add_column(_text(name), overflow="fold")
        for row in differences:
            table.add_row(*map(_text, row))
        _print(table)


def _text(words: str) -> Any:
    """Return words as they are, whatever brackets are in them."""
    from rich.text import Text

    return Text(words)


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
