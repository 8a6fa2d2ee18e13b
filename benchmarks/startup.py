# SPDX-License-Identifier: Apache-2.0
"""How long a newcomer waits: import, the first call ever, the first call of a process, and calls on tiny graphs.

    python benchmarks/startup.py --json benchmarks/results/startup.json

Whole processes are timed from outside, the interpreter's own start included; calls in one process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from figures import Figure, in_fresh_process, parser, publish

IMPORT_SECONDS, WARM_SECONDS, COLD_SECONDS, CALL_MICROSECONDS = 0.7, 2.0, 25.0, 200.0
ASKED_SCALE = 14
SEARCH = "import shoal; graph = shoal.generate.rmat({}, seed=1); shoal.bfs(graph, int(graph.degree.argmax()))"


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=ASKED_SCALE)
    options.add_argument("--repetitions", type=int, default=5, help="processes of each kind (5); of the cold one 1")
    options.add_argument("--calls", type=int, default=3000, help="calls of each algorithm (3000)")
    given = options.parse_args()
    figures = measure_processes(given.scale, given.repetitions) + measure_calls(given.calls)
    setting = f"R-MAT graph of scale {given.scale}, and a grid of 10 vertices"
    publish("startup", setting, figures, given.json)


def measure_processes(scale: int, repetitions: int) -> list[Figure]:
    """Time whole processes."""
    search = SEARCH.format(scale)
    with tempfile.TemporaryDirectory() as folder:
        cold = seconds_of(search, SHOAL_CACHE_DIR=folder)
        # The second process with that folder is the first that finds everything there.
        warm = [seconds_of(search, SHOAL_CACHE_DIR=folder) for _ in range(repetitions)]
    imports = [seconds_of("import shoal") for _ in range(repetitions)]
    search = f"import, graph of scale {scale}, BFS"
    warm_bound, cold_bound = (WARM_SECONDS, COLD_SECONDS) if scale == ASKED_SCALE else (None, None)
    return [
        Figure("process: import", statistics.median(imports), "s", IMPORT_SECONDS, repetitions),
        Figure(f"process: {search}, warm cache", statistics.median(warm), "s", warm_bound, repetitions),
        Figure(f"process: {search}, empty cache", cold, "s", cold_bound),
    ]


def seconds_of(code: str, **environment: str) -> float:
    """Return the time of a whole process."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=os.environ | environment, check=True)
    return time.perf_counter() - started


def measure_calls(num_calls: int) -> list[Figure]:
    """Time calls on a graph of ten vertices."""
    medians = in_fresh_process(microseconds_of_calls, num_calls)
    return [Figure(f"call: {name}, 10 vertices", medians[name], "us", CALL_MICROSECONDS, num_calls) for name in medians]


def microseconds_of_calls(num_calls: int) -> dict[str, float]:
    """Return the median time of a call of each algorithm."""
    import shoal

    graph = shoal.generate.grid(2, 5, weights=(1, 9))
    calls: dict[str, Callable[[], Any]] = {
        "bfs": lambda: shoal.bfs(graph, 0),
        "sssp": lambda: shoal.sssp(graph, 0),
        "connected_components": lambda: shoal.connected_components(graph),
        "pagerank": lambda: shoal.pagerank(graph),
        "betweenness_centrality": lambda: shoal.betweenness_centrality(graph),
    }
    return {name: median_microseconds(call, num_calls) for name, call in calls.items()}


def median_microseconds(call: Callable[[], Any], num_calls: int) -> float:
    """Return the median time of a call, after one that compiles or loads."""
    call()
    samples = []
    for _ in range(num_calls):
        started = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - started)
    return statistics.median(samples) / 1e3


if __name__ == "__main__":
    main()
