# SPDX-License-Identifier: Apache-2.0
"""Connected, weakly and strongly connected components.

That a graph is directed, or is not, NetworkX has checked before.  Components come in the order of the first node of
each, strongly connected ones as NetworkX's depth-first search leaves them: whoever condenses a graph relies on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal.algorithms.visiting_order import leaving_order
from shoal.results import ComponentsResult
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.search import strategies


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    """Yield the nodes of each component, in the order of the first of them."""
    if len(G):
        yield from (set(G.names_of(members)) for members in members_by_label(_label(G).label))


def number_connected_components(G: ConvertedGraph) -> int:
    """Return the number of components."""
    return _label(G).count if len(G) else 0


def is_connected(G: ConvertedGraph) -> bool:
    """Return whether there is one component."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _label(G).count == 1


def node_connected_component(G: ConvertedGraph, n: Any) -> set[Any]:
    """Return the nodes of the component that a node is in; a node that is not there is a KeyError, as in NetworkX."""
    vertex = G.index[n]
    label = _label(G).label
    return set(G.names_of(np.flatnonzero(label == label[vertex])))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components


def is_weakly_connected(G: ConvertedGraph) -> bool:
    """Return whether there is one component, whatever the direction of edges."""
    return is_connected(G)


def strongly_connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    """Yield the nodes of each strongly connected component, those first from which no other is reached."""
    if len(G):
        label = _strong_label(G).label
        members = members_by_label(label)
        places = np.searchsorted(np.unique(label), leaving_order(G.hops(), label))
        yield from (set(G.names_of(members[place])) for place in places.tolist())


def number_strongly_connected_components(G: ConvertedGraph) -> int:
    """Return the number of strongly connected components."""
    return _strong_label(G).count if len(G) else 0


def is_strongly_connected(G: ConvertedGraph) -> bool:
    """Return whether every node reaches every other."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return _strong_label(G).count == 1


def _strong_label(G: ConvertedGraph) -> ComponentsResult:
    return shoal.strongly_connected_components(G.hops(), **strategies())


def members_by_label(label: np.ndarray) -> list[np.ndarray]:
    """Return the vertices of each component, by label."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1)


def _label(G: ConvertedGraph) -> ComponentsResult:
    return shoal.connected_components(G.hops(), **strategies())
