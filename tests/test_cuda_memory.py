# SPDX-License-Identifier: Apache-2.0
"""What a run takes on a GPU is what was estimated, and a run that does not fit is refused in one line."""

import json
import sys

import numpy as np
import pytest

import shoal
from checks import assert_refused
from command_line import assert_refused as assert_command_refused
from command_line import run as run_command
from cuda_fake import FakeGPU
from graphs import random_graph, star_graph
from shoal.algorithms.bfs import BFS
from shoal.arrays import GraphSizes
from shoal.backends.cuda.device import find_device
from shoal.backends.cuda.needs import count_gpus_for, need_of, need_of_part
from shoal.backends.cuda.phases import load_phase
from shoal.memory import estimate_memory
from shoal.strategies.memory import SCHEMES

pytestmark = pytest.mark.host_only("for machines without a GPU")

RUNS = {
    "bfs": ("bfs", {"source": 0}),
    "bfs by push": ("bfs", {"source": 0, "direction": "push"}),
    "bfs by bins": ("bfs", {"source": 0, "load_balance": "lrb"}),
    "sssp by merge path": ("sssp", {"source": 0, "load_balance": "merge-path"}),
    "cc by threads": ("cc", {"load_balance": "thread"}),
    "bfs, deterministic": ("bfs", {"source": 0, "deterministic": True}),
    "bfs of a batch": ("bfs", {"source": [0, 1, 2]}),
    "sssp": ("sssp", {"source": 0}),
    "sssp with targets": ("sssp", {"source": 0, "targets": [3]}),
    "cc": ("cc", {}),
    "bc": ("bc", {"sources": [0, 1, 2, 3]}),
    "pagerank": ("pagerank", {"iterations": 1}),
    "pagerank by weights": ("pagerank", {"iterations": 1, "weighted": True, "dtype": "float32"}),
}
FUNCTIONS = {
    "bfs": shoal.bfs,
    "sssp": shoal.sssp,
    "cc": shoal.connected_components,
    "bc": shoal.betweenness_centrality,
    "pagerank": shoal.pagerank,
}
GRAPHS = {
    "undirected": random_graph(60_000, 300_000, weights="int32", skew=1.0),
    "directed": random_graph(60_000, 300_000, weights="float32", skew=1.0, directed=True),
    "hubs, 64-bit": random_graph(
        60_000, 300_000, weights="float64", skew=30.0, directed=True, vertex_dtype="int64", edge_dtype="int64"
    ),
}
GRAPH = GRAPHS["undirected"]
DENSE = random_graph(3000, 500_000, skew=1.0)


def fresh(graph):
    """The same graph with nothing kept from earlier runs."""
    types = {"vertex_dtype": graph.vertex_dtype, "edge_dtype": graph.edge_dtype}
    return shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=graph.is_directed, **types)


@pytest.fixture(autouse=True)
def no_gpu_is_left():
    yield
    find_device.cache_clear()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("directed", name) for name in RUNS),
        *((kind, name) for kind in ("undirected", "hubs, 64-bit") for name in ("bfs", "sssp", "pagerank")),
    ],
)
def test_a_run_takes_what_was_estimated(kind, name, monkeypatch):
    gpu, graph = FakeGPU(), fresh(GRAPHS[kind])
    runs = gpu.install(monkeypatch)
    algorithm, options = RUNS[name]
    options = {**options, "devices": "cuda"}
    FUNCTIONS[algorithm](graph, **options)
    assert runs
    for said, found in runs:
        assert said == found
    estimate = estimate_memory(graph, algorithm, **options)
    uses_in_edges = graph.is_directed and algorithm != "cc" and name != "bfs by push"
    assert estimate.gpu.graph_bytes == graph.nbytes * (2 if uses_in_edges else 1)
    assert estimate.graph_bytes == graph.nbytes
    assert 1.0 <= estimate.gpu.total_bytes / gpu.peak <= 1.6
    by_sizes = (graph.num_vertices, graph.num_edges, graph.weights.dtype)
    if graph.vertex_dtype == np.int32:
        larger = estimate_memory(by_sizes, algorithm, directed=graph.is_directed, **options)
        assert larger.gpu.total_bytes >= estimate.gpu.total_bytes


def test_of_several_devices_the_estimate_is_that_of_each():
    sizes = (1_000_000, 32_000_000)
    one, four = (estimate_memory(sizes, "pagerank", devices=devices).gpu for devices in ("cuda", "cuda:0*4"))
    edges = 4 * sizes[1]
    assert one.graph_bytes - four.graph_bytes == edges - edges // 4
    assert four.state_bytes == one.state_bytes
    assert four.total_bytes - four.graph_bytes > one.total_bytes - one.graph_bytes  # what they exchange


def test_an_estimate_needs_no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    need = estimate_memory((2**22, 2**27), "bfs", source=0, devices="cuda:3")
    assert need.gpu.graph_bytes == 4 * (2**22 + 1) + 4 * 2**27
    assert need.gpu.state_bytes == 8 * 2**22
    # A queue of all vertices, three bitmaps, pieces, and what all runs have.
    assert 0 <= need.gpu.buffer_bytes - (4 * 2**22 + 3 * 2**19 + 8 * 2**20) < 10**6
    assert need.buffer_bytes == 0
    assert need.total_bytes - need.graph_bytes < 9 * 2**22
    assert estimate_memory((2**22, 2**27), "bfs", source=0).gpu is None


def test_a_graph_that_does_not_fit_is_refused_before_it_is_copied(monkeypatch):
    graph = fresh(DENSE)
    total = estimate_memory(graph, "bfs", source=0, devices="cuda").gpu.total_bytes
    gpu = FakeGPU(int(total * 0.75))
    gpu.install(monkeypatch)
    words = ("BFS: device cuda:0 needs ", "the graph ", "the state ", "buffers ", "are available",
             "such GPUs would have room, with all vertices on each and the edges divided evenly")  # fmt: skip
    assert_refused(lambda: shoal.bfs(graph, 0, devices="cuda"), *words, error=shoal.OutOfMemoryError)
    assert gpu.peak == 0


def test_vertices_that_do_not_fit_are_told_apart(monkeypatch):
    gpu = FakeGPU(10**6)
    gpu.install(monkeypatch)
    words = "no number of such GPUs would do with all vertices on each"
    assert_refused(lambda: shoal.bfs(fresh(GRAPH), 0, devices="cuda"), words, error=shoal.OutOfMemoryError)


def test_what_the_pool_holds_back_is_asked_for(monkeypatch):
    total = estimate_memory(GRAPH, "bfs", source=0, devices="cuda").gpu.total_bytes
    gpu = FakeGPU(2 * total, held=total + total // 2, free=2 * total)
    gpu.install(monkeypatch)
    shoal.bfs(fresh(GRAPH), 0, devices="cuda")
    assert gpu.num_frees == 1


@pytest.mark.parametrize("part", [0.2, 0.9])
def test_memory_that_runs_out_in_between_is_one_error(part, monkeypatch):
    need = estimate_memory(DENSE, "bfs", source=0, devices="cuda").gpu
    gpu = FakeGPU(int(part * (need.total_bytes - need.other_bytes)), free=10 * need.total_bytes)
    gpu.install(monkeypatch)
    words = ("BFS: device cuda:0 needs ", "(Out of memory allocating ", "such GPUs would have room")
    assert_refused(lambda: shoal.bfs(fresh(DENSE), 0, devices="cuda"), *words, error=shoal.OutOfMemoryError)
    assert gpu.num_frees == 1


def test_a_limit_of_the_pool_counts(monkeypatch):
    gpu = FakeGPU()
    gpu.limit = 10**6
    gpu.install(monkeypatch)
    assert_refused(lambda: shoal.bfs(fresh(GRAPH), 0, devices="cuda"), "1 MB of its 1 TB are available",
                   error=shoal.OutOfMemoryError)  # fmt: skip


def test_a_graph_that_is_there_is_not_counted_again(monkeypatch):
    graph = fresh(GRAPH)
    total = estimate_memory(graph, "bfs", source=0, devices="cuda").gpu.total_bytes
    gpu = FakeGPU(int(1.1 * total))
    gpu.install(monkeypatch)
    placed = shoal.place(graph, "cuda")
    for _ in range(3):
        shoal.bfs(placed, 0)
    assert gpu.in_use >= graph.nbytes


@pytest.mark.parametrize("limit", ["400kB", "600kB"])
def test_memory_limit_is_kept(limit, monkeypatch):
    gpu, graph = FakeGPU(), fresh(GRAPH)
    gpu.install(monkeypatch)
    words = ("BFS: device cuda:0 needs ", "bytes beside the graph", f"memory_limit={limit[:3]}000")
    assert_refused(lambda: shoal.bfs(graph, 0, devices="cuda", memory_limit=limit), *words,
                   error=shoal.OutOfMemoryError)  # fmt: skip
    assert gpu.peak <= graph.nbytes + 600_000


def test_memory_limit_counts_constants(monkeypatch):
    FakeGPU().install(monkeypatch)
    graph, personalization = fresh(GRAPH), np.ones(GRAPH.num_vertices)
    peak = shoal.pagerank(graph, iterations=1, devices="cuda").stats.peak_memory_bytes
    how = {"iterations": 1, "devices": "cuda", "memory_limit": peak}
    shoal.pagerank(graph, **how)
    assert_refused(lambda: shoal.pagerank(graph, personalization=personalization, **how), "memory_limit=",
                   error=shoal.OutOfMemoryError)  # fmt: skip


def test_the_number_of_gpus_is_the_fewest_whose_parts_fit():
    program = BFS()
    types = (np.dtype(np.int32), np.dtype(np.int64), None)
    phases = [(phase, load_phase(program, phase, types, "auto").source) for phase in program.phases()]
    graph, state = GraphSizes(2**24, 2**33, True, *types, 2**20), 8 * 2**24
    whole = need_of(graph, state, phases)
    assert whole.total_bytes >= 3 * graph.csr_bytes  # while edges are turned round
    for available in (whole.total_bytes // 2, whole.total_bytes // 7, whole.total_bytes // 40):
        count = count_gpus_for(graph, state, phases, available)
        assert need_of_part(graph, state, phases, count).total_bytes <= available
        assert need_of_part(graph, state, phases, count - 1).total_bytes > available
    assert count_gpus_for(graph, state, phases, 8 * 2**24) is None


def test_a_hub_has_pieces():
    few, many = (estimate_memory(star_graph(leaves), "bfs", devices="cuda").gpu for leaves in (1000, 1100))
    assert many.buffer_bytes - few.buffer_bytes > 2**23


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.write(GRAPH, "graph.shoal")


@pytest.mark.parametrize("algorithm", FUNCTIONS)
def test_plan_of_a_gpu(folder, algorithm, capsys):
    printed = json.loads(run_command(f"plan graph.shoal --devices cuda --algorithm {algorithm} --json", capsys))
    estimate = estimate_memory(GRAPH, algorithm, devices="cuda")
    assert printed["gpu"]["total_bytes"] == estimate.gpu.total_bytes
    assert printed["host"]["state_bytes"] == estimate.state_bytes
    assert printed["memory_bytes"] is None
    out = run_command(f"plan graph.shoal --devices cuda:1 --algorithm {algorithm}", capsys)
    for word in (f"{algorithm} on graph.shoal, cuda:1", "the GPU", "the host", "buffer", "total"):
        assert word in out


@pytest.mark.parametrize("scheme", SCHEMES)
def test_plan_of_a_gpu_by_scheme(folder, scheme, capsys):
    printed = json.loads(run_command(f"plan graph.shoal --devices cuda --memory {scheme} --json", capsys))
    assert printed["memory"] == scheme
    assert printed["gpu"]["total_bytes"] == estimate_memory(GRAPH, "bfs", devices="cuda", memory=scheme).gpu.total_bytes


def test_plan_says_what_a_gpu_has(folder, capsys, monkeypatch):
    gpu = FakeGPU(5 * 10**9, free=3 * 10**9)
    gpu.install(monkeypatch)
    facts = {"multiProcessorCount": 4, "name": b"none", "major": 9, "minor": 0}
    monkeypatch.setattr(__import__("cupy").cuda.runtime, "getDeviceProperties", lambda number: facts)
    assert "the GPU has 5 GB, of which 3 GB are available" in run_command("plan graph.shoal --devices cuda", capsys)


@pytest.mark.parametrize(
    ("command", "words"),
    [("plan graph.shoal --devices cuda:x", "devices='cuda:x' cuda:K"),
     ("plan graph.shoal --devices two", "devices='two' 2 to 1024 cuda:K"),
     ("plan graph.shoal --devices cuda --fanout 2", "fanout=2"),
     ("plan graph.shoal --devices cuda --memory much", "memory='much' just-enough fused"),
     ("plan graph.shoal --devices 2 --memory fixed", "memory='fixed' devices=2 auto")],
)  # fmt: skip
def test_plans_that_are_refused(folder, command, words, capsys):
    assert_command_refused(command, words, capsys)
