# SPDX-License-Identifier: Apache-2.0
"""Eigenvector and Katz centrality: shoal's iterations, begun and ended as NetworkX does.

NetworkX stops when the change, summed, is below ``tol`` times the number of nodes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

import shoal
from shoal.algorithms.eigenvector import Eigenvector
from shoal.algorithms.katz import Katz
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.refusals import iterations_are_counted, number, only_default, refusing, weight_is_named
from shoal_networkx.search import strategies

#: Squares of sums of what is below this are floats.
_LARGEST = 1e150

_iterated = (only_default("nstart"), weight_is_named, number("tol"), iterations_are_counted)


class EigenvectorFromShares(Eigenvector):
    """Eigenvector centrality from a vector whose sum is 1, not its length: its first change is another."""

    def start(self, tolerance: float) -> None:  # type: ignore[override]
        super().start(tolerance)
        self.score[:] = 1.0 / len(self.score)  # type: ignore[arg-type, index]


_eigenvector = functools.cache(EigenvectorFromShares)
_katz = functools.cache(Katz)


@refusing(*_iterated)
def eigenvector_centrality(
    G: ConvertedGraph, max_iter: int = 100, tol: float = 1e-06, nstart: Any = None, weight: Any = None
) -> dict[Any, float]:
    """Return how central nodes are by how central those are that point to them."""
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    graph = G.totals(weight)
    _check_weights(graph)
    found = _converged(_eigenvector(max_iter, graph.is_weighted), graph, max_iter, tolerance=len(G) * tol)
    return G.by_name(found.tolist())


def _check_weights(graph: shoal.Graph) -> None:
    least, most = graph.min_weight or 0, graph.max_weight or 0
    if least < 0 or most * graph.num_vertices >= _LARGEST:
        raise NotImplementedError(f"weights from {least:g} to {most:g}: some are negative, or too large to be squared")


def _alpha_is_float(given: dict[str, Any]) -> str | None:
    return None if isinstance(given["alpha"], float) else f"alpha={given['alpha']!r} is not a float"


def _beta_is_numbers(given: dict[str, Any]) -> str | None:
    beta = given["beta"]
    values = beta.values() if isinstance(beta, Mapping) else [beta]
    if all(isinstance(value, (int, float)) and abs(value) < _LARGEST for value in values):
        return None
    return f"beta is neither a number below {_LARGEST:g} nor a mapping to such"


@refusing(*_iterated, _alpha_is_float, _beta_is_numbers)
def katz_centrality(
    G: ConvertedGraph,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-06,
    nstart: Any = None,
    normalized: bool = True,
    weight: Any = None,
) -> dict[Any, float]:
    """Return how many walks end at nodes, long ones counting less."""
    if len(G) == 0:
        return {}
    has_betas = isinstance(beta, Mapping)
    if has_betas and set(beta) != set(G.names):
        raise nx.NetworkXError("beta dictionary must have a value for every node")
    betas = np.array([beta[node] for node in G], np.float64) if has_betas else float(beta)
    graph = G.totals(weight)
    program = _katz(max_iter, graph.is_weighted, has_betas)
    found = _converged(program, graph, max_iter, alpha=alpha, beta=betas, tolerance=len(G) * tol)
    length = math.hypot(*found.tolist()) if normalized else 1.0
    return G.by_name((found * (1.0 / length if length else 1.0)).tolist())


def _converged(program: Any, graph: shoal.Graph, max_iter: int, tolerance: float, **arguments: Any) -> np.ndarray:
    """Return the scores that a program ends with; as in NetworkX it is an error if they still change."""
    found: Any = shoal.run(program, graph, tolerance=tolerance, **arguments, **strategies())
    if not found.change < tolerance:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return found.score
