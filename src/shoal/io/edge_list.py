# SPDX-License-Identifier: Apache-2.0
"""Edge lists: a line for each edge with source, destination and perhaps a weight.

Columns are separated by blanks, tabs or commas.  Lines that start with ``#`` or ``%`` are comments, and SNAP's comments
"Directed graph" and "Undirected graph" are believed.  A table with commas may have a header: a first line of common
names, of the caller's names, or of words over a second line of numbers.  Ids are whole numbers or any other words;
unless they are 0 to n - 1, they become the labels of the vertices.  A written file says in a comment what rows cannot:
the direction, and which ids there are; a ``.csv`` has a header instead, for programs that know no comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from shoal.graph import Graph
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.assembly import check_num_vertices, graph_from_rows
from shoal.io.columns import choose_columns, has_pair
from shoal.io.edge_stream import EdgeStream
from shoal.io.formats import split_suffix
from shoal.io.options import ReadOptions

COMMENTS = b"#%"
_VERTEX_IDS = "# Vertex ids: 0 to "


def matches(start: bytes) -> bool:
    """Never say that a content is an edge list: anything might be one."""
    return False


def read(path: str, options: ReadOptions) -> Graph:
    """Read ids as numbers and, if one is none, read all of them again as labels."""
    from shoal.io.edge_rows import NotNumbersError

    try:
        return _read(path, options, is_text=False)
    except NotNumbersError:
        return _read(path, options, is_text=True)


def _read(path: str, options: ReadOptions, is_text: bool) -> Graph:
    from shoal.io.edge_rows import read_edge_rows
    from shoal.io.text_source import TextSource

    with TextSource(path) as source:
        lines = source.first_lines(COMMENTS, 2)
        comments = source.text_before(lines[0] if lines else None)
        num_vertices = _declared_vertices(path, comments, options, is_text)
        layout = _choose_layout(source, lines, options, num_vertices, is_text)
        may_have_labels = options.num_vertices is None and not is_text
        rows = read_edge_rows(source, layout, may_have_labels=may_have_labels)
    return graph_from_rows(path, rows, options, num_vertices=num_vertices, directed=_says_directed(comments))


def _says_directed(comments: bytes) -> bool:
    return re.search(rb"(?im)^[#%][ \t]*directed graph", comments) is not None


def stream(path: str, options: ReadOptions) -> EdgeStream:
    """Read block by block; ids are whole numbers."""
    from shoal.io.edge_rows import stream_edge_rows
    from shoal.io.text_source import TextSource

    with TextSource(path) as source:
        lines = source.first_lines(COMMENTS, 2)
        comments = source.text_before(lines[0] if lines else None)
        num_vertices = _declared_vertices(path, comments, options, is_text=False)

    def batches() -> Iterator[EdgeRows]:
        with TextSource(path) as source:
            layout = _choose_layout(source, source.first_lines(COMMENTS, 2), options, num_vertices, is_text=False)
            yield from stream_edge_rows(source, layout)

    is_directed = _says_directed(comments) if options.directed is None else options.directed
    return EdgeStream(path, is_directed, num_vertices, False, batches)


def _declared_vertices(path: str, comments: bytes, options: ReadOptions, is_text: bool) -> int | None:
    if options.num_vertices is not None:
        return options.num_vertices
    declared = re.search(rb"(?m)^" + _VERTEX_IDS.encode() + rb"(\d{1,18})\s*$", comments)
    if declared is None or is_text:
        return None
    check_num_vertices(path, "comment 'Vertex ids'", int(declared[1]) + 1)
    return int(declared[1]) + 1


def _choose_layout(source: Any, lines: list[Any], options: ReadOptions, num_vertices: int | None, is_text: bool) -> Any:
    from shoal.backends.cpu.kernels.text_rows import Layout
    from shoal.io.edge_rows import LARGEST_ID
    from shoal.io.fields import split_fields

    delimiter = _choose_delimiter(source.path, lines[0].text if lines else b"")
    rows = [split_fields(line.text, delimiter) for line in lines]
    names = _header_names(rows, options, delimiter)
    if names is not None:
        source.skip_past(lines[0])
    place = f"{source.path}, line {lines[0].number}" if lines else source.path
    num_columns = len(rows[0]) if rows else 3 if options.weighted else 2
    columns = choose_columns(place, names, num_columns, options)
    return Layout(
        comment=COMMENTS[0],
        other_comment=COMMENTS[1],
        tag=0,
        delimiter=delimiter,
        num_columns=num_columns,
        src_column=columns.src,
        dst_column=columns.dst,
        weight_column=columns.weight,
        first_id=0,
        last_id=LARGEST_ID if num_vertices is None else num_vertices - 1,
        is_text=int(is_text),
    )


def _choose_delimiter(path: str, line: bytes) -> int:
    """Return the byte that separates the columns of the first row; 0 for blanks."""
    unquoted = re.sub(rb'"[^"]*"', b"", line)
    if b"," in unquoted:
        return ord(",")
    # Names with blanks in them are common between tabs; elsewhere a tab is a blank like any other.
    return ord("\t") if split_suffix(path)[0] == ".tsv" and b"\t" in unquoted else 0


def _header_names(rows: list[list[bytes]], options: ReadOptions, delimiter: int) -> list[str] | None:
    """Return the names in the first row if it is a header."""
    from shoal.io.fields import is_whole_number, unquote

    if not rows:
        return None
    names = [unquote(field) for field in rows[0]]
    if any(isinstance(column, str) for column in (options.src_column, options.dst_column, options.weight_column)):
        return names
    if any(is_whole_number(field) for field in rows[0]):
        return None
    sides = (options.src_column or 0, 1 if options.dst_column is None else options.dst_column)
    is_over_numbers = len(rows) > 1 and all(is_whole_number(field) for i, field in enumerate(rows[1]) if i in sides)
    if is_over_numbers and (delimiter != 0 or has_pair(names)):
        return names
    # "u" and "v" may well be vertices; "source" and "target" hardly are.
    return names if has_pair(names) and all(len(name) > 1 for name in names[:2]) else None


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write an undirected edge once, smaller id first."""
    from shoal.io.edge_batches import edge_batches, warn_of_lost_vertices
    from shoal.io.files import replacing_stream
    from shoal.io.text_target import format_labels, format_weights, write_columns

    is_csv = split_suffix(path)[0] == ".csv"
    labels = format_labels(graph.labels)
    if is_csv or labels is not None:
        warn_of_lost_vertices(graph, path)
    with replacing_stream(path, compression) as stream:
        stream.write(_csv_header(graph) if is_csv else _comments(graph))
        for src, dst, weights in edge_batches(graph):
            ids = [side if labels is None else labels.take(side) for side in (src, dst)]
            columns = ids if weights is None else [*ids, format_weights(weights)]
            write_columns(stream, columns, "," if is_csv else " ")


def _csv_header(graph: Graph) -> bytes:
    return b"src,dst,weight\n" if graph.is_weighted else b"src,dst\n"


def _comments(graph: Graph) -> bytes:
    from shoal.io.edge_batches import count_rows

    lines = [
        "# Directed graph" if graph.is_directed else "# Undirected graph (each edge once)",
        f"# Nodes: {graph.num_vertices} Edges: {count_rows(graph)}",
    ]
    if graph.labels is None and graph.num_vertices:
        lines.append(f"{_VERTEX_IDS}{graph.num_vertices - 1}")
    return "".join(f"{line}\n" for line in lines).encode()
