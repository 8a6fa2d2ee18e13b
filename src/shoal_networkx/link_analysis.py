# SPDX-License-Identifier: Apache-2.0
"""PageRank.  NetworkX stops when the ranks' change, summed, is below ``tol`` times the number of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import number, only_default, refusing, weight_is_named
from shoal_networkx.search import strategies

#: Ranks sum to one, so that their change is never more than 2; the engine counts it in whole numbers up to 4.
_ANY_CHANGE = 3.0


def _in_range(given: dict[str, Any]) -> str | None:
    alpha, limit = given["alpha"], given["max_iter"]
    if alpha is None or not 0 <= alpha <= 1:
        return f"alpha={alpha!r} is no probability"
    if not isinstance(limit, int) or limit < 0 or given["tol"] is None or given["tol"] < 0:
        return f"max_iter={limit!r}, tol={given['tol']!r}: shoal needs numbers of at least 0"
    return None


def _personalization_is_numbers(given: dict[str, Any]) -> str | None:
    values = given["personalization"]
    if values is None:
        return None
    if not isinstance(values, Mapping) or not all(map(_is_share, values.values())):
        return "personalization is not a mapping to numbers of at least 0"
    return None


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < np.inf


@refusing(
    only_default("nstart"),
    only_default("dangling"),
    weight_is_named,
    number("alpha"),
    number("tol"),
    _in_range,
    _personalization_is_numbers,
)
def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1e-06,
    nstart: Any = None,
    weight: Any = "weight",
    dangling: Any = None,
) -> dict[Any, float]:
    """Return the share of a random surfer's visits to each node."""
    if len(G) == 0:
        return {}
    start = None
    if personalization is not None:
        start = np.array([personalization.get(node, 0) for node in G], np.float64)
        if start.sum() == 0:
            raise ZeroDivisionError
    graph = G.totals(weight)
    tolerance = min(len(G) * tol, _ANY_CHANGE)
    try:
        found = shoal.pagerank(
            graph, alpha, tolerance, max_iter, personalization=start, weighted=graph.is_weighted, **strategies()
        )
    except shoal.ConvergenceError as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    except shoal.ArgumentError as error:
        raise NotImplementedError(str(error)) from error  # such weights: NetworkX may still have an answer
    return G.by_name(found.rank.tolist())
