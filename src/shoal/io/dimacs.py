# SPDX-License-Identifier: Apache-2.0
"""DIMACS ``.gr`` files, in the three dialects that are about.

- ``p sp n m``, then ``a u v w`` for each arc, ids from 1 (9th DIMACS challenge): directed, with weights.
- ``p tw n m`` (or ``p edge``, ``p col``), then ``u v`` or ``e u v`` for each edge, ids from 1 (PACE): undirected.
- only ``a u v w`` lines, ids from 0: directed, vertices as in an edge list.

A graph without direction and weights is written as ``p tw``, any other as ``p sp``, where an undirected edge is two
arcs and an edge without a weight has the weight 1, since the format has neither.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.assembly import check_num_edges, check_num_vertices, graph_from_rows
from shoal.io.fields import is_count
from shoal.io.options import ReadOptions

_DIRECTED_PROBLEMS = ("sp",)
_UNDIRECTED_PROBLEMS = ("tw", "edge", "col")
_BYTES_PER_EDGE = 4  # "1 2" and a newline


class _Dialect(NamedTuple):
    is_directed: bool
    has_weights: bool
    tag: int
    num_vertices: int | None = None
    num_edges: int | None = None
    header_line: int = 0


def matches(start: bytes) -> bool:
    """Say whether comments and a problem line are all that a file begins with."""
    lines = [line.split() for line in start.split(b"\n") if line.strip()]
    first = next((words for words in lines if words[0] != b"c"), [])
    known = _DIRECTED_PROBLEMS + _UNDIRECTED_PROBLEMS
    return len(first) == 4 and first[0] == b"p" and first[1].decode("utf-8", "replace") in known


def read(path: str, options: ReadOptions) -> Graph:
    """Find the dialect in Python and read the edges by the compiled parser of edge lists."""
    from shoal.io.edge_rows import read_edge_rows
    from shoal.io.text_source import TextSource

    with TextSource(path) as source:
        dialect = _choose_dialect(source)
        rows = read_edge_rows(source, _layout(path, dialect, options))
    if dialect.num_edges is not None and rows.num_rows != dialect.num_edges:
        place = f"{path}, line {dialect.header_line}"
        raise FileFormatError(f"{place}: declares {dialect.num_edges} edges, and the file has {rows.num_rows}")
    num_vertices = options.num_vertices if dialect.num_vertices is None else dialect.num_vertices
    is_halved = not dialect.is_directed
    return graph_from_rows(path, rows, options, num_vertices=num_vertices, directed=not is_halved, is_halved=is_halved)


def _choose_dialect(source: Any) -> _Dialect:
    lines = source.first_lines(b"c", 2)
    if not lines:
        raise FileFormatError(f"{source.path}: has no problem line 'p sp vertices edges' and no arc 'a src dst weight'")
    words = lines[0].text.split()
    if words[:1] == [b"a"]:
        return _Dialect(is_directed=True, has_weights=True, tag=ord("a"))
    place = f"{source.path}, line {lines[0].number}"
    shown = repr(lines[0].text[:60].decode("utf-8", "replace"))
    if len(words) != 4 or words[0] != b"p" or not (is_count(words[2]) and is_count(words[3])):
        raise FileFormatError(
            f"{place}: {shown} is neither a problem 'p sp vertices edges' nor an arc 'a src dst weight'"
        )
    problem, num_vertices, num_edges = words[1].decode("utf-8", "replace"), int(words[2]), int(words[3])
    known = _DIRECTED_PROBLEMS + _UNDIRECTED_PROBLEMS
    if problem not in known:
        raise FileFormatError(f"{place}: the problem {problem!r} is not known; allowed: {', '.join(known)}")
    check_num_vertices(source.path, f"line {lines[0].number}", num_vertices)
    check_num_edges(source.path, f"line {lines[0].number}", num_edges, _BYTES_PER_EDGE, source.size)
    source.skip_past(lines[0])
    size = (num_vertices, num_edges, lines[0].number)
    if problem in _DIRECTED_PROBLEMS:
        return _Dialect(True, True, ord("a"), *size)
    has_tag = len(lines) > 1 and lines[1].text.startswith(b"e")
    return _Dialect(False, False, ord("e") if has_tag else 0, *size)


def _layout(path: str, dialect: _Dialect, options: ReadOptions) -> Any:
    from shoal.backends.cpu.kernels.text_rows import Layout
    from shoal.io.edge_rows import LARGEST_ID

    wants_weights = options.wants_weights(path, dialect.has_weights)
    if dialect.num_vertices is not None:
        options.check_num_vertices(path, dialect.num_vertices)
        first_id, last_id = 1, dialect.num_vertices
    else:
        first_id, last_id = 0, LARGEST_ID if options.num_vertices is None else options.num_vertices - 1
    return Layout(
        comment=ord("c"),
        other_comment=ord("c"),
        tag=dialect.tag,
        delimiter=0,
        num_columns=3 if dialect.has_weights else 2,
        src_column=0,
        dst_column=1,
        weight_column=2 if wants_weights else -1,
        first_id=first_id,
        last_id=last_id,
        is_text=0,
    )


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write ``p tw`` for a graph without direction and weights, ``p sp`` for any other."""
    import pyarrow as pa

    from shoal.io.edge_batches import count_rows, edge_batches
    from shoal.io.files import replacing_stream
    from shoal.io.text_target import format_weights, write_columns

    has_arcs = graph.is_directed or graph.is_weighted
    header = (
        f"p sp {graph.num_vertices} {graph.num_edges}" if has_arcs else f"p tw {graph.num_vertices} {count_rows(graph)}"
    )
    with replacing_stream(path, compression) as stream:
        stream.write(f"{header}\n".encode())
        for src, dst, weights in edge_batches(graph, both_directions=has_arcs):
            columns: list[Any] = [src + 1, dst + 1]
            if has_arcs:
                ones = pa.repeat(1, src.size)
                columns = [pa.repeat("a", src.size), *columns, ones if weights is None else format_weights(weights)]
            write_columns(stream, columns, " ")
