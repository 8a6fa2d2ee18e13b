# SPDX-License-Identifier: Apache-2.0
"""output="device": every algorithm's arrays are CuPy's, with the CPU's values; what a result does works on them."""

import numpy as np
import pytest

import shoal
from graphs import from_pairs, random_graph
from samples import SIX, Hops, Totals, everyone
from test_every_config import ALGORITHMS, assert_same
from test_output import CALLS

GRAPH = random_graph(3000, 20000, seed=1, directed=True, weights="int32", skew=3.0)
ON_GPU = {"devices": "cuda", "output": "device"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_arrays_are_cupy_s(algorithm):
    import cupy

    run = ALGORITHMS[algorithm]
    for graph in (GRAPH, GRAPH.optimized()):
        found = run(graph, **ON_GPU)
        assert isinstance(found, cupy.ndarray)
        assert_same(found.get(), run(graph, devices="cpu"))


@pytest.mark.parametrize("name", CALLS)
def test_results_do_all_that_others_do(name):
    import cupy

    found, expected = CALLS[name](validate=True, **ON_GPU), CALLS[name](devices="cpu")
    for column in expected.columns:
        if getattr(expected, column) is None:
            assert getattr(found, column) is None
            continue
        assert isinstance(getattr(found, column), cupy.ndarray)
        assert type(found.table().get(column, np.empty(0))) is np.ndarray
        assert type(getattr(found.to_host(), column)) is np.ndarray
        if column != "parent":  # of several, any may come first
            assert_same(getattr(found.to_host(), column), getattr(expected, column))
    assert set(found.summary()) == set(expected.summary())
    assert "arrays on the GPU: " in repr(found)
    if hasattr(expected, "reached"):
        assert isinstance(found.reached, cupy.ndarray)
        np.testing.assert_array_equal(found.reached.get(), expected.reached)


def test_a_batch_of_many_sources():
    sources = list(range(100))
    found = shoal.bfs(GRAPH, sources, validate=True, **ON_GPU)
    np.testing.assert_array_equal(found.distance.get(), shoal.bfs(GRAPH, sources, devices="cpu").distance)


def test_a_path():
    distance = shoal.bfs(GRAPH, 0, devices="cpu").distance
    farthest = int(distance.argmax())
    path = shoal.bfs(GRAPH, 0, **ON_GPU).path(farthest)
    assert type(path) is np.ndarray
    assert (distance[path] == np.arange(distance[farthest] + 1)).all()


def test_programs():
    import cupy

    found = shoal.run(Totals(everyone), SIX, **ON_GPU)
    assert isinstance(found.seen, cupy.ndarray)
    assert (found.amount, found.extra) == (0.5, 12)
    assert found.to_host().seen.tolist() == [6] * 6
    level = shoal.run(Hops(), SIX, source=0, **ON_GPU).level
    assert shoal.bfs(SIX, 0, devices="cpu").distance.tolist() == level.get().tolist()


def test_narrow_fields_are_whole():
    """A field of bytes has room to the end of its last word on the GPU, which is not part of it."""
    graph = from_pairs([(0, 1), (1, 2)], num_vertices=7)
    found = shoal.betweenness_centrality(graph, [0, 1, 2], **ON_GPU).centrality
    assert found.shape == (7,)
    assert_same(found.get(), shoal.betweenness_centrality(graph, [0, 1, 2], devices="cpu").centrality)


def test_results_stay_when_other_runs_follow():
    placed = shoal.place(GRAPH, "cuda")
    first = shoal.bfs(placed, 0, output="device")
    expected = first.distance.get()
    for source in range(1, 20):
        shoal.bfs(placed, source)
        shoal.bfs(placed, source, output="device")
    np.testing.assert_array_equal(first.distance.get(), expected)
