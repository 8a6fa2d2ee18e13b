# SPDX-License-Identifier: Apache-2.0
"""What every command does that runs an algorithm: check, read, run, write, print."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import shoal
from shoal.commands import display, ranks
from shoal.commands.options import ReadingOptions, RunOptions
from shoal.commands.result_files import check_output, write_result
from shoal.errors import OutOfMemoryError
from shoal.graph import Graph
from shoal.io.files import check_new_folder
from shoal.io.shards import is_shards
from shoal.labels import names_of
from shoal.machine import available_memory_bytes, format_bytes
from shoal.memory import estimate_memory
from shoal.report.option import check_report
from shoal.results import (
    CommunitiesResult,
    ComponentsResult,
    CoreMembersResult,
    EdgesResult,
    ForestResult,
    Result,
    TraversalResult,
    is_vertex,
)

ALGORITHMS: dict[str, Callable[..., Any]] = {
    "bfs": shoal.bfs,
    "sssp": shoal.sssp,
    "cc": shoal.connected_components,
    "bc": shoal.betweenness_centrality,
    "ebc": shoal.edge_betweenness_centrality,
    "pagerank": shoal.pagerank,
    "triangles": shoal.triangles,
    "clustering": shoal.clustering,
    "transitivity": shoal.transitivity,
    "lpa": shoal.label_propagation,
    "louvain": shoal.louvain_communities,
    "eigenvector": shoal.eigenvector_centrality,
    "katz": shoal.katz_centrality,
    "hits": shoal.hits,
    "scc": shoal.strongly_connected_components,
    "msf": shoal.minimum_spanning_forest,
    "core": shoal.core_number,
    "kcore": shoal.k_core,
}
NUM_ROWS_SHOWN = 5

logger = logging.getLogger("shoal")


def run_algorithm(
    algorithm: str, path: str, reading: ReadingOptions, run: RunOptions, choose: Callable[[Graph], dict[str, Any]]
) -> None:
    """Run ``algorithm`` on a graph file or a folder of shards; ``choose`` gives its arguments, given the graph."""
    with ranks.telling():
        _run_algorithm(algorithm, path, reading, run, choose)


def _run_algorithm(
    algorithm: str, path: str, reading: ReadingOptions, run: RunOptions, choose: Callable[[Graph], dict[str, Any]]
) -> None:
    strategies = run.strategies()
    is_dataset = is_shards(path) and ranks.writes_dataset(run.output, run.gather)
    if is_dataset:
        check_new_folder("output", str(run.output))
    else:
        check_output(run.output)
    check_report(run.report, run.stats)
    if not ranks.is_first():  # one of a job speaks for all
        run = replace(run, quiet=True, json=False, report=None)
    with display.stages(run.quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        there, graph = _open(path, reading, run)
        load_seconds = time.perf_counter() - started
        arguments = choose(graph) | strategies
        _check_memory(graph, algorithm, arguments)
        _log_edges(graph)
        begin(f"running {algorithm}" + (" and checking the result" if run.validate else ""))
        if isinstance(there, shoal.Placed):
            arguments["devices"] = there.devices
        given = {"validate": run.validate, "report": run.report, **run.keeping()}
        result = ALGORITHMS[algorithm](there, **arguments, **given)
        logger.info("%s: %s", algorithm, result.stats)
        logger.debug("%s ran with %s", algorithm, result.stats.config)
        if run.output is not None:
            begin(f"writing {run.output}")
            if is_dataset and isinstance(there, shoal.Placed):
                ranks.write_dataset(result, run.output, there)
            elif ranks.is_first():
                write_result(result, run.output)
    if run.json:
        display.print_json(
            {"result": result.named_summary(), "stats": result.stats.to_dict(), "load_seconds": load_seconds}
        )
    elif not run.quiet:
        _print_result(algorithm, path, result, load_seconds, run)


def _open(path: str, reading: ReadingOptions, run: RunOptions) -> tuple[Graph | shoal.Placed, Graph]:
    """Return what an algorithm is to run on, and the graph, or what stands for it, of a file or a folder of shards."""
    if is_shards(path):
        reading.refuse_for_shards()
        placed = shoal.open_shards(path, run.devices)
        return placed, placed.graph
    graph = reading.read(path)
    if run.shards is None:
        return graph, graph
    return shoal.place(graph, run.devices, shards=run.shards), graph


def _log_edges(graph: Graph) -> None:
    """Say that edges stay on disk: of a file that is mapped they may be more than memory has room for."""
    available = available_memory_bytes()
    if graph.nbytes > available:
        logger.info("the graph, %s, is more than the %s of memory there is: its edges stay on disk, mapped",
                    format_bytes(graph.nbytes), format_bytes(available))  # fmt: skip


def _check_memory(graph: Graph, algorithm: str, arguments: dict[str, Any]) -> None:
    estimate = estimate_memory(graph, algorithm, **arguments)
    needed, available = estimate.total_bytes - estimate.graph_bytes, available_memory_bytes()
    if needed > available:
        raise OutOfMemoryError(
            f"{algorithm} needs about {format_bytes(needed)} of memory beside the graph; "
            f"{format_bytes(available)} is available"
        )


def _print_result(algorithm: str, path: str, result: Result, load_seconds: float, run: RunOptions) -> None:
    stats = result.stats
    summary = result.named_summary()
    facts = {name: _as_name(value) if is_vertex(name, value) else value for name, value in summary.items()} | {
        "load seconds": load_seconds,
        "seconds": stats.seconds,
        "supersteps": stats.num_supersteps,
        "edges visited": stats.edges_visited,
        "TEPS (stored edges / second)": result.graph.num_edges / stats.seconds if stats.seconds else None,
        "peak memory beside the graph": format_bytes(stats.peak_memory_bytes),
    }
    if run.validate:
        facts["validated"] = True
    if run.output is not None:
        facts["written"] = run.output
    if run.report is not None:
        facts["report"] = run.report
    display.print_facts(f"{algorithm} on {path}", facts)
    title, rows = _top_rows(result)
    if rows:
        display.print_rows(title, rows)


def _top_rows(result: Result) -> tuple[str, dict[str, Any]]:
    """Return the few rows that say most: largest components, farthest vertices, highest values."""
    graph = result.graph
    if graph.num_vertices == 0 or isinstance(result, CoreMembersResult):
        return "", {}
    for kind, title in ((ComponentsResult, "largest components"), (CommunitiesResult, "largest communities")):
        if isinstance(result, kind):
            return title, _largest(result.label, graph)
    if isinstance(result, EdgesResult):
        *_, value = result.columns
        return "heaviest edges" if isinstance(result, ForestResult) else f"highest {value}", _top_edges(result, value)
    columns = [name for name in result.table() if name != "vertex"]
    values = result.table()[columns[0]]
    if isinstance(result, TraversalResult):
        reached = np.flatnonzero(np.isfinite(values) & (values >= 0))
        top = reached[np.argsort(-values[reached], kind="stable")[:NUM_ROWS_SHOWN]]
        title = "farthest vertices" if result.distance.ndim == 1 else "farthest from the first source"
    else:
        top = np.argsort(-values, kind="stable")[:NUM_ROWS_SHOWN]
        title = f"highest {columns[0]}"
    table = result.table()
    shown: dict[str, Any] = {"vertex": names_of(graph.labels, top).tolist()}
    for name in columns[:2]:
        cells = table[name][top]
        shown[name] = (names_of(graph.labels, cells) if name.startswith("parent") else cells).tolist()
    return title, {name: [_as_name(v) if name in ("vertex", "parent") else v for v in vs] for name, vs in shown.items()}


def _largest(label: np.ndarray, graph: Graph) -> dict[str, Any]:
    """Return the labels that most vertices have, and how many that are."""
    sizes = np.bincount(label)
    top = np.argsort(-sizes, kind="stable")[: min(NUM_ROWS_SHOWN, np.count_nonzero(sizes))]
    names = names_of(graph.labels, top).tolist()
    return {"label": [_as_name(name) for name in names], "vertices": sizes[top].tolist()}


def _top_edges(result: EdgesResult, value: str) -> dict[str, Any]:
    """Return the edges that have most of a value, if they have it at all."""
    edges = result.edges()
    top = np.argsort(-edges[value], kind="stable")[:NUM_ROWS_SHOWN] if value in edges else np.arange(0)
    ends = {name: names_of(result.graph.labels, edges[name][top]).tolist() for name in ("src", "dst")}
    shown = {name: [_as_name(v) for v in values] for name, values in ends.items()}
    return shown | {value: edges[value][top].tolist()} if len(top) else {}


def _as_name(value: Any) -> str:
    """An id is a name: no thousands separators."""
    return "-" if value is None else str(value)
