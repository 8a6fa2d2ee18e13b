# SPDX-License-Identifier: Apache-2.0
"""What every rank runs in tests/test_shards_on_ranks.py: algorithms and a program on shards, and what that takes.

    mpiexec -n 2 python tests/shards_program.py FOLDER

FOLDER has tiny.shards, directed.shards and their graphs, and large.shards, of which no process has the whole.
"""

import os
import sys

import numpy as np
from mpi4py import MPI

import shoal
from shoal import atomic
from shoal.machine import anonymous_memory_bytes

RANK = MPI.COMM_WORLD.rank


class Hops(shoal.Program):
    """Hops from one vertex, by a rule of the test's own."""

    level = shoal.Vertex("int32", fill=2**31 - 1, combine=shoal.minimum)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @shoal.rule
    def discover(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    def step(self, frontier):
        return shoal.advance(frontier, self.discover)


def answers(graph, source):
    """What is compared, of a graph or of shards."""
    return {
        "bfs": shoal.bfs(graph, source).distance,
        "sssp": shoal.sssp(graph, source).distance,
        "components": shoal.connected_components(graph).label,
        "pagerank": shoal.pagerank(graph).rank,
        "hops": shoal.run(Hops(), graph, source=source).level,
    }


def check(folder, name):
    """Compare what ranks find with what one device does; this rank opens its own part only."""
    placed = shoal.open_shards(os.path.join(folder, f"{name}.shards"))
    assert placed.devices == "mpi"
    found = answers(placed, 3)
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[-1] for line in maps if f"{name}.shards/device" in line}
    assert {os.path.basename(path) for path in mapped} == {f"device-{RANK}.shard"}
    for key, wanted in answers(shoal.read(os.path.join(folder, f"{name}.parquet")), 3).items():
        np.testing.assert_allclose(found[key], wanted, rtol=1e-9, err_msg=f"{name} {key}")


def measure(folder):
    """Return the bytes that a rank takes of its own for a graph that is mostly edges."""
    before = anonymous_memory_bytes()
    placed = shoal.open_shards(os.path.join(folder, "large.shards"))
    ranks = shoal.pagerank(placed, iterations=3).rank
    assert abs(ranks.sum() - 1) < 1e-9
    assert shoal.bfs(placed, 0).distance.min() >= 0
    return anonymous_memory_bytes() - before


if __name__ == "__main__":
    for case in ("tiny", "directed"):
        check(sys.argv[1], case)
    print(f"rank {RANK} took {measure(sys.argv[1])} bytes", flush=True)
