# SPDX-License-Identifier: Apache-2.0
"""run_benchmark: check what is asked, measure graph by graph, report."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shoal.bench.environment import Cores
from shoal.bench.graphs import BenchmarkGraph, check_graph, load_graph
from shoal.bench.kernels import KERNELS, choose_sources
from shoal.bench.measure import SECONDS_PER_CELL, Plan, Say, measure_graph
from shoal.bench.peers import LIBRARIES, check_library
from shoal.bench.plot import check_plotly
from shoal.bench.report import BenchmarkReport, Cell
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.report.environment import describe_machine

FilePath = str | os.PathLike[str]


def run_benchmark(
    graphs: Sequence[str],
    kernels: Sequence[str] | None = None,
    libraries: Sequence[str] | None = None,
    *,
    repetitions: int = 16,
    num_threads: int | None = None,
    num_sources: int = 16,
    json_path: FilePath | None = None,
    plot_path: FilePath | None = None,
    say: Say = lambda message: None,
) -> BenchmarkReport:
    """Measure libraries on graphs and return the report.

    Parameters
    ----------
    graphs
        Names from ``shoal.bench.graphs.GRAPHS``, or paths of graph files.
    kernels
        Names from ``shoal.bench.kernels.KERNELS``; all if not given.
    libraries
        Names from ``shoal.bench.peers.LIBRARIES``; all that are installed if not given.
    repetitions
        Samples of each library; fewer where they would take more than 10 s.
    num_threads
        Cores that every library may use; all if not given.
    num_sources
        Vertices that searches start from, in turn.
    json_path, plot_path
        Files to write: all samples, and an HTML page with a plot (needs plotly).
    say
        Called with a line of text whenever something new begins.

    Examples
    --------
    >>> report = run_benchmark(["kron10"], ["bfs"], ["scipy"], repetitions=3)
    >>> len(report.cell("kron10", "bfs", "scipy").seconds)
    3
    """
    installed = [name for name, library in LIBRARIES.items() if library.is_installed]
    plan = Plan(
        graphs=_check_names("graphs", graphs, check_graph),
        kernels=_check_names("kernels", kernels, _check_kernel, KERNELS),
        libraries=_check_names("libraries", libraries, check_library, installed),
        repetitions=check_integer("repetitions", repetitions, 1),
        num_sources=check_integer("num_sources", num_sources, 1),
    )
    _check_outputs(json_path, plot_path)
    report = _measure(plan, Cores(num_threads), say)
    if json_path is not None:
        report.write_json(json_path)
    if plot_path is not None:
        report.write_plot(plot_path)
    return report


def _measure(plan: Plan, cores: Cores, say: Say) -> BenchmarkReport:
    environment = describe_machine()
    cells: list[Cell] = []
    subjects: list[dict[str, Any]] = []
    with cores.reserved():
        peers = {}
        for name in plan.libraries:
            cores.release()
            peers[name] = LIBRARIES[name].load(cores.num_threads)
        for name in plan.graphs:
            say(f"{name}: making the graph")
            cores.release()
            subject = load_graph(name)
            sources = choose_sources(subject.graph, plan.num_sources)
            subjects.append(_describe(subject, sources))
            able = {library: peer for library, peer in peers.items() if _can_hold(library, subject)}
            cells += measure_graph(subject, able, plan, sources, cores, say)
            cells += [
                _too_large(subject, kernel, other) for other in sorted(peers.keys() - able) for kernel in plan.kernels
            ]
    return BenchmarkReport(
        command=shlex.join([Path(sys.orig_argv[0]).name, *sys.orig_argv[1:]]),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        environment=environment | {
            "threads_bound": cores.is_bound,
            "versions": {name: LIBRARIES[name].version for name in plan.libraries},
        },
        settings=plan.settings() | {
            "num_threads": cores.num_threads,
            "cores": cores.cores,
            "seconds_per_cell": SECONDS_PER_CELL,
        },
        graphs=tuple(subjects),
        libraries=plan.libraries,
        cells=tuple(cells),
    )  # fmt: skip


def _can_hold(library: str, subject: BenchmarkGraph) -> bool:
    return subject.graph.num_edges <= LIBRARIES[library].max_edges


def _too_large(subject: BenchmarkGraph, kernel: str, library: str) -> Cell:
    limit = LIBRARIES[library].max_edges
    return Cell(subject.name, kernel, library, note=f"the library is given graphs of at most {limit:,} stored edges")


def _check_names(
    argument: str, names: Sequence[str] | None, check: Callable[[str], str], default: Iterable[str] = ()
) -> tuple[str, ...]:
    if names is None:
        names = list(default)
    if isinstance(names, str) or not names:
        raise ArgumentError(f"{argument}={names!r} is not allowed; it must be a list of at least one name")
    checked = tuple(check(name) for name in names)
    for name in checked:
        if checked.count(name) > 1:
            raise ArgumentError(f"{argument}: {name!r} is there twice; each name is allowed once")
    return checked


def _check_kernel(name: str) -> str:
    return check_choice("kernel", name, KERNELS)


def _check_outputs(json_path: FilePath | None, plot_path: FilePath | None) -> None:
    """Refuse what could not be written before hours are spent on measuring it."""
    if plot_path is not None:
        check_plotly(plot_path)
    for argument, path in (("json_path", json_path), ("plot_path", plot_path)):
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise ArgumentError(f"{argument}={str(path)!r} is in a folder that does not exist; make it first")


def _describe(subject: BenchmarkGraph, sources: list[int]) -> dict[str, Any]:
    graph = subject.graph
    return {
        "name": subject.name,
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "note": subject.note,
        "sources": sources,
    }
