# SPDX-License-Identifier: Apache-2.0
"""The generators: reproducible on any number of threads, equal to a plain Python version, and random enough."""

from __future__ import annotations

import doctest
import hashlib
import itertools
import tracemalloc

import networkx
import numba
import numpy as np
import pytest

from shoal import generate
from shoal.errors import ArgumentError, OutOfMemoryError
from shoal.graph import Graph

pytestmark = pytest.mark.host_only("draws graphs on the CPU")

QUADRANTS = (0.57, 0.19, 0.19, 0.05)
AS_DRAWN = {"directed": True, "deduplicate": False, "drop_self_loops": False}
GENERATORS = {
    "rmat": lambda **options: generate.rmat(13, 8, **options),
    "uniform": lambda **options: generate.uniform(num_vertices=5000, num_edges=70000, **options),
    "grid": lambda **options: generate.grid(211, 307, drop=0.2, **options),
}


# A plain Python version, written from the description of the random streams alone.

WORD = 2**64 - 1
EDGES, SHUFFLE, WEIGHTS, DROPS = range(4)


def split_mix(state: int, number: int) -> int:
    word = (state + 0x9E3779B97F4A7C15 * (number + 1)) & WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def plain_permutation(vertex: int, scale: int, seed: int) -> int:
    key = split_mix(seed, SHUFFLE)
    for step in range(4):
        vertex = (vertex * (split_mix(key, 2 * step) | 1) + split_mix(key, 2 * step + 1)) % 2**scale
        vertex ^= vertex >> (scale + 1) // 2
    return vertex


def plain_rmat_edge(edge: int, scale: int, seed: int) -> tuple[int, int]:
    key, per_edge = split_mix(seed, EDGES), (scale + 1) // 2
    words = [split_mix(key, edge * per_edge + i) for i in range(per_edge)]
    uniforms = [half for word in words for half in (word >> 32, word % 2**32)][:scale]
    limits = [round(sum(QUADRANTS[: i + 1]) * 2**32) for i in range(3)]
    quadrants = [sum(uniform >= limit for limit in limits) for uniform in uniforms]
    row = int("0" + "".join(str(quadrant // 2) for quadrant in quadrants), 2)
    column = int("0" + "".join(str(quadrant % 2) for quadrant in quadrants), 2)
    return row, column


def plain_weight(u: int, v: int, low: int, high: int, seed: int) -> int:
    word = split_mix(split_mix(split_mix(seed, WEIGHTS), min(u, v)), max(u, v))
    return low + word * (high - low + 1) // 2**64


def plain_grid(rows: int, columns: int, drop: float, seed: int) -> set[tuple[int, int]]:
    key, limit, edges = split_mix(seed, DROPS), int(drop * 2**32), set()
    for vertex in range(rows * columns):
        word = split_mix(key, vertex)
        if vertex % columns < columns - 1 and word >> 32 >= limit:
            edges.add((vertex, vertex + 1))
        if vertex // columns < rows - 1 and word % 2**32 >= limit:
            edges.add((vertex, vertex + columns))
    return edges


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(sources(graph).tolist(), graph.indices.tolist(), strict=True))


def sources(graph: Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.num_vertices), graph.degree)


def undirected(edges: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(u, v) for u, v in edges if u < v}


def chi_square(counts: np.ndarray, probabilities: np.ndarray | float) -> float:
    expected = counts.sum() * probabilities
    return float(((counts - expected) ** 2 / expected).sum())


# The same graph everywhere


def test_plain_version_is_split_mix():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [split_mix(1234567, i) for i in range(4)] == published


@pytest.mark.parametrize("scale", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_rmat_equals_plain_version(scale, seed):
    graph = generate.rmat(scale, 3, seed=seed, shuffle=False, **AS_DRAWN)
    expected = [plain_rmat_edge(edge, scale, seed) for edge in range(3 * 2**scale)]
    assert edges_of(graph) == sorted(expected)


def test_shuffled_rmat_equals_plain_version():
    graph = generate.rmat(9, 4, seed=5, weights=(1, 99))
    drawn = [plain_rmat_edge(edge, 9, 5) for edge in range(4 * 2**9)]
    edges = {tuple(plain_permutation(vertex, 9, 5) for vertex in edge) for edge in drawn}
    edges = {(u, v) for u, v in edges | {(v, u) for u, v in edges} if u != v}
    assert edges_of(graph) == sorted(edges)
    assert graph.weights.tolist() == [plain_weight(u, v, 1, 99, 5) for u, v in sorted(edges)]


@pytest.mark.parametrize("num_vertices", [1, 3, 1000])
def test_uniform_equals_plain_version(num_vertices):
    key = split_mix(7, EDGES)
    words = [split_mix(key, i) * num_vertices // 2**64 for i in range(2 * 500)]
    graph = generate.uniform(num_vertices=num_vertices, num_edges=500, seed=7, **AS_DRAWN)
    assert edges_of(graph) == sorted(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize("drop", [0.0, 0.3, 0.999])
def test_grid_equals_plain_version(drop):
    assert undirected(edges_of(generate.grid(13, 17, drop=drop, seed=9))) == plain_grid(13, 17, drop, 9)


def test_kernels_draw_ids_beyond_32_bits():
    from shoal.backends.cpu.kernels import generate as kernels

    src, dst = np.empty(700, np.int64), np.empty(700, np.int64)
    thresholds = generate._quadrant_thresholds(*QUADRANTS[:3])
    kernels.draw_rmat(0, 1, np.uint64(3), src, dst, 39, thresholds, True, 0)
    drawn = [plain_rmat_edge(edge, 39, 3) for edge in range(700)]
    assert src.tolist() == [plain_permutation(row, 39, 3) for row, _ in drawn]
    assert dst.tolist() == [plain_permutation(column, 39, 3) for _, column in drawn]
    limit = 2**40 - 12345
    kernels.draw_uniform(0, 1, np.uint64(3), src, dst, np.uint64(limit), 0)
    assert src.tolist() == [split_mix(split_mix(3, EDGES), 2 * i) * limit // 2**64 for i in range(700)]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (lambda: generate.rmat(12, seed=1), "714a40bd2009b873"),
        (lambda: generate.uniform(12, seed=1), "282b0664e63e2f07"),
        (lambda: generate.grid(64, 64, drop=0.1, seed=1), "1db32862b0badcc7"),
    ],
)
def test_graphs_never_change_between_versions(graph, expected):
    made = graph()
    digest = hashlib.sha256(made.indptr.astype("<i8").tobytes() + made.indices.astype("<i8").tobytes())
    assert digest.hexdigest()[:16] == expected


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("weights", [None, (1, 255), "float64"])
def test_same_graph_on_any_number_of_threads(name, weights):
    expected = GENERATORS[name](seed=4, weights=weights, num_threads=1)
    for num_threads in (2, 3):
        assert GENERATORS[name](seed=4, weights=weights, num_threads=num_threads) == expected


def test_more_threads_than_edges():
    assert generate.rmat(1, 1, num_threads=5, **AS_DRAWN).num_edges == 2
    assert generate.grid(1, 2, num_threads=5, weights=(3, 3)).weights.tolist() == [3, 3]


@pytest.mark.parametrize("name", GENERATORS)
def test_seeds_differ(name):
    graphs = [GENERATORS[name](seed=seed) for seed in (0, 1, 2)]
    assert len({graph.indices.tobytes() for graph in graphs}) == 3
    assert GENERATORS[name](seed=1) == graphs[1]


def test_kronecker_is_rmat():
    assert generate.kronecker is generate.rmat


# Random enough


def test_every_level_falls_into_the_quadrants():
    scale = 12
    graph = generate.rmat(scale, 32, seed=2, shuffle=False, **AS_DRAWN)
    quadrants = [2 * (sources(graph) >> bit & 1) + (graph.indices >> bit & 1) for bit in range(scale)]
    for level in quadrants:
        assert chi_square(np.bincount(level, minlength=4), np.array(QUADRANTS)) < 25  # 3 degrees of freedom
    for level, following in itertools.pairwise(quadrants):
        pairs = np.bincount(4 * level + following, minlength=16)
        assert chi_square(pairs, np.outer(QUADRANTS, QUADRANTS).ravel()) < 50  # 15 degrees of freedom


def test_probabilities_are_used():
    graph = generate.rmat(10, 16, a=0.1, b=0.2, c=0.7, seed=3, shuffle=False, **AS_DRAWN)
    counts = np.bincount(2 * (sources(graph) >> 9) + (graph.indices >> 9), minlength=4)
    assert counts[3] == 0
    assert chi_square(counts[:3], np.array([0.1, 0.2, 0.7])) < 20
    assert edges_of(generate.rmat(4, 1, a=1, b=0, c=0, shuffle=False, **AS_DRAWN)) == [(0, 0)] * 16
    assert edges_of(generate.rmat(4, 1, a=0, b=0, c=0, shuffle=False, **AS_DRAWN)) == [(15, 15)] * 16


@pytest.mark.parametrize("scale", range(17))
def test_shuffle_is_a_permutation(scale):
    from shoal.backends.cpu.kernels import generate as kernels

    @numba.njit
    def permute(ids, key):
        kernels.permute_block(ids, len(ids), scale, key)

    ids = np.arange(2**scale, dtype=np.uint64)
    permute(ids, np.uint64(split_mix(11, SHUFFLE)))
    assert ids.tolist()[:50] == [plain_permutation(vertex, scale, 11) for vertex in range(min(50, 2**scale))]
    assert np.array_equal(np.sort(ids), np.arange(2**scale, dtype=np.uint64))


def test_shuffled_ids_say_nothing_about_the_degree():
    for shuffle, allowed in ((False, (0.0, 0.5)), (True, (0.6, 1.6))):
        graph = generate.rmat(15, 8, seed=6, shuffle=shuffle)
        vertices = np.arange(graph.num_vertices)
        for bit in range(15):
            is_set = (vertices >> bit & 1).astype(bool)
            assert allowed[0] < graph.degree[is_set].mean() / graph.degree[~is_set].mean() < allowed[1]


def test_rmat_is_skewed_and_uniform_is_not():
    rmat, uniform = generate.rmat(14, seed=1), generate.uniform(14, seed=1)
    assert rmat.degree.max() > 40 * rmat.degree.mean()
    assert uniform.degree.max() < 3 * uniform.degree.mean()


def test_uniform_endpoints_are_uniform():
    graph = generate.uniform(num_vertices=3000, num_edges=200000, seed=8, **AS_DRAWN)
    for ends in (sources(graph), graph.indices):
        assert chi_square(np.bincount(ends, minlength=3000), 1 / 3000) < 3000 + 5 * 6000**0.5


# Shape


def test_default_graphs_are_simple_and_symmetric():
    for graph in (generate.rmat(10), generate.uniform(10), generate.grid(20, 30, drop=0.1)):
        edges = edges_of(graph)
        assert not graph.is_directed
        assert len(set(edges)) == len(edges)
        assert all(u != v for u, v in edges)
        assert {(v, u) for u, v in edges} == set(edges)


def test_isolated_vertices_are_kept():
    graph = generate.rmat(10, 1)
    assert graph.num_vertices == 1024
    assert (graph.degree == 0).sum() > 100
    assert generate.uniform(num_vertices=77, num_edges=0).degree.tolist() == [0] * 77
    assert generate.uniform(num_vertices=0).num_vertices == 0


def test_uniform_by_scale_or_by_number():
    assert generate.uniform(8) == generate.uniform(8, 16) == generate.uniform(num_vertices=256, num_edges=4096)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2), (5, 7)])
def test_whole_grid_is_that_of_networkx(shape):
    graph = generate.grid(*shape)
    expected = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(*shape), ordering="sorted")
    assert graph.num_vertices == shape[0] * shape[1]
    assert undirected(edges_of(graph)) == {tuple(sorted(edge)) for edge in expected.edges}
    assert Graph.from_csr(graph.indptr, graph.indices, directed=False) == graph  # in order and symmetric


def test_grid_drops_the_given_fraction():
    whole, thinned = generate.grid(300, 400), generate.grid(300, 400, drop=0.1, seed=3)
    assert undirected(edges_of(thinned)) < undirected(edges_of(whole))
    for step in (1, 400):
        kept = (thinned.indices - sources(thinned) == step).sum() / (whole.indices - sources(whole) == step).sum()
        assert abs(kept - 0.9) < 0.005


# Weights


@pytest.mark.parametrize("name", GENERATORS)
def test_weights_are_symmetric_and_change_no_edge(name):
    graph = GENERATORS[name](seed=2, weights=(1, 64))
    plain = GENERATORS[name](seed=2)
    assert np.array_equal(graph.indptr, plain.indptr)
    assert np.array_equal(graph.indices, plain.indices)
    assert (graph.to_scipy() != graph.to_scipy().T).nnz == 0
    assert graph.weights.dtype == np.int32


def test_whole_weights_are_uniform():
    weights = generate.uniform(13, seed=1, directed=True, weights=(-3, 60)).weights
    assert (weights.min(), weights.max()) == (-3, 60)
    assert chi_square(np.bincount(weights + 3), 1 / 64) < 63 + 5 * 126**0.5


def test_the_widest_whole_weights():
    low, high = -(2**31), 2**31 - 1
    graph = generate.rmat(6, 4, weights=(low, high))
    assert graph.weights.tolist() == [plain_weight(u, v, low, high, 1) for u, v in edges_of(graph)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fractional_weights(dtype):
    weights = generate.uniform(13, weights=dtype).weights
    assert weights.dtype == dtype
    assert 0 <= weights.min() < 1e-3
    assert 0.999 < weights.max() < 1
    assert abs(weights.mean() - 0.5) < 0.005


def test_removing_copies_changes_no_weight():
    copies = generate.rmat(7, 30, weights=(1, 1000), deduplicate=False)
    single = generate.rmat(7, 30, weights=(1, 1000))
    weight_of = dict(zip(edges_of(copies), copies.weights.tolist(), strict=True))
    assert copies.num_edges > single.num_edges
    assert [weight_of[edge] for edge in edges_of(single)] == single.weights.tolist()


# Widths, memory and bad arguments


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("widths", [("int32", "int32"), ("int32", "int64"), ("int64", "int64")])
def test_widths(name, widths):
    options = {"vertex_dtype": widths[0], "edge_dtype": widths[1]}
    graph = GENERATORS[name](weights=(1, 9), **options)
    assert (graph.vertex_dtype, graph.edge_dtype) == widths
    assert graph == GENERATORS[name](weights=(1, 9))


@pytest.mark.parametrize("options", [{}, {"weights": "float64"}, {"directed": True}])
def test_memory_is_foreseen(options, monkeypatch):
    generate.rmat(5, **options)  # compiled before memory is traced
    tracemalloc.start()
    try:
        generate.rmat(15, 16, num_threads=1, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(generate, "available_memory_bytes", lambda: int(0.75 * peak))
    with pytest.raises(OutOfMemoryError, match=r"^scale=15, edge_factor=16 needs about 0\.0 GB"):
        generate.rmat(15, 16, **options)
    monkeypatch.setattr(generate, "available_memory_bytes", lambda: int(1.25 * peak))
    generate.rmat(15, 16, **options)


BAD_ARGUMENTS = [
    (generate.rmat, (41,), {}, "scale=41 is out of range; it must be a whole number from 0 to 40"),
    (generate.rmat, (-1,), {}, "scale=-1 is out of range"),
    (generate.rmat, (10.5,), {}, "scale=10.5 is not allowed; it must be a whole number"),
    (generate.rmat, ("ten",), {}, "scale='ten' is not allowed"),
    (generate.rmat, (10, -1), {}, "edge_factor=-1 is out of range; it must be a whole number of at least 0"),
    (generate.rmat, (10,), {"a": -0.1}, "a=-0.1 is out of range; it must be a number at least 0 and at most 1"),
    (generate.rmat, (10,), {"b": float("nan")}, "b=nan is out of range"),
    (generate.rmat, (10,), {"c": "x"}, "c='x' is not allowed; it must be a number"),
    (generate.rmat, (10,), {"a": 0.7, "b": 0.3}, "a + b + c = 0.7 + 0.3 + 0.19 = 1.19 is out of range"),
    (generate.rmat, (10,), {"seed": -1}, "seed=-1 is out of range; it must be a whole number from 0 to 184467"),
    (generate.rmat, (10,), {"seed": 2**64}, "seed=18446744073709551616 is out of range"),
    (generate.rmat, (10,), {"seed": None}, "seed=None is not allowed"),
    (generate.rmat, (10,), {"weights": 5}, "weights=5 is not allowed; allowed: None, (low, high), 'float32'"),
    (generate.rmat, (10,), {"weights": "int32"}, "weights='int32' is not allowed"),
    (generate.rmat, (10,), {"weights": (1, 2, 3)}, "weights=(1, 2, 3) is not allowed"),
    (generate.rmat, (10,), {"weights": (9, 1)}, "weights[1]=1 is out of range; it must be a whole number from 9 to"),
    (generate.rmat, (10,), {"weights": (0.5, 1)}, "weights[0]=0.5 is not allowed; it must be a whole number"),
    (generate.rmat, (10,), {"weights": (0, 2**31)}, "weights[1]=2147483648 is out of range"),
    (generate.rmat, (10,), {"num_threads": 0}, "num_threads=0 is out of range; it must be a whole number of at least"),
    (generate.rmat, (10,), {"vertex_dtype": "int16"}, "vertex_dtype='int16' is not allowed; allowed: int32, int64"),
    (generate.rmat, (10,), {"edge_dtype": "int16"}, "edge_dtype='int16' is not allowed; allowed: int32, int64"),
    (generate.rmat, (10,), {"vertex_dtype": "int64", "edge_dtype": "int32"}, "edge_dtype=int32 is not allowed"),
    (generate.rmat, (31,), {"vertex_dtype": "int32"}, "vertex_dtype=int32 is too narrow for 2147483648 vertices"),
    (generate.uniform, (), {}, "scale=None, num_vertices=None: exactly one of them must be given"),
    (generate.uniform, (3,), {"num_vertices": 8}, "scale=3, num_vertices=8: exactly one of them must be given"),
    (generate.uniform, (3, 4), {"num_edges": 8}, "edge_factor=4, num_edges=8: at most one of them may be given"),
    (generate.uniform, (), {"num_vertices": 0, "num_edges": 1}, "num_edges (of a graph without vertices)=1"),
    (generate.uniform, (), {"num_vertices": -5}, "num_vertices=-5 is out of range"),
    (generate.grid, (0, 5), {}, "rows=0 is out of range; it must be a whole number from 1 to"),
    (generate.grid, (5, 2.0), {}, "columns=2.0 is not allowed; it must be a whole number"),
    (generate.grid, (5, 5), {"drop": 1}, "drop=1 is out of range; it must be a number at least 0 and below 1"),
    (generate.grid, (5, 5), {"drop": -0.5}, "drop=-0.5 is out of range"),
]


@pytest.mark.parametrize(("function", "args", "options", "message"), BAD_ARGUMENTS)
def test_bad_arguments(function, args, options, message):
    with pytest.raises(ArgumentError) as caught:
        function(*args, **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: generate.rmat(40, directed=True), "scale=40, edge_factor=16 needs about "),
        (lambda: generate.uniform(38), "274877906944 vertices and 4398046511104 edges needs about "),
        (lambda: generate.grid(2**40, 2**40, weights=(1, 2)), "rows=1099511627776, columns=1099511627776 needs about "),
    ],
)
def test_what_cannot_fit_is_refused(make, message):
    with pytest.raises(OutOfMemoryError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(" GB is available")


def test_examples():
    assert doctest.testmod(generate).failed == 0
