# SPDX-License-Identifier: Apache-2.0
"""Breadth-first searches and what they reach.

Those that are generators in NetworkX find a wrong source when the first item is asked for, and so do these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import networkx as nx
import numpy as np

from shoal_networkx.conversion import whole_of
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import number, only_default, refusing
from shoal_networkx.search import hops_from, levels_within, named_tree_edges, visits

_plain = refusing(only_default("sort_neighbors"), number("depth_limit"))


@refusing(only_default("neighbors"), number("depth_limit"))
def generic_bfs_edges(G: ConvertedGraph, source: Any, neighbors: Any = None, depth_limit: Any = None) -> Iterator[Any]:
    """Yield the edges of a breadth-first search."""
    yield from _edges(G, source, False, depth_limit)


@_plain
def bfs_edges(
    G: ConvertedGraph, source: Any, reverse: bool = False, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[Any]:
    """Yield the edges of a breadth-first search."""
    yield from _edges(G, source, reverse, depth_limit)


@_plain
def bfs_tree(
    G: ConvertedGraph, source: Any, reverse: bool = False, depth_limit: Any = None, sort_neighbors: Any = None
) -> nx.DiGraph:
    """Return the tree of a breadth-first search."""
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(_edges(G, source, reverse, depth_limit))
    return tree


@_plain
def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[Any]:
    """Yield every node that a search reaches, and the one before it."""
    for parent, child in _edges(G, source, False, depth_limit):
        yield child, parent


@_plain
def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: Any = None, sort_neighbors: Any = None
) -> Iterator[Any]:
    """Yield nodes, and the list of those that the search reaches from them."""
    edges = list(_edges(G, source, False, depth_limit))
    if not edges:
        yield source, []
    for parent, found in groupby(edges, itemgetter(0)):
        yield parent, [child for _, child in found]


def bfs_layers(G: ConvertedGraph, sources: Any) -> Iterator[list[Any]]:
    """Yield lists of the nodes at each distance from any of the sources."""
    chosen = list({sources} if sources in G else set(sources))
    for source in chosen:
        if source not in G:
            raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if chosen:
        vertices = [G.index[source] for source in chosen]
        distance = hops_from(G.hops(), vertices)
        order = visits(G.hops(), vertices, distance).order
        for layer in np.split(order, np.cumsum(np.bincount(distance[order]))[:-1]):
            yield G.names_of(layer)


@refusing(number("distance"))
def descendants_at_distance(G: ConvertedGraph, source: Any, distance: Any) -> set[Any]:
    """Return the nodes at exactly this distance."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    if distance is None or not 0 <= distance < len(G) or distance != int(distance):
        return set()
    found = hops_from(G.hops(), [G.index[source]], int(distance))
    return set(G.names_of(np.flatnonzero(found == distance)))


def descendants(G: ConvertedGraph, source: Any) -> set[Any]:
    """Return the nodes that can be reached from a node."""
    return _reached(G, source, False)


def ancestors(G: ConvertedGraph, source: Any) -> set[Any]:
    """Return the nodes from which a node can be reached."""
    return _reached(G, source, True)


@refusing(only_default("distance"), number("radius"))
def ego_graph(
    G: ConvertedGraph, n: Any, radius: Any = 1, center: bool = True, undirected: bool = False, distance: Any = None
) -> nx.Graph:
    """Return the part of a graph that lies around a node, with all its attributes."""
    if n not in G:
        raise nx.NodeNotFound(f"Source {n} is not in G")
    graph = G.hops().symmetrized() if undirected else G.hops()
    found = hops_from(graph, [G.index[n]], levels_within(radius))
    ego = whole_of(G).subgraph(G.names_of(np.flatnonzero(found >= 0))).copy()
    if not center:
        ego.remove_node(n)
    return ego


def _edges(G: ConvertedGraph, source: Any, reverse: bool, depth_limit: Any) -> Any:
    graph = G.hops(turned=reverse)
    vertex = _vertex(G, source)
    distance = hops_from(graph, [vertex], levels_within(depth_limit))
    return named_tree_edges(G, visits(graph, [vertex], distance))


def _reached(G: ConvertedGraph, source: Any, reverse: bool) -> set[Any]:
    vertex = _vertex(G, source)
    distance = hops_from(G.hops(turned=reverse), [vertex])
    distance[vertex] = -1
    return set(G.names_of(np.flatnonzero(distance >= 0)))


def _vertex(G: ConvertedGraph, node: Any) -> int:
    """Return the number of a node; a wrong one is what it is to NetworkX when it looks for neighbours."""
    hash(node)
    if node not in G:
        raise nx.NetworkXError(f"The node {node} is not in the {'digraph' if G.is_directed() else 'graph'}.")
    return G.index[node]
