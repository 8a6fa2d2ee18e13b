# SPDX-License-Identifier: Apache-2.0
"""What execution without supersteps gains: searches of road networks and a grid, work-items, and segments by speed.

    python benchmarks/asynchronous.py --json benchmarks/results/asynchronous.json

BFS and SSSP on two devices without supersteps beside the best of one device (of one thread and of two) and two devices
in supersteps, by turns, timed by their own seconds.  Then the vertices visited with soft priorities and without, on
four devices, and a filter whose one device takes four times as long for a segment.  Graphs that are not there are left
out: they are looked for in --data, or $SHOAL_DATA, or ../shared/data.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from devices import DATA, SUMMARIES, read_graphs, sample_seconds
from figures import Figure, Row, RowTable, parser, print_rows, print_table, to_dict
from shoal.bench.report import write_whole
from shoal.dataflow.examples import filter_on_uneven_devices

ROADS = {
    "New York": "USA-road-d.NY.gr.gz",
    "Florida": "USA-road-FLA.pace.gr.gz",
    "Bremen": "bremen_dist.gr.gz",
}
ONE_DEVICE = ("cpu:1x1", "cpu:1x2")
TWO_DEVICES, FOUR_DEVICES = "cpu:2x1", "cpu:4x1"
PARTITIONS = ("segment", "metis")
ASKED_BY_ONE, ASKED_BY_BSP, ASKED_FEWER, ASKED_BY_IDEAL = 1.1, 1.0, 0.1, 1.15
SLOWER, SEGMENT_SECONDS, NUM_SEGMENTS = 4, 0.002, 500
KERNELS = {"BFS": shoal.bfs, "SSSP": shoal.sssp}
TABLES = {
    "searches": RowTable(
        f"Searches on {TWO_DEVICES}",
        {
            "graph": "{graph}",
            "kernel": "{kernel}",
            "one device, ms": "{one_ms} ({one})",
            "supersteps, ms": "{bsp_ms} ({bsp})",
            "without, ms": "{async_ms} ({async_})",
            "by one device": "{by_one} x",
            "by supersteps": "{by_bsp} x",
        },
        num_names=2,
    ),
    "visits": RowTable(
        f"Vertices visited, {FOUR_DEVICES}, in millions",
        {
            "graph": "{graph}",
            "kernel": "{kernel}",
            "partition": "{partition}",
            "vertices": "{vertices}",
            "soft priorities": "{soft}",
            "none": "{none}",
            "soft by none": "{ratio} x",
        },
        num_names=3,
    ),
}


def main() -> None:
    """Measure, print and write."""
    options = parser(__doc__, scale=2000)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--repetitions", type=int, default=9, help="runs of each (9)")
    given = options.parse_args()
    grid = f"grid {given.scale} x {given.scale}"
    graphs = read_graphs(given.data, ROADS) | {
        grid: shoal.generate.grid(given.scale, given.scale, seed=1, weights=(1, 255))
    }
    searches = [row for name, graph in graphs.items() for row in rows_of(name, graph, given.repetitions)]
    visits = [row for name, graph in graphs.items() if name in ("New York", grid) for row in visits_of(name, graph)]
    tables = {
        "searches": {"rows": searches, "note": note_of(graphs, given.repetitions)},
        "visits": {"rows": visits, "note": "One run of each; the source is that of the searches."},
    }
    figures = figures_of_searches(searches) + figures_of_visits(visits) + figures_of_filter()
    for name, kept in tables.items():
        table = TABLES[name]
        print_rows(table.title, table.header, [table.cells(row) for row in kept["rows"]], table.right)
    setting = "road networks, and a grid with a tenth of its edges dropped"
    print_table(f"asynchronous: {setting}", figures)
    if given.json is not None:
        result = to_dict("asynchronous", setting, figures) | {"kind": "devices", "tables": tables}
        write_whole(Path(given.json), json.dumps(result, indent=1) + "\n")


def note_of(graphs: dict[str, shoal.Graph], repetitions: int) -> str:
    """Return how large the graphs are, and what the columns are."""
    sizes = [f"{name} {g.num_vertices:,} vertices, {g.num_edges:,} stored edges" for name, g in graphs.items()]
    return (
        f"From a vertex in the middle of the ids; medians of {repetitions} runs, of one device the faster of "
        f"{' and '.join(ONE_DEVICE)}, of two the faster of the partitions {', '.join(PARTITIONS)}. {'; '.join(sizes)}."
    )


def source_of(graph: shoal.Graph) -> int:
    """Return a vertex in the middle of the ids that has edges, of the largest component."""
    label = shoal.connected_components(graph).label
    largest = np.flatnonzero(label == np.bincount(label).argmax())
    return int(largest[len(largest) // 2])


def rows_of(name: str, graph: shoal.Graph, repetitions: int) -> list[Row]:
    """Return the searches of one graph."""
    source = source_of(graph)
    places = {devices: shoal.place(graph, devices) for devices in ONE_DEVICE}
    places |= {partition: shoal.place(graph, TWO_DEVICES, partition=partition) for partition in PARTITIONS}
    rows: list[Row] = []
    for kernel, search in KERNELS.items():
        runs: dict[str, Any] = {}
        for where, placed in places.items():
            runs[where] = lambda placed=placed, search=search: search(placed, source)
            if where in PARTITIONS:
                runs[f"async {where}"] = lambda placed=placed, search=search: search(placed, source, execution="async")
        samples = sample_seconds(runs, repetitions)
        medians = {which: 1e3 * SUMMARIES["median"](values) for which, values in samples.items()}
        best = {
            "one": min(ONE_DEVICE, key=medians.__getitem__),
            "bsp": min(PARTITIONS, key=medians.__getitem__),
            "async_": min((f"async {partition}" for partition in PARTITIONS), key=medians.__getitem__),
        }
        one, bsp, found = (medians[which] for which in best.values())
        row = {"graph": name, "kernel": kernel, **best, "one_ms": one, "bsp_ms": bsp, "async_ms": found,
               "by_one": found / one, "by_bsp": found / bsp}  # fmt: skip
        rows.append(row | {f"{which}, ms": ms for which, ms in medians.items()})
    return rows


def visits_of(name: str, graph: shoal.Graph) -> list[Row]:
    """Return how many vertices are visited on four devices, with soft priorities and without."""
    source, rows = source_of(graph), []
    for kernel, search in KERNELS.items():
        for partition in ("random", *PARTITIONS):
            placed = shoal.place(graph, FOUR_DEVICES, partition=partition)
            found = {
                priority: search(placed, source, execution="async", priority=priority).stats.to_dict()["work_items"]
                for priority in ("soft", "none")
            }
            rows.append({"graph": name, "kernel": kernel, "partition": partition, "vertices": graph.num_vertices / 1e6,
                         "soft": found["soft"] / 1e6, "none": found["none"] / 1e6,
                         "ratio": found["soft"] / found["none"]})  # fmt: skip
    return rows


def figures_of_searches(rows: list[Row]) -> list[Figure]:
    """Return what is asked of the searches."""
    return [
        Figure(f"{row['kernel']}, {row['graph']}: two devices without supersteps by {other}", row[key], "x", bound)
        for row in rows
        for other, key, bound in (("one device", "by_one", ASKED_BY_ONE), ("two in supersteps", "by_bsp", ASKED_BY_BSP))
    ]


def figures_of_visits(rows: list[Row]) -> list[Figure]:
    """Return what is asked of soft priorities: SSSP of New York's roads, partitioned at random."""
    asked = [row for row in rows if (row["graph"], row["kernel"], row["partition"]) == ("New York", "SSSP", "random")]
    what = "SSSP, New York, random partition: visits with soft priorities by those without"
    return [Figure(what, row["ratio"], "x", ASKED_FEWER) for row in asked]


def figures_of_filter() -> list[Figure]:
    """Return how segments are shared between two devices, one of which is slower."""
    began = time.perf_counter()
    segments = filter_on_uneven_devices(NUM_SEGMENTS, SEGMENT_SECONDS, SLOWER).segments
    seconds = time.perf_counter() - began
    fast, slow = segments["cpu:0"], segments["cpu:1"]
    ideal = NUM_SEGMENTS * SEGMENT_SECONDS / (1 + 1 / SLOWER)
    return [
        Figure(f"filter: segments of the faster device by those of one {SLOWER} times slower", fast / slow, "x"),
        Figure("filter: time by the ideal", seconds / ideal, "x", ASKED_BY_IDEAL),
    ]


if __name__ == "__main__":
    main()
