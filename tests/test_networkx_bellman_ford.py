# SPDX-License-Identifier: Apache-2.0
"""Bellman and Ford behind NetworkX: the same lengths, paths and order, negative weights and negative cycles too."""

import doctest
import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networkx_calls import CLASSES, assert_same, ends_of, make_graph
from shoal.algorithms import relaxing_order
from shoal_networkx.interface import backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")

#: Few of them, so that there are several shortest paths; of the last two some cycles are negative.
WEIGHTS = {
    "none": [None],
    "int": [0, 1, 1, 2, 3],
    "float": [0.0, 0.1, 0.2, 0.3, 1.5],
    "negative": [3, 2, 4, -1, 5],
    "negative floats": [0.5, -0.25, 1.0, 2.0, 0.75],
}
BY_QUEUE = {"weight": "weight", "method": "bellman-ford"}


def weighted_graph(kind, weights, seed, num_nodes=12, num_edges=20):
    graph = make_graph(kind, "none", seed, num_nodes, num_edges)
    draw = random.Random(seed)
    for *_, data in graph.edges(data=True):
        if (weight := draw.choice(WEIGHTS[weights])) is not None:
            data["weight"] = weight
    return graph


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", CLASSES)
def test_every_function(kind, weights):
    for seed in range(4):
        graph = weighted_graph(kind, weights, seed, num_edges=14 + 4 * seed)
        source, target = ends_of(graph)
        for name in ("single_source_bellman_ford", "bellman_ford_path", "bellman_ford_path_length"):
            for end in (target, source, next(iter(graph)), "nobody"):
                assert_same(name, graph, source=source, target=end)
        for name in ("single_source_bellman_ford_path", "single_source_bellman_ford_path_length"):
            assert_same(name, graph, source=source)
            assert_same(name, graph, source=source, weight=None)
        assert_same("single_source_bellman_ford", graph, source=source)
        for name in ("shortest_path", "shortest_path_length"):
            for ends in ({"source": source}, {"target": target}, {"source": source, "target": target}, {}):
                assert_same(name, graph, **ends, **BY_QUEUE)
        for name in ("all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length"):
            assert_same(name, graph)


@pytest.mark.parametrize("kind", CLASSES)
def test_wrong_nodes_and_little_graphs(kind):
    for graph in (kind([(1, 2)]), kind([(1, 1, {"weight": -1})]), kind([(1, 1)])):
        for source in ("nobody", 1):
            for target in ("nobody", "no one", 1):
                for name in ("single_source_bellman_ford", "bellman_ford_path", "bellman_ford_path_length"):
                    assert_same(name, graph, source=source, target=target)
            assert_same("single_source_bellman_ford_path", graph, source=source)
            assert_same("shortest_path", graph, target=source, **BY_QUEUE)


@given(st.data())
def test_any_directed_graph(data):
    graph = nx.DiGraph()
    graph.add_nodes_from(data.draw(st.permutations(range(7))))
    weights = st.sampled_from(data.draw(st.sampled_from([[0, 1, 2], [3, 2, 1, -1], [0.5, 0.25, -0.125, 1.0]])))
    for u, v, w in data.draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), weights), max_size=24)):
        graph.add_edge(u, v, weight=w)
    source = data.draw(st.integers(0, 6))
    assert_same("single_source_bellman_ford", graph, source=source)
    assert_same("shortest_path", graph, target=source, **BY_QUEUE)


def test_negative_weights_stay_refused_where_none_may_be():
    """What a graph keeps for one function is not what another takes."""
    graph = nx.DiGraph([(0, 1, {"weight": -1}), (1, 2, {"weight": 2})])
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    assert backend.bellman_ford_path_length(converted, 0, 2) == 1
    with pytest.raises(NotImplementedError, match="negative"):
        backend.dijkstra_path_length(converted, 0, 2)
    graph = nx.DiGraph([(0, 1, {"weight": -(2**52)}), (1, 2, {"weight": 2})])
    with pytest.raises(NotImplementedError, match="too long"):
        backend.bellman_ford_path_length(backend.convert_from_nx(graph, edge_attrs={"weight": 1}), 0, 2)


def test_examples():
    assert doctest.testmod(relaxing_order) == (0, 4)
