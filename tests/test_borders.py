# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic where numbers pass 2**31 and 2**32, in little memory: arrays are files with holes.

A file with holes may be larger than the disk, and what is never touched takes no page.  So a graph has one vertex with
all edges up to the border, which nothing visits, and a few vertices with edges behind it, on which all is computed.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, shortest_path

import shoal
from shoal import arrays
from shoal.backends.cpu import csr as building
from shoal.backends.cpu.kernels import csr as csr_kernels
from shoal.backends.cpu.kernels import generate as generate_kernels
from shoal.backends.cpu.kernels import twins
from shoal.execution.volume import _items
from shoal.memory import estimate_memory
from shoal.strategies.communication import COMMUNICATIONS, make_schedule
from shoal.strategies.duplication import build_parts
from shoal.strategies.ownership import Ownership
from shoal.strategies.partition import partition_graph
from test_generate import plain_rmat_edge, split_mix

pytestmark = pytest.mark.host_only("about the CPU's arrays, which are files")

#: Vertex 0 has as many edges; those of the others begin there.
BORDERS = [2**31 - 9, 2**31 - 1, 2**31, 2**32 - 3, 2**32, 2**33 + 5]
#: For tests of the last of so many threads that it has these few edges: edges times threads stay below 2**63.
BORDERS_OF_THREADS = BORDERS[:-1]
PAIRS = [(1, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 6), (6, 7), (7, 1)]
NUM_VERTICES = 9


@pytest.fixture(autouse=True)
def no_number_is_cut():
    """Let a number that does not fit be an error in NumPy, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.fixture
def with_holes(tmp_path):
    """Arrays as files with holes."""

    def make(shape, dtype):
        return np.memmap(tmp_path / f"{len(list(tmp_path.iterdir()))}.bin", dtype, "w+", shape=shape)

    return make


@pytest.fixture
def far_graph(with_holes):
    """Graphs with the edges of `PAIRS` behind as many others of vertex 0."""

    def make(border):
        src, dst = np.array(PAIRS).T
        indptr = np.zeros(NUM_VERTICES + 1, np.int64)
        indptr[1:] = border + np.searchsorted(src, np.arange(NUM_VERTICES), side="right")
        indices = with_holes((border + len(PAIRS),), np.int32)
        indices[border:] = dst
        return shoal.Graph.from_csr(indptr, indices, directed=True, check=False)

    return make


def near_graph():
    """The same without the edges of vertex 0."""
    src, dst = np.array(PAIRS).T
    return csr_array((np.ones(len(PAIRS), int), (src, dst)), shape=(NUM_VERTICES, NUM_VERTICES))


@pytest.mark.parametrize("border", BORDERS)
def test_sizes_and_degrees(far_graph, border):
    graph = far_graph(border)
    total = border + len(PAIRS)
    assert graph.num_edges == total
    assert graph.edge_dtype == (np.int32 if total < 2**31 else np.int64)
    assert graph.vertex_dtype == np.int32
    degree = np.bincount([u for u, _ in PAIRS], minlength=NUM_VERTICES).tolist()
    assert graph.degree.tolist() == [border, *degree[1:]]
    assert graph.max_degree == border
    assert graph.nbytes == 4 * total + graph.edge_dtype.itemsize * (NUM_VERTICES + 1)
    assert f"{total:,} stored edges" in repr(graph)


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:1x2"])
@pytest.mark.parametrize("border", BORDERS)
def test_searches_visit_edges_behind_the_border(far_graph, border, devices):
    found = shoal.bfs(far_graph(border), 1, devices=devices, direction="push")
    expected = shortest_path(near_graph(), unweighted=True, indices=1)
    assert np.where(found.distance < 0, np.inf, found.distance).tolist() == expected.tolist()
    for child, parent in enumerate(found.parent.tolist()):
        assert parent == -1 or child == 1 or (parent, child) in PAIRS
    assert set(np.flatnonzero(found.distance >= 0)) == set(breadth_first_order(near_graph(), 1)[0])
    assert found.stats.to_dict()["edges_visited"] == len(PAIRS)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("num_devices", [2, 3, 7, 1024])
def test_segments_of_equal_work(far_graph, border, num_devices):
    owner = partition_graph(far_graph(border), num_devices, "segment").tolist()
    work = [border + len([1 for u, _ in PAIRS if u < v]) + v if v else 0 for v in range(NUM_VERTICES + 1)]
    bounds = [work[-1] * device // num_devices for device in range(1, num_devices)]
    expected = [sum(bound <= work[v] for bound in bounds) for v in range(NUM_VERTICES)]
    assert owner == expected


@pytest.mark.parametrize("border", BORDERS)
def test_a_part_of_edges_behind_the_border(far_graph, border):
    graph, owner = far_graph(border), np.array([0, 1, 1, 1, 2, 2, 1, 1, 2], np.uint16)
    ownership = Ownership.of(owner, 3, graph.vertex_dtype)
    for device in (1, 2):
        rows = ownership.rows_of(device, graph)
        assert rows.num_edges == sum(owner[u] == device for u, _ in PAIRS)
        starts = [border + sum(u < v for u, _ in PAIRS) for v in ownership.vertices_of(device)]
        assert rows.first_edges.tolist() == starts
    together = Ownership.of(np.array([0, *[1] * (NUM_VERTICES - 1)], np.uint16), 2, graph.vertex_dtype)
    assert together.rows_of(1, graph).slice_of_graph() == slice(border, border + len(PAIRS))


@pytest.mark.parametrize("border", BORDERS)
def test_edge_ids_of_a_part(border):
    """A part with offsets of 64 bits whose rows begin behind the border in the graph."""
    graph = shoal.Graph.from_edges(*np.array(PAIRS).T, num_vertices=NUM_VERTICES, directed=True, edge_dtype="int64")
    part = build_parts(graph, np.zeros(NUM_VERTICES, np.uint16), "all", [True], with_in_edges=False)[0]
    moved = SimpleNamespace(**vars(part) | {"first_edges": part.first_edges + border})
    assert type(part).edge_ids(moved).tolist() == list(range(border, border + len(PAIRS)))


@pytest.mark.parametrize("num_vertices", [2**31 - 1, 2**31, 2**32 + 1])
@pytest.mark.parametrize("weights", [None, np.float64])
def test_edges_of_the_last_vertices_are_sorted(with_holes, num_vertices, weights):
    """What `build_csr` does, but for the sum over all offsets, which would touch every page."""
    dtype = np.dtype(np.int32 if num_vertices < 2**31 else np.int64)
    generator = np.random.default_rng(5)
    src, dst = (arrays.read_only(num_vertices - 1 - generator.integers(0, 40, 300).astype(dtype)) for _ in range(2))
    values = None if weights is None else arrays.read_only(generator.random(300))
    layout = building.choose_layout(num_vertices, dtype)
    first, bits = (num_vertices >> layout.bucket_bits) - 8, layout.bucket_bits
    counts = with_holes((1, layout.num_buckets), np.int64)
    csr_kernels.count_edges(0, 1, src, dst, False, True, bits, counts)
    starts = np.concatenate([[0], np.cumsum(counts[0, first:])])
    cursors = with_holes((1, layout.num_buckets), np.int64)
    cursors[0, first:] = starts[:-1]
    keys, out = np.empty(300, layout.key_dtype), None if weights is None else np.empty(300)
    scatter = (False, True, bits, layout.vertex_bits, cursors, keys, out)
    csr_kernels.scatter_edges(0, 1, src, dst, values, *scatter)
    indptr = with_holes((num_vertices + 1,), np.int64)
    all_starts = with_holes((layout.num_buckets + 1,), np.int64)
    all_starts[first:] = starts
    csr_kernels.sort_buckets(
        0, 1, np.array([first]), all_starts, bits, layout.vertex_bits, 0, False, None, keys, out,
        np.empty(300, layout.key_dtype), None if weights is None else np.empty(300), indptr,
    )  # fmt: skip
    order = np.lexsort((*([] if values is None else [values]), dst, src))
    assert keys.tolist() == dst[order].tolist()
    assert values is None or out.tolist() == values[order].tolist()
    lengths = [int(np.count_nonzero(src == vertex)) for vertex in range(num_vertices - 40, num_vertices)]
    assert indptr[num_vertices - 39 :].tolist() == lengths


@pytest.mark.parametrize("border", BORDERS_OF_THREADS)
def test_edges_behind_the_border_are_turned_round(far_graph, with_holes, border):
    """The last thread of very many has just these edges."""
    graph = far_graph(border)
    total, count = graph.num_edges, len(PAIRS)
    num_threads = -(-total // count)
    first = total * (num_threads - 1) // num_threads  # of the thread's edges
    pairs = PAIRS[count - (total - first) :]
    first_rows = with_holes((num_threads,), np.int64)
    first_rows[-1] = np.searchsorted(graph.indptr, first, side="right") - 1
    layout = building.choose_layout(NUM_VERTICES, np.dtype(np.int32))
    assert layout.bucket_bits == 0  # a bucket for each vertex
    cursors, keys = with_holes((num_threads, layout.num_buckets), np.int64), with_holes((total,), np.int32)
    ends = np.sort([v for _, v in pairs])
    cursors[-1] = first + np.searchsorted(ends, np.arange(layout.num_buckets))
    bits = (layout.bucket_bits, layout.vertex_bits)
    csr_kernels.scatter_reversed(
        num_threads - 1, num_threads, first_rows, graph.indptr, graph.indices, None, *bits, cursors, keys, None
    )
    assert keys[first:].tolist() == [u for u, _ in sorted(pairs, key=lambda pair: pair[1])]
    assert cursors[-1].tolist() == (first + np.searchsorted(ends, np.arange(layout.num_buckets), "right")).tolist()


@pytest.mark.parametrize("border", BORDERS_OF_THREADS)
def test_twins_behind_the_border(far_graph, with_holes, border):
    """A thread's sum of differences is that of the same edges in a small graph; with both directions it is 0."""
    graph = far_graph(border)
    num_threads, key = graph.num_edges // len(PAIRS), np.uint64(12345)
    first_rows, sums = with_holes((num_threads,), np.int64), with_holes((num_threads,), np.uint64)
    first = graph.num_edges * (num_threads - 1) // num_threads
    first_rows[-1] = np.searchsorted(graph.indptr, first, side="right") - 1
    twins.sum_differences(num_threads - 1, num_threads, first_rows, graph.indptr, graph.indices, None, key, sums)
    pairs = [*[(0, 0)] * max(border - first, 0), *PAIRS[max(first - border, 0) :]]
    small = shoal.Graph.from_edges(*np.array(pairs).T, directed=True, num_vertices=NUM_VERTICES, edge_dtype="int64")
    expected = np.zeros(1, np.uint64)
    twins.sum_differences(0, 1, np.zeros(1, np.int64), small.indptr, small.indices, None, key, expected)
    assert sums[-1] == expected[0] != 0
    both = shoal.Graph.from_edges(*np.array(pairs).T)
    assert building.is_symmetric(both.indptr, both.indices, None)


@pytest.mark.parametrize("num_edges", [2**31 - 3, 2**31 + 3, 2**32 + 3])
def test_last_drawn_edges(with_holes, num_edges):
    """Of so many edges the last thread of very many draws the last few."""
    num_threads, seed = num_edges // 3, 7
    src, dst = with_holes((num_edges,), np.int32), with_holes((num_edges,), np.int32)
    thresholds = tuple(np.uint64(round(total * 2**32)) for total in (0.57, 0.76, 0.95))
    last = (num_threads - 1, num_threads, np.uint64(seed))
    generate_kernels.draw_rmat(*last, src, dst, 31, thresholds, False, 0)
    first = num_edges * (num_threads - 1) // num_threads
    for edge in range(first, num_edges):
        assert (src[edge], dst[edge]) == plain_rmat_edge(edge, 31, seed)
    generate_kernels.draw_uniform(*last, src, dst, np.uint64(2**31 - 1), 0)
    key = split_mix(seed, 0)
    for edge in range(first, num_edges):
        assert src[edge] == split_mix(key, 2 * edge) * (2**31 - 1) >> 64
        assert dst[edge] == split_mix(key, 2 * edge + 1) * (2**31 - 1) >> 64


@pytest.mark.parametrize("border", BORDERS_OF_THREADS)
def test_weights_of_edges_behind_the_border(far_graph, with_holes, border):
    """A weight follows from the ends of an edge, wherever it stands."""
    graph = far_graph(border)
    num_threads = graph.num_edges // len(PAIRS)
    weights, spread = with_holes((graph.num_edges,), np.int32), (1, np.uint64(1000), 1.0)
    generate_kernels.weigh(num_threads - 1, num_threads, np.uint64(3), graph.indptr, graph.indices, weights, *spread)
    small = shoal.Graph.from_edges(*np.array(PAIRS).T, directed=True, num_vertices=NUM_VERTICES, edge_dtype="int64")
    expected = np.zeros(len(PAIRS), np.int32)
    generate_kernels.weigh(0, 1, np.uint64(3), small.indptr, small.indices, expected, *spread)
    assert weights[border:].tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 4


IDS = [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 10**18 - 1]


@pytest.mark.parametrize("suffix", [".txt", ".parquet"])
@pytest.mark.parametrize("largest", IDS)
def test_ids_at_the_borders_are_read(tmp_path, largest, suffix):
    rows = [(largest, 5), (5, largest - 1), (largest - 1, largest)]
    path = tmp_path / f"g{suffix}"
    if suffix == ".txt":
        path.write_text("".join(f"{u} {v}\n" for u, v in rows))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"src": [u for u, _ in rows], "dst": [v for _, v in rows]}), path)
    graph = shoal.read(path, directed=True)
    names = graph.labels.tolist()
    assert names == [5, largest - 1, largest]
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    assert sorted((names[u], names[v]) for u, v in zip(src, graph.indices, strict=True)) == sorted(rows)


def test_more_vertices_than_edges_could_have_are_refused_unless_asked_for(tmp_path):
    path = tmp_path / "g.mtx"
    count = 2**22 + 1 + 64
    path.write_text(f"%%MatrixMarket matrix coordinate pattern general\n{count} {count} 1\n1 {count}\n")
    with pytest.raises(shoal.FileFormatError, match=f"declares {count} vertices and has 1 edges.*num_vertices={count}"):
        shoal.read(path)
    assert shoal.read(path, num_vertices=count).num_vertices == count
    path.write_text(path.read_text().replace(str(count), str(count - 1)))
    assert shoal.read(path).num_vertices == count - 1


@pytest.mark.parametrize("num_vertices", [2**31 - 1, 2**31, 2**33])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "cc", "pagerank", "bc"])
def test_estimates_grow_without_a_border(num_vertices, algorithm):
    """Twice the vertices and edges take no less, and what is known for sure is part of it."""
    weights = True if algorithm == "sssp" else None
    sizes = [(num_vertices * factor, 2**35 * factor, weights) for factor in (1, 2)]
    for devices in ("cpu", "cpu:8x1"):
        small, large = (estimate_memory(size, algorithm, devices=devices).total_bytes for size in sizes)
        edge_bytes = (4 if num_vertices < 2**31 else 8) + (4 if weights else 0)
        assert small >= 2**35 * edge_bytes + 8 * num_vertices
        assert large >= 2 * small * 0.99


@pytest.mark.parametrize("num_devices", [2, 8, 60])
@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_items_of_many_devices_with_many_vertices(communication, num_devices):
    """Where every device has a border of nearly all vertices, counts pass 2**31 and 2**40."""
    count = 2**31 - 1
    part = SimpleNamespace(
        num_global=count,
        num_owned=count // num_devices,
        border_sizes=np.broadcast_to(np.int64(count), num_devices),
        copy_here=np.broadcast_to(np.int32(0), count),
    )
    items = _items("collect", make_schedule(communication, num_devices), [part] * num_devices)
    assert items.shape == (num_devices,)
    assert items.min() >= count * (num_devices if communication == "selective" else 1)
    assert items.max() <= count * num_devices**2
