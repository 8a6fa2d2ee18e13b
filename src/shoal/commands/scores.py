# SPDX-License-Identifier: Apache-2.0
"""The commands that rank vertices by iterating: ``eigenvector``, ``katz`` and ``hits``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, expanded

Tolerance = Annotated[float, typer.Option(help="Stop when the sum of all changes falls below it.")]
Iterations = Annotated[int, typer.Option(help="Give up after so many.")]
Weighted = Annotated[bool, typer.Option("--weighted", help="An edge counts by its weight.")]


@expanded
def eigenvector(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    tolerance: Tolerance = 1e-6,
    max_iterations: Iterations = 1000,
    weighted: Weighted = False,
) -> None:
    """Eigenvector centrality: a vertex is as central as those who point to it are together."""
    arguments = {"tolerance": tolerance, "max_iterations": max_iterations, "weighted": weighted}
    run_algorithm("eigenvector", path, reading, run, lambda graph: arguments)


@expanded
def katz(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    alpha: Annotated[float, typer.Option(help="What an edge more is worth: below 1 / the largest eigenvalue.")] = 0.1,
    beta: Annotated[float, typer.Option(help="What every vertex has by itself.")] = 1.0,
    tolerance: Tolerance = 1e-6,
    max_iterations: Iterations = 1000,
    normalized: Annotated[bool, typer.Option(help="Scale so that the squares sum to one.")] = True,
    weighted: Weighted = False,
) -> None:
    """Katz centrality: how many walks end at each vertex, long ones counting less."""
    arguments = {
        "alpha": alpha,
        "beta": beta,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
        "normalized": normalized,
        "weighted": weighted,
    }
    run_algorithm("katz", path, reading, run, lambda graph: arguments)


@expanded
def hits(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    tolerance: Tolerance = 1e-8,
    max_iterations: Iterations = 1000,
    weighted: Weighted = False,
) -> None:
    """Hubs and authorities: good hubs point to good authorities, and those are whom good hubs point to."""
    arguments = {"tolerance": tolerance, "max_iterations": max_iterations, "weighted": weighted}
    run_algorithm("hits", path, reading, run, lambda graph: arguments)
