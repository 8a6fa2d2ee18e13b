# SPDX-License-Identifier: Apache-2.0
"""What every rank of an MPI job runs in tests/test_ranks.py: all algorithms under all exchanges, beside one device.

    mpiexec -n 4 python tests/rank_program.py mpi [EVERY]

With EVERY only each so-many-th case is run.  The first rank prints a line for each case that it has checked; whoever
finds a difference ends with an error.
"""

import itertools
import sys

import numpy as np

import shoal
from shoal.config import AXES, REFUSED
from test_every_config import ALGORITHMS, LOOKS_FAR, UNDIRECTED_ONLY, assert_same, random_graph

EXCHANGES = [
    (duplication, communication, fanout)
    for duplication, communication in itertools.product(AXES["duplication"][1:], AXES["communication"][1:])
    for fanout in ((1, 4) if communication == "butterfly" else (1,))
]
PARTITIONS = ("segment", "random")


def cases():
    """Every algorithm under every exchange that it can have; partitions and directedness take turns."""
    turns = itertools.count()
    for algorithm, (duplication, communication, fanout) in itertools.product(ALGORITHMS, EXCHANGES):
        is_refused = (("duplication", duplication), ("communication", communication)) in REFUSED
        is_near = duplication == "one-hop" or communication == "selective"
        if is_refused or (is_near and algorithm in LOOKS_FAR):
            continue
        turn = next(turns)
        how = {"duplication": duplication, "communication": communication, "partition": PARTITIONS[turn % 2]}
        yield algorithm, how, fanout, bool(turn // 2 % 2) and algorithm not in UNDIRECTED_ONLY


def check(devices, every):
    """Run the cases; every rank compares what it has got."""
    from mpi4py import MPI

    num_devices = shoal.config.parse_devices(devices).num_devices
    count = 0
    for algorithm, how, fanout, is_directed in itertools.islice(cases(), 0, None, every):
        graph = random_graph(50, 260, seed=3, directed=is_directed, weights="int32", skew=2.0)
        run = ALGORITHMS[algorithm]
        found = run(graph, devices=devices, fanout=min(fanout, num_devices), **how)
        assert_same(found, run(graph, devices="cpu"))
        count += 1
        if MPI.COMM_WORLD.rank == 0:
            print(algorithm, *how.values(), fanout, "directed" if is_directed else "undirected", flush=True)
    graph = random_graph(50, 260, seed=3, weights="int32", skew=2.0)
    for name in ("items_sent", "bytes_sent", "messages", "items_combined", "bytes_by_pair"):
        there, here = (shoal.bfs(graph, 0, devices=where, partition="random", direction="push").stats.to_dict()[name]
                       for where in (devices, f"cpu:{num_devices}"))  # fmt: skip
        assert np.array_equal(there, here), (name, there, here)
    if MPI.COMM_WORLD.rank == 0:
        print(count, "cases", flush=True)


if __name__ == "__main__":
    check(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
