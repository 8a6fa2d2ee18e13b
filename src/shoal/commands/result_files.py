# SPDX-License-Identifier: Apache-2.0
"""Results as files: a table with the column ``vertex`` and one for each array, as Parquet, CSV or ``.npz`` by suffix.

Columns that hold vertices (``vertex``, ``parent``, ``label``) have the graph file's own ids.  A file appears only when
it is complete.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np

from shoal.commands.vertex_names import is_numbered, names_of, vertices_of
from shoal.errors import ArgumentError, FileFormatError
from shoal.graph import Graph
from shoal.io.files import check_readable, replacing
from shoal.results import Result

SUFFIXES = (".parquet", ".csv", ".npz")
_VERTEX_COLUMN = re.compile(r"(vertex|label|parent(_\d+)?)")


def check_output(path: str | None) -> None:
    """Refuse, before anything is computed, a path that could not be written in the end."""
    if path is None:
        return
    _suffix(path, "output")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ArgumentError(f"output={path!r} is in a folder that does not exist; make it first")
    if os.path.isdir(path):
        raise ArgumentError(f"output={path!r} is a directory; it must be a file")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"output={path!r} is in a folder that may not be written to; choose another")


def _suffix(path: str, argument: str) -> str:
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(f"{argument}={path!r} has no known suffix; allowed: {', '.join(SUFFIXES)}")
    return suffix


def write_result(result: Result, path: str) -> None:
    """Write a result's table, with the file's own ids."""
    graph = result.graph
    columns = result.table() | {"vertex": np.arange(graph.num_vertices)}
    named = {
        name: names_of(graph, values) if _VERTEX_COLUMN.fullmatch(name) else values for name, values in columns.items()
    }
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".npz": _write_npz}[_suffix(path, "output")]
    with replacing(path) as temporary:
        write(named, temporary)


def _write_parquet(columns: dict[str, Any], path: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table(columns), path)


def _write_csv(columns: dict[str, Any], path: str) -> None:
    import pyarrow as pa
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(columns), path)


def _write_npz(columns: dict[str, Any], path: str) -> None:
    arrays: dict[str, Any] = {
        n: v if isinstance(v, np.ndarray) else np.array(v.fill_null(""), np.str_) for n, v in columns.items()
    }
    with open(path, "wb") as file:
        np.savez(file, **arrays)


class Column(NamedTuple):
    """A column that a result should have; whole numbers in one of fractions are read as such."""

    name: str
    is_fraction: bool = False
    is_optional: bool = False


def read_result(path: str, graph: Graph, wanted: list[Column]) -> dict[str, np.ndarray]:
    """Return the wanted columns of a result in the order of the graph's vertices, ids turned into vertices."""
    suffix = _suffix(path, "result")
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


def _values_of(column: Column, values: Any, graph: Graph, place: str) -> np.ndarray:
    if _VERTEX_COLUMN.fullmatch(column.name):
        return vertices_of(graph, values, place)
    array = np.asarray(values)
    if array.dtype.kind not in "if":
        raise FileFormatError(f"{place}: holds {array.dtype}; it must hold numbers")
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
    types = {} if is_numbered(graph) else {name: pa.string() for name in header if _VERTEX_COLUMN.fullmatch(name)}
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
