# SPDX-License-Identifier: Apache-2.0
"""Core numbers, and the part of a graph that lies in a core."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal_networkx.conversion import whole_of
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import number, only_default, refusing
from shoal_networkx.search import strategies


def core_number(G: ConvertedGraph) -> dict[Any, int]:
    """Return the largest k such that a node belongs to the k-core."""
    return G.by_name(_cores(G).tolist())


@refusing(only_default("core_number"), number("k"))
def k_core(G: ConvertedGraph, k: Any = None, core_number: Any = None) -> nx.Graph:
    """Return the part of a graph in which everybody has k edges, or the innermost, with all its attributes."""
    cores = _cores(G)
    k = max(cores.tolist()) if k is None else k
    return whole_of(G).subgraph(G.names_of(np.flatnonzero(cores >= k))).copy()


def _cores(G: ConvertedGraph) -> np.ndarray:
    if G.hops().has_self_loops:
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return shoal.core_number(G.hops(), **strategies()).core
