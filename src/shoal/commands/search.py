# SPDX-License-Identifier: Apache-2.0
"""The commands that start at vertices: ``bfs`` and ``sssp``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, expanded
from shoal.commands.vertex_names import find_vertices

Sources = Annotated[
    list[str],
    typer.Option("--source", metavar="ID", help="Where to start: the file's own id. Repeat it for a batch."),
]
Targets = Annotated[
    list[str] | None, typer.Option("--target", metavar="ID", help="Stop when it is reached. May be repeated.")
]
Parents = Annotated[bool, typer.Option("--parents/--no-parents", help="Whether to give each vertex's parent.")]


@expanded
def bfs(
    path: GraphPath,
    source: Sources,
    reading: ReadingOptions,
    run: RunOptions,
    cutoff: Annotated[int | None, typer.Option(help="Go no farther than so many hops.")] = None,
    target: Targets = None,
    parents: Parents = True,
) -> None:
    """Hops from a source to every vertex, and a tree of shortest paths."""
    run_algorithm(
        "bfs",
        path,
        reading,
        run,
        lambda graph: {
            "source": find_vertices(graph, "source", source),
            "targets": find_vertices(graph, "target", target),
            "cutoff": cutoff,
            "parents": parents,
        },
    )


@expanded
def sssp(
    path: GraphPath,
    source: Sources,
    reading: ReadingOptions,
    run: RunOptions,
    delta: Annotated[float | None, typer.Option(help="Width of a bucket, if not chosen from the graph.")] = None,
    cutoff: Annotated[float | None, typer.Option(help="Go no farther than this distance.")] = None,
    target: Targets = None,
    parents: Parents = True,
) -> None:
    """Lengths of shortest paths from a source by the edges' weights, and a tree of such paths."""
    run_algorithm(
        "sssp",
        path,
        reading,
        run,
        lambda graph: {
            "source": find_vertices(graph, "source", source),
            "targets": find_vertices(graph, "target", target),
            "delta": delta,
            "cutoff": cutoff,
            "parents": parents,
        },
    )
