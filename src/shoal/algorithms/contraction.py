# SPDX-License-Identifier: Apache-2.0
"""Levels of the Louvain method: a graph, its degrees in whole units, and the graph of its communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.graph import Graph

#: Degrees of a graph with fractions sum to about so many units: a float64 and an int64 both hold such sums exactly.
UNITS = 2.0**52


@dataclass(frozen=True, eq=False)
class Level:
    """An undirected graph; a loop is stored once, and counts twice in ``degree``, in units of weight."""

    graph: Graph
    degree: np.ndarray
    loop: np.ndarray
    unit: float

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to gain: no edge has a weight."""
        return not self.degree.any()


def first_level(graph: Graph, weighted: bool) -> Level:
    """Return the level that a graph is, with its weights or with one for each edge."""
    if weighted and graph.weights is not None:
        return _level(graph)
    plain = graph if graph.weights is None else Graph.from_csr(
        graph.indptr, graph.indices, directed=False, vertex_dtype=graph.vertex_dtype, edge_dtype=graph.edge_dtype,
        check=False,
    )  # fmt: skip
    return _level(plain)


def _level(graph: Graph) -> Level:
    matrix = graph.to_scipy().astype(np.float64)
    loop = matrix.diagonal()
    degree = np.asarray(matrix.sum(axis=1)).ravel() + loop
    total = float(degree.sum())
    is_whole = graph.weights is None or graph.weights.dtype.kind == "i"
    unit = 1.0 if is_whole or total == 0 else 2.0 ** np.ceil(np.log2(total / UNITS))
    return Level(graph, np.rint(degree / unit).astype(np.int64), loop, unit)


def contract(level: Level, community: np.ndarray, num_communities: int) -> Level:
    """Return the graph whose vertices are the communities, and whose weights are the sums of those between them."""
    from scipy.sparse import coo_array

    graph = level.graph
    src = np.repeat(community, np.diff(graph.indptr))
    dst = community[graph.indices]
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights.astype(np.float64)
    # An edge within a community is stored at both its ends, a loop once.
    own = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)) == graph.indices
    weights = np.where((src == dst) & ~own, weights / 2, weights)
    matrix = coo_array((weights, (src, dst)), shape=(num_communities, num_communities)).tocsr()
    matrix.sort_indices()
    coarse = Graph.from_csr(
        matrix.indptr, matrix.indices, matrix.data, directed=False, vertex_dtype=graph.vertex_dtype,
        edge_dtype=graph.edge_dtype, check=False,
    )  # fmt: skip
    degree = np.bincount(community, level.degree.astype(np.float64), num_communities).astype(np.int64)
    return Level(coarse, degree, matrix.diagonal(), level.unit)
