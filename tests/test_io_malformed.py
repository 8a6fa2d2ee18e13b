# SPDX-License-Identifier: Apache-2.0
"""Files that are not what they should be: one line that names the file, the place and the reason."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import ArgumentError, FileFormatError, ShoalError
from shoal.graph import Graph
from shoal.io import read, write

pytestmark = pytest.mark.host_only("about files: nothing is run")

GENERAL = "%%MatrixMarket matrix coordinate real general\n"

TEXT = {
    # Edge lists
    "negative id": ("g.txt", "0 1\n1 -5\n", 2, "'-5' is not a vertex id; ids must not be negative"),
    "id with a point": ("g.txt", "0 1\n# c\n1.5 0\n", 3, "'1.5' is not a vertex id"),
    "one column": ("g.txt", "0 1\n\n5\n", 3, "'5' has 1 column, not 2"),
    "one column throughout": ("g.txt", "5\n6\n", 1, "has 1 column, and edges have 2 or 3"),
    "too many columns in a row": ("g.txt", "0 1\n1 2 3\n", 2, "'1 2 3' has 3 columns, not 2"),
    "missing weight": ("g.wel", "0 1 5\n1 2\n", 2, "'1 2' has 2 columns, not 3"),
    "five columns": ("g.txt", "0 1 2 3 4\n", 1, "has 5 columns, and edges have 2 or 3"),
    "word for a weight": ("g.wel", "0 1 5\n1 2 heavy\n", 2, "'heavy' is not a weight"),
    "NaN for a weight": ("g.wel", "0 1 5\n1 2 nan\n", 2, "'nan' is not a weight"),
    "weight too large": ("g.wel", "0 1 1e400\n", 1, "'1e400' is too large for a weight"),
    "weight that would be rounded": ("g.wel", "0 1 9007199254740993\n", 1, "is too large for a weight"),
    "hexadecimal weight": ("g.wel", "0 1 0x10\n", 1, "'0x10' is not a weight"),
    "empty column": ("g.csv", "0,1\n1,,2\n", 2, "a vertex id is empty"),
    "empty id": ("g.csv", "0,1\n,2\n", 2, "a vertex id is empty"),
    "quote not closed": ("g.csv", 'a,b\n"c,d\n', 2, "a quote that is not closed"),
    "label that is no text": ("g.txt", b"alice bob\nalice \xff\xfe\n", 2, "is not UTF-8 text"),
    "two delimiters": ("g.csv", "0,1\n1 2\n", 2, "'1 2' has 1 column, not 2"),
    # Matrix Market
    "no banner": ("g.mtx", "3 3 1\n1 2 1\n", 1, "must begin with %%MatrixMarket"),
    "banner cut short": ("g.mtx", "%%MatrixMarket matrix coordinate\n3 3 1\n", 1, "has 3 words"),
    "complex": ("g.mtx", GENERAL.replace("real", "complex") + "1 1 0\n", 1, "complex entries are no weights"),
    "skew-symmetric": ("g.mtx", GENERAL.replace("general", "skew-symmetric") + "1 1 0\n", 1, "skew-symmetric"),
    "dense": ("g.mtx", GENERAL.replace("coordinate", "array") + "1 1\n5\n", 1, "dense matrix"),
    "unknown field": ("g.mtx", GENERAL.replace("real", "quaternion") + "1 1 0\n", 1, "'quaternion' is not known"),
    "no size": ("g.mtx", GENERAL + "% nothing\n", None, "ends before the line with the size"),
    "size is words": ("g.mtx", GENERAL + "a b c\n", 2, "'a b c' is not 'rows columns entries'"),
    "not square": ("g.mtx", GENERAL + "3 4 1\n1 4 1\n", 2, "the matrix is 3 x 4; a graph needs a square one"),
    "row out of range": ("g.mtx", GENERAL + "3 3 1\n4 1 1\n", 3, "vertex id 4 is out of range; allowed: 1 to 3"),
    "column zero": ("g.mtx", GENERAL + "3 3 1\n1 0 1\n", 3, "vertex id 0 is out of range; allowed: 1 to 3"),
    "word for an id": ("g.mtx", GENERAL + "3 3 1\n1 x 1\n", 3, "'x' is not a vertex id"),
    "too few entries": ("g.mtx", GENERAL + "3 3 2\n1 2 1\n", 2, "declares 2 entries, and the file has 1"),
    "too many entries": ("g.mtx", GENERAL + "3 3 1\n1 2 1\n2 1 1\n", 2, "declares 1 entries, and the file has 2"),
    "entries beyond the file": ("g.mtx", GENERAL + "3 3 999999999999\n1 2 1\n", 2, "cannot be in a file of"),
    "vertices beyond memory": ("g.mtx", GENERAL + "9999999999999 9999999999999 0\n", 2, "for their offsets alone"),
    # DIMACS
    "unknown problem": ("g.gr", "p max 3 1\na 1 2 3\n", 1, "the problem 'max' is not known; allowed: sp, tw"),
    "neither problem nor arc": ("g.gr", "c x\n1 2 3\n", 2, "is neither a problem"),
    "only comments": ("g.gr", "c x\nc y\n", None, "has no problem line"),
    "problem cut short": ("g.gr", "p sp 3\na 1 2 3\n", 1, "is neither a problem"),
    "arc without a tag": ("g.gr", "p sp 3 2\na 1 2 3\n1 2 3\n", 3, "'1 2 3' is not 'a src dst weight'"),
    "arc without a weight": ("g.gr", "p sp 3 1\na 1 2\n", 2, "'a 1 2' has 2 columns, not 3"),
    "arc out of range": ("g.gr", "p sp 3 1\na 1 4 3\n", 2, "vertex id 4 is out of range; allowed: 1 to 3"),
    "too few arcs": ("g.gr", "c\np sp 3 2\na 1 2 3\n", 2, "declares 2 edges, and the file has 1"),
    "edge out of range": ("g.gr", "p tw 3 1\n0 2\n", 2, "vertex id 0 is out of range; allowed: 1 to 3"),
    "arcs beyond the file": ("g.gr", "p sp 3 123456789012\na 1 2 3\n", 1, "cannot be in a file of"),
    # METIS
    "header of words": ("g.graph", "% c\nvertices edges\n", 2, "is not 'vertices edges"),
    "header of one number": ("g.graph", "5\n", 1, "'5' is not 'vertices edges"),
    "unknown code": ("g.graph", "2 1 12\n2\n1\n", 1, "fmt '012' is not known"),
    "neighbour out of range": ("g.graph", "2 1\n3\n1\n", 2, "vertex id 3 is out of range; allowed: 1 to 2"),
    "neighbour zero": ("g.graph", "2 1\n2\n0\n", 3, "vertex id 0 is out of range"),
    "neighbour is a word": ("g.graph", "2 1\n2\n% c\nx\n", 4, "'x' is not a vertex id"),
    "neighbour without a weight": ("g.graph", "2 1 1\n2 5\n1\n", 3, "the last neighbour has no weight"),
    "weight is a word": ("g.graph", "2 1 1\n2 x\n1 5\n", 2, "'x' is not a weight"),
    "vertex without its weight": ("g.graph", "2 1 10\n7 2\n\n", 3, "is empty, and 1 numbers of the vertex"),
    "vertex weight is a word": ("g.graph", "2 1 10\nx 2\n7 1\n", 2, "'x' is not the weight or size of a vertex"),
    "too few lines": ("g.graph", "3 1\n2\n1\n", None, "ends after 2 of the 3 vertices declared in line 1"),
    "too many lines": ("g.graph", "2 1\n2\n1\n1\n", 4, "a line too many for the 2 vertices declared in line 1"),
    "wrong number of edges": ("g.graph", "2 2\n2\n1\n", 1, "declares 2 edges, and the file has 1"),
    "one direction only": ("g.graph", "4 2\n2\n\n4 4\n3\n", None, "both directions of every edge"),
    "weights differ": ("g.graph", "2 1 1\n2 5\n1 6\n", None, "with the same weight"),
    "vertices beyond the file": ("g.graph", "99999999999 1\n2\n1\n", 1, "cannot be in a file of"),
}


def message_of(path, **options):
    """The error of reading: a single line that names the file."""
    with pytest.raises(ShoalError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def check_line(message, path, line, reason):
    assert reason in message
    found = re.match(rf"{re.escape(str(path))}, line (\d+): ", message)
    assert (int(found[1]) if found else None) == line


@pytest.mark.parametrize("case", TEXT)
def test_text(tmp_path, case):
    name, content, line, reason = TEXT[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    check_line(message_of(path), path, line, reason)


@pytest.mark.parametrize("case", ["negative id", "NaN for a weight", "row out of range", "neighbour is a word"])
def test_lines_are_counted_through_blocks_and_compression(tmp_path, monkeypatch, case):
    name, content, line, reason = TEXT[case]
    monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 8)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(content.encode()))
    check_line(message_of(path), path, line, reason)


@pytest.mark.parametrize("num_lines", [1, 1000, 200_000])
def test_line_far_into_a_file(tmp_path, num_lines):
    path = tmp_path / "g.txt"
    path.write_text("10 20\n" * num_lines + "10 -1\n" + "10 20\n" * num_lines)
    check_line(message_of(path), path, num_lines + 1, "'-1' is not a vertex id")


def test_id_beyond_num_vertices(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("0 1\n2 3\n")
    check_line(message_of(path, num_vertices=3), path, 2, "vertex id 3 is out of range; allowed: 0 to 2")
    check_line(message_of(path, num_vertices=0), path, 1, "vertex id 0 is out of range; allowed: none")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
def test_truncated_compression(tmp_path, compress):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(compress(b"0 1\n1 2\n" * 5000)[:-12])
    assert "cannot be decompressed: Truncated compressed stream" in message_of(path)


def test_damaged_compression(tmp_path):
    path = tmp_path / "g.mtx.gz"
    content = bytearray(gzip.compress(bytes(np.random.default_rng(1).integers(48, 58, 9000, np.uint8))))
    content[2000:2010] = b"0123456789"
    path.write_bytes(content)
    assert "cannot be decompressed" in message_of(path)


@pytest.mark.parametrize("suffix", [".txt", ".mtx", ".gr", ".graph", ".sg", ".wsg", ".parquet", ".npz", ".shoal"])
def test_empty_file(tmp_path, suffix):
    path = tmp_path / f"g{suffix}"
    path.touch()
    assert message_of(path).endswith("the file is empty")


def test_empty_compressed_file(tmp_path):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(b""))
    assert message_of(path).endswith("the file is empty")


def test_no_file_a_folder_and_an_unknown_suffix(tmp_path):
    with pytest.raises(ArgumentError, match=r"nowhere\.txt' cannot be read: No such file or directory"):
        read(tmp_path / "nowhere.txt")
    with pytest.raises(ArgumentError, match="is a directory; it must be a file"):
        read(tmp_path)
    path = tmp_path / "graph.gml"
    path.write_text("graph [ ]")
    message = message_of(path)
    for suffix in (".txt", ".csv", ".mtx", ".gr", ".graph", ".sg", ".wsg", ".parquet", ".npz", ".shoal", ".zst"):
        assert suffix in message
    assert message_of(path, format="gap").startswith(f"{path}, byte ")


@pytest.mark.parametrize("suffix", [".sg", ".shoal", ".npz", ".parquet"])
def test_compressed_binary(tmp_path, suffix):
    path = tmp_path / f"g{suffix}.gz"
    path.write_bytes(gzip.compress(b"x" * 100))
    assert "is compressed, and " in message_of(path)


@pytest.mark.parametrize("suffix", [".sg", ".wsg", ".parquet", ".arrow", ".npz", ".shoal"])
def test_binary_cut_short_anywhere(tmp_path, suffix):
    path = tmp_path / f"g{suffix}"
    weights = None if suffix == ".sg" else [1, 2, 3]
    write(Graph.from_edges([0, 1, 2], [1, 2, 3], weights), path)
    content = path.read_bytes()
    for length in {1, 5, 16, 20, len(content) // 3, len(content) // 2, len(content) - 1}:
        path.write_bytes(content[:length])
        assert message_of(path).startswith(f"{path}")


def gap(flag, num_edges, num_vertices, offsets, neighbours):
    numbers = [*offsets, *neighbours]
    return struct.pack(f"<bqq{len(offsets)}q{len(neighbours)}i", flag, num_edges, num_vertices, *numbers)


GAP = {
    "header cut short": (b"\0" * 10, 10, "the file ends within the header of 17 bytes"),
    "flag": (gap(7, 0, 0, [0], []), 0, "the flag for a directed graph is 7; it must be 0 or 1"),
    "negative sizes": (gap(0, -1, 2, [0], []), 1, "neither may be negative"),
    "absurd sizes": (gap(0, 2**60, 2**60, [0], []), 1, "vertices and 1152921504606846976 edges takes"),
    "cut short": (gap(0, 2, 2, [0, 1, 2], [1]), 1, "takes 49 bytes; the file has 45"),
    "offsets descend": (gap(0, 2, 2, [0, 5, 2], [1, 0]), 33, "offset 2 is 2; offsets must ascend from 0 to 2"),
    "first offset": (gap(0, 2, 2, [1, 1, 2], [1, 0]), 17, "offset 0 is 1; offsets must ascend from 0 to 2"),
    "last offset": (gap(0, 2, 2, [0, 1, 1], [1, 0]), 33, "offset 2 is 1; offsets must ascend from 0 to 2"),
    "neighbour": (gap(0, 2, 2, [0, 1, 2], [1, 2]), 45, "neighbour 2 is out of range; allowed: 0 to 1"),
    "negative neighbour": (gap(0, 2, 2, [0, 1, 2], [-1, 0]), 41, "neighbour -1 is out of range; allowed: 0 to 1"),
}


@pytest.mark.parametrize("case", GAP)
def test_gap(tmp_path, case):
    content, byte, reason = GAP[case]
    path = tmp_path / "g.sg"
    path.write_bytes(content)
    message = message_of(path)
    assert message.startswith(f"{path}, byte {byte}: ")
    assert reason in message


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, b"X", "byte 0: does not begin as a shoal file must"),
        (8, b"\x09", "byte 8: is of version 9; this shoal reads version 1"),
        (16, b"\xff" * 8, "the header is damaged (its checksum does not fit)"),
        (100, b"\xff", "the header is damaged"),
        (600, None, "truncated: the file has 600 bytes, and its header says"),
        (100, None, "byte 100: truncated within the header of 512 bytes"),
        (10**6, b"x", "too long"),
    ],
)
def test_native(tmp_path, position, value, reason):
    path = tmp_path / "g.shoal"
    write(Graph.from_edges([0, 1, 2], [1, 2, 3], [1, 2, 3]), path)
    content = bytearray(path.read_bytes())
    if value is None:
        content = content[:position]
    else:
        content[position : position + len(value)] = value
    path.write_bytes(content)
    assert reason in message_of(path)


def test_native_with_wrong_offsets(tmp_path):
    path = tmp_path / "g.shoal"
    write(Graph.from_edges([0, 1], [1, 2]), path)
    content = bytearray(path.read_bytes())
    content[512:516] = struct.pack("<i", 3)
    path.write_bytes(content)
    assert "array 'indptr': runs from 3 to 4, not 0 to 4" in message_of(path)


def test_native_is_checked_in_full_without_the_map(tmp_path):
    path = tmp_path / "g.shoal"
    write(Graph.from_edges([0, 1], [1, 2]), path)
    content = bytearray(path.read_bytes())
    content[576:580] = struct.pack("<i", 99)
    path.write_bytes(content)
    assert "indices[0]=99 is not a vertex id" in message_of(path, mmap=False)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (516, struct.pack("<i", 9), "offsets must not descend|is not allowed"),
        (576, struct.pack("<i", 99), r"indices\[0\]=99 is not a vertex id"),
        (580, struct.pack("<i", -1), r"indices\[1\]=-1 is not a vertex id"),
        (640, struct.pack("<d", float("nan")), r"weights\[0\]=nan is not a number"),
        (704, struct.pack("<q", 1), "array 'label_offsets': runs from 1 to 3"),
        (712, struct.pack("<q", 2**40), "labels are no array of strings"),
        (768, b"\xff", "labels are no array of strings"),
    ],
    ids=["offset", "id beyond", "negative id", "NaN", "first label", "label beyond", "label not UTF-8"],
)
def test_native_is_checked_by_its_first_use(tmp_path, mmap, place, value, reason):
    """Without a map it is checked at once; with one, what would end the process is an error of whatever looks first."""
    path = tmp_path / "g.shoal"
    write(Graph.from_edges([0, 1], [1, 2], [0.5, 1.5], directed=True, labels=["a", "b", "c"]), path)
    content = bytearray(path.read_bytes())
    content[place : place + len(value)] = value
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=reason) as caught:
        shoal.bfs(read(path, mmap=mmap), 0)
    assert str(caught.value).startswith(str(path))


def test_native_is_opened_and_described_without_a_look_at_edges(tmp_path):
    path = tmp_path / "g.shoal"
    write(Graph.from_edges([0, 1], [1, 2]), path)
    content = bytearray(path.read_bytes())
    content[576:580] = struct.pack("<i", 99)
    path.write_bytes(content)
    graph = read(path)
    assert (graph.num_vertices, graph.num_edges, graph.is_weighted, graph.vertex_dtype) == (3, 4, False, np.int32)
    assert "3 vertices" in repr(graph)
    for _ in range(2):
        with pytest.raises(FileFormatError, match="indices"):
            _ = graph.indices


@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 1)), max_size=12),
    is_mirrored=st.booleans(),
)
def test_gap_has_both_directions_or_is_refused(tmp_path_factory, edges, is_mirrored):
    rows = sorted(edges + [(v, u, w) for u, v, w in edges if is_mirrored and u != v])
    offsets = np.searchsorted([u for u, _, _ in rows], np.arange(5)).tolist()
    path = tmp_path_factory.mktemp("gap") / "g.wsg"
    path.write_bytes(gap(0, len(rows), 4, offsets, [number for _, v, w in rows for number in (v, w)]))
    if rows == sorted((v, u, w) for u, v, w in rows):
        assert read(path).num_edges == len(rows)
    else:
        assert "not every edge has one in the other direction" in message_of(path)


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.io.text_source.BLOCK_BYTES", 64)
    monkeypatch.setattr("shoal.io.text_source.LONGEST_LINE", 1024)
    for name, text in (("g.txt", b"0 1\n" + b"7" * 9000), ("g.gr", b"c" * 9000)):
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text))
        assert "there is no row in" in message_of(path)
    path = tmp_path / "g.graph.gz"
    path.write_bytes(gzip.compress(b"1 1500\n" + b"1 " * 3000))
    assert read(path).num_edges == 3000


NPZ = {
    "no indices": ({"indptr": [0, 0]}, "has no array 'indices'; it has: indptr"),
    "floats for ids": ({"indptr": [0, 1], "indices": [0.5]}, "array 'indices': has 1 dimensions and dtype float64"),
    "two dimensions": ({"indptr": [[0, 1]], "indices": [0]}, "array 'indptr': has 2 dimensions"),
    "id out of range": ({"indptr": [0, 1], "indices": [7]}, "indices[0]=7 is not a vertex id"),
    "offsets descend": ({"indptr": [0, 2, 1, 2], "indices": [0, 1]}, "offsets must not descend"),
    "weights of another size": ({"indptr": [0, 1], "indices": [0], "weights": [1, 2]}, "weights has 2 values"),
    "NaN": ({"indptr": [0, 1], "indices": [0], "weights": [np.nan]}, "weights[0]=nan is not a number"),
    "not symmetric": ({"indptr": [0, 1, 1], "indices": [1], "directed": False}, "both directions"),
    "flag": ({"indptr": [0, 1], "indices": [0], "directed": [1, 2]}, "array 'directed': must be a single Boolean"),
    "labels": ({"indptr": [0, 1], "indices": [0], "labels": [1, 2]}, "labels has 2 values for 1 vertices"),
}


@pytest.mark.parametrize("case", NPZ)
def test_npz(tmp_path, case):
    arrays, reason = NPZ[case]
    path = tmp_path / "g.npz"
    np.savez(path, **arrays)
    assert reason in message_of(path)


def test_npz_with_a_pickle(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, indptr=np.array([0, None], object), indices=[0])
    assert "array 'indptr': cannot be read as a NumPy archive" in message_of(path)


def test_npz_that_claims_an_absurd_size(tmp_path):
    path = tmp_path / "g.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2**58,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("indptr.npy", header.getvalue())
        archive.writestr("indices.npy", header.getvalue())
    assert "array 'indptr': cannot be read as a NumPy archive" in message_of(path)


def test_npz_that_is_no_archive(tmp_path):
    path = tmp_path / "g.npz"
    np.save(tmp_path / "g.npy", np.arange(3))
    (tmp_path / "g.npy").rename(path)
    assert "cannot be read as a NumPy archive: it is a single array" in message_of(path)


PARQUET = {
    "no columns": ({"a": [1]}, "has 1 column (a), and edges have 2 or 3"),
    "missing id": ({"src": [1, None], "dst": [2, 3]}, "column 'src': has 1 missing values"),
    "negative id": ({"src": [1, 2], "dst": [2, -3]}, "column 'dst', row 1: -3 is not a vertex id"),
    "floats for ids": ({"src": [1.5], "dst": [2.0]}, "column 'src': has the type double; ids must be"),
    "words for weights": ({"src": [1], "dst": [2], "weight": ["x"]}, "column 'weight': has the type string"),
    "NaN": ({"src": [1], "dst": [2], "weight": [float("nan")]}, "weights[0]=nan is not a number"),
    "missing weight": ({"src": [1], "dst": [2], "weight": [None]}, "column 'weight': has 1 missing values"),
    "large weight": ({"src": [1], "dst": [2], "weight": [2**60]}, "is too large; whole numbers must be within 2**53"),
}


@pytest.mark.parametrize("case", PARQUET)
def test_parquet(tmp_path, case):
    columns, reason = PARQUET[case]
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table(columns), path)
    assert reason in message_of(path)


def test_parquet_with_num_vertices(tmp_path):
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table({"src": [0, 5], "dst": [1, 2]}), path)
    assert "src[1]=5 is not a vertex id; ids must be from 0 to 3" in message_of(path, num_vertices=4)
    pq.write_table(pa.table({"src": ["a"], "dst": ["b"]}), path)
    assert "column 'src': has the type string; with num_vertices ids must be integers" in message_of(
        path, num_vertices=4
    )


def test_parquet_that_is_none(tmp_path):
    path = tmp_path / "g.parquet"
    path.write_bytes(b"PAR1" + b"x" * 100)
    message_of(path)
    path.write_bytes(b"hello, world, this is no table")
    message_of(path)


def test_errors_are_of_the_right_kind(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("0 -1\n")
    with pytest.raises(FileFormatError):
        read(path)
    with pytest.raises(ArgumentError):
        read(tmp_path / "missing")
