# SPDX-License-Identifier: Apache-2.0
"""An optimized graph is the same graph with neighbours by falling degree, and every algorithm gives the same on it."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given

import shoal
from graphs import WIDTHS, graphs, random_graph
from shoal import Graph
from shoal.backends.cpu import csr
from test_every_config import ALGORITHMS, UNDIRECTED_ONLY, assert_same

#: Every type of ids, offsets and weights once: each pair compiles kernels of its own.
TYPES = [(WIDTHS[0], "int32"), (WIDTHS[0], "float64"), (WIDTHS[1], "float32"), (WIDTHS[2], None)]


def ordered(graph, degree):
    """Sort every row by falling degree, id and weight, the slow and plain way."""
    rows = np.repeat(np.arange(graph.num_vertices), graph.degree)
    weights = np.zeros(graph.num_edges) if graph.weights is None else graph.weights
    order = np.lexsort((weights, graph.indices, -degree[graph.indices], rows))
    arrays = graph.indptr, graph.indices[order], None if graph.weights is None else graph.weights[order]
    return Graph.from_csr(*arrays, directed=graph.is_directed, labels=graph.labels, check=False)


def assert_optimized(found, graph):
    assert found.is_optimized
    assert found == ordered(graph, graph.degree)
    assert found.reverse().is_optimized
    assert found.reverse() == ordered(graph.reverse(), graph.degree)
    for other in (found, found.reverse()):
        assert (other.vertex_dtype, other.edge_dtype) == (graph.vertex_dtype, graph.edge_dtype)
        assert other.weights is None or other.weights.dtype == graph.weights.dtype
        assert not other.indices.flags.writeable
        assert other.optimized() is other


@given(graphs(weights="int32"))
def test_neighbours_stand_by_falling_degree(graph):
    before = copy.deepcopy(graph)
    assert_optimized(graph.optimized(), graph)
    assert graph == before
    assert not graph.is_optimized


@pytest.mark.parametrize(("widths", "weights"), TYPES, ids=str)
def test_every_type(widths, weights):
    for is_directed in (False, True):
        graph = random_graph(
            500, 4000, weights=weights, directed=is_directed, vertex_dtype=widths[0], edge_dtype=widths[1]
        )
        assert_optimized(graph.optimized(), graph)


@pytest.mark.parametrize(("num_vertices", "num_threads"), [(3, 5), (3000, 2), (70_000, 1), (70_000, 5)])
def test_many_buckets_and_threads(num_vertices, num_threads, monkeypatch):
    monkeypatch.setattr(csr, "available_cores", lambda: range(num_threads))
    graph = random_graph(num_vertices, 2**17, weights="int32", directed=True, skew=6.0)
    assert_optimized(graph.optimized(), graph)


def test_ids_too_wide_for_32_bits_while_sorting(monkeypatch):
    graph = random_graph(3000, 2**16 + 1, directed=True)
    monkeypatch.setattr(csr, "_MIN_SPARE_BITS", 30)
    monkeypatch.setattr(csr, "_CHUNK", 1000)
    assert_optimized(graph.optimized(), graph)


def test_degrees_of_more_than_16_bits():
    hubs = np.repeat([7, 3, 5], [2**16 + 1, 2**16 + 9, 2])
    graph = Graph.from_edges(hubs, np.zeros_like(hubs), num_vertices=9, directed=True)
    graph = Graph.from_csr([*graph.indptr, graph.num_edges + 4], [*graph.indices, 5, 9, 7, 3])
    assert graph.optimized().indices[-4:].tolist() == [3, 7, 9, 5]


@pytest.mark.parametrize("num_vertices", [0, 1, 5])
@pytest.mark.parametrize("is_directed", [False, True])
def test_graphs_without_edges(num_vertices, is_directed):
    graph = Graph.from_edges([], [], num_vertices=num_vertices, directed=is_directed)
    assert_optimized(graph.optimized(), graph)


def test_the_offsets_are_shared():
    graph = random_graph(100, 500)
    assert np.shares_memory(graph.optimized().indptr, graph.indptr)


def test_labels_go_along():
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], labels=["a", "b", "c"], directed=True)
    assert graph.optimized().vertex("c") == 2
    assert graph.optimized().reverse().label_of(1) == "b"


def test_copies_and_reverses_know_it():
    plain = random_graph(200, 2000, directed=True, weights="int32")
    for graph in (plain.optimized(), plain.optimized().reverse()):
        for other in (pickle.loads(pickle.dumps(graph)), copy.copy(graph), copy.deepcopy(graph)):
            assert other == graph
            assert other.is_optimized
            assert other.optimized() is other
            assert other.reverse() == graph.reverse()
    reverse = plain.optimized().reverse()  # the graph it was made of is gone
    assert reverse.reverse() == plain.optimized()
    assert "optimized" in repr(reverse)
    assert "optimized" not in repr(plain)


@pytest.mark.parametrize("is_directed", [False, True])
def test_what_is_derived_is_ordinary_unless_it_is_the_same(is_directed):
    graph = random_graph(50, 400, directed=is_directed)
    fast = graph.optimized()
    for derive in (Graph.symmetrized, Graph.deduplicated, Graph.without_self_loops):
        assert derive(fast) == derive(graph)
        assert not derive(fast).is_optimized
    simple = graph.deduplicated().without_self_loops().optimized()
    assert simple.deduplicated() is simple
    assert simple.without_self_loops() is simple


def test_equality_is_of_arrays():
    star = Graph.from_edges([0, 0], [1, 2])
    assert star.optimized() == star  # nothing had to move
    path = Graph.from_edges([0, 1, 1], [1, 2, 3], directed=True)
    assert path.optimized().reverse() == path.reverse()
    assert random_graph(50, 400).optimized() != random_graph(50, 400)


@pytest.mark.parametrize("mmap", [False, True])
def test_files_keep_it(tmp_path, mmap):
    graph = random_graph(50, 400, directed=True, weights="int32").optimized()
    for number, written in enumerate((graph, graph.reverse())):
        path = tmp_path / f"{number}.shoal"
        shoal.write(written, path)
        found = shoal.read(path, mmap=mmap)
        assert found == written
        assert found.is_optimized
        assert found.reverse() == written.reverse()
        assert not shoal.read(path, directed=False, mmap=mmap).is_optimized
        assert not shoal.read(path, deduplicate=True, mmap=mmap).is_optimized


@pytest.mark.parametrize("suffix", [".txt", ".mtx", ".graph", ".parquet", ".npz", ".sg"])
def test_other_files_have_the_same_edges(tmp_path, suffix):
    graph = random_graph(50, 400).deduplicated()
    path = tmp_path / f"graph{suffix}"
    shoal.write(graph.optimized(), path)
    found = shoal.read(path, num_vertices=50, directed=False)
    np.testing.assert_array_equal(found.to_scipy().toarray(), graph.to_scipy().toarray())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_same(algorithm):
    run = ALGORITHMS[algorithm]
    for is_directed in (False,) if algorithm in UNDIRECTED_ONLY else (False, True):
        graph = random_graph(300, 3000, weights="int32", directed=is_directed)
        assert_same(run(graph.optimized()), run(graph))


def test_devices_have_parts_of_it():
    graph = random_graph(300, 3000, weights="int32", directed=True)
    run, how = ALGORITHMS["pagerank"], {"devices": "cpu:3", "duplication": "one-hop"}
    assert_same(run(graph.optimized(), **how), run(graph))


def test_device_is_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    graph = Graph.from_edges([0], [1])
    with pytest.raises(shoal.ShoalError, match="device='cuda' needs CuPy"):
        graph.optimized(device="cuda")
    with pytest.raises(shoal.ArgumentError, match="device='gpu' is not known; allowed: cpu, cuda"):
        graph.optimized(device="gpu")
    with pytest.raises(shoal.ArgumentError, match="device=0 is not known"):
        graph.optimized().optimized(device=0)
    assert graph.optimized(device="cpu") == graph.optimized()
