# SPDX-License-Identifier: Apache-2.0
"""The commands about who is whose neighbour: ``triangles``, ``clustering``, ``transitivity``, ``lpa``, ``louvain``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, expanded

Weighted = Annotated[bool, typer.Option("--weighted", help="Edges count by their weights.")]


@expanded
def triangles(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Triangles: how many every vertex is in, and how many there are."""
    run_algorithm("triangles", path, reading, run, lambda graph: {})


@expanded
def clustering(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Local clustering coefficients: the share of a vertex's pairs of neighbours that are joined by an edge."""
    run_algorithm("clustering", path, reading, run, lambda graph: {})


@expanded
def transitivity(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Transitivity: the share of pairs of edges with a common end that are sides of a triangle."""
    run_algorithm("transitivity", path, reading, run, lambda graph: {})


@expanded
def lpa(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    weighted: Weighted = False,
    max_supersteps: Annotated[int, typer.Option(help="Give up after so many.")] = 10_000,
) -> None:
    """Communities by label propagation: everybody has the label that most of its neighbours have."""
    run_algorithm("lpa", path, reading, run, lambda graph: {"weighted": weighted, "max_supersteps": max_supersteps})


@expanded
def louvain(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    resolution: Annotated[float, typer.Option(help="More of it makes smaller communities.")] = 1.0,
    threshold: Annotated[float, typer.Option(help="A level ends when supersteps gain no more modularity.")] = 1e-7,
    max_supersteps: Annotated[int, typer.Option(help="And after so many.")] = 1000,
    weighted: Weighted = False,
) -> None:
    """Communities of high modularity, by the Louvain method."""
    arguments = {
        "resolution": resolution,
        "threshold": threshold,
        "max_supersteps": max_supersteps,
        "weighted": weighted,
    }
    run_algorithm("louvain", path, reading, run, lambda graph: arguments)
