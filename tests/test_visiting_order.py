# SPDX-License-Identifier: Apache-2.0
"""The order that is found from distances is that of a textbook search with a heap, whose ties go by who came first."""

from heapq import heappop, heappush
from itertools import count

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import graphs
from shoal.algorithms.visiting_order import leaving_order, visiting_order

pytestmark = pytest.mark.host_only("about one pass over the edges on the host")


def search(graph, sources, is_weighted):
    """Dijkstra's algorithm: distances, vertices as they leave the heap, and parents."""
    ticket = count()
    heap = [(0.0, next(ticket), source, source) for source in sources]
    seen = dict.fromkeys(sources, 0.0)
    distance, order, parent = {}, [], np.full(graph.num_vertices, -1)
    while heap:
        length, _, vertex, before = heappop(heap)
        if vertex in distance:
            continue
        distance[vertex], parent[vertex] = length, before
        order.append(vertex)
        for edge in range(graph.indptr[vertex], graph.indptr[vertex + 1]):
            neighbour = int(graph.indices[edge])
            proposal = length + (float(graph.weights[edge]) if is_weighted else 1.0)
            if proposal < seen.get(neighbour, np.inf):
                seen[neighbour] = proposal
                heappush(heap, (proposal, next(ticket), neighbour, vertex))
    lengths = np.full(graph.num_vertices, np.inf)
    lengths[list(distance)] = list(distance.values())
    return lengths, order, parent


@given(st.data())
@pytest.mark.parametrize("weights", [None, "int32", "float64"])
def test_order_and_parents(weights, data):
    graph = data.draw(graphs(weights=weights))
    vertices = st.integers(0, graph.num_vertices - 1)
    sources = data.draw(st.lists(vertices, min_size=1, max_size=3, unique=True))
    lengths, order, parent = search(graph, sources, weights is not None)
    if weights is None:
        lengths = np.where(np.isfinite(lengths), lengths, -1).astype(np.int32)
    found = visiting_order(graph, np.array(sources), lengths)
    assert found.order.tolist() == order
    assert found.parent.tolist() == parent.tolist()


@given(graphs(directed=True))
def test_components_are_left_as_by_tarjan(graph):
    there = nx.DiGraph()
    there.add_nodes_from(range(graph.num_vertices))
    for vertex in there:
        row = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
        there.add_edges_from((vertex, neighbour) for neighbour in row.tolist())
    components = list(nx.strongly_connected_components(there, backend="networkx"))
    label = np.zeros(graph.num_vertices, graph.vertex_dtype)
    for members in components:
        label[list(members)] = min(members)
    assert leaving_order(graph, label).tolist() == [min(members) for members in components]
