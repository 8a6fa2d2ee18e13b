# SPDX-License-Identifier: Apache-2.0
"""The commands that look at the whole graph: ``cc``, ``bc``, ``ebc`` and ``pagerank``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, expanded
from shoal.commands.vertex_names import find_vertices

Sources = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="A vertex whose paths count (all): the file's own id. May be repeated."),
]
Samples = Annotated[int | None, typer.Option(help="Take so many sources at random instead.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the random sources.")]
Normalized = Annotated[bool, typer.Option(help="Divide by the number of pairs.")]


@expanded
def cc(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Connected components; of a directed graph the weakly connected ones."""
    run_algorithm("cc", path, reading, run, lambda graph: {})


@expanded
def bc(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    source: Sources = None,
    samples: Samples = None,
    seed: Seed = None,
    normalized: Normalized = True,
    endpoints: Annotated[bool, typer.Option("--endpoints", help="Count a path's ends too.")] = False,
) -> None:
    """Betweenness centrality: the share of shortest paths that lead through each vertex."""
    run_algorithm(
        "bc",
        path,
        reading,
        run,
        lambda graph: {
            "sources": find_vertices(graph, "source", source),
            "samples": samples,
            "seed": seed,
            "normalized": normalized,
            "endpoints": endpoints,
        },
    )


@expanded
def ebc(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    source: Sources = None,
    samples: Samples = None,
    seed: Seed = None,
    normalized: Normalized = True,
) -> None:
    """Betweenness centrality of edges: the share of shortest paths that lead along each."""
    run_algorithm(
        "ebc",
        path,
        reading,
        run,
        lambda graph: {
            "sources": find_vertices(graph, "source", source),
            "samples": samples,
            "seed": seed,
            "normalized": normalized,
        },
    )


@expanded
def pagerank(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    damping: Annotated[float, typer.Option(help="Probability of following an edge.")] = 0.85,
    tolerance: Annotated[float, typer.Option(help="Stop when the sum of all changes falls below it.")] = 1e-6,
    max_iterations: Annotated[int, typer.Option(help="Give up after so many.")] = 100,
    iterations: Annotated[int | None, typer.Option(help="Do exactly so many instead.")] = None,
    weighted: Annotated[bool, typer.Option("--weighted", help="Follow edges in proportion to their weights.")] = False,
    dtype: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
) -> None:
    """PageRank: a random surfer's visits; ranks sum to one."""
    arguments = {
        "damping": damping,
        "tolerance": tolerance,
        "max_iterations": max_iterations,
        "iterations": iterations,
        "weighted": weighted,
        "dtype": dtype,
    }
    run_algorithm("pagerank", path, reading, run, lambda graph: arguments)
