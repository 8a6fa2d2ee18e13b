# SPDX-License-Identifier: Apache-2.0
"""``shoal bench``: libraries on the same graphs, a cost model fitted to supersteps, or modelled scaling."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from shoal.commands import display
from shoal.commands.options import Json, Quiet, expanded
from shoal.errors import ArgumentError

_TRAINING, _SCALING = "Training a cost model", "Modelled scaling"
Say = Callable[[str], None]


@expanded
def bench(
    graphs: Annotated[
        str | None, typer.Option(help="Such as kron20,urand20,grid2000, or graph files (kron20).")
    ] = None,
    kernels: Annotated[str | None, typer.Option(help="All, or some: bfs,sssp,pagerank,cc,bc.")] = None,
    libraries: Annotated[str | None, typer.Option(help="All that are installed, or some: shoal,scipy,...")] = None,
    repetitions: Annotated[int | None, typer.Option(help="Samples of each, fewer where they take over 10 s.")] = None,
    threads: Annotated[int | None, typer.Option(help="Cores that every library may use (all).")] = None,
    sources: Annotated[int, typer.Option(help="Vertices that searches start from.")] = 16,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write all samples to this JSON file.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Write a plot to this HTML file.")] = None,
    train_cost: Annotated[
        bool, typer.Option("--train-cost", help="Time supersteps and fit a cost model.", rich_help_panel=_TRAINING)
    ] = False,
    data: Annotated[
        str | None, typer.Option(metavar="DIR", help="Real graphs to train on too.", rich_help_panel=_TRAINING)
    ] = None,
    scaling: Annotated[
        bool, typer.Option("--scaling", help="Model strong and weak scaling.", rich_help_panel=_SCALING)
    ] = False,
    topology: Annotated[str, typer.Option(help="A machine by name, or a file.", rich_help_panel=_SCALING)] = "dgx-h100",
    devices: Annotated[
        str | None,
        typer.Option(help="Numbers of devices, such as 1-16 or 1,2,4; to train, one device.", rich_help_panel=_SCALING),
    ] = None,
    cost: Annotated[
        str, typer.Option(help="A cost model by name, or a file.", rich_help_panel=_SCALING)
    ] = "h200-assumed",
    count_factor: Annotated[
        float, typer.Option(help="Multiply counts, for a larger graph of the kind.", rich_help_panel=_SCALING)
    ] = 1.0,
    image: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a picture to this PNG file.", rich_help_panel=_SCALING)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure shoal and other libraries, interleaved, and print medians; status 1 if answers differ.

    With --train-cost fit a cost model, which --output names the file for; with --scaling model how algorithms scale.
    """

    def say(message: str) -> None:
        if not quiet:
            print(message, file=sys.stderr, flush=True)

    if train_cost and scaling:
        raise ArgumentError("--train-cost and --scaling are not allowed together; it must be one of them")
    if train_cost:
        return _train(devices or "cpu:1x1", data, output, 5 if repetitions is None else repetitions, json, quiet, say)
    if scaling:
        asked: dict[str, Any] = {"graph": graphs or "kron16", "cost": cost, "count_factor": count_factor}
        asked |= {} if kernels is None else {"algorithms": _names(kernels)}
        return _scale(topology, devices or "1-8", asked, output, plot, image, json, quiet, say)
    count = 16 if repetitions is None else repetitions
    return _compare(graphs or "kron20", kernels, libraries, count, threads, sources, output, plot, json, quiet, say)


def _compare(
    graphs: str, kernels: str | None, libraries: str | None, repetitions: int, threads: int | None, sources: int,
    output: str | None, plot: str | None, json: bool, quiet: bool, say: Say,
) -> None:  # fmt: skip
    from shoal.bench import run_benchmark
    from shoal.bench.table import print_report

    report = run_benchmark(
        _names(graphs) or [],
        _names(kernels),
        _names(libraries),
        repetitions=repetitions,
        num_threads=threads,
        num_sources=sources,
        json_path=output,
        plot_path=plot,
        say=say,
    )
    if json:
        display.print_json(report.to_dict())
    elif not quiet:
        print_report(report)
    if report.disagreements or report.failures:
        raise typer.Exit(1)


def _train(
    devices: str, data: str | None, output: str | None, repetitions: int, json: bool, quiet: bool, say: Say
) -> None:
    from shoal.bench.training import ASKED_RMSRE, train_cost

    training = train_cost(devices, data, output, repetitions=repetitions, say=say)
    if json:
        display.print_json(training.to_dict())
    elif not quiet:
        rows = [[kind, f"{error:.3f}", f"{training.train_seconds[kind]:.3g}"] for kind, error in training.rmsre.items()]
        title = f"{training.num_supersteps} supersteps of {training.num_graphs} graphs, each foretold by others"
        _print_table(title, ("model", "RMSRE", "training, s"), rows, num_names=1)
        print(f"asked of the polynomial: at most {ASKED_RMSRE}")


def _scale(
    topology: str, devices: str, asked: dict[str, Any], output: str | None, plot: str | None, image: str | None,
    json: bool, quiet: bool, say: Say,
) -> None:  # fmt: skip
    from shoal.bench.report import write_whole
    from shoal.bench.scaling import NOTE, TABLE_HEADER, run_scaling, table_rows, write_scaling
    from shoal.bench.scaling_plot import check_plotters

    check_plotters(plot, image)
    report = run_scaling(topology, parse_counts(devices), say=say, **asked)
    if output is not None:
        from json import dumps
        from pathlib import Path

        write_whole(Path(output), dumps(report.to_dict(), indent=1) + "\n")
    write_scaling(report, plot, image)
    if json:
        display.print_json(report.to_dict())
    elif not quiet:
        title = f"Modelled on {report.topology.name}, cost of {report.cost.device}"
        _print_table(title, TABLE_HEADER, table_rows(report), num_names=3)
        print(f"{NOTE} Seconds of an edge: {report.cost.source.get('coefficients', 'of the file')}.")
        if report.count_factor != 1:
            print(f"Counts of the runs were multiplied by {report.count_factor:g}.")
        for reason in report.left_out:
            print(f"left out: {reason}")


def _print_table(title: str, header: tuple[str, ...], rows: list[list[str]], num_names: int) -> None:
    """Print rows of text; columns after the first ones are numbers, and stand at the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for index, head in enumerate(header):
        table.add_column(head, justify="left" if index < num_names or head == "strategies" else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def parse_counts(text: str) -> list[int]:
    """Return numbers of devices: single ones and ranges, separated by commas."""
    found: list[int] = []
    try:
        for piece in text.split(","):
            first, dash, last = piece.partition("-")
            found += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ArgumentError(f"devices={text!r} is not allowed; it must be numbers of devices, such as 1-16 or 1,2,4")
    return sorted(set(found))


def _names(text: str | None) -> list[str] | None:
    """Return names separated by commas; None stands for all."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
