# SPDX-License-Identifier: Apache-2.0
"""Tables of edges in Parquet and Arrow (Feather) files: a row for each edge.

Columns are ``src``, ``dst`` and perhaps ``weight``, or what the caller names.  Ids are integers or strings and become
labels as in an edge list.  What rows cannot say, direction and number of vertices, stands in the file's metadata.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from shoal.errors import FileFormatError, GraphError
from shoal.graph import Graph
from shoal.interop.arrow_columns import DIRECTED, NUM_VERTICES, edge_rows, edge_schema
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.assembly import check_num_vertices, graph_from_rows
from shoal.io.columns import choose_columns
from shoal.io.edge_stream import BATCH_ROWS, EdgeStream
from shoal.io.fields import is_count
from shoal.io.options import ReadOptions


def matches(start: bytes) -> bool:
    """Say whether a file begins as a Parquet or an Arrow file does."""
    return start.startswith((b"PAR1", b"ARROW1\0\0"))


def read(path: str, options: ReadOptions) -> Graph:
    """Read only the columns that are needed."""
    all_names, metadata = _attempt(path, _open_schema, path)
    names = _chosen_columns(path, all_names, options)
    table = _attempt(path, _read_columns, path, names)
    try:
        rows = edge_rows(path, table, names, has_ids=options.num_vertices is not None)
    except GraphError as error:
        raise FileFormatError(str(error)) from error
    num_vertices = _declared_vertices(path, metadata, options, bool(rows.src_labels))
    return graph_from_rows(path, rows, options, num_vertices=num_vertices, directed=metadata.get(DIRECTED) == b"1")


def _chosen_columns(path: str, all_names: list[str], options: ReadOptions) -> list[str]:
    return [all_names[i] for i in choose_columns(path, all_names, len(all_names), options) if i >= 0]


def stream(path: str, options: ReadOptions) -> EdgeStream:
    """Read batch by batch; ids are whole numbers."""
    all_names, metadata = _attempt(path, _open_schema, path)
    names = _chosen_columns(path, all_names, options)
    num_vertices = _declared_vertices(path, metadata, options, has_labels=False)

    def batches() -> Iterator[EdgeRows]:
        tables = _stream_tables(path, names)
        while (table := _attempt(path, next, tables, None)) is not None:
            try:
                yield edge_rows(path, table, names, has_ids=True)
            except GraphError as error:
                raise FileFormatError(str(error)) from error

    is_directed = metadata.get(DIRECTED) == b"1" if options.directed is None else options.directed
    return EdgeStream(path, is_directed, num_vertices, True, batches)


def _stream_tables(path: str, names: list[str]) -> Iterator[Any]:
    """Yield the columns of so many rows, read and not mapped: pages of a mapped file would count as ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _is_parquet(path):
        with pq.ParquetFile(path, buffer_size=BATCH_ROWS) as file:
            yield file.schema_arrow.empty_table().select(names)
            for group in range(file.num_row_groups):  # one by one: a reader of all keeps what it has read
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names):
                    yield pa.Table.from_batches([batch])
    else:
        with pa.OSFile(path) as content, pa.ipc.open_file(content) as batches:
            yield batches.schema.empty_table().select(names)
            for number in range(batches.num_record_batches):
                table = pa.Table.from_batches([batches.get_batch(number)]).select(names)
                table.validate(full=True)
                yield table


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
        table = pq.read_table(path, columns=names)
    else:
        table = feather.read_table(path, columns=names, memory_map=True)
    table.validate(full=True)  # arrays are in an Arrow file as they are, offsets of strings too; text may be no UTF-8
    return table


def _declared_vertices(path: str, metadata: dict[bytes, bytes], options: ReadOptions, has_labels: bool) -> int | None:
    declared = metadata.get(NUM_VERTICES)
    if options.num_vertices is not None or declared is None or has_labels:
        return options.num_vertices
    if not is_count(declared):
        raise FileFormatError(f"{path}, metadata {NUM_VERTICES.decode()}: {declared!r} is not a number of vertices")
    check_num_vertices(path, f"metadata {NUM_VERTICES.decode()}", int(declared))
    return int(declared)


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write a row group (Arrow: a record batch) for each batch of edges; an undirected edge once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from shoal.io.edge_batches import edge_batches, warn_of_lost_vertices
    from shoal.io.files import replacing
    from shoal.labels import labels_as_arrow

    labels = labels_as_arrow(graph.labels)
    if labels is not None:
        warn_of_lost_vertices(graph, path)
    schema = edge_schema(graph, labels)
    is_arrow = os.path.splitext(path.lower())[1] in (".arrow", ".feather")
    with replacing(path) as temporary:
        open_writer = pa.ipc.new_file if is_arrow else pq.ParquetWriter
        with open_writer(temporary, schema) as writer:
            for src, dst, weights in edge_batches(graph):
                sides = [pa.array(side) if labels is None else labels.take(pa.array(side)) for side in (src, dst)]
                columns = sides if weights is None else [*sides, pa.array(weights)]
                writer.write_batch(pa.record_batch(columns, schema=schema))
