# SPDX-License-Identifier: Apache-2.0
"""The commands that start at vertices: ``bfs`` and ``sssp``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, SearchOptions, expanded


@expanded
def bfs(
    path: GraphPath,
    search: SearchOptions,
    reading: ReadingOptions,
    run: RunOptions,
    cutoff: Annotated[int | None, typer.Option(help="Go no farther than so many hops.")] = None,
) -> None:
    """Hops from a source to every vertex, and a tree of shortest paths."""
    run_algorithm("bfs", path, reading, run, lambda graph: search.arguments(graph) | {"cutoff": cutoff})


@expanded
def sssp(
    path: GraphPath,
    search: SearchOptions,
    reading: ReadingOptions,
    run: RunOptions,
    delta: Annotated[float | None, typer.Option(help="Width of a bucket, if not chosen from the graph.")] = None,
    cutoff: Annotated[float | None, typer.Option(help="Go no farther than this distance.")] = None,
) -> None:
    """Lengths of shortest paths from a source by the edges' weights, and a tree of such paths."""
    limits = {"delta": delta, "cutoff": cutoff}
    run_algorithm("sssp", path, reading, run, lambda graph: search.arguments(graph) | limits)
