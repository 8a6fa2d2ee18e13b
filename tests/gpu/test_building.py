# SPDX-License-Identifier: Apache-2.0
"""Graphs drawn and built on the GPU are, bit for bit, those of the CPU, and take little memory beside the result."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import cuda_graphs
from cuda_graphs import TYPES, assert_same
from shoal import Graph, bfs, generate
from shoal.backends.cuda import building, drawing, ranges
from shoal.backends.cuda.device import find_device, find_resident
from shoal.errors import ArgumentError, GraphError

MAX_PEAK_BY_CSR = 3.0


def on_gpu(array):
    import cupy

    return None if array is None else cupy.asarray(array)


@pytest.mark.parametrize("scale", range(17))
def test_rmat_is_that_of_the_cpu(scale, monkeypatch):
    random = np.random.default_rng(scale)
    for edge_factor in (0, 1, 5, 16, 32):
        options = cuda_graphs.random_options(random)
        monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 2**16)))
        assert_same(cuda_graphs.rmat(scale, edge_factor, **options), generate.rmat(scale, edge_factor, **options))


@pytest.mark.parametrize("quadrants", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.1, 0.2, 0.7), (0.25, 0.25, 0.25)])
def test_rmat_with_any_quadrants(quadrants):
    options = dict(zip("abc", quadrants, strict=True))
    assert_same(cuda_graphs.rmat(9, 8, **options), generate.rmat(9, 8, **options))


@pytest.mark.parametrize(("vertex_dtype", "edge_dtype"), TYPES)
@pytest.mark.parametrize(
    ("num_vertices", "num_edges"), [(0, 0), (1, 5), (2, 9), (100, 0), (777, 30_000), (1 << 17, 5000), (300_000, 10**6)]
)
def test_uniform_is_that_of_the_cpu(num_vertices, num_edges, vertex_dtype, edge_dtype):
    options = {"seed": 5, "weights": (1, 255), "vertex_dtype": vertex_dtype, "edge_dtype": edge_dtype}
    expected = generate.uniform(num_vertices=num_vertices, num_edges=num_edges, **options)
    assert_same(cuda_graphs.uniform(num_vertices, num_edges, **options), expected)


@pytest.mark.parametrize(("vertex_dtype", "edge_dtype"), TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9), (7, 1), (13, 17), (700, 900)])
@pytest.mark.parametrize("drop", [0.0, 0.1, 0.99])
def test_grid_is_that_of_the_cpu(rows, columns, drop, vertex_dtype, edge_dtype):
    options = {"drop": drop, "weights": "float32", "vertex_dtype": vertex_dtype, "edge_dtype": edge_dtype}
    assert_same(cuda_graphs.grid(rows, columns, **options), generate.grid(rows, columns, **options))


@pytest.mark.parametrize("weights", [(1, 64), (0, 0), (-(2**31), 2**31 - 1), "float32", "float64"])
def test_weights_are_those_of_the_cpu(weights):
    assert_same(cuda_graphs.rmat(14, 16, weights=weights), generate.rmat(14, 16, weights=weights))


def test_drawn_edges_are_those_of_the_cpu():
    as_drawn = {"directed": True, "deduplicate": False, "drop_self_loops": False}
    vertex_dtype = np.dtype(np.int32)
    thresholds = generate._quadrant_thresholds(0.57, 0.19, 0.19)
    ends = {
        "rmat": drawing.draw_rmat(12, 16 << 12, thresholds, seed=1, shuffle=True, vertex_dtype=vertex_dtype),
        "uniform": drawing.draw_uniform(1 << 12, 16 << 12, seed=1, vertex_dtype=vertex_dtype),
    }
    for name, (src, dst) in ends.items():
        expected = getattr(generate, name)(12, 16, seed=1, **as_drawn)
        found = Graph.from_edges(src.get(), dst.get(), num_vertices=1 << 12, directed=True)
        assert found == expected, name


@pytest.mark.parametrize("seed", range(60))
def test_edges_in_arrays_become_the_csr_of_the_cpu(seed, monkeypatch):
    random = np.random.default_rng(seed)
    monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 2**14)))
    num_vertices, src, dst, weights = cuda_graphs.random_edges(random, 5000, 60_000)
    options = {name: bool(random.integers(2)) for name in ("directed", "deduplicate", "drop_self_loops")}
    options["vertex_dtype"], options["edge_dtype"] = TYPES[seed % len(TYPES)]
    csr = building.build_csr(on_gpu(src), on_gpu(dst), num_vertices, weights=on_gpu(weights), **options)
    graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, **options)
    assert_same(csr, graph)
    if graph.is_directed:
        assert_same(building.reverse_csr(*csr, num_vertices), graph.reverse())


def test_arrays_need_not_be_contiguous():
    ids = np.arange(1000, dtype=np.int64)
    csr = building.build_csr(on_gpu(ids)[::2], on_gpu(ids)[1::2], 1000)
    assert_same(csr, Graph.from_edges(ids[::2], ids[1::2]))


def test_rows_of_a_reversed_graph_are_ascending():
    graph = Graph.from_csr([0, 3, 3, 5], [2, 0, 1, 1, 0], [5, 4, 3, 2, 1])
    csr = building.reverse_csr(on_gpu(graph.indptr), on_gpu(graph.indices), on_gpu(graph.weights), 3)
    assert_same(csr, graph.reverse())


@pytest.mark.parametrize("seed", range(24))
def test_lists_by_degree_are_those_of_the_cpu(seed, monkeypatch):
    random = np.random.default_rng(seed)
    monkeypatch.setattr(ranges, "_MIN_CAPACITY", int(random.integers(1, 2**14)))
    num_vertices, src, dst, weights = cuda_graphs.random_edges(random, 5000, 60_000)
    types = dict(zip(("vertex_dtype", "edge_dtype"), TYPES[seed % len(TYPES)], strict=True))
    graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=bool(seed % 3), **types)
    found, expected = graph.optimized(device="cuda"), graph.optimized()
    assert find_resident(graph) is None  # so it was the CPU
    number = find_resident(found)
    assert_same(building.CSR(*found._cache["on GPU", number]), expected)
    assert found.is_optimized
    assert found == expected
    incoming = find_device(number).place(found).edges(incoming=True)
    assert_same(building.CSR(*incoming), expected.reverse())
    backwards = find_device(number).place(expected.reverse())
    assert_same(building.CSR(*backwards.edges(incoming=True)), expected)


def test_a_graph_is_optimized_where_it_is():
    graph = generate.rmat(12, weights=(1, 9), device="cuda")
    assert find_resident(graph.optimized()) == find_resident(graph)
    assert find_resident(graph.optimized(device="cpu")) is None
    assert graph.optimized() == graph.optimized(device="cpu")
    pulls = {"direction": "pull", "devices": "cuda", "validate": True}
    assert (bfs(graph.optimized(), 1, **pulls).distance == bfs(graph, 1, **pulls).distance).all()


@pytest.mark.parametrize("wrong", [-1, 5, 2**40])
def test_a_wrong_id_is_refused_with_its_place(wrong):
    ids = on_gpu(np.array([0, 1, wrong]))
    with pytest.raises(GraphError, match=rf"dst\[2\]={wrong} is not a vertex id; ids must be from 0 to 4"):
        building.build_csr(on_gpu(np.array([0, 1, 2])), ids, 5)


def test_a_narrow_type_is_refused():
    ids = on_gpu(np.array([0, 1, 2]))
    with pytest.raises(ArgumentError, match="edge_dtype=int32 is not allowed"):
        building.build_csr(ids, ids, 5, vertex_dtype="int64", edge_dtype="int32")


def test_any_stream_and_thread_will_do():
    import cupy

    expected = generate.rmat(12, seed=3, weights=(1, 9))

    def build():
        with cupy.cuda.Stream(non_blocking=True):
            assert_same(cuda_graphs.rmat(12, 16, seed=3, weights=(1, 9)), expected)
            finished.append(True)

    finished = []
    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(finished) == 4


def peak_by_csr(build):
    """The most memory that a build asked the GPU for, by what its result takes."""
    import cupy

    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        csr = build()
        csr_bytes = sum(array.nbytes for array in csr if array is not None)
        del csr
    return pool.total_bytes() / csr_bytes


@pytest.mark.parametrize("edge_factor", [16, 64])
def test_drawing_peaks_within_bounds(edge_factor):
    assert peak_by_csr(lambda: cuda_graphs.rmat(22 if edge_factor == 16 else 20, edge_factor)) <= MAX_PEAK_BY_CSR


@pytest.mark.parametrize("weight_dtype", [None, "int32", "float64"])
@pytest.mark.parametrize("id_dtype", ["int32", "int64"])
def test_building_peaks_within_bounds(id_dtype, weight_dtype):
    import cupy

    src, dst = drawing.draw_uniform(1 << 20, 16 << 20, seed=1, vertex_dtype=np.dtype(id_dtype))
    weights = None if weight_dtype is None else cupy.arange(src.size, 0, -1).astype(weight_dtype)
    types = {"vertex_dtype": id_dtype, "deduplicate": True}
    assert peak_by_csr(lambda: building.build_csr(src, dst, 1 << 20, weights=weights, **types)) <= MAX_PEAK_BY_CSR
    csr = building.build_csr(src, dst, 1 << 20, weights=weights, directed=True, **types)
    assert peak_by_csr(lambda: building.reverse_csr(*csr, 1 << 20)) <= MAX_PEAK_BY_CSR
    assert peak_by_csr(lambda: building.order_csr(*csr)) <= MAX_PEAK_BY_CSR
