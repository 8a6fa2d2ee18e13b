# SPDX-License-Identifier: Apache-2.0
"""Every algorithm under every strategy gives on several devices of a GPU what one CPU device gives.

The cases are those of the same test on a CPU: they come from the tables in `shoal.config`.
"""

import numpy as np
import pytest

import shoal
from graphs import random_graph
from shoal import generate
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.config import NOT_ON
from test_every_config import (
    ALGORITHMS,
    CASES,
    SHAPES,
    assert_same,
    described,
    expected_of_shape,
    graph_of_shape,
    strategies_of,
)


@pytest.fixture(autouse=True)
def _always_deals(monkeypatch):
    """Let devices that steal do so on small graphs, too."""
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)


def on_gpu(case):
    """Return the strategies of a case, with as many devices of one GPU; these steal frontiers, and nothing else."""
    chosen = strategies_of(case)
    kinds, _ = NOT_ON.get(("stealing", chosen["stealing"]), ((), ""))
    stealing = "frontier" if "cuda" in kinds else chosen["stealing"]
    return {**chosen, "stealing": stealing, "devices": f"cuda:0*{case['devices']}"}


@pytest.mark.parametrize("case", CASES, ids=described)
def test_every_config(case):
    if case["partition"] == "metis":
        pytest.importorskip("pymetis")
    run, how = ALGORITHMS[case["algorithm"]], on_gpu(case)
    for number in range(len(SHAPES)):
        shape = (number, case["is_directed"], case["widths"])
        assert_same(run(graph_of_shape(*shape), **how), expected_of_shape(case["algorithm"], *shape))


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("algorithm", ["bfs", "bfs_push", "sssp", "pagerank", "betweenness"])
def test_graphs_with_hubs(algorithm, communication):
    run = ALGORITHMS[algorithm]
    graph = random_graph(20000, 400000, seed=1, weights="int32", skew=6.0)
    expected = run(graph)
    for count in (2, 5):
        assert_same(run(graph, devices=f"cuda:0*{count}", communication=communication), expected)


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "components", "pagerank"])
def test_grids(algorithm):
    run, graph = ALGORITHMS[algorithm], generate.grid(150, 200, drop=0.1, weights=(1, 64))
    assert_same(run(graph, devices="cuda:0*4"), run(graph))


def test_more_devices_than_vertices():
    graph = shoal.Graph.from_edges([0, 1], [1, 2])
    assert shoal.bfs(graph, 0, devices="cuda:0*9").distance.tolist() == [0, 1, 2]


def test_mail_in_the_memory_of_the_host(monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.border.can_reach", lambda numbers: False)
    graph = random_graph(3000, 20000, seed=1, weights="int32", skew=3.0)
    for algorithm in ("bfs", "sssp", "pagerank"):
        run = ALGORITHMS[algorithm]
        assert_same(run(graph, devices="cuda:0*3"), run(graph))


def test_ranks_are_those_of_one_gpu():
    graph = random_graph(20000, 400000, seed=3, directed=True, weights="float32", skew=6.0)
    one, four = (
        shoal.pagerank(graph, iterations=20, weighted=True, devices=name).rank for name in ("cuda", "cuda:0*4")
    )
    np.testing.assert_array_equal(one, four)


def test_more_devices_than_a_gpu_has_room_for():
    graph = shoal.Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(shoal.ArgumentError, match="multiprocessors"):
        shoal.bfs(graph, 0, devices="cuda:0*1000")
