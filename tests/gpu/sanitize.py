# SPDX-License-Identifier: Apache-2.0
"""Run every algorithm on tiny graphs under compute-sanitizer; exit with 1 if it finds anything.

    python tests/gpu/sanitize.py --tools memcheck,racecheck --runs bfs,sssp --jobs 12

memcheck finds accesses outside of arrays, racecheck threads of a block that meet in shared memory unordered.  Every
array is an allocation of its own, so that one that is left is noticed; few blocks run, since a tool makes each slow.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30 asks for it
    np.row_stack = np.vstack

import shoal
from shoal.config import AXES

SANITIZER = "compute-sanitizer"
#: What a tool's last line says if there is nothing to say.
CLEAN = {
    "memcheck": r"ERROR SUMMARY: 0 errors",
    "racecheck": r"RACECHECK SUMMARY: 0 hazards displayed \(0 errors, 0 warnings\)",
}
#: Calls that fail are raised by CuPy, which also asks what may be answered with an error: no need to report them.
#: CuPy's own kernels are its own affair.
OPTIONS = {
    "memcheck": ["--report-api-errors", "no"],
    "racecheck": ["--kernel-name-exclude", "kernel_substring=cupy_"],
}
FOUND = 99  # the status of a run in which a tool found something: none of Python's
NUM_PROCESSORS = 4
RUNS_TOGETHER = 6  # of a process, where several run beside one another; each loads CUDA anew, for some seconds
NUM_LEAVES = 5000  # of a hub: more edges than a piece of a gather, and than one of a push
HOW = {"devices": "cuda"}
RUNS = {
    "bfs": lambda graph: shoal.bfs(graph, 0, **HOW),
    "bfs_push": lambda graph: shoal.bfs(graph, 0, direction="push", **HOW),
    "bfs_pull": lambda graph: shoal.bfs(graph, 0, direction="pull", **HOW),
    "bfs_batch": lambda graph: shoal.bfs(graph, [0, 1, 2], **HOW),
    "bfs_targets": lambda graph: shoal.bfs(graph, 0, targets=[graph.num_vertices - 1], **HOW),
    "bfs_parents": lambda graph: shoal.bfs(graph, 0, deterministic=True, **HOW),
    "bfs_grows": lambda graph: shoal.bfs(graph, 0, direction="push", memory="fixed", **HOW),
    "sssp": lambda graph: shoal.sssp(graph, 0, **HOW),
    "sssp_parents": lambda graph: shoal.sssp(graph, 0, deterministic=True, **HOW),
    "sssp_targets": lambda graph: shoal.sssp(graph, 0, targets=[graph.num_vertices - 1], **HOW),
    "cc": lambda graph: shoal.connected_components(graph, **HOW),
    "cc_async": lambda graph: shoal.connected_components(graph, execution="async", devices="cuda:0*2"),
    "bc": lambda graph: shoal.betweenness_centrality(graph, [0], **HOW),
    "bc_batch": lambda graph: shoal.betweenness_centrality(graph, [0, 1, 2], **HOW),
    "bc_grows": lambda graph: shoal.betweenness_centrality(graph, [0], memory="fixed", **HOW),
    "bfs_async": lambda graph: shoal.bfs(graph, 0, execution="async", **HOW),
    "sssp_async": lambda graph: shoal.sssp(graph, 0, execution="async", **HOW),
    "sssp_async_2": lambda graph: shoal.sssp(graph, 0, execution="async", devices="cuda:0*2"),
    "pagerank_async_2": lambda graph: shoal.pagerank(graph, execution="async", devices="cuda:0*2"),
    "bfs_stealing": lambda graph: shoal.bfs(graph, 0, direction="push", devices="cuda:0*2", stealing="frontier"),
    "sssp_stealing": lambda graph: shoal.sssp(graph, 0, devices="cuda:0*2", stealing="frontier"),
    "pagerank": lambda graph: shoal.pagerank(graph, iterations=3, **HOW),
    "pagerank_weighted": lambda graph: shoal.pagerank(graph, iterations=3, weighted=True, dtype="float32", **HOW),
    **{
        f"{run}_{name}": lambda graph, search=search, how={"load_balance": name}: search(graph, 0, **how, **HOW)
        for name in AXES["load_balance"][1:]
        for run, search in (("bfs", shoal.bfs), ("sssp", shoal.sssp))
    },
    "drawing": lambda graph: shoal.generate.rmat(6, 4, weights=(1, 9), device="cuda"),
}


def random_graph(seed: int, weights: str, **options: Any) -> shoal.Graph:
    """Return a small graph with loops and parallel edges."""
    generator = np.random.default_rng(seed)
    src, dst = generator.integers(0, 70, (2, 300))
    return shoal.Graph.from_edges(src, dst, generator.integers(1, 9, 300).astype(weights), num_vertices=70, **options)


def star_graph() -> shoal.Graph:
    """Return a hub with its leaves."""
    leaves = np.arange(1, NUM_LEAVES + 1)
    return shoal.Graph.from_edges(np.zeros_like(leaves), leaves, np.ones(NUM_LEAVES, np.int32))


GRAPHS = {
    "undirected": lambda: random_graph(1, "int32"),
    "directed": lambda: random_graph(2, "float32", directed=True),
    "hub": star_graph,
    "few edges": lambda: shoal.generate.grid(8, 9, drop=0.1, seed=1, weights=(1, 9)),
    "64-bit ids": lambda: random_graph(3, "float64", directed=True, vertex_dtype="int64", edge_dtype="int64"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the tools, or with ``--inside`` what they watch; return the status to exit with."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tools", default=",".join(CLEAN), help=f"some of {','.join(CLEAN)}")
    options.add_argument("--runs", default=",".join(RUNS), help=f"some of {','.join(RUNS)}")
    options.add_argument("--graphs", default=",".join(GRAPHS), help=f"some of {','.join(GRAPHS)}")
    options.add_argument("--jobs", type=int, default=1, help="processes beside one another (1)")
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    for name, allowed in (("tools", CLEAN), ("runs", RUNS), ("graphs", GRAPHS)):
        for value in getattr(given, name).split(","):
            if value not in allowed:
                return refuse(f"{name}={value!r} is not known; allowed: {', '.join(allowed)}")
    if given.inside:
        return run_all(given.runs.split(","), given.graphs.split(","))
    sanitizer = find_sanitizer()
    if sanitizer is None:
        return refuse(f"{SANITIZER} is not found; set CUDA_HOME to a CUDA toolkit or put it on PATH")
    with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
        found = pool.map(lambda job: (job[0], is_clean(sanitizer, *job)), jobs_of(given))
        unclean = sorted({tool for tool, clean in found if not clean})
    print(f"sanitize: {', '.join(unclean)} found something" if unclean else "sanitize: nothing was found")
    return 1 if unclean else 0


def jobs_of(given: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Yield tools with the commands that they watch: one each, or many small ones where there is room beside it."""
    runs, graphs = given.runs.split(","), given.graphs.split(",")
    parts = [(runs, graphs)]
    if given.jobs > 1:
        begins = range(0, len(runs), RUNS_TOGETHER)
        parts = [(runs[begin : begin + RUNS_TOGETHER], [graph]) for graph in graphs for begin in begins]
    # What is slowest first: racecheck takes ten times as long.
    for tool in sorted(given.tools.split(","), reverse=given.jobs > 1):
        for some_runs, some_graphs in parts:
            yield tool, [sys.executable, __file__, "--inside", "--runs", ",".join(some_runs), "--graphs",
                         ",".join(some_graphs)]  # fmt: skip


def refuse(reason: str) -> int:
    """Say in one line why nothing is run; return the status to exit with."""
    print(f"sanitize: error: {reason}", file=sys.stderr)
    return 2


def find_sanitizer() -> str | None:
    """Return the path of compute-sanitizer: that of CUDA_HOME, or that on PATH."""
    home = os.environ.get("CUDA_HOME")
    if home:
        for folder in ("bin", SANITIZER, f"extras/{SANITIZER}"):
            found = shutil.which(SANITIZER, path=str(Path(home) / folder))
            if found is not None:
                return found
    return shutil.which(SANITIZER)


def is_clean(sanitizer: str, tool: str, command: list[str]) -> bool:
    """Run a command under a tool and return whether it ended well and the tool said that it found nothing."""
    watched = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), *OPTIONS[tool], *command]
    ended = subprocess.run(watched, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"sanitize: {tool}\n{ended.stdout}", end="", flush=True)
    return ended.returncode == 0 and re.search(CLEAN[tool], ended.stdout) is not None


def run_all(runs: list[str], graphs: list[str]) -> int:
    """Run algorithms on graphs, each name printed before, so that it stands over what a tool finds."""
    import cupy

    from shoal.backends.cuda.device import find_device
    from shoal.backends.cuda.phase_run import PhaseRun

    PhaseRun.least_dealt = 1  # of graphs that are small
    cupy.cuda.set_allocator(None)  # no pool: what lies outside of an array lies outside of every allocation
    find_device(0).properties["multiProcessorCount"] = NUM_PROCESSORS
    for name in graphs:
        graph = GRAPHS[name]()
        for run in runs:
            print(f"sanitize: {run} on {name}", flush=True)
            RUNS[run](graph)
    return 0


if __name__ == "__main__":
    sys.exit(main())
