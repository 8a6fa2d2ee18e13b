# SPDX-License-Identifier: Apache-2.0
"""What a benchmark measured: cells of samples, and the table, JSON and plot made of them."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shoal.bench import goals
from shoal.bench.answers import Answer
from shoal.bench.goals import Goal


@dataclass(frozen=True)
class Cell:
    """The samples of one library, kernel and graph; none if it was not run, and then note or failure say why."""

    graph: str
    kernel: str
    library: str
    seconds: tuple[float, ...] = ()
    #: Processor time that other processes used during each sample, to 0.01 s.
    seconds_of_others: tuple[float, ...] = ()
    answer: Answer = field(default_factory=dict)
    #: Whether the answer is the same as shoal's (or the first library's); None if the library gave none.
    agrees: bool | None = None
    note: str = ""
    #: What the library raised, if it did.
    failure: str = ""

    @property
    def median_ms(self) -> float | None:
        """Median of the samples in ms."""
        return statistics.median(self.seconds) * 1e3 if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        lists = {"seconds": list(self.seconds), "seconds_of_others": list(self.seconds_of_others)}
        return asdict(self) | lists | {"median_ms": self.median_ms}


@dataclass(frozen=True)
class BenchmarkReport:
    """All cells of one run and the circumstances they were measured in."""

    command: str
    date: str
    environment: dict[str, Any]
    settings: dict[str, Any]
    graphs: tuple[dict[str, Any], ...]
    libraries: tuple[str, ...]
    cells: tuple[Cell, ...]

    def rows(self) -> list[tuple[str, str]]:
        """Return the pairs of graph and kernel in the order they were measured."""
        return list(dict.fromkeys((cell.graph, cell.kernel) for cell in self.cells))

    def cell(self, graph: str, kernel: str, library: str) -> Cell:
        """Return one cell."""
        return next(c for c in self.cells if (c.graph, c.kernel, c.library) == (graph, kernel, library))

    def median_ms(self, graph: str, kernel: str, library: str) -> float | None:
        """Return the median of one cell in ms; None if it was not run."""
        return next(
            (c.median_ms for c in self.cells if (c.graph, c.kernel, c.library) == (graph, kernel, library)), None
        )

    def ratio(self, graph: str, kernel: str, library: str) -> float | None:
        """Return how many times as long as shoal a library takes."""
        own, other = (self.median_ms(graph, kernel, name) for name in ("shoal", library))
        return other / own if own and other else None

    def goal(self, graph: str, kernel: str) -> Goal | None:
        """Return the goal of a row carried over to this machine: see ``shoal.bench.goals``."""
        medians = {name: self.median_ms(graph, kernel, name) for name in self.libraries if name != "shoal"}
        return goals.find_goal(graph, kernel, {name: value for name, value in medians.items() if value})

    @property
    def cores_of_others(self) -> float:
        """How many cores other processes kept busy, on average, during samples of at least 0.1 s; 0 without any."""
        samples = [pair for cell in self.cells for pair in zip(cell.seconds, cell.seconds_of_others, strict=True)]
        # The system counts in steps of 0.01 s: of a shorter sample it says nothing.
        long = [(seconds, others) for seconds, others in samples if seconds >= 0.1]
        return sum(others for _, others in long) / max(sum(seconds for seconds, _ in long), 0.1)

    @property
    def disagreements(self) -> list[Cell]:
        """The cells whose answer differs from the reference."""
        return [cell for cell in self.cells if cell.agrees is False]

    @property
    def failures(self) -> list[Cell]:
        """The cells in which a library raised an exception."""
        return [cell for cell in self.cells if cell.failure]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "command": self.command,
            "date": self.date,
            "environment": self.environment | {"cores_of_others": self.cores_of_others},
            "settings": self.settings,
            "graphs": list(self.graphs),
            "libraries": list(self.libraries),
            "results": [
                cell.to_dict() | {"ratio": self.ratio(cell.graph, cell.kernel, cell.library)} for cell in self.cells
            ],
            "goals": [self._goal_to_dict(*row) for row in self.rows() if self.goal(*row)],
        }

    def _goal_to_dict(self, graph: str, kernel: str) -> dict[str, Any]:
        goal = self.goal(graph, kernel)
        own = self.median_ms(graph, kernel, "shoal")
        assert goal is not None
        return {
            "graph": graph,
            "kernel": kernel,
            "source": goals.SOURCE,
            "there_ms": goal.there_ms,
            "scale": goal.scale,
            "scale_libraries": list(goal.libraries),
            "here_ms": goal.here_ms,
            "shoal_by_goal": own / goal.here_ms if own else None,
        }

    def table(self) -> Any:
        """Return a rich table of medians and ratios."""
        from shoal.bench.table import make_table

        return make_table(self)

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file, whole or not at all."""
        write_whole(Path(path), json.dumps(self.to_dict(), indent=1) + "\n")

    def write_plot(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page with a plot; needs plotly."""
        from shoal.bench.plot import make_page

        write_whole(Path(path), make_page(self))


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name first, so that a broken run leaves no half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
