# SPDX-License-Identifier: Apache-2.0
"""How fast the algorithms are on a GPU: the time of the kernels, with graph and state on the GPU.

    python benchmarks/gpu.py --graphs kron22,grid4k --kernels bfs,sssp --json benchmarks/results/gpu.json

Times are those of the supersteps, from the first to the last, by the GPU's own clock: the median over the sources.
Graphs with hubs are measured again as `Graph.optimized`, which is made once and not counted; where vertices have other
numbers meanwhile, putting the result in their order is, and so is taking apart words of distances and parents.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from figures import Figure, parser, publish

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30 asks for it
    np.row_stack = np.vstack

import shoal
from shoal import generate
from shoal.algorithms.sssp import split_words

HOW = {"seed": 1, "weights": (1, 64), "device": "cuda"}
GRAPHS = {
    "kron16": lambda: generate.rmat(16, 16, **HOW),
    "kron20": lambda: generate.rmat(20, 16, **HOW),
    "kron22": lambda: generate.rmat(22, 16, **HOW),
    "kron24x32": lambda: generate.rmat(24, 32, **HOW),
    "rmat20x512": lambda: generate.rmat(20, 512, **HOW),
    "kron27": lambda: generate.rmat(27, 16, seed=1, device="cuda"),
    "grid1k": lambda: generate.grid(1024, 1024, drop=0.1, **HOW),
    "grid4k": lambda: generate.grid(4096, 4096, drop=0.1, **HOW),
}
PLAIN = ("grid1k", "grid4k", "kron27")  # no hubs, or too many edges for another copy
#: Milliseconds to reach on an H200.
GOALS = {
    ("kron22", "bfs"): 0.25, ("kron22", "sssp"): 5, ("kron22", "cc"): 2, ("kron22", "pagerank"): 16,
    ("kron22", "bc"): 4,
    ("kron24x32", "bfs"): 0.85, ("kron24x32", "sssp"): 40, ("kron24x32", "cc"): 8, ("kron24x32", "pagerank"): 100,
    ("kron24x32", "bc"): 40, ("rmat20x512", "bfs"): 0.36, ("rmat20x512", "sssp"): 25, ("rmat20x512", "cc"): 3,
    ("rmat20x512", "pagerank"): 42, ("rmat20x512", "bc"): 14, ("grid4k", "bfs"): 50, ("grid4k", "sssp"): 150,
    ("grid4k", "cc"): 1.0, ("grid4k", "pagerank"): 6, ("kron27", "bfs"): 9.5,
}  # fmt: skip
KERNELS = {
    "bfs": lambda placed, source: shoal.bfs(placed, source),
    "sssp": lambda placed, source, **how: shoal.sssp(placed, source, **how),
    "cc": lambda placed, source: shoal.connected_components(placed),
    "pagerank": lambda placed, source: shoal.pagerank(placed, iterations=20, dtype="float32"),
    "bc": lambda placed, source: shoal.betweenness_centrality(placed, [source]),
}
NAMES = {"bfs": "BFS", "sssp": "SSSP", "cc": "connected components", "pagerank": "PageRank, 20 iterations, float32",
         "bc": "betweenness, 1 source"}  # fmt: skip
NUM_SOURCES = {"bfs": 16, "sssp": 16, "cc": 4, "pagerank": 2, "bc": 16}


def kernel_seconds(stats: Any) -> float:
    """Return the time between the begin of the first and the end of the last superstep, phase by phase."""
    return sum(step["seconds"][0] for step in stats.to_dict()["supersteps"])


def choose_sources(graph: shoal.Graph, count: int) -> list[int]:
    """Return vertices that have edges."""
    vertices = np.flatnonzero(graph.degree)
    return np.random.default_rng(1).choice(vertices, count).tolist()


def main() -> None:
    """Measure and print a table."""
    options = parser(__doc__)
    options.add_argument("--graphs", default="kron22,kron24x32,rmat20x512,grid4k,kron27")
    options.add_argument("--kernels", default=",".join(KERNELS))
    options.add_argument("--validate", action="store_true", help="compare one result of each with the CPU's")
    options.add_argument("--trace", action="store_true", help="print the supersteps of one run of each")
    options.add_argument("--deltas", help="widths of sssp's buckets to try, one after the other")
    given = options.parse_args()
    figures = []
    for name in given.graphs.split(","):
        began = time.perf_counter()
        graph = GRAPHS[name]()
        print(f"{name}: {graph.num_vertices} vertices, {graph.num_edges} edges, made in "
              f"{time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
        figures += measure_all(name, graph, given)
        if name not in PLAIN:
            began = time.perf_counter()
            graph = graph.optimized()
            print(f"{name}: optimized in {time.perf_counter() - began:.1f} s", flush=True)
            figures += measure_all(f"{name}, optimized", graph, given)
    publish("gpu", f"One {gpu_name()}; data on the GPU, time of the kernels", figures, given.json)


def measure_all(name: str, graph: shoal.Graph, given: Any) -> list[Figure]:
    """Time the algorithms on one graph."""
    placed = shoal.place(graph, "cuda")
    figures = []
    for kernel in given.kernels.split(","):
        if (name.startswith("grid") and kernel == "bc") or (name == "kron27" and kernel not in ("bfs", "cc")):
            continue  # too many shortest paths; no weights, and no time
        widths = given.deltas.split(",") if kernel == "sssp" and given.deltas else [None]
        for width in widths:
            how = {} if width is None else {"delta": float(width)}
            figures.append(measure(name, graph, placed, kernel, given, **how))
    return figures


def finishing_seconds(placed: Any, kernel: str) -> float:
    """Return the time of what comes behind the supersteps, on the GPU.

    Ranks are put in the order of the vertices, if a run had them in another; words are taken apart.
    """
    import cupy

    shard, times = placed.shards_for(None, with_in_edges=True)[0], []
    ranks, words = cupy.zeros(shard.num_local, cupy.float32), cupy.zeros(shard.num_local, cupy.int64)
    finish = {"sssp": lambda: split_words(words)[0].copy()}
    if shard.hubs is not None:
        finish["pagerank"] = lambda: ranks[shard.hubs.place]
    if kernel not in finish:
        return 0.0
    for _ in range(5):
        begin = cupy.cuda.get_current_stream().record()
        finish[kernel]()
        end = cupy.cuda.get_current_stream().record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return statistics.median(times)


def gpu_name() -> str:
    """Return the name of the GPU."""
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()


def measure(name: str, graph: shoal.Graph, placed: Any, kernel: str, given: Any, **how: Any) -> Figure:
    """Time one algorithm on one graph."""
    sources = choose_sources(graph, NUM_SOURCES[kernel])
    run = KERNELS[kernel]
    result = run(placed, sources[0], **how)  # compiles, and copies the graph
    if given.validate:
        check(kernel, graph, sources[0], result)
    walls, times, steps, finishing = [], [], 0, finishing_seconds(placed, kernel)
    for source in sources:
        began = time.perf_counter()
        result = run(placed, source, **how)
        walls.append(time.perf_counter() - began)
        times.append(kernel_seconds(result.stats) + finishing)
        steps = result.stats.num_supersteps
    median = 1e3 * statistics.median(times)
    title = NAMES[kernel] + "".join(f", {option} {value:g}" for option, value in how.items())
    wall = 1e3 * statistics.median(walls)
    print(f"  {title:32} {median:9.3f} ms (least {1e3 * min(times):9.3f})  {steps:6} supersteps  wall {wall:9.1f} ms  "
          f"{graph.num_edges / median / 1e6:8.1f} GTEPS", flush=True)  # fmt: skip
    if given.trace:
        for step in result.stats.to_dict()["supersteps"][:24]:
            direction, size, edges, seconds = (step[key][0] for key in ("direction", "frontier_size", "edges_visited",
                                                                        "seconds"))  # fmt: skip
            print(f"      {direction} frontier {size:9} edges {edges:11} {1e6 * seconds:9.1f} us")
    return Figure(f"{name}: {title}", median, "ms", GOALS.get((name.split(",")[0], kernel)), len(times))


def check(kernel: str, graph: shoal.Graph, source: int, found: Any) -> None:
    """Compare a result with the CPU's."""
    expected = KERNELS[kernel](graph, source)
    for name in ("distance", "label", "rank", "centrality"):
        if hasattr(found, name):
            left, right = getattr(found, name), getattr(expected, name)
            same = np.allclose(left, right, rtol=1e-4, atol=1e-9, equal_nan=True)
            print(f"  {kernel:9} {name} {'as on the CPU' if same else 'DIFFERS FROM THE CPU'}", flush=True)


if __name__ == "__main__":
    main()
