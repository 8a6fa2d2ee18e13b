# SPDX-License-Identifier: Apache-2.0
"""Programs of one's own beside the built-in ones: ns per edge looked at, on the same graph.

    python benchmarks/user_program.py --json benchmarks/results/user_program.json

The k-core of the examples pushes along edges as a breadth-first search does; label propagation gathers over them as
PageRank does.  Runs are interleaved; a figure is the median of a run's seconds by the edges it looked at.
"""

from __future__ import annotations

import math
import runpy
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from figures import Figure, describe, parser, publish

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
CORE = 50
KNOWN_SHARE = 0.01
Runs = dict[str, Callable[[], Any]]


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=20)
    options.add_argument("--repetitions", type=int, default=7, help="runs of each program (7)")
    given = options.parse_args()
    placed = shoal.place(shoal.generate.rmat(given.scale, seed=1))
    figures = compare(runs_of_push(placed), given.repetitions) + compare(runs_of_gather(placed), given.repetitions)
    publish("user_program", describe(placed.graph, given.scale), figures, given.json)


def compare(runs: Runs, repetitions: int) -> list[Figure]:
    """Return ns per edge of users' programs and, the last, of a built-in one, and their ratios to it."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()  # compiles or loads
    for _ in range(repetitions):
        for name, run in runs.items():
            stats = run().stats
            samples[name].append(stats.seconds * 1e9 / max(stats.edges_visited, 1))
    medians = {name: statistics.median(values) for name, values in samples.items()}
    figures = [Figure(name, value, "ns per edge", num_samples=repetitions) for name, value in medians.items()]
    *own, built_in = medians
    ratios = {name: medians[name] / medians[built_in] for name in own}
    return figures + [Figure(f"{name}, by {built_in}", ratio, "x", None, repetitions) for name, ratio in ratios.items()]


def runs_of_push(placed: shoal.Placed) -> Runs:
    """Return the programs that push along edges."""
    program = runpy.run_path(str(EXAMPLES / "k_core.py"))["KCore"]()
    degree = placed.graph.degree
    hub = int(degree.argmax())
    # A k-core has more than k vertices of k edges each, so for this k there is none, and every edge is looked at.
    beyond = math.isqrt(placed.graph.num_edges) + 1
    return {
        f"k-core, k = {CORE}": lambda: shoal.run(program, placed, k=CORE, degree=degree),
        f"k-core, k = {beyond} (every vertex goes)": lambda: shoal.run(program, placed, k=beyond, degree=degree),
        "BFS, push only": lambda: shoal.bfs(placed, hub, direction="push"),
    }


def runs_of_gather(placed: shoal.Placed) -> Runs:
    """Return the programs that gather over all edges again and again."""
    program = runpy.run_path(str(EXAMPLES / "label_propagation.py"))["LabelPropagation"]()
    degree = placed.graph.degree.astype(np.int64)
    # Every hundredth vertex is known, on either side by turns.
    known = {vertex: float(turn % 2) for turn, vertex in enumerate(range(0, len(degree), round(1 / KNOWN_SHARE)))}
    tolerance = 1e-5 * len(degree)
    return {
        "label propagation": lambda: shoal.run(program, placed, known=known, degree=degree, tolerance=tolerance),
        "PageRank": lambda: shoal.pagerank(placed, iterations=20),
    }


if __name__ == "__main__":
    main()
