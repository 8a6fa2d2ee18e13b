# SPDX-License-Identifier: Apache-2.0
"""shoal.strongly_connected_components against igraph and NetworkX."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from corruption import cast, corruptions, put
from graphs import LARGER, SPECIAL, cycle_graph, from_pairs, graphs, path_graph, random_graph, real_graph
from shoal.algorithms.verify_strong_components import verify_strong_components
from shoal.errors import ArgumentError, ValidationError


def check(graph, **options):
    """Run and compare with igraph; verify."""
    result = shoal.strongly_connected_components(graph, **options)
    np.testing.assert_array_equal(result.label, oracles.strong_labels(graph))
    assert result.count == len(np.unique(result.label))
    verify_strong_components(graph, result.label, result.count)
    return result


@given(graphs(min_vertices=0))
def test_random_graphs(graph):
    result = check(graph)
    assert result.count == nx.number_strongly_connected_components(oracles.networkx_graph(graph))


@given(graphs(max_vertices=60, max_edges=100, directed=True))
def test_random_sparse_graphs(graph):
    check(graph)


@pytest.mark.parametrize("name", [name for name in SPECIAL if name != "64-bit offsets"])  # compiled by itself
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("name", ["hubs", "hubs, directed", "uniform, directed, sparse", "grid of 60 x 50"])
def test_larger_graphs_on_every_core(name):
    check(LARGER[name]())


@pytest.mark.parametrize("num_edges", [2000, 5000, 10000, 40000])
def test_graphs_before_and_after_a_giant_component_forms(num_edges):
    check(random_graph(5000, num_edges, seed=num_edges, skew=1.0, directed=True))


def chain_of_cycles(count, length):
    """Cycles in a row, each with an edge to the next: nothing to trim, and as many components as there are cycles."""
    pairs = [(c * length + v, c * length + (v + 1) % length) for c in range(count) for v in range(length)]
    return from_pairs(pairs + [(c * length, (c + 1) * length) for c in range(count - 1)], directed=True)


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_chain_of_components_takes_few_rounds(is_turned):
    graph = chain_of_cycles(1000, 2)
    result = check(graph.reverse() if is_turned else graph)
    assert result.count == 1000
    assert result.stats.num_supersteps < 1000 * 20  # with ids for numbers it would be a thousand rounds of a thousand


def test_many_components_at_once():
    assert check(chain_of_cycles(60, 7)).count == 60


def test_a_long_path_is_trimmed():
    result = check(path_graph(3000, directed=True))
    assert result.count == 3000
    assert result.stats.num_supersteps < 3100


def test_published_counts():
    """Counted by others: SNAP says that the largest of wiki-Vote has 1,300 vertices."""
    assert check(real_graph("wiki-Vote.txt.gz")).summary()["largest"] == 1300


def test_directions_of_all_edges_do_not_matter():
    graph = random_graph(2000, 5000, seed=12, directed=True)
    label = shoal.strongly_connected_components(graph).label
    np.testing.assert_array_equal(label, shoal.strongly_connected_components(graph.reverse()).label)


def test_a_placed_graph_and_its_reverse():
    graph = random_graph(500, 1500, seed=2, skew=1.0, directed=True)
    placed = shoal.place(graph, "cpu:3", partition="random", duplication="one-hop")
    for _ in range(2):
        found = shoal.strongly_connected_components(placed).label
        np.testing.assert_array_equal(found, oracles.strong_labels(graph))
    (other,) = placed._others.values()
    assert other.graph is graph.reverse()
    assert other.duplication == "one-hop"


def test_stats_and_types():
    result = shoal.strongly_connected_components(cycle_graph(100, directed=True))
    assert assert_counted(result.stats)["edges_visited"] > 0
    assert result.label.dtype == np.int32
    assert isinstance(result.count, int)


def test_it_needs_supersteps():
    call = lambda: shoal.strongly_connected_components(cycle_graph(5), execution="async")  # noqa: E731
    assert_refused(call, "execution='async' is not possible", "Trim", error=ArgumentError)


@corruptions(
    ("split", put("label", 2, 2), "label[1]=0, but vertex 1 does not reach it"),
    ("merged", put("label", slice(3, 6), 0), "inside its component"),
    ("an isolated vertex merged", put("label", 6, 3), "is not reached"),
    ("reached one way only", put("label", 5, 3), "does not reach it"),
    ("not the smallest id", put("label", slice(0, 3), 2), "smallest"),
    ("no vertex", put("label", 6, 7), "label[6]=7 is no vertex"),
    ("wrong count", put("count", (), 5), "count=5"),
    ("dtype", cast("label", lambda a: a.astype(float)), "dtype"),
)
def test_the_verifier_catches(corrupt, words):
    graph = from_pairs([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (4, 5)], num_vertices=7, directed=True)
    found = {"label": np.array([0, 0, 0, 3, 3, 5, 6]), "count": np.array(4)}
    verify_strong_components(graph, **found)
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        verify_strong_components(graph, **found)
    assert words in str(caught.value)


def test_the_verifier_catches_a_component_in_pieces():
    graph = cycle_graph(4, directed=True)
    with pytest.raises(ValidationError, match="in a cycle"):
        verify_strong_components(graph, np.arange(4))


@given(graphs(), st.data())
def test_the_verifier_catches_any_changed_label(graph, data):
    label = oracles.strong_labels(graph)
    vertex, value = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
    assume(label[vertex] != value)
    label[vertex] = value
    with pytest.raises(ValidationError):
        verify_strong_components(graph, label)
