# SPDX-License-Identifier: Apache-2.0
"""What handing parts over gains: searches of road networks, a grid and an R-MAT graph on four devices.

    python benchmarks/ownership.py --json benchmarks/results/ownership.json

BFS and SSSP on four devices of one thread with the parts as they are, with ownership stealing and with both kinds, and
on one device of one thread, by turns, timed by their own seconds.  Beside them how many of the supersteps one device
did alone, and how often the group changed, in the last run.  Graphs that are not there are left out: they are looked
for in --data, or $SHOAL_DATA, or ../shared/data.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import shoal
from asynchronous import ROADS, source_of
from devices import DATA, SUMMARIES, read_graphs, sample_seconds
from figures import Figure, Row, RowTable, parser, print_rows, print_table, to_dict
from shoal.bench.report import write_whole

FOUR_DEVICES, ONE_DEVICE = "cpu:4x1", "cpu:1x1"
STEALING = ("none", "ownership", "both")
RMAT_SCALE = 18
# A road network must gain, a graph of few long supersteps must not lose.
ASKED_ON_ROADS, ASKED_ON_RMAT = 1.0, 1.02
KERNELS = {"BFS": shoal.bfs, "SSSP": shoal.sssp}
TABLES = {
    "groups": RowTable(
        f"Searches on {FOUR_DEVICES}",
        {
            "graph": "{graph}",
            "kernel": "{kernel}",
            "supersteps": "{supersteps}",
            "none, ms": "{none}",
            "ownership, ms": "{ownership}",
            "both, ms": "{both}",
            "one device, ms": "{one}",
            "by none": "{by_none} x",
            "done alone": "{alone} %",
            "changes": "{changes}",
        },
        num_names=2,
    ),
}


def main() -> None:
    """Measure, print and write."""
    options = parser(__doc__, scale=2000)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--repetitions", type=int, default=9, help="runs of each (9)")
    given = options.parse_args()
    roads = read_graphs(given.data, ROADS)
    roads[f"grid {given.scale} x {given.scale}"] = shoal.generate.grid(given.scale, given.scale, weights=(1, 255))
    scale = min(RMAT_SCALE, given.scale)
    others = {f"R-MAT of scale {scale}": shoal.generate.rmat(scale, seed=1, weights=(1, 255))}
    rows = [row for name, graph in (roads | others).items() for row in rows_of(name, graph, given.repetitions)]
    figures = [
        Figure(f"{row['kernel']}, {row['graph']}: ownership stealing by none", row["by_none"], "x",
               ASKED_ON_ROADS if row["graph"] in roads else ASKED_ON_RMAT)
        for row in rows
    ]  # fmt: skip
    table = TABLES["groups"]
    print_rows(table.title, table.header, [table.cells(row) for row in rows], table.right)
    setting = "road networks, a grid and an R-MAT graph"
    print_table(f"ownership: {setting}", figures)
    if given.json is not None:
        tables = {"groups": {"rows": rows, "note": note_of(given.repetitions)}}
        result = to_dict("ownership", setting, figures) | {"kind": "devices", "tables": tables}
        write_whole(Path(given.json), json.dumps(result, indent=1) + "\n")


def note_of(repetitions: int) -> str:
    """Return what the columns are."""
    return (
        f"From a vertex in the middle of the ids; medians of {repetitions} runs by turns, with copies of all vertices. "
        "Done alone: supersteps in which one device had all parts; changes: of the group; both in the last run."
    )


def rows_of(name: str, graph: shoal.Graph, repetitions: int) -> list[Row]:
    """Return the searches of one graph."""
    source = source_of(graph)
    four, one = shoal.place(graph, FOUR_DEVICES, duplication="all"), shoal.place(graph, ONE_DEVICE)
    rows: list[Row] = []
    for kernel, search in KERNELS.items():
        last: list[Any] = []

        def keep(run: Any, last: list[Any] = last) -> Any:
            last[:] = [run.stats.to_dict()]
            return run

        runs: dict[str, Any] = {
            stealing: lambda stealing=stealing, search=search: search(four, source, stealing=stealing)
            for stealing in STEALING
        }
        runs["ownership"] = lambda search=search, keep=keep: keep(search(four, source, stealing="ownership"))
        runs["one"] = lambda search=search: search(one, source)
        medians = {
            which: 1e3 * SUMMARIES["median"](values) for which, values in sample_seconds(runs, repetitions).items()
        }
        sizes = last[0]["group_sizes"]
        rows.append({
            "graph": name, "kernel": kernel, "supersteps": len(sizes), **medians,
            "by_none": medians["ownership"] / medians["none"], "alone": 100 * sizes.count(1) / len(sizes),
            "changes": len(last[0]["regroupings"]),
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
