# SPDX-License-Identifier: Apache-2.0
"""output="device": results are the device's own arrays, derived where these are, and everything a result does works."""

import importlib

import numpy as np
import pytest

import far_arrays
import shoal
from checks import assert_refused
from cuda_fake import FakeArray, FakeGPU
from far_arrays import FarArray
from graphs import from_pairs, random_graph
from samples import SIX, Hops, Totals, everyone
from shoal import Constant, Phase, Program, Vertex, compute, everything, rule

pytestmark = pytest.mark.host_only("a CPU in a GPU's place; tests/gpu has the same with a GPU")

GRAPH = random_graph(60, 200, seed=3, weights="int32", skew=2.0)
FRACTIONS = random_graph(60, 200, seed=3, weights="float32", skew=2.0)
#: The cycle behind vertex 1 has weight 0: its parents are found breadth-first, by a program of their own.
FLAT = from_pairs([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)], weights=[5, 0, 0, 0, 2], directed=True)
EMPTY = from_pairs([], num_vertices=0)
CALLS = {
    "bfs": lambda **how: shoal.bfs(GRAPH, 0, **how),
    "bfs without parents": lambda **how: shoal.bfs(GRAPH, 0, parents=False, **how),
    "bfs of a batch": lambda **how: shoal.bfs(GRAPH, [0, 7, 9], **how),
    "bfs of a batch, deterministic": lambda **how: shoal.bfs(GRAPH, [0, 7, 9], deterministic=True, **how),
    "bfs to a target": lambda **how: shoal.bfs(GRAPH, 0, targets=[9], **how),
    "sssp": lambda **how: shoal.sssp(GRAPH, 0, **how),
    "sssp of fractions": lambda **how: shoal.sssp(FRACTIONS, 0, **how),
    "sssp over weights of 0": lambda **how: shoal.sssp(FLAT, 0, **how),
    "sssp to targets": lambda **how: shoal.sssp(GRAPH, 0, targets=[7, 9], **how),
    "sssp to no targets": lambda **how: shoal.sssp(GRAPH, 0, targets=[], **how),
    "sssp of a batch": lambda **how: shoal.sssp(GRAPH, [0, 7], **how),
    "components": lambda **how: shoal.connected_components(GRAPH, **how),
    "betweenness": lambda **how: shoal.betweenness_centrality(GRAPH, range(20), **how),
    "betweenness with ends": lambda **how: shoal.betweenness_centrality(GRAPH, [0, 7, 9], endpoints=True, **how),
    "pagerank": lambda **how: shoal.pagerank(GRAPH, iterations=5, **how),
    "no vertices: components": lambda **how: shoal.connected_components(EMPTY, **how),
    "no vertices: betweenness": lambda **how: shoal.betweenness_centrality(EMPTY, **how),
    "no vertices: pagerank": lambda **how: shoal.pagerank(EMPTY, **how),
}


@pytest.fixture
def far(monkeypatch):
    """A CPU whose arrays are as far away as a GPU's."""
    # A batch of three is two batches.
    monkeypatch.setattr(importlib.import_module("shoal.algorithms.bfs"), "MAX_BATCH", 2)
    far_arrays.install(monkeypatch)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_results_are_the_device_s(name, far):
    found, expected = CALLS[name](output="device", validate=True), CALLS[name]()
    arrays = [column for column in expected.columns if getattr(expected, column) is not None]
    assert arrays
    for column in arrays:
        array = getattr(found, column)
        assert isinstance(array, FarArray)
        assert isinstance(getattr(expected, column), np.ndarray)
        assert array.dtype == getattr(expected, column).dtype
        np.testing.assert_array_equal(array.get(), getattr(expected, column))


@pytest.mark.parametrize("name", CALLS)
def test_results_on_a_device_do_all_that_others_do(name, far):
    found, expected = CALLS[name](output="device"), CALLS[name]()
    assert found.summary() == expected.summary()
    assert repr(found).split(";")[:1] == repr(expected).split(";")[:1]
    assert "arrays on the GPU: " in repr(found)
    assert "arrays: " in repr(expected)
    host = found.to_host()
    assert type(host) is type(expected)
    assert host.stats is found.stats
    for table in (found.table(), host.table()):
        assert list(table) == list(expected.table())
        for column, values in expected.table().items():
            assert type(table[column]) is np.ndarray
            np.testing.assert_array_equal(table[column], values)
    assert found.to_arrow().equals(expected.to_arrow())
    assert found._repr_html_().split("<p>")[1] == expected._repr_html_().split("<p>")[1]
    if hasattr(expected, "reached"):
        np.testing.assert_array_equal(found.reached.get(), expected.reached)


def test_a_path_is_walked_on_the_host(far):
    expected = shoal.sssp(GRAPH, [0, 7])
    target = int(np.flatnonzero(expected.reached.all(axis=0))[-1])
    path = shoal.sssp(GRAPH, [0, 7], output="device").path(target, source=1)
    assert type(path) is np.ndarray
    assert path.tolist() == expected.path(target, source=1).tolist()


def test_a_program_s_fields_are_the_device_s_and_its_scalars_numbers(far):
    result = shoal.run(Totals(everyone), SIX, output="device")
    assert isinstance(result.seen, FarArray)
    assert (result.amount, result.extra) == (0.5, 12)
    assert "seen" in repr(result)
    host = result.to_host()
    assert host.seen.tolist() == [6] * 6
    assert host.extra == 12
    assert host.stats is result.stats


class Shifted(Program):
    level = Vertex("int32")
    shift = Constant("int32", is_array=True)

    def start(self, level, shift):
        self.level[:] = level
        self.shift = shift

    @rule
    def move(vertex, level, shift):
        level[vertex] += shift[vertex]

    def step(self, frontier):
        compute(everything, self.move)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


def test_a_result_on_a_device_is_what_another_program_may_start_with(far):
    level = shoal.run(Hops(), SIX, source=0, output="device").level
    assert shoal.run(Shifted(), SIX, level=level, shift=level).level.tolist() == [0, 2, 4, 6, 8, 10]


def test_a_cpu_s_arrays_are_numpy_s():
    for devices in ("cpu", "cpu:2"):
        found = shoal.bfs(GRAPH, 0, devices=devices, output="device")
        assert type(found.distance) is np.ndarray
        assert found.distance.tolist() == shoal.bfs(GRAPH, 0).distance.tolist()
        assert found.to_host().distance is found.distance
        assert found.stats.to_dict()["config"]["output"] == "device"


def test_other_outputs_are_refused():
    assert_refused(lambda: shoal.bfs(GRAPH, 0, output="gpu"), "output='gpu'", "host, device", error=shoal.ArgumentError)


# On a GPU whose kernels do nothing


@pytest.fixture
def copied(monkeypatch):
    """The sizes of arrays that were copied to the host."""
    FakeGPU().install(monkeypatch)
    sizes, get = [], FakeArray.get

    def get_counted(array, out=None):
        sizes.append(array.size)
        return get(array, out)

    monkeypatch.setattr(FakeArray, "get", get_counted)
    return sizes


@pytest.mark.parametrize("is_optimized", [False, True])
def test_no_field_is_copied_to_the_host(is_optimized, copied):
    graph = random_graph(200, 1500, seed=1, skew=3.0)
    placed = shoal.place(graph.optimized() if is_optimized else graph, "cuda")
    for run in (lambda **how: shoal.pagerank(placed, iterations=3, **how), lambda **how: shoal.bfs(placed, 0, **how)):
        run(output="device")  # makes the tables that are kept with the graph
        copied.clear()
        found = run(output="device")
        assert all(isinstance(getattr(found, name), FakeArray) for name in found.columns)
        assert [size for size in copied if size > 1] == []  # scalars are numbers
        run()
        assert 200 in copied
    assert (placed.shards[0].hubs is not None) == is_optimized


def test_values_in_hub_order_are_handed_over_by_vertex(copied):
    graph = random_graph(200, 1500, seed=1, skew=3.0).optimized()
    found = shoal.pagerank(graph, iterations=3, devices="cuda", output="device")
    np.testing.assert_allclose(np.asarray(found.rank), 1 / 200)


def test_no_vertices_are_arrays_of_the_gpu_too(copied):
    assert isinstance(shoal.connected_components(EMPTY, devices="cuda", output="device").label, FakeArray)


def test_a_gpu_that_is_not_the_current_one_keeps_nothing(copied):
    cupy = __import__("cupy")
    cupy.cuda.Device.id = 1
    words = ("output='device'", "devices='cuda:0'", "which is 1", "with cupy.cuda.Device(0)")
    assert_refused(lambda: shoal.bfs(GRAPH, 0, devices="cuda", output="device"), *words, error=shoal.ArgumentError)
    assert shoal.bfs(GRAPH, 0, devices="cuda").distance[0] == 0
