# SPDX-License-Identifier: Apache-2.0
"""The commands about graph files: ``convert`` and ``info``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

from shoal.algorithms.verification import edge_chunks
from shoal.commands import display
from shoal.commands.options import GraphPath, Json, Quiet, ReadingOptions, expanded
from shoal.graph import Graph
from shoal.io import write
from shoal.io.files import check_writable
from shoal.io.formats import format_to_write
from shoal.machine import format_bytes


@expanded
def convert(
    path: GraphPath,
    target: Annotated[str, typer.Argument(metavar="FILE", help="The file to write; .shoal opens fastest.")],
    reading: ReadingOptions,
    target_format: Annotated[str | None, typer.Option(help="Format to write, if not by the suffix of FILE.")] = None,
    symmetrize: Annotated[bool, typer.Option("--symmetrize", help="Make a directed graph undirected.")] = False,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Neighbours by falling degree, for faster searches; for .shoal files.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a graph file in another format."""
    format_to_write(target, target_format)  # what cannot be written is refused before anything is read
    check_writable(target)
    with display.stages(quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        graph = reading.read(path)
        load_seconds = time.perf_counter() - started
        if symmetrize:
            begin("adding the other direction of every edge")
            graph = graph.symmetrized()
        if optimize:
            begin("ordering neighbours by degree")
            graph = graph.optimized()
        begin(f"writing {target}")
        write(graph, target, format=target_format)
    facts = {
        "vertices": graph.num_vertices,
        "stored_edges": graph.num_edges,
        "load_seconds": load_seconds,
        "written": target,
    }
    if json:
        display.print_json(facts)
    elif not quiet:
        display.print_facts(f"{path} converted", facts)


@expanded
def info(path: GraphPath, reading: ReadingOptions, json: Json = False, quiet: Quiet = False) -> None:
    """Sizes, degrees, weights and widths of a graph file."""
    with display.stages(quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        graph = reading.read(path)
        load_seconds = time.perf_counter() - started
        begin("counting")
        facts = describe(graph) | {"load_seconds": load_seconds}
    if json:
        display.print_json(facts)
    elif not quiet:
        shown = facts | {"bytes": format_bytes(facts["bytes"])}
        degree = shown.pop("degree")
        display.print_facts(path, shown | {f"degree, {name}": value for name, value in degree.items()})


def describe(graph: Graph) -> dict[str, Any]:
    """Return what there is to know about a graph at a glance."""
    return {
        "vertices": graph.num_vertices,
        "stored_edges": graph.num_edges,
        "directed": graph.is_directed,
        "weights": None if graph.weights is None else graph.weights.dtype.name,
        "smallest_weight": graph.min_weight,
        "largest_weight": graph.max_weight,
        "labels": graph.labels is not None,
        "optimized": graph.is_optimized,
        "isolated": _count_isolated(graph),
        "self_loops": sum(int(np.count_nonzero(chunk.src == chunk.dst)) for chunk in edge_chunks(graph)),
        "degree": _degree_statistics(graph.degree),
        "vertex_dtype": graph.vertex_dtype.name,
        "edge_dtype": graph.edge_dtype.name,
        "bytes": graph.nbytes,
    }


def _count_isolated(graph: Graph) -> int:
    """Count the vertices that no edge leaves or enters."""
    is_touched = graph.degree > 0
    if graph.is_directed:
        is_touched[graph.indices] = True
    return int(np.count_nonzero(~is_touched))


def _degree_statistics(degree: np.ndarray) -> dict[str, Any]:
    if len(degree) == 0:
        return {"min": None, "mean": None, "median": None, "max": None}
    return {
        "min": int(degree.min()),
        "mean": float(degree.mean()),
        "median": float(np.median(degree)),
        "max": int(degree.max()),
    }
