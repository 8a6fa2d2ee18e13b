# SPDX-License-Identifier: Apache-2.0
"""Vertices by the names they have in a file: a user gives and gets those, never shoal's own numbering.

A graph without labels names its vertices 0 to n - 1.  "None" (an unreachable vertex's parent) is -1 among whole
numbers and null among strings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import ArgumentError, FileFormatError
from shoal.graph import Graph
from shoal.labels import is_numbered, labels_as_arrow


def find_vertices(graph: Graph, argument: str, names: list[str] | None) -> Any:
    """Return the vertices that an option names: None for none, one for one, a list for several."""
    if not names:
        return None
    vertices = [_find_vertex(graph, argument, name) for name in names]
    return vertices[0] if len(vertices) == 1 else vertices


def _find_vertex(graph: Graph, argument: str, name: str) -> int:
    try:
        return graph.vertex(int(name) if is_numbered(graph.labels) else name)
    except ValueError:
        raise ArgumentError(f"{argument}={name!r} is not a vertex of the graph; allowed: {_allowed(graph)}") from None


def _allowed(graph: Graph) -> str:
    if graph.num_vertices == 0:
        return "none, the graph has no vertices"
    if graph.labels is None:
        return f"whole numbers from 0 to {graph.num_vertices - 1}"
    some = ", ".join(str(graph.label_of(v)) for v in range(min(graph.num_vertices, 3)))
    return f"the file's {graph.num_vertices} ids: {some}" + (", ..." if graph.num_vertices > 3 else "")


def vertices_of(graph: Graph, names: Any, place: str) -> np.ndarray:
    """Return the vertices with the given names, the opposite of `names_of`; ``place`` says where they were read."""
    vertices = _number_strings(graph, names) if not is_numbered(graph.labels) else _number_numbers(graph, names, place)
    unknown = np.flatnonzero(vertices == _UNKNOWN)
    if len(unknown):
        raise FileFormatError(
            f"{place}, row {unknown[0]}: {names[int(unknown[0])]} is not a vertex of the graph; "
            f"allowed: {_allowed(graph)}"
        )
    return vertices


_UNKNOWN = -2


def _number_numbers(graph: Graph, names: Any, place: str) -> np.ndarray:
    values = np.asarray(names)
    if values.dtype.kind not in "iu":
        raise FileFormatError(f"{place}: holds {values.dtype}, but the vertices of the graph are whole numbers")
    values = values.astype(np.int64)
    if graph.labels is None:
        return np.where((values >= -1) & (values < graph.num_vertices), values, _UNKNOWN)
    labels = np.asarray(graph.labels)
    order = np.argsort(labels, kind="stable")
    found = order[np.minimum(np.searchsorted(labels[order], values), max(len(order) - 1, 0))] if len(order) else values
    is_known = labels[found] == values if len(order) else np.zeros(len(values), bool)
    return np.where(is_known, found, np.where(values == -1, -1, _UNKNOWN))


def _number_strings(graph: Graph, names: Any) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = pa.array(names).cast(pa.large_string())
    found = pc.index_in(array, value_set=labels_as_arrow(graph.labels), skip_nulls=True)
    vertices = found.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)
    is_none = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(is_none, -1, vertices)
