# SPDX-License-Identifier: Apache-2.0
"""Verify strongly connected components.

Every label must be the smallest vertex id that bears it.  Along edges within its component every vertex must be reached
from the one that gives the label, and reach it: then no component is too large.  That none is a part of a larger one is
shown by the graph between components: it must have no cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms.verification import check_all, check_array, edge_chunks
from shoal.algorithms.verify_components import check_representatives
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


def verify_strong_components(graph: Graph, label: np.ndarray, count: int | None = None) -> None:
    """Raise ValidationError unless ``label`` names the strongly connected components, ``count`` in number."""
    label = check_array("label", label, graph.num_vertices, "i")
    check_representatives(label)
    inside, between = _split(graph, label)
    for src, dst, words in ((*inside, "is not reached from it"), (*inside[::-1], "does not reach it")):
        is_reached = _reach(label, src, dst)
        check_all(
            is_reached, lambda v, words=words: f"label[{v}]={label[v]}, but vertex {v} {words} inside its component"
        )
    _check_acyclic(label, *between)
    num_labels = int((label == np.arange(len(label))).sum())
    if count is not None and count != num_labels:
        raise ValidationError(f"count={count}, but there are {num_labels} distinct labels")


def _split(graph: Graph, label: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the edges within components, and those between them, by the labels of their ends and each once."""
    inside: list[tuple[np.ndarray, np.ndarray]] = []
    between = [np.empty(0, np.int64)]
    for chunk in edge_chunks(graph):
        src, dst = label[chunk.src].astype(np.int64), label[chunk.dst]
        is_inside = src == dst
        inside.append((chunk.src[is_inside], chunk.dst[is_inside]))
        between.append(np.unique(src[~is_inside] * len(label) + dst[~is_inside]))
    pairs = np.unique(np.concatenate(between))
    ends = [np.concatenate([part[k] for part in inside]) if inside else np.empty(0, np.int64) for k in (0, 1)]
    return (ends[0], ends[1]), (pairs // max(len(label), 1), pairs % max(len(label), 1))


def _reach(label: np.ndarray, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Return which vertices edges lead to from those that give the labels; SciPy searches from one before them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    num_vertices = len(label)
    roots = np.flatnonzero(label == np.arange(num_vertices))
    ends = np.concatenate([src, np.full(len(roots), num_vertices)]), np.concatenate([dst, roots])
    matrix = coo_array((np.ones(len(ends[0])), ends), shape=(num_vertices + 1, num_vertices + 1)).tocsr()
    order = breadth_first_order(matrix, num_vertices, return_predecessors=False)
    is_reached = np.zeros(num_vertices + 1, bool)
    is_reached[order] = True
    return is_reached[:num_vertices]


def _check_acyclic(label: np.ndarray, src: np.ndarray, dst: np.ndarray) -> None:
    """Take away components that no edge enters, wave by wave; on a cycle none ever can go."""
    order = np.argsort(src, kind="stable")
    src, dst = src[order], dst[order]
    begin = np.searchsorted(src, np.arange(len(label) + 1))
    entering = np.bincount(dst, minlength=len(label))
    wave = np.flatnonzero((label == np.arange(len(label))) & (entering == 0))
    num_left = int((label == np.arange(len(label))).sum())
    while len(wave):
        num_left -= len(wave)
        size = begin[wave + 1] - begin[wave]
        edge = np.arange(size.sum()) + np.repeat(begin[wave] - (np.cumsum(size) - size), size)
        touched, losses = np.unique(dst[edge], return_counts=True)
        entering[touched] -= losses
        wave = touched[entering[touched] == 0]
    if num_left:
        v = int(np.flatnonzero(entering > 0)[0])
        raise ValidationError(f"{num_left} components reach one another in a cycle, or are behind one that does; "
                              f"one of them has label {v}: they are split")  # fmt: skip
