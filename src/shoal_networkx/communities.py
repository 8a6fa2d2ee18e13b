# SPDX-License-Identifier: Apache-2.0
"""Communities: NetworkX's own by label propagation, and some of as high a modularity by the Louvain method.

NetworkX's label propagation goes through the classes of a greedy colouring.  Vertices of one colour are no neighbours,
so a superstep for each class finds what NetworkX does, vertex after vertex.  Its Louvain method follows an order drawn
at random: who gives a seed wants that one partition, and it is left to NetworkX.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np

import shoal
from shoal.algorithms.coloring import greedy_coloring
from shoal.algorithms.label_propagation import smallest_members
from shoal.algorithms.labels_by_color import MAX_SUPERSTEPS, LabelsByColor
from shoal_networkx.components import members_by_label
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import number, only_default, refusing, weight_is_named
from shoal_networkx.search import strategies

_labels_by_color = functools.cache(LabelsByColor)


def label_propagation_communities(G: ConvertedGraph) -> Any:
    """Return the sets of nodes that label propagation ends with, in the order of the first node of each."""
    if len(G) == 0:
        return {}.values()
    largest_first = np.argsort(-G.degrees_with_loops_twice(), kind="stable")
    color = greedy_coloring(G.hops(), largest_first)
    found: Any = shoal.run(_labels_by_color(), G.hops(), color=color, **strategies())
    if found.num_due:
        raise NotImplementedError(f"labels have not settled after {MAX_SUPERSTEPS} supersteps")
    label, _ = smallest_members(found.label)
    return dict(enumerate(set(G.names_of(members)) for members in members_by_label(label))).values()


def _any_order_will_do(given: dict[str, Any]) -> str | None:
    seed = given["seed"]
    # What NetworkX makes of no seed is the generator behind the functions of `random`.
    if seed is None or seed is getattr(random, "_inst", None):
        return None
    return "seed is given: of several partitions NetworkX finds the one that follows from it"


def _undirected(given: dict[str, Any]) -> str | None:
    return "G is directed: shoal finds communities of undirected graphs" if given["G"].is_directed() else None


def _at_least_zero(name: str) -> Any:
    def refuse(given: dict[str, Any]) -> str | None:
        return None if given[name] is not None and given[name] >= 0 else f"{name}={given[name]!r} is not at least 0"

    return refuse


@refusing(
    _any_order_will_do,
    _undirected,
    weight_is_named,
    only_default("max_level"),
    number("resolution"),
    _at_least_zero("resolution"),
    number("threshold"),
    _at_least_zero("threshold"),
)
def louvain_communities(
    G: ConvertedGraph,
    weight: Any = "weight",
    resolution: float = 1,
    threshold: float = 1e-07,
    max_level: Any = None,
    seed: Any = None,
) -> list[set[Any]]:
    """Return a partition of high modularity, in the order of the first node of each community."""
    if G.num_neighbours == 0:
        return [{node} for node in G]
    graph = G.totals(weight)
    if graph.max_weight == 0:
        raise NotImplementedError("all weights are 0: modularity is not defined")
    try:
        found = shoal.louvain_communities(
            graph, resolution=resolution, threshold=threshold, weighted=graph.is_weighted, **strategies()
        )
    except shoal.ArgumentError as error:
        raise NotImplementedError(str(error)) from error
    return [set(G.names_of(members)) for members in members_by_label(found.label)]
