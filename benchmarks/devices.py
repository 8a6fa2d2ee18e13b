# SPDX-License-Identifier: Apache-2.0
"""Partitions of real graphs, and what a second device costs.

    python benchmarks/devices.py --json benchmarks/results/devices.json

For a road network, a social network and a web graph: what each partition cuts, how long it takes to find, and a search
and PageRank on two devices of one thread (Fig. 2 of Gunrock's multi-GPU paper).  Then a search of a Kronecker graph on
two devices of one thread beside one device of two, a superstep of a long path, where there is nothing to do but to
meet, and what the memory schemes take on a Kronecker graph (Fig. 3 of the paper).  Runs are interleaved, and timed by
their own seconds.  Graphs that are not there are left out: they are looked for in --data, or $SHOAL_DATA, or
../shared/data.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from figures import Figure, Row, RowTable, describe, parser, print_rows, print_table, to_dict
from shoal.bench.report import write_whole
from shoal.strategies.duplication import describe_partition
from shoal.strategies.memory import SCHEMES
from shoal.strategies.partition import PARTITIONERS, partition_graph

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
GRAPHS = {
    "road (New York)": "USA-road-d.NY.gr.gz",
    "social (Epinions)": "soc-Epinions1.txt.gz",
    "web (Notre Dame)": "web-NotreDame.txt.gz",
}
SCHEME_ROUNDS = 3  # times as many runs where memory schemes are compared: their times differ by less than runs do
TWO_DEVICES, ONE_DEVICE, FOUR_DEVICES = "cpu:2x1", "cpu:1x2", "cpu:4x1"
ITERATIONS = 20
#: What two devices may take by one is asked of this scale; of another nothing is asked.
ASKED_SCALE, ASKED_RATIO, ASKED_MICROSECONDS = 22, 1.5, 40.0
SUMMARIES: dict[str, Callable[[list[float]], float]] = {"median": statistics.median, "minimum": min}
#: The tables of rows, by their names in the JSON.
TABLES = {
    "partitions": RowTable(
        f"Partitions of real graphs, {TWO_DEVICES}",
        {
            "graph": "{graph}",
            "partition": "{partition}",
            "found in, ms": "{partition_ms}",
            "edges cut, %": "{cut_percent}",
            "border": "{border}",
            "BFS, ms": "{bfs_median_ms} ({bfs_minimum_ms})",
            "PageRank, ms": "{pagerank_median_ms} ({pagerank_minimum_ms})",
        },
        num_names=2,
    ),
    "memory": RowTable(
        "Memory schemes",
        {
            "algorithm": "{algorithm}",
            "scheme": "{scheme}",
            "peak beside the graph, MB": "{megabytes}",
            "by maximum": "{by_maximum} x",
            "ms": "{median_ms} ({minimum_ms})",
            "time by fused": "{by_fused} x",
        },
        num_names=2,
    ),
}
Runs = dict[str, Callable[[], Any]]


def main() -> None:
    """Measure, print and write."""
    options = parser(__doc__, scale=ASKED_SCALE)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--repetitions", type=int, default=7, help="runs of each (7)")
    options.add_argument("--path-length", type=int, default=20_000, help="vertices of the long path (20000)")
    options.add_argument("--memory-scale", type=int, default=20, help="of the graph for the memory schemes (20)")
    given = options.parse_args()
    tables = measure_tables(given.data, given.repetitions)
    tables["memory"] = measure_memory(given.memory_scale, SCHEME_ROUNDS * given.repetitions)
    kronecker = shoal.generate.rmat(given.scale, seed=1)
    bound = ASKED_RATIO if given.scale == ASKED_SCALE else None
    figures = figures_of_search(kronecker, given.repetitions, bound)
    figures += figures_of_path(given.path_length, given.repetitions)
    publish(tables, describe(kronecker, given.scale), figures, given.json)


def measure_tables(folder: Path, repetitions: int) -> dict[str, Any]:
    """Return rows and note of each table that there is something to be measured for."""
    graphs = read_graphs(folder, GRAPHS)
    rows = [row for name, graph in graphs.items() for row in rows_of(name, graph, repetitions)]
    return {"partitions": {"rows": rows, "note": note_of(graphs, repetitions)}} if rows else {}


def publish(tables: dict[str, Any], setting: str, figures: list[Figure], path: str | None) -> None:
    """Print the tables and the figures, and write them with their circumstances to a file."""
    for name, kept in tables.items():
        table = TABLES[name]
        print_rows(table.title, table.header, [table.cells(row) for row in kept["rows"]], table.right)
    print_table(f"devices: {setting}", figures)
    if path is not None:
        result = to_dict("devices", setting, figures) | {"kind": "devices", "tables": tables}
        write_whole(Path(path), json.dumps(result, indent=1) + "\n")


def read_graphs(folder: Path, files: dict[str, str]) -> dict[str, shoal.Graph]:
    """Return the real graphs that are there, undirected; say which are not."""
    found = {}
    for name, file in files.items():
        if (folder / file).exists():
            graph = shoal.read(folder / file)
            found[name] = graph.symmetrized() if graph.is_directed else graph
        else:
            print(f"{name} is left out: there is no {folder / file}", file=sys.stderr)
    return found


def note_of(graphs: dict[str, shoal.Graph], repetitions: int) -> str:
    """Return what the columns of the table of partitions are, and how large its graphs."""
    sizes = [f"{name} {g.num_vertices:,} vertices, {g.num_edges:,} stored edges" for name, g in graphs.items()]
    return (
        "Border: vertices of the other device that a device's edges mention, summed over the devices. "
        f"BFS from the vertex of most edges, PageRank of {ITERATIONS} iterations: "
        f"median of {repetitions} runs (minimum). "
        f"Undirected: {'; '.join(sizes)}."
    )


def rows_of(name: str, graph: shoal.Graph, repetitions: int) -> list[Row]:
    """Return a row for every partition of a graph on two devices."""
    hub = int(graph.degree.argmax())
    rows: list[Row] = []
    runs: Runs = {}
    for partition in PARTITIONERS:
        try:
            partition_graph(shoal.generate.grid(9, 9), 2, partition)  # compiles or loads
        except shoal.ArgumentError as error:  # it needs what is not installed
            print(f"{partition} is left out: {error}", file=sys.stderr)
            continue
        began = time.perf_counter()
        owner = partition_graph(graph, 2, partition)
        seconds = time.perf_counter() - began
        report = describe_partition(graph, owner, 2)
        rows.append({"graph": name, "partition": partition, "partition_ms": 1e3 * seconds,
                     "cut_percent": 100 * report.cut_fraction, "border": sum(report.borders)})  # fmt: skip
        placed = shoal.place(graph, TWO_DEVICES, partition=owner)
        runs[f"{partition} bfs"] = lambda placed=placed: shoal.bfs(placed, hub)
        runs[f"{partition} pagerank"] = lambda placed=placed: shoal.pagerank(placed, iterations=ITERATIONS)
    samples = sample_seconds(runs, repetitions)
    for row in rows:
        row |= {f"{kernel}_{summary}_ms": 1e3 * value(samples[f"{row['partition']} {kernel}"])
                for kernel in ("bfs", "pagerank") for summary, value in SUMMARIES.items()}  # fmt: skip
    return rows


def measure_memory(scale: int, repetitions: int) -> dict[str, Any]:
    """Return rows and note of what each memory scheme takes; every scheme has a placed graph for itself."""
    graph = shoal.generate.rmat(scale, seed=1, weights=(1, 255))
    hub = int(graph.degree.argmax())
    sources = np.flatnonzero(graph.degree)[:: max(graph.num_vertices // 8, 1)][:4]
    kernels: dict[str, Callable[..., Any]] = {
        "BFS": lambda placed, how: shoal.bfs(placed, hub, memory=how),
        "SSSP": lambda placed, how: shoal.sssp(placed, hub, memory=how),
        "CC": lambda placed, how: shoal.connected_components(placed, memory=how),
        "BC, 4 sources": lambda placed, how: shoal.betweenness_centrality(placed, sources, memory=how),
        f"PageRank, {ITERATIONS} iterations": lambda placed, how: shoal.pagerank(
            placed, iterations=ITERATIONS, memory=how
        ),
    }
    rows = []
    for kernel, run in kernels.items():
        places = {scheme: shoal.place(graph) for scheme in SCHEMES}
        results = {scheme: run(placed, scheme) for scheme, placed in places.items()}  # the first: room is made in it
        peaks = {scheme: result.stats.peak_memory_bytes for scheme, result in results.items()}
        runs: Runs = {how: lambda how=how, run=run, placed=placed: run(placed, how) for how, placed in places.items()}
        samples = sample_seconds(runs, repetitions)
        for scheme in SCHEMES:
            rows.append({
                "algorithm": kernel, "scheme": scheme, "megabytes": peaks[scheme] / 1e6,
                "by_maximum": peaks[scheme] / peaks["maximum"],
                "by_fused": min(samples[scheme]) / min(samples["fused"]),
                **{f"{summary}_ms": 1e3 * value(samples[scheme]) for summary, value in SUMMARIES.items()},
            })  # fmt: skip
    note = (
        f"{describe(graph, scale)}, whole weights from 1 to 255; one device. Peak of the first run on a placed graph, "
        f"fields included; median of {repetitions} further runs (minimum), and minimum by minimum. "
        "CC and PageRank have no frontiers: there is nothing to reserve."
    )
    return {"rows": rows, "note": note}


def figures_of_search(graph: shoal.Graph, repetitions: int, bound: float | None) -> list[Figure]:
    """Return what a search takes on two devices, and on one that has all their threads."""
    hub = int(graph.degree.argmax())
    places = [shoal.place(graph, devices) for devices in (TWO_DEVICES, ONE_DEVICE)]
    runs: Runs = {placed.devices: lambda placed=placed: shoal.bfs(placed, hub) for placed in places}
    samples = sample_seconds(runs, repetitions)
    figures = [figure for devices in runs for figure in summarize(f"BFS on {devices}", 1e3, samples[devices], "ms")]
    ratios = {summary: value(samples[TWO_DEVICES]) / value(samples[ONE_DEVICE]) for summary, value in SUMMARIES.items()}
    return figures + [
        Figure(f"BFS on {TWO_DEVICES} by {ONE_DEVICE}, {summary}", ratio, "x", bound, repetitions)
        for summary, ratio in ratios.items()
    ]


def figures_of_path(length: int, repetitions: int) -> list[Figure]:
    """Return what a superstep of one vertex and one edge takes."""
    path = shoal.Graph.from_edges(np.arange(length - 1), np.arange(1, length))
    bounds = {"cpu:1x1": None, FOUR_DEVICES: ASKED_MICROSECONDS}
    places = [shoal.place(path, devices) for devices in bounds]
    runs: Runs = {placed.devices: lambda placed=placed: shoal.bfs(placed, 0, direction="push") for placed in places}
    samples = sample_seconds(runs, repetitions)
    what = f"superstep of a path of {length:,} vertices"
    return [
        figure
        for devices, bound in bounds.items()
        for figure in summarize(f"{what} on {devices}", 1e6 / length, samples[devices], "us", bound)
    ]


def summarize(what: str, factor: float, samples: list[float], unit: str, bound: float | None = None) -> list[Figure]:
    """Return the median and the minimum of samples, times a factor."""
    return [
        Figure(f"{what}, {summary}", factor * value(samples), unit, bound, len(samples))
        for summary, value in SUMMARIES.items()
    ]


def sample_seconds(runs: Runs, repetitions: int) -> dict[str, list[float]]:
    """Return the seconds of each, run by turns, after one that compiles or loads."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repetitions):
        for name, run in runs.items():
            samples[name].append(run().stats.seconds)
    return samples


if __name__ == "__main__":
    main()
