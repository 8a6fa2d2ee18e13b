# SPDX-License-Identifier: Apache-2.0
"""Triangles, and what follows from them: local clustering coefficients and transitivity.

Edges lead from lower to higher degree (`orientation`).  An intersection says of an edge from a triangle's lowest vertex
how many neighbours of that vertex are behind the other end (``shared``: the other end is the middle one of so many
triangles) and how many are before it (``between``: it is the highest of so many).
A loop is no edge of a triangle, and parallel edges are one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.algorithms.arguments import check_undirected, graph_of, make_config
from shoal.algorithms.orientation import Oriented, orient, place_oriented
from shoal.algorithms.verify_triangles import verify_clustering, verify_transitivity, verify_triangles
from shoal.calls import public_call
from shoal.graph import Graph
from shoal.operators import everything, intersect
from shoal.placement import Placed
from shoal.program import Phase, Program, Vertex, add
from shoal.results import ClusteringResult, TransitivityResult, TrianglesResult
from shoal.rules import atomic, rule
from shoal.run import run_configured
from shoal.stats import Stats


class Triangles(Program):
    """Number of triangles of every vertex of an oriented graph."""

    triangles = Vertex("int64", combine=add)

    @rule
    def count(src, dst, shared, between, triangles):
        if shared + between > 0:
            atomic.add(triangles, dst, shared + between)
        if shared > 0:
            atomic.add(triangles, src, shared)

    def step(self, frontier):
        intersect(everything, self.count)

    def phases(self) -> list[Phase]:
        return [Phase(self.step, max_supersteps=1)]


@public_call
def triangles(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> TrianglesResult:
    """Count the triangles of every vertex of an undirected graph.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.triangles(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> r.triangles.tolist(), r.total
    ([1, 1, 1, 0], 1)
    """
    found, _, stats = _count("triangles", graph, strategies)
    if validate:
        verify_triangles(graph_of(graph), found)
    return TrianglesResult(graph_of(graph), stats, found)


@public_call
def clustering(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> ClusteringResult:
    """Compute the local clustering coefficients: which part of a vertex's pairs of neighbours are joined by an edge.

    A vertex of fewer than two neighbours has 0, as in NetworkX.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.clustering(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3]))
    >>> r.clustering.round(3).tolist(), round(r.average, 3)
    ([1.0, 1.0, 0.333, 0.0], 0.583)
    """
    found, oriented, stats = _count("clustering", graph, strategies)
    pairs = _pairs(oriented)
    coefficient = np.divide(found, pairs, out=np.zeros(len(found)), where=pairs > 0)
    if validate:
        verify_clustering(graph_of(graph), coefficient)
    return ClusteringResult(graph_of(graph), stats, coefficient)


@public_call
def transitivity(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> TransitivityResult:
    """Compute the transitivity: which part of all pairs of edges with a common end are two sides of a triangle.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.transitivity(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3])).transitivity
    0.6
    """
    found, oriented, stats = _count("transitivity", graph, strategies)
    pairs = _pairs(oriented)
    if validate:
        verify_transitivity(graph_of(graph), found, pairs)
    return TransitivityResult(graph_of(graph), stats, found, pairs)


def _count(name: str, graph: Graph | Placed, strategies: dict[str, Any]) -> tuple[np.ndarray, Oriented, Stats]:
    """Return the triangles of every vertex, the oriented graph and the run's statistics."""
    config = make_config(strategies)
    plain = graph_of(graph)
    check_undirected(name, plain)
    oriented = orient(plain)
    outcome = run_configured(Triangles(), place_oriented(graph, config, oriented), config, {})
    return oriented.in_order(outcome.state["triangles"]), oriented, outcome.stats


def _pairs(oriented: Oriented) -> np.ndarray:
    """Return the number of pairs of different neighbours of every vertex."""
    degree = oriented.degree
    return degree * (degree - 1) // 2
