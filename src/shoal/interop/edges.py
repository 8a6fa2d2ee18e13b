# SPDX-License-Identifier: Apache-2.0
"""What goes between shoal and other libraries: edges as arrays, each undirected one once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import GraphError

if TYPE_CHECKING:
    from shoal.graph import Graph

#: What an edge of a library of Python objects may have as its weight.
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


@dataclass(slots=True)
class EdgeArrays:
    """A graph of another library: what `Graph.from_edges` takes."""

    src: Any
    dst: Any
    weights: Any
    num_vertices: int | None
    is_directed: bool
    labels: Any = None


class EndsAndWeights(NamedTuple):
    """The edges of a graph as rows."""

    src: np.ndarray
    dst: np.ndarray
    weights: np.ndarray | None


def stored_edges(graph: Graph) -> EndsAndWeights:
    """Return all edges as they are stored, those of an undirected graph in both directions; two arrays are shared."""
    src = np.repeat(np.arange(graph.num_vertices, dtype=graph.vertex_dtype), graph.degree)
    return EndsAndWeights(src, graph.indices, graph.weights)


def single_edges(graph: Graph) -> EndsAndWeights:
    """Return every edge once, an undirected one from its smaller id."""
    edges = stored_edges(graph)
    return edges if graph.is_directed else keep_one_direction(*edges)


def keep_one_direction(src: np.ndarray, dst: np.ndarray, weights: Any) -> EndsAndWeights:
    """Return, of edges in both directions with loops once, those from the smaller id."""
    keep = src <= dst
    return EndsAndWeights(src[keep], dst[keep], None if weights is None else weights[keep])


def count_isolated(graph: Graph) -> int:
    """Count the vertices without edges, which rows of edges have no place for."""
    is_isolated = graph.degree == 0
    if graph.is_directed:
        is_isolated = is_isolated & (graph.reverse().degree == 0)
    return int(np.count_nonzero(is_isolated))


def has_parallel_edges(src: np.ndarray, dst: np.ndarray) -> bool:
    """Whether two of these edges have the same ends in the same order."""
    order = np.lexsort((dst, src))
    src, dst = src[order], dst[order]
    return bool(((src[1:] == src[:-1]) & (dst[1:] == dst[:-1])).any())


def edge_weights(values: list[Any], attribute: str, default: float | None, describe: Any) -> np.ndarray | None:
    """Return the numbers that an attribute has at every edge; None where no edge has it and it is only the usual name.

    ``describe`` names the edge at a position.
    """
    missing = values.count(None)
    if missing == len(values) and default is None and (attribute == "weight" or not values):
        return None
    if missing and default is None:
        where = describe(next(i for i, value in enumerate(values) if value is None))
        raise GraphError(
            f"edge {where} has no {attribute!r}, as {missing} of {len(values)} edges; every edge needs one, or give "
            "default= a number for those, or weight=None"
        )
    numbers = values if not missing else [default if value is None else value for value in values]
    array = _as_numbers(numbers)
    if array is None:
        position = next(k for k, value in enumerate(numbers) if not _fits(value))
        raise GraphError(
            f"edge {describe(position)} has {attribute!r}={numbers[position]!r}; it must be a number that float64 holds"
        )
    return array


def _as_numbers(values: list[Any]) -> np.ndarray | None:
    """Return numbers as an array, None if one is no number or would change."""
    if not all(issubclass(kind, _NUMBERS) for kind in set(map(type, values))):
        return None
    array = np.array(values)
    if array.dtype.kind == "O":  # whole numbers of more than 64 bits
        try:
            array = array.astype(np.float64)
        except OverflowError:
            return None
    # Whole numbers among fractions are rounded without a word.
    is_rounded = array.dtype.kind == "f" and (np.abs(array) >= 2**53).any() and array.tolist() != values
    return None if is_rounded else array


def _fits(value: Any) -> bool:
    try:
        return isinstance(value, _NUMBERS) and float(value) == value
    except OverflowError:
        return False
