# SPDX-License-Identifier: Apache-2.0
"""The kernels that draw and build graphs, run by the CPU, make the CPU's graphs: what can be known without a GPU."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import cuda_graphs
import cuda_on_host
from cuda_graphs import TYPES, assert_same
from shoal import Graph, generate
from shoal.backends.cuda import building, device, drawing, ranges
from shoal.errors import GraphError

pytestmark = [
    pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]


@pytest.fixture(scope="module")
def load_kernel(tmp_path_factory):
    return cuda_on_host.make_loader(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def on_host(load_kernel, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", cuda_on_host.make_cupy())
    for module in (building, drawing):
        monkeypatch.setattr(module, "load_kernel", load_kernel)


def on_gpu(array):
    return None if array is None else array.view(cuda_on_host.DeviceArray)


@pytest.mark.parametrize("scale", range(9))
def test_rmat(scale, monkeypatch):
    random = np.random.default_rng(scale)
    for edge_factor in (0, 3, 16):
        options = cuda_graphs.random_options(random)
        monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 2000)))
        assert_same(cuda_graphs.rmat(scale, edge_factor, **options), generate.rmat(scale, edge_factor, **options))


def test_rmat_of_many_vertices(monkeypatch):
    monkeypatch.setattr(ranges, "_MIN_CAPACITY", 2000)
    generated = {"a": 0.3, "b": 0.3, "c": 0.3, "weights": (1, 64)}
    graph = generate.uniform(num_vertices=2**20 + 3, num_edges=3000, weights=(1, 64))
    assert_same(cuda_graphs.uniform(2**20 + 3, 3000, weights=(1, 64)), graph)
    assert_same(cuda_graphs.rmat(17, 0, **generated), generate.rmat(17, 0, **generated))


@pytest.mark.parametrize(("vertex_dtype", "edge_dtype"), TYPES)
def test_uniform_and_grid(vertex_dtype, edge_dtype):
    types = {"vertex_dtype": vertex_dtype, "edge_dtype": edge_dtype}
    for num_vertices, num_edges in ((0, 0), (1, 5), (100, 0), (777, 3000)):
        expected = generate.uniform(num_vertices=num_vertices, num_edges=num_edges, weights="float64", **types)
        assert_same(cuda_graphs.uniform(num_vertices, num_edges, weights="float64", **types), expected)
    for rows, columns, drop in ((1, 1, 0.0), (1, 9, 0.3), (13, 17, 0.1), (20, 3, 0.99)):
        expected = generate.grid(rows, columns, drop=drop, weights=(-3, 3), **types)
        assert_same(cuda_graphs.grid(rows, columns, drop=drop, weights=(-3, 3), **types), expected)


@pytest.mark.parametrize("seed", range(16))
def test_edges_in_arrays(seed, monkeypatch):
    random = np.random.default_rng(seed)
    monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 1000)))
    num_vertices, src, dst, weights = cuda_graphs.random_edges(random, 400, 3000)
    options = {name: bool(random.integers(2)) for name in ("directed", "deduplicate", "drop_self_loops")}
    options["vertex_dtype"], options["edge_dtype"] = TYPES[seed % len(TYPES)]
    csr = building.build_csr(on_gpu(src), on_gpu(dst), num_vertices, weights=on_gpu(weights), **options)
    graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, **options)
    assert_same(csr, graph)
    if graph.is_directed:
        assert_same(building.reverse_csr(*csr, num_vertices), graph.reverse())


@pytest.mark.parametrize("seed", range(12))
def test_lists_by_degree(seed, monkeypatch):
    random = np.random.default_rng(seed)
    monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 1000)))
    num_vertices, src, dst, weights = cuda_graphs.random_edges(random, 400, 3000)
    types = dict(zip(("vertex_dtype", "edge_dtype"), TYPES[seed % len(TYPES)], strict=True))
    graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=bool(seed % 3), **types)
    csr = building.order_csr(on_gpu(graph.indptr), on_gpu(graph.indices), on_gpu(graph.weights))
    assert_same(csr, graph.optimized())
    if graph.is_directed:
        assert_same(building.reverse_csr(*csr, num_vertices, is_ranked=True), graph.optimized().reverse())


def test_a_graph_is_optimized_where_it_is(monkeypatch):
    monkeypatch.setattr(device, "find_device", device.CUDADevice)  # the kept ones would outlive this test
    graph = generate.uniform(num_vertices=50, num_edges=400, directed=True, weights=(1, 9))
    expected = graph.optimized()
    assert device.find_resident(expected) is None
    found = graph.optimized(device="cuda")
    assert found == expected
    assert found.is_optimized
    assert device.find_resident(found) == 0
    assert_same(building.CSR(*found._cache["on GPU", 0]), expected)
    for one in (found, expected.reverse()):
        assert_same(building.CSR(*device.CUDADevice(0).place(one).edges(incoming=True)), one.reverse())
    device.keep_on_gpu(graph, map(on_gpu, (graph.indptr, graph.indices, graph.weights)))
    assert device.find_resident(graph.optimized()) == 0
    assert device.find_resident(graph.optimized(device="cpu")) is None


@pytest.mark.parametrize("wrong", [-1, 5, 2**40])
def test_a_wrong_id_is_refused_with_its_place(wrong):
    ids = on_gpu(np.array([0, 1, wrong]))
    with pytest.raises(GraphError, match=rf"dst\[2\]={wrong} is not a vertex id; ids must be from 0 to 4"):
        building.build_csr(on_gpu(np.array([0, 1, 2])), ids, 5)


def test_negative_zero_counts_as_less():
    ends, weights = np.zeros(4, np.int32), np.array([0.0, -0.0, 0.0, -1.0], np.float32)
    csr = building.build_csr(on_gpu(ends), on_gpu(ends), 1, weights=on_gpu(weights), directed=True)
    assert np.signbit(csr.weights).tolist() == [True, True, False, False]
