# SPDX-License-Identifier: Apache-2.0
"""Ranks of an MPI job run on shards: each maps its own part, and nobody ever has the graph."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphs
import shoal
from processes import SOURCES
from ranks import TESTS, run_job
from shoal.commands.launching import find_launcher

pytestmark = pytest.mark.host_only("about CPU devices of several processes")
NUM_RANKS = 2
LARGE_VERTICES, LARGE_EDGES = 2_000, 5_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shards for two devices of small graphs, and of a large one that is mostly edges."""
    folder = tmp_path_factory.mktemp("ranks")
    for name, is_directed in (("tiny", False), ("directed", True)):
        graph = graphs.random_graph(60, 300, seed=4, directed=is_directed, weights="int32")
        shoal.write(graph, folder / f"{name}.parquet")
        shoal.partition_files(folder / f"{name}.parquet", folder / f"{name}.shards", NUM_RANKS, in_edges=True)
    ends = np.random.default_rng(1).integers(0, LARGE_VERTICES, (2, LARGE_EDGES), np.int32)
    pq.write_table(pa.table({"src": ends[0], "dst": ends[1]}), folder / "large.parquet")
    shoal.partition_files(folder / "large.parquet", folder / "large.shards", NUM_RANKS, num_vertices=LARGE_VERTICES)
    shutil.copytree(folder / "tiny.shards", folder / "broken.shards")
    with open(folder / "broken.shards" / "device-1.shard", "r+b") as file:
        file.truncate(100)
    return folder


def test_ranks_find_what_one_device_does_in_the_memory_of_their_part(folder):
    status, output, errors = run_job(NUM_RANKS, TESTS / "shards_program.py", folder)
    assert status == 0, output[-2000:] + errors[-4000:]
    taken = {int(rank): int(size) for rank, size in re.findall(r"rank (\d) took (-?\d+) bytes", output)}
    assert sorted(taken) == list(range(NUM_RANKS))
    edge_bytes = 2 * LARGE_EDGES * 4
    assert max(taken.values()) < edge_bytes / 4  # nor half of it, which the part is: that stays on disk


def run_command(num_ranks, folder, *arguments):
    """Run the command line on ranks; return its status and what it wrote, but for what launchers add."""
    variables = os.environ | {"PYTHONPATH": str(SOURCES)}
    command = [find_launcher(), "-n", str(num_ranks), sys.executable, "-m", "shoal.cli", *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line.startswith("shoal")]


def test_one_rank_prints_and_all_write(folder):
    status, output, errors = run_command(
        NUM_RANKS, folder, "bfs", "tiny.shards", "--source", "3", "--output", "hops.parquet"
    )
    assert (status, errors) == (0, [])
    assert output.count("bfs on tiny.shards") == 1
    assert sorted(os.listdir(folder / "hops.parquet")) == ["part-00000.parquet", "part-00001.parquet"]
    table = pq.read_table(folder / "hops.parquet").sort_by("vertex").to_pydict()
    wanted = shoal.bfs(shoal.read(folder / "tiny.parquet"), 3)
    assert table["vertex"] == list(range(60))
    assert table["distance"] == wanted.distance.tolist()


@pytest.mark.parametrize(
    ("num_ranks", "arguments", "words"),
    [
        (3, ["tiny.shards", "--source", "3"], "devices='mpi' are 3 tiny.shards parts 2"),
        (2, ["tiny.shards", "--source", "99"], "source 99 0 to 59"),
        (2, ["broken.shards", "--source", "3"], "broken.shards/device-1.shard truncated"),
        (2, ["tiny.shards", "--source", "3", "--validate"], "bfs needs whole graph tiny.shards"),
        (2, ["tiny.shards", "--source", "3", "--directed"], "directed=True folder of shards"),
    ],
    ids=["count", "source", "broken", "whole", "reading"],
)
def test_of_an_error_there_is_one_line(folder, num_ranks, arguments, words):
    status, output, errors = run_command(num_ranks, folder, "bfs", *arguments)
    assert status == 2
    assert output == ""
    assert len(errors) == 1, errors
    assert errors[0].startswith("shoal: error: ")
    for word in words.split():
        assert word in errors[0]
