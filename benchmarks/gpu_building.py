# SPDX-License-Identifier: Apache-2.0
"""How long a GPU takes to draw graphs and build their CSR, and how much memory at its peak.

    python benchmarks/gpu_building.py --json building.json
    python benchmarks/gpu_building.py --graphs kron22,grid4k --verify

Kernels are compiled and loaded before the clock starts.  Every run begins with no memory of the GPU taken, so its time
has all allocations in it, and the peak is all that it asked the GPU for.  With --verify, an undirected CSR must be its
own reverse, bit for bit, and graphs that the CPU draws in seconds must be the CPU's.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shoal import generate
from shoal.backends.cuda import building, drawing
from shoal.backends.cuda.building import CSR

QUADRANTS = (0.57, 0.19, 0.19)
DROP = 0.1
WEIGHTS = {"dtype": "int32", "low": 1.0, "num_values": 64, "unit": 1.0}
SEED = 1
INT32 = np.dtype(np.int32)
#: The CPU draws so many edges in some seconds.
MAX_EDGES_FOR_CPU = 2**28
COLUMNS = ("graph", "vertices", "edges", "seconds", "weighing, seconds", "CSR, GB", "peak, GB", "peak by CSR")


def draw_rmat(scale: int, edge_factor: int, edge_dtype: Any = None) -> CSR:
    """Return an undirected R-MAT graph with shuffled ids, without copies and self-loops."""
    thresholds = [round(total * 2**32) for total in itertools.accumulate(QUADRANTS)]
    options = {"seed": SEED, "shuffle": True, "vertex_dtype": INT32}
    edges = drawing.rmat_edges(scale, edge_factor << scale, thresholds, **options)
    options = {"is_mirrored": True, "deduplicate": True, "keeps_loops": False}
    return building.build(edges, 1 << scale, INT32, edge_dtype, **options)


def draw_grid(side: int, edge_dtype: Any = None) -> CSR:
    """Return a square grid that lacks some edges."""
    threshold = int(DROP * 2**32)
    return drawing.fill_grid(side, side, threshold, seed=SEED, vertex_dtype=INT32, edge_dtype=edge_dtype)


#: Each with the same graph drawn by the CPU.
GRAPHS: dict[str, tuple[Callable[[], CSR], Callable[[], Any]]] = {
    "kron22": (lambda: draw_rmat(22, 16), lambda: generate.rmat(22, 16, seed=SEED)),
    "kron24x32": (lambda: draw_rmat(24, 32), lambda: generate.rmat(24, 32, seed=SEED)),
    "rmat20x512": (lambda: draw_rmat(20, 512), lambda: generate.rmat(20, 512, seed=SEED)),
    "kron27": (lambda: draw_rmat(27, 16), lambda: generate.rmat(27, 16, seed=SEED)),
    "grid4k": (lambda: draw_grid(4096), lambda: generate.grid(4096, 4096, drop=DROP, seed=SEED)),
}


def main() -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--graphs", default=",".join(GRAPHS), help=f"of {', '.join(GRAPHS)} (all)")
    options.add_argument("--repetitions", type=int, default=3, help="runs of each (3)")
    options.add_argument("--verify", action="store_true", help="check the graphs")
    options.add_argument("--json", metavar="PATH", type=Path, help="write the table to this file")
    given = options.parse_args()
    names = given.graphs.split(",")
    unknown = [name for name in names if name not in GRAPHS]
    if unknown:
        options.error(f"--graphs {','.join(unknown)} is not allowed; allowed: {', '.join(GRAPHS)}")
    warm_up()
    print_row(COLUMNS)
    rows = []
    for name in names:
        rows.append(measure(name, given.repetitions))
        print_row(cells_of(rows[-1]))
        if given.verify:
            verify(name)
    if given.json is not None:
        given.json.write_text(json.dumps({"gpu": gpu_name(), "graphs": rows}, indent=1) + "\n", encoding="utf-8")


def warm_up() -> None:
    """Compile and load all kernels, for both widths of offsets, with a graph of several ranges of rows."""
    for edge_dtype in ("int32", "int64"):
        for csr in (draw_rmat(13, 16, edge_dtype), draw_grid(64, edge_dtype)):
            drawing.weigh(csr, seed=SEED, **WEIGHTS)
            building.reverse_csr(*csr, csr.indptr.size - 1)


def measure(name: str, repetitions: int) -> dict[str, Any]:
    """Return the row of a graph: the median of the seconds, and the highest peak."""
    runs = [run(GRAPHS[name][0]) for _ in range(repetitions)]
    result = runs[-1] | {"graph": name, "peak_bytes": max(one["peak_bytes"] for one in runs)}
    for key in ("seconds", "weighing_seconds"):
        result[f"all_{key}"] = [one[key] for one in runs]
        result[key] = statistics.median(result[f"all_{key}"])
    return result


def run(build: Callable[[], CSR]) -> dict[str, Any]:
    """Build once, with a memory pool of its own."""
    import cupy

    release_memory()
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        csr, seconds = timed(build)
        peak_bytes = pool.total_bytes()
        weighed, weighing_seconds = timed(drawing.weigh, csr, seed=SEED, **WEIGHTS)
        result = {
            "vertices": csr.indptr.size - 1,
            "edges": csr.indices.size,
            "seconds": seconds,
            "weighing_seconds": weighing_seconds,
            "csr_bytes": csr.indptr.nbytes + csr.indices.nbytes,
            "peak_bytes": peak_bytes,
        }
        del csr, weighed
    pool.free_all_blocks()
    return result


def timed(function: Callable[..., CSR], *args: Any, **options: Any) -> tuple[CSR, float]:
    """Return what a function returns, and the seconds until the GPU has done it."""
    import cupy

    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    result = function(*args, **options)
    cupy.cuda.Device().synchronize()
    return result, time.perf_counter() - begin


def verify(name: str) -> None:
    """Compare a graph with its reverse and, unless it is too large, with the CPU's."""
    import cupy

    release_memory()
    build, build_on_cpu = GRAPHS[name]
    csr = build()
    backward = building.reverse_csr(*csr, csr.indptr.size - 1)
    assert all(bool(cupy.array_equal(*pair)) for pair in zip(csr[:2], backward[:2], strict=True)), f"{name}: asymmetric"
    del backward
    if csr.indices.size <= MAX_EDGES_FOR_CPU:
        graph = build_on_cpu()
        for array, expected in ((csr.indptr, graph.indptr), (csr.indices, graph.indices)):
            assert array.dtype == expected.dtype, f"{name}: {array.dtype} instead of {expected.dtype}"
            assert np.array_equal(array.get(), expected), f"{name}: not the graph of the CPU"


def release_memory() -> None:
    """Give all memory that nothing uses back to the GPU."""
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()


def cells_of(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row as text."""
    return (
        row["graph"],
        f"{row['vertices']:,}",
        f"{row['edges']:,}",
        f"{row['seconds']:.3f}",
        f"{row['weighing_seconds']:.3f}",
        f"{row['csr_bytes'] / 1e9:.2f}",
        f"{row['peak_bytes'] / 1e9:.2f}",
        f"{row['peak_bytes'] / row['csr_bytes']:.2f}",
    )


def print_row(cells: tuple[str, ...]) -> None:
    """Print a line of the table, as soon as it is known."""
    widths = (10, 13, 15, 9, 18, 9, 9, 12)
    print(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)), flush=True)


def gpu_name() -> str:
    """Return the name of the GPU in use."""
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()


if __name__ == "__main__":
    main()
