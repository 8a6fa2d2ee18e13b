# SPDX-License-Identifier: Apache-2.0
"""What every rank of an MPI job runs in tests/test_ranks.py: programs without supersteps, beside one device with them.

    mpiexec -n 4 python tests/rank_worklists.py mpi [EVERY]

Every two values of different options meet in a case; with EVERY only each so-many-th case is run.  In half of them the
devices dawdle now and then, so that some get ahead of others.
"""

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np

import callbacks
import shoal
from crashes import begin_and_crash
from pairwise import all_pairs
from shoal.backends.cpu import worklist_run
from shoal.backends.cpu.worklist_run import WorklistRun
from test_asynchronous import ALGORITHMS, OPTIONS, is_allowed, random_graph
from test_every_config import assert_same

NAMES = ("partition", "duplication", "communication", "priority")
CASES = {
    "algorithm": tuple(name for name in ALGORITHMS if name != "components"),
    **{name: OPTIONS[name] for name in NAMES},
    "graph": ("few hubs", "grid"),
    "room": (worklist_run.MAX_ROOM, 1),
    "jitter": (0, 1),
}
GRAPHS = {
    "few hubs": random_graph(60, 300, seed=3, weights="int32", skew=2.0),
    "grid": shoal.generate.grid(12, 12, seed=1, weights=(1, 9)),
}
WITH_CALLBACKS = [name for name in callbacks.CHECKS if name not in ("asked", "sums", "tallied")]


def check(devices, every):
    """Run the cases; every rank compares what it has got."""
    from mpi4py import MPI

    numbers = itertools.count(1)
    for case in itertools.islice(all_pairs(CASES, is_allowed), 0, None, every):
        WorklistRun.jitter = case["jitter"] * (2 * next(numbers) + MPI.COMM_WORLD.rank * 2**20 + 1)
        worklist_run.MAX_ROOM = case["room"]
        graph, run = GRAPHS[case["graph"]], ALGORITHMS[case["algorithm"]]
        found = run(graph, devices=devices, execution="async", **{name: case[name] for name in NAMES})
        assert_same(found, run(graph, devices="cpu"))
        if MPI.COMM_WORLD.rank == 0:
            print(*case.values(), flush=True)
    for name in WITH_CALLBACKS[::every]:
        callbacks.CHECKS[name](GRAPHS["grid"], devices=devices)
    WorklistRun.jitter = 0
    check_counts(devices, MPI.COMM_WORLD)
    check_pauses(devices, MPI.COMM_WORLD)


def check_counts(devices, ranks):
    """Compare what a run has counted with what must be so, and with what the other ranks say."""
    graph = GRAPHS["few hubs"]
    result = shoal.sssp(graph, 0, devices=devices, execution="async", partition="random", parents=False)
    counts = result.stats.to_dict()
    told = ("items_sent", "bytes_sent", "messages", "items_combined", "work_items", "edges_visited", "bytes_by_pair")
    assert len({repr([np.asarray(counts[name]).tolist() for name in told]) for counts in ranks.allgather(counts)}) == 1
    assert counts["items_sent"] == counts["items_combined"] > 0
    assert counts["bytes_sent"] == 8 * counts["items_sent"] == np.sum(counts["bytes_by_pair"])
    assert 0 < counts["messages"] <= counts["items_sent"]
    assert counts["work_items"] >= np.count_nonzero(np.isfinite(result.distance))
    assert counts["num_supersteps"] == 1


def drain(graph, **how):
    """Sums that are under way, which a pause must not lose."""
    return shoal.pagerank(graph, execution="async", tolerance=1e-10, **how).rank


def check_pauses(devices, ranks):
    """End a run at its first snapshot, as a crash would, and go on; the clock of one rank ends it for all."""
    grid = shoal.generate.grid(150, 150, drop=0.1, seed=2, weights=(1, 9))
    with tempfile.TemporaryDirectory() as own:
        folder = Path(ranks.bcast(own)) / "run"
        every = "0.01s" if ranks.rank == 0 else "1h"
        assert begin_and_crash(drain, 1, graph=grid, devices=devices, checkpoint=folder, checkpoint_every=every)
        found = drain(grid, devices=devices, checkpoint=folder, checkpoint_every="0.1s", resume=True)
        ranks.Barrier()
    np.testing.assert_allclose(found, drain(grid, devices="cpu:1x1"), rtol=1e-5)


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
