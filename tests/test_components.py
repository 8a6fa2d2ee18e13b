# SPDX-License-Identifier: Apache-2.0
"""shoal.connected_components against SciPy and NetworkX."""

from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import LARGER, SPECIAL, from_pairs, graphs, path_graph, random_graph, read_real, real_files, real_graph
from shoal.algorithms.verify_components import verify_components
from shoal.errors import ArgumentError


def check(graph, **options):
    """Run and compare with SciPy; verify."""
    result = shoal.connected_components(graph, **options)
    np.testing.assert_array_equal(result.label, oracles.component_labels(graph))
    assert result.count == len(np.unique(result.label))
    verify_components(graph, result.label, result.count)
    return result


@given(graphs(min_vertices=0, any_width=True))
def test_random_graphs(graph):
    result = check(graph)
    assert result.count == nx.number_weakly_connected_components(oracles.networkx_graph(graph))


@given(graphs(max_vertices=60, max_edges=40))
def test_random_sparse_graphs(graph):
    check(graph)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("name", LARGER)
def test_larger_graphs_on_every_core(name):
    check(LARGER[name]())


@pytest.mark.parametrize("num_edges", [500, 5000, 10000, 40000])
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_before_and_after_a_giant_component_forms(num_edges, directed):
    check(random_graph(10000, num_edges, seed=num_edges, skew=1.0, directed=directed))


@pytest.mark.parametrize("seed", range(5))
def test_long_chains_in_random_order(seed):
    """Ids that jump about make label propagation slow and hooking deep."""
    order = np.random.default_rng(seed).permutation(5000)
    keep = np.arange(4999) % 1000 != 999
    check(shoal.Graph.from_edges(order[:-1][keep], order[1:][keep], num_vertices=5000, directed=bool(seed % 2)))


def test_kronecker_graph():
    check(shoal.generate.rmat(scale=14, edge_factor=4, seed=1))


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_graphs(path):
    check(read_real(path))


# Counted by others: see the collections the files come from.
@pytest.mark.parametrize(
    ("name", "count", "largest"),
    [("netscience.mtx.gz", 396, 379), ("wiki-Vote.txt.gz", 24, 7066), ("facebook_combined.txt.gz", 1, 4039)],
)
def test_published_counts(name, count, largest):
    result = shoal.connected_components(real_graph(name))
    assert result.count == count
    assert np.bincount(result.label).max() == largest


def test_no_vertices():
    result = shoal.connected_components(from_pairs([], num_vertices=0))
    assert result.count == 0
    assert result.label.shape == (0,)


def test_directions_do_not_matter():
    graph = random_graph(4000, 3000, seed=12, directed=True)
    label = shoal.connected_components(graph).label
    np.testing.assert_array_equal(label, shoal.connected_components(graph.reverse()).label)
    np.testing.assert_array_equal(label, shoal.connected_components(graph.symmetrized()).label)


def test_types_of_the_result():
    assert shoal.connected_components(SPECIAL["grid"]()).label.dtype == np.int32
    assert shoal.connected_components(SPECIAL["64-bit ids"]()).label.dtype == np.int64
    assert isinstance(shoal.connected_components(SPECIAL["grid"]()).count, int)


def test_runs_at_once_in_several_threads():
    cases = [random_graph(3000, 2500, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for graph, result in zip(cases, pool.map(shoal.connected_components, cases), strict=True):
            np.testing.assert_array_equal(result.label, oracles.component_labels(graph))


def test_validate_runs_the_verifier():
    shoal.connected_components(LARGER["uniform, directed, sparse"](), validate=True)


def test_stats():
    totals = assert_counted(shoal.connected_components(path_graph(100)).stats)
    assert totals["edges_visited"] > 0


@pytest.mark.parametrize("graph", [None, "graph.mtx", np.eye(3)], ids=["None", "name", "array"])
def test_bad_graph(graph):
    assert_refused(lambda: shoal.connected_components(graph), "graph", error=ArgumentError)


@pytest.mark.parametrize("devices", ["abacus", "cpu:0", 4, ""], ids=repr)
def test_bad_devices(devices):
    assert_refused(lambda: shoal.connected_components(path_graph(3), devices=devices), "devices", error=ArgumentError)
