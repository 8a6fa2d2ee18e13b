# SPDX-License-Identifier: Apache-2.0
"""Read graphs from files and write them; each format is one module, listed in `shoal.io.formats`."""

from __future__ import annotations

import os
from typing import Any

from shoal.errors import ArgumentError, FileFormatError
from shoal.graph import Graph
from shoal.io.files import check_readable, compression_of
from shoal.io.formats import FORMATS, format_to_read, format_to_write, split_suffix
from shoal.io.options import ReadOptions
from shoal.io.room import check_room

__all__ = ["FORMATS", "read", "write"]


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    directed: bool | None = None,
    weighted: bool | None = None,
    num_vertices: int | None = None,
    deduplicate: bool = False,
    drop_self_loops: bool = False,
    vertex_dtype: Any = None,
    edge_dtype: Any = None,
    src_column: str | int | None = None,
    dst_column: str | int | None = None,
    weight_column: str | int | None = None,
    mmap: bool = True,
) -> Graph:
    """Read a graph from a file.

    Parameters
    ----------
    format
        One of `FORMATS`; by the suffix and the content of the file if not given.
    directed
        What the file says if not given; undirected if it says nothing.  With False, every edge of the file is stored in
        both directions.
    weighted
        False ignores weights, True demands them.
    num_vertices
        For edge lists and tables: ids are 0 to ``num_vertices`` - 1.  If not given, the ids that occur are the vertices
        and, unless they are 0 to n - 1, the labels of the graph.
    src_column, dst_column, weight_column
        Columns of a table, by name or by position from 0.
    mmap
        Whether a file in shoal's own format stays on disk and is read as it is used, without a check of every edge.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "three.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("# Directed graph\\n7 1000000000\\nalice 7\\n")
    >>> g = read(path)
    >>> g.num_vertices, g.is_directed, g.vertex("alice")
    (3, True, 2)
    """
    name = os.fspath(path)
    options = ReadOptions(
        directed=directed,
        weighted=weighted,
        num_vertices=num_vertices,
        deduplicate=deduplicate,
        drop_self_loops=drop_self_loops,
        vertex_dtype=vertex_dtype,
        edge_dtype=edge_dtype,
        src_column=src_column,
        dst_column=dst_column,
        weight_column=weight_column,
        mmap=mmap,
    )
    check_readable(name)
    format_name = format_to_read(name, format)
    if format_name not in ("edge-list", "parquet"):
        options.refuse_columns(format_name)
    if not FORMATS[format_name].is_text and compression_of(name) is not None:
        raise FileFormatError(f"{name}: is compressed, and {format_name} files must not be")
    check_room(name, format_name, options)
    return FORMATS[format_name].load().read(name, options)


def write(graph: Graph, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a graph to a file, which appears only when it is complete.

    The format is ``format`` or goes by the suffix; ``.gz``, ``.bz2`` and ``.zst`` after the suffix of a text format
    compress it.  Edge lists, tables, ``.npz`` and ``.shoal`` keep labels; the other formats number the vertices.
    """
    name = os.fspath(path)
    if not isinstance(graph, Graph):
        raise ArgumentError(f"graph is a {type(graph).__name__}; it must be a Graph")
    format_name = format_to_write(name, format)
    _, compression = split_suffix(name)
    if compression is not None and not FORMATS[format_name].is_text:
        raise ArgumentError(f"path={name!r} is not allowed; {format_name} files cannot be compressed")
    FORMATS[format_name].load().write(graph, name, compression)
