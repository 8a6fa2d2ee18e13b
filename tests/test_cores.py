# SPDX-License-Identifier: Apache-2.0
"""shoal.core_number and shoal.k_core against igraph and NetworkX."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from corruption import corruptions, put
from graphs import LARGER, SPECIAL, complete_graph, from_pairs, graphs, path_graph, random_graph, real_graph
from shoal.algorithms.verify_cores import verify_cores, verify_k_core
from shoal.errors import ArgumentError, ValidationError


def check(graph, **options):
    """Run without self-loops and compare with igraph; verify."""
    graph = graph.without_self_loops()
    result = shoal.core_number(graph, **options)
    np.testing.assert_array_equal(result.core, oracles.core_numbers(graph))
    verify_cores(graph, result.core)
    return result


@given(graphs(min_vertices=0))
def test_random_graphs(graph):
    check(graph)


@given(graphs(max_vertices=12, max_edges=60), st.integers(0, 8))
def test_simple_graphs_are_networkx_s(graph, k):
    graph = graph.deduplicated().without_self_loops()
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(oracles.networkx_graph(graph))
    found = nx.core_number(simple)
    assert shoal.core_number(graph).core.tolist() == [found[v] for v in range(graph.num_vertices)]
    result = shoal.k_core(graph, k, validate=True)
    assert set(np.flatnonzero(result.in_core).tolist()) == set(nx.k_core(simple, k).nodes)


@pytest.mark.parametrize("name", [name for name in SPECIAL if name != "64-bit offsets"])  # compiled by itself
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_on_every_core(name):
    check(LARGER[name]())


def test_kronecker_graph_and_a_core_of_it():
    graph = shoal.generate.rmat(scale=14, seed=1).without_self_loops()
    core = check(graph).core
    for k in (0, 1, 7, int(core.max()), int(core.max()) + 1):
        np.testing.assert_array_equal(shoal.k_core(graph, k, validate=True).in_core, core >= k)


@pytest.mark.parametrize(("name", "largest"), [("facebook_combined.txt.gz", 115), ("netscience.mtx.gz", 19)])
def test_published_degeneracies(name, largest):
    assert check(real_graph(name)).summary()["max_core"] == largest


def test_a_clique_is_the_innermost_core():
    result = check(complete_graph(17))
    assert result.summary() == {"max_core": 16, "innermost": 17}


def test_parallel_edges_and_directions_count():
    assert shoal.core_number(from_pairs([(0, 1)] * 3)).core.tolist() == [3, 3]
    assert shoal.core_number(from_pairs([(0, 1), (1, 0), (1, 2)], directed=True)).core.tolist() == [2, 2, 1]


def test_a_placed_graph_keeps_its_places():
    graph = random_graph(300, 2000, seed=3, directed=True).without_self_loops()
    owner = np.arange(graph.num_vertices) % 3
    placed = shoal.place(graph, "cpu:3", partition=owner)
    for _ in range(2):
        np.testing.assert_array_equal(shoal.core_number(placed).core, oracles.core_numbers(graph))
    (other,) = placed._others.values()
    assert not other.graph.is_directed
    np.testing.assert_array_equal(other.owner, owner)


def test_stats_and_types():
    result = shoal.core_number(path_graph(100))
    assert assert_counted(result.stats)["edges_visited"] >= 198
    assert result.core.dtype == np.int32
    assert shoal.k_core(path_graph(3), 1).in_core.dtype == bool


@pytest.mark.parametrize("run", [shoal.core_number, lambda graph: shoal.k_core(graph, 2)], ids=["core", "k-core"])
def test_self_loops_are_refused(run):
    looped = from_pairs([(0, 1), (1, 1), (1, 2)])
    assert_refused(lambda: run(looped), "self-loops", "without_self_loops()", error=ArgumentError)
    run(looped.without_self_loops())


@given(graphs(min_vertices=0))
def test_self_loops_are_seen(graph):
    src, dst = oracles.edge_arrays(graph)
    assert graph.has_self_loops == bool((src == dst).any())


def test_the_last_self_loop_of_a_large_graph_is_seen():
    src = np.arange(1 << 17)
    path = shoal.Graph.from_edges(src, src + 1)
    assert not path.has_self_loops
    assert shoal.Graph.from_edges([*src, 1 << 17], [*(src + 1), 1 << 17]).has_self_loops


@pytest.mark.parametrize("k", [-1, 1.5, "two", None, 2**31], ids=repr)
def test_bad_k(k):
    assert_refused(lambda: shoal.k_core(path_graph(3), k), f"k={k!r}", error=ArgumentError)


def test_waves_need_supersteps():
    how = {"execution": "async", "devices": "cpu:2"}
    assert_refused(lambda: shoal.core_number(path_graph(3), **how), "execution='async'", "CoreNumbers")
    assert_refused(lambda: shoal.k_core(path_graph(3), 1, **how), "execution='async'", "KCore")


@corruptions(
    ("too high", put("core", 0, 3), "core[0]=3, but only 0 neighbours"),
    ("too low", put("core", slice(0, 4), 1), "belongs to a core of at least 2"),
    ("one too low", put("core", 3, 0), "core[0]=2, but only 1 neighbours"),
    ("negative", put("core", 4, -1), "core[4]=-1 is negative"),
)
def test_the_verifier_catches(corrupt, words):
    graph = from_pairs([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)])
    found = {"core": np.array([2, 2, 2, 2, 1], np.int32)}
    verify_cores(graph, **found)
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        verify_cores(graph, **found)
    assert words in str(caught.value)


@given(graphs(), st.data())
def test_the_verifier_catches_any_other_number(graph, data):
    graph = graph.without_self_loops()
    core = oracles.core_numbers(graph)
    verify_cores(graph, core)
    vertex = data.draw(st.integers(0, graph.num_vertices - 1))
    core[vertex] += data.draw(st.sampled_from([-1, 1, 2]))
    with pytest.raises(ValidationError):
        verify_cores(graph, core)


@given(graphs(), st.integers(0, 6), st.data())
def test_the_verifier_catches_any_other_member(graph, k, data):
    graph = graph.without_self_loops()
    in_core = oracles.core_numbers(graph) >= k
    verify_k_core(graph, in_core, k)
    vertex = data.draw(st.integers(0, graph.num_vertices - 1))
    in_core[vertex] = not in_core[vertex]
    with pytest.raises(ValidationError):
        verify_k_core(graph, in_core, k)
