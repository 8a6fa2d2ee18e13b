# SPDX-License-Identifier: Apache-2.0
"""Partitions of real graphs, and what a second device costs.

    python benchmarks/devices.py --data ../shared/data --json benchmarks/results/devices.json

For a road network, a social network and a web graph: what each partition cuts, how long it takes to find, and a search
and PageRank on two devices of one thread (Fig. 2 of Gunrock's multi-GPU paper).  Then a search of a Kronecker graph on
two devices of one thread beside one device of two, and a superstep of a long path, where there is nothing to do but to
meet.  Runs are interleaved; a figure is the median of a run's own seconds.  Graphs that are not there are left out.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from figures import Figure, describe, format_number, parser, print_table, to_dict
from shoal.bench.report import write_whole
from shoal.strategies.duplication import describe_partition
from shoal.strategies.partition import PARTITIONERS, partition_graph

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GRAPHS = {
    "road (New York)": "USA-road-d.NY.gr.gz",
    "social (Epinions)": "soc-Epinions1.txt.gz",
    "web (Notre Dame)": "web-NotreDame.txt.gz",
}
TWO_DEVICES, ONE_DEVICE, FOUR_DEVICES = "cpu:2x1", "cpu:1x2", "cpu:4x1"
ITERATIONS = 20
HEADER = ["graph", "partition", "seconds to find", "edges cut, %", "border, sum", "BFS, ms", "PageRank, ms"]
Row = dict[str, Any]


def main() -> None:
    """Measure, print and write."""
    options = parser(__doc__, scale=20)
    options.add_argument("--data", type=Path, default=DATA, help=f"folder of the real graphs ({DATA.name})")
    options.add_argument("--repetitions", type=int, default=7, help="runs of each (7)")
    options.add_argument("--path-length", type=int, default=20_000, help="vertices of the long path (20000)")
    given = options.parse_args()
    rows = [row for name, graph in read_graphs(given.data).items() for row in rows_of(name, graph, given.repetitions)]
    kronecker = shoal.generate.rmat(given.scale, seed=1)
    figures = figures_of_search(kronecker, given.repetitions) + figures_of_path(given.path_length, given.repetitions)
    setting = describe(kronecker, given.scale)
    if rows:
        print_partitions(rows)
    print_table(f"devices: {setting}", figures)
    if given.json is not None:
        result = to_dict("devices", setting, figures) | {"kind": "devices", "partitions": rows}
        write_whole(Path(given.json), json.dumps(result, indent=1) + "\n")


def read_graphs(folder: Path) -> dict[str, shoal.Graph]:
    """Return the real graphs that are there, undirected; say which are not."""
    found = {}
    for name, file in GRAPHS.items():
        if (folder / file).exists():
            graph = shoal.read(folder / file)
            found[name] = graph.symmetrized() if graph.is_directed else graph
        else:
            print(f"{name} is left out: there is no {folder / file}", file=sys.stderr)
    return found


def rows_of(name: str, graph: shoal.Graph, repetitions: int) -> list[Row]:
    """Return a row for every partition of a graph on two devices."""
    hub = int(graph.degree.argmax())
    rows: list[Row] = []
    runs: dict[str, Callable[[], Any]] = {}
    for partition in PARTITIONERS:
        began = time.perf_counter()
        try:
            owner = partition_graph(graph, 2, partition)
        except shoal.ArgumentError as error:  # it needs what is not installed
            print(f"{partition} is left out: {error}", file=sys.stderr)
            continue
        seconds = time.perf_counter() - began
        report = describe_partition(graph, owner, 2)
        rows.append({"graph": name, "partition": partition, "partition_seconds": seconds,
                     "cut_percent": 100 * report.cut_fraction, "border": sum(report.borders)})  # fmt: skip
        placed = shoal.place(graph, TWO_DEVICES, partition=owner)
        runs[f"{partition} bfs"] = lambda placed=placed: shoal.bfs(placed, hub)
        runs[f"{partition} pagerank"] = lambda placed=placed: shoal.pagerank(placed, iterations=ITERATIONS)
    medians = median_seconds(runs, repetitions)
    for row in rows:
        row |= {f"{kernel}_ms": 1e3 * medians[f"{row['partition']} {kernel}"] for kernel in ("bfs", "pagerank")}
    return rows


def figures_of_search(graph: shoal.Graph, repetitions: int) -> list[Figure]:
    """Return what a search takes on two devices, and on one that has all their threads."""
    hub = int(graph.degree.argmax())
    places = [shoal.place(graph, devices) for devices in (TWO_DEVICES, ONE_DEVICE)]
    runs = {placed.devices: lambda placed=placed: shoal.bfs(placed, hub) for placed in places}
    medians = median_seconds(runs, repetitions)
    figures = [Figure(f"BFS on {devices}", 1e3 * value, "ms", None, repetitions) for devices, value in medians.items()]
    ratio = medians[TWO_DEVICES] / medians[ONE_DEVICE]
    return [*figures, Figure(f"BFS on {TWO_DEVICES}, by {ONE_DEVICE}", ratio, "x", None, repetitions)]


def figures_of_path(length: int, repetitions: int) -> list[Figure]:
    """Return what a superstep of one vertex and one edge takes."""
    path = shoal.Graph.from_edges(np.arange(length - 1), np.arange(1, length))
    runs = {devices: lambda devices=devices: shoal.bfs(path, 0, devices=devices, direction="push")
            for devices in ("cpu:1x1", FOUR_DEVICES)}  # fmt: skip
    medians = median_seconds(runs, repetitions)
    return [
        Figure(
            f"superstep of a path of {length:,} vertices on {devices}", 1e6 * value / length, "us", None, repetitions
        )
        for devices, value in medians.items()
    ]


def median_seconds(runs: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Return the median of the seconds of each, run by turns, after one that compiles or loads."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repetitions):
        for name, run in runs.items():
            samples[name].append(run().stats.seconds)
    return {name: statistics.median(values) for name, values in samples.items()}


def cells_of(row: Row) -> list[str]:
    """Return a row of the table of partitions."""
    numbers = (row["partition_seconds"], row["cut_percent"], row["border"], row["bfs_ms"], row["pagerank_ms"])
    return [row["graph"], row["partition"], *map(format_number, numbers)]


def print_partitions(rows: list[Row]) -> None:
    """Print the table of partitions."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"partitions on {TWO_DEVICES}", title_justify="left")
    for index, head in enumerate(HEADER):
        table.add_column(head, justify="right" if index > 1 else "left")
    for row in rows:
        table.add_row(*cells_of(row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
