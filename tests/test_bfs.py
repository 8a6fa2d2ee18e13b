# SPDX-License-Identifier: Apache-2.0
"""shoal.bfs against SciPy and NetworkX, and its rules on every kind of graph."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import LARGER, SPECIAL, cycle_graph, from_pairs, graphs, path_graph, random_graph, read_real, real_files
from shoal.algorithms.verify_bfs import verify_bfs
from shoal.errors import ArgumentError

DIRECTIONS = ["auto", "push", "pull"]
STOPS = st.integers(0, 6)


def check(graph, source, **options):
    """Run and compare with SciPy; verify the parents."""
    result = shoal.bfs(graph, source, **options)
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance(graph, source))
    verify_bfs(graph, source, result.distance, result.parent)
    return result


@given(graphs(any_width=True), st.sampled_from(DIRECTIONS), st.data())
def test_random_graphs(graph, direction, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    result = check(graph, source, direction=direction)
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance_networkx(graph, source))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name, direction):
    graph = SPECIAL[name]()
    for source in {0, graph.num_vertices // 2, graph.num_vertices - 1}:
        check(graph, source, direction=direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_on_every_core(name, direction):
    graph = LARGER[name]()
    for source in (0, 17, graph.num_vertices - 1):
        check(graph, source, direction=direction)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kronecker_graph(direction):
    graph = shoal.generate.rmat(scale=13, edge_factor=16, seed=1)
    check(graph, int(np.argmax(graph.degree)), direction=direction)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_graphs(path):
    graph = read_real(path)
    for source in (0, int(np.argmax(graph.degree))):
        check(graph, source)


def test_a_long_path_takes_a_superstep_for_each_vertex():
    result = check(path_graph(3000), 0)
    assert result.distance[-1] == 2999
    assert result.stats.to_dict()["num_supersteps"] >= 2999


def test_types_of_the_result():
    narrow, wide = SPECIAL["grid"](), SPECIAL["64-bit ids"]()
    assert shoal.bfs(narrow, 0).distance.dtype == np.int32
    assert shoal.bfs(narrow, 0).parent.dtype == np.int32
    assert shoal.bfs(wide, 0).distance.dtype == np.int32
    assert shoal.bfs(wide, 0).parent.dtype == np.int64


@pytest.mark.parametrize("source", [3, np.int32(3), np.int64(3), np.uint8(3), np.array(3)])
def test_source_of_any_integer_type(source):
    assert shoal.bfs(path_graph(5), source).distance.tolist() == [3, 2, 1, 0, 1]


def test_without_parents():
    graph = LARGER["hubs"]()
    result = shoal.bfs(graph, 5, parents=False)
    assert result.parent is None
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance(graph, 5))


@given(graphs(), st.sampled_from(DIRECTIONS), st.booleans(), st.data())
def test_a_batch_equals_single_runs(graph, direction, parents, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    sources = data.draw(st.lists(vertices, min_size=1, max_size=5))
    result = shoal.bfs(graph, sources, direction=direction, parents=parents)
    assert result.distance.shape == (len(sources), graph.num_vertices)
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance(graph, sources))
    verify_bfs(graph, sources, result.distance, result.parent)


@pytest.mark.parametrize("num_sources", [1, 2, 63, 64, 65, 130])
def test_batches_around_the_size_of_a_word(num_sources):
    graph = random_graph(1000, 6000, seed=5, directed=True)
    sources = np.random.default_rng(0).integers(0, 1000, num_sources)
    result = shoal.bfs(graph, sources)
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance(graph, sources))
    verify_bfs(graph, sources, result.distance, result.parent)


@given(graphs(), st.sampled_from(DIRECTIONS), STOPS, st.data())
def test_cutoff(graph, direction, cutoff, data):
    source = data.draw(st.integers(0, graph.num_vertices - 1))
    whole = oracles.bfs_distance(graph, source)
    result = shoal.bfs(graph, source, cutoff=cutoff, direction=direction)
    np.testing.assert_array_equal(result.distance, np.where(whole > cutoff, -1, whole))
    verify_bfs(graph, source, result.distance, result.parent, cutoff=cutoff)


def test_a_batch_on_64_bit_ids():
    graph = LARGER["64-bit"]()
    result = shoal.bfs(graph, [1, 2, 3])
    np.testing.assert_array_equal(result.distance, oracles.bfs_distance(graph, [1, 2, 3]))
    verify_bfs(graph, [1, 2, 3], result.distance, result.parent)


def test_cutoff_in_a_batch():
    result = shoal.bfs(path_graph(6), [0, 5], cutoff=2)
    assert result.distance.tolist() == [[0, 1, 2, -1, -1, -1], [-1, -1, -1, 2, 1, 0]]
    assert (result.parent[result.distance < 0] == -1).all()


@given(graphs(), st.sampled_from(DIRECTIONS), st.data())
def test_targets(graph, direction, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    source, targets = data.draw(vertices), data.draw(st.lists(vertices, min_size=1, max_size=4))
    whole = oracles.bfs_distance(graph, source)
    result = shoal.bfs(graph, source, targets=targets, direction=direction)
    np.testing.assert_array_equal(result.distance[targets], whole[targets])
    is_reached = result.distance >= 0
    np.testing.assert_array_equal(result.distance[is_reached], whole[is_reached])
    verify_bfs(graph, source, result.distance, result.parent, targets=targets)


def test_targets_end_the_search_early():
    graph = path_graph(2000)
    result = shoal.bfs(graph, 0, targets=[5, 3])
    assert result.distance[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert result.stats.to_dict()["num_supersteps"] < 20


@given(graphs(), st.data())
def test_paths(graph, data):
    source, target = (data.draw(st.integers(0, graph.num_vertices - 1)) for _ in range(2))
    result = shoal.bfs(graph, source)
    if result.distance[target] < 0:
        assert_refused(lambda: result.path(target), str(target), error=ArgumentError)
        return
    path = list(result.path(target))
    assert path[0] == source
    assert path[-1] == target
    assert len(path) == result.distance[target] + 1
    edges = set(zip(*(ends.tolist() for ends in oracles.edge_arrays(graph)), strict=True))
    assert all(step in edges for step in pairwise(path))


def test_paths_of_a_batch():
    result = shoal.bfs(path_graph(4), [0, 3])
    assert list(result.path(2, source=0)) == [0, 1, 2]
    assert list(result.path(2, source=1)) == [3, 2]


def test_deterministic_parents_are_the_smallest():
    graph = random_graph(2000, 30000, seed=6)
    results = [shoal.bfs(graph, 0, direction=direction, deterministic=True) for direction in DIRECTIONS * 2]
    src, dst = oracles.edge_arrays(graph)
    level = results[0].distance
    is_tight = (level[src] >= 0) & (level[src] + 1 == level[dst])
    smallest = np.full(graph.num_vertices, graph.num_vertices)
    np.minimum.at(smallest, dst[is_tight], src[is_tight])
    smallest = np.where(level < 0, -1, smallest)
    smallest[0] = 0
    for result in results:
        np.testing.assert_array_equal(result.parent, smallest)


def test_runs_at_once_in_several_threads():
    graph = LARGER["hubs"]()
    sources = list(range(0, 3000, 125))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda source: shoal.bfs(graph, source), sources))
    np.testing.assert_array_equal([result.distance for result in results], oracles.bfs_distance(graph, sources))


def test_many_runs_leave_the_graph_and_earlier_results_alone():
    graph = LARGER["hubs, directed"]()
    first = shoal.bfs(graph, 1)
    kept = first.distance.copy()
    for source in range(20):
        shoal.bfs(graph, source)
    np.testing.assert_array_equal(first.distance, kept)


def test_validate_runs_the_verifier():
    for direction in DIRECTIONS:
        shoal.bfs(LARGER["hubs"](), 0, validate=True, direction=direction)
    shoal.bfs(path_graph(9), [0, 3], validate=True, cutoff=2)
    shoal.bfs(path_graph(9), 0, validate=True, targets=[3])


def test_stats():
    graph = LARGER["uniform"]()
    totals = assert_counted(shoal.bfs(graph, 0, direction="push").stats)
    reached = oracles.bfs_distance(graph, 0) >= 0
    assert totals["edges_visited"] == graph.degree[reached].sum()
    assert totals["config"]["direction"] == "push"
    assert totals["bytes_sent"] == 0
    assert [set(step["direction"]) for step in totals["supersteps"]] == [{"push"}] * totals["num_supersteps"]


def test_pull_visits_fewer_edges_where_the_frontier_is_large():
    graph = shoal.generate.rmat(scale=13, edge_factor=16, seed=1)
    source = int(np.argmax(graph.degree))
    visited = {
        direction: shoal.bfs(graph, source, direction=direction).stats.to_dict()["edges_visited"]
        for direction in ("push", "auto")
    }
    assert visited["auto"] < 0.5 * visited["push"]


BAD_SOURCES = [5, -1, 10**12, 1.5, 0.0, "a", "0", None, True, float("nan"), b"0", {}]


@pytest.mark.parametrize("source", BAD_SOURCES, ids=repr)
def test_bad_source(source):
    assert_refused(lambda: shoal.bfs(cycle_graph(5), source), "source", error=ArgumentError)


@pytest.mark.parametrize("source", [[0, 5], [0, -1], [0.5], [[0, 1]], [0, "a"], [True]], ids=repr)
def test_bad_batch_of_sources(source):
    assert_refused(lambda: shoal.bfs(cycle_graph(5), source), "source", error=ArgumentError)


def test_no_source_in_an_empty_graph():
    assert_refused(lambda: shoal.bfs(from_pairs([], num_vertices=0), 0), "source", error=ArgumentError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cutoff": -1}, ["cutoff", "-1"]),
        ({"cutoff": 1.5}, ["cutoff", "1.5"]),
        ({"cutoff": "far"}, ["cutoff", "far"]),
        ({"cutoff": float("nan")}, ["cutoff", "nan"]),
        ({"targets": [5]}, ["targets", "5"]),
        ({"targets": [-1]}, ["targets", "-1"]),
        ({"targets": [0.5]}, ["targets"]),
        ({"targets": "all"}, ["targets", "all"]),
        ({"direction": "sideways"}, ["direction", "sideways", "auto", "push", "pull"]),
        ({"direction": "Push"}, ["direction", "Push", "push"]),
        ({"direction": 1}, ["direction", "1"]),
        ({"devices": "abacus"}, ["devices", "abacus"]),
        ({"devices": "cpu:0"}, ["devices", "cpu:0"]),
        ({"devices": ""}, ["devices"]),
    ],
    ids=repr,
)
def test_bad_options(options, words):
    assert_refused(lambda: shoal.bfs(cycle_graph(5), 0, **options), *words, error=ArgumentError)


@pytest.mark.parametrize("graph", [None, "graph.mtx", np.eye(3), [(0, 1)]], ids=["None", "name", "array", "list"])
def test_bad_graph(graph):
    assert_refused(lambda: shoal.bfs(graph, 0), "graph", error=ArgumentError)


@pytest.mark.parametrize("vertex", [5, -1, 1.5, "a"], ids=repr)
def test_path_to_no_vertex(vertex):
    result = shoal.bfs(cycle_graph(5), 0)
    assert_refused(lambda: result.path(vertex), str(vertex), error=ArgumentError)


def test_path_without_parents():
    result = shoal.bfs(cycle_graph(5), 0, parents=False)
    assert_refused(lambda: result.path(2), "parents", error=ArgumentError)


@pytest.mark.parametrize("row", [2, -1, 0.5, None], ids=repr)
def test_path_of_no_row(row):
    result = shoal.bfs(cycle_graph(5), [0, 1])
    assert_refused(lambda: result.path(2, source=row), "source", error=ArgumentError)
