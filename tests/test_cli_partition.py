# SPDX-License-Identifier: Apache-2.0
"""``shoal partition``: a row for each strategy, the parts as files, one line for what is wrong."""

import json
import sys
from pathlib import Path

import pytest

import shoal
from command_line import assert_refused, run
from shoal.cli import main
from shoal.io.shards import read_shards
from shoal.strategies.duplication import describe_partition
from shoal.strategies.partition import PARTITIONERS, partition_graph

pytestmark = pytest.mark.host_only("cuts graphs, and runs nothing on them")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with graph files; the tests run in it."""
    monkeypatch.chdir(tmp_path)
    shoal.write(shoal.generate.rmat(7, seed=4), "graph.shoal")
    Path("arcs.txt").write_text("# Directed graph\n0 1 5\n1 2 6\n2 0 7\n2 3 8\n")
    Path("some_folder").mkdir()
    Path("some_folder/file").write_text("")
    return tmp_path


def test_all_strategies_are_compared(folder, capsys):
    printed = json.loads(run("partition graph.shoal --devices 3 --seed 5 --json", capsys))
    graph = shoal.read("graph.shoal")
    assert (printed["vertices"], printed["stored_edges"]) == (graph.num_vertices, graph.num_edges)
    assert [row["partition"] for row in printed["partitions"]] == list(PARTITIONERS)
    for row in printed["partitions"]:
        owner = partition_graph(graph, 3, row["partition"], seed=5)
        expected = describe_partition(graph, owner, 3).to_dict()
        assert {name: row[name] for name in expected} == json.loads(json.dumps(expected))
        assert row["seconds"] >= 0


def test_some_strategies_are_compared(folder, capsys):
    out = run("partition graph.shoal --devices 2 --partition segment,random,segment", capsys)
    lines = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert lines[-2:] == ["segment", "random"]
    assert "biased-random" in run("partition graph.shoal --devices 2", capsys)
    for word in ("graph.shoal on 2 devices", "seconds", "balance", "cut %", "border"):
        assert word in out
    assert run("partition graph.shoal --devices 2 --quiet", capsys) == ""


def test_a_strategy_that_is_not_possible_says_why(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert "shoal[partition]" in run("partition graph.shoal --devices 2", capsys)
    rows = json.loads(run("partition graph.shoal --devices 2 --json", capsys))["partitions"]
    assert [row["partition"] for row in rows if "error" in row] == ["metis"]
    assert main(["partition", "graph.shoal", "--devices", "2", "--partition", "metis"]) == 2
    assert capsys.readouterr().err.startswith("shoal: error: partition='metis' needs pymetis")


@pytest.mark.parametrize(("options", "duplication"), [("", "one-hop"), ("--duplication all --in-edges", "all")])
def test_parts_are_written(folder, capsys, options, duplication):
    out = run(f"partition arcs.txt --devices 2 --partition random --seed 1 --output parts {options}", capsys)
    assert "written: parts" in out
    assert not list(folder.glob(".*"))
    manifest, parts = read_shards("parts")
    assert (manifest.partition, manifest.duplication, manifest.num_devices) == ("random", duplication, 2)
    assert manifest.has_in_edges == ("--in-edges" in options)
    graph = shoal.read("arcs.txt")
    assert sum(part.num_edges for part in parts) == graph.num_edges
    owner = partition_graph(graph, 2, "random", seed=1)
    assert [part.num_owned for part in parts] == [(owner == device).sum() for device in range(2)]
    assert sorted(weight for part in parts for weight in part.out_edges.weights) == [5, 6, 7, 8]


BAD = [
    # (command, words that the line must have)
    ("partition graph.shoal", "--devices"),
    ("partition graph.shoal --devices 0", "devices=0 1 to 65536"),
    ("partition graph.shoal --devices 65537", "devices=65537 1 to 65536"),
    ("partition graph.shoal --devices two", "'two' whole number"),
    ("partition graph.shoal --devices 2 --partition best", "partition='best' random, biased-random, segment, metis"),
    ("partition graph.shoal --devices 2 --partition random,", "partition='' random"),
    ("partition graph.shoal --devices 2 --partition all,random", "partition='all' is not known"),
    ("partition graph.shoal --devices 2 --seed -1", "seed=-1"),
    ("partition missing.txt --devices 2", "missing.txt"),
    ("partition graph.shoal --devices 2 --output parts", "output='parts' one partition"),
    ("partition graph.shoal --devices 2 --partition random,segment --output parts", "output='parts' not 2"),
    ("partition graph.shoal --devices 2 --partition random --output some_folder", "output='some_folder' empty folder"),
    ("partition graph.shoal --devices 2 --partition random --output graph.shoal", "output='graph.shoal' empty folder"),
    ("partition graph.shoal --devices 2 --partition random --output no/parts", "output='no/parts' no folder"),
    ("partition graph.shoal --devices 2 --partition random --output p --duplication x", "duplication='x' all, one-hop"),
    ("partition graph.shoal --devices 2 --duplication all", "duplication='all' --output"),
    ("partition graph.shoal --devices 2 --in-edges", "in-edges --output"),
]


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_status_2(folder, capsys, command, words):
    before = sorted(folder.rglob("*"))
    assert_refused(command, words, capsys)
    assert sorted(folder.rglob("*")) == before
