# SPDX-License-Identifier: Apache-2.0
"""Every format gives back what was written, as far as it can say it."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ArgumentError, GraphError
from shoal.graph import Graph
from shoal.io import read, write
from shoal.io.formats import FORMATS

pytestmark = pytest.mark.host_only("about files: nothing is run")

TEXT_SUFFIXES = [".txt", ".el", ".wel", ".tsv", ".csv", ".edges", ".mtx", ".gr", ".graph"]
BINARY_SUFFIXES = [".parquet", ".arrow", ".feather", ".npz", ".shoal", ".sg", ".wsg"]
COMPRESSIONS = ["", ".gz", ".bz2", ".zst"]
WEIGHTS = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "float32": st.floats(width=32, allow_nan=False),
    "float64": st.floats(allow_nan=False),
}


@st.composite
def graphs(draw, kinds=(None, "int32", "float32", "float64"), directed=None):
    num_vertices = draw(st.integers(0, 12))
    vertex = st.integers(0, max(0, num_vertices - 1))
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=30 if num_vertices else 0))
    kind = draw(st.sampled_from(kinds))
    weights = None
    if kind is not None:
        weights = np.array([draw(WEIGHTS[kind]) for _ in pairs], kind)
    src, dst = np.array(pairs, np.int64).reshape(-1, 2).T
    is_directed = draw(st.booleans()) if directed is None else directed
    return Graph.from_edges(src, dst, weights, num_vertices=num_vertices, directed=is_directed)


def round_trip(graph, suffix, **options):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "graph" + suffix)
        write(graph, path)
        assert os.listdir(folder) == ["graph" + suffix]
        result = read(path, **options)
        if suffix == ".shoal":  # its arrays are in the file, which is about to go
            result = Graph.from_csr(
                *(
                    None if array is None else np.array(array)
                    for array in (result.indptr, result.indices, result.weights)
                ),
                directed=result.is_directed,
                labels=result.labels,
            )
        return result


def assert_same(result, graph, *, is_directed=None):
    """Compare; text has float64 for any float."""
    assert result.is_directed == (graph.is_directed if is_directed is None else is_directed)
    assert result.indptr.tolist() == graph.indptr.tolist()
    assert result.indices.tolist() == graph.indices.tolist()
    assert (result.weights is None) == (graph.weights is None)
    if graph.weights is not None:
        assert result.weights.dtype.kind == graph.weights.dtype.kind or graph.num_edges == 0
        assert result.weights.tolist() == graph.weights.tolist()


@given(graph=graphs(), suffix=st.sampled_from([".txt", ".el", ".wel", ".tsv", ".edges", ".mtx"]))
def test_text_that_says_everything(graph, suffix):
    # Without a row, only the caller can tell whether rows would have weights.
    assert_same(round_trip(graph, suffix, weighted=graph.is_weighted or None), graph)


@given(graph=graphs(), suffix=st.sampled_from([".parquet", ".arrow", ".feather", ".npz", ".shoal"]))
def test_binary_that_says_everything(graph, suffix):
    result = round_trip(graph, suffix)
    assert_same(result, graph)
    if graph.weights is not None:
        assert result.weights.dtype == graph.weights.dtype


@given(graph=graphs())
def test_csv_with_direction_and_size_given(graph):
    given_options = {"directed": graph.is_directed, "num_vertices": graph.num_vertices}
    assert_same(round_trip(graph, ".csv", **given_options), graph)


@given(graph=graphs(directed=False))
def test_metis(graph):
    assert_same(round_trip(graph, ".graph"), graph)


@given(graph=graphs(kinds=(None,), directed=False))
def test_dimacs_without_direction_and_weights(graph):
    assert_same(round_trip(graph, ".gr"), graph)


@given(graph=graphs(kinds=("int32", "float64")))
def test_dimacs_with_weights_has_arcs(graph):
    assert_same(round_trip(graph, ".gr"), graph, is_directed=True)


def test_dimacs_without_weights_has_weight_one():
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    result = round_trip(graph, ".gr")
    assert result.indices.tolist() == [1, 2]
    assert result.weights.tolist() == [1, 1]
    assert_same(round_trip(graph, ".gr", weighted=False), graph)


@given(graph=graphs(kinds=(None,)))
def test_gap_without_weights(graph):
    assert_same(round_trip(graph, ".sg"), graph)


@given(graph=graphs(kinds=("int32",)))
def test_gap_with_weights(graph):
    assert_same(round_trip(graph, ".wsg"), graph)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("suffix", TEXT_SUFFIXES)
def test_compression_of_every_text_format(tmp_path, suffix, compression):
    generator = np.random.default_rng(1)
    src, dst = generator.integers(0, 50, (2, 400))
    graph = Graph.from_edges(src, dst, generator.integers(1, 9, 400), num_vertices=50)
    path = tmp_path / f"graph{suffix}{compression}"
    write(graph, path)
    starts = {"": None, ".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
    assert compression == "" or path.read_bytes().startswith(starts[compression])
    result = read(path, directed=True if suffix == ".gr" else None)
    assert_same(result, graph, is_directed=suffix == ".gr")


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".csv", ".parquet", ".feather", ".npz", ".shoal"])
@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 70, 10**12]),
        np.array(["alice", "bob", "eve"]),
        np.array(["#1", "-2", "1.5"]),
        np.array(['"', "New York", "a,b\tc"]),
        np.array(["", "%", "São Paulo"]),
        np.array(["BZh1", "a", "b"], np.dtypes.StringDType()),
        np.array(["x", "y", "z"], object),
    ],
    ids=str,
)
def test_labels(suffix, labels):
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2], [5, 6, 7], directed=True, labels=labels)
    result = round_trip(graph, suffix, directed=True)
    assert_same(result, graph)
    assert [result.label_of(v) for v in range(3)] == labels.tolist()


@pytest.mark.parametrize("suffix", [".mtx", ".gr", ".wsg"])
def test_other_formats_number_the_vertices(suffix):
    graph = Graph.from_edges([0, 1], [1, 2], [5, 6], directed=True, labels=np.array(["x", "y", "z"]))
    assert round_trip(graph, suffix).labels is None


@pytest.mark.parametrize("widths", [("int32", "int32"), ("int32", "int64"), ("int64", "int64")])
@pytest.mark.parametrize("suffix", [".npz", ".shoal"])
def test_widths_stay(tmp_path, suffix, widths):
    graph = Graph.from_edges([0, 1], [1, 2], vertex_dtype=widths[0], edge_dtype=widths[1])
    write(graph, tmp_path / f"g{suffix}")
    result = read(tmp_path / f"g{suffix}")
    assert (result.vertex_dtype, result.edge_dtype) == widths
    wide = read(tmp_path / f"g{suffix}", vertex_dtype="int64", edge_dtype="int64")
    assert (wide.vertex_dtype, wide.edge_dtype) == ("int64", "int64")


def test_large_graph_in_several_batches(tmp_path, monkeypatch):
    generator = np.random.default_rng(2)
    src, dst = generator.integers(0, 300, (2, 5000))
    graph = Graph.from_edges(src, dst, generator.random(5000), num_vertices=310)
    monkeypatch.setattr("shoal.io.edge_batches.BATCH_EDGES", 64)
    monkeypatch.setattr("shoal.io.adjacency.BATCH_EDGES", 64)
    for suffix in (".txt", ".mtx", ".graph", ".parquet", ".arrow"):
        assert_same(round_trip(graph, suffix), graph)


@pytest.mark.parametrize("suffix", TEXT_SUFFIXES + BINARY_SUFFIXES)
def test_nothing_is_left_of_a_write_that_fails(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"graph{suffix}"
    path.write_text("old")
    weights = [1] if suffix in (".wsg", ".gr") else None
    graph = Graph.from_edges([0], [1], weights)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(ArgumentError, match="cannot be written: No space left on device"):
        write(graph, path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"


def test_writing_through_a_link_keeps_the_link(tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write(Graph.from_edges([0], [1]), link)
    assert link.is_symlink()
    assert read(target).num_edges == 2


def test_arguments_of_write(tmp_path):
    graph = Graph.from_edges([0], [1], [0.5])
    directed = Graph.from_edges([0], [1], directed=True)
    for bad, path, options, reason in [
        (graph, "g.unknown", {}, r"g\.unknown' has no known suffix; allowed: \.txt"),
        (
            graph,
            "g.txt",
            {"format": "metiss"},
            r"format='metiss' is not known; allowed: edge-list.*did you mean 'metis'",
        ),
        (graph, "no/folder/g.txt", {}, r"^path='[^']*g.txt' is in a folder that does not exist; make it first$"),
        (graph, ".", {"format": "edge-list"}, "is a directory"),
        (graph, "g.npz.gz", {}, "npz files cannot be compressed"),
        (graph, "g.wsg", {}, "weights of float64; a GAP file holds int32"),
        (directed, "g.wsg", {}, r"\.wsg for graphs with weights"),
        (directed, "g.graph", {}, "graph is directed; METIS files hold undirected graphs"),
        ("graph", "g.txt", {}, "graph is a str; it must be a Graph"),
    ]:
        with pytest.raises((ArgumentError, GraphError), match=reason):
            write(bad, Path(tmp_path, path), **options)
    assert list(tmp_path.iterdir()) == []


def test_every_format_is_written_and_read_here():
    suffixes = {suffix for format in FORMATS.values() for suffix in format.suffixes}
    assert suffixes == set(TEXT_SUFFIXES + BINARY_SUFFIXES)


def test_labels_of_arrow(tmp_path):
    labels = pa.chunked_array([["a"], ["b c", "d"]])
    graph = Graph.from_edges([0, 1], [1, 2], directed=True, labels=labels)
    for suffix in (".txt", ".parquet", ".npz", ".shoal"):
        result = round_trip(graph, suffix)
        assert [result.label_of(v) for v in range(3)] == ["a", "b c", "d"]


def test_labels_with_line_breaks_are_refused(tmp_path):
    graph = Graph.from_edges([0], [1], labels=["a", "b\nc"])
    with pytest.raises(GraphError, match=r"labels\[1\]='b\\nc' has a line break"):
        write(graph, tmp_path / "g.txt")
    assert list(tmp_path.iterdir()) == []
