# SPDX-License-Identifier: Apache-2.0
"""Verify a minimum spanning forest.

Its edges must be edges of the graph, each with the least weight that the graph has between its ends; they must have no
cycle and join what the graph joins.  And no edge of the graph may be lighter than the heaviest on the path that the
forest has between its ends: then no exchange makes it lighter.  That maximum is found by doubling: for every vertex the
ancestor 1, 2, 4, ... steps above it, and the heaviest edge on the way there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.verification import check_all, edge_chunks
from shoal.algorithms.verify_components import contract
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


def verify_forest(graph: Graph, src: Any, dst: Any, weight: Any = None) -> None:
    """Raise ValidationError unless the edges from ``src`` to ``dst`` are a minimum spanning forest of ``graph``."""
    src, dst = _check_ends(graph, "src", src), _check_ends(graph, "dst", dst)
    if len(src) != len(dst) or (weight is not None and len(weight) != len(src)):
        raise ValidationError(f"src has {len(src)} values and dst {len(dst)}; they and weight must have as many")
    weights = np.ones(len(src)) if weight is None else np.asarray(weight, np.float64)
    _check_in_graph(graph, src, dst, weights)
    component = _check_spanning(graph, src, dst)
    paths = _Paths(graph.num_vertices, src, dst, weights, component)
    for chunk in edge_chunks(graph):
        is_first = chunk.src < chunk.dst  # of the two directions
        low, high = chunk.src[is_first], chunk.dst[is_first]
        own = np.ones(len(low)) if chunk.weight is None else chunk.weight[is_first]
        heaviest = paths.heaviest(low, high)
        check_all(
            own >= heaviest,
            lambda i, low=low, high=high, own=own, heaviest=heaviest: (
                f"edge {low[i]} -- {high[i]} of weight {own[i]} is lighter than the heaviest edge of the "
                f"forest between its ends, {heaviest[i]}"
            ),
        )


def _check_ends(graph: Graph, name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValidationError(f"{name} has shape {array.shape} and dtype {array.dtype}; it must be a list of vertices")
    check_all((array >= 0) & (array < graph.num_vertices), lambda i: f"{name}[{i}]={array[i]} is no vertex")
    return array.astype(np.int64)


def _keys(num_vertices: int, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Return a number for each pair of ends, whichever comes first."""
    return np.minimum(src, dst).astype(np.int64) * num_vertices + np.maximum(src, dst)


def _check_in_graph(graph: Graph, src: np.ndarray, dst: np.ndarray, weights: np.ndarray) -> None:
    keys = _keys(graph.num_vertices, src, dst)
    order = np.argsort(keys)
    keys = keys[order]
    least = np.full(len(keys), np.inf)
    for chunk in edge_chunks(graph):
        found = _keys(graph.num_vertices, chunk.src, chunk.dst)
        place = np.searchsorted(keys, found)
        is_there = place < len(keys)
        is_there[is_there] = keys[place[is_there]] == found[is_there]
        own = np.ones(len(found)) if chunk.weight is None else chunk.weight
        np.minimum.at(least, place[is_there], own[is_there])
    least[order] = least.copy()
    check_all(np.isfinite(least), lambda i: f"{src[i]} -- {dst[i]} is no edge of the graph, or is listed twice")
    check_all(
        least == weights, lambda i: f"edge {src[i]} -- {dst[i]} has weight {least[i]} in the graph, not {weights[i]}"
    )


def _check_spanning(graph: Graph, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Check that the edges have no cycle and join as much as the graph's; return each vertex's tree."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (graph.num_vertices, graph.num_vertices)
    if graph.num_vertices == 0:
        return np.empty(0, np.int64)
    num_trees, tree = connected_components(coo_array((np.ones(len(src)), (src, dst)), shape=shape), directed=False)
    if num_trees != graph.num_vertices - len(src):
        raise ValidationError(f"{len(src)} edges leave {num_trees} trees of {graph.num_vertices} vertices: they have a "
                              "cycle")  # fmt: skip
    _, num_components = contract(graph)
    if num_trees != num_components:
        raise ValidationError(f"the forest has {num_trees} trees, but the graph {num_components} components")
    return tree


class _Paths:
    """The trees with ancestors at distances that are powers of two, hung from one vertex above all roots."""

    def __init__(
        self, num_vertices: int, src: np.ndarray, dst: np.ndarray, weights: np.ndarray, tree: np.ndarray
    ) -> None:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order

        _, roots = np.unique(tree, return_index=True)
        ends = np.concatenate([src, np.full(len(roots), num_vertices)]), np.concatenate([dst, roots])
        size = num_vertices + 1
        matrix = coo_array((np.ones(len(ends[0])), ends), shape=(size, size)).tocsr()
        _, above = breadth_first_order(matrix, num_vertices, directed=False)
        above = above.astype(np.int64)
        above[num_vertices] = num_vertices
        heaviest = np.full(size, -np.inf)
        is_below = above[:num_vertices] < num_vertices
        vertex = np.flatnonzero(is_below)
        keys = _keys(num_vertices, src, dst)
        order = np.argsort(keys)
        place = np.searchsorted(keys[order], _keys(num_vertices, vertex, above[vertex]))
        heaviest[vertex] = weights[order][place]
        self.above, self.on_the_way, self.depth = [above], [heaviest], (above != np.arange(size)).astype(np.int64)
        while (self.above[-1] != num_vertices).any():
            half, way = self.above[-1], self.on_the_way[-1]
            self.depth += self.depth[half]
            self.above.append(half[half])
            self.on_the_way.append(np.maximum(way, way[half]))

    def heaviest(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return the heaviest weight between the ends of each pair, which are in one tree."""
        is_deeper = self.depth[src] >= self.depth[dst]
        low, high = np.where(is_deeper, src, dst), np.where(is_deeper, dst, src)
        found = np.full(len(src), -np.inf)
        steps = self.depth[low] - self.depth[high]
        for k, (above, way) in enumerate(zip(self.above, self.on_the_way, strict=True)):
            goes = (steps >> k) & 1 == 1
            found[goes] = np.maximum(found[goes], way[low[goes]])
            low[goes] = above[low[goes]]
        for above, way in zip(self.above[::-1], self.on_the_way[::-1], strict=True):
            goes = above[low] != above[high]
            found[goes] = np.maximum(found[goes], np.maximum(way[low[goes]], way[high[goes]]))
            low[goes], high[goes] = above[low[goes]], above[high[goes]]
        goes = low != high
        last = self.on_the_way[0]
        found[goes] = np.maximum(found[goes], np.maximum(last[low[goes]], last[high[goes]]))
        return found
