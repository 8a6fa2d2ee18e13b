# SPDX-License-Identifier: Apache-2.0
"""estimate_memory holds what it promises: against the run's own count, and against what Python says was allocated."""

import tracemalloc

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import path_graph
from samples import Hops
from shoal import algorithms
from shoal.machine import available_memory_bytes
from shoal.memory import estimate_memory

pytestmark = pytest.mark.host_only("about the memory of a run on the CPU")

FUNCTIONS = {
    "bfs": algorithms.bfs,
    "sssp": algorithms.sssp,
    "cc": algorithms.connected_components,
    "bc": algorithms.betweenness_centrality,
    "ebc": algorithms.edge_betweenness_centrality,
    "pagerank": algorithms.pagerank,
    "triangles": algorithms.triangles,
    "clustering": algorithms.clustering,
    "lpa": algorithms.label_propagation,
    "louvain": algorithms.louvain_communities,
    "eigenvector": algorithms.eigenvector_centrality,
    "katz": algorithms.katz_centrality,
    "hits": algorithms.hits,
    "scc": algorithms.strongly_connected_components,
    "msf": algorithms.minimum_spanning_forest,
    "core": algorithms.core_number,
    "kcore": algorithms.k_core,
}
HUB = 51324
BETAS = np.ones(1 << 16)
RUNS = {
    "bfs": ("bfs", {"source": HUB}),
    "bfs, deterministic": ("bfs", {"source": HUB, "deterministic": True}),
    "bfs, batch": ("bfs", {"source": [HUB, 1, 2, 3]}),
    "sssp": ("sssp", {"source": HUB}),
    "sssp without parents": ("sssp", {"source": HUB, "parents": False}),
    "sssp, batch": ("sssp", {"source": [HUB, 1, 2]}),
    "cc": ("cc", {}),
    "bc, one source": ("bc", {"sources": [HUB]}),
    "bc, a batch": ("bc", {"samples": 8, "seed": 1}),
    "ebc": ("ebc", {"samples": 8, "seed": 1}),
    "pagerank": ("pagerank", {"iterations": 2}),
    "pagerank in float32": ("pagerank", {"dtype": "float32", "iterations": 2}),
    "pagerank by weights": ("pagerank", {"weighted": True, "iterations": 2}),
    "triangles": ("triangles", {}),
    "clustering": ("clustering", {}),
    "lpa": ("lpa", {}),
    "louvain": ("louvain", {}),
    "eigenvector": ("eigenvector", {"tolerance": 0.1}),
    "katz": ("katz", {"alpha": 1e-6, "beta": BETAS}),
    "hits": ("hits", {"tolerance": 0.1}),
    "scc": ("scc", {}),
    "msf": ("msf", {}),
    "core": ("core", {}),
    "kcore": ("kcore", {"k": 10}),
}


@pytest.fixture(scope="module")
def graph():
    made = shoal.generate.rmat(16, 16, weights=(1, 255)).without_self_loops()  # cores are not defined with them
    assert made.degree.argmax() == HUB
    return made


@pytest.fixture(scope="module")
def directed_graph():
    return shoal.generate.rmat(16, 16, weights=(1, 255), directed=True).without_self_loops()


# The buckets of SSSP take more than all else, and whether they must grow depends on the graph and how threads meet.
BUCKET_SLACK = 1.6


def copy_of(graph):
    """The same graph with nothing kept from earlier runs."""
    return shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=graph.is_directed, check=False)


def traced_peak(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", RUNS)
def test_estimate_is_near_the_peak(graph, name):
    algorithm, options = RUNS[name]
    FUNCTIONS[algorithm](graph, **options)  # compiled now: compiling would count
    fresh = copy_of(graph)
    result, traced = traced_peak(lambda: FUNCTIONS[algorithm](fresh, **options))
    estimate = estimate_memory(graph, algorithm, **options)
    counted = estimate.state_bytes + estimate.buffer_bytes
    slack = BUCKET_SLACK if name.startswith("sssp") else 1.0
    assert 1.0 <= counted / result.stats.peak_memory_bytes <= 1.35 * slack
    assert 1.0 <= (estimate.total_bytes - graph.nbytes) / traced <= 1.45 * slack


@pytest.mark.parametrize("name", ["bfs", "sssp", "cc", "pagerank", "bc, one source", "ebc", "hits", "scc", "core"])
def test_estimate_of_a_directed_graph_has_its_reverse(directed_graph, name):
    algorithm, options = RUNS[name]
    FUNCTIONS[algorithm](directed_graph, **options)
    fresh = copy_of(directed_graph)
    result, traced = traced_peak(lambda: FUNCTIONS[algorithm](fresh, **options))
    estimate = estimate_memory(directed_graph, algorithm, **options)
    assert estimate.graph_bytes == directed_graph.nbytes * (1 if name in ("cc", "sssp", "core") else 2)
    slack = BUCKET_SLACK if name == "sssp" else 1.0
    assert 1.0 <= (estimate.state_bytes + estimate.buffer_bytes) / result.stats.peak_memory_bytes <= 1.35 * slack
    assert 1.0 <= (estimate.total_bytes - directed_graph.nbytes) / traced <= 1.45 * slack


@pytest.mark.parametrize("how", [{}, {"partition": "random"}, {"communication": "broadcast"}], ids=str)
@pytest.mark.parametrize("name", ["bfs", "sssp", "cc", "pagerank", "bc, one source", "triangles", "lpa"])
def test_estimate_of_several_devices_holds(graph, name, how):
    algorithm, options = RUNS[name]
    options = {**options, **how, "devices": "cpu:3"}
    FUNCTIONS[algorithm](graph, **options)
    fresh = copy_of(graph)
    result, traced = traced_peak(lambda: FUNCTIONS[algorithm](fresh, **options))
    estimate = estimate_memory(graph, algorithm, **options)
    # A bound: with copies of neighbours only, every edge is taken to need one.
    assert 1.0 <= (estimate.state_bytes + estimate.buffer_bytes) / result.stats.peak_memory_bytes <= 2.5
    assert 1.0 <= (estimate.total_bytes - graph.nbytes) / traced <= 3


@pytest.mark.parametrize("count", [1, 3])
def test_estimate_of_components_without_supersteps_holds(graph, count):
    options = {"execution": "async", "devices": f"cpu:{count}"}
    algorithms.connected_components(graph, **options)
    fresh = copy_of(graph)
    result, traced = traced_peak(lambda: algorithms.connected_components(fresh, **options))
    estimate = estimate_memory(graph, "cc", **options)
    assert estimate.state_bytes == result.stats.peak_memory_bytes
    assert 1.0 <= (estimate.total_bytes - graph.nbytes) / traced <= 1.45


def test_components_without_supersteps_on_gpus(graph):
    """A GPU has all edges, once, and a label for every vertex on each device there."""
    one, several = (
        estimate_memory(graph, "cc", execution="async", devices=devices) for devices in ("cuda", "cuda:0*3,1")
    )
    assert one.gpu.graph_bytes == several.gpu.graph_bytes == graph.nbytes
    assert one.gpu.state_bytes == graph.num_vertices * graph.vertex_dtype.itemsize
    assert several.gpu.state_bytes == 3 * one.gpu.state_bytes
    assert one.state_bytes == several.state_bytes == one.gpu.state_bytes  # the result


def test_push_needs_no_reverse(directed_graph):
    estimate = estimate_memory(directed_graph, "bfs", direction="push")
    assert estimate.graph_bytes == directed_graph.nbytes


@pytest.mark.parametrize(("algorithm", "options"), [("bc", {"samples": 16, "seed": 1}), ("bfs", {"source": range(68)})])
def test_several_batches_fit_the_estimate(graph, algorithm, options):
    FUNCTIONS[algorithm](graph, **options)  # compiled now: compiling would count
    fresh = copy_of(graph)
    _, traced = traced_peak(lambda: FUNCTIONS[algorithm](fresh, **options))
    estimate = estimate_memory(graph, algorithm, **options)
    assert estimate.total_bytes - graph.nbytes >= traced


def test_sizes_give_what_their_graph_gives(graph):
    for algorithm, (_, options) in {name: RUNS[name] for name in ("bfs", "sssp", "cc", "pagerank")}.items():
        by_sizes = estimate_memory((graph.num_vertices, graph.num_edges, True), algorithm, **options)
        assert by_sizes == estimate_memory(graph, algorithm, **options)


def test_bfs_needs_at_most_24_bytes_a_vertex_and_nothing_per_edge():
    for num_edges in (10**8, 2 * 10**9):
        estimate = estimate_memory((10**7, num_edges), "bfs", source=0)
        assert estimate.total_bytes - estimate.graph_bytes <= 24 * 10**7
        assert estimate.graph_bytes == 4 * (10**7 + 1) + 4 * num_edges


def test_widths_follow_sizes():
    small = estimate_memory((2**30, 2**31 - 1), "cc")
    large = estimate_memory((2**30, 2**31), "cc")  # 64-bit offsets
    huge = estimate_memory((2**31, 2**31), "cc")  # and 64-bit ids
    assert large.graph_bytes - small.graph_bytes == 4 * (2**30 + 1) + 4
    assert huge.state_bytes - 16 == 4 * (large.state_bytes - 16)  # beside the labels there are two numbers


def test_directed_sizes():
    both = estimate_memory((1000, 8000), "pagerank", directed=True)
    assert both.graph_bytes == 2 * estimate_memory((1000, 8000), "pagerank").graph_bytes


@pytest.mark.parametrize("weights", ["float32", "float64", np.float32, True])
def test_weights_count(weights):
    plain = estimate_memory((1000, 8000), "sssp").graph_bytes
    weighted = estimate_memory((1000, 8000, weights), "sssp").graph_bytes
    assert weighted - plain == 8000 * (8 if weights == "float64" else 4)


@pytest.mark.parametrize("algorithm", FUNCTIONS)
@pytest.mark.parametrize("num_vertices", [0, 1, 10])
def test_tiny_graphs(algorithm, num_vertices):
    estimate = estimate_memory(path_graph(max(num_vertices, 1)) if num_vertices else (0, 0), algorithm)
    assert 0 < estimate.total_bytes < 10**6


def test_own_program(graph):
    counted = shoal.run(Hops(), copy_of(graph), source=HUB).stats.peak_memory_bytes
    estimate = estimate_memory(graph, Hops())
    assert 1.0 <= (estimate.state_bytes + estimate.buffer_bytes) / counted <= 1.35


def test_available_memory():
    assert 10**6 < available_memory_bytes() < 10**16


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (((10, 20), "dfs"), {}, ["algorithm='dfs'", "bfs, sssp, cc"]),
        (((10, 20), "bfs"), {"damping": 0.5}, ["damping=0.5", "allowed: source"]),
        (((10, 20), "bfs"), {"direction": "up"}, ["direction='up'", "push"]),
        (((10,), "bfs"), {}, ["graph_or_sizes=(10,)"]),
        (("graph.mtx", "bfs"), {}, ["graph_or_sizes='graph.mtx'"]),
        (((-1, 20), "bfs"), {}, ["number of vertices=-1"]),
        (((10, 2.5), "bfs"), {}, ["number of stored edges=2.5"]),
        (((10, 20, "int8"), "bfs"), {}, ["weights='int8'", "float32"]),
    ],
)
def test_bad_requests_are_refused(arguments, options, words):
    assert_refused(lambda: estimate_memory(*arguments, **options), *words)


def test_directed_is_for_sizes_only():
    assert_refused(lambda: estimate_memory(path_graph(3), "bfs", directed=True), "directed=True")
