# SPDX-License-Identifier: Apache-2.0
"""METIS ``.graph`` files: a line ``n m [fmt [ncon]]``, then a line for each vertex with its neighbours, ids from 1.

The digits of fmt say whether a line begins with the size of the vertex (100), whether ``ncon`` weights of the vertex
follow (10), and whether each neighbour is followed by the weight of the edge (1).  Sizes and weights of vertices are
skipped, since a graph has no place for them.  An empty line is a vertex without neighbours; ``%`` starts a comment.
Every edge stands in the lines of both its ends; the graph is undirected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.errors import FileFormatError, GraphError
from shoal.graph import Graph
from shoal.io.assembly import check_num_edges, graph_from_csr
from shoal.io.fields import is_count
from shoal.io.options import ReadOptions

_BYTES_PER_EDGE = 2  # a self-loop: a digit and a blank or newline


class Header(NamedTuple):
    """The first line."""

    num_vertices: int
    num_edges: int
    num_skipped: int
    has_weights: bool
    line: int


def matches(start: bytes) -> bool:
    """Never say that a content is METIS's: it is nothing but numbers."""
    return False


def read(path: str, options: ReadOptions) -> Graph:
    """Read the header in Python and the lines of the vertices by a compiled parser."""
    from shoal.io.adjacency import read_adjacency
    from shoal.io.text_source import TextSource

    with TextSource(path, has_long_lines=True) as source:
        header = _read_header(source)
        options.check_num_vertices(path, header.num_vertices)
        wants_weights = options.wants_weights(path, header.has_weights)
        ordered = _in_order(path, header, *read_adjacency(source, header))
    weights = ordered.weights if wants_weights else None
    return graph_from_csr(path, ordered.indptr, ordered.indices, weights, options, directed=False)


def _in_order(path: str, header: Header, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> Graph:
    """Put rows in ascending order, as in every graph that is read from edges: lines have neighbours in any order."""
    src = np.repeat(np.arange(header.num_vertices, dtype=indices.dtype), np.diff(indptr))
    _check_counts(path, header, src, indices)
    return Graph.from_edges(src, indices, weights, num_vertices=header.num_vertices, directed=True)


def _read_header(source: Any) -> Header:
    lines = source.first_lines(b"%", 1)
    if not lines:
        raise FileFormatError(f"{source.path}: has no line with the numbers of vertices and edges")
    number, words = lines[0].number, lines[0].text.split()
    if not 2 <= len(words) <= 4 or not all(map(is_count, words)):
        shown = repr(lines[0].text[:60].decode("utf-8", "replace"))
        raise FileFormatError(f"{source.path}, line {number}: {shown} is not 'vertices edges [fmt [ncon]]'")
    num_vertices, num_edges = int(words[0]), int(words[1])
    code = words[2].decode().zfill(3) if len(words) > 2 else "000"
    if len(code) != 3 or set(code) - {"0", "1"}:
        raise FileFormatError(f"{source.path}, line {number}: fmt {code!r} is not known; allowed: three digits 0 or 1")
    num_weights = int(words[3]) if len(words) > 3 else 1
    num_skipped = int(code[0]) + num_weights * int(code[1])
    check_num_edges(source.path, f"line {number}", num_edges, _BYTES_PER_EDGE, source.size)
    if source.size is not None and num_vertices * max(1, num_skipped) > source.size:
        raise FileFormatError(
            f"{source.path}, line {number}: {num_vertices} vertices cannot be in a file of {source.size} bytes"
        )
    source.skip_past(lines[0])
    return Header(num_vertices, num_edges, num_skipped, code[2] == "1", number)


def _check_counts(path: str, header: Header, src: np.ndarray, indices: np.ndarray) -> None:
    """Compare with the header; METIS has no self-loops, and those who write them count one end or two."""
    if indices.size == 2 * header.num_edges:
        return
    num_loops = int(np.count_nonzero(src == indices))
    if indices.size + num_loops != 2 * header.num_edges:
        found = (indices.size + num_loops) / 2
        raise FileFormatError(
            f"{path}, line {header.line}: declares {header.num_edges} edges, and the file has {found:g}"
        )


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write a line for each vertex."""
    from shoal.io.adjacency import adjacency_lines
    from shoal.io.edge_batches import count_rows
    from shoal.io.files import replacing_stream
    from shoal.io.text_target import write_lines

    if graph.is_directed:
        raise GraphError("graph is directed; METIS files hold undirected graphs (see Graph.symmetrized)")
    code = " 1" if graph.is_weighted else ""
    with replacing_stream(path, compression) as stream:
        stream.write(f"{graph.num_vertices} {count_rows(graph)}{code}\n".encode())
        for lines in adjacency_lines(graph):
            write_lines(stream, lines)
