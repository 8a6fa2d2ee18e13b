# SPDX-License-Identifier: Apache-2.0
"""Edge lists: separators, comments, headers, ids and labels, weights."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest

from shoal.errors import ArgumentError, FileFormatError
from shoal.graph import Graph
from shoal.io import read, write

pytestmark = pytest.mark.host_only("about files: nothing is run")


def read_text(folder, text, name="graph.txt", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)


def edges(graph):
    """Rows (src, dst) or (src, dst, weight) with the labels of the file."""
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    names = [graph.label_of(v) for v in range(graph.num_vertices)]
    rows = [(names[u], names[v]) for u, v in zip(src, graph.indices, strict=True)]
    if graph.weights is None:
        return sorted(rows, key=str)
    return sorted(((*row, weight.item()) for row, weight in zip(rows, graph.weights, strict=True)), key=str)


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n",
        "0 1\n1 2",
        "0\t1\r\n1\t2\r\n",
        "# comment\n% another\n0 1\n\n   # in the middle\n1 2\n\n\n",
        "  0   1  \n\t1 \t 2\t\n",
        "0,1\n1,2\n",
        "0, 1\n 1 ,2 \r\n",
        "src,dst\n0,1\n1,2\n",
        "Source;ignored\n"[:0] + "FromNodeId\tToNodeId\n0\t1\n1\t2\n",
        "from,to\n0,1\n1,2\n",
        "node a,node b\n0,1\n1,2\n",
        "\ufeff0 1\n1 2\n",
        "00 01\n1 2\n",
    ],
)
def test_separators_comments_and_headers(tmp_path, text):
    graph = read_text(tmp_path, text, directed=True)
    assert edges(graph) == [(0, 1), (1, 2)]
    assert graph.labels is None
    assert not graph.is_weighted


@pytest.mark.parametrize("suffix", [".txt", ".el", ".wel", ".tsv", ".csv", ".edges"])
def test_every_suffix(tmp_path, suffix):
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix, " ")
    text = f"0{separator}1{separator}5\n1{separator}2{separator}7\n"
    graph = read_text(tmp_path, text, "graph" + suffix, directed=True)
    assert edges(graph) == [(0, 1, 5), (1, 2, 7)]


def test_undirected_unless_the_file_says_otherwise(tmp_path):
    assert not read_text(tmp_path, "0 1\n").is_directed
    assert not read_text(tmp_path, "# Undirected graph: x\n0 1\n").is_directed
    assert read_text(tmp_path, "# Directed graph (each unordered pair of nodes is saved once)\n0 1\n").is_directed
    assert not read_text(tmp_path, "# Directed graph\n0 1\n", directed=False).is_directed


def test_ids_without_gaps_stay(tmp_path):
    graph = read_text(tmp_path, "2 0\n1 2\n", directed=True)
    assert graph.labels is None
    assert edges(graph) == [(1, 2), (2, 0)]


def test_ids_with_gaps_become_labels(tmp_path):
    graph = read_text(tmp_path, "7 1000000000\n1000000000 30\n", directed=True)
    assert graph.labels.tolist() == [7, 30, 10**9]
    assert graph.indices.tolist() == [2, 1]
    assert graph.vertex(10**9) == 2


def test_ids_beyond_32_bits_in_a_later_row(tmp_path):
    graph = read_text(tmp_path, f"1 2\n2 {10**17}\n", directed=True)
    assert graph.labels.tolist() == [1, 2, 10**17]
    assert graph.indices.tolist() == [1, 2]


def test_numbers_and_names_together(tmp_path):
    graph = read_text(tmp_path, "alice 7\n7 1000000000\nbob alice\n", directed=True)
    assert graph.num_vertices == 4
    assert [graph.label_of(v) for v in range(4)] == ["1000000000", "7", "alice", "bob"]
    assert edges(graph) == [("7", "1000000000"), ("alice", "7"), ("bob", "alice")]
    assert graph.vertex("alice") == 2


def test_quoted_names(tmp_path):
    text = '"New York","say ""hi""",1.5\nplain,"New York",2\n'
    graph = read_text(tmp_path, text, "graph.csv", directed=True)
    assert edges(graph) == [("New York", 'say "hi"', 1.5), ("plain", "New York", 2.0)]


def test_names_with_blanks_between_tabs_and_commas(tmp_path):
    expected = [("New York", "São Paulo"), ("Rome", "New York")]
    assert edges(read_text(tmp_path, "New York\tSão Paulo\nRome\tNew York\n", "g.tsv", directed=True)) == expected
    assert edges(read_text(tmp_path, "New York,São Paulo\nRome, New York\n", "g.csv", directed=True)) == expected


def test_num_vertices_keeps_ids_and_isolated_vertices(tmp_path):
    graph = read_text(tmp_path, "0 5\n", num_vertices=9)
    assert (graph.num_vertices, graph.labels) == (9, None)


def test_names_are_refused_with_num_vertices(tmp_path):
    with pytest.raises(FileFormatError, match=r"line 2: 'x' is not a vertex id"):
        read_text(tmp_path, "0 1\n1 x\n", num_vertices=3)


@pytest.mark.parametrize(
    ("column", "dtype", "values"),
    [
        (["1", "2"], np.int32, [1, 2]),
        (["-1", "+2"], np.int32, [-1, 2]),
        (["1", "2.0"], np.float64, [1.0, 2.0]),
        (["0.1", "1e-3"], np.float64, [0.1, 1e-3]),
        (["3000000000", "1"], np.float64, [3e9, 1.0]),
        (["0.12345678901234567", "1e300"], np.float64, [0.12345678901234567, 1e300]),
        (["inf", "1"], np.float64, [np.inf, 1.0]),
        ([".5", "5."], np.float64, [0.5, 5.0]),
        (["1.7976931348623157e308", "5e-324"], np.float64, [1.7976931348623157e308, 5e-324]),
        (["9007199254740992", "0"], np.float64, [2.0**53, 0.0]),
    ],
)
def test_weights(tmp_path, column, dtype, values):
    graph = read_text(tmp_path, f"0 1 {column[0]}\n1 2 {column[1]}\n", directed=True)
    assert graph.weights.dtype == dtype
    assert graph.weights.tolist() == values


def test_weights_that_turn_into_floats_after_many_rows(tmp_path):
    rows = [f"{i} {i + 1} {i}\n" for i in range(1000)]
    graph = read_text(tmp_path, "".join(rows) + "1000 1001 0.5\n", directed=True)
    assert graph.weights.dtype == np.float64
    assert graph.weights.tolist() == [*range(1000), 0.5]


def test_weighted_option(tmp_path):
    assert read_text(tmp_path, "0 1 x\n", weighted=False).num_edges == 2
    assert not read_text(tmp_path, "0 1 5\n", weighted=False).is_weighted
    with pytest.raises(FileFormatError, match="has no weights, and weighted=True"):
        read_text(tmp_path, "0 1\n", weighted=True)


def test_columns_by_name_and_by_position(tmp_path):
    text = "time,cost,head,tail\n9,1.5,0,1\n9,2.5,1,2\n"
    chosen = {"src_column": "tail", "dst_column": "head", "weight_column": "cost"}
    assert edges(read_text(tmp_path, text, "g.csv", directed=True, **chosen)) == [(1, 0, 1.5), (2, 1, 2.5)]
    chosen = {"src_column": 2, "dst_column": 3}
    assert edges(read_text(tmp_path, text, "g.csv", directed=True, **chosen)) == [(0, 1), (1, 2)]
    text = "weight,target,source\n5,0,1\n6,1,2\n"
    assert edges(read_text(tmp_path, text, "g.csv", directed=True)) == [(1, 0, 5), (2, 1, 6)]


def test_unknown_columns_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"src_column='x' is not a column of .*; allowed: a, b"):
        read_text(tmp_path, "a,b\n0,1\n", "g.csv", src_column="x")
    with pytest.raises(ArgumentError, match=r"dst_column=5 is not a column of .*; allowed: 0 to 1"):
        read_text(tmp_path, "0 1\n", dst_column=5)
    with pytest.raises(ArgumentError, match="are one column"):
        read_text(tmp_path, "0 1\n", src_column=1)


def test_duplicates_and_loops(tmp_path):
    text = "0 1 5\n0 1 3\n1 0 4\n2 2 1\n"
    assert read_text(tmp_path, text).num_edges == 7
    graph = read_text(tmp_path, text, deduplicate=True, drop_self_loops=True)
    assert graph.indices.tolist() == [1, 0]
    assert graph.weights.tolist() == [3, 3]
    assert graph.num_vertices == 3


def test_widths(tmp_path):
    graph = read_text(tmp_path, "0 1\n", vertex_dtype="int64", edge_dtype="int64")
    assert (graph.vertex_dtype, graph.edge_dtype) == (np.int64, np.int64)
    assert read_text(tmp_path, "0 1\n", edge_dtype="int64").edge_dtype == np.int64


def test_blocks_of_any_size_give_the_same_graph(tmp_path, monkeypatch):
    generator = np.random.default_rng(5)
    src, dst = generator.integers(0, 100, (2, 400))
    rows = [f"{u} {v} {w}\n" for u, v, w in zip(src, dst, generator.random(400), strict=True)]
    numbers = "# Directed graph\n" + "# remark\n".join("".join(rows[i : i + 20]) for i in range(0, 400, 20))
    for text in (numbers, "".join(f"v{row}" for row in rows)):
        monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 2**20)
        expected = read_text(tmp_path, text)
        assert expected.num_edges > 0
        for block_bytes in (7, 64, 1000):
            monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", block_bytes)
            assert read_text(tmp_path, text) == expected
            assert read_text(tmp_path, gzip.compress(text.encode()), "graph.txt.gz") == expected  # on all cores


def test_only_comments_is_a_graph_without_vertices(tmp_path):
    graph = read_text(tmp_path, "# nothing here\n")
    assert (graph.num_vertices, graph.num_edges) == (0, 0)


def test_a_written_file_says_what_rows_cannot(tmp_path):
    graph = Graph.from_edges([0, 3], [1, 3], num_vertices=6, directed=True)
    write(graph, tmp_path / "g.txt")
    text = (tmp_path / "g.txt").read_text()
    assert text == "# Directed graph\n# Nodes: 6 Edges: 2\n# Vertex ids: 0 to 5\n0 1\n3 3\n"
    assert read(tmp_path / "g.txt") == graph


def test_csv_has_a_header_and_warns_of_lost_vertices(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2], [0.5, 2.0], num_vertices=4)
    with pytest.warns(UserWarning, match="no place for 1 vertices without edges"):
        write(graph, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_text() == "src,dst,weight\n0,1,0.5\n1,2,2.0\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(Graph.from_edges([0], [1]), tmp_path / "h.csv")


def test_matrix_market_content_under_another_name(tmp_path):
    text = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 3\n"
    graph = read_text(tmp_path, text, "graph.txt")
    assert (graph.num_vertices, edges(graph)) == (3, [(0, 2)])
    assert read_text(tmp_path, text, "graph.unknown") == graph
