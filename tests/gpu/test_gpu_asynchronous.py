# SPDX-License-Identifier: Apache-2.0
"""Without supersteps devices of a GPU give what one CPU device gives, whatever the strategies and the timing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from graphs import WIDTHS, graphs, random_graph
from pairwise import all_pairs
from shoal.backends.cuda.worklist_run import WorklistRun
from test_asynchronous import ALGORITHMS, OPTIONS, is_allowed, strategies_of
from test_every_config import assert_same, described


def on_gpu(case):
    """Return the strategies of a case, with as many devices of one GPU."""
    return {**strategies_of(case), "devices": f"cuda:0*{case['devices']}"}


@pytest.mark.parametrize("case", all_pairs(OPTIONS, is_allowed), ids=described)
def test_every_strategy_gives_what_supersteps_on_one_device_give(case):
    if case["partition"] == "metis":
        pytest.importorskip("pymetis")
    run, how = ALGORITHMS[case["algorithm"]], on_gpu(case)

    @settings(max_examples=6, deadline=None)
    @given(graph=graphs(weights="int32", directed=case["is_directed"], max_vertices=40))
    def check(graph):
        assert_same(run(graph, **how), run(graph, devices="cpu"))

    check()


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "pagerank", "components", "own program"])
def test_timing_makes_no_difference(algorithm, monkeypatch):
    run = ALGORITHMS[algorithm]

    @settings(max_examples=200, deadline=None)
    @given(
        graph=graphs(weights="int32", directed=False, max_vertices=40),
        count=st.integers(1, 8),
        seed=st.integers(1, 2**40),
    )
    def check(graph, count, seed):
        monkeypatch.setattr(WorklistRun, "jitter", 2 * seed + 1)
        assert_same(run(graph, execution="async", devices=f"cuda:0*{count}"), run(graph, devices="cpu"))

    check()


def test_a_thousand_runs_end_alike(monkeypatch):
    graph = random_graph(3000, 9000, seed=2, weights="int32")
    placed = shoal.place(graph, "cuda:0*4", partition="random")
    expected = shoal.sssp(graph, 0, devices="cpu").distance
    for seed in range(1000):
        monkeypatch.setattr(WorklistRun, "jitter", 2 * seed + 1 if seed % 2 else 0)
        assert np.array_equal(shoal.sssp(placed, 0, execution="async", parents=False).distance, expected), seed


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("algorithm", ["bfs", "bfs_parents", "sssp", "pagerank", "own program"])
def test_larger_graphs(algorithm, count):
    run = ALGORITHMS[algorithm]
    grid = shoal.generate.grid(150, 200, drop=0.1, weights=(1, 64))
    hubs = random_graph(20000, 200000, seed=1, weights="int32", skew=6.0)
    for graph in (grid, hubs):
        assert_same(run(graph, execution="async", devices=f"cuda:0*{count}"), run(graph, devices="cpu"))


@pytest.mark.parametrize(("widths", "weights"), [(WIDTHS[1], "float64"), (WIDTHS[2], "float32")], ids=str)
@pytest.mark.parametrize("duplication", ["all", "one-hop"])
def test_all_types(widths, weights, duplication):
    graph = random_graph(2000, 8000, seed=3, weights=weights, vertex_dtype=widths[0], edge_dtype=widths[1])
    how = {"execution": "async", "devices": "cuda:0*3", "duplication": duplication}
    found, expected = (shoal.sssp(graph, 0, parents=False, **strategies).distance for strategies in (how, {}))
    assert_same(found, expected)


@pytest.mark.parametrize("count", [1, 4])
def test_unfused_workers_give_the_same(count, monkeypatch):
    monkeypatch.setattr(WorklistRun, "is_fused", False)
    graph = shoal.generate.grid(30, 40, drop=0.1, weights=(1, 64))
    found = shoal.sssp(graph, 0, execution="async", devices=f"cuda:0*{count}")
    assert_same(found.distance, shoal.sssp(graph, 0, devices="cpu").distance)
    assert found.stats.to_dict()["num_supersteps"] == 1


def test_mail_in_the_memory_of_the_host(monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.border.can_reach", lambda numbers: False)
    graph = random_graph(3000, 20000, seed=1, weights="int32", skew=3.0)
    for algorithm in ("bfs", "sssp", "pagerank"):
        run = ALGORITHMS[algorithm]
        assert_same(run(graph, execution="async", devices="cuda:0*3"), run(graph, devices="cpu"))


def test_what_is_counted():
    graph = random_graph(2000, 8000, seed=1, weights="int32")
    result = shoal.sssp(graph, 0, execution="async", devices="cuda:0*2", parents=False)
    counts = result.stats.to_dict()
    assert counts["num_supersteps"] == len(counts["supersteps"]) == 1
    assert counts["items_sent"] == counts["items_combined"] > 0
    assert counts["bytes_sent"] == 8 * counts["items_sent"]
    assert 0 < counts["messages"] <= counts["items_sent"]
    assert counts["work_items"] >= np.count_nonzero(np.isfinite(result.distance))
