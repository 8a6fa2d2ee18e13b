# SPDX-License-Identifier: Apache-2.0
"""A search that ranks of an MPI job make together, and that one of them may leave in the middle.

    mpiexec -n 4 python tests/rank_search.py FOLDER [--resume] [--leave RANK SNAPSHOTS HOW]

With --leave a rank kills itself (HOW is a signal's number) when that many snapshots were written: while the next one is
written, and others may be ahead of it or behind.  The first rank checks the result and prints it.
"""

import argparse
import os
import time

import numpy as np

import shoal
from shoal.checkpoint import folder as folder_module

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--resume", action="store_true")
parser.add_argument("--devices", default="mpi")
parser.add_argument("--slowly", action="store_true", help="sleep before each snapshot")
parser.add_argument("--leave", nargs=4, type=int, metavar=("RANK", "SNAPSHOTS", "PART", "HOW"))


def leave_at(rank, num_snapshots, part, how):
    """Let one rank go: before it writes its part of a snapshot, or behind it."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank != rank:
        return
    write, counts = folder_module.write_arrays, iter(range(10**9))

    def write_or_leave(*arguments):
        is_time = next(counts) == num_snapshots
        if is_time and part == 0:
            os.kill(os.getpid(), how)
        table = write(*arguments)
        if is_time:
            os.kill(os.getpid(), how)
        return table

    folder_module.write_arrays = write_or_leave


def search(given):
    """Search a grid whose supersteps are many, and compare with one device."""
    from mpi4py import MPI

    if given.leave is not None:
        leave_at(*given.leave)
    if given.slowly:
        write = folder_module.write_arrays
        folder_module.write_arrays = lambda *arguments: time.sleep(0.1) or write(*arguments)
    grid = shoal.generate.grid(40, 40, drop=0.1, seed=4, weights=(1, 9))
    keeping = {"checkpoint": given.folder, "checkpoint_every": 3, "resume": given.resume}
    found = shoal.sssp(grid, 0, delta=1, devices=given.devices, **keeping)
    alone = shoal.sssp(grid, 0, delta=1, devices="cpu")
    assert np.array_equal(found.distance, alone.distance)
    if MPI.COMM_WORLD.rank == 0:
        print("supersteps", found.stats.num_supersteps, "of", alone.stats.num_supersteps, flush=True)


if __name__ == "__main__":
    search(parser.parse_args())
