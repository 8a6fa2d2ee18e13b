# SPDX-License-Identifier: Apache-2.0
"""Graph against plain sorting and SciPy's sparse arrays, on random edges and on every kind of bad input."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from shoal import arrays
from shoal.errors import ArgumentError, GraphError, OutOfMemoryError
from shoal.graph import Graph

pytestmark = pytest.mark.host_only("builds graphs on the CPU")

WIDTHS = [("int32", "int32"), ("int32", "int64"), ("int64", "int64")]
WEIGHT_DTYPES = ["int32", "float32", "float64"]


@st.composite
def edge_arrays(draw, max_vertices=30, max_edges=80):
    """Draw (num_vertices, src, dst): few vertices, so that loops and parallel edges are frequent."""
    num_vertices = draw(st.integers(1, max_vertices))
    num_edges = draw(st.integers(0, max_edges))
    ids = st.lists(st.integers(0, num_vertices - 1), min_size=num_edges, max_size=num_edges)
    return num_vertices, np.array(draw(ids), np.int32), np.array(draw(ids), np.int32)


def sort_edges(src, dst, weights, *, directed, deduplicate, drop_self_loops):
    """Sort the edges that a graph must store by (src, dst, weight), the slow and plain way."""
    weights = np.zeros(src.size, np.int32) if weights is None else weights
    if drop_self_loops:
        src, dst, weights = (array[src != dst] for array in (src, dst, weights))
    if not directed:
        both = src != dst
        src, dst, weights = (
            np.concatenate([src, dst[both]]),
            np.concatenate([dst, src[both]]),
            np.concatenate([weights, weights[both]]),
        )
    order = np.lexsort((weights, dst, src))
    src, dst, weights = src[order], dst[order], weights[order]
    if deduplicate and src.size:
        first = np.append(True, (np.diff(src) != 0) | (np.diff(dst) != 0))
        src, dst, weights = src[first], dst[first], weights[first]
    return src, dst, weights


def assert_has_edges(graph, num_vertices, src, dst, weights):
    """Check every array of a graph against its edges in order."""
    counts = np.bincount(src, minlength=num_vertices)
    np.testing.assert_array_equal(graph.indptr, np.append(0, np.cumsum(counts)))
    np.testing.assert_array_equal(graph.indices, dst)
    np.testing.assert_array_equal(graph.degree, counts)
    if graph.is_weighted:
        np.testing.assert_array_equal(graph.weights, weights)


class TestFromEdges:
    @given(
        edge_arrays(),
        st.sampled_from([None, *WEIGHT_DTYPES]),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.integers(0, 2**32 - 1),
    )
    def test_stores_the_edges_in_order(self, edges, weight_dtype, directed, deduplicate, drop_self_loops, seed):
        num_vertices, src, dst = edges
        weights = None
        if weight_dtype is not None:
            weights = np.random.default_rng(seed).integers(-3, 4, src.size).astype(weight_dtype)
        options = {"directed": directed, "deduplicate": deduplicate, "drop_self_loops": drop_self_loops}
        graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, **options)
        assert_has_edges(graph, num_vertices, *sort_edges(src, dst, weights, **options))
        assert graph.is_directed == directed
        assert graph.is_weighted == (weights is not None)
        assert weights is None or graph.weights.dtype == weights.dtype

    @given(edge_arrays(), st.booleans())
    def test_is_scipys_matrix(self, edges, directed):
        num_vertices, src, dst = edges
        weights = np.arange(1, src.size + 1, dtype=np.int32)
        graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=directed)
        oracle = scipy.sparse.coo_array((weights, (src, dst)), shape=(num_vertices, num_vertices)).toarray()
        if not directed:
            oracle = oracle + oracle.T - np.diag(np.diag(oracle))
        np.testing.assert_array_equal(graph.to_scipy().toarray(), oracle)

    @given(edge_arrays(), st.sampled_from(WIDTHS), st.booleans(), st.booleans())
    def test_every_pair_of_widths(self, edges, widths, directed, is_weighted):
        num_vertices, src, dst = edges
        weights = np.arange(src.size, dtype=np.int32) if is_weighted else None
        options = {"num_vertices": num_vertices, "directed": directed}
        graph = Graph.from_edges(src, dst, weights, vertex_dtype=widths[0], edge_dtype=widths[1], **options)
        assert (graph.vertex_dtype, graph.edge_dtype) == widths
        assert graph == Graph.from_edges(src, dst, weights, **options)
        reverse = graph.reverse()
        assert (reverse.vertex_dtype, reverse.edge_dtype) == widths

    @pytest.mark.parametrize("num_vertices", [3, 1000, 1025, 70_000, 2**22 + 3])
    @pytest.mark.parametrize("deduplicate", [False, True])
    def test_many_buckets_and_threads(self, num_vertices, deduplicate):
        generator = np.random.default_rng(num_vertices)
        # A square root makes high ids likelier, and a tenth of the edges meet in one vertex.
        src, dst = (np.sqrt(generator.random((2, 2**17))) * num_vertices).astype(np.int32)
        src[::10] = 1
        weights = generator.integers(0, 5, src.size).astype(np.int32)
        options = {"directed": False, "deduplicate": deduplicate, "drop_self_loops": False}
        expected = sort_edges(src, dst, weights, **options)
        for num_threads in (1, 2, 5):
            graph = Graph.from_edges(
                src, dst, weights, num_vertices=num_vertices, num_threads=num_threads, deduplicate=deduplicate
            )
            assert_has_edges(graph, num_vertices, *expected)

    @pytest.mark.parametrize("deduplicate", [False, True])
    def test_ids_too_wide_for_32_bits_while_sorting(self, monkeypatch, deduplicate):
        src, dst = np.random.default_rng(7).integers(0, 3000, (2, 2**16 + 1)).astype(np.int32)
        expected = Graph.from_edges(src, dst, directed=True, deduplicate=deduplicate)
        monkeypatch.setattr("shoal.backends.cpu.csr._MIN_SPARE_BITS", 30)
        monkeypatch.setattr("shoal.backends.cpu.csr._CHUNK", 1000)
        graph = Graph.from_edges(src, dst, directed=True, deduplicate=deduplicate)
        assert graph == expected
        assert graph.vertex_dtype == np.int32
        assert graph.reverse() == expected.reverse()

    def test_many_parallel_edges_are_sorted_by_weight(self):
        weights = np.random.default_rng(5).random(20_000)
        graph = Graph.from_edges(np.zeros(20_000, np.int32), np.ones(20_000, np.int32), weights, directed=True)
        np.testing.assert_array_equal(graph.weights, np.sort(weights))

    def test_no_vertices(self):
        graph = Graph.from_edges([], [])
        assert (graph.num_vertices, graph.num_edges, graph.max_degree) == (0, 0, 0)
        assert graph.indptr.tolist() == [0]
        assert graph.reverse().num_vertices == 0

    def test_isolated_vertices(self):
        graph = Graph.from_edges([2], [4], num_vertices=7, directed=True)
        assert graph.degree.tolist() == [0, 0, 1, 0, 0, 0, 0]
        assert graph.reverse().degree.tolist() == [0, 0, 0, 0, 1, 0, 0]
        assert Graph.from_edges([], [], num_vertices=3).degree.tolist() == [0, 0, 0]

    def test_single_vertex_with_loops(self):
        graph = Graph.from_edges([0, 0], [0, 0])
        assert (graph.num_vertices, graph.num_edges) == (1, 2)
        assert graph.deduplicated().num_edges == 1
        assert graph.without_self_loops().num_edges == 0

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i4"])
    def test_ids_of_every_integer_type(self, dtype):
        graph = Graph.from_edges(np.array([0, 1], dtype), np.array([1, 2], dtype))
        assert graph == Graph.from_edges([0, 1], [1, 2])
        assert graph.vertex_dtype == np.int32

    def test_ids_of_two_types_and_strides(self):
        pairs = np.array([[0, 1], [1, 2], [2, 0]])
        expected = Graph.from_edges([0, 1, 2], [1, 2, 0])
        assert Graph.from_edges(pairs[:, 0], pairs[:, 1]) == expected
        assert Graph.from_edges(pairs[:, 0].astype(np.int32), pairs[:, 1]) == expected
        assert Graph.from_edges(range(3), (1, 2, 0)) == expected

    def test_arrays_of_other_libraries(self):
        pyarrow = pytest.importorskip("pyarrow")
        src, dst = pyarrow.array([0, 1], "int32"), pyarrow.chunked_array([[1], [2]], "int64")
        assert Graph.from_edges(src, dst, pyarrow.array([0.5, 1.5])) == Graph.from_edges([0, 1], [1, 2], [0.5, 1.5])

        class ArrowOnly:
            def __arrow_array__(self, type=None):
                return src

        assert Graph.from_edges(ArrowOnly(), dst) == Graph.from_edges([0, 1], [1, 2])

    def test_dlpack(self):
        array = np.array([0, 1])

        class DLPackOnly:
            def __dlpack__(self, **options):
                return array.__dlpack__(**options)

            def __dlpack_device__(self):
                return array.__dlpack_device__()

        assert Graph.from_edges(DLPackOnly(), [1, 2]) == Graph.from_edges([0, 1], [1, 2])


class TestWeights:
    @pytest.mark.parametrize(
        ("given_dtype", "stored_dtype"),
        [
            ("bool", "int32"),
            ("int8", "int32"),
            ("uint16", "int32"),
            ("int64", "int32"),
            ("uint64", "int32"),
            ("float16", "float32"),
            ("float32", "float32"),
            ("float64", "float64"),
            ("longdouble", "float64"),
        ],
    )
    def test_types(self, given_dtype, stored_dtype):
        graph = Graph.from_edges([0, 1], [1, 2], np.array([1, 0], given_dtype), directed=True)
        assert graph.weights.dtype == stored_dtype
        assert graph.weights.tolist() == [1, 0]

    def test_large_whole_numbers_become_float64(self):
        graph = Graph.from_edges([0, 1], [1, 2], [2**40, -1], directed=True)
        assert graph.weights.dtype == np.float64
        assert graph.weights.tolist() == [2**40, -1]
        assert (graph.min_weight, graph.max_weight) == (-1, 2**40)

    def test_negative_and_infinite_are_kept(self):
        graph = Graph.from_edges([0, 1], [1, 2], [-np.inf, np.inf], directed=True)
        assert graph.weights.tolist() == [-np.inf, np.inf]

    def test_without_edges(self):
        assert Graph.from_edges([], [], []).is_weighted
        assert Graph.from_edges([], [], []).min_weight is None
        assert Graph.from_edges([0], [1]).max_weight is None


class TestReverse:
    @given(edge_arrays(), st.sampled_from([None, *WEIGHT_DTYPES]))
    def test_turns_every_edge(self, edges, weight_dtype):
        num_vertices, src, dst = edges
        weights = None if weight_dtype is None else (np.arange(src.size) % 4).astype(weight_dtype)
        graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=True)
        assert graph.reverse() == Graph.from_edges(dst, src, weights, num_vertices=num_vertices, directed=True)
        assert graph.reverse() is graph.reverse()
        assert graph.reverse().reverse() is graph

    def test_large_with_empty_rows(self):
        src, dst = np.random.default_rng(3).integers(5000, 100_000, (2, 2**17)).astype(np.int32)
        graph = Graph.from_edges(src, dst, num_vertices=120_000, directed=True)
        assert graph.reverse() == Graph.from_edges(dst, src, num_vertices=120_000, directed=True)

    def test_sorts_rows(self):
        graph = Graph.from_csr([0, 3, 3, 3], [2, 0, 1])
        assert graph.reverse().indices.tolist() == [0, 0, 0]
        assert graph.reverse().reverse() is graph

    def test_undirected_is_its_own(self):
        graph = Graph.from_edges([0], [1])
        assert graph.reverse() is graph

    def test_does_not_keep_the_graph_alive(self):
        graph = Graph.from_edges([0, 1], [1, 2], directed=True)
        twin = copy.copy(graph)
        reverse = graph.reverse()
        gc.disable()
        try:
            del graph
            assert reverse.reverse() == twin
            assert reverse.reverse().reverse() is reverse
        finally:
            gc.enable()

    def test_from_several_threads(self):
        src, dst = np.random.default_rng(1).integers(0, 1000, (2, 2**16))
        graph = Graph.from_edges(src, dst, directed=True)
        found = []
        threads = [threading.Thread(target=lambda: found.append((graph.reverse(), graph.degree))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({(id(reverse), id(degree)) for reverse, degree in found}) == 1


class TestDerived:
    @given(edge_arrays(), st.booleans(), st.booleans())
    def test_symmetrized(self, edges, is_weighted, deduplicate):
        num_vertices, src, dst = edges
        weights = (np.arange(src.size) % 3).astype(np.int32) if is_weighted else None
        graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=True)
        expected = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, deduplicate=deduplicate)
        assert graph.symmetrized(deduplicate) == expected
        assert expected.symmetrized(deduplicate) is expected

    @given(edge_arrays(), st.booleans())
    def test_deduplicated_and_without_self_loops(self, edges, directed):
        num_vertices, src, dst = edges
        options = {"num_vertices": num_vertices, "directed": directed}
        weights = (np.arange(src.size) % 5).astype(np.float32)
        graph = Graph.from_edges(src, dst, weights, **options)
        assert graph.deduplicated() == Graph.from_edges(src, dst, weights, deduplicate=True, **options)
        assert graph.without_self_loops() == Graph.from_edges(src, dst, weights, drop_self_loops=True, **options)

    def test_keep_labels_and_widths(self):
        graph = Graph.from_edges([0, 0, 1], [1, 1, 1], directed=True, labels=["a", "b"], edge_dtype="int64")
        for derived in (graph.reverse(), graph.symmetrized(), graph.deduplicated(), graph.without_self_loops()):
            assert derived.label_of(1) == "b"
            assert derived.edge_dtype == np.int64


class TestFromCSR:
    def test_shares_memory(self):
        indptr, indices = np.array([0, 2, 2], np.int32), np.array([1, 0], np.int32)
        graph = Graph.from_csr(indptr, indices, np.array([1.0, 2.0]))
        assert np.shares_memory(graph.indptr, indptr)
        assert np.shares_memory(graph.indices, indices)
        assert graph.indices.tolist() == [1, 0]
        assert graph.is_directed

    @given(edge_arrays(), st.booleans())
    def test_round_trip(self, edges, directed):
        num_vertices, src, dst = edges
        weights = np.arange(src.size, dtype=np.float64)
        graph = Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=directed)
        assert Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=directed) == graph
        assert graph.num_vertices == graph.to_scipy().shape[0]
        simple = graph.deduplicated()
        assert Graph.from_scipy(simple.to_scipy(), directed=directed) == simple

    def test_undirected_rows_in_any_order(self):
        indptr, indices, weights = [0, 3, 5, 6], [2, 1, 1, 0, 0, 0], [7, 5, 4, 4, 5, 7]
        graph = Graph.from_csr(indptr, indices, weights, directed=False)
        assert graph.indices.tolist() == indices

    def test_unchecked_arrays_are_not_read(self):
        indices = np.array([5, -1], np.int32)  # no ids at all
        assert Graph.from_csr([0, 2], indices, directed=False, check=False).num_edges == 2

    def test_boolean_matrix_has_no_weights(self):
        matrix = scipy.sparse.coo_array(([True, True], ([0, 1], [1, 0])), shape=(2, 2))
        assert Graph.from_scipy(matrix, directed=False) == Graph.from_edges([0], [1])

    def test_unweighted_matrix_is_of_ones(self):
        assert Graph.from_edges([0, 0], [1, 1], directed=True).to_scipy().toarray().tolist() == [[0, 2], [0, 0]]


class TestLabels:
    def test_numbers(self):
        graph = Graph.from_edges([0, 1], [1, 2], labels=np.array([7, 10**9, 3], np.uint32))
        assert graph.labels.dtype == np.int64
        assert graph.vertex(10**9) == 1
        assert graph.label_of(0) == 7
        assert type(graph.label_of(0)) is int

    @pytest.mark.parametrize("kind", ["list", "object", "StringDType", "arrow", "chunked"])
    def test_strings(self, kind):
        names = ["alice", "bob", "čeněk"]
        labels = {
            "list": lambda: names,
            "object": lambda: np.array(names, object),
            "StringDType": lambda: np.array(names, np.dtypes.StringDType()),
            "arrow": lambda: pytest.importorskip("pyarrow").array(names),
            "chunked": lambda: pytest.importorskip("pyarrow").chunked_array([names[:1], names[1:]]),
        }[kind]()
        graph = Graph.from_edges([0, 1], [1, 2], labels=labels)
        assert [graph.vertex(name) for name in names] == [0, 1, 2]
        assert [graph.label_of(vertex) for vertex in range(3)] == names
        assert type(graph.label_of(2)) is str
        assert pickle.loads(pickle.dumps(graph)) == graph
        with pytest.raises(GraphError, match="label='dora' is the label of no vertices"):
            graph.vertex("dora")
        with pytest.raises(GraphError, match="label=7 is the label of no vertices"):
            graph.vertex(7)

    def test_count_the_vertices(self):
        assert Graph.from_edges([0], [1], labels=["a", "b", "c"]).num_vertices == 3

    def test_without_labels_ids_are_labels(self):
        graph = Graph.from_edges([0], [1])
        assert graph.labels is None
        assert graph.vertex(1) == 1
        assert graph.label_of(np.int64(1)) == 1


class TestObject:
    def test_never_changes(self):
        graph = Graph.from_edges([0, 1], [1, 2], [1, 2], labels=[5, 6, 7], directed=True)
        for array in (graph.indptr, graph.indices, graph.weights, graph.degree, graph.labels, graph.reverse().indices):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError, match="cannot set 'indices'"):
            graph.indices = graph.indptr
        with pytest.raises(AttributeError, match="cannot delete 'weights'"):
            del graph.weights
        with pytest.raises(TypeError, match=r"use Graph\.from_edges"):
            Graph()

    def test_does_not_alias_the_edges(self):
        src, dst = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
        graph = Graph.from_edges(src, dst)
        src[:] = 0
        assert graph == Graph.from_edges([0, 1], [1, 2])
        assert src.flags.writeable

    def test_pickle_and_copy(self):
        graph = Graph.from_edges([0, 1], [1, 2], [0.5, 1.5], labels=["a", "b", "c"], directed=True)
        graph._cache["placed"] = threading.Lock()  # cannot be pickled, and must not be
        graph.reverse()
        for other in (pickle.loads(pickle.dumps(graph)), copy.copy(graph), copy.deepcopy(graph)):
            assert other == graph
            assert hash(other) == hash(graph)
            assert other._cache == {}
            assert not other.indices.flags.writeable

    def test_equality(self):
        graph = Graph.from_edges([0], [1], [2])
        assert graph != Graph.from_edges([0], [1])
        assert graph != Graph.from_edges([0], [1], [3])
        assert graph != Graph.from_edges([0, 1], [1, 0], [2, 2], directed=True)
        assert graph != Graph.from_edges([0], [1], [2], labels=["a", "b"])
        assert graph != "graph"

    def test_repr(self):
        graph = Graph.from_edges([0, 1], [1, 2], [1, 2], labels=["a", "b", "c"])
        assert repr(graph) == "<Graph: 3 vertices, 4 stored edges, undirected, int32 weights, labels, int32/int32>"

    def test_sizes(self):
        graph = Graph.from_edges([0, 1], [1, 2], [1, 2])
        assert graph.nbytes == 4 * 4 + 4 * 4 + 4 * 4
        assert graph.max_degree == 2


class TestWidths:
    def test_chosen_by_size(self):
        assert arrays.choose_vertex_dtype(None, None, 2**31 - 1) == np.int32
        assert arrays.choose_vertex_dtype(None, None, 2**31) == np.int64
        assert arrays.choose_edge_dtype(None, np.dtype(np.int32), 2**31 - 1) == np.int32
        assert arrays.choose_edge_dtype(None, np.dtype(np.int32), 2**31) == np.int64
        assert arrays.choose_edge_dtype(None, np.dtype(np.int64), 1) == np.int64

    def test_too_narrow(self):
        with pytest.raises(ArgumentError, match="vertex_dtype=int32 is too narrow for 2147483648 vertices"):
            arrays.choose_vertex_dtype("int32", None, 2**31)
        with pytest.raises(ArgumentError, match="edge_dtype=int32 is too narrow for 2147483648 edges"):
            arrays.choose_edge_dtype("int32", np.dtype(np.int32), 2**31)

    @pytest.mark.parametrize("width", WIDTHS)
    def test_from_csr(self, width):
        graph = Graph.from_csr([0, 1, 1], [1], vertex_dtype=width[0], edge_dtype=width[1])
        assert (graph.vertex_dtype, graph.edge_dtype) == width


def edges(*args, **options):
    return lambda: Graph.from_edges(*args, **options)


def csr(*args, **options):
    return lambda: Graph.from_csr(*args, **options)


PAIRS = "allowed pairs of vertex_dtype/edge_dtype: int32/int32, int32/int64, int64/int64"
TWINS = "directed=False needs both directions of every edge, with the same weight"

BAD_INPUTS = {
    "negative id": (edges([0, 1, -3], [1, 2, 0]), "src[2]=-3 is not a vertex id; ids must not be negative"),
    "negative id of many": (
        edges([0, -3], [1, 2], num_vertices=100),
        "src[1]=-3 is not a vertex id; ids must be from 0 to 99",
    ),
    "id too large": (edges([0, 1], [1, 9], num_vertices=9), "dst[1]=9 is not a vertex id; ids must be from 0 to 8"),
    "id beyond labels": (edges([0], [2], labels=["a", "b"]), "dst[0]=2 is not a vertex id; ids must be from 0 to 1"),
    "no vertices": (edges([0], [0], num_vertices=0), "src[0]=0 is not a vertex id; the graph has no vertices"),
    "id of 64 bits": (
        edges(np.array([1, 2**63], np.uint64), [0, 0]),
        "src[1]=9223372036854775808 is not a vertex id; ids must be from 0 to 9223372036854775807",
    ),
    "fraction": (edges([0, 1.5], [1, 2]), "src[1]=1.5 is not a whole number; src must have an integer dtype"),
    "float ids": (edges([1, 2], [0.0, 1.0]), "dst[0]=0.0 has dtype float64; dst must have an integer dtype"),
    "NaN id": (edges([0, np.nan], [1, 2]), "src[1]=nan is not a whole number; src must have an integer dtype"),
    "string ids": (edges(["a"], ["b"]), "src[0]=a has dtype <U1; src must have an integer dtype"),
    "Boolean ids": (edges([True], [0]), "src[0]=True has dtype bool; src must have an integer dtype"),
    "huge id": (edges([2**70], [0]), f"src[0]={2**70} has dtype object; src must have an integer dtype"),
    "two dimensions": (edges([[0, 1]], [1]), "src has 2 dimensions; it must be an array of one dimension"),
    "a number": (edges(0, 1), "src has 0 dimensions; it must be an array of one dimension"),
    "ragged": (edges([[0, 1], [2]], [1]), None),
    "sizes differ": (edges([0, 1], [1]), "src has 2 ids and dst 1; there must be as many of both"),
    "masked": (
        edges(np.ma.array([0, 1], mask=[0, 1]), [1, 2]),
        "src has 1 missing values; there must be none",
    ),
    "num_vertices": (
        edges([0], [1], num_vertices=-1),
        "num_vertices=-1 is out of range; it must be a whole number of at least 0",
    ),
    "num_vertices of a wrong type": (
        edges([0], [1], num_vertices=2.5),
        "num_vertices=2.5 is not allowed; it must be a whole number of at least 0",
    ),
    "num_threads": (
        edges([0], [1], num_threads=0),
        "num_threads=0 is out of range; it must be a whole number of at least 1",
    ),
    "NaN weight": (
        edges([0, 1], [1, 2], [1.0, np.nan]),
        "weights[1]=nan is not a number; every edge needs a weight",
    ),
    "number of weights": (edges([0, 1], [1, 2], [1]), "weights has 1 values for 2 edges; there must be one for each"),
    "weight too large": (
        edges([0, 1], [1, 2], [1, 2**53 + 1]),
        "weights[1]=9007199254740993 is too large; whole numbers must be within 2**53",
    ),
    "complex weights": (edges([0], [1], [1j]), "weights has dtype complex128; weights must be numbers"),
    "number of labels": (
        edges([0], [1], num_vertices=2, labels=["a"]),
        "labels has 1 values for 2 vertices; there must be one for each",
    ),
    "labels of no size": (
        edges([0], [1], labels=7),
        "labels has 0 dimensions; it must be an array of one dimension",
    ),
    "float labels": (
        edges([0], [1], labels=[0.5, 1.5]),
        "labels[0]=0.5 has dtype float64; labels must be whole numbers or strings",
    ),
    "mixed labels": (
        edges([0], [1], labels=np.array(["a", 7], object)),
        "labels[1]=7 is not a string; labels must be all numbers or all strings",
    ),
    "vertex_dtype": (
        edges([0], [1], vertex_dtype="int16"),
        "vertex_dtype='int16' is not allowed; allowed: int32, int64",
    ),
    "edge_dtype": (edges([0], [1], edge_dtype="wide"), "edge_dtype='wide' is not allowed; allowed: int32, int64"),
    "64/32": (
        edges([0], [1], vertex_dtype="int64", edge_dtype="int32"),
        f"edge_dtype=int32 is not allowed with 2 vertices of int64; {PAIRS}",
    ),
    "indptr empty": (csr([], []), "indptr is empty; it must have one value more than there are vertices"),
    "indptr starts late": (csr([1, 2], [0, 0]), "indptr[0]=1 is not allowed; it must be 0"),
    "indptr ends early": (csr([0, 1], [0, 0]), "indptr[1]=1 is not allowed; it must be 2, the size of indices"),
    "indptr descends": (csr([0, 2, 1, 2], [0, 1]), "indptr[2]=1 is below indptr[1]=2; offsets must not descend"),
    "indptr of floats": (csr([0.5, 1], [0]), "indptr[0]=0.5 is not a whole number; indptr must have an integer dtype"),
    "indices too large": (csr([0, 1], [1]), "indices[0]=1 is not a vertex id; ids must be from 0 to 0"),
    "indices negative": (csr([0, 1, 2], [0, -1]), "indices[1]=-1 is not a vertex id; ids must be from 0 to 1"),
    "NaN in a CSR": (csr([0, 1], [0], [np.nan]), "weights[0]=nan is not a number; every edge needs a weight"),
    "one direction": (
        csr([0, 1, 1], [1], directed=False),
        f"edge 0 -> 1 has no edge 1 -> 0 to match; {TWINS}",
    ),
    "one direction back": (
        csr([0, 0, 1, 2], [0, 1], directed=False),
        f"edge 1 -> 0 has no edge 0 -> 1 to match; {TWINS}",
    ),
    "one cycle": (
        csr([0, 1, 2, 3], [1, 2, 0], directed=False),
        f"edge 0 -> 1 has no edge 1 -> 0 to match; {TWINS}",
    ),
    "two weights": (
        csr([0, 1, 2], [1, 0], [3, 4], directed=False),
        f"edge 0 -> 1 has weight 3 but 1 -> 0 weight 4; {TWINS}",
    ),
    "not square": (
        lambda: Graph.from_scipy(scipy.sparse.coo_array((2, 3))),
        "matrix has the shape (2, 3); it must be square",
    ),
    "not sparse": (
        lambda: Graph.from_scipy(np.eye(2)),
        "matrix is a ndarray; it must be a two-dimensional SciPy sparse array",
    ),
    "unknown vertex": (
        lambda: Graph.from_edges([0], [1]).vertex(2),
        "label=2 is out of range; it must be a whole number from 0 to 1",
    ),
    "label_of": (
        lambda: Graph.from_edges([0], [1]).label_of(-1),
        "vertex=-1 is out of range; it must be a whole number from 0 to 1",
    ),
    "label twice": (
        lambda: Graph.from_edges([0], [1], labels=[7, 7]).vertex(7),
        "label=7 is the label of 2 vertices; it must be that of one",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_is_named(case):
    make, message = BAD_INPUTS[case]
    with pytest.raises((GraphError, ArgumentError)) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert message is None or str(caught.value) == message


def test_arrow_nulls_are_refused():
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(GraphError, match="dst has 1 missing values; there must be none"):
        Graph.from_edges([0, 1], pyarrow.array([1, None]))


@pytest.mark.parametrize("largest", [10**14, 2**63 - 1])
def test_too_many_vertices_for_memory(largest):
    with pytest.raises(OutOfMemoryError, match=f"^{largest + 1} vertices and 1 edges do not fit in memory$"):
        Graph.from_edges([largest], [0])
