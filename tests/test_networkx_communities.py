# SPDX-License-Identifier: Apache-2.0
"""Communities behind NetworkX: its own by label propagation, set by set, and by Louvain as good ones as its own."""

import doctest
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from networkx_calls import GRAPHS, make_graph
from shoal.algorithms import coloring
from shoal.algorithms.coloring import greedy_coloring
from shoal_networkx.interface import backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")

UNDIRECTED = {name: graph for name, graph in GRAPHS.items() if not graph.is_directed()}
#: Of graphs whose communities are no question.
CLEAR = {
    "karate": nx.karate_club_graph(),
    "cliques": nx.ring_of_cliques(8, 6),
    "planted": nx.planted_partition_graph(6, 30, 0.4, 0.02, seed=4),
    "multigraph": nx.MultiGraph([*nx.ring_of_cliques(5, 4).edges, *nx.ring_of_cliques(5, 4).edges]),
}


def assert_same_communities(graph):
    found, expected = (nx.community.label_propagation_communities(graph, backend=by) for by in ("shoal", "networkx"))
    assert list(found) == list(expected)
    with pytest.raises(TypeError):
        next(found)


LITTLE = {"no nodes": nx.Graph(), "no edges": nx.empty_graph(3), "a loop": nx.Graph([(0, 0)])}
PAIRS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40)


@pytest.mark.parametrize("graph", (UNDIRECTED | CLEAR | LITTLE).values(), ids=UNDIRECTED | CLEAR | LITTLE)
def test_label_propagation_is_networkx_s_own(graph):
    assert_same_communities(graph)


@given(PAIRS, st.sampled_from([nx.Graph, nx.MultiGraph]))
def test_label_propagation_of_any_graph(pairs, kind):
    graph = kind()
    graph.add_nodes_from(random.Random(len(pairs)).sample(range(12), 12))
    graph.add_edges_from((u, v) for u, v in pairs if u != v)
    assert_same_communities(graph)


def test_label_propagation_on_several_devices():
    graph = make_graph(nx.Graph, "none", 9, 60, 150)
    with nx.config.backends.shoal(devices="cpu:3"):
        assert_same_communities(graph)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.permutations(range(10)))
def test_coloring_is_networkx_s_own(pairs, order):
    theirs = nx.empty_graph(10)
    theirs.add_edges_from(pairs)
    expected = nx.greedy_color(theirs, strategy=lambda graph, colors: order, backend="networkx")
    found = greedy_coloring(shoal.Graph.from_networkx(theirs), np.array(order))
    assert found.tolist() == [expected[node] for node in range(10)]


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", CLEAR)
def test_louvain_is_as_good_as_networkx_s(name, weight):
    graph = CLEAR[name]
    found = nx.community.louvain_communities(graph, weight=weight, backend="shoal")
    assert nx.community.is_partition(graph, found)
    places = {node: place for place, node in enumerate(graph)}
    firsts = [min(map(places.get, community)) for community in found]
    assert firsts == sorted(firsts)

    def quality(partition):
        return nx.community.modularity(graph, partition, weight=weight)

    how = {"weight": weight, "backend": "networkx"}
    theirs = [nx.community.louvain_communities(graph, seed=seed, **how) for seed in range(5)]
    assert quality(found) >= min(map(quality, theirs)) - 0.01


def test_louvain_takes_resolution_and_threshold():
    graph = CLEAR["planted"]
    partitions = [
        nx.community.louvain_communities(graph, resolution=resolution, backend="shoal") for resolution in (0.1, 1, 8)
    ]
    sizes = list(map(len, partitions))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert nx.community.is_partition(graph, nx.community.louvain_communities(graph, threshold=1, backend="shoal"))


def test_louvain_of_little():
    assert nx.community.louvain_communities(nx.Graph(), backend="shoal") == []
    assert nx.community.louvain_communities(nx.empty_graph(3), backend="shoal") == [{0}, {1}, {2}]
    for weight, reason in ((0, "all weights are 0"), (-1, "-1")):
        graph = nx.Graph([(0, 1, {"weight": weight})])
        with pytest.raises(NotImplementedError, match=reason):
            backend.louvain_communities(backend.convert_from_nx(graph, edge_attrs={"weight": 1}))


def test_without_a_seed_any_partition_will_do():
    graph = CLEAR["karate"]
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    assert nx.community.is_partition(graph, nx.community.louvain_communities(converted))
    assert backend.can_run("louvain_communities", (graph,), {"seed": random._inst}) is True
    with pytest.raises(NotImplementedError):
        nx.community.louvain_communities(graph, seed=1, backend="shoal")


def test_examples():
    assert doctest.testmod(coloring) == (0, 2)
