# SPDX-License-Identifier: Apache-2.0
"""How much memory a search and a reader take at their peak, and how long files take to become graphs.  Linux only.

    python benchmarks/memory.py --json benchmarks/results/memory.json

Every figure is taken in a process of its own, after the same was done with a tiny graph, so that compiled code and
libraries are loaded.  The peak is the system's (VmHWM); what the process had just before is taken off where it says
"beside".  Files have just been written: they are read from the system's cache.
"""

from __future__ import annotations

import ctypes
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import shoal
from figures import Figure, describe, in_fresh_process, parser, publish

BFS_BYTES_PER_VERTEX = 24.0
READING_BY_CSR, READING_MEGABYTES = 4.0, 540.0
#: Megabytes and seconds are asked of this scale; of another nothing is asked.
ASKED_SCALE = 20
#: Suffix of each format's file: its name, and the seconds asked.
FORMATS = {
    ".el": ("edge list", 0.8),
    ".mtx": ("Matrix Market", 1.0),
    ".sg": ("GAP .sg", 0.08),
    ".shoal": (".shoal", 0.1),
}


def main() -> None:
    """Measure and publish."""
    options = parser(__doc__, scale=ASKED_SCALE)
    options.add_argument("--repetitions", type=int, default=5, help="processes for each time (5)")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graph = write_files(folder, given.scale)
        hub = int(graph.degree.argmax())
        setting = describe(graph, given.scale)
        del graph
        figures = figures_of_search(folder, hub) + figures_of_reading(folder)
        figures += [figure_of_seconds(folder, suffix, given.repetitions) for suffix in FORMATS]
        if given.scale != ASKED_SCALE:
            figures = [replace(f, bound=None) if f.unit in ("MB", "s") else f for f in figures]
    publish("memory", setting, figures, given.json)


def write_files(folder: str, scale: int) -> shoal.Graph:
    """Write the graph and a tiny one in every format."""
    graph = shoal.generate.rmat(scale, seed=1)
    for suffix in FORMATS:
        shoal.write(graph, Path(folder, f"graph{suffix}"))
        shoal.write(shoal.generate.rmat(6, seed=1), Path(folder, f"tiny{suffix}"))
    return graph


def figures_of_search(folder: str, source: int) -> list[Figure]:
    """Return what a search takes beside the graph: memory that was used, and what was asked for."""
    measured = in_fresh_process(peak_of_search, folder, source)
    return [
        Figure("BFS: peak beside the graph, per vertex", measured["used"], "bytes", BFS_BYTES_PER_VERTEX),
        Figure("BFS: allocated beside the graph, per vertex", measured["allocated"], "bytes", BFS_BYTES_PER_VERTEX),
    ]


def peak_of_search(folder: str, source: int) -> dict[str, float]:
    """Return the bytes per vertex that a search adds to the process, distances and parents included."""
    shoal.bfs(shoal.generate.rmat(13), 0)  # large enough for all threads
    graph = shoal.read(Path(folder, "graph.shoal"))
    assert graph.indptr.max() == graph.num_edges  # all pages of the mapped file are in memory from here on
    assert graph.indices.max() < graph.num_vertices
    before = memory_in_use()
    result = shoal.bfs(graph, source)
    used = memory_of_process("VmHWM") - before
    return {"used": used / graph.num_vertices, "allocated": result.stats.peak_memory_bytes / graph.num_vertices}


def figures_of_reading(folder: str) -> list[Figure]:
    """Return what reading the edge list takes."""
    measured = in_fresh_process(peak_of_reading, folder)
    by_csr = (measured["peak"] - measured["before"]) / measured["csr"]
    return [
        Figure("edge list: peak beside the process, by the size of the graph", by_csr, "x", READING_BY_CSR),
        Figure("edge list: peak of the whole process", measured["peak"] / 1e6, "MB", READING_MEGABYTES),
    ]


def peak_of_reading(folder: str) -> dict[str, int]:
    """Return bytes: the process before it reads the edge list, its peak, and the graph."""
    shoal.read(Path(folder, "tiny.el"))
    before = memory_in_use()
    graph = shoal.read(Path(folder, "graph.el"))
    return {"before": before, "peak": memory_of_process("VmHWM"), "csr": graph.nbytes}


def figure_of_seconds(folder: str, suffix: str, repetitions: int) -> Figure:
    """Return how long a file of one format takes."""
    name, bound = FORMATS[suffix]
    samples = [in_fresh_process(seconds_to_read, folder, suffix) for _ in range(repetitions)]
    return Figure(f"{name}: from file to graph", statistics.median(samples), "s", bound, repetitions)


def seconds_to_read(folder: str, suffix: str) -> float:
    """Return how long the graph takes to be read."""
    shoal.read(Path(folder, f"tiny{suffix}"))
    started = time.perf_counter()
    shoal.read(Path(folder, f"graph{suffix}"))
    return time.perf_counter() - started


def memory_in_use() -> int:
    """Return what the process has, less what was freed: that would be used again, and so not be counted."""
    ctypes.CDLL(None).malloc_trim(0)
    return memory_of_process("VmRSS")


def memory_of_process(name: str) -> int:
    """Return an entry of the process's status in bytes: VmRSS (now) or VmHWM (at its peak)."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
