# SPDX-License-Identifier: Apache-2.0
"""Verify a BFS result by the five rules of Graph500's specification (section "Validation").

1. The tree has no cycle: its root is the source, and every other reached vertex has a parent one level above it.
2. Every tree edge joins vertices whose levels differ by one.
3. Every edge of the graph leads at most one level down (in an undirected graph: levels differ by at most one).
4. The tree spans the component: an edge from a reached vertex leads to a reached vertex.
5. Every tree edge is an edge of the graph.

Without parents, rules 1, 2 and 5 become: every reached vertex has an edge from some vertex one level above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array, check_parents, edge_chunks, verify_rows
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


def verify_bfs(
    graph: Graph,
    source: Any,
    distance: np.ndarray,
    parent: np.ndarray | None = None,
    *,
    cutoff: int | None = None,
    targets: Any = None,
) -> None:
    """Raise ValidationError unless the arrays are a breadth-first search of ``graph`` from ``source``.

    Parameters
    ----------
    source
        One vertex, or a batch; then ``distance`` and ``parent`` have one row per source.
    parent
        None leaves the tree out of the verification.
    cutoff, targets
        As given to `shoal.bfs`: both let vertices stay unreached, beyond the cutoff or beyond the last level that the
        targets needed.
    """
    verify_rows(source, distance, parent, lambda s, d, p: _verify_row(graph, s, d, p, cutoff, targets))


def _verify_row(graph: Graph, source: int, distance: Any, parent: Any, cutoff: int | None, targets: Any) -> None:
    distance = check_array("distance", distance, graph.num_vertices, "i")
    _check_levels(distance, source, cutoff)
    if parent is not None:
        parent = check_array("parent", parent, graph.num_vertices, "i")
        _check_tree(distance, parent, source)
    _check_edges(graph, source, distance, parent, _complete_level(distance, cutoff, targets))


def _check_levels(distance: np.ndarray, source: int, cutoff: int | None) -> None:
    if distance[source] != 0:
        raise ValidationError(f"distance[{source}]={distance[source]}, but vertex {source} is the source: it must be 0")
    check_all(distance >= -1, lambda v: f"distance[{v}]={distance[v]} is neither a level nor -1 for unreachable")
    if cutoff is not None:
        check_all(distance <= cutoff, lambda v: f"distance[{v}]={distance[v]} is beyond the cutoff {cutoff}")


def _check_tree(distance: np.ndarray, parent: np.ndarray, source: int) -> None:
    """Rules 1 and 2: levels that fall by one along parents can only end at the one vertex that is its own parent."""
    check_parents(parent, distance >= 0, source)
    one_above = distance[parent] + 1 == distance
    one_above |= distance < 0
    one_above[source] = True
    check_all(
        one_above,
        lambda v: (
            f"the level of vertex {v} is {distance[v]}, that of its parent {parent[v]} is {distance[parent[v]]}: "
            "they must differ by one"
        ),
    )


def _complete_level(distance: np.ndarray, cutoff: int | None, targets: Any) -> int:
    """Return the level before which every edge must have been followed (rule 4)."""
    level = np.iinfo(distance.dtype).max if cutoff is None else cutoff
    if targets is not None and (distance[targets] >= 0).all():
        # The search may stop inside the level of the last target, so only the levels above that one are complete.
        level = min(level, int(distance.max()) - 1)
    return int(level)


def _check_edges(
    graph: Graph, source: int, distance: np.ndarray, parent: np.ndarray | None, complete_level: int
) -> None:
    """Rules 3 and 4 on every edge; rule 5 by marking each vertex whose tree edge is met."""
    is_confirmed = distance < 0
    is_confirmed[source] = True
    for chunk in edge_chunks(graph):
        src, dst = chunk.src, chunk.dst
        src_level, dst_level = distance[src], distance[dst]
        _check_spans(src, dst, src_level, dst_level, complete_level)
        if parent is None:
            is_confirmed[dst[(src_level + 1 == dst_level) & (src_level >= 0)]] = True
        else:
            is_confirmed[dst[parent[dst] == src]] = True
    check_all(is_confirmed, lambda v: _describe_unconfirmed(v, distance, parent))


def _check_spans(
    src: np.ndarray, dst: np.ndarray, src_level: np.ndarray, dst_level: np.ndarray, complete_level: int
) -> None:
    check_all(
        (dst_level >= 0) | (src_level < 0) | (src_level >= complete_level),
        lambda i: f"vertex {dst[i]} is unreachable, but there is an edge to it from vertex {src[i]}, which is reached",
    )
    check_all(
        (dst_level <= src_level + 1) | (src_level < 0),
        lambda i: (
            f"edge {src[i]} -> {dst[i]} leads from level {src_level[i]} to level {dst_level[i]}: "
            "no edge may lead more than one level down"
        ),
    )


def _describe_unconfirmed(vertex: int, distance: np.ndarray, parent: np.ndarray | None) -> str:
    if parent is None:
        return f"vertex {vertex} has level {distance[vertex]}, but no edge from a vertex of the level above"
    return f"parent[{vertex}]={parent[vertex]}, but the graph has no edge {parent[vertex]} -> {vertex}"
