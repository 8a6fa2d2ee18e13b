# SPDX-License-Identifier: Apache-2.0
"""Results as files: a table with the column ``vertex`` and one for each array, as Parquet, CSV or ``.npz`` by suffix.

A result about edges has ``src`` and ``dst`` in place of ``vertex``.  Columns that hold vertices (these, ``vertex``,
``parent``, ``label``) have the graph file's own ids.  A file appears only when it is complete.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.commands.vertex_names import vertices_of
from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.files import check_readable, check_writable
from shoal.labels import is_numbered
from shoal.results import Result, holds_vertices
from shoal.tables import suffix_of, write_columns


def check_output(path: str | None) -> None:
    """Refuse, before anything is computed, a path that could not be written in the end."""
    if path is not None:
        suffix_of(path, "output")
        check_writable(path, "output")


def write_result(result: Result, path: str) -> None:
    """Write a result's table, with the file's own ids."""
    write_columns(result.named_columns(), path, suffix_of(path, "output"))


class Column(NamedTuple):
    """A column that a result should have; whole numbers in one of fractions are read as such."""

    name: str
    is_fraction: bool = False
    is_optional: bool = False


def read_result(path: str, graph: Graph, wanted: list[Column]) -> dict[str, np.ndarray]:
    """Return the wanted columns of a result in the order of the graph's vertices, ids turned into vertices."""
    suffix = suffix_of(path, "result")
    check_readable(path)
    columns = _read_columns(path, suffix, graph)
    present = [column for column in wanted if column.name in columns or not column.is_optional]
    for name in ("vertex", *(column.name for column in present)):
        if name not in columns:
            raise FileFormatError(f"{path}: has no column {name!r}; it has: {', '.join(columns) or 'none'}")
    order = _order(graph, columns["vertex"], path)
    result = {}
    for column in present:
        values = _values_of(column, columns[column.name], graph, f"{path}, column {column.name!r}")
        result[column.name] = np.empty_like(values)
        result[column.name][order] = values
    return result


def read_edges(path: str, graph: Graph, wanted: list[Column]) -> dict[str, np.ndarray]:
    """Return the wanted columns of a result about edges, in its own order, ids turned into vertices."""
    suffix = suffix_of(path, "result")
    check_readable(path)
    columns = _read_columns(path, suffix, graph)
    present = [column for column in wanted if column.name in columns or not column.is_optional]
    for column in present:
        if column.name not in columns:
            raise FileFormatError(f"{path}: has no column {column.name!r}; it has: {', '.join(columns) or 'none'}")
    return {
        column.name: _values_of(column, columns[column.name], graph, f"{path}, column {column.name!r}")
        for column in present
    }


def _values_of(column: Column, values: Any, graph: Graph, place: str) -> np.ndarray:
    if holds_vertices(column.name):
        return vertices_of(graph, values, place)
    array = np.asarray(values)
    if array.dtype.kind not in "ifb":
        raise FileFormatError(f"{place}: holds {array.dtype}; it must hold numbers or flags")
    return array.astype(np.float64) if column.is_fraction and array.dtype.kind == "i" else array


def _read_columns(path: str, suffix: str, graph: Graph) -> dict[str, Any]:
    read = {".parquet": _read_parquet, ".csv": _read_csv, ".npz": _read_npz}[suffix]
    try:
        return read(path, graph)
    except Exception as error:  # pyarrow, zipfile and NumPy raise a dozen different ones for damaged files
        raise FileFormatError(f"{path}: cannot be read as a result: {error or type(error).__name__}") from error


def _read_parquet(path: str, graph: Graph) -> dict[str, Any]:
    import pyarrow.parquet

    return _columns_of(pyarrow.parquet.read_table(path))


def _read_csv(path: str, graph: Graph) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    with open(path, encoding="utf-8") as file:
        header = [name.strip().strip('"') for name in file.readline().split(",")]
    types = {} if is_numbered(graph.labels) else {name: pa.string() for name in header if holds_vertices(name)}
    options = csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True,
                                 quoted_strings_can_be_null=False)  # fmt: skip
    return _columns_of(csv.read_csv(path, convert_options=options))


def _columns_of(table: Any) -> dict[str, Any]:
    """Return Arrow's columns: numbers as NumPy arrays, strings as they are."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        whole = column.combine_chunks()
        is_text = pa.types.is_string(whole.type) or pa.types.is_large_string(whole.type)
        columns[name] = whole if is_text else whole.to_numpy(zero_copy_only=False)
    return columns


def _read_npz(path: str, graph: Graph) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    return {name: _null_where_empty(values) if values.dtype.kind == "U" else values for name, values in columns.items()}


def _null_where_empty(values: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(values, mask=values == "")


def _order(graph: Graph, names: Any, path: str) -> np.ndarray:
    """Return the vertex of each row; every vertex must have exactly one."""
    vertices = vertices_of(graph, names, f"{path}, column 'vertex'")
    counts = np.bincount(vertices[vertices >= 0], minlength=graph.num_vertices)
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        vertex = int(wrong[0])
        raise FileFormatError(
            f"{path}: has {counts[vertex]} rows for vertex {graph.label_of(vertex)}; it must have one for each vertex"
        )
    if len(vertices) != graph.num_vertices:
        raise FileFormatError(f"{path}: has {len(vertices)} rows for {graph.num_vertices} vertices")
    return vertices
