# SPDX-License-Identifier: Apache-2.0
"""Matrix Market coordinate files: a square matrix whose entry (u, v) is an edge, ids from 1.

A general matrix is a directed graph, a symmetric one (one triangle) an undirected graph.  A pattern has no weights,
integer and real entries are the weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.assembly import check_num_edges, check_num_vertices, graph_from_rows
from shoal.io.fields import is_count
from shoal.io.options import ReadOptions

_BANNER = b"%%MatrixMarket"
_FIELDS = ("pattern", "integer", "real", "double")
_SYMMETRIES = ("general", "symmetric")
_NOT_A_GRAPH = {
    "complex": "complex entries are no weights",
    "skew-symmetric": "a skew-symmetric matrix is no graph, since the directions of an edge have different weights",
    "hermitian": "complex entries are no weights",
    "array": "a dense matrix has an entry for every pair of vertices; only coordinate files are read",
}
_BYTES_PER_EDGE = 4  # "1 1" and a newline


class _Header(NamedTuple):
    field: str
    symmetry: str
    num_vertices: int
    num_edges: int
    size_line: int


def matches(start: bytes) -> bool:
    """Say whether a file begins as a Matrix Market file must."""
    return start[: len(_BANNER)].lower() == _BANNER.lower()


def read(path: str, options: ReadOptions) -> Graph:
    """Read the header in Python and the entries by the compiled parser of edge lists."""
    from shoal.io.edge_rows import read_edge_rows
    from shoal.io.text_source import TextSource

    with TextSource(path) as source:
        header = _read_header(source)
        options.check_num_vertices(path, header.num_vertices)
        layout = _layout(path, header, options)
        rows = read_edge_rows(source, layout, has_real_weights=header.field in ("real", "double"))
    if rows.num_rows != header.num_edges:
        raise FileFormatError(
            f"{path}, line {header.size_line}: declares {header.num_edges} entries, and the file has {rows.num_rows}"
        )
    is_halved = header.symmetry == "symmetric"
    return graph_from_rows(
        path, rows, options, num_vertices=header.num_vertices, directed=not is_halved, is_halved=is_halved
    )


def _read_header(source: Any) -> _Header:
    place = f"{source.path}, line 1"
    lines = source.first_lines(b"", 1)
    banner = lines[0].text.decode("utf-8", "replace").split() if lines and lines[0].number == 1 else []
    if not banner or banner[0].lower() != _BANNER.decode().lower():
        raise FileFormatError(f"{place}: must begin with {_BANNER.decode()}")
    if len(banner) != 5:
        raise FileFormatError(
            f"{place}: has {len(banner)} words; it must be: %%MatrixMarket matrix coordinate field symmetry"
        )
    kind, layout, field, symmetry = (word.lower() for word in banner[1:])
    for word in (layout, field, symmetry):
        if word in _NOT_A_GRAPH:
            raise FileFormatError(f"{place}: {word!r} is not allowed: {_NOT_A_GRAPH[word]}")
    for word, allowed in ((kind, ("matrix",)), (layout, ("coordinate",)), (field, _FIELDS), (symmetry, _SYMMETRIES)):
        if word not in allowed:
            raise FileFormatError(f"{place}: {word!r} is not known; allowed: {', '.join(allowed)}")
    return _Header(field, symmetry, *_read_size(source))


def _read_size(source: Any) -> tuple[int, int, int]:
    lines = source.first_lines(b"%", 1)
    if not lines:
        raise FileFormatError(f"{source.path}: ends before the line with the size of the matrix")
    place = f"{source.path}, line {lines[0].number}"
    words = lines[0].text.split()
    if len(words) != 3 or not all(map(is_count, words)):
        raise FileFormatError(f"{place}: {lines[0].text.decode('utf-8', 'replace')!r} is not 'rows columns entries'")
    num_rows, num_columns, num_edges = map(int, words)
    if num_rows != num_columns:
        raise FileFormatError(f"{place}: the matrix is {num_rows} x {num_columns}; a graph needs a square one")
    check_num_vertices(source.path, f"line {lines[0].number}", num_rows)
    check_num_edges(source.path, f"line {lines[0].number}", num_edges, _BYTES_PER_EDGE, source.size)
    source.skip_past(lines[0])
    return num_rows, num_edges, lines[0].number


def _layout(path: str, header: _Header, options: ReadOptions) -> Any:
    from shoal.backends.cpu.kernels.text_rows import Layout

    has_weights = header.field != "pattern"
    wants_weights = options.wants_weights(path, has_weights)
    return Layout(
        comment=ord("%"),
        other_comment=ord("%"),
        tag=0,
        delimiter=0,
        num_columns=3 if has_weights else 2,
        src_column=0,
        dst_column=1,
        weight_column=2 if wants_weights else -1,
        first_id=1,
        last_id=header.num_vertices,
        is_text=0,
    )


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write an undirected graph as the lower triangle of a symmetric matrix."""
    from shoal.io.edge_batches import count_rows, edge_batches
    from shoal.io.files import replacing_stream
    from shoal.io.text_target import format_weights, write_columns

    field = "pattern" if graph.weights is None else "integer" if graph.weights.dtype.kind == "i" else "real"
    symmetry = "general" if graph.is_directed else "symmetric"
    size = f"{graph.num_vertices} {graph.num_vertices} {count_rows(graph)}"
    with replacing_stream(path, compression) as stream:
        stream.write(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{size}\n".encode())
        for src, dst, weights in edge_batches(graph):
            ids = [src + 1, dst + 1] if graph.is_directed else [dst + 1, src + 1]
            write_columns(stream, ids if weights is None else [*ids, format_weights(weights)], " ")
