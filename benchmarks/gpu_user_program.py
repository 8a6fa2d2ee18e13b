# SPDX-License-Identifier: Apache-2.0
"""Programs of one's own beside the built-in ones on a GPU: the time of the kernels, on the same graph.

    python benchmarks/gpu_user_program.py --json benchmarks/results/gpu_user_program.json

Where a program does the very work of a built-in one, what counts is milliseconds, and it is asked to have 90 % of the
built-in's speed; where it only goes through the edges in the same way, ns per edge looked at.  Runs are interleaved,
a source is searched from by both; figures are medians of the supersteps' time, by the GPU's own clock.
"""

from __future__ import annotations

import runpy
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from figures import Figure, describe, parser, publish
from gpu import choose_sources, gpu_name, kernel_seconds

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
#: The most that a program may take, by the time of the built-in one: 90 % of its speed.
ASKED_RATIO = 1 / 0.9
ITERATIONS = 20
CORE = 50
KNOWN_SHARE = 0.01


@dataclass(frozen=True)
class Pair:
    """A program and its yardstick, each run from a source; ``answer`` names what both must agree in, if they must."""

    own: str
    built_in: str
    run_own: Callable[[int], Any]
    run_built_in: Callable[[int], Any]
    answer: str | None = None


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=22)
    options.add_argument("--repetitions", type=int, default=16, help="runs of each program (16)")
    options.add_argument("--devices", default="cuda", help="where to run (cuda); on a CPU, to try the script")
    given = options.parse_args()
    is_on_gpu = given.devices.startswith("cuda")
    graph = shoal.generate.rmat(given.scale, seed=1, device="cuda" if is_on_gpu else "cpu")
    sources = choose_sources(graph, given.repetitions)
    figures = [figure for pair in pairs(shoal.place(graph, given.devices)) for figure in compare(pair, sources)]
    where = f"One {gpu_name()}" if is_on_gpu else given.devices
    publish("gpu_user_program", f"{where}; {describe(graph, given.scale)}; time of the supersteps", figures, given.json)


def pairs(placed: shoal.Placed) -> list[Pair]:
    """Return the examples' programs with the built-in ones that they are like."""
    degree = placed.graph.degree
    search, ranks, hops, core, labels = (
        example("search", "Search"), example("ranks", "Ranks", ITERATIONS), example("hops", "Hops"),
        example("k_core", "KCore"), example("label_propagation", "LabelPropagation"),
    )  # fmt: skip
    # Every hundredth vertex is known, on either side by turns.
    known = {vertex: float(turn % 2) for turn, vertex in enumerate(range(0, len(degree), round(1 / KNOWN_SHARE)))}
    spread = {"known": known, "degree": degree.astype(np.int64), "tolerance": 1e-5 * len(degree)}
    return [
        Pair("search.py", "BFS", lambda source: shoal.run(search, placed, source=source),
             lambda source: shoal.bfs(placed, source), "distance"),
        Pair(f"ranks.py, {ITERATIONS} iterations, float32", f"PageRank, {ITERATIONS} iterations, float32",
             lambda source: shoal.run(ranks, placed, degree=degree),
             lambda source: shoal.pagerank(placed, iterations=ITERATIONS, dtype="float32"), "rank"),
        Pair("hops.py", "BFS, push only", lambda source: shoal.run(hops, placed, source=source),
             lambda source: shoal.bfs(placed, source, direction="push")),
        Pair(f"k_core.py, k = {CORE}", "BFS, push only", lambda source: shoal.run(core, placed, k=CORE, degree=degree),
             lambda source: shoal.bfs(placed, source, direction="push")),
        Pair("label_propagation.py", "PageRank", lambda source: shoal.run(labels, placed, **spread),
             lambda source: shoal.pagerank(placed, iterations=ITERATIONS)),
    ]  # fmt: skip


def example(file: str, name: str, *arguments: Any) -> shoal.Program:
    """Return a program of the examples."""
    return runpy.run_path(str(EXAMPLES / f"{file}.py"))[name](*arguments)


def compare(pair: Pair, sources: list[int]) -> list[Figure]:
    """Return the figures of a program, of the built-in one, and their ratio."""
    check(pair, sources[0])  # compiles, and copies the graph
    unit, bound = ("ns per edge", None) if pair.answer is None else ("ms", ASKED_RATIO)
    samples: dict[str, list[float]] = {pair.own: [], pair.built_in: []}
    for source in sources:
        for name, run in ((pair.own, pair.run_own), (pair.built_in, pair.run_built_in)):
            samples[name].append(cost(run(source).stats, unit))
    medians = {name: statistics.median(values) for name, values in samples.items()}
    ratio = medians[pair.own] / medians[pair.built_in]
    figures = [Figure(name, value, unit, num_samples=len(sources)) for name, value in medians.items()]
    return [*figures, Figure(f"{pair.own}, by {pair.built_in}", ratio, "x", bound, len(sources))]


def cost(stats: Any, unit: str) -> float:
    """Return what a run took, in milliseconds or by the edges it looked at."""
    seconds = kernel_seconds(stats)
    return seconds * 1e3 if unit == "ms" else seconds * 1e9 / max(stats.edges_visited, 1)


def check(pair: Pair, source: int) -> None:
    """Run both once; where they do the same work, they must find the same."""
    own, built_in = pair.run_own(source), pair.run_built_in(source)
    if pair.answer is None:
        return
    found, expected = getattr(own, pair.answer), getattr(built_in, pair.answer)
    if not np.allclose(found, expected, rtol=1e-3, atol=1e-9):
        raise SystemExit(f"error: {pair.own} and {pair.built_in} differ in {pair.answer}: nothing is measured")


if __name__ == "__main__":
    main()
