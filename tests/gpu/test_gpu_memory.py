# SPDX-License-Identifier: Apache-2.0
"""What runs take on a GPU is what was estimated, by CuPy's own count; what does not fit is refused."""

import gc

import pytest

import shoal
from shoal import generate
from shoal.memory import estimate_memory
from shoal.strategies.memory import SCHEMES

RUNS = {
    "bfs": (shoal.bfs, {"source": 0}),
    "bfs by push": (shoal.bfs, {"source": 0, "direction": "push"}),
    "sssp": (shoal.sssp, {"source": 0}),
    "cc": (shoal.connected_components, {}),
    "bc": (shoal.betweenness_centrality, {"sources": [0, 1, 2, 3]}),
    "pagerank": (shoal.pagerank, {"iterations": 3}),
}
#: An estimate is for any GPU, of which some have twice as many multiprocessors; the graphs here are small beside that.
LEAST, MOST = 0.95, 1.25


@pytest.fixture(autouse=True)
def own_factors(tmp_path, monkeypatch):
    """Let no run see the room that runs of other tests needed; compiled code is found where it is."""
    monkeypatch.setattr("shoal.execution.bsp.base_folder", lambda: tmp_path)


def peak_bytes(run, graph, devices="cuda", **options):
    """The most memory that a run had on the GPU at once, with the graph, and its own count of state and buffers."""
    import cupy

    class Used(cupy.cuda.MemoryHook):
        """Bytes of the pool that are in use, and the most that were."""

        now = most = 0

        def malloc_postprocess(self, *, mem_size, **_):
            self.now += mem_size
            self.most = max(self.most, self.now)

        def free_preprocess(self, *, mem_size, **_):
            self.now -= mem_size

    run(graph, devices=devices, **options)  # compiled now
    fresh = shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=graph.is_directed, check=False)
    pool = cupy.cuda.MemoryPool()
    gc.collect()  # what goes in the run must have come in it
    with cupy.cuda.using_allocator(pool.malloc), Used() as used:
        counted = run(fresh, devices=devices, **options).stats.device_peaks[0]
        del fresh
    return used.most, counted


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_takes_what_was_estimated(name, scheme, is_directed):
    run, options = RUNS[name]
    graph = generate.rmat(18, 16, weights=(1, 64), directed=is_directed)
    if "source" in options:
        options = {**options, "source": int(graph.degree.argmax())}
    peak, counted = peak_bytes(run, graph, memory=scheme, **options)
    algorithm = name.partition(" ")[0]
    estimate = estimate_memory(graph, algorithm, devices="cuda", memory=scheme, **options).gpu
    assert counted <= peak
    assert estimate.total_bytes / peak >= LEAST
    if scheme != "just-enough":  # of which the most is estimated that it may come to
        assert estimate.total_bytes / peak <= MOST
    else:
        most = estimate_memory(graph, algorithm, devices="cuda", memory="maximum", **options).gpu
        assert peak <= MOST * most.total_bytes


@pytest.mark.parametrize("num_devices", [1, 3])
@pytest.mark.parametrize("name", ["bfs", "sssp", "pagerank"])
def test_a_run_without_supersteps_takes_what_was_estimated(name, num_devices):
    run, options = RUNS[name][0], {} if name == "pagerank" else {"source": 0}
    graph = generate.grid(500, 600, weights=(1, 64))
    how = {"execution": "async", "devices": f"cuda:0*{num_devices}", **options}
    peak, counted = peak_bytes(run, graph, **how)
    estimated = num_devices * estimate_memory(graph, name, **how).gpu.total_bytes
    assert counted <= peak <= estimated / LEAST
    if num_devices == 1:  # of several, a device may have copies of all vertices
        assert estimated <= MOST * peak


def test_a_run_that_does_not_fit_is_refused():
    import cupy

    pool = cupy.get_default_memory_pool()
    graph = generate.rmat(16, 16)
    limit = pool.get_limit()
    gc.collect()  # what earlier tests have left counts as used, and would make room when it goes
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + 10**6)
    try:
        with pytest.raises(shoal.OutOfMemoryError, match=r"BFS: device cuda:0 needs .* are available.* such GPUs"):
            shoal.bfs(graph, 0, devices="cuda")
    finally:
        pool.set_limit(size=limit)
    assert shoal.bfs(graph, 0, devices="cuda").distance[0] == 0


def test_a_scheme_that_does_not_fit_is_refused_and_one_that_need_not_grow_runs():
    import cupy

    pool = cupy.get_default_memory_pool()
    graph = generate.rmat(18, 32)
    how = {"source": int(graph.degree.argmax()), "direction": "push", "devices": "cuda"}
    shoal.bfs(graph, **how)  # compiled now
    fresh = shoal.Graph.from_csr(graph.indptr, graph.indices, directed=False, check=False)
    limit = pool.get_limit()
    gc.collect()
    pool.free_all_blocks()
    total = estimate_memory(fresh, "bfs", **how).gpu.total_bytes
    pool.set_limit(size=pool.used_bytes() + int(1.3 * total))
    try:
        expected = shoal.bfs(fresh, **how).distance
        with pytest.raises(shoal.OutOfMemoryError, match=r"BFS: device cuda:0 needs .* are available"):
            shoal.bfs(fresh, memory="maximum", **how)
        found = shoal.bfs(fresh, memory="just-enough", **how).distance
    finally:
        pool.set_limit(size=limit)
    assert (found == expected).all()
