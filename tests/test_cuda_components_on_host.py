# SPDX-License-Identifier: Apache-2.0
"""The kernels that join trees, run by the CPU, find SciPy's components: one thread after another, or blocks at once."""

from __future__ import annotations

import numpy as np
import pytest

import cuda_on_host
import oracles
from graphs import SPECIAL, path_graph, random_graph
from shoal import Graph
from shoal.backends.cuda.building import kernel_text
from shoal.backends.cuda.trees import HEADER

pytestmark = [
    pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

MACHINES = ("cuda_on_host.hpp", "cuda_grid_on_host.hpp")


@pytest.fixture(scope="module", params=MACHINES)
def load_kernel(request, tmp_path_factory):
    return cuda_on_host.make_loader(tmp_path_factory.mktemp("kernels"), request.param)


def on_gpu(array):
    return array.view(cuda_on_host.DeviceArray)


class Device:
    """The kernels as a device launches them, and its labels."""

    def __init__(self, load_kernel, graph):
        text = kernel_text(HEADER, graph.vertex_dtype, graph.edge_dtype)
        self.load, self.graph = (lambda name: load_kernel(text, name)), graph
        self.label = on_gpu(np.full(graph.num_vertices, -7, graph.vertex_dtype))
        self.load("begin_labels").over(graph.num_vertices, self.label)

    def hook_rows(self, begin, end):
        graph = self.graph
        first, last = (int(graph.indptr[row]) for row in (begin, end))
        numbers = map(np.uint64, (first, begin, end))
        edges = on_gpu(np.array(graph.indptr)), on_gpu(np.array(graph.indices))
        self.load("hook_rows").over(last - first, *numbers, *edges, np.bool_(not graph.is_directed), self.label)

    def hook_labels(self, begin, labels):
        self.load("hook_labels").over(len(labels), np.uint64(begin), on_gpu(labels.copy()), self.label)

    def compress(self):
        self.load("compress").over(len(self.label), self.label)
        return self.label


def find_components(load_kernel, graph, num_devices=1, seed=0):
    """Deal rows at random to devices, and let the first have all labels, in pieces."""
    random = np.random.default_rng(seed)
    devices = [Device(load_kernel, graph) for _ in range(num_devices)]
    cuts = np.unique([0, *random.integers(0, graph.num_vertices + 1, 4), graph.num_vertices])
    for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        devices[random.integers(num_devices)].hook_rows(begin, end)
    for other in devices[1:]:
        labels = other.compress()
        for begin in range(0, len(labels), 100):
            devices[0].hook_labels(begin, labels[begin : begin + 100])
    return devices[0].compress()


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name, load_kernel):
    graph = SPECIAL[name]()
    np.testing.assert_array_equal(find_components(load_kernel, graph), oracles.component_labels(graph))


@pytest.mark.parametrize(("vertex_dtype", "edge_dtype"), [("int32", "int32"), ("int32", "int64"), ("int64", "int64")])
@pytest.mark.parametrize("directed", [False, True])
def test_random_graphs(directed, vertex_dtype, edge_dtype, load_kernel):
    for seed, (num_vertices, num_edges) in enumerate([(1, 0), (50, 20), (700, 600), (900, 5000)]):
        graph = random_graph(num_vertices, num_edges, seed=seed, directed=directed, skew=3.0,
                             vertex_dtype=vertex_dtype, edge_dtype=edge_dtype)  # fmt: skip
        found = find_components(load_kernel, graph, num_devices=1 + seed, seed=seed)
        np.testing.assert_array_equal(found, oracles.component_labels(graph))


@pytest.mark.parametrize("seed", range(3))
def test_chains_in_random_order(seed, load_kernel):
    order = np.random.default_rng(seed).permutation(3000)
    graph = Graph.from_edges(order[:-1], order[1:], num_vertices=3001)
    np.testing.assert_array_equal(find_components(load_kernel, graph, 2, seed), oracles.component_labels(graph))


def test_a_hub_and_a_path(load_kernel):
    hub = Graph.from_edges(np.zeros(5000, np.int64), np.arange(1, 5001))
    for graph in (hub, path_graph(3000)):
        assert not find_components(load_kernel, graph).any()
