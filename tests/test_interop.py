# SPDX-License-Identifier: Apache-2.0
"""Graphs of other libraries in and out: their own lists of edges are the oracle, and nothing is lost on the way."""

from __future__ import annotations

import doctest
import functools
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import igraph
import networkit
import networkx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from checks import assert_refused
from graphs import SPECIAL, from_pairs, graphs
from interop_edges import edges_of, ends
from shoal.errors import ArgumentError, GraphError, ShoalError
from shoal.graph import Graph
from shoal.interop import conversions
from shoal.interop.libraries import CONSTRUCTORS

pytestmark = pytest.mark.host_only("converts graphs on the CPU")


def edges_of_igraph(graph):
    weights = graph.es["weight"] if "weight" in graph.es.attributes() else [None] * graph.ecount()
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    pairs = ((names[u], names[v]) for u, v in graph.get_edgelist())
    return Counter((ends(graph.is_directed(), *pair), w) for pair, w in zip(pairs, weights, strict=True))


def edges_of_networkit(graph):
    if graph.isWeighted():
        return Counter((ends(graph.isDirected(), u, v), w) for u, v, w in graph.iterEdgesWeights())
    return Counter((ends(graph.isDirected(), u, v), None) for u, v in graph.iterEdges())


def edges_of_rows(table, is_directed):
    rows = [row.values() for row in table.to_pylist()]
    return Counter((ends(is_directed, u, v), *(weight or [None])) for u, v, *weight in rows)


def edges_of_scipy(matrix, graph):
    coo = matrix.tocoo()
    weights = coo.data.tolist() if graph.is_weighted else [None] * coo.nnz
    both = zip(coo.row.tolist(), coo.col.tolist(), weights, strict=True)
    return Counter(((u, v), w) for u, v, w in both if graph.is_directed or u <= v)


def edges_of_edge_index(index, is_directed):
    weights = [None] * index.edge_index.shape[1] if index.edge_weight is None else index.edge_weight.tolist()
    both = zip(*index.edge_index.tolist(), weights, strict=True)
    return Counter(((u, v), w) for u, v, w in both if is_directed or u <= v)


def as_booleans(matrix):
    """Without weights; `astype` would add parallel edges up."""
    return scipy.sparse.csr_array((np.ones(matrix.nnz, bool), matrix.indices, matrix.indptr), shape=matrix.shape)


#: For each way out: the edges of what comes out, and the way back in.
THERE_AND_BACK = {
    "igraph": (Graph.to_igraph, lambda out, g: edges_of_igraph(out), lambda out, g: Graph.from_igraph(out)),
    "networkit": (Graph.to_networkit, lambda out, g: edges_of_networkit(out), lambda out, g: Graph.from_networkit(out)),
    "arrow": (Graph.to_arrow, lambda out, g: edges_of_rows(out, g.is_directed),
              lambda out, g: Graph.from_table(out, weight="weight" if g.is_weighted else None)),
    "pandas": (Graph.to_pandas, lambda out, g: edges_of_rows(pa.table(out), g.is_directed),
               lambda out, g: Graph.from_table(out, weight="weight" if g.is_weighted else None)),
    "scipy": (Graph.to_scipy, edges_of_scipy,
              lambda out, g: Graph.from_scipy(out if g.is_weighted else as_booleans(out), directed=g.is_directed)),
    "edge index": (Graph.to_edge_index, lambda out, g: edges_of_edge_index(out, g.is_directed),
                   lambda out, g: Graph.from_edge_index(*out, num_nodes=g.num_vertices, directed=g.is_directed)),
}  # fmt: skip


def check_there_and_back(way, graph):
    give, count, take = THERE_AND_BACK[way]
    out = give(graph)
    assert count(out, graph) == edges_of(graph)
    back = take(out, graph)
    assert edges_of(back) == edges_of(graph)
    assert (back.is_directed, back.num_vertices) == (graph.is_directed, graph.num_vertices)


@pytest.mark.parametrize("way", THERE_AND_BACK)
@given(graph=graphs(weights="any", any_width=True))
def test_weighted_graphs_there_and_back(way, graph):
    check_there_and_back(way, graph)


@pytest.mark.parametrize("way", THERE_AND_BACK)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs_there_and_back(way, name):
    check_there_and_back(way, SPECIAL[name]())


NAMES = {"strings": ["x", "", "ä"], "numbers": [4, 7, 10**9]}


@pytest.mark.parametrize("way", ["igraph", "networkit", "arrow", "pandas"])
@pytest.mark.parametrize("kind", NAMES)
def test_labels_there_and_back(way, kind):
    names = NAMES[kind]
    graph = Graph.from_edges([0, 2], [1, 0], labels=names, directed=True)
    give, _, take = THERE_AND_BACK[way]
    back = take(give(graph), graph)
    assert edges_of(back) == edges_of(graph)
    assert sorted(back.label_of(v) for v in range(3)) == sorted(names)


@pytest.mark.parametrize("give", [Graph.to_arrow, Graph.to_pandas])
def test_vertices_that_a_table_cannot_name_are_not_lost_silently(give):
    named = Graph.from_edges([0], [1], labels=["a", "b", "c"])
    with pytest.warns(UserWarning, match="no place for 1 vertices without edges") as caught:
        give(named)
    assert caught[0].filename == __file__
    assert Graph.from_table(give(from_pairs([(0, 1)], num_vertices=9))).num_vertices == 9


class TestFromTable:
    COLUMNS = {"u": [3, 0, 1], "v": [0, 1, 2], "km": [1.5, 2.0, 0.25]}  # noqa: RUF012
    TABLES = {  # noqa: RUF012
        "dict": lambda columns: columns,
        "pandas": pandas.DataFrame,
        "polars": polars.DataFrame,
        "lazy": lambda columns: polars.DataFrame(columns).lazy(),
        "arrow": pa.table,
        "batch": pa.RecordBatch.from_pydict,
        "chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]),
        "stream": lambda columns: pa.RecordBatchReader.from_batches(
            pa.table(columns).schema, pa.table(columns).to_batches()
        ),
    }

    @pytest.mark.parametrize("kind", TABLES)
    def test_every_kind_of_table(self, kind):
        graph = Graph.from_table(self.TABLES[kind](self.COLUMNS), "u", "v", "km", directed=True)
        assert edges_of(graph) == {((3, 0), 1.5): 1, ((0, 1), 2.0): 1, ((1, 2), 0.25): 1}
        assert graph.labels is None
        assert graph.is_directed

    @pytest.mark.parametrize("kind", TABLES)
    def test_names_are_labels(self, kind):
        columns = {"src": ["ulm", "bern"], "dst": ["bern", "genf"], "extra": [1, 2]}
        graph = Graph.from_table(self.TABLES[kind](columns))
        assert [graph.label_of(v) for v in range(3)] == ["bern", "genf", "ulm"]
        assert edges_of(graph) == {(("bern", "ulm"), None): 1, (("bern", "genf"), None): 1}

    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    def test_categories_are_labels(self, kind):
        frame = {"pandas": pandas.DataFrame, "polars": polars.DataFrame}[kind]({"src": ["b", "b"], "dst": ["a", "c"]})
        if kind == "pandas":
            frame = frame.astype("category")
        else:
            frame = frame.with_columns(polars.all().cast(polars.Categorical))
        assert [Graph.from_table(frame).label_of(v) for v in range(3)] == ["a", "b", "c"]

    @pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
    def test_numbers_with_gaps_are_labels(self, dtype):
        columns = {"src": np.array([100, 7], dtype), "dst": np.array([7, 50], dtype)}
        graph = Graph.from_table(columns)
        assert graph.labels.tolist() == [7, 50, 100]
        assert edges_of(graph) == {((7, 100), None): 1, ((7, 50), None): 1}
        assert columns["src"].tolist() == [100, 7]
        assert Graph.from_table(columns, num_vertices=101).labels is None

    def test_numbers_too_large_for_a_table_of_all(self):
        assert Graph.from_table({"src": [10**18], "dst": [5]}).labels.tolist() == [5, 10**18]

    def test_columns_named_by_anything(self):
        frame = pandas.DataFrame([[0, 1, 5], [1, 2, 6]])
        assert edges_of(Graph.from_table(frame, 0, 1, 2)) == {((0, 1), 5): 1, ((1, 2), 6): 1}

    def test_other_columns_may_be_what_arrow_cannot_have(self):
        frame = pandas.DataFrame({"src": [0], "dst": [1], "what": [object()]})
        assert Graph.from_table(frame).num_vertices == 2

    @pytest.mark.parametrize("kind", TABLES)
    def test_no_rows(self, kind):
        graph = Graph.from_table(
            self.TABLES[kind]({"src": np.empty(0), "dst": np.empty(0), "w": np.empty(0)}), weight="w"
        )
        assert (graph.num_vertices, graph.num_edges) == (0, 0)

    def test_ids_are_not_copied_before_they_are_sorted(self, monkeypatch):
        src, dst, weight = np.arange(5), np.arange(5)[::-1].copy(), np.ones(5)
        given = {}
        monkeypatch.setattr(Graph, "from_edges", lambda *args, **options: given.update(zip("sdw", args, strict=True)))
        frames = [
            pandas.DataFrame({"src": src, "dst": dst, "w": weight}, copy=False),
            {"src": src, "dst": dst, "w": weight},
        ]
        for frame in (*frames, pa.table(frames[1])):
            Graph.from_table(frame, weight="w")
            assert all(
                np.shares_memory(given[key], array) for key, array in zip("sdw", (src, dst, weight), strict=True)
            )
        frame = polars.DataFrame(frames[1])
        Graph.from_table(frame, weight="w")
        assert np.shares_memory(given["s"], frame["src"].to_numpy())

    WRONG = {  # noqa: RUF012
        "no such column": ({"a": [1], "b": [2]}, {}, ["src='src'", "no column", "a, b"]),
        "no such weight": ({"src": [1], "dst": [2]}, {"weight": "w"}, ["weight='w'", "src, dst"]),
        "one column twice": ({"src": [1], "dst": [2]}, {"dst": "src"}, ["columns must differ"]),
        "missing id": ({"src": [1, None], "dst": [2, 3]}, {}, ["column 'src'", "1 missing values"]),
        "missing name": ({"src": ["a", None], "dst": ["b", "c"]}, {}, ["column 'src'", "1 missing values"]),
        "missing weight": ({"src": [1], "dst": [2], "w": [None]}, {"weight": "w"}, ["column 'w'", "1 missing"]),
        "negative": ({"src": [1], "dst": [-3]}, {}, ["column 'dst', row 0: -3"]),
        "fractions": ({"src": [1.5], "dst": [2.5]}, {}, ["column 'src'", "double"]),
        "words for weights": ({"src": [1], "dst": [2], "w": ["x"]}, {"weight": "w"}, ["column 'w'", "numbers"]),
        "names with num_vertices": ({"src": ["a"], "dst": ["b"]}, {"num_vertices": 2}, ["integers"]),
        "beyond num_vertices": ({"src": [1], "dst": [2]}, {"num_vertices": 2}, ["dst[0]=2", "0 to 1"]),
        "mixed": (pandas.DataFrame({"src": [1, "a"], "dst": [1, 2]}), {}, ["cannot be read as Arrow columns"]),
        "two of a name": (pandas.DataFrame([[1, 2, 3]], columns=["src", "src", "dst"]), {}, ["several columns"]),
        "no table": (17, {}, ["int", "pandas, Polars or pyarrow"]),
    }

    @pytest.mark.parametrize("case", WRONG)
    def test_what_is_refused(self, case):
        table, options, words = self.WRONG[case]
        assert_refused(lambda: Graph.from_table(table, **options), *words, error=GraphError)

    def test_num_vertices_must_be_a_number(self):
        wrong = {"src": [0], "dst": [1]}
        assert_refused(lambda: Graph.from_table(wrong, num_vertices=-1), "num_vertices=-1", error=ArgumentError)


class Tensor:
    """A tensor of a library that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class FarTensor(Tensor):
    """One that lies where NumPy cannot see it; its library copies it to the host if it is asked to."""

    def __dlpack__(self, *, dl_device=None, **options):
        assert dl_device == (1, 0)
        return self.array.copy().__dlpack__(**(options | {"copy": None}))

    def __dlpack_device__(self):
        return (2, 0)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.array.shape}


class Cupy(Tensor):
    """An array of CuPy: it has `get`, and NumPy must not take it."""

    __cuda_array_interface__ = FarTensor.__cuda_array_interface__

    def get(self):
        return self.array.copy()

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


ARRAYS = [Tensor, FarTensor, Cupy, pa.array, polars.Series, pandas.Series]


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_other_libraries(kind):
    src, dst, weights = np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([0.5, 1.5, 2.5])
    graph = Graph.from_edges(kind(src), kind(dst), kind(weights), directed=True)
    assert graph == Graph.from_edges(src, dst, weights, directed=True)
    csr = [graph.indptr, graph.indices, graph.weights]
    assert Graph.from_csr(*map(kind, csr)) == graph


def test_a_csr_of_tensors_is_not_copied():
    graph = from_pairs([(0, 1), (1, 2), (2, 2)], weights=[1.0, 2.0, 3.0], directed=True)
    csr = [graph.indptr.copy(), graph.indices.copy(), graph.weights.copy()]
    again = Graph.from_csr(*map(Tensor, csr))
    for array, ours in zip(csr, (again.indptr, again.indices, again.weights), strict=True):
        assert np.shares_memory(array, ours)
        assert not ours.flags.writeable


def test_scipy_shares_memory_both_ways():
    graph = from_pairs([(0, 1), (1, 2), (2, 2)], weights=[1.0, 2.0, 3.0], directed=True)
    matrix = graph.to_scipy()
    back = Graph.from_scipy(matrix)
    for ours, theirs, again in zip(
        (graph.indptr, graph.indices, graph.weights),
        (matrix.indptr, matrix.indices, matrix.data),
        (back.indptr, back.indices, back.weights),
        strict=True,
    ):
        assert np.shares_memory(ours, theirs)
        assert np.shares_memory(ours, again)


def test_an_array_on_a_gpu_without_a_way_to_the_host(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    lost = SimpleNamespace(__cuda_array_interface__={})
    assert_refused(lambda: Graph.from_edges(lost, [0]), "src", "needs CuPy", "shoal[cuda]", error=GraphError)


class TestEdgeIndex:
    def test_data(self):
        data = SimpleNamespace(edge_index=Tensor(np.array([[0, 2], [1, 1]])), edge_weight=None, num_nodes=5)
        graph = Graph.from_edge_index(data)
        assert (graph.num_vertices, graph.is_directed, graph.is_weighted) == (5, True, False)
        assert edges_of(graph) == {((0, 1), None): 1, ((2, 1), None): 1}
        data.edge_weight = Tensor(np.array([0.5, 2.5], np.float32))
        assert Graph.from_edge_index(data).weights.dtype == np.float32
        assert edges_of(Graph.from_any(data)) == {((0, 1), 0.5): 1, ((2, 1), 2.5): 1}

    def test_undirected_has_both_directions(self):
        both = np.array([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
        assert Graph.from_edge_index(both, directed=False) == from_pairs([(0, 1), (1, 2), (2, 2)])
        one = functools.partial(Graph.from_edge_index, both[:, :3], directed=False)
        assert_refused(one, "edge 1 -> 2 has no edge 2 -> 1", error=GraphError)
        uneven = functools.partial(Graph.from_edge_index, both, [1, 2, 3, 3, 4], directed=False)
        assert_refused(uneven, "edge 0 -> 1 has weight 1", error=GraphError)

    @pytest.mark.parametrize("wrong", [np.zeros((3, 2), int), np.zeros(4, int), "words", [[0.5], [1.5]]])
    def test_what_is_refused(self, wrong):
        assert_refused(lambda: Graph.from_edge_index(wrong), error=GraphError)

    def test_what_comes_out_is_its_own(self):
        graph = from_pairs([(0, 1)], weights=[2.5])
        index = graph.to_edge_index()
        index.edge_index[:] = 7
        index.edge_weight[:] = 7
        assert edges_of(graph) == {((0, 1), 2.5): 1}


class TestIgraph:
    def test_attributes(self):
        theirs = igraph.Graph([(0, 1), (2, 1)], vertex_attrs={"id": [5, 9, 7]}, edge_attrs={"cost": [2, None]})
        assert not Graph.from_igraph(theirs).is_weighted
        graph = Graph.from_igraph(theirs, weight="cost", default=4, names="id")
        assert edges_of(graph) == {((5, 9), 2): 1, ((7, 9), 4): 1}
        missing = functools.partial(Graph.from_igraph, theirs, weight="cost")
        assert_refused(missing, "edge 1 -> 2 has no 'cost', as 1 of 2", error=GraphError)
        out = graph.to_igraph(weight="cost", names="id")
        assert (sorted(out.es["cost"]), out.vs["id"]) == ([2, 4], [5, 9, 7])

    def test_names_that_are_numbers_in_another_order(self):
        theirs = igraph.Graph([(0, 1)], n=3, vertex_attrs={"name": [2, 0, 1]})
        graph = Graph.from_igraph(theirs)
        assert graph.labels is None
        assert edges_of(graph) == {((0, 2), None): 1}

    def test_names_that_are_no_labels(self):
        theirs = igraph.Graph([(0, 1)], vertex_attrs={"name": ["a", None]})
        assert_refused(lambda: Graph.from_igraph(theirs), "None", "names=None", error=GraphError)
        assert Graph.from_igraph(theirs, names=None).labels is None

    def test_what_is_no_graph(self):
        assert_refused(lambda: Graph.from_igraph([(0, 1)]), "list", "igraph", error=GraphError)


class TestNetworkit:
    def test_nodes_that_were_removed(self):
        theirs = networkit.Graph(4, directed=True)
        theirs.addEdge(0, 3)
        theirs.addEdge(3, 3)
        theirs.removeNode(1)
        graph = Graph.from_networkit(theirs)
        assert graph.labels.tolist() == [0, 2, 3]
        assert edges_of(graph) == {((0, 3), None): 1, ((3, 3), None): 1}

    def test_what_is_no_graph(self):
        assert_refused(lambda: Graph.from_networkit(igraph.Graph(2)), "Graph", "NetworKit", error=GraphError)

    def test_labels_that_do_not_fit(self):
        graph = Graph.from_edges([0], [1], labels=[3, 2**31])
        assert_refused(graph.to_networkit, "2147483648", "32 bits", error=GraphError)


class TestFromAny:
    SOURCES = {  # noqa: RUF012
        "networkx": lambda: networkx.path_graph(3),
        "igraph": lambda: igraph.Graph([(0, 1), (1, 2)]),
        "networkit": lambda: networkit.GraphFromCoo((np.array([0, 1], np.uint64), np.array([1, 2], np.uint64)), 3),
        "scipy": lambda: scipy.sparse.coo_array(([True] * 4, ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3)),
        "pandas": lambda: pandas.DataFrame({"src": [0, 1], "dst": [1, 2]}),
        "polars": lambda: polars.DataFrame({"src": [0, 1], "dst": [1, 2]}),
        "pyarrow": lambda: pa.table({"src": [0, 1], "dst": [1, 2]}),
        "torch_geometric": lambda: torch_like(np.array([[0, 1, 1, 2], [1, 0, 2, 1]])),
    }

    def test_every_library_is_tried(self):
        assert set(self.SOURCES) == set(CONSTRUCTORS)

    @pytest.mark.parametrize("library", SOURCES)
    def test_the_type_says_which_constructor(self, library):
        options = {"directed": False} if library in ("scipy", "torch_geometric") else {}
        assert Graph.from_any(self.SOURCES[library](), **options) == from_pairs([(0, 1), (1, 2)])

    def test_derived_types(self):
        derived = type("Roads", (networkx.DiGraph,), {"__module__": "roads"})([(0, 1)])
        assert edges_of(Graph.from_any(derived)) == {((0, 1), None): 1}

    def test_a_graph_is_itself(self):
        graph = from_pairs([(0, 1)])
        assert Graph.from_any(graph) is graph

    def test_what_is_refused(self):
        assert_refused(lambda: Graph.from_any([(0, 1)]), "list", "networkx", "from_edges", error=GraphError)


def torch_like(edge_index):
    data = type("Data", (), {"__module__": "torch_geometric.data.data"})()
    data.edge_index, data.edge_weight, data.num_nodes = edge_index, None, 3
    return data


@pytest.mark.parametrize(("library", "call"), [
    ("networkx", Graph.to_networkx), ("igraph", Graph.to_igraph), ("networkit", Graph.to_networkit),
    ("pandas", Graph.to_pandas),
])  # fmt: skip
def test_a_library_that_is_not_installed(library, call, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    graph = from_pairs([(0, 1)])
    assert_refused(lambda: call(graph), f"needs {library}", "pip install 'shoal[interop]'", error=ShoalError)


def test_no_other_library_is_imported():
    code = (
        "import sys, shoal; g = shoal.Graph.from_edges([0], [1]); g.to_arrow(); g.to_edge_index();"
        "shoal.Graph.from_table({'src': [0], 'dst': [1]});"
        "print(*[name for name in ('networkx', 'igraph', 'networkit', 'polars', 'torch') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
        ).stdout.split()
        == []
    )


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12), st.booleans())
def test_all_libraries_agree(pairs, is_directed):
    graph = from_pairs(pairs, num_vertices=7, directed=is_directed)
    through = [Graph.from_igraph(graph.to_igraph()), Graph.from_networkit(graph.to_networkit())]
    through += [
        Graph.from_networkx(graph.to_networkx()),
        Graph.from_table(polars.DataFrame(graph.to_arrow()), directed=is_directed, num_vertices=7),
    ]
    assert through == [graph] * 4


def test_examples():
    found = doctest.testmod(conversions)
    assert found.attempted
    assert found.failed == 0
