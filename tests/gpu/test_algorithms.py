# SPDX-License-Identifier: Apache-2.0
"""Every algorithm gives on a GPU what it gives on a CPU, whose results other tests compare with other libraries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from graphs import SPECIAL, WIDTHS, graphs, random_graph
from shoal import Phase, Program, Vertex, add, advance, atomic, everything, generate, rule
from test_every_config import ALGORITHMS, assert_same, with_widths

TYPES = list(zip(WIDTHS, ["int32", "float32", "float64"], strict=True))


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_special_graphs(algorithm, name):
    graph = SPECIAL[name]()
    if algorithm.startswith("sssp") and graph.min_weight is not None and graph.min_weight < 0:
        pytest.skip("sssp refuses negative weights")
    run = ALGORITHMS[algorithm]
    assert_same(run(graph, devices="cuda"), run(graph, devices="cpu"))


@pytest.mark.parametrize(("widths", "weights"), TYPES, ids=str)
@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_graphs(algorithm, is_directed, weights, widths):
    run = ALGORITHMS[algorithm]
    for num_vertices, num_edges, skew in ((50, 200, 1.0), (3000, 20000, 3.0), (20000, 400000, 6.0)):
        graph = random_graph(num_vertices, num_edges, seed=num_edges, directed=is_directed, weights=weights, skew=skew)
        graph = with_widths(graph, widths)
        assert_same(run(graph, devices="cuda"), run(graph, devices="cpu"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_drawn_graphs(algorithm):
    run = ALGORITHMS[algorithm]

    @settings(max_examples=40, deadline=None)
    @given(data=st.data())
    def check(data):
        graph = data.draw(graphs(weights="int32", min_vertices=3, max_vertices=40))
        assert_same(run(graph, devices="cuda"), run(graph, devices="cpu"))

    check()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_grids_and_hubs(algorithm):
    run = ALGORITHMS[algorithm]
    grid, kronecker = generate.grid(150, 200, drop=0.1, weights=(1, 64)), generate.rmat(14, 16, weights=(1, 64))
    for graph in (grid, kronecker, random_graph(30000, 100000, seed=1, weights="int32", skew=40.0)):
        if algorithm.startswith("betweenness") and graph.num_edges < 200_000:
            continue  # too many shortest paths
        assert_same(run(graph, devices="cuda"), run(graph, devices="cpu"))


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_optimized_graphs(algorithm, is_directed):
    run = ALGORITHMS[algorithm]
    graph = random_graph(20000, 400000, seed=1, directed=is_directed, weights="int32", skew=6.0)
    assert_same(run(graph.optimized(), devices="cuda"), run(graph, devices="cpu"))


def test_ranks_in_hub_order():
    graph = random_graph(3000, 60000, seed=2, directed=True, weights="float64", skew=6.0)
    start = np.random.default_rng(1).random(graph.num_vertices)
    how = {"weighted": True, "personalization": start, "tolerance": 1e-12, "max_iterations": 1000}
    placed = shoal.place(graph.optimized(), "cuda")
    expected = shoal.pagerank(graph, devices="cpu", **how).rank
    np.testing.assert_allclose(shoal.pagerank(placed, **how).rank, expected, rtol=1e-9)
    assert placed.shards_for(None, with_in_edges=True)[0].hubs is not None


def test_a_source_that_is_a_hub():
    star = shoal.Graph.from_edges(np.zeros(50_000, np.int64), np.arange(1, 50_001))
    found = shoal.bfs(star, 0, devices="cuda", validate=True)
    assert found.distance.tolist() == [0] + [1] * 50_000


class TwoPushes(Program):
    """Counts for every vertex the edges that lead to it, twice: every push cuts the lists of hubs anew."""

    first = Vertex("int64", combine=add)
    second = Vertex("int64", combine=add)

    @rule
    def count_first(src, dst, first):
        atomic.add(first, dst, 1)

    @rule
    def count_second(src, dst, second):
        atomic.add(second, dst, 1)

    def step(self, frontier):
        advance(everything, self.count_first)
        advance(everything, self.count_second)

    def phases(self):
        return [Phase(self.step, max_supersteps=3)]


def test_every_push_has_pieces_of_its_own():
    graph = shoal.Graph.from_edges(np.zeros(50_000, np.int64), np.arange(1, 50_001))
    found = shoal.run(TwoPushes(), graph, devices="cuda")
    assert (found.first == 3 * graph.degree).all()
    assert (found.second == 3 * graph.degree).all()
