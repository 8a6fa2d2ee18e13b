# SPDX-License-Identifier: Apache-2.0
"""Traces for tests of what is shown of a run: of real runs, and made up ones as long and as wide as need be."""

import functools

import numpy as np

import shoal
from graphs import random_graph
from shoal.backends.loops.control import NUM_TRACE_COLUMNS
from shoal.config import RunConfig
from shoal.report.trace import RunTrace, record_run, trace_from
from shoal.stats import PhaseSpan, Stats, Trace

GRAPH = random_graph(300, 2400, seed=5, skew=2.0)
#: With frontiers that are worth dealing, and their vertices with most edges on the first of eight devices.
SKEWED = shoal.generate.rmat(13, 16, seed=1)
HEAVY_FIRST = np.argsort(np.argsort(-SKEWED.degree)) * 8 // SKEWED.num_vertices
#: What the page is to show: a run on one device, on eight, without supersteps, and one of several phases.
RUNS = {
    "one device": lambda **how: shoal.bfs(GRAPH, 0, devices="cpu", **how),
    "eight devices": lambda **how: shoal.bfs(GRAPH, 0, devices="cpu:8x1", memory_limit="1MB", **how),
    "eight that steal": lambda **how: shoal.bfs(
        SKEWED,
        int(SKEWED.degree.argmax()),
        devices="cpu:8x1",
        partition=HEAVY_FIRST,
        direction="push",
        stealing="frontier",
        **how,
    ),
    "asynchronous": lambda **how: shoal.bfs(GRAPH, 0, devices="cpu:4x1", execution="async", **how),
    "two phases": lambda **how: shoal.betweenness_centrality(GRAPH, [0, 7, 9], devices="cpu:2x1", **how),
}


@functools.cache
def real_trace(name) -> RunTrace:
    """The trace of one of the runs."""
    return record_run(name, SKEWED if "steal" in name else GRAPH, RUNS[name]().stats)


@functools.cache
def made_up_trace(num_devices, num_supersteps, seed=1) -> RunTrace:
    """A trace in which every number is known: devices work for a random time, and then wait for the slowest."""
    random = np.random.default_rng(seed)
    work = random.integers(1_000, 100_000, (num_supersteps, num_devices))
    lengths = work.max(axis=1)
    ends = np.cumsum(lengths)
    traces = []
    for device in range(num_devices):
        rows = np.zeros((num_supersteps, NUM_TRACE_COLUMNS), np.int64)
        rows[:, 0], rows[:, 1] = ends - lengths, ends
        rows[:, 2] = random.integers(1, 10_000, num_supersteps)
        rows[:, 3] = 10 * rows[:, 2]
        rows[:, 4] = np.arange(num_supersteps) // 7 % 2
        rows[:, 8] = random.integers(0, 9_999, num_supersteps)
        rows[:, 10] = lengths - work[:, device]
        rows[:, 11], rows[:, 12] = work[:, device] // 10, work[:, device] // 5
        rows[:, 14] = work[:, device] // 7
        traces.append(Trace())
        traces[-1].add(rows)
    config = RunConfig(devices=f"cpu:{num_devices}").resolved()
    phases = [PhaseSpan("MadeUp", "step", num_supersteps)]
    stats = Stats(float(ends[-1]) / 1e9, 10**9, config, traces, "MadeUp", num_devices,
                  device_peaks=[10**7] * num_devices, phases=phases)  # fmt: skip
    return record_run("made_up", GRAPH, stats)


def with_stealing(trace):
    """The same trace, of a run in which every device but the first took edges over."""
    value = trace.to_dict()
    stolen = [0, *range(100, 100 * trace.num_devices, 100)]
    rows = [row | {"stolen_edges": stolen} for row in value["stats"]["supersteps"]]
    return trace_from(value | {"stats": value["stats"] | {"supersteps": rows}}, "a test")
