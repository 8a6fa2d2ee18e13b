# SPDX-License-Identifier: Apache-2.0
"""``shoal validate``: check a result that ``--output`` wrote against its graph."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import numpy as np
import typer

from shoal.commands import display
from shoal.commands.flow import ALGORITHMS
from shoal.commands.options import GraphPath, Json, Quiet, ReadingOptions, expanded
from shoal.commands.result_files import Column, read_edges, read_result
from shoal.commands.vertex_names import find_vertices
from shoal.errors import ArgumentError, check_choice
from shoal.graph import Graph

_COLUMNS = {
    "cc": (Column("label"),),
    "bc": (Column("centrality", True),),
    "ebc": (Column("src"), Column("dst"), Column("centrality", True)),
    "pagerank": (Column("rank", True),),
    "triangles": (Column("triangles"),),
    "clustering": (Column("clustering", True),),
    "transitivity": (Column("triangles"), Column("triads")),
    "lpa": (Column("label"),),
    "louvain": (Column("label"),),
    "eigenvector": (Column("centrality", True),),
    "katz": (Column("centrality", True),),
    "hits": (Column("hub", True), Column("authority", True)),
    "scc": (Column("label"),),
    "msf": (Column("src"), Column("dst"), Column("weight", is_optional=True)),
    "core": (Column("core"),),
    "kcore": (Column("in_core"),),
}
#: Results that have a row for an edge, not for each vertex.
_ABOUT_EDGES = ("ebc", "msf")
#: The module and name of each verifier: they are imported when they are used.
_VERIFIERS = {
    "cc": ("verify_components", "verify_components"),
    "bc": ("verify_centrality", "verify_betweenness"),
    "ebc": ("verify_edge_betweenness", "verify_edge_betweenness"),
    "pagerank": ("verify_pagerank", "verify_pagerank"),
    "triangles": ("verify_triangles", "verify_triangles"),
    "clustering": ("verify_triangles", "verify_clustering"),
    "transitivity": ("verify_triangles", "verify_transitivity"),
    "lpa": ("verify_communities", "verify_label_propagation"),
    "louvain": ("verify_communities", "verify_louvain"),
    "eigenvector": ("verify_spectral", "verify_eigenvector"),
    "katz": ("verify_spectral", "verify_katz"),
    "hits": ("verify_spectral", "verify_hits"),
    "scc": ("verify_strong_components", "verify_strong_components"),
    "msf": ("verify_forest", "verify_forest"),
    "core": ("verify_cores", "verify_cores"),
    "kcore": ("verify_cores", "verify_k_core"),
}
#: The options that each algorithm's verifier understands.
_UNDERSTOOD: dict[str, tuple[str, ...]] = {
    "bfs": ("source", "target", "cutoff"),
    "sssp": ("source", "target", "cutoff"),
    "cc": (),
    "bc": ("source", "normalized", "endpoints"),
    "ebc": ("source", "normalized"),
    "pagerank": ("damping", "tolerance", "iterations", "weighted"),
    "triangles": (),
    "clustering": (),
    "transitivity": (),
    "lpa": ("weighted",),
    "louvain": ("modularity", "resolution", "weighted"),
    "eigenvector": ("tolerance", "weighted"),
    "katz": ("alpha", "beta", "tolerance", "normalized", "weighted"),
    "hits": ("tolerance", "weighted"),
    "scc": (),
    "msf": (),
    "core": (),
    "kcore": ("k",),
}
#: The options without which a result cannot be checked, and why.
_NEEDED = {
    "bfs": ("source", "where it started"),
    "sssp": ("source", "where it started"),
    "kcore": ("k", "the number of edges that everybody has in it"),
}


@expanded
def validate(
    path: GraphPath,
    result: Annotated[str, typer.Argument(metavar="RESULT", help="What --output wrote: .parquet, .csv or .npz.")],
    algorithm: Annotated[str, typer.Option(help=f"What made it: {', '.join(ALGORITHMS)}.")],
    reading: ReadingOptions,
    source: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="As the algorithm was given: the file's own id.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(metavar="ID", help="As bfs and sssp were given.")] = None,
    cutoff: Annotated[float | None, typer.Option(help="As bfs and sssp were given.")] = None,
    normalized: Annotated[bool | None, typer.Option(help="As bc, ebc and katz were given.")] = None,
    endpoints: Annotated[bool | None, typer.Option("--endpoints", help="As bc was given.")] = None,
    damping: Annotated[float | None, typer.Option(help="As pagerank was given.")] = None,
    alpha: Annotated[float | None, typer.Option(help="As katz was given.")] = None,
    beta: Annotated[float | None, typer.Option(help="As katz was given.")] = None,
    tolerance: Annotated[float | None, typer.Option(help="As the algorithm was given.")] = None,
    iterations: Annotated[int | None, typer.Option(help="As pagerank was given.")] = None,
    weighted: Annotated[bool | None, typer.Option("--weighted", help="As the algorithm was given.")] = None,
    modularity: Annotated[float | None, typer.Option(help="As louvain has printed it.")] = None,
    resolution: Annotated[float | None, typer.Option(help="As louvain was given.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="As kcore was given.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that a result has the properties that only a right one has."""
    check_choice("algorithm", algorithm, ALGORITHMS)
    options = {
        "source": source, "target": target, "cutoff": cutoff, "normalized": normalized, "endpoints": endpoints,
        "damping": damping, "tolerance": tolerance, "iterations": iterations, "weighted": weighted,
        "modularity": modularity, "resolution": resolution, "alpha": alpha, "beta": beta, "k": k,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None and value != []}
    _check_options(algorithm, given)
    with display.stages(quiet) as begin:
        begin(f"reading {path} and {result}")
        graph = reading.read(path)
        checks = _prepare(graph, algorithm, result, given)
        begin(f"checking {result}")
        checks()
    if json:
        display.print_json({"valid": True, "algorithm": algorithm, "vertices": graph.num_vertices})
    elif not quiet:
        print(f"{result}: a valid result of {algorithm} on {path}")


def _check_options(algorithm: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in _UNDERSTOOD[algorithm]:
            allowed = ", ".join(_UNDERSTOOD[algorithm]) or "none"
            raise ArgumentError(f"{name}={value!r} does not belong to {algorithm}; allowed options: {allowed}")
    needed, what = _NEEDED.get(algorithm, (None, None))
    if needed is not None and needed not in given:
        raise ArgumentError(f"{needed} is missing; a result of {algorithm} is checked against {what}")


def _prepare(graph: Graph, algorithm: str, result: str, given: dict[str, Any]) -> Any:
    """Read the result and return the call that verifies it."""
    if algorithm in ("bfs", "sssp"):
        return _prepare_search(graph, algorithm, result, given)
    columns = _COLUMNS[algorithm]
    read = read_edges if algorithm in _ABOUT_EDGES else read_result
    found = read(result, graph, list(columns))
    if algorithm in ("bc", "ebc"):
        sources = find_vertices(graph, "source", given.pop("source", None))
        given["sources"] = sources if sources is None else np.atleast_1d(sources)
    module, name = _VERIFIERS[algorithm]
    verify = getattr(import_module(f"shoal.algorithms.{module}"), name)
    return lambda: verify(graph, *(found.get(column.name) for column in columns), **given)


def _prepare_search(graph: Graph, algorithm: str, result: str, given: dict[str, Any]) -> Any:
    from shoal.algorithms.verify_bfs import verify_bfs
    from shoal.algorithms.verify_sssp import verify_sssp

    source = find_vertices(graph, "source", given["source"])
    targets = find_vertices(graph, "target", given.get("target"))
    numbers = [""] if isinstance(source, int) else [f"_{k}" for k in range(len(source))]
    wanted = [Column(f"distance{k}", is_fraction=algorithm == "sssp") for k in numbers]
    columns = read_result(result, graph, wanted + [Column(f"parent{k}", is_optional=True) for k in numbers])
    distance = [columns[f"distance{k}"] for k in numbers]
    parent = [columns[f"parent{k}"] for k in numbers if f"parent{k}" in columns]
    arrays: tuple[Any, Any] = (np.stack(distance), np.stack(parent) if parent else None)
    if isinstance(source, int):
        arrays = (distance[0], parent[0] if parent else None)
    verify = {"bfs": verify_bfs, "sssp": verify_sssp}[algorithm]
    cutoff = _as_hops(given.get("cutoff")) if algorithm == "bfs" else given.get("cutoff")
    return lambda: verify(graph, source, *arrays, cutoff=cutoff, targets=targets)


def _as_hops(cutoff: float | None) -> int | None:
    if cutoff is None:
        return None
    if cutoff != int(cutoff):
        raise ArgumentError(f"cutoff={cutoff} is not allowed; bfs counts whole hops")
    return int(cutoff)
