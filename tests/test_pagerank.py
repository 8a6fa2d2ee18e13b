# SPDX-License-Identifier: Apache-2.0
"""shoal.pagerank against NetworkX (the same power iteration) and igraph (a linear solver)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import LARGER, SPECIAL, cycle_graph, from_pairs, graphs, path_graph, random_graph, read_real, real_files
from shoal.algorithms.verify_pagerank import verify_pagerank
from shoal.errors import ArgumentError, ConvergenceError, GraphError

# The ranks are then within damping / (1 - damping) * 1e-10 of the limit; a smaller change can drown in rounding.
TIGHT = {"tolerance": 1e-10, "max_iterations": 1000}


def check(graph, **options):
    """Iterate to the limit and compare with igraph; verify."""
    result = shoal.pagerank(graph, **TIGHT, **options)
    assert np.abs(result.rank - oracles.pagerank(graph, **options)).sum() < 1e-8
    verify_pagerank(graph, result.rank, **options)
    return result


@given(graphs(any_width=True), st.sampled_from([0.85, 0.5, 0.95, 0.0]))
def test_random_graphs(graph, damping):
    check(graph, damping=damping)


@given(graphs(weights="any"), st.booleans())
def test_weights_are_used_when_asked(graph, weighted):
    check(graph, weighted=weighted)


@given(graphs(weights="int32"), st.booleans(), st.data())
def test_ranks_and_personalization_equal_networkx(graph, weighted, data):
    values = st.integers(0, 5)
    start = data.draw(
        st.none() | st.lists(values, min_size=graph.num_vertices, max_size=graph.num_vertices).filter(any)
    )
    options = {"personalization": start, "weighted": weighted, "max_iterations": 500}
    found = shoal.pagerank(graph, **options).rank
    np.testing.assert_allclose(found, oracles.pagerank_networkx(graph, **options), rtol=1e-6, atol=1e-12)
    verify_pagerank(graph, found, personalization=start, weighted=weighted)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_on_every_core(name):
    check(LARGER[name]())


def test_larger_weighted_graph():
    check(random_graph(seed=20, directed=True, weights="float64"), weighted=True)


def test_kronecker_graph():
    check(shoal.generate.rmat(scale=12, edge_factor=16, seed=1, directed=True))


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_graphs(path):
    graph = read_real(path)
    result = shoal.pagerank(graph)
    np.testing.assert_allclose(result.rank, oracles.pagerank_iterated(graph, result.iterations), rtol=1e-6)
    verify_pagerank(graph, result.rank)


@pytest.mark.parametrize("iterations", [1, 2, 20])
@pytest.mark.parametrize("name", ["hubs", "uniform, directed, sparse", "star of 40000 leaves"])
def test_a_fixed_number_of_iterations(name, iterations):
    graph = LARGER[name]()
    result = shoal.pagerank(graph, iterations=iterations)
    assert result.iterations == iterations
    np.testing.assert_allclose(result.rank, oracles.pagerank_iterated(graph, iterations), rtol=1e-9)
    verify_pagerank(graph, result.rank, iterations=iterations)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9])
def test_stops_as_soon_as_the_change_is_below_the_tolerance(tolerance):
    graph = LARGER["hubs, directed"]()
    result = shoal.pagerank(graph, tolerance=tolerance, max_iterations=500)
    before, last, final = (oracles.pagerank_iterated(graph, result.iterations - back) for back in (2, 1, 0))
    assert np.abs(final - last).sum() < tolerance <= np.abs(last - before).sum()
    np.testing.assert_allclose(result.rank, final, rtol=1e-9)


def test_float32():
    graph = LARGER["hubs, directed"]()
    result = shoal.pagerank(graph, dtype="float32", tolerance=1e-5)
    assert result.rank.dtype == np.float32
    np.testing.assert_allclose(result.rank, oracles.pagerank(graph), rtol=1e-3, atol=1e-4 / graph.num_vertices)
    verify_pagerank(graph, result.rank, tolerance=1e-5)
    assert shoal.pagerank(graph).rank.dtype == np.float64


def test_personalization_by_array_and_mapping():
    graph = LARGER["uniform, directed, sparse"]()
    start = np.zeros(graph.num_vertices)
    start[[3, 70, 900]] = [1, 2, 5]
    by_array = check(graph, personalization=start)
    by_mapping = shoal.pagerank(graph, personalization={3: 10, 70: 20, 900: 50}, **TIGHT)
    np.testing.assert_allclose(by_array.rank, by_mapping.rank, rtol=1e-9)


def test_dangling_mass_goes_where_the_walk_starts():
    graph = path_graph(3, directed=True)
    found = shoal.pagerank(graph, personalization=[1, 0, 0], **TIGHT).rank
    expected = oracles.pagerank_networkx(graph, personalization=[1, 0, 0], **TIGHT)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_damping_of_zero_is_the_start():
    start = np.arange(1, 6) / 15
    np.testing.assert_allclose(shoal.pagerank(cycle_graph(5), 0.0, personalization=start).rank, start)


def test_parallel_edges_count_as_often_as_they_are_stored():
    found = shoal.pagerank(from_pairs([(0, 1), (0, 1), (0, 2)], directed=True), **TIGHT).rank
    assert found[1] > found[2]


def test_no_vertices():
    assert shoal.pagerank(from_pairs([], num_vertices=0)).rank.shape == (0,)


def test_equal_runs_give_equal_results():
    graph = LARGER["hubs"]()
    first, second = (shoal.pagerank(graph) for _ in range(2))
    np.testing.assert_array_equal(first.rank, second.rank)
    assert first.iterations == second.iterations


def test_validate_runs_the_verifier():
    graph = random_graph(300, 1500, directed=True, weights="float32")
    shoal.pagerank(graph, validate=True)
    shoal.pagerank(graph, validate=True, weighted=True, personalization={0: 1.0})
    shoal.pagerank(graph, validate=True, iterations=2)


def test_stats():
    graph = LARGER["hubs"]()
    result = shoal.pagerank(graph, iterations=7)
    totals = assert_counted(result.stats)
    assert totals["edges_visited"] == 7 * graph.num_edges


@pytest.mark.parametrize("max_iterations", [1, 5])
def test_no_convergence(max_iterations):
    graph = LARGER["hubs, directed"]()
    call = lambda: shoal.pagerank(graph, tolerance=1e-12, max_iterations=max_iterations)  # noqa: E731
    assert_refused(call, "max_iterations", str(max_iterations), "1e-12", error=ConvergenceError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"damping": -0.1}, ["damping", "-0.1"]),
        ({"damping": 1.5}, ["damping", "1.5"]),
        ({"damping": float("nan")}, ["damping", "nan"]),
        ({"damping": "most"}, ["damping", "most"]),
        ({"tolerance": -1e-6}, ["tolerance", "-1e-06"]),
        ({"tolerance": float("nan")}, ["tolerance", "nan"]),
        ({"tolerance": "low"}, ["tolerance", "low"]),
        ({"max_iterations": -1}, ["max_iterations", "-1"]),
        ({"max_iterations": 2.5}, ["max_iterations", "2.5"]),
        ({"iterations": -1}, ["iterations", "-1"]),
        ({"iterations": "many"}, ["iterations", "many"]),
        ({"personalization": [1, 2]}, ["personalization", "5"]),
        ({"personalization": [0] * 5}, ["personalization", "0"]),
        ({"personalization": [1, -1, 1, 1, 1]}, ["personalization", "-1"]),
        ({"personalization": [1, np.nan, 1, 1, 1]}, ["personalization", "nan"]),
        ({"personalization": [1, np.inf, 1, 1, 1]}, ["personalization", "inf"]),
        ({"personalization": {5: 1.0}}, ["personalization", "5"]),
        ({"personalization": {-1: 1.0}}, ["personalization", "-1"]),
        ({"personalization": {}}, ["personalization"]),
        ({"personalization": "mine"}, ["personalization", "mine"]),
        ({"dtype": "float16"}, ["dtype", "float16", "float32", "float64"]),
        ({"dtype": "int32"}, ["dtype", "int32"]),
        ({"devices": "abacus"}, ["devices", "abacus"]),
    ],
    ids=repr,
)
def test_bad_options(options, words):
    assert_refused(lambda: shoal.pagerank(cycle_graph(5), **options), *words, error=ArgumentError)


@pytest.mark.parametrize("weights", [[1, -2], [1.0, np.inf]], ids=repr)
def test_weights_that_are_no_probabilities(weights):
    graph = from_pairs([(0, 1), (1, 2)], weights=weights)
    assert_refused(lambda: shoal.pagerank(graph, weighted=True), "weight", error=(ArgumentError, GraphError))


def test_bad_graph():
    assert_refused(lambda: shoal.pagerank("graph.gr"), "graph", error=ArgumentError)


@pytest.mark.parametrize(("weight", "dtype"), [(1e-40, "float32"), (1e38, "float32"), (1e308, "float64")])
def test_out_weights_that_shares_cannot_be_made_of_are_refused(weight, dtype):
    graph = from_pairs([(0, 1), (1, 2)], weights=np.array([weight, 1.0]), directed=True)
    words = (f"out-weights of vertex 0 sum to {weight:g}; with dtype='{dtype}' they must sum to 0, or from ",)
    assert_refused(lambda: shoal.pagerank(graph, weighted=True, dtype=dtype), *words)
