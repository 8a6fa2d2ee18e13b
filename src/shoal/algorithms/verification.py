# SPDX-License-Identifier: Apache-2.0
"""What the verifiers of results share: edges in chunks, rows of a batch, the failing check.

A verifier never runs the algorithm it verifies.  It states properties that only a right result has, walks the stored
edges in chunks (so its memory is a few arrays over vertices plus one chunk, whatever the graph's size), and raises
`ValidationError` naming the first property that fails and the vertex at which it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.arrays import on_host
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph

# 4 M edges keep the temporaries of one chunk under 200 MB while NumPy's cost per call stays far below 1 %.
EDGES_PER_CHUNK = 2**22


class EdgeChunk(NamedTuple):
    """Consecutive stored edges; `weight` is None in an unweighted graph."""

    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray | None


def edge_chunks(graph: Graph, size: int = EDGES_PER_CHUNK) -> Iterator[EdgeChunk]:
    """Yield every stored edge once, in storage order, at most ``size`` at a time."""
    for start in range(0, graph.num_edges, size):
        stop = min(start + size, graph.num_edges)
        first = int(np.searchsorted(graph.indptr, start, side="right")) - 1
        last = int(np.searchsorted(graph.indptr, stop, side="left"))
        bounds = np.clip(graph.indptr[first : last + 1], start, stop)
        src = np.repeat(np.arange(first, last, dtype=graph.indices.dtype), np.diff(bounds))
        weight = None if graph.weights is None else graph.weights[start:stop]
        yield EdgeChunk(src, graph.indices[start:stop], weight)


def check_all(holds: np.ndarray, describe: Callable[[int], str]) -> None:
    """Raise ValidationError with ``describe(i)`` for the first position ``i`` at which ``holds`` is false."""
    if not holds.all():
        raise ValidationError(describe(int(np.argmin(holds))))


def check_array(name: str, values: Any, length: int, kinds: str) -> np.ndarray:
    """Return ``values`` as a vector of ``length`` whose dtype is of one of the ``kinds``: "i" integer, "f" float.

    What is on a GPU is copied to the host, where all is verified.
    """
    array = np.asarray(on_host(values))
    if array.shape != (length,):
        raise ValidationError(f"{name} has shape {array.shape}; it must have one value for each of {length} vertices")
    if array.dtype.kind not in kinds:
        words = " or ".join({"i": "signed integers", "f": "floating-point numbers"}[kind] for kind in kinds)
        raise ValidationError(f"{name} has dtype {array.dtype}; it must hold {words}")
    return array


def check_parents(parent: np.ndarray, reached: np.ndarray, source: int) -> None:
    """Check that the source is its own parent, other reached vertices have another one, unreached ones have -1."""
    num_vertices = len(parent)
    if parent[source] != source:
        raise ValidationError(f"parent[{source}]={parent[source]}, but the source {source} must be its own parent")
    check_all(
        (parent >= -1) & (parent < num_vertices),
        lambda v: f"parent[{v}]={parent[v]} is no vertex; it must be -1 or from 0 to {num_vertices - 1}",
    )
    check_all(
        (parent >= 0) == reached,
        lambda v: f"parent[{v}]={parent[v]}, but vertex {v} is {'reached' if reached[v] else 'unreachable'}",
    )
    check_all(
        reached[parent] | ~reached, lambda v: f"parent[{v}]={parent[v]}, but vertex {parent[v]} is itself unreachable"
    )


def verify_rows(source: Any, distance: Any, parent: Any, verify_row: Callable[[int, Any, Any], None]) -> None:
    """Call ``verify_row(source, distances, parents)`` for one source, or for each row of a batch of sources."""
    sources = np.asarray(source)
    if sources.ndim == 0:
        verify_row(int(sources), distance, parent)
        return
    if len(sources) != len(distance) or (parent is not None and len(parent) != len(sources)):
        raise ValidationError(f"distance has {len(distance)} rows, but there are {len(sources)} sources")
    for row, vertex in enumerate(sources.tolist()):
        try:
            verify_row(vertex, distance[row], None if parent is None else parent[row])
        except ValidationError as error:
            raise ValidationError(f"row {row}, source {vertex}: {error}") from None
