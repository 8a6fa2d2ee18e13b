# SPDX-License-Identifier: Apache-2.0
"""Edges as columns of an Arrow table: two of ids, integers or strings, and perhaps one of weights.

What rows cannot say, direction and number of vertices, stands in the metadata of the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import GraphError
from shoal.interop.vertex_ids import EdgeRows

if TYPE_CHECKING:
    from shoal.graph import Graph

DIRECTED, NUM_VERTICES = b"shoal.directed", b"shoal.num_vertices"


def edge_rows(place: str, table: Any, names: list[str], *, has_ids: bool, copies: bool = True) -> EdgeRows:
    """Return the edges of a table, whose columns may lie anywhere, in a file that is mapped too.

    Parameters
    ----------
    place : what the table is called in an error
    names : the columns of sources and destinations, and perhaps that of weights
    has_ids : integers are ids, and nothing else will do; otherwise they are names
    copies : whether ids are copied, as narrow as they fit, so that others may be written over them
    """
    import pyarrow as pa

    columns = [table.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            raise GraphError(f"{place}, column {name!r}: has {column.null_count} missing values")
    weights = _weights(place, names[2], columns[2]) if len(columns) > 2 else None
    if table.num_rows == 0:  # columns without values may have any type
        return EdgeRows(np.empty(0, np.int32), np.empty(0, np.int32), weights, -1)
    if all(pa.types.is_integer(column.type) for column in columns[:2]):
        largest = max(_largest_id(place, *side) for side in zip(names, columns[:2], strict=False))
        dtype = np.int32 if largest < 2**31 else np.int64
        src, dst = (_copy(column, dtype) if copies else _share(column) for column in columns[:2])
        return EdgeRows(src, dst, weights, largest, num_rows=table.num_rows, may_be_overwritten=copies)
    if has_ids:
        name, kind = next((n, c.type) for n, c in zip(names, columns, strict=True) if not pa.types.is_integer(c.type))
        raise GraphError(f"{place}, column {name!r}: has the type {kind}; with num_vertices ids must be integers")
    src_labels, dst_labels = (_labels(place, *side) for side in zip(names, columns[:2], strict=False))
    empty = np.empty(0, np.int32)
    return EdgeRows(empty, empty, weights, -1, src_labels, dst_labels, table.num_rows)


def _copy(column: Any, dtype: Any) -> np.ndarray:
    """Copy a column part by part."""
    array = np.empty(len(column), dtype)
    start = 0
    for chunk in column.chunks:
        array[start : start + len(chunk)] = chunk.to_numpy()
        start += len(chunk)
    return array


def _share(column: Any) -> np.ndarray:
    """Return the ids where they are, unless they come in several parts or in a type that ids do not have."""
    array = column.to_numpy()
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _largest_id(place: str, name: str, column: Any) -> int:
    """Return the largest id of a column of integers, -1 if it is empty; refuse what is no id."""
    import pyarrow.compute as pc

    if len(column) == 0:
        return -1
    limits = pc.min_max(column).as_py()
    if limits["min"] < 0:
        row = pc.index(pc.less(column, 0), True).as_py()
        value = column[row].as_py()
        raise GraphError(f"{place}, column {name!r}, row {row}: {value} is not a vertex id; ids must not be negative")
    if limits["max"] >= 2**63:
        raise GraphError(f"{place}, column {name!r}: {limits['max']} is too large for a vertex id")
    return limits["max"]


def _labels(place: str, name: str, column: Any) -> list[Any]:
    """Return a column of strings, or of integers beside one of strings, as dictionary-encoded parts."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (pa.types.is_integer(kind) or is_text):
        raise GraphError(f"{place}, column {name!r}: has the type {column.type}; ids must be integers or strings")
    if kind != column.type:  # Polars has views of strings in its dictionaries, which Arrow turns into no plain strings
        column = column.cast(pa.dictionary(column.type.index_type, pa.large_string()))
    return column.cast(pa.large_string()).dictionary_encode().chunks


def _weights(place: str, name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if len(column) and not is_number:
        raise GraphError(f"{place}, column {name!r}: has the type {kind}; weights must be numbers")
    return column.to_numpy()


def edge_schema(graph: Graph, labels: Any) -> Any:
    """Return the schema of a graph's edges; ``labels`` as `shoal.labels.labels_as_arrow` has them."""
    import pyarrow as pa

    id_type = pa.from_numpy_dtype(graph.vertex_dtype) if labels is None else labels.type
    fields = [("src", id_type), ("dst", id_type)]
    if graph.weights is not None:
        fields.append(("weight", pa.from_numpy_dtype(graph.weights.dtype)))
    metadata = {DIRECTED: b"1" if graph.is_directed else b"0"}
    if labels is None:
        metadata[NUM_VERTICES] = str(graph.num_vertices).encode()
    return pa.schema(fields, metadata=metadata)
