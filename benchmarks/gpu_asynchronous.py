# SPDX-License-Identifier: Apache-2.0
"""What devices of a GPU gain without supersteps: road networks and a grid, fused workers beside unfused ones.

    python benchmarks/gpu_asynchronous.py --json benchmarks/results/gpu_asynchronous.json

A fused worker is a kernel that stays until all is done; an unfused one comes back after every round, and the host
starts it again.  Both visit by soft priorities.  The host's part of a round is Python's; so unfused workers are also
reckoned with the least host, which does nothing but start a kernel and read what it says, measured alone.  Times are by
the GPU's own clock, from the first start to the end, the median over the sources; unfused from the last of them.  Road
networks that are not there are left out: they are looked for in --data, or $SHOAL_DATA, or ../shared/data.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import shoal
from asynchronous import ROADS
from devices import DATA, read_graphs
from figures import Figure, parser, publish
from gpu import GRAPHS, choose_sources, gpu_name
from gpu_many import superstep_seconds
from shoal.backends.cuda.worklist_run import WorklistRun
from shoal.machine import import_cupy

KERNELS = {"BFS": shoal.bfs, "SSSP": shoal.sssp}
GRID = "grid4k"
ASKED_FUSED = 1 / 2.3  # of the time of unfused workers: the least gain of the paper's (Groute, section 6)
ASKED_GRID_MS = 150.0  # SSSP
NUM_SOURCES, NUM_STARTS = 5, 500


@contextmanager
def unfused() -> Iterator[Counter[int]]:
    """Let workers come back after every round; count how often each did."""
    returns: Counter[int] = Counter()
    end = WorklistRun.end

    def counted(run: WorklistRun) -> Any:
        returns[id(run)] += 1
        return end(run)

    WorklistRun.is_fused, WorklistRun.end = False, counted  # type: ignore[method-assign]
    try:
        yield returns
    finally:
        WorklistRun.is_fused, WorklistRun.end = True, end  # type: ignore[method-assign]


def start_ms() -> float:
    """Return the milliseconds that starting a kernel which does nothing, and reading a number it left, takes."""
    cupy = import_cupy()
    nothing = cupy.RawKernel('extern "C" __global__ void nothing(long long* number) {}', "nothing")
    number, samples = cupy.zeros(1, cupy.int64), []
    for _ in range(NUM_STARTS):
        began = time.perf_counter()
        nothing((1,), (1,), (number,))
        number.get()
        samples.append(time.perf_counter() - began)
    return 1e3 * statistics.median(samples)


def measure(placed: Any, kernel: str, sources: list[int], **how: Any) -> tuple[float, Any]:
    """Return the median time in milliseconds, and the counts of the last run."""
    search = KERNELS[kernel]
    search(placed, sources[0], **how)  # compiles, and copies the graph
    stats = [search(placed, source, **how).stats for source in sources]
    return 1e3 * statistics.median(sum(superstep_seconds(found)) for found in stats), stats[-1].to_dict()


def figures_of(name: str, graph: shoal.Graph, devices: str) -> list[Figure]:
    """Return what searches of one graph take: fused, beside unfused, and beside supersteps."""
    placed, sources, figures = shoal.place(graph, devices), choose_sources(graph, NUM_SOURCES), []
    for kernel in KERNELS:
        where = f"{name}: {kernel} on {devices}"
        bsp, _ = measure(placed, kernel, sources)
        fused, counts = measure(placed, kernel, sources, execution="async")
        with unfused() as returns:
            stats = KERNELS[kernel](placed, sources[-1], execution="async").stats
        alone, rounds = 1e3 * sum(superstep_seconds(stats)), max(returns.values())
        least = fused + rounds * start_ms()
        visits = counts["work_items"] / graph.num_vertices
        print(f"{where}: supersteps {bsp:.3f}, fused {fused:.3f}, unfused {alone:.3f} ms, {rounds} rounds, "
              f"at least {least:.3f} ms; {visits:.2f} visits a vertex",
              flush=True)  # fmt: skip
        asked = ASKED_GRID_MS if (name, kernel, devices) == (GRID, "SSSP", "cuda:0") else None
        figures += [
            Figure(where, fused, "ms", asked, len(sources)),
            Figure(f"{where}, by unfused workers", fused / alone, "x", ASKED_FUSED, 1),
            Figure(f"{where}, by unfused workers of the least host", fused / least, "x", ASKED_FUSED, NUM_STARTS),
            Figure(f"{where}, by supersteps", fused / bsp, "x", None, len(sources)),
        ]
    return figures


def main() -> None:
    """Measure and print a table."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--devices", default="cuda:0,cuda:0*4")
    given = options.parse_args()
    graphs = read_graphs(given.data, ROADS) | {GRID: GRAPHS[GRID]()}
    figures = [
        figure
        for name, graph in graphs.items()
        for devices in given.devices.split(",")
        for figure in figures_of(name, graph, devices)
    ]
    publish("gpu_asynchronous", f"Without supersteps on one {gpu_name()}", figures, given.json)


if __name__ == "__main__":
    main()
