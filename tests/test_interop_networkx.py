# SPDX-License-Identifier: Apache-2.0
"""Graphs of NetworkX in and out: its own edges are the oracle."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks import assert_refused
from graphs import SPECIAL, graphs
from interop_edges import edges_of, ends
from shoal.errors import GraphError
from shoal.graph import Graph

pytestmark = pytest.mark.host_only("converts graphs on the CPU")

CLASSES = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
NAMES = {
    "ids in any order": [2, 0, 3, 1],
    "numbers": [7, -1, 10**15, 3],
    "strings": ["d", "", "ä", "b"],
}


def edges_of_networkx(graph, weight="weight"):
    return Counter((ends(graph.is_directed(), u, v), w) for u, v, w in graph.edges(data=weight))


def make(kind, names, pairs, weights=None):
    graph = kind()
    graph.add_nodes_from(names)
    for position, (u, v) in enumerate(pairs):
        graph.add_edge(names[u], names[v], **({} if weights is None else {"weight": weights[position]}))
    return graph


@given(
    st.sampled_from(CLASSES),
    st.sampled_from(sorted(NAMES)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12),
    st.booleans(),
)
def test_every_class_and_kind_of_node(kind, names, pairs, is_weighted):
    theirs = make(kind, NAMES[names], pairs, list(range(5, 5 + len(pairs))) if is_weighted else None)
    ours = Graph.from_networkx(theirs)
    assert ours.is_directed == theirs.is_directed()
    assert ours.is_weighted == (is_weighted and bool(pairs))
    assert edges_of(ours) == edges_of_networkx(theirs)
    assert sorted(ours.label_of(v) for v in range(4)) == sorted(NAMES[names])
    assert (ours.labels is None) == (names == "ids in any order")
    back = ours.to_networkx()
    assert set(back) == set(theirs)
    assert edges_of_networkx(back) == edges_of_networkx(theirs)


@given(graphs(weights="any", any_width=True))
def test_there_and_back(graph):
    back = Graph.from_networkx(graph.to_networkx())
    assert edges_of(back) == edges_of(graph)
    assert (back.is_directed, back.num_vertices) == (graph.is_directed, graph.num_vertices)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs_there_and_back(name):
    graph = SPECIAL[name]()
    theirs = graph.to_networkx()
    assert edges_of_networkx(theirs) == edges_of(graph)
    assert theirs.number_of_nodes() == graph.num_vertices
    assert theirs.is_multigraph() == ("parallel" in name or "three loops" in name)


def test_views_are_read_as_what_they_show():
    whole = nx.gnp_random_graph(12, 0.4, seed=1, directed=True)
    for view in (
        whole.subgraph([3, 1, 9, 4]),
        whole.reverse(copy=False),
        nx.freeze(whole.copy()),
        whole.to_undirected(as_view=True),
    ):
        assert edges_of(Graph.from_networkx(view)) == edges_of_networkx(view)


def test_weights():
    theirs = nx.Graph()
    theirs.add_edge(0, 1, cost=2, weight=7.5)
    theirs.add_edge(1, 2, weight=0.5)
    assert edges_of(Graph.from_networkx(theirs)) == {((0, 1), 7.5): 1, ((1, 2), 0.5): 1}
    assert not Graph.from_networkx(theirs, weight=None).is_weighted
    assert edges_of(Graph.from_networkx(theirs, weight="cost", default=1)) == {((0, 1), 2): 1, ((1, 2), 1): 1}
    refused = "edge 1 -> 2 has no 'cost', as 1 of 2 edges"
    assert_refused(lambda: Graph.from_networkx(theirs, weight="cost"), refused, "default=", error=GraphError)
    assert_refused(lambda: Graph.from_networkx(theirs, weight="wieght"), "no 'wieght', as 2 of 2", error=GraphError)
    assert not Graph.from_networkx(nx.path_graph(3)).is_weighted
    assert Graph.from_networkx(nx.path_graph(3), default=2).weights.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("value", ["heavy", [1, 2], 1j, 2**53 + 1, 2**70 + 1, 10**400, float("nan")])
def test_weights_that_are_none(value):
    theirs = nx.Graph()
    theirs.add_edge("a", "b", weight=1.5)
    theirs.add_edge("b", "c", weight=value)
    words = ["nan"] if value != value else ["edge 'b' -> 'c'", repr(value)]
    assert_refused(lambda: Graph.from_networkx(theirs), *words, error=GraphError)


@pytest.mark.parametrize("nodes", [[(0, 1), (1, 2)], ["a", 1], [True, False], [1.5, 2.5], [0, 2**63], [None, 3.0]])
def test_nodes_that_are_no_labels(nodes):
    theirs = nx.Graph()
    theirs.add_nodes_from(node for node in nodes if node is not None)
    words = ("whole numbers", "strings", "convert_node_labels_to_integers")
    assert_refused(lambda: Graph.from_networkx(theirs), *words, error=GraphError)


def test_names_that_are_not_those_of_one_vertex_are_refused():
    graph = Graph.from_edges([0, 1], [1, 2], labels=["a", "b", "a"])
    assert_refused(graph.to_networkx, "1 labels", "differ", error=GraphError)


def test_what_is_no_graph():
    assert_refused(lambda: Graph.from_networkx([(0, 1)]), "list", "NetworkX", error=GraphError)


def test_labels_of_arrow():
    pa = pytest.importorskip("pyarrow")
    graph = Graph.from_edges([0, 1], [1, 1], labels=pa.array(["x", "y"]), directed=True)
    assert sorted(graph.to_networkx().edges) == [("x", "y"), ("y", "y")]
    assert np.asarray(Graph.from_networkx(graph.to_networkx()).labels).tolist() == ["x", "y"]
