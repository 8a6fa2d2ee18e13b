# SPDX-License-Identifier: Apache-2.0
"""Verify triangles, clustering coefficients and transitivity by products of SciPy's matrices, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.algorithms.verification import check_all, check_array
from shoal.graph import Graph

#: Entries that a product of some rows may have to add up; so many are about a gigabyte at worst.
ROWS_WORK = 1 << 25
#: Quotients of whole numbers: only the division rounds.
TOLERANCE = 1e-12


def verify_triangles(graph: Graph, triangles: Any) -> None:
    """Raise ValidationError unless ``triangles`` are those of every vertex."""
    found = check_array("triangles", triangles, graph.num_vertices, "i")
    expected = _count(_neighbours(graph))
    check_all(found == expected, lambda v: f"triangles[{v}]={found[v]}, but vertex {v} is in {expected[v]}")


def verify_clustering(graph: Graph, clustering: Any) -> None:
    """Raise ValidationError unless ``clustering`` are the local clustering coefficients."""
    found = check_array("clustering", clustering, graph.num_vertices, "f")
    matrix = _neighbours(graph)
    expected, pairs = _count(matrix), _pairs(matrix)
    check_all(
        np.abs(found * np.maximum(pairs, 1) - expected) <= TOLERANCE * (expected + 1),
        lambda v: f"clustering[{v}]={found[v]}, but of its {pairs[v]} pairs of neighbours {expected[v]} are joined",
    )


def verify_transitivity(graph: Graph, triangles: Any, triads: Any) -> None:
    """Raise ValidationError unless the triangles and pairs of neighbours of every vertex are right."""
    verify_triangles(graph, triangles)
    found, expected = check_array("triads", triads, graph.num_vertices, "i"), _pairs(_neighbours(graph))
    check_all(
        found == expected, lambda v: f"triads[{v}]={found[v]}, but vertex {v} has {expected[v]} pairs of neighbours"
    )


def _neighbours(graph: Graph) -> Any:
    """Return the symmetric matrix of ones for the pairs of different vertices that an edge joins."""
    from scipy.sparse import csr_array

    ones = np.ones(graph.num_edges, np.int64)
    matrix = csr_array((ones, graph.indices, graph.indptr), shape=(graph.num_vertices, graph.num_vertices)).tocoo()
    off = matrix.row != matrix.col
    kept = csr_array((ones[off], (matrix.row[off], matrix.col[off])), shape=matrix.shape)
    kept.sum_duplicates()
    kept.data[:] = 1
    return kept


def _pairs(matrix: Any) -> np.ndarray:
    degree = np.diff(matrix.indptr).astype(np.int64)
    return degree * (degree - 1) // 2


def _count(matrix: Any) -> np.ndarray:
    """Return the triangles of each vertex, found at their vertex of the lowest degree."""
    from scipy.sparse import csr_array

    degree = np.diff(matrix.indptr)
    rank = np.argsort(np.argsort(degree, kind="stable"), kind="stable")
    edges = matrix.tocoo()
    rises = rank[edges.row] < rank[edges.col]
    upper = csr_array((edges.data[rises], (edges.row[rises], edges.col[rises])), shape=matrix.shape)
    back = upper.T.tocsr()
    count = np.zeros(matrix.shape[0], np.int64)
    for first, last in _row_blocks(upper):
        rows = upper[first:last]
        highest = (rows @ upper).multiply(rows)
        middle = (rows @ back).multiply(rows)
        count[first:last] += np.asarray(highest.sum(axis=1)).ravel()
        count += np.asarray(highest.sum(axis=0)).ravel() + np.asarray(middle.sum(axis=0)).ravel()
    return count


def _row_blocks(upper: Any) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose products have about as many entries to add up as are allowed."""
    lengths = np.diff(upper.indptr) + np.bincount(upper.indices, minlength=upper.shape[0])
    work = np.add.reduceat(np.append(lengths[upper.indices], 0), np.minimum(upper.indptr[:-1], upper.nnz))
    work[np.diff(upper.indptr) == 0] = 0
    total = np.cumsum(work)
    first = 0
    while first < upper.shape[0]:
        done = total[first - 1] if first else 0
        last = max(int(np.searchsorted(total, done + ROWS_WORK, side="right")), first + 1)
        yield first, last
        first = last
