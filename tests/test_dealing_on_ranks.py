# SPDX-License-Identifier: Apache-2.0
"""Devices of MPI ranks deal vertices of their frontiers, and send the edges along where a rank has only its part."""

import re

import pytest

import shoal
from dealing_program import graph_for, partition
from ranks import TESTS, run_job

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
