# SPDX-License-Identifier: Apache-2.0
"""Bellman and Ford's relaxations by a queue, one after the other, as a sequential program has them.

One thread: what an edge improves depends on the edges before it.  The predecessors of a vertex are all that led to it
by its present distance: a list of edges, linked by ``before`` from ``latest`` on, of which ``tail`` has the other end.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative

UNBOUNDED = -1  # a cycle has a negative length


@inner
def awaits_predecessor(vertex, latest, before, tail, is_queued):
    """Return whether a predecessor is in the queue, behind which the vertex would be visited again."""
    edge = latest[vertex]
    while edge >= 0 and is_queued[tail[edge]] == 0:
        edge = before[edge]
    return edge >= 0


@compiled()
def relax_in_order(
    indptr, indices, weights, source, distance, parent, order, queue, is_queued, times_queued, times_improved, latest,
    before, tail, listed, branch,
):  # fmt: skip
    """Fill ``distance`` (inf elsewhere), ``parent`` and ``order``; return how many were reached, or `UNBOUNDED`.

    ``listed`` says for which of its end's distances, counted by ``times_improved``, an edge is in the list.  ``branch``
    has the ends of the edge at which the improvements that led to a vertex began to follow one another; an improvement
    that comes back to one of them has gone round a cycle.
    """
    num_vertices = distance.shape[0]
    head, waiting, num_reached = 0, 1, 1
    queue[0] = order[0] = source
    distance[source] = 0.0
    is_queued[source] = 1
    while waiting > 0:
        vertex = nonnegative(queue[head])
        head = (head + 1) % num_vertices
        waiting -= 1
        is_queued[vertex] = 0
        if awaits_predecessor(vertex, latest, before, tail, is_queued):
            continue
        reached = distance[vertex]
        for edge in range(nonnegative(indptr[vertex]), indptr[vertex + 1]):
            neighbour = nonnegative(indices[edge])
            length = reached + weights[edge]
            if length < distance[neighbour]:
                if neighbour == branch[vertex, 0] or neighbour == branch[vertex, 1]:
                    return UNBOUNDED
                if parent[neighbour] == vertex:
                    branch[neighbour, 0], branch[neighbour, 1] = branch[vertex, 0], branch[vertex, 1]
                else:
                    branch[neighbour, 0], branch[neighbour, 1] = vertex, neighbour
                if times_improved[neighbour] == 0 and neighbour != source:
                    order[num_reached] = neighbour
                    num_reached += 1
                if is_queued[neighbour] == 0:
                    queue[(head + waiting) % num_vertices] = neighbour
                    waiting += 1
                    is_queued[neighbour] = 1
                    times_queued[neighbour] += 1
                    if times_queued[neighbour] == num_vertices:
                        return UNBOUNDED
                distance[neighbour] = length
                parent[neighbour] = vertex
                times_improved[neighbour] += 1
                latest[neighbour] = -1
            elif length != distance[neighbour] or listed[edge] == times_improved[neighbour]:
                continue
            before[edge], tail[edge] = latest[neighbour], vertex
            listed[edge] = times_improved[neighbour]
            latest[neighbour] = edge
    return num_reached
