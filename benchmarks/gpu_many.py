# SPDX-License-Identifier: Apache-2.0
"""What several devices on one GPU cost beside one: the exchanges, and that nothing is shared between them.

    python benchmarks/gpu_many.py --graphs kron24x32 --devices 4 --json benchmarks/results/gpu_many.json

Times are those of the supersteps, by the GPU's own clock: the median over the sources.  The cost of a superstep is
measured on a path, where every frontier is one vertex.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import shoal
from figures import Figure, parser, publish
from gpu import GRAPHS, NAMES, choose_sources, gpu_name

KERNELS = {
    "bfs": lambda placed, source, **how: shoal.bfs(placed, source, **how),
    "pagerank": lambda placed, source, **how: shoal.pagerank(placed, iterations=20, dtype="float32", **how),
    "sssp": lambda placed, source, **how: shoal.sssp(placed, source, **how),
    "cc": lambda placed, source, **how: shoal.connected_components(placed, **how),
    "bc": lambda placed, source, **how: shoal.betweenness_centrality(placed, [source], **how),
}
#: Times one device's that several may take, and microseconds of a superstep.
ASKED = {"bfs": 2.5, "pagerank": 2.5}
ONE_GPU_MICROSECONDS, MANY_MICROSECONDS = 6.0, 100.0
NUM_SOURCES = {"bfs": 8, "pagerank": 2, "sssp": 4, "cc": 2, "bc": 2}
PATH_LENGTH = 10_000


def superstep_seconds(stats: Any) -> list[float]:
    """Return the time of every superstep: that of the device that took longest."""
    return [max(step["seconds"]) for step in stats.to_dict()["supersteps"]]


def measure(placed: Any, kernel: str, sources: list[int]) -> float:
    """Return the median time of an algorithm in milliseconds."""
    run = KERNELS[kernel]
    run(placed, sources[0])  # compiles, and copies the graph
    return 1e3 * statistics.median(sum(superstep_seconds(run(placed, source).stats)) for source in sources)


def measure_superstep(devices: str, asked: float) -> Figure:
    """Return what a superstep of one vertex costs."""
    ids = np.arange(PATH_LENGTH)
    placed = shoal.place(shoal.Graph.from_edges(ids[:-1], ids[1:]), devices)
    shoal.bfs(placed, 0, direction="push")
    seconds = superstep_seconds(shoal.bfs(placed, 0, direction="push").stats)
    return Figure(f"{devices}: a superstep of one vertex", 1e6 * statistics.median(seconds), "us", asked, len(seconds))


def main() -> None:
    """Measure and print a table."""
    options = parser(__doc__)
    options.add_argument("--graphs", default="kron24x32")
    options.add_argument("--kernels", default=",".join(KERNELS))
    options.add_argument("--devices", type=int, default=4)
    given = options.parse_args()
    many = f"cuda:0*{given.devices}"
    figures = [measure_superstep("cuda", ONE_GPU_MICROSECONDS), measure_superstep(many, MANY_MICROSECONDS)]
    for name in given.graphs.split(","):
        graph = GRAPHS[name]()
        one, several = (shoal.place(graph, devices) for devices in ("cuda", many))
        for kernel in given.kernels.split(","):
            sources = choose_sources(graph, NUM_SOURCES[kernel])
            times = [measure(placed, kernel, sources) for placed in (one, several)]
            print(f"{name} {kernel}: {times[0]:.3f} and {times[1]:.3f} ms", flush=True)
            what = f"{name}: {NAMES[kernel]} on {many}, beside one device"
            figures.append(Figure(what, times[1] / times[0], "x", ASKED.get(kernel), len(sources)))
    publish("gpu_many", f"Several devices on one {gpu_name()}", figures, given.json)


if __name__ == "__main__":
    main()
