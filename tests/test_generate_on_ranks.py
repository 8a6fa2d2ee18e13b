# SPDX-License-Identifier: Apache-2.0
"""Random graphs drawn by the ranks of an MPI job: the folder that one process makes, or none."""

import json
import os

import numpy as np
import pytest

from ranks import TESTS, run_job
from shoal import generate
from shoal.io.shards import read_shards
from shoal.sharding.partition_files import partition_pieces
from test_io_shards import assert_same
from test_shards_on_ranks import run_command

pytestmark = pytest.mark.host_only("about CPU devices of several processes")
PROGRAM = TESTS / "drawing_program.py"


def manifest_of(folder):
    """What a manifest says, but for what is new in each folder: its id, and checksums of what begins with it."""
    with open(folder / "manifest.json") as file:
        content = json.load(file)
    for entry in [*content["files"], content["vertices"]]:
        del entry["crc32"]
    return {key: value for key, value in content.items() if key not in ("id", "checksum")}


def assert_same_folders(folder, other):
    """Two folders have the same manifests and arrays."""
    assert sorted(os.listdir(folder)) == sorted(os.listdir(other))
    assert manifest_of(folder) == manifest_of(other)
    for part, wanted in zip(read_shards(folder, mmap=False)[1], read_shards(other, mmap=False)[1], strict=True):
        assert_same(part, wanted)


@pytest.mark.parametrize(
    ("num_ranks", "drawing", "options"),
    [
        (2, {"scale": 12, "weights": "float32"}, {"devices": 2}),
        (4, {"scale": 11, "directed": True}, {"devices": 6, "in_edges": True, "duplication": "one-hop"}),
        (4, {"scale": 10, "weights": [1, 9]}, {"devices": 3, "partition": "random", "partition_seed": 5}),
    ],
    ids=["two", "four, directed", "more than devices"],
)
def test_ranks_make_the_folder_that_one_process_makes(tmp_path, num_ranks, drawing, options):
    status, output, errors = run_job(num_ranks, PROGRAM, tmp_path / "ranks", json.dumps([drawing, options]))
    assert status == 0, output[-2000:] + errors[-4000:]
    drawing["weights"] = (
        tuple(drawing["weights"]) if isinstance(drawing.get("weights"), list) else drawing.get("weights")
    )
    partition_pieces(generate.rmat_pieces(**drawing), tmp_path / "alone", **options)
    assert_same_folders(tmp_path / "ranks", tmp_path / "alone")
    assert sorted(os.listdir(tmp_path)) == ["alone", "ranks"]
    owned = [part.owned_ids for part in read_shards(tmp_path / "ranks")[1]]
    assert np.array_equal(np.sort(np.concatenate(owned)), np.arange(1 << drawing["scale"]))


@pytest.mark.parametrize("stage", ["survey", "spread", "sort", "parts", "copies", "manifest"])
def test_a_rank_that_fails_leaves_no_folder(tmp_path, stage):
    arguments = json.dumps([{"scale": 8}, {"devices": 2}])
    status, output, errors = run_job(2, PROGRAM, tmp_path / "ranks", arguments, stage, timeout_seconds=120)
    assert status != 0
    assert "No space left on device" in output + errors
    assert os.listdir(tmp_path) == []


def test_the_command_line_draws_on_ranks(tmp_path):
    words = ["generate", "rmat", "graph.shards", "--scale", "9", "--devices", "2", "--json"]
    status, output, errors = run_command(2, tmp_path, *words)
    assert (status, errors) == (0, [])
    assert json.loads(output)["vertices"] == 512  # one of them prints
    partition_pieces(generate.rmat_pieces(9), tmp_path / "alone", 2, in_edges=True)
    assert_same_folders(tmp_path / "graph.shards", tmp_path / "alone")
    status, output, errors = run_command(2, tmp_path, *words)
    assert (status, output, len(errors)) == (2, "", 1)
    assert "graph.shards" in errors[0]
    assert sorted(os.listdir(tmp_path)) == ["alone", "graph.shards"]
