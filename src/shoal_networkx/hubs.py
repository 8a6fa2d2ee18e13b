# SPDX-License-Identifier: Apache-2.0
"""Hubs and authorities, where they are the only ones.

NetworkX has them from SciPy's solver of singular vectors, exact to many digits, from a random start.  shoal iterates,
to as many digits.  Several vectors may belong to the largest singular value: then NetworkX returns any, and is left to.
Whoever is reached from a hub by edges taken forwards and backwards in turn is one group; of groups of which one has a
larger singular value than the others only that one keeps hubs, which are then the only ones (Perron and Frobenius).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import shoal
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import only_default, refusing
from shoal_networkx.search import strategies

#: Changes below this, reached in so many iterations, leave errors of some 1e-10: the next change is at most 0.973
#: times the last, since 0.973**1000 is 1e-12.
_TOLERANCE = 1e-12
_ITERATIONS = 1000
#: What other groups may have left.
_NOTHING = 1e-10
#: What NetworkX's ``max_iter`` counts are restarts of the solver; by default it does not fail.
_ENOUGH = 100


def _solver_has_time(given: dict[str, Any]) -> str | None:
    limit = given["max_iter"]
    enough = isinstance(limit, int) and limit >= _ENOUGH
    return None if enough else f"max_iter={limit!r}: whether SciPy's solver is done by then only it can tell"


def _tolerance_is_met(given: dict[str, Any]) -> str | None:
    tol = given["tol"]
    return None if isinstance(tol, (int, float)) and tol >= 0 else f"tol={tol!r} is not a number of at least 0"


@refusing(only_default("nstart"), only_default("normalized", True), _solver_has_time, _tolerance_is_met)
def hits(
    G: ConvertedGraph, max_iter: int = 100, tol: float = 1e-08, nstart: Any = None, normalized: bool = True
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return how good a hub and how good an authority every node is."""
    if len(G) == 0:
        return {}, {}
    graph = G.totals("weight")
    _check_edges(G, graph)
    try:
        found = shoal.hits(graph, _TOLERANCE, _ITERATIONS, weighted=graph.is_weighted, **strategies())
    except shoal.ConvergenceError as error:
        raise NotImplementedError(str(error)) from error
    group = _groups(G)
    if found.authority[group != group[found.authority.argmax()]].sum() > _NOTHING:
        raise NotImplementedError("several vectors belong to the largest singular value: NetworkX returns any of them")
    return G.by_name(found.hub.tolist()), G.by_name(found.authority.tolist())


def _check_edges(G: ConvertedGraph, graph: shoal.Graph) -> None:
    if len(G) == 1 or G.num_neighbours == 0:
        raise NotImplementedError("graphs of one node, or without edges, are an error of SciPy's solver")
    if graph.is_weighted and graph.min_weight <= 0:  # type: ignore[operator]
        raise NotImplementedError(f"the weight {graph.min_weight:g} is not above 0")


def _groups(G: ConvertedGraph) -> np.ndarray:
    """Return the group of every node as an authority: its component where each node is two, a hub and an authority."""
    rows, count = G.successors, len(G)
    indptr = np.concatenate([rows.indptr, np.full(count, rows.indptr[-1], rows.indptr.dtype)])
    twice = shoal.Graph.from_csr(indptr, rows.indices + count, directed=True, check=False)
    return shoal.connected_components(twice, **strategies()).label[count:]
