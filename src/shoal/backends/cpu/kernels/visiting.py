# SPDX-License-Identifier: Apache-2.0
"""The order in which sequential searches would visit vertices whose distances are known, or leave known components.

One thread: who comes first of two vertices depends on who came first of those before them.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative


@compiled()
def visit_in_order(indptr, indices, weights, distance, place, next_free, order, parent):
    """Fill ``order`` behind the sources, and ``parent``.

    ``place[vertex]`` is the number of its distance among all distances, ``next_free`` of it where in ``order`` the next
    vertex at that distance goes.  Distances are filled one after the other, since an edge never leads to a smaller one.
    """
    for position in range(order.shape[0]):
        vertex = nonnegative(order[position])
        for edge in range(nonnegative(indptr[vertex]), indptr[vertex + 1]):
            neighbour = nonnegative(indices[edge])
            if weights is None:
                reaches = distance[vertex] + 1 == distance[neighbour]
            else:
                reaches = distance[vertex] + weights[edge] == distance[neighbour]
            if reaches and parent[neighbour] == -1:
                parent[neighbour] = vertex
                free = nonnegative(next_free[place[neighbour]])
                order[free] = neighbour
                next_free[place[neighbour]] = free + 1


@compiled()
def leave_in_order(indptr, indices, label, next_edge, first_met, stack, order):
    """Fill ``order`` with labels of components, each as a depth-first search leaves the first vertex it met of it.

    ``next_edge[vertex]`` is the edge at which the search goes on there, and of a vertex that it has not met yet -1 -
    (where its row begins); ``first_met`` of a label is -1 until a vertex of it is met.
    """
    num_left = 0
    for source in range(label.shape[0]):
        if next_edge[source] >= 0:
            continue
        stack[0] = source
        depth = 0
        while depth >= 0:
            vertex = nonnegative(stack[depth])
            if next_edge[vertex] < 0:
                next_edge[vertex] = -1 - next_edge[vertex]
                if first_met[label[vertex]] < 0:
                    first_met[label[vertex]] = vertex
            edge = nonnegative(next_edge[vertex])
            if edge < indptr[vertex + 1]:
                next_edge[vertex] = edge + 1
                neighbour = nonnegative(indices[edge])
                if next_edge[neighbour] < 0:
                    depth += 1
                    stack[depth] = neighbour
            else:
                if first_met[label[vertex]] == vertex:
                    order[num_left] = label[vertex]
                    num_left += 1
                depth -= 1
