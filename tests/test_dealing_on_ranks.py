# SPDX-License-Identifier: Apache-2.0
"""Devices of MPI ranks deal vertices of their frontiers, and send the edges along where a rank has only its part."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import shoal
from dealing_program import graph_for, partition
from ranks import TESTS, run_job
from shoal.backends.cpu.device import CPUDevice
from shoal.backends.loops import control as slot
from shoal.backends.mpi.pace import USUAL_SECONDS, Pace

pytestmark = pytest.mark.host_only("about CPU devices of several processes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph as a file, and the parts of so many devices, of which the first has nearly all."""
    folder = tmp_path_factory.mktemp("skewed")
    graph = graph_for(is_directed=False)
    shoal.write(graph, folder / "skewed.parquet")
    for count in (2, 4):
        shoal.partition_files(
            folder / "skewed.parquet", folder / f"skewed-{count}.shards", count, duplication="all",
            partition=partition(graph, count, "nearly all"),
        )  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("num_ranks", "devices", "every", "least"), [(2, "mpi", 1, 10), (4, "mpi", 5, 3), (2, "mpi:cpu:2", 5, 3)]
)
def test_what_one_process_deals_ranks_deal(folder, num_ranks, devices, every, least):
    status, output, errors = run_job(num_ranks, TESTS / "dealing_program.py", devices, folder, every)
    assert status == 0, output[-2000:] + errors[-4000:]
    assert int(re.search(r"^(\d+) cases stole$", output, re.MULTILINE)[1]) >= least
    assert "all checks" in output


@pytest.mark.parametrize("stealing", ["ownership", "both"])
def test_parts_are_not_handed_to_other_processes(stealing):
    with pytest.raises(shoal.ArgumentError, match=f"stealing='{stealing}' is not possible on mpi: .*none, frontier"):
        shoal.RunConfig(devices="mpi", stealing=stealing)


def test_how_dear_an_edge_is_to_bring_earlier_runs_have_shown():
    graph = graph_for(is_directed=False)
    device, pushed, pulled = CPUDevice(1), np.zeros((2, slot.NUM_TRACE_COLUMNS), np.int64), slot.PULL
    pushed[:, [slot.TRACE_BEGIN, slot.TRACE_END, slot.TRACE_EDGES, slot.TRACE_IDLE]] = 10**9, 9 * 10**9, 10**9, 10**9
    pushed[1, slot.TRACE_DIRECTION] = pulled
    run = SimpleNamespace(rows=[pushed], phase=SimpleNamespace(step=None))
    workspace = shoal.place(graph, "cpu").shards[0].acquire_workspace()
    session = SimpleNamespace(
        workspaces=[workspace], title="Search", shards=[SimpleNamespace(graph=graph)],
        everywhere=[SimpleNamespace(device=device)], fleet=SimpleNamespace(gather=lambda array: [array, array]),
    )  # fmt: skip
    pace = Pace(session, [run])
    assert pace.seconds_per_edge() == pytest.approx(USUAL_SECONDS)
    pace.learn()
    # 8 seconds, of which one was waiting, for 10^9 edges.
    assert Pace(session, [run]).seconds_per_edge() == pytest.approx(7e-9, rel=0.01)
