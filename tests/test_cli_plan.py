# SPDX-License-Identifier: Apache-2.0
"""``shoal plan``: a row for each combination of strategies, whose predictions hold for real runs."""

import json
import sys

import numpy as np
import pytest

import shoal
from command_line import assert_refused, run
from shoal.algorithms.arguments import graph_of
from shoal.commands.plan import PLANNED
from shoal.planner import PROGRAMS, compare_strategies
from shoal.strategies.duplication import describe_partition
from shoal.strategies.partition import PARTITIONERS, partition_graph

pytestmark = pytest.mark.host_only("plans, and runs, on several devices of the CPU")

GRAPH = shoal.generate.rmat(scale=8, edge_factor=6, seed=3, weights=(1, 9))
LOOPLESS = GRAPH.without_self_loops()
SOURCE = int(GRAPH.degree.argmax())
RUNS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, SOURCE, **how),
    "sssp": lambda graph, **how: shoal.sssp(graph, SOURCE, **how),
    "cc": lambda graph, **how: shoal.connected_components(graph, **how),
    "bc": lambda graph, **how: shoal.betweenness_centrality(graph, range(16), **how),
    "pagerank": lambda graph, **how: shoal.pagerank(graph, iterations=3, **how),
    "eigenvector": lambda graph, **how: shoal.eigenvector_centrality(graph, tolerance=0.1, **how),
    "katz": lambda graph, **how: shoal.katz_centrality(graph, alpha=0.5 / graph_of(graph).max_degree, **how),
    "hits": lambda graph, **how: shoal.hits(graph, tolerance=0.1, **how),
    "scc": lambda graph, **how: shoal.strongly_connected_components(graph, **how),
    "msf": lambda graph, **how: shoal.minimum_spanning_forest(graph, **how),
    "core": lambda graph, **how: shoal.core_number(LOOPLESS, **how),
    "kcore": lambda graph, **how: shoal.k_core(LOOPLESS, 3, **how),
}
LOOKS_FAR = ("cc", "msf")
UNDIRECTED = ("msf",)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with graph files; the tests run in it."""
    monkeypatch.chdir(tmp_path)
    shoal.write(GRAPH, "graph.shoal")
    (tmp_path / "arcs.txt").write_text("# Directed graph\n0 1\n1 2\n2 0\n2 3\n")
    return tmp_path


def strategies_of(row):
    return {axis: row[axis] for axis in ("partition", "duplication", "communication")}


def test_every_algorithm_has_a_program():
    assert list(PROGRAMS) == list(RUNS) == list(PLANNED)


@pytest.mark.parametrize("algorithm", RUNS)
def test_the_row_that_auto_takes_is_what_a_run_takes(folder, capsys, algorithm):
    printed = json.loads(run(f"plan graph.shoal --devices 3 --algorithm {algorithm} --json", capsys))
    config = RUNS[algorithm](GRAPH, devices="cpu:3").stats.to_dict()["config"]
    marked = [row for row in printed["strategies"] if row["is_auto"]]
    assert [strategies_of(row) for row in marked] == [strategies_of(config)]
    assert strategies_of(printed["auto"]) == strategies_of(config)
    assert printed["auto"]["reason"]


@pytest.mark.parametrize("algorithm", RUNS)
def test_all_that_is_allowed_is_listed(algorithm):
    rows = compare_strategies(GRAPH, 3, algorithm).runs
    pairs = [
        ("all", "selective"),
        ("all", "broadcast"),
        ("all", "butterfly"),
        ("all", "ring"),
        ("one-hop", "selective"),
    ]
    if algorithm in LOOKS_FAR:
        pairs = [pair for pair in pairs if "selective" not in pair]
    expected = [(partition, *pair) for partition in PARTITIONERS for pair in pairs]
    assert [(row.partition, row.duplication, row.communication) for row in rows] == expected


@pytest.mark.parametrize(
    "graph", [GRAPH, shoal.generate.rmat(8, 6, seed=3, directed=True)], ids=["undirected", "directed"]
)
@pytest.mark.parametrize("algorithm", RUNS)
def test_messages_items_and_memory_hold_for_real_runs(algorithm, graph):
    graph = graph.without_self_loops()
    graph = graph.symmetrized() if algorithm in UNDIRECTED else graph
    for row in compare_strategies(graph, 4, algorithm, fanout=4).runs:
        if row.partition not in ("segment", "random"):
            continue
        how = strategies_of(row.to_dict())
        # Placed anew: the graph's own memory of earlier calls would bring buffers that other algorithms needed.
        placed = shoal.place(graph, "cpu:4", partition=how["partition"])
        stats = RUNS[algorithm](placed, devices="cpu:4", fanout=4, **how).stats.to_dict()
        messages = [sum(superstep["messages"]) for superstep in stats["supersteps"]]
        items = np.array([superstep["items_sent"] for superstep in stats["supersteps"]])
        sent = items.sum(axis=0) if row.items_per == "run" else items.max(axis=0)
        assert max(messages) <= row.messages, how
        assert (sent <= row.items).all(), how
        # What a run counts includes the whole state, which the devices' parts come from.
        needed = sum(row.state_bytes) + sum(row.buffer_bytes) + sum(row.exchange_bytes)
        slack = 2.7 if algorithm == "sssp" else 1.35  # blocks of buckets are taken to be copied into twice as many
        assert needed <= stats["peak_memory_bytes"] * slack, how
        assert needed * 1.35 >= stats["peak_memory_bytes"], how


@pytest.mark.parametrize("algorithm", ["bfs", "pagerank"])
def test_messages_of_simple_programs_are_exact(algorithm):
    for row in compare_strategies(GRAPH, 3, algorithm).runs[:5]:
        how = strategies_of(row.to_dict())
        stats = RUNS[algorithm](GRAPH, devices="cpu:3", **how).stats.to_dict()
        assert {sum(superstep["messages"]) for superstep in stats["supersteps"]} == {row.messages}


def test_bounds_are_those_of_the_paper():
    owner = partition_graph(GRAPH, 4, "segment")
    borders = describe_partition(GRAPH, owner, 4).borders
    owned = np.bincount(owner)
    rows = {(row.duplication, row.communication): row for row in compare_strategies(GRAPH, 4, "bfs").runs
            if row.partition == "segment"}  # fmt: skip
    assert rows["all", "broadcast"].items == tuple(3 * (borders + owned))
    assert max(rows["all", "broadcast"].items) <= 3 * GRAPH.num_vertices
    selective = [r for r in compare_strategies(GRAPH, 4, "sssp").runs if r.communication == "selective"]
    assert borders in [row.items for row in selective]


def test_the_table(folder, capsys):
    out = run("plan graph.shoal --devices 4", capsys)
    for word in ("bfs on graph.shoal, 4 devices", "biased-random", "one-hop", "butterfly", "in a run, at most"):
        assert word in out
    assert sum(line.rstrip().endswith("auto") for line in out.splitlines()) == 1
    assert "auto: segment, all, broadcast: an advance may pull" in out
    assert "pagerank on arcs.txt, 2 devices" in run("plan arcs.txt --devices 2 --algorithm pagerank", capsys)
    assert run("plan graph.shoal --devices 4 --quiet", capsys) == ""


def test_graphs_without_vertices_or_with_fewer_than_devices(folder, capsys):
    shoal.write(shoal.Graph.from_edges([], []), "nothing.shoal")
    assert "auto: segment" in run("plan nothing.shoal --devices 2", capsys)
    assert "auto: segment" in run("plan arcs.txt --devices 7 --algorithm cc", capsys)


def test_a_partition_that_is_not_possible_says_why(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert "shoal[partition]" in run("plan graph.shoal --devices 2", capsys)
    printed = json.loads(run("plan graph.shoal --devices 2 --json", capsys))
    assert list(printed["impossible"]) == ["metis"]
    assert "metis" not in [row["partition"] for row in printed["strategies"]]


BAD = [
    # (command, words that the line must have)
    ("plan graph.shoal", "--devices"),
    ("plan graph.shoal --devices 1", "devices=1 2 to 1024"),
    ("plan graph.shoal --devices 1025", "devices=1025 2 to 1024"),
    ("plan graph.shoal --devices two", "'two' whole number"),
    ("plan graph.shoal --devices 2 --algorithm dfs", "algorithm='dfs' bfs, sssp, cc, bc, pagerank"),
    ("plan graph.shoal --devices 2 --fanout 3", "fanout=3 1 to 2"),
    ("plan graph.shoal --devices 2 --partition-seed -1", "partition_seed=-1"),
    ("plan missing.txt --devices 2", "missing.txt"),
]


@pytest.mark.parametrize(("command", "words"), BAD, ids=[command for command, _ in BAD])
def test_bad_input_is_one_line_and_status_2(folder, capsys, command, words):
    assert_refused(command, words, capsys)
