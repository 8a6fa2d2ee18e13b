# SPDX-License-Identifier: Apache-2.0
"""The kernels of a gather, run by the CPU: however the lists of edges stand, every edge is looked at once, for its own
vertex."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from cuda_fake import FakeGPU
from cuda_grid import BLOCK_WARPS, as_argument, build_grid
from cuda_on_host import COMPILER
from graphs import random_graph
from shoal.algorithms.bfs import BFS
from shoal.backends.cuda import hubs
from shoal.backends.cuda.device import ROW
from shoal.backends.cuda.phases import load_phase
from shoal.backends.loops.control import EDGES

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

NUM_BLOCKS = 3
TYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.int32))
SOURCE = load_phase(BFS(), BFS().phases()[0], TYPES, "push").source
DRIVER = f"""
#include <cmath>
using std::isfinite;
#include "reduction.cuh"
using namespace shoal;
using Id = int;

struct Nothing {{
    long long nothing;
    static Nothing identity() {{ return {{0}}; }}
    void merge(const Nothing&) {{}}
}};
struct Op {{
    static constexpr bool FROM_QUEUE = false, HAS_TOTALS = false;
    using Value = double;
    const int* weights;
    const double* held;
    double* sums;
    static Value zero() {{ return 0; }}
    static Value add(Value left, Value right) {{ return Add::combine(left, right); }}
    Value visit(Index src, Index dst, Index edge) const {{ return held[src] * weights[edge] + dst; }}
    void fetch(Index) const {{}}
    bool is_owned(Index) const {{ return true; }}
    void finish(Index dst, Value value, Nothing&) const {{ sums[dst] += value; }}
}};
extern "C" void gather_all(Index* control, Index num_vertices, const Index* indptr, const Id* indices,
                           const int* weights, Index num_rows, const Id* row_vertices, const Index* row_firsts,
                           const Id* row_owners, const Id* row_numbers, double* row_values, Index num_tiles,
                           const Id* tiles, Index side_by_side, const double* held, double* sums) {{
    host::run({NUM_BLOCKS}, BLOCK_WARPS * WARP, [=] {{
        Index generation = load_acquire(control + GENERATION);
        const Rows<Id> rows{{num_rows, row_vertices, row_firsts, row_owners, row_numbers, row_values, num_tiles, tiles,
                            side_by_side}};
        gather(Op{{weights, held, sums}}, control, generation, (const Id*)nullptr, 0, num_vertices, indptr, indices,
               rows, (Nothing*)nullptr);
    }});
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_grid(tmp_path_factory.mktemp("gather"), SOURCE, DRIVER)


def make_graph(num_vertices):
    """Some vertices without edges, most with few, and one whose list is cut into pieces."""
    random = np.random.default_rng(num_vertices)
    graph = random_graph(num_vertices, 12_000, seed=1, skew=6.0)
    src = np.append(np.repeat(np.arange(num_vertices), graph.degree), np.zeros(num_vertices // 2, int))
    dst = np.append(graph.indices, np.arange(num_vertices // 2))
    weights = random.integers(1, 100, len(src)).astype(np.int32)
    made = shoal.Graph.from_edges(src, dst, weights=weights, num_vertices=num_vertices, edge_dtype="int64")
    assert made.max_degree > ROW
    return made


def gather(library, shard, held):
    """Return what the kernel adds up for every vertex of a shard, and how many edges it says it has looked at."""
    indptr, indices, weights = (np.ascontiguousarray(array) for array in shard.edges(incoming=True))
    vertices, firsts, owners, numbers = (np.ascontiguousarray(table) for table in shard.rows)
    tiles = np.ascontiguousarray(shard.tiles(NUM_BLOCKS * BLOCK_WARPS))
    control, sums = np.zeros(SOURCE.control_length, np.int64), np.zeros(shard.num_local)
    values = np.zeros(max(len(owners), 1))
    given = (control, shard.num_local, indptr, indices, weights, len(vertices), vertices, firsts, owners, numbers,
             values, len(tiles) - 1, tiles, shard.side_by_side, held, sums)  # fmt: skip
    library.gather_all(*map(as_argument, given))
    return sums, control[EDGES]


def expected_sums(graph, held, numbers):
    """Return the same, where a vertex has a number of its own."""
    src, dst, weights = np.repeat(np.arange(graph.num_vertices), graph.degree), graph.indices, graph.weights
    return np.bincount(dst, held[src] * weights + numbers[dst], minlength=graph.num_vertices)


@pytest.mark.parametrize("num_vertices", [2500, 4096])
def test_lists_one_after_the_other(num_vertices, library, monkeypatch):
    FakeGPU().install(monkeypatch)
    graph = make_graph(num_vertices)
    shard, held = shoal.place(graph, "cuda").shards[0], np.random.default_rng(1).integers(0, 1000, num_vertices) * 1.0
    sums, num_edges = gather(library, shard, held)
    np.testing.assert_array_equal(sums, expected_sums(graph, held, np.arange(num_vertices)))
    assert num_edges == graph.num_edges


@pytest.mark.parametrize("at_once", [1, 1000, 2**25])
@pytest.mark.parametrize("longest", [1, 20, 256])
@pytest.mark.parametrize("num_vertices", [2500, 4096])
def test_lists_side_by_side(num_vertices, longest, at_once, library, monkeypatch):
    FakeGPU().install(monkeypatch)
    monkeypatch.setattr(hubs, "_LONGEST", longest)
    monkeypatch.setattr(hubs, "_AT_ONCE", at_once)
    graph = make_graph(num_vertices)
    order = hubs.HubOrder(shoal.place(graph.optimized(), "cuda").shards[0])
    assert 0 < order.shard.side_by_side < num_vertices
    held = np.random.default_rng(1).integers(0, 1000, num_vertices) * 1.0
    sums, num_edges = gather(library, order.shard, held[np.asarray(order.order)])
    place = np.asarray(order.place)
    np.testing.assert_array_equal(sums[place], expected_sums(graph, held, place))
    assert num_edges == graph.num_edges
