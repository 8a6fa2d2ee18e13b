# SPDX-License-Identifier: Apache-2.0
"""The edges of a graph, counted one by one: what tests of conversions compare."""

from collections import Counter


def edges_of(graph):
    """Every edge by the names of its ends, once, with its weight: as many as there are."""
    found = Counter()
    for src in range(graph.num_vertices):
        for position in range(graph.indptr[src], graph.indptr[src + 1]):
            dst = int(graph.indices[position])
            if graph.is_directed or src <= dst:
                weight = None if graph.weights is None else graph.weights[position].item()
                found[ends(graph.is_directed, graph.label_of(src), graph.label_of(dst)), weight] += 1
    return found


def ends(is_directed, u, v):
    """The ends of an edge, in one order if it has no direction."""
    return (u, v) if is_directed else tuple(sorted((u, v)))
