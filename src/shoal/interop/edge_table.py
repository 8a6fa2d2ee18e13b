# SPDX-License-Identifier: Apache-2.0
"""Tables of edges in memory: pandas, Polars, pyarrow, a dict of columns, or whatever gives Arrow's C stream.

Only the columns that are named are looked at, and they stay where they are if Arrow can point at them and the ids are
those of vertices already.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoal.errors import GraphError, check_integer
from shoal.interop.arrow_columns import DIRECTED, NUM_VERTICES, edge_rows, edge_schema
from shoal.interop.edges import EdgeArrays, count_isolated, single_edges
from shoal.interop.libraries import import_library, library_of
from shoal.interop.vertex_ids import number_vertices
from shoal.labels import labels_as_arrow

if TYPE_CHECKING:
    from shoal.graph import Graph


def read(table: Any, src: Any, dst: Any, weight: Any, directed: bool | None, num_vertices: int | None) -> EdgeArrays:
    """Return the edges in the rows of a table; None leaves direction and number of vertices to its metadata."""
    arrow = _select(table, {"src": src, "dst": dst, "weight": weight})
    declared = _declarations(table, arrow)
    is_directed = declared.get(DIRECTED) == b"1" if directed is None else bool(directed)
    if num_vertices is None and NUM_VERTICES in declared:
        num_vertices = int(declared[NUM_VERTICES])
    elif num_vertices is not None:
        num_vertices = check_integer("num_vertices", num_vertices, 0)
    rows = edge_rows("table", arrow, arrow.column_names, has_ids=num_vertices is not None, copies=False)
    if num_vertices is not None:
        return EdgeArrays(rows.src, rows.dst, rows.weights, num_vertices, is_directed)
    edges = number_vertices(rows)
    return EdgeArrays(edges.src, edges.dst, rows.weights, edges.num_vertices, is_directed, edges.labels)


def _select(table: Any, arguments: dict[str, Any]) -> Any:
    """Return the columns that are asked for as a pyarrow table."""
    import pyarrow as pa

    present = _column_names(table)
    wanted = {argument: name for argument, name in arguments.items() if argument != "weight" or name is not None}
    for argument, name in wanted.items():
        if present.count(name) != 1:
            count = "several columns" if name in present else "no column"
            shown = ", ".join(map(str, present)) or "none"
            raise GraphError(f"{argument}={name!r}: the table has {count} of this name; it has: {shown}")
    names = list(wanted.values())
    if len(set(names)) != len(names):
        raise GraphError(f"{', '.join(f'{a}={n!r}' for a, n in wanted.items())}: columns must differ")
    try:
        columns = pa.table(_narrow(table, names))
        return columns.select([columns.column_names.index(str(name)) for name in names])
    except Exception as error:  # whatever pyarrow or the other library raises for data that Arrow cannot have
        raise GraphError(f"table cannot be read as Arrow columns: {' '.join(str(error).split())}") from error


def _column_names(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(table, "collect_schema"):  # a lazy frame would compute its columns
        return table.collect_schema().names()
    for name in ("column_names", "columns"):
        names = getattr(table, name, None)
        if names is not None:
            return list(names)
    if hasattr(table, "schema"):
        return list(table.schema.names)
    raise GraphError(
        f"table is a {type(table).__name__}; it must be a table of pandas, Polars or pyarrow, another that gives "
        "Arrow's C stream, or a dict of columns"
    )


def _narrow(table: Any, names: list[Any]) -> Any:
    """Leave out other columns before they are turned into Arrow's, where that costs something or can fail."""
    if isinstance(table, Mapping):
        return {str(name): table[name] for name in names}
    if library_of(table) == "pandas":
        return table[names]
    if library_of(table) == "polars":
        chosen = table.select(names)
        return chosen.collect() if hasattr(chosen, "collect") else chosen
    return table


def _declarations(table: Any, arrow: Any) -> Mapping[bytes, bytes]:
    """Return what `to_arrow` and `to_pandas` have written beside the columns."""
    attributes = getattr(table, "attrs", None)
    if isinstance(attributes, Mapping):
        return {str(name).encode(): str(value).encode() for name, value in attributes.items()}
    return arrow.schema.metadata or {}


def to_arrow(graph: Graph) -> Any:
    """Return a row for each edge, an undirected one once, with labels in the place of ids."""
    _warn_of_isolated(graph)
    return _rows(graph)


def to_pandas(graph: Graph) -> Any:
    """Return the same as a DataFrame; what Arrow has as metadata is in ``attrs``."""
    import_library("pandas", "to_pandas()")
    _warn_of_isolated(graph)
    table = _rows(graph)
    frame = table.to_pandas(split_blocks=True)
    frame.attrs.update({name.decode(): int(value) for name, value in table.schema.metadata.items()})
    return frame


def _rows(graph: Graph) -> Any:
    import pyarrow as pa

    labels = labels_as_arrow(graph.labels)
    src, dst, weights = single_edges(graph)
    sides = [pa.array(side) if labels is None else labels.take(pa.array(side)) for side in (src, dst)]
    columns = sides if weights is None else [*sides, pa.array(weights)]
    return pa.Table.from_arrays(columns, schema=edge_schema(graph, labels))


def _warn_of_isolated(graph: Graph) -> None:
    num_lost = 0 if graph.labels is None else count_isolated(graph)
    if num_lost:
        warnings.warn(f"a table of edges has no place for {num_lost} vertices without edges", stacklevel=4)
