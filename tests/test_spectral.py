# SPDX-License-Identifier: Apache-2.0
"""Eigenvector and Katz centrality, hubs and authorities against NumPy's linear algebra and NetworkX."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from corruption import cast, corruptions, put
from graphs import LARGER, SPECIAL, cycle_graph, from_pairs, graphs, path_graph, random_graph, star_graph
from shoal.algorithms.verify_spectral import verify_eigenvector, verify_hits, verify_katz
from shoal.errors import ArgumentError, ConvergenceError, ValidationError

TIGHT = {"tolerance": 1e-11, "max_iterations": 20000}
#: Connected, with a largest eigenvalue that stands apart: there is one vector to find.
CONNECTED = [
    "one edge",
    "parallel edges",
    "cycle of odd length, directed",
    "star",
    "complete",
    "diamonds",
]


def dense(graph, weighted=False):
    return oracles.scipy_matrix(graph, weighted=weighted).toarray()


def katz_expected(graph, alpha, beta, weighted):
    matrix = np.eye(graph.num_vertices) - alpha * dense(graph, weighted).T
    return np.linalg.solve(matrix, np.broadcast_to(np.float64(beta), graph.num_vertices))


@given(graphs(weights="int32"), st.booleans(), st.booleans(), st.data())
def test_katz_of_random_graphs(graph, weighted, normalized, data):
    heaviest = dense(graph, weighted).sum(axis=1).max(initial=0.0)
    alpha = data.draw(st.sampled_from([0.0, 0.5, 0.9])) / max(heaviest, 1.0)
    beta = data.draw(st.sampled_from([0.0, 1.0, 2.5]) | st.just(np.arange(graph.num_vertices) / 2))
    options = {"beta": beta, "normalized": normalized, "weighted": weighted}
    found = shoal.katz_centrality(graph, alpha, **options, **TIGHT, validate=True)
    expected = katz_expected(graph, alpha, beta, weighted)
    if normalized and expected.any():
        expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(found.centrality, expected, rtol=1e-8, atol=1e-9)


@given(graphs(weights="int32"), st.booleans(), st.booleans())
def test_eigenvectors_and_hits_of_random_graphs_fulfil_their_equations(graph, weighted, is_tight):
    """Where several eigenvalues are alike, which vector is found depends on the start."""
    options = {"weighted": weighted, "tolerance": 1e-4 if is_tight else 0.1, "max_iterations": 100000}
    result = shoal.eigenvector_centrality(graph, **options, validate=True)
    assert result.change < options["tolerance"]
    hub = shoal.hits(graph, **options, validate=True).hub
    assert hub.sum() == pytest.approx(1.0 if (dense(graph, weighted) > 0).any() else 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_eigenvectors_are_the_leading_ones(weighted):
    graph = random_graph(200, 3000, seed=5, skew=1.5, weights="int32", directed=True)
    values, vectors = np.linalg.eig(dense(graph, weighted).T)
    expected = np.abs(vectors[:, np.argmax(values.real)].real)
    found = shoal.eigenvector_centrality(graph, **TIGHT, weighted=weighted, validate=True).centrality
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_hubs_and_authorities_are_the_leading_singular_vectors(weighted):
    graph = random_graph(200, 3000, seed=6, skew=1.5, weights="int32", directed=True)
    left, _, right = np.linalg.svd(dense(graph, weighted))
    found = shoal.hits(graph, **TIGHT, weighted=weighted, validate=True)
    np.testing.assert_allclose(found.hub, left[:, 0] / left[:, 0].sum(), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(found.authority, right[0] / right[0].sum(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", CONNECTED)
def test_special_graphs_are_networkx_s(name):
    graph = SPECIAL[name]().deduplicated()
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(oracles.networkx_graph(graph))
    expected = nx.eigenvector_centrality(simple, tol=1e-12, max_iter=20000)
    found = shoal.eigenvector_centrality(graph, **TIGHT, validate=True).centrality
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-6, atol=1e-9)
    alpha = 0.5 / graph.max_degree
    expected = nx.katz_centrality(simple, alpha, tol=1e-13, max_iter=20000)
    found = shoal.katz_centrality(graph, alpha, **TIGHT).centrality
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-7)


@pytest.mark.parametrize("name", ["hubs", "hubs, directed", "uniform, directed, sparse"])
def test_larger_graphs_on_every_core(name):
    graph = LARGER[name]()
    shoal.eigenvector_centrality(graph, tolerance=1e-3, validate=True)
    shoal.hits(graph, tolerance=1e-3, validate=True)
    found = shoal.katz_centrality(graph, 1e-4, validate=True, normalized=False, tolerance=1e-12).centrality
    matrix = 1e-4 * oracles.scipy_matrix(graph, weighted=False).T
    np.testing.assert_allclose(found, matrix @ found + 1.0, rtol=1e-12)


def test_a_star_and_no_edges():
    star = shoal.hits(star_graph(4, directed=True), validate=True)
    assert star.hub.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert star.authority.tolist() == [0.0, 0.25, 0.25, 0.25, 0.25]
    bare = from_pairs([], num_vertices=4)
    assert shoal.hits(bare, validate=True).hub.tolist() == [0.0] * 4
    assert shoal.eigenvector_centrality(bare, validate=True).centrality.tolist() == [0.5] * 4
    assert shoal.katz_centrality(bare, validate=True).centrality.tolist() == [0.5] * 4


@pytest.mark.parametrize("run", [shoal.eigenvector_centrality, shoal.katz_centrality, shoal.hits])
def test_no_vertices(run):
    assert run(from_pairs([], num_vertices=0), validate=True).iterations == 0


def test_stats():
    graph = LARGER["hubs, directed"]()
    result = shoal.hits(graph, tolerance=1e-2)
    assert assert_counted(result.stats)["edges_visited"] == 2 * result.iterations * graph.num_edges


@pytest.mark.parametrize("run", [shoal.eigenvector_centrality, shoal.hits], ids=["eigenvector", "hits"])
def test_no_convergence(run):
    assert_refused(
        lambda: run(LARGER["hubs, directed"](), 1e-12, 2), "max_iterations=2", "1e-12", error=ConvergenceError
    )


def test_an_alpha_that_is_too_large_is_named():
    call = lambda: shoal.katz_centrality(cycle_graph(5), 0.6)  # noqa: E731
    assert_refused(call, "alpha=0.6", "largest eigenvalue", error=ConvergenceError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": -0.1}, ["alpha=-0.1"]),
        ({"beta": -1}, ["beta=-1"]),
        ({"beta": [1, 2]}, ["beta", "5"]),
        ({"beta": [1, 2, 3, 4, np.nan]}, ["beta"]),
        ({"beta": ["x"] * 5}, ["beta"]),
        ({"tolerance": "low"}, ["tolerance='low'"]),
        ({"max_iterations": 1.5}, ["max_iterations=1.5"]),
        ({"devices": "abacus"}, ["devices='abacus'"]),
        ({"execution": "async"}, ["execution='async' is not possible", "Katz"]),
    ],
    ids=repr,
)
def test_bad_options_of_katz(options, words):
    assert_refused(lambda: shoal.katz_centrality(cycle_graph(5), **options), *words, error=ArgumentError)


@pytest.mark.parametrize("run", [shoal.eigenvector_centrality, shoal.katz_centrality, shoal.hits])
def test_negative_weights_are_refused(run):
    graph = from_pairs([(0, 1), (1, 2)], weights=[1, -2])
    run(graph)
    assert_refused(lambda: run(graph, weighted=True), "weight -2", error=ArgumentError)


PATH = path_graph(4)


@corruptions(
    ("one value off", put("centrality", 0, 0.5), "sum to"),
    ("two values changed", cast("centrality", lambda a: a[[1, 0, 2, 3]]), "one more iteration moves"),
    ("negative", put("centrality", 1, -0.1), "centrality[1]=-0.1"),
    ("not a number", put("centrality", 1, np.nan), "centrality[1]=nan"),
    ("shape", cast("centrality", lambda a: a[:3]), "shape"),
)
@pytest.mark.parametrize("is_katz", [False, True])
def test_the_verifiers_of_centralities_catch(is_katz, corrupt, words):
    if is_katz:
        expected = katz_expected(PATH, 0.2, 1.0, False)
        found = {"centrality": expected / np.linalg.norm(expected)}
        check = lambda: verify_katz(PATH, **found, alpha=0.2)  # noqa: E731
    else:
        found = {"centrality": np.abs(np.linalg.eigh(dense(PATH))[1][:, -1])}
        check = lambda: verify_eigenvector(PATH, **found)  # noqa: E731
    check()
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        check()
    assert words in str(caught.value)


@corruptions(
    ("hubs changed", cast("hub", lambda a: a[::-1]), "moves hub"),
    ("authorities changed", cast("authority", lambda a: a[::-1]), "moves hub"),
    ("hubs off", cast("hub", lambda a: a * 2), "the hubs sum to"),
    ("all zero", cast("hub", np.zeros_like), "hub is zero"),
    ("negative", put("authority", 1, -0.1), "authority[1]=-0.1"),
)
def test_the_verifier_of_hits_catches(corrupt, words):
    graph = from_pairs([(0, 1), (0, 2), (3, 2)], directed=True)
    left, _, right = np.linalg.svd(dense(graph))
    found = {
        "hub": np.abs(left[:, 0]) / np.abs(left[:, 0]).sum(),
        "authority": np.abs(right[0]) / np.abs(right[0]).sum(),
    }
    verify_hits(graph, **found)
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        verify_hits(graph, **found)
    assert words in str(caught.value)
