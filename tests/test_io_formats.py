# SPDX-License-Identifier: Apache-2.0
"""What each format says about its graph, against files written by hand or by other libraries."""

from __future__ import annotations

import struct
import time

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse

from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.io import read, write

pytestmark = pytest.mark.host_only("about files: nothing is run")


def read_text(folder, text, name, **options):
    path = folder / name
    path.write_text(text)
    return read(path, **options)


def rows(graph):
    src = np.repeat(np.arange(graph.num_vertices), graph.degree).tolist()
    columns = [src, graph.indices.tolist()]
    return sorted(zip(*columns, *([] if graph.weights is None else [graph.weights.tolist()]), strict=True))


class TestMatrixMarket:
    @pytest.mark.parametrize("field", ["pattern", "integer", "real"])
    @pytest.mark.parametrize("symmetry", ["general", "symmetric"])
    def test_against_scipy(self, tmp_path, field, symmetry):
        generator = np.random.default_rng(3)
        dense = generator.random((40, 40)) * (generator.random((40, 40)) < 0.1)
        matrix = scipy.sparse.coo_array(dense if symmetry == "general" else dense + dense.T)
        if field == "integer":
            matrix.data = np.round(matrix.data * 1000).astype(np.int64)
        scipy.io.mmwrite(tmp_path / "m.mtx", matrix, field=field, symmetry=symmetry, precision=17)
        graph = read(tmp_path / "m.mtx")
        expected = scipy.io.mmread(tmp_path / "m.mtx").tocsr()
        expected.sort_indices()
        assert graph.is_directed == (symmetry == "general")
        assert graph.is_weighted == (field != "pattern")
        assert graph.indptr.tolist() == expected.indptr.tolist()
        assert graph.indices.tolist() == expected.indices.tolist()
        if field != "pattern":
            assert graph.weights.dtype == (np.int32 if field == "integer" else np.float64)
            assert graph.weights.tolist() == expected.data.tolist()

    def test_what_is_written_scipy_reads(self, tmp_path):
        graph = Graph.from_edges([0, 1, 2], [1, 2, 2], [0.1, 1e-30, 3.0], num_vertices=5)
        write(graph, tmp_path / "m.mtx")
        assert (scipy.io.mmread(tmp_path / "m.mtx", spmatrix=False) != graph.to_scipy()).nnz == 0

    def test_header_in_any_case_with_comments(self, tmp_path):
        text = "%%matrixmarket MATRIX Coordinate Pattern General\n% a\n\n%b\n 3  3 2\n\n1 3\n% c\n 2\t1 \n"
        assert rows(read_text(tmp_path, text, "m.mtx")) == [(0, 2), (1, 0)]

    def test_real_entries_stay_real(self, tmp_path):
        text = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n"
        assert read_text(tmp_path, text, "m.mtx").weights.dtype == np.float64

    def test_symmetric_as_directed_has_both_directions(self, tmp_path):
        text = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 5\n3 3 6\n"
        graph = read_text(tmp_path, text, "m.mtx", directed=True)
        assert graph.is_directed
        assert rows(graph) == [(0, 1, 5), (1, 0, 5), (2, 2, 6)]

    def test_num_vertices_must_agree(self, tmp_path):
        text = "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 3\n"
        assert read_text(tmp_path, text, "m.mtx", num_vertices=3).num_vertices == 3
        with pytest.raises(ArgumentError, match=r"num_vertices=4 is not allowed; .* declares 3 vertices"):
            read_text(tmp_path, text, "m.mtx", num_vertices=4)


class TestDimacs:
    def test_shortest_path_problem(self, tmp_path):
        text = "c comment\nc\np sp 4 3\nc another\na 1 2 17\na 2 1 17\na 4 4 0\n"
        graph = read_text(tmp_path, text, "g.gr")
        assert graph.is_directed
        assert rows(graph) == [(0, 1, 17), (1, 0, 17), (3, 3, 0)]
        assert read_text(tmp_path, text, "g.txt") == graph

    def test_tree_width_problem(self, tmp_path):
        graph = read_text(tmp_path, "p tw 4 2\n1 2\nc comment\n2 3\n", "g.gr")
        assert not graph.is_directed
        assert graph.num_vertices == 4
        assert rows(graph) == [(0, 1), (1, 0), (1, 2), (2, 1)]

    def test_edges_with_a_tag(self, tmp_path):
        assert read_text(tmp_path, "p edge 3 1\ne 1 3\n", "g.gr").indices.tolist() == [2, 0]

    def test_without_a_header(self, tmp_path):
        graph = read_text(tmp_path, "a 0 2 5\na 2 0 6\n", "g.gr")
        assert graph.is_directed
        assert graph.labels.tolist() == [0, 2]
        assert rows(graph) == [(0, 1, 5), (1, 0, 6)]
        assert read_text(tmp_path, "a 0 2 5\n", "g.gr", num_vertices=4).num_vertices == 4

    def test_no_edges(self, tmp_path):
        assert read_text(tmp_path, "p sp 3 0\n", "g.gr").num_vertices == 3


# A triangle with a tail, 1-2, 1-3, 2-3, 3-4: (neighbour, weight) of each vertex.
METIS_LINES = [[(2, 5), (3, 6)], [(1, 5), (3, 7)], [(1, 6), (2, 7), (4, 8)], [(3, 8)]]


class TestMetis:
    @pytest.mark.parametrize("num_weights", [None, 1, 2])
    @pytest.mark.parametrize("code", [None, "0", "1", "10", "11", "100", "101", "110", "111", "001", "010", "000"])
    def test_every_code(self, tmp_path, code, num_weights):
        padded = (code or "0").zfill(3)
        has_edge_weights = padded[2] == "1"
        own = int(padded[0]) + (num_weights or 1) * int(padded[1])
        header = "4 4" + (f" {code}" if code else "") + (f" {num_weights}" if code and num_weights else "")
        lines = [header]
        for vertex, neighbours in enumerate(METIS_LINES):
            numbers = [9 + vertex] * own
            for neighbour, weight in neighbours:
                numbers += [neighbour, weight] if has_edge_weights else [neighbour]
            lines.append(" ".join(map(str, numbers)))
        graph = read_text(tmp_path, "\n".join(lines) + "\n", "g.graph")
        assert not graph.is_directed
        assert graph.indices.tolist() == [1, 2, 0, 2, 0, 1, 3, 2]
        expected = [5, 6, 5, 7, 6, 7, 8, 8] if has_edge_weights else None
        assert (None if graph.weights is None else graph.weights.tolist()) == expected

    def test_comments_blanks_and_isolated_vertices(self, tmp_path):
        text = "% comment\n5 1\n\n 3 \n% between\n\t2\n\n\n"
        graph = read_text(tmp_path, text, "g.graph")
        assert graph.degree.tolist() == [0, 1, 1, 0, 0]

    def test_empty_lines_after_the_last_vertex(self, tmp_path):
        assert read_text(tmp_path, "2 1 11\n7 2 1\n7 1 1\n\n\n", "g.graph").num_edges == 2

    def test_a_line_longer_than_a_block(self, tmp_path, monkeypatch):
        monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 16)
        leaves = 300
        text = f"{leaves + 1} {leaves}\n" + " ".join(str(v) for v in range(2, leaves + 2)) + "\n" + "1\n" * leaves
        graph = read_text(tmp_path, text, "g.graph")
        assert graph.degree.tolist() == [leaves] + [1] * leaves

    def test_as_directed(self, tmp_path):
        assert read_text(tmp_path, "2 1\n2\n1\n", "g.graph", directed=True).is_directed


class TestGap:
    def test_bytes(self, tmp_path):
        content = struct.pack("<bqq4q2i4q2i", 1, 2, 3, 0, 1, 2, 2, 1, 2, 0, 0, 1, 2, 0, 1)
        (tmp_path / "g.sg").write_bytes(content)
        graph = read(tmp_path / "g.sg")
        assert graph.is_directed
        assert rows(graph) == [(0, 1), (1, 2)]
        write(graph, tmp_path / "h.sg")
        assert (tmp_path / "h.sg").read_bytes() == content

    def test_bytes_with_weights(self, tmp_path):
        content = struct.pack("<bqq3q4i", 0, 2, 2, 0, 1, 2, 1, -7, 0, -7)
        (tmp_path / "g.wsg").write_bytes(content)
        graph = read(tmp_path / "g.wsg")
        assert rows(graph) == [(0, 1, -7), (1, 0, -7)]
        assert not read(tmp_path / "g.wsg", weighted=False).is_weighted
        write(graph, tmp_path / "h.wsg")
        assert (tmp_path / "h.wsg").read_bytes() == content


class TestTables:
    @pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
    def test_columns(self, tmp_path, suffix):
        table = pa.table({"when": ["x", "y"], "source": [5, 9], "target": [9, 7], "cost": [0.5, 1.5]})
        path = tmp_path / f"t{suffix}"
        (pq.write_table if suffix == ".parquet" else pyarrow.feather.write_feather)(table, path)
        graph = read(path, directed=True)
        assert graph.labels.tolist() == [5, 7, 9]
        assert rows(graph) == [(0, 2), (2, 1)]
        graph = read(path, src_column="target", dst_column="source", weight_column="cost", directed=True)
        assert rows(graph) == [(1, 2, 1.5), (2, 0, 0.5)]

    def test_strings_and_dictionaries(self, tmp_path):
        plain = pa.table({"src": ["b", "a"], "dst": ["c", "b"]})
        pq.write_table(plain, tmp_path / "p.parquet")
        coded = pa.table({name: plain[name].dictionary_encode() for name in plain.column_names})
        pyarrow.feather.write_feather(coded, tmp_path / "c.feather")
        for path in (tmp_path / "p.parquet", tmp_path / "c.feather"):
            graph = read(path, directed=True)
            assert [graph.label_of(v) for v in range(3)] == ["a", "b", "c"]
            assert rows(graph) == [(0, 1), (1, 2)]

    def test_large_ids(self, tmp_path):
        table = pa.table({"src": pa.array([1, 2**40], pa.uint64()), "dst": pa.array([2, 1], pa.int16())})
        pq.write_table(table, tmp_path / "t.parquet")
        assert read(tmp_path / "t.parquet").labels.tolist() == [1, 2, 2**40]


class TestNpz:
    def test_arrays_of_numpy(self, tmp_path):
        np.savez_compressed(tmp_path / "g.npz", indptr=[0, 1, 1], indices=[1], weights=[0.5])
        graph = read(tmp_path / "g.npz")
        assert graph.is_directed
        assert rows(graph) == [(0, 1, 0.5)]
        assert read(tmp_path / "g.npz", directed=False).num_edges == 2


class TestNative:
    def test_arrays_are_mapped(self, tmp_path):
        graph = Graph.from_edges([0, 1], [1, 2], [1.5, 2.5], labels=["a", "b", "c"])
        write(graph, tmp_path / "g.shoal")
        result = read(tmp_path / "g.shoal")
        for array in (result.indptr, result.indices, result.weights):
            base = array
            while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
                base = base.base
            assert isinstance(base, np.memmap)
            assert array.ctypes.data % 64 == 0
            assert not array.flags.writeable
        assert result == graph
        assert read(tmp_path / "g.shoal", mmap=False) == graph

    def test_opening_does_not_read_the_edges(self, tmp_path):
        graph = Graph.from_csr(np.zeros(3_000_001, np.int64), np.empty(0, np.int32))
        write(graph, tmp_path / "g.shoal")
        read(tmp_path / "g.shoal")
        start = time.perf_counter()
        read(tmp_path / "g.shoal")
        assert time.perf_counter() - start < 0.1

    def test_options_that_need_a_new_graph(self, tmp_path):
        graph = Graph.from_edges([0, 0, 1, 2], [1, 1, 1, 0], directed=True)
        write(graph, tmp_path / "g.shoal")
        result = read(tmp_path / "g.shoal", directed=False, deduplicate=True, drop_self_loops=True)
        assert not result.is_directed
        assert rows(result) == [(0, 1), (0, 2), (1, 0), (2, 0)]

    def test_content_tells_the_format(self, tmp_path):
        graph = Graph.from_edges([0], [1])
        write(graph, tmp_path / "g.bin", format="shoal")
        assert read(tmp_path / "g.bin") == graph
        write(graph, tmp_path / "g.dat", format="parquet")
        assert read(tmp_path / "g.dat") == graph


def test_options_are_checked(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n")
    (tmp_path / "g.gr").write_text("p tw 2 1\n1 2\n")
    for name, options, reason in [
        ("g.txt", {"directed": "yes"}, "directed='yes' is not allowed; allowed: True, False, None"),
        ("g.txt", {"deduplicate": None}, "deduplicate=None is not allowed; allowed: True, False"),
        ("g.txt", {"num_vertices": -1}, "num_vertices=-1 is out of range"),
        ("g.txt", {"vertex_dtype": "int16"}, "vertex_dtype='int16' is not allowed; allowed: int32, int64"),
        ("g.txt", {"format": "gml"}, "format='gml' is not known; allowed: edge-list, matrix-market"),
        ("g.txt", {"weighted": False, "weight_column": 1}, "weight_column=1 is not allowed with weighted=False"),
        ("g.gr", {"src_column": "u"}, "src_column='u' is not allowed; the format dimacs has no choice of columns"),
    ]:
        with pytest.raises(ArgumentError, match=reason):
            read(tmp_path / name, **options)
