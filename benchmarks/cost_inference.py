# SPDX-License-Identifier: Apache-2.0
"""What it takes to tell the cost of an edge: from features, and the features of a frontier from its degrees.

python benchmarks/cost_inference.py --json inference.json
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import shoal
from figures import Figure, describe, parser, publish
from shoal.model import find_cost, frontier_features

ASKED_MICROSECONDS = 50.0
NUM_DEVICES = 8


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=18)
    options.add_argument("--repetitions", type=int, default=1000, help="samples of each (1000)")
    given = options.parse_args()
    graph = shoal.generate.rmat(given.scale)
    queue = np.arange(graph.num_vertices)
    model, repetitions = find_cost("cpu"), given.repetitions
    one = frontier_features(graph.indptr, queue)
    rows = np.tile(one, (NUM_DEVICES, 1))
    few = queue[:100]
    figures = [
        Figure("cost of an edge, features given", microseconds(lambda: model.seconds_per_edge(one), repetitions), "us",
               ASKED_MICROSECONDS, repetitions),
        Figure(f"the same for {NUM_DEVICES} frontiers at once",
               microseconds(lambda: model.seconds_per_edge(rows), repetitions), "us", ASKED_MICROSECONDS, repetitions),
        Figure("features of 100 vertices", microseconds(lambda: frontier_features(graph.indptr, few), repetitions),
               "us", None, repetitions),
        Figure(f"features of {len(queue):,} vertices", microseconds(
            lambda: frontier_features(graph.indptr, queue), repetitions // 50), "us", None, repetitions // 50),
    ]  # fmt: skip
    publish("cost_inference", describe(graph, given.scale), figures, given.json)


def microseconds(call: Callable[[], Any], repetitions: int) -> float:
    """Return the median time of a call, after one that loads."""
    call()
    samples = []
    for _ in range(repetitions):
        began = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - began)
    return statistics.median(samples) / 1e3


if __name__ == "__main__":
    main()
