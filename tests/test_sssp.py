# SPDX-License-Identifier: Apache-2.0
"""shoal.sssp against SciPy and NetworkX: every type of weight, zero weights, cutoffs, targets, paths."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

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
    cycle_graph,
    from_pairs,
    graphs,
    grid_graph,
    path_graph,
    random_graph,
    read_real,
    real_files,
)
from shoal.algorithms.verify_sssp import verify_sssp
from shoal.errors import ArgumentError, GraphError

WEIGHT_TYPES = ["int32", "float32", "float64"]


def assert_distances(graph, found, expected):
    """Equal where sums are exact, close where they are rounded."""
    if graph.weights is None or graph.weights.dtype.kind == "i":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5 if graph.weights.dtype == np.float32 else 1e-12)


def check(graph, source, **options):
    """Run and compare with SciPy; verify the parents."""
    result = shoal.sssp(graph, source, **options)
    assert_distances(graph, result.distance, oracles.sssp_distance(graph, source))
    verify_sssp(graph, source, result.distance, result.parent)
    return result


@given(graphs(weights="any", any_width=True), st.data())
def test_random_weighted_graphs(graph, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    result = check(graph, source)
    assert_distances(graph, result.distance, oracles.sssp_distance_networkx(graph, source))


@given(graphs(), st.data())
def test_unweighted_graphs_count_every_edge_as_one(graph, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    result = check(graph, source)
    np.testing.assert_array_equal(
        np.where(np.isinf(result.distance), -1, result.distance), shoal.bfs(graph, source).distance
    )


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name):
    graph = SPECIAL[name]()
    for source in {0, graph.num_vertices // 2, graph.num_vertices - 1}:
        check(graph, source)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", WEIGHT_TYPES)
def test_larger_graphs_on_every_core(weights, directed):
    graph = random_graph(seed=7, weights=weights, directed=directed)
    for source in (0, 17):
        check(graph, source)


@pytest.mark.parametrize("name", LARGER)
def test_larger_unweighted_graphs(name):
    check(LARGER[name](), 3)


def test_grid_of_random_weights():
    pairs = np.column_stack(oracles.edge_arrays(grid_graph(60, 70)))
    weights = np.random.default_rng(3).integers(1, 256, len(pairs))
    check(from_pairs(pairs.tolist(), weights=weights, directed=True), 0)


def test_kronecker_graph():
    graph = shoal.generate.rmat(scale=12, edge_factor=16, seed=1, weights=(1, 255))
    check(graph, int(np.argmax(graph.degree)))


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_graphs(path):
    graph = read_real(path)
    for source in (0, int(np.argmax(graph.degree))):
        check(graph, source)


@pytest.mark.parametrize("weights", WEIGHT_TYPES)
@pytest.mark.parametrize("delta", [None, 5e-324, 1e-300, 0.01, 0.5, 1, 100, 1e9, 1e300])
def test_any_delta_gives_the_same_distances(delta, weights):
    graph = random_graph(800, 4000, seed=8, weights=weights)
    check(graph, 5, delta=delta)


@pytest.mark.parametrize(
    ("weights", "dtype"), [("int32", "float64"), ("float32", "float32"), ("float64", "float64"), (None, "float64")]
)
def test_type_of_distances(weights, dtype):
    result = shoal.sssp(random_graph(50, 100, weights=weights), 0)
    assert result.distance.dtype == dtype
    assert result.parent.dtype == np.int32


def test_sums_beyond_32_bits_are_exact():
    top = 2**31 - 1
    result = check(path_graph(6, weights=np.full(5, top, np.int32)), 0)
    assert result.distance.tolist() == [top * hop for hop in range(6)]


def test_weights_of_very_different_size():
    result = check(path_graph(5, weights=[1e-300, 1e-3, 1e3, 1e300], directed=True), 0)
    assert result.distance[4] == 1e300
    check(path_graph(4, weights=np.array([1e-40, 1e-38, 1e38], dtype=np.float32)), 0)
    check(path_graph(5, weights=[5e-324, 5e-324, 1e308, 1e-3]), 0)
    check(path_graph(4, weights=[5e-324, 0.0, 5e-324]), 0)


def test_infinite_weights_join_nothing():
    result = shoal.sssp(from_pairs([(0, 1), (1, 2)], weights=[1.0, np.inf]), 0)
    assert result.distance.tolist() == [0, 1, np.inf]
    assert result.parent.tolist() == [0, 0, -1]


def test_negative_zero_is_zero():
    check(path_graph(4, weights=[-0.0, 0.0, -0.0]), 0)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_parents_are_acyclic_where_all_weights_are_zero(directed, deterministic):
    graph = random_graph(400, 3000, seed=9, directed=directed, skew=1.0)
    src, dst = oracles.edge_arrays(graph)
    zeros = shoal.Graph.from_edges(src, dst, np.zeros(len(src), np.int32), num_vertices=400, directed=True)
    for source in (0, 1, 2):
        result = check(zeros, source, deterministic=deterministic)
        assert set(result.distance.tolist()) <= {0.0, np.inf}


@given(graphs(weights="int32", max_vertices=8, max_edges=30), st.data())
def test_parents_are_acyclic_with_some_zero_weights(graph, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    result = shoal.sssp(graph, source)
    for vertex in np.flatnonzero(np.isfinite(result.distance)):
        path = list(result.path(int(vertex)))
        assert path[0] == source
        assert len(set(path)) == len(path)


def test_deterministic_parents_are_always_the_same():
    graph = random_graph(2000, 20000, seed=10, weights="int32")
    results = [shoal.sssp(graph, 0, deterministic=True, delta=delta) for delta in (None, 1, 50, 1000)]
    for result in results[1:]:
        np.testing.assert_array_equal(result.parent, results[0].parent)


def test_without_parents():
    graph = random_graph(weights="int32")
    result = shoal.sssp(graph, 5, parents=False)
    assert result.parent is None
    verify_sssp(graph, 5, result.distance)


@given(graphs(weights="any"), st.data())
def test_a_batch_equals_single_runs(graph, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    sources = data.draw(st.lists(vertices, min_size=1, max_size=5))
    result = shoal.sssp(graph, sources)
    assert result.distance.shape == (len(sources), graph.num_vertices)
    assert_distances(graph, result.distance, oracles.sssp_distance(graph, sources))
    verify_sssp(graph, sources, result.distance, result.parent)


def test_a_large_batch():
    graph = random_graph(500, 3000, seed=11, weights="int32")
    sources = np.arange(0, 500, 7)
    result = shoal.sssp(graph, sources)
    np.testing.assert_array_equal(result.distance, oracles.sssp_distance(graph, sources))


@given(graphs(weights="int32"), st.integers(0, 12) | st.floats(0, 12), st.data())
def test_cutoff(graph, cutoff, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    whole = oracles.sssp_distance(graph, source)
    result = shoal.sssp(graph, source, cutoff=cutoff)
    np.testing.assert_array_equal(result.distance, np.where(whole > cutoff, np.inf, whole))
    verify_sssp(graph, source, result.distance, result.parent, cutoff=cutoff)


@given(graphs(weights="int32"), st.data())
def test_targets(graph, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    source, targets = data.draw(vertices), data.draw(st.lists(vertices, min_size=1, max_size=4))
    whole = oracles.sssp_distance(graph, source)
    result = shoal.sssp(graph, source, targets=targets)
    np.testing.assert_array_equal(result.distance[targets], whole[targets])
    is_reached = np.isfinite(result.distance)
    np.testing.assert_array_equal(result.distance[is_reached], whole[is_reached])
    verify_sssp(graph, source, result.distance, result.parent, targets=targets)


def test_targets_end_the_search_early():
    graph = path_graph(3000, weights=np.ones(2999, np.int32))
    whole, early = shoal.sssp(graph, 0), shoal.sssp(graph, 0, targets=[5])
    assert early.distance[5] == 5
    assert early.stats.to_dict()["edges_visited"] < 0.5 * whole.stats.to_dict()["edges_visited"]


@given(graphs(weights="int32"), st.data())
def test_paths(graph, data):
    source, target = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
    result = shoal.sssp(graph, source)
    if np.isinf(result.distance[target]):
        assert_refused(lambda: result.path(target), str(target), error=ArgumentError)
        return
    path = list(result.path(target))
    src, dst = oracles.edge_arrays(graph)
    lightest = {}
    for edge, weight in zip(zip(src.tolist(), dst.tolist(), strict=True), graph.weights.tolist(), strict=True):
        lightest[edge] = min(weight, lightest.get(edge, weight))
    assert (path[0], path[-1]) == (source, target)
    assert sum(lightest[step] for step in pairwise(path)) == result.distance[target]


def test_runs_at_once_in_several_threads():
    graph = random_graph(weights="int32")
    sources = list(range(0, 3000, 250))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda source: shoal.sssp(graph, source), sources))
    np.testing.assert_array_equal([result.distance for result in results], oracles.sssp_distance(graph, sources))


def test_validate_runs_the_verifier():
    shoal.sssp(random_graph(weights="float32"), 0, validate=True)
    shoal.sssp(random_graph(weights="int32"), 0, validate=True, parents=False)
    shoal.sssp(path_graph(9, weights=[2] * 8), [0, 3], validate=True, cutoff=5)
    shoal.sssp(path_graph(9, weights=[2] * 8), 0, validate=True, targets=[3])


def test_stats():
    graph = random_graph(weights="int32")
    totals = assert_counted(shoal.sssp(graph, 0).stats)
    is_reached = np.isfinite(oracles.sssp_distance(graph, 0))
    assert totals["edges_visited"] >= graph.degree[is_reached].sum()


@pytest.mark.parametrize("dtype", WEIGHT_TYPES)
def test_negative_weight(dtype):
    graph = from_pairs([(0, 1), (1, 2), (3, 4)], weights=np.array([1, 2, -3], dtype=dtype))
    assert_refused(lambda: shoal.sssp(graph, 0), "weight", "-3", "negative", error=(ArgumentError, GraphError))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weight_that_is_no_number(dtype):
    weights = np.array([1, np.nan], dtype=dtype)
    assert_refused(lambda: shoal.sssp(from_pairs([(0, 1), (1, 2)], weights=weights), 0), "weight", error=GraphError)


@pytest.mark.parametrize("source", [5, -1, 10**12, 1.5, "a", None, True, float("nan"), [0, 5], [0.5]], ids=repr)
def test_bad_source(source):
    assert_refused(lambda: shoal.sssp(cycle_graph(5), source), "source", error=ArgumentError)


def test_no_source_in_an_empty_graph():
    assert_refused(lambda: shoal.sssp(from_pairs([], num_vertices=0), 0), "source", error=ArgumentError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0}, ["delta", "0"]),
        ({"delta": -1.5}, ["delta", "-1.5"]),
        ({"delta": float("nan")}, ["delta", "nan"]),
        ({"delta": "wide"}, ["delta", "wide"]),
        ({"cutoff": -1}, ["cutoff", "-1"]),
        ({"cutoff": float("nan")}, ["cutoff", "nan"]),
        ({"cutoff": "far"}, ["cutoff", "far"]),
        ({"targets": [5]}, ["targets", "5"]),
        ({"targets": [1.5]}, ["targets"]),
        ({"devices": "abacus"}, ["devices", "abacus"]),
    ],
    ids=repr,
)
def test_bad_options(options, words):
    assert_refused(lambda: shoal.sssp(cycle_graph(5), 0, **options), *words, error=ArgumentError)


def test_bad_graph():
    assert_refused(lambda: shoal.sssp("graph.gr", 0), "graph", error=ArgumentError)


def test_a_far_bucket_of_stale_entries_does_not_end_the_run():
    weights = np.array([1000, 10, 10, 2000, 5], np.int32)
    graph = shoal.Graph.from_edges([0, 0, 1, 0, 3], [2, 1, 2, 3, 4], weights, directed=True)
    assert shoal.sssp(graph, 0, delta=1).distance.tolist() == [0, 10, 20, 2000, 2005]


# Distances and parents as words


def positive_graph(seed, num_edges=3000, is_weighted=True, directed=False):
    random = np.random.default_rng(seed)
    src, dst = random.integers(0, 500, (2, num_edges))
    weights = random.integers(1, 100, num_edges).astype(np.int32) if is_weighted else None
    return shoal.Graph.from_edges(src, dst, weights, num_vertices=500, directed=directed)


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:1x2", "cpu:3x1"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_words_hold_distances_and_parents(directed, is_weighted, devices):
    graph = positive_graph(3, is_weighted=is_weighted, directed=directed)
    for source in (0, 17):
        result = check(graph, source, devices=devices)
        assert result.stats.algorithm == "PackedSSSP"


def test_words_hold_the_smallest_parents(monkeypatch):
    graph = positive_graph(4, num_edges=6000)
    runs = [shoal.sssp(graph, 5, deterministic=True, devices=devices) for devices in ("cpu:1x2", "cpu:4x1")]
    monkeypatch.setattr(sys.modules["shoal.algorithms.sssp"], "takes_words", lambda *given, **how: False)
    expected = shoal.sssp(graph, 5, deterministic=True)
    assert expected.stats.algorithm == "SSSP"
    for found in runs:
        assert found.stats.algorithm == "PackedSSSP"
        np.testing.assert_array_equal(found.distance, expected.distance)
        np.testing.assert_array_equal(found.parent, expected.parent)


def test_words_end_at_cutoffs_and_targets():
    graph = positive_graph(5)
    exact = oracles.sssp_distance(graph, 0)
    cutoff = float(np.median(exact[np.isfinite(exact)]))
    near = shoal.sssp(graph, 0, cutoff=cutoff)
    np.testing.assert_array_equal(near.distance, np.where(exact <= cutoff, exact, np.inf))
    verify_sssp(graph, 0, near.distance, near.parent, cutoff=cutoff)
    targets = [3, 40]
    found = shoal.sssp(graph, 0, targets=targets)
    np.testing.assert_array_equal(found.distance, np.where(exact <= exact[targets].max(), exact, np.inf))
    verify_sssp(graph, 0, found.distance, found.parent, targets=targets)
    assert ((found.parent == -1) == np.isinf(found.distance)).all()
    batch = shoal.sssp(graph, [0, 17])
    assert batch.distance.shape == batch.parent.shape == (2, 500)
    np.testing.assert_array_equal(batch.distance[0], exact)
    assert len(shoal.sssp(graph, 0, targets=[]).parent) == 500


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (positive_graph(1), True),
        (positive_graph(1, is_weighted=False), True),
        (random_graph(50, 200, seed=1, weights="float32"), False),
        (from_pairs([(0, 1), (1, 2)], weights=[1, 3], vertex_dtype="int64"), False),
        (from_pairs([(0, 1), (1, 2)], weights=[0, 3]), True),
        (from_pairs([(0, 1), (1, 2)], weights=[2**29, 3]), True),  # no path has an edge twice
        (from_pairs([(0, 1), (1, 2)], weights=[2**30, 3]), False),
        (from_pairs([(0, 1), (1, 2)], weights=[0, 2**30 - 1]), False),  # nor has a word room to count
        (from_pairs([(0, 1), (1, 2)], weights=[2**53, 2**53]), False),
    ],
)
def test_where_words_fit(graph, expected):
    """Where a distance is whole and short enough, also if edges of weight 0 are counted, and an id has 32 bits."""
    assert (shoal.sssp(graph, 0).stats.algorithm == "PackedSSSP") == expected


def flat_graph(seed, directed=False):
    """A graph half of whose edges have weight 0, in both directions, so that words without a count make cycles."""
    random = np.random.default_rng(seed)
    src, dst = random.integers(0, 300, (2, 900))
    weights = random.integers(0, 3, 900).astype(np.int32) * random.integers(0, 50, 900).astype(np.int32)
    return shoal.Graph.from_edges(src, dst, weights, num_vertices=300, directed=directed)


@pytest.mark.parametrize("how", [{"devices": "cpu:1x2"}, {"devices": "cpu:3x1"},
                                 {"devices": "cpu:3x1", "execution": "async", "partition": "random"}])  # fmt: skip
@pytest.mark.parametrize("directed", [False, True])
def test_words_count_edges_of_weight_0(directed, how):
    for seed in range(5):
        graph = flat_graph(seed, directed)
        result = check(graph, seed, **how)
        assert result.stats.algorithm == "PackedSSSP"
        exact = oracles.sssp_distance(graph, seed)
        cutoff = float(np.median(exact[np.isfinite(exact)]))
        near = shoal.sssp(graph, seed, cutoff=cutoff, **how)
        np.testing.assert_array_equal(near.distance, np.where(exact <= cutoff, exact, np.inf))
        verify_sssp(graph, seed, near.distance, near.parent, cutoff=cutoff)


def test_where_words_count_targets_and_smallest_parents_are_found_otherwise():
    graph = flat_graph(7)
    exact = oracles.sssp_distance(graph, 0)
    found = shoal.sssp(graph, 0, targets=[5, 9])
    np.testing.assert_array_equal(found.distance, np.where(exact <= exact[[5, 9]].max(), exact, np.inf))
    smallest = [shoal.sssp(graph, 0, deterministic=True, devices=devices) for devices in ("cpu:1", "cpu:3x1")]
    np.testing.assert_array_equal(smallest[0].parent, smallest[1].parent)
    assert {found.stats.algorithm, smallest[0].stats.algorithm} == {"SSSP"}
