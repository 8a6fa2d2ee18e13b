# SPDX-License-Identifier: Apache-2.0
"""``shoal bench``: shoal and the other graph libraries of Python on the same graphs (see `shoal.bench`)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shoal.commands import display
from shoal.commands.options import Json, Quiet, expanded


@expanded
def bench(
    graphs: Annotated[str, typer.Option(help="Such as kron20,urand20,grid2000, or graph files.")] = "kron20",
    kernels: Annotated[str | None, typer.Option(help="All, or some: bfs,sssp,pagerank,cc,bc.")] = None,
    libraries: Annotated[str | None, typer.Option(help="All that are installed, or some: shoal,scipy,...")] = None,
    repetitions: Annotated[int, typer.Option(help="Samples of each, fewer where they take over 10 s.")] = 16,
    threads: Annotated[int | None, typer.Option(help="Cores that every library may use (all).")] = None,
    sources: Annotated[int, typer.Option(help="Vertices that searches start from.")] = 16,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write all samples to this JSON file.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Write a plot to this HTML file.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure shoal and other libraries, interleaved, and print medians; status 1 if answers differ."""
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
        say=lambda message: None if quiet else print(message, file=sys.stderr, flush=True),
    )
    if json:
        display.print_json(report.to_dict())
    elif not quiet:
        print_report(report)
    if report.disagreements or report.failures:
        raise typer.Exit(1)


def _names(text: str | None) -> list[str] | None:
    """Return names separated by commas; None stands for all."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
