# SPDX-License-Identifier: Apache-2.0
"""shoal.betweenness_centrality against NetworkX and igraph: exact, listed and sampled sources, every scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import (
    LARGER,
    SPECIAL,
    complete_graph,
    cycle_graph,
    diamond_chain,
    from_pairs,
    graphs,
    path_graph,
    random_graph,
    read_real,
    real_files,
    real_graph,
    star_graph,
)
from shoal.algorithms.verify_centrality import verify_betweenness
from shoal.errors import ArgumentError, ConvergenceError

CLOSE = {"rtol": 1e-6, "atol": 1e-12}
SCALES = [
    {"normalized": normalized, "endpoints": endpoints} for normalized in (True, False) for endpoints in (False, True)
]


def check(graph, sources=None, **options):
    """Run and compare with igraph; verify."""
    result = shoal.betweenness_centrality(graph, sources, **options)
    np.testing.assert_allclose(result.centrality, oracles.betweenness(graph, sources, **options), **CLOSE)
    verify_betweenness(graph, result.centrality, sources=sources, **options)
    return result


@given(graphs(min_vertices=0), st.sampled_from(SCALES))  # wider ids are among the special graphs
def test_random_graphs(graph, scale):
    check(graph, **scale)


@given(graphs(), st.sampled_from(SCALES), st.data())
def test_listed_sources(graph, scale, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    check(graph, data.draw(st.lists(vertices, min_size=1, unique=True)), **scale)


@given(graphs(), st.sampled_from(SCALES), st.data())
def test_simple_graphs_equal_networkx(graph, scale, data):
    simple = graph.deduplicated()
    found = shoal.betweenness_centrality(simple, **scale).centrality
    np.testing.assert_allclose(found, oracles.betweenness_networkx(simple, **scale), **CLOSE)
    sources = data.draw(st.lists(st.integers(0, graph.num_vertices - 1), min_size=1, unique=True))
    found = shoal.betweenness_centrality(simple, sources, **scale).centrality
    np.testing.assert_allclose(found, oracles.betweenness_networkx(simple, sources, **scale), **CLOSE)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name):
    graph = SPECIAL[name]()
    check(graph)
    if "64-bit" not in name:  # they are compiled by themselves, once for every number of sources
        check(graph, [0], normalized=False)


@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_on_every_core(name):
    graph = LARGER[name]()
    check(graph, [0, 5, 17, graph.num_vertices - 1])


@pytest.mark.parametrize("directed", [False, True])
def test_all_sources_of_a_larger_graph(directed):
    check(random_graph(600, 4000, seed=13, directed=directed))


@pytest.mark.parametrize("num_sources", [1, 2, 3, 7, 8, 9, 33, 65])
def test_batches_of_any_size(num_sources):
    check(random_graph(700, 5000, seed=14), list(range(0, 10 * num_sources, 10)))


def test_kronecker_graph():
    graph = shoal.generate.rmat(scale=12, edge_factor=16, seed=1)
    check(graph, np.argsort(graph.degree)[-4:].tolist())


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_graphs(path):
    graph = read_real(path)
    check(graph, [0, int(np.argmax(graph.degree))])


def test_all_sources_of_a_real_graph():
    check(real_graph("netscience.mtx.gz"))


def test_known_values():
    assert shoal.betweenness_centrality(path_graph(3), normalized=False).centrality.tolist() == [0, 1, 0]
    assert shoal.betweenness_centrality(path_graph(3)).centrality.tolist() == [0, 1, 0]
    assert shoal.betweenness_centrality(path_graph(3), endpoints=True, normalized=False).centrality.tolist() == [
        2,
        3,
        2,
    ]
    assert not shoal.betweenness_centrality(complete_graph(6)).centrality.any()
    np.testing.assert_allclose(shoal.betweenness_centrality(star_graph(9)).centrality, [1] + [0] * 9)
    np.testing.assert_allclose(shoal.betweenness_centrality(cycle_graph(5), normalized=False).centrality, [1] * 5)


def test_parallel_edges_are_different_paths():
    graph = SPECIAL["parallel edges, directed"]()
    found = shoal.betweenness_centrality(graph, normalized=False).centrality
    np.testing.assert_allclose(found, [0, 2 / 3, 1 / 3, 0])


def test_weights_do_not_matter():
    plain, weighted = (random_graph(300, 1500, seed=15, weights=weights) for weights in (None, "float64"))
    found, expected = (shoal.betweenness_centrality(graph).centrality for graph in (weighted, plain))
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_samples_are_a_choice_of_sources():
    graph = random_graph(400, 3000, seed=16)
    first, again, other = (shoal.betweenness_centrality(graph, samples=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.centrality, again.centrality)
    assert not np.array_equal(first.centrality, other.centrality)


def test_all_samples_give_the_exact_values():
    graph = random_graph(200, 900, seed=17)
    sampled = shoal.betweenness_centrality(graph, samples=200, seed=3).centrality
    np.testing.assert_allclose(sampled, oracles.betweenness(graph), **CLOSE)


def test_samples_estimate_the_exact_values():
    graph = random_graph(500, 4000, seed=18)
    sampled = shoal.betweenness_centrality(graph, samples=250, seed=3).centrality
    exact = oracles.betweenness(graph)
    assert np.argmax(sampled) == np.argmax(exact)
    assert np.corrcoef(sampled, exact)[0, 1] > 0.95


@pytest.mark.parametrize("directed", [False, True])
def test_path_counts_up_to_the_range_of_a_double(directed):
    graph = diamond_chain(1000, directed=directed)
    found = shoal.betweenness_centrality(graph, [0], normalized=False, endpoints=True).centrality
    expected = oracles.betweenness(graph, [0], normalized=False, endpoints=True)
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("sources", [[0], [0, 1], None], ids=["one", "two", "all"])
def test_path_counts_beyond_the_range_of_a_double(sources):
    graph = diamond_chain(1100, directed=True)
    assert_refused(lambda: shoal.betweenness_centrality(graph, sources), "paths", error=ConvergenceError)


def test_type_of_the_result():
    result = shoal.betweenness_centrality(SPECIAL["64-bit ids"]())
    assert result.centrality.dtype == np.float64
    assert result.centrality.shape == (30,)


def test_equal_runs_give_equal_results():
    graph = LARGER["hubs"]()
    first, second = (shoal.betweenness_centrality(graph, [0, 1, 2]).centrality for _ in range(2))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_validate_runs_the_verifier():
    shoal.betweenness_centrality(random_graph(300, 1500), validate=True)
    shoal.betweenness_centrality(random_graph(300, 1500), samples=5, seed=1, validate=True, endpoints=True)


def test_stats():
    graph = random_graph(300, 1500)
    totals = assert_counted(shoal.betweenness_centrality(graph, [0, 1]).stats)
    assert totals["edges_visited"] >= graph.num_edges


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sources": [5]}, ["sources", "5"]),
        ({"sources": [-1]}, ["sources", "-1"]),
        ({"sources": [0.5]}, ["sources"]),
        ({"sources": ["a"]}, ["sources"]),
        ({"sources": []}, ["sources"]),
        ({"sources": "all"}, ["sources", "all"]),
        ({"sources": [1, 1]}, ["sources", "1"]),
        ({"samples": 0}, ["samples", "0"]),
        ({"samples": 6}, ["samples", "6", "5"]),
        ({"samples": -2}, ["samples", "-2"]),
        ({"samples": 1.5}, ["samples", "1.5"]),
        ({"samples": 2, "sources": [0]}, ["samples", "sources"]),
        ({"samples": 2, "seed": -1}, ["seed", "-1"]),
        ({"samples": 2, "seed": "x"}, ["seed", "x"]),
        ({"devices": "abacus"}, ["devices", "abacus"]),
    ],
    ids=repr,
)
def test_bad_options(options, words):
    assert_refused(lambda: shoal.betweenness_centrality(cycle_graph(5), **options), *words, error=ArgumentError)


def test_sources_in_an_empty_graph():
    empty = from_pairs([], num_vertices=0)
    assert shoal.betweenness_centrality(empty).centrality.shape == (0,)
    assert_refused(lambda: shoal.betweenness_centrality(empty, [0]), "sources", error=ArgumentError)


def test_bad_graph():
    assert_refused(lambda: shoal.betweenness_centrality("graph.gr"), "graph", error=ArgumentError)
