# SPDX-License-Identifier: Apache-2.0
"""The commands that say what a graph is made of: ``scc``, ``msf``, ``core`` and ``kcore``."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.commands.flow import run_algorithm
from shoal.commands.options import GraphPath, ReadingOptions, RunOptions, expanded


@expanded
def scc(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Strongly connected components: in each, every vertex reaches every other."""
    run_algorithm("scc", path, reading, run, lambda graph: {})


@expanded
def msf(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """A minimum spanning forest: a tree of least weight in every component."""
    run_algorithm("msf", path, reading, run, lambda graph: {})


@expanded
def core(path: GraphPath, reading: ReadingOptions, run: RunOptions) -> None:
    """Core numbers: the largest k such that a vertex belongs to the k-core."""
    run_algorithm("core", path, reading, run, lambda graph: {})


@expanded
def kcore(
    path: GraphPath,
    reading: ReadingOptions,
    run: RunOptions,
    k: Annotated[int, typer.Option("--k", help="Edges that every vertex of the core has at least.")],
) -> None:
    """The k-core: the largest subgraph in which every vertex has k edges."""
    run_algorithm("kcore", path, reading, run, lambda graph: {"k": k})
