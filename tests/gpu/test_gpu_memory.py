# SPDX-License-Identifier: Apache-2.0
"""What runs take on a GPU is what was estimated, by CuPy's own count; what does not fit is refused."""

import gc

import pytest

import shoal
from shoal import generate
from shoal.memory import estimate_memory

RUNS = {
    "bfs": (shoal.bfs, {"source": 0}),
    "sssp": (shoal.sssp, {"source": 0}),
    "cc": (shoal.connected_components, {}),
    "bc": (shoal.betweenness_centrality, {"sources": [0, 1, 2, 3]}),
    "pagerank": (shoal.pagerank, {"iterations": 3}),
}


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("algorithm", RUNS)
def test_a_run_takes_what_was_estimated(algorithm, is_directed):
    import cupy

    run, options = RUNS[algorithm]
    graph = generate.rmat(18, 16, weights=(1, 64), directed=is_directed)
    run(graph, devices="cuda", **options)  # compiled now
    fresh = shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=is_directed, check=False)
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        run(fresh, devices="cuda", **options)
        del fresh
    estimate = estimate_memory(graph, algorithm, devices="cuda", **options).gpu
    # The pool has blocks that nothing later fitted into, beside what was in use at the peak.
    assert 0.75 <= estimate.total_bytes / pool.total_bytes() <= 1.6


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
