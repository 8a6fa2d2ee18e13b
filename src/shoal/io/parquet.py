# SPDX-License-Identifier: Apache-2.0
"""Tables of edges in Parquet and Arrow (Feather) files: a row for each edge.

Columns are ``src``, ``dst`` and perhaps ``weight``, or what the caller names.  Ids are integers or strings and become
labels as in an edge list.  What rows cannot say, direction and number of vertices, stands in the file's metadata.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.assembly import check_num_vertices, graph_from_rows
from shoal.io.columns import choose_columns
from shoal.io.options import ReadOptions
from shoal.io.vertex_ids import EdgeRows

_DIRECTED, _NUM_VERTICES = b"shoal.directed", b"shoal.num_vertices"


def matches(start: bytes) -> bool:
    """Say whether a file begins as a Parquet or an Arrow file does."""
    return start.startswith((b"PAR1", b"ARROW1\0\0"))


def read(path: str, options: ReadOptions) -> Graph:
    """Read only the columns that are needed."""
    all_names, metadata = _attempt(path, _open_schema, path)
    columns = choose_columns(path, all_names, len(all_names), options)
    names = [all_names[i] for i in columns if i >= 0]
    rows = _rows(path, _attempt(path, _read_columns, path, names), names, options)
    num_vertices = _declared_vertices(path, metadata, options, bool(rows.src_labels))
    return graph_from_rows(path, rows, options, num_vertices=num_vertices, directed=metadata.get(_DIRECTED) == b"1")


def _attempt(path: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of pyarrow; what it cannot read is wrong with the file."""
    try:
        return function(*args)
    except Exception as error:  # pyarrow raises a dozen different ones for damaged files
        raise FileFormatError(f"{path}: cannot be read as a table: {' '.join(str(error).split())}") from error


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _open_schema(path: str) -> tuple[list[str], dict[bytes, bytes]]:
    """Return the names of all columns and the metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _is_parquet(path):
        schema = pq.read_schema(path)
    else:
        with pa.memory_map(path) as file:
            schema = pa.ipc.open_file(file).schema
    return schema.names, schema.metadata or {}


def _read_columns(path: str, names: list[str]) -> Any:
    import pyarrow.parquet as pq
    from pyarrow import feather

    if _is_parquet(path):
        return pq.read_table(path, columns=names)
    table = feather.read_table(path, columns=names, memory_map=True)
    table.validate(full=True)  # its arrays are in the file as they are, offsets of strings too
    return table


def _declared_vertices(path: str, metadata: dict[bytes, bytes], options: ReadOptions, has_labels: bool) -> int | None:
    declared = metadata.get(_NUM_VERTICES)
    if options.num_vertices is not None or declared is None or has_labels:
        return options.num_vertices
    if not declared.isdigit():
        raise FileFormatError(f"{path}, metadata {_NUM_VERTICES.decode()}: {declared!r} is not a number of vertices")
    check_num_vertices(path, f"metadata {_NUM_VERTICES.decode()}", int(declared))
    return int(declared)


def _rows(path: str, table: Any, names: list[str], options: ReadOptions) -> EdgeRows:
    import pyarrow as pa

    columns = [table.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise FileFormatError(f"{path}, column {name!r}: has {column.null_count} missing values")
    weights = _weights(path, names[2], columns[2]) if len(columns) > 2 else None
    if all(pa.types.is_integer(column.type) for column in columns[:2]):
        largest = max(_largest_id(path, *side) for side in zip(names, columns[:2], strict=False))
        dtype = np.int32 if largest < 2**31 else np.int64
        src, dst = (_copy(column, dtype) for column in columns[:2])
        return EdgeRows(src, dst, weights, largest, num_rows=table.num_rows)
    if options.num_vertices is not None:
        name, kind = next((n, c.type) for n, c in zip(names, columns, strict=True) if not pa.types.is_integer(c.type))
        raise FileFormatError(f"{path}, column {name!r}: has the type {kind}; with num_vertices ids must be integers")
    src_labels, dst_labels = (_labels(path, *side) for side in zip(names, columns[:2], strict=False))
    empty = np.empty(0, np.int32)
    return EdgeRows(empty, empty, weights, -1, src_labels, dst_labels, table.num_rows)


def _copy(column: Any, dtype: Any) -> np.ndarray:
    """Copy a column part by part: ids may be overwritten, and the column may be mapped from the file."""
    array = np.empty(len(column), dtype)
    start = 0
    for chunk in column.chunks:
        array[start : start + len(chunk)] = chunk.to_numpy()
        start += len(chunk)
    return array


def _largest_id(path: str, name: str, column: Any) -> int:
    """Return the largest id of a column of integers, -1 if it is empty; refuse what is no id."""
    import pyarrow.compute as pc

    if len(column) == 0:
        return -1
    limits = pc.min_max(column).as_py()
    if limits["min"] < 0:
        row = pc.index(pc.less(column, 0), True).as_py()
        value = column[row].as_py()
        raise FileFormatError(
            f"{path}, column {name!r}, row {row}: {value} is not a vertex id; ids must not be negative"
        )
    if limits["max"] >= 2**63:
        raise FileFormatError(f"{path}, column {name!r}: {limits['max']} is too large for a vertex id")
    return limits["max"]


def _labels(path: str, name: str, column: Any) -> list[Any]:
    """Return a column of strings, or of integers beside one of strings, as dictionary-encoded parts."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise FileFormatError(f"{path}, column {name!r}: has the type {column.type}; ids must be integers or strings")
    return column.cast(pa.large_string()).dictionary_encode().chunks


def _weights(path: str, name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise FileFormatError(f"{path}, column {name!r}: has the type {kind}; weights must be numbers")
    return column.to_numpy()


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write a row group (Arrow: a record batch) for each batch of edges; an undirected edge once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from shoal.io.edge_batches import edge_batches, warn_of_lost_vertices
    from shoal.io.files import replacing
    from shoal.io.labels import labels_as_arrow

    labels = labels_as_arrow(graph.labels)
    if labels is not None:
        warn_of_lost_vertices(graph, path)
    schema = _schema(graph, labels)
    is_arrow = os.path.splitext(path.lower())[1] in (".arrow", ".feather")
    with replacing(path) as temporary:
        open_writer = pa.ipc.new_file if is_arrow else pq.ParquetWriter
        with open_writer(temporary, schema) as writer:
            for src, dst, weights in edge_batches(graph):
                sides = [pa.array(side) if labels is None else labels.take(pa.array(side)) for side in (src, dst)]
                columns = sides if weights is None else [*sides, pa.array(weights)]
                writer.write_batch(pa.record_batch(columns, schema=schema))


def _schema(graph: Graph, labels: Any) -> Any:
    import pyarrow as pa

    id_type = pa.from_numpy_dtype(graph.vertex_dtype) if labels is None else labels.type
    fields = [("src", id_type), ("dst", id_type)]
    if graph.weights is not None:
        fields.append(("weight", pa.from_numpy_dtype(graph.weights.dtype)))
    metadata = {_DIRECTED: b"1" if graph.is_directed else b"0"}
    if labels is None:
        metadata[_NUM_VERTICES] = str(graph.num_vertices).encode()
    return pa.schema(fields, metadata=metadata)
