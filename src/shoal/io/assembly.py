# SPDX-License-Identifier: Apache-2.0
"""From the arrays of a file to a graph: direction, duplicates and self-loops as the caller asked."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from shoal.errors import FileFormatError, GraphError, OutOfMemoryError
from shoal.graph import Graph
from shoal.interop.vertex_ids import EdgeRows, number_vertices
from shoal.io.options import ReadOptions

#: The widths of ids and offsets that a graph has; arrays of other widths are converted.
_WIDTHS = (("int32", "int32"), ("int32", "int64"), ("int64", "int64"))
#: Vertices that a file may declare whatever it has: their offsets take 16 MiB.
_FREE_VERTICES = 2**22
#: And for each edge, which has four bytes at least: memory stays in proportion to the file, and no graph that one would
#: search has so many vertices without edges.
_VERTICES_PER_EDGE = 64


def graph_from_rows(
    path: str,
    rows: EdgeRows,
    options: ReadOptions,
    *,
    num_vertices: int | None,
    directed: bool,
    is_halved: bool = False,
) -> Graph:
    """Make a graph of one edge a row.

    Parameters
    ----------
    num_vertices
        The number the file or the caller declares; None numbers the distinct ids.
    directed
        What the file says; the caller's word goes before it.
    is_halved
        A row of the file stands for both directions, so that the directed graph has both.
    """
    is_directed = directed if options.directed is None else options.directed
    src, dst, labels = rows.src, rows.dst, None
    if num_vertices is None:
        src, dst, num_vertices, labels = number_vertices(rows)
    elif options.num_vertices is None:
        _check_claim(path, num_vertices, rows.num_rows)
    graph = _in_file(
        path,
        Graph.from_edges,
        src,
        dst,
        rows.weights,
        num_vertices=num_vertices,
        directed=is_directed and not is_halved,
        labels=labels,
        deduplicate=options.deduplicate,
        drop_self_loops=options.drop_self_loops,
        vertex_dtype=options.vertex_dtype,
        edge_dtype=options.edge_dtype,
    )
    return _as_directed(graph) if is_directed and is_halved else graph


def _as_directed(graph: Graph) -> Graph:
    arrays = (graph.indptr, graph.indices, graph.weights)
    widths = {"vertex_dtype": graph.vertex_dtype, "edge_dtype": graph.edge_dtype}
    return Graph.from_csr(*arrays, directed=True, labels=graph.labels, check=False, **widths)


def graph_from_csr(
    path: str,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    options: ReadOptions,
    *,
    directed: bool,
    labels: Any = None,
    check: bool = True,
    keep_widths: bool = False,
) -> Graph:
    """Make a graph of the CSR of a file; ``keep_widths`` takes the file's widths where the caller gave none."""
    is_directed = directed if options.directed is None else options.directed
    vertex_dtype, edge_dtype = options.vertex_dtype, options.edge_dtype
    if (
        keep_widths
        and vertex_dtype is None
        and edge_dtype is None
        and (indices.dtype.name, indptr.dtype.name) in _WIDTHS
    ):
        vertex_dtype, edge_dtype = indices.dtype, indptr.dtype
    graph = _in_file(
        path,
        Graph.from_csr,
        indptr,
        indices,
        weights,
        directed=directed or is_directed,
        labels=labels,
        vertex_dtype=vertex_dtype,
        edge_dtype=edge_dtype,
        check=check,
    )
    if directed and not is_directed:
        graph = graph.symmetrized(deduplicate=options.deduplicate)
    elif options.deduplicate:
        graph = graph.deduplicated()
    return graph.without_self_loops() if options.drop_self_loops else graph


def _in_file(path: str, make: Any, *args: Any, **kwargs: Any) -> Graph:
    """Make a graph; what is wrong with its arrays is wrong with the file."""
    try:
        return make(*args, **kwargs)
    except GraphError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{path}: {error}") from error


def _check_claim(path: str, num_vertices: int, num_edges: int) -> None:
    """Refuse a number that takes memory out of all proportion to the file, unless the caller gives it, too."""
    if num_vertices > _FREE_VERTICES + _VERTICES_PER_EDGE * num_edges:
        raise FileFormatError(
            f"{path}: declares {num_vertices} vertices and has {num_edges} edges; if that is meant, ask for it with "
            f"num_vertices={num_vertices}"
        )


def check_num_vertices(path: str, place: str, num_vertices: int) -> None:
    """Refuse, before anything is allocated, more vertices than this machine has memory for."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = 4 * (num_vertices + 1)  # the offsets alone
    if needed > memory:
        raise FileFormatError(
            f"{path}, {place}: {num_vertices} vertices need {needed / 2**30:,.0f} GiB for their offsets alone; "
            f"this machine has {memory / 2**30:,.0f} GiB"
        )


def check_num_edges(path: str, place: str, num_edges: int, bytes_per_edge: int, file_bytes: int | None) -> None:
    """Refuse, before anything is read, more edges than the file has room for."""
    if file_bytes is not None and num_edges * bytes_per_edge > file_bytes + 1:
        raise FileFormatError(f"{path}, {place}: {num_edges} edges cannot be in a file of {file_bytes} bytes")
