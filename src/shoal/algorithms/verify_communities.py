# SPDX-License-Identifier: Apache-2.0
"""Verify communities: labels by what neighbours have, modularity recomputed, both by SciPy's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array
from shoal.errors import ValidationError
from shoal.graph import Graph

#: Sums of weights are rounded in another order.
TOLERANCE = 1e-9


def verify_label_propagation(graph: Graph, label: Any, *, weighted: bool = False) -> None:
    """Raise ValidationError unless every label is among the most frequent of its vertex's neighbours.

    A vertex without neighbours has a label of its own.
    """
    label = check_communities(graph, label)
    if not graph.num_vertices:
        return
    matrix, membership = matrix_of(graph, weighted), membership_of(label)
    shares = (matrix @ membership).tocsr()
    most = shares.max(axis=1).toarray().ravel()
    own = np.asarray(shares.multiply(membership).sum(axis=1)).ravel()
    check_all(
        own >= most - TOLERANCE * most,
        lambda v: f"label[{v}]={label[v]} has {own[v]:g} of the neighbours of {v}, another label has {most[v]:g}",
    )
    alone = np.diff(graph.indptr) == 0
    check_all(
        ~alone | (label == np.arange(graph.num_vertices)),
        lambda v: f"label[{v}]={label[v]}, but vertex {v} has no neighbour to take a label from",
    )


def check_communities(graph: Graph, label: Any) -> np.ndarray:
    """Return labels as an array, if each community is named by the smallest vertex in it."""
    label = check_array("label", label, graph.num_vertices, "i")
    check_all(
        (label >= 0) & (label <= np.arange(len(label))),
        lambda v: f"label[{v}]={label[v]}; it must be the smallest vertex of the community, from 0 to {v}",
    )
    check_all(
        label[label] == label,
        lambda v: f"label[{v}]={label[v]}, but vertex {label[v]} is in the community of {label[label[v]]}",
    )
    return label


def matrix_of(graph: Graph, weighted: bool) -> Any:
    """Return the stored edges as a matrix of float64; parallel edges are added up."""
    from scipy.sparse import csr_array

    is_weighted = weighted and graph.weights is not None
    values = np.asarray(graph.weights, np.float64) if is_weighted else np.ones(graph.num_edges)
    matrix = csr_array((values, graph.indices, graph.indptr), shape=(graph.num_vertices, graph.num_vertices)).copy()
    matrix.sum_duplicates()
    return matrix


def membership_of(label: np.ndarray) -> Any:
    """Return the matrix with a one for each vertex in the column of its community."""
    from scipy.sparse import csr_array

    _, community = np.unique(label, return_inverse=True)
    shape = (len(label), int(community.max(initial=-1)) + 1)
    return csr_array((np.ones(len(label)), community, np.arange(len(label) + 1)), shape=shape)


def verify_louvain(
    graph: Graph, label: Any, modularity: float | None = None, *, resolution: float = 1.0, weighted: bool = False
) -> None:
    """Raise ValidationError unless the labels name communities, which have the modularity if one is given.

    It is at least that of the communities with which the method begins, of one vertex each.
    """
    label = check_communities(graph, label)
    expected = modularity_of(graph, label, resolution, weighted)
    alone = modularity_of(graph, np.arange(graph.num_vertices), resolution, weighted)
    if expected < alone - TOLERANCE * max(1.0, abs(resolution)):
        raise ValidationError(f"the communities have modularity {expected}; {alone} is that of vertices by themselves")
    if modularity is not None and not abs(expected - modularity) <= TOLERANCE * max(1.0, abs(resolution)):
        raise ValidationError(f"modularity={modularity}, but that of the communities is {expected}")


def modularity_of(graph: Graph, label: np.ndarray, resolution: float, weighted: bool) -> float:
    """Return sum over communities of inside / m - resolution (degrees / 2 m)^2; a loop counts twice in a degree."""
    matrix = matrix_of(graph, weighted)
    loops = matrix.diagonal()
    degree = np.asarray(matrix.sum(axis=1)).ravel() + loops
    total = degree.sum()
    if not total:
        return 0.0
    membership = membership_of(label)
    inside = (membership.T @ (matrix @ membership)).diagonal() + membership.T @ loops
    shares = membership.T @ degree / total
    return float((inside / total - resolution * shares**2).sum())
