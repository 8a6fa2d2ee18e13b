# SPDX-License-Identifier: Apache-2.0
"""A run without supersteps on the ranks of an MPI job that one of them ends in the middle.

mpiexec -n 2 python tests/rank_failures.py rule|interrupt|stop FOLDER

Each rank writes what it was told to a file there: a launcher may lose what is printed just before it ends a job.
"""

import os
import signal
import sys
from pathlib import Path

import shoal
from graphs import path_graph, random_graph
from shoal.backends.cpu.worklist_run import WorklistRun
from test_asynchronous import Endless, Failing

SIGNALS = {"interrupt": signal.SIGINT, "stop": signal.SIGSTOP}
FAILING_RANK = 1


def leave(what):
    """Let this rank go in the middle of a run."""
    begin = WorklistRun.begin

    def begin_and_set_the_alarm(run):
        begin(run)
        signal.setitimer(signal.ITIMER_REAL, 0.3)

    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), SIGNALS[what]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    WorklistRun.begin = begin_and_set_the_alarm


def fail(what, folder):
    """Begin a run that cannot end, or whose last vertices a rule does not like."""
    from mpi4py import MPI

    if what in SIGNALS and MPI.COMM_WORLD.rank == FAILING_RANK:
        leave(what)
    try:
        if what == "rule":
            shoal.run(Failing(), path_graph(1000), bad=900, execution="async", devices="mpi")
        else:
            shoal.run(Endless(), random_graph(50, 200, seed=1), execution="async", devices="mpi")
    except BaseException as error:
        Path(folder, f"rank-{MPI.COMM_WORLD.rank}").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    fail(*sys.argv[1:])
