# SPDX-License-Identifier: Apache-2.0
"""Partition a graph of 200 million edges in 2 GiB, and rank its vertices with the edges on disk.  Linux only.

    python benchmarks/partitioning.py --json benchmarks/results/partitioning.json

The edges, an R-MAT graph's, are drawn into a Parquet file first, which is not counted.  Each figure is taken in a
process of its own.  Memory is what a process has to itself (RssAnon, looked at fifty times a second) and, of the
partition, its peak with the pages of files (ru_maxrss).  The bound on seconds is that of 3 million edges a second; on
two cores, a time far above half of the processor's is that of other processes.
"""

from __future__ import annotations

import os
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from figures import Figure, in_fresh_process, parser, publish
from shoal.backends.cpu.kernels.generate import draw_rmat
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.generate import _quadrant_thresholds
from shoal.machine import anonymous_memory_bytes

SCALE, EDGE_FACTOR, NUM_DEVICES = 23, 24, 4
MEMORY = "2GiB"
EDGES_PER_SECOND = 3e6
PARTITION_MEGABYTES, RANK_MEGABYTES = 2048, 1024
ITERATIONS = 5
_MEBI = 2**20


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=SCALE)
    options.add_argument("--folder", help="where the files lie while it runs (a new one)")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        edges = str(Path(folder, "edges.parquet"))
        draw(edges, given.scale)
        figures = figures_of_partition(folder, edges, NUM_DEVICES)
        ranking = in_fresh_process(rank, folder, edges)
        figures += figures_of_ranking(ranking)
        count = EDGE_FACTOR << given.scale
        setting = f"R-MAT graph of scale {given.scale}, {count:,} edges drawn, undirected, {ranking['edges']:,} stored"
    publish("partitioning", setting, figures, given.json)


def draw(path: str, scale: int) -> None:
    """Write the edges, a row group for each million."""
    metadata = {b"shoal.directed": b"0", b"shoal.num_vertices": str(1 << scale).encode()}
    schema = pa.schema([("src", pa.int32()), ("dst", pa.int32())], metadata=metadata)
    thresholds = _quadrant_thresholds(0.57, 0.19, 0.19)
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, EDGE_FACTOR << scale, _MEBI):
            src, dst = np.empty((2, min(_MEBI, (EDGE_FACTOR << scale) - begin)), np.int32)
            arguments = (np.uint64(1), src, dst, scale, thresholds, True, begin)
            run_threads(draw_rmat, len(available_cores()), *arguments)
            writer.write_batch(pa.record_batch([src, dst], schema=schema))


def figures_of_partition(folder: str, edges: str, num_devices: int) -> list[Figure]:
    """Return what a partition takes."""
    found = in_fresh_process(partition, edges, os.path.join(folder, "graph.shards"), num_devices)
    what = f"partition for {num_devices} devices, memory={MEMORY}"
    bound = found["edges"] / EDGES_PER_SECOND
    return [
        Figure(f"{what}: time", found["seconds"], "s", bound),
        Figure(f"{what}: processor time", found["processor_seconds"], "s"),
        Figure(f"{what}: million edges a second", found["edges"] / found["seconds"] / 1e6, ""),
        Figure(f"{what}: anonymous memory", found["anonymous"], "MiB", PARTITION_MEGABYTES),
        Figure(f"{what}: memory with pages of files", found["resident"], "MiB", PARTITION_MEGABYTES),
    ]


def partition(edges: str, output: str, num_devices: int) -> dict[str, float]:
    """Partition a file of edges and return what it took."""
    memory = Sampler()
    began, processor = time.perf_counter(), time.process_time()
    found = shoal.partition_files(edges, output, num_devices, memory=MEMORY)
    return {
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - processor,
        "edges": found["edges_read"],
        "anonymous": memory.stop(),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def figures_of_ranking(found: dict[str, Any]) -> list[Figure]:
    """Return what ranking takes with the edges on disk."""
    what = f"PageRank on one device, edges mapped, {ITERATIONS} iterations"
    return [
        Figure(f"{what}: time", found["seconds"], "s"),
        Figure(f"{what}: anonymous memory", found["anonymous"], "MiB", RANK_MEGABYTES),
        Figure(f"{what}: edges on disk", found["edge_bytes"] / _MEBI, "MiB"),
    ]


def rank(folder: str, edges: str) -> dict[str, float]:
    """Rank the vertices of a graph that stays on disk."""
    shards = os.path.join(folder, "whole.shards")
    shoal.partition_files(edges, shards, 1, memory=MEMORY)
    memory = Sampler()
    placed = shoal.open_shards(shards)
    result = shoal.pagerank(placed, iterations=ITERATIONS)
    assert abs(result.rank.sum() - 1) < 1e-9
    return {
        "seconds": result.stats.seconds,
        "anonymous": memory.stop(),
        "edges": placed.graph.num_edges,
        "edge_bytes": placed.graph.nbytes,
    }


class Sampler:
    """Looks again and again how much memory the process has to itself."""

    def __init__(self) -> None:
        self.most, self.is_over = 0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while not self.is_over.wait(0.02):
            self.most = max(self.most, anonymous_memory_bytes())

    def stop(self) -> float:
        """Return the most there was, in MiB."""
        self.is_over.set()
        self.thread.join()
        return max(self.most, anonymous_memory_bytes()) / _MEBI


if __name__ == "__main__":
    main()
