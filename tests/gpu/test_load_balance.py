# SPDX-License-Identifier: Apache-2.0
"""However the edges of a push are dealt, every one is visited once, and results are those of other libraries."""

import functools

import numpy as np
import pytest

import shoal
from graphs import from_pairs, random_graph, star_graph
from shoal import Phase, Program, Vertex, add, advance, atomic, everything, rule
from shoal.config import AXES
from test_every_config import ALGORITHMS, assert_same

BALANCES = AXES["load_balance"]
HUB = 5000  # edges of a vertex: several pieces
WIDE = {"vertex_dtype": "int64", "edge_dtype": "int64"}


def degrees_around_powers():
    """Vertices with 0 to 8193 edges: at, before and behind each border of two bins."""
    degrees = sorted({2**power + step for power in range(14) for step in (-1, 0, 1)}, reverse=True)
    src = np.repeat(np.arange(len(degrees)), degrees)
    dst = len(degrees) + np.random.default_rng(3).integers(0, 4000, len(src))
    weights = np.random.default_rng(4).integers(1, 9, len(src)).astype(np.int32)
    return shoal.Graph.from_edges(src, dst, weights, num_vertices=len(degrees) + 4100, directed=False)


GRAPHS = {
    "hubs": lambda: random_graph(20000, 200000, seed=1, weights="int32", skew=6.0),
    "hubs, directed, 64-bit": lambda: random_graph(
        20000, 200000, seed=2, weights="float64", skew=6.0, directed=True, **WIDE
    ),
    "star": lambda: star_graph(20000, num_vertices=20100),
    "degrees around powers of two": degrees_around_powers,
    "isolated vertices": lambda: from_pairs([(0, 40), (40, 2999)], num_vertices=3000),
    "no edges": lambda: from_pairs([], num_vertices=7),
    "one vertex": lambda: from_pairs([], num_vertices=1),
}
GRAPHS = {name: functools.cache(make) for name, make in GRAPHS.items()}
HUBS = list(GRAPHS)[:4]
RUNS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, 0, direction="push", validate=True, **how).distance,
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, validate=True, **how).distance,
    "cc": lambda graph, **how: shoal.connected_components(graph, validate=True, **how).label,
    "bc": lambda graph, **how: shoal.betweenness_centrality(graph, [0], direction="push", **how).centrality,
}


@functools.cache
def expected(algorithm, name):
    oracles = pytest.importorskip("oracles")
    answers = {
        "bfs": lambda graph: oracles.bfs_distance(graph, 0),
        "sssp": lambda graph: oracles.sssp_distance(graph, 0),
        "cc": oracles.component_labels,
        "bc": lambda graph: oracles.betweenness(graph, [0]),
    }
    return answers[algorithm](GRAPHS[name]())


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", RUNS)
@pytest.mark.parametrize("balance", BALANCES)
def test_results_are_those_of_other_libraries(balance, algorithm, name):
    found = RUNS[algorithm](GRAPHS[name](), devices="cuda", load_balance=balance)
    np.testing.assert_allclose(found, expected(algorithm, name), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("balance", BALANCES)
def test_results_are_those_of_a_cpu(balance, algorithm):
    run = ALGORITHMS[algorithm]
    for seed, is_directed in enumerate((False, True)):
        graph = random_graph(3000, 60000, seed=seed, weights="int32", directed=is_directed, skew=6.0)
        assert graph.max_degree > HUB
        assert_same(run(graph, devices="cuda", load_balance=balance), run(graph))


@pytest.mark.parametrize("balance", BALANCES)
def test_an_empty_graph(balance):
    empty = from_pairs([], num_vertices=0)
    assert shoal.connected_components(empty, devices="cuda", load_balance=balance).count == 0
    assert len(shoal.betweenness_centrality(empty, devices="cuda", load_balance=balance).centrality) == 0


class Visits(Program):
    """Counts at every vertex the edges that reach it, and adds up their numbers: twice, by two pushes."""

    num_visits = Vertex("int64", combine=add)
    edge_sum = Vertex("int64", combine=add)

    def __init__(self, first_edges, skip_edges):
        self.first_edges, self.skip_edges = first_edges, skip_edges

    @rule
    def count_one(src, dst, num_visits):
        atomic.add(num_visits, dst, 1)

    @rule
    def add_number(src, dst, edge, edge_sum):
        atomic.add(edge_sum, dst, edge)

    def step(self, frontier):
        how = {"first_edges": self.first_edges, "skip_edges": self.skip_edges}
        advance(everything, self.count_one, **how)
        advance(everything, self.add_number, **how)

    def phases(self):
        return [Phase(self.step, max_supersteps=3)]


@pytest.mark.parametrize(("first_edges", "skip_edges"), [(None, 0), (2, 0), (None, 2), (1500, 31), (0, 0)])
@pytest.mark.parametrize("balance", BALANCES)
def test_every_edge_is_visited_once(balance, first_edges, skip_edges):
    for name in HUBS:
        graph = GRAPHS[name]()
        assert graph.max_degree > HUB
        edges = np.arange(graph.num_edges)
        number_in_list = edges - np.repeat(graph.indptr[:-1], np.diff(graph.indptr))
        last = graph.num_edges if first_edges is None else skip_edges + first_edges
        edges = edges[(number_in_list >= skip_edges) & (number_in_list < last)]
        reached = graph.indices[edges]
        found = shoal.run(Visits(first_edges, skip_edges), graph, devices="cuda", load_balance=balance)
        np.testing.assert_array_equal(found.num_visits, 3 * np.bincount(reached, minlength=graph.num_vertices))
        numbers = np.bincount(reached, edges.astype(float), graph.num_vertices)  # exact: far below 2^53
        np.testing.assert_array_equal(found.edge_sum, 3 * numbers)
        assert found.stats.edges_visited == 6 * len(edges)


@pytest.mark.parametrize("balance", BALANCES)
def test_a_placed_graph_has_it_too(balance):
    placed = shoal.place(GRAPHS["hubs"](), "cuda")
    found = shoal.bfs(placed, 0, direction="push", load_balance=balance)
    assert found.stats.to_dict()["config"]["load_balance"] == balance
    np.testing.assert_array_equal(found.distance, shoal.bfs(GRAPHS["hubs"](), 0).distance)
