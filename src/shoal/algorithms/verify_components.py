# SPDX-License-Identifier: Apache-2.0
"""Verify connected components (weak ones in a directed graph).

Every label must be the smallest vertex id that bears it, and both ends of every edge must bear the same label: then no
component is split.  That none are merged is shown by counting: the graph, contracted chunk of edges by chunk of edges,
must end with as many vertices as there are labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms.verification import EdgeChunk, check_all, check_array, edge_chunks
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


def verify_components(graph: Graph, label: np.ndarray, count: int | None = None) -> None:
    """Raise ValidationError unless ``label`` names the connected components of ``graph``, ``count`` in number."""
    label = check_array("label", label, graph.num_vertices, "i")
    check_representatives(label)
    for chunk in edge_chunks(graph):
        _check_chunk(chunk, label)
    num_labels = int((label == np.arange(len(label))).sum())
    _check_not_merged(graph, label, num_labels)
    if count is not None and count != num_labels:
        raise ValidationError(f"count={count}, but there are {num_labels} distinct labels")


def check_representatives(label: np.ndarray) -> None:
    """Raise ValidationError unless every label is the smallest vertex that bears it."""
    num_vertices = len(label)
    check_all(
        (label >= 0) & (label < num_vertices),
        lambda v: f"label[{v}]={label[v]} is no vertex; it must be from 0 to {num_vertices - 1}",
    )
    check_all(
        label <= np.arange(num_vertices),
        lambda v: f"label[{v}]={label[v]}, but a label is the smallest id in its component and {v} is smaller",
    )
    check_all(
        label[label] == label,
        lambda v: f"label[{v}]={label[v]}, but label[{label[v]}]={label[label[v]]}: a label must name itself",
    )


def _check_chunk(chunk: EdgeChunk, label: np.ndarray) -> None:
    src_label, dst_label = label[chunk.src], label[chunk.dst]
    check_all(
        src_label == dst_label,
        lambda i: (
            f"edge {chunk.src[i]} -> {chunk.dst[i]} joins labels {src_label[i]} and {dst_label[i]}: "
            "one component is split"
        ),
    )


def _check_not_merged(graph: Graph, label: np.ndarray, num_labels: int) -> None:
    piece, num_pieces = contract(graph)
    if num_pieces == num_labels:
        return
    # The label and the piece of the label's own vertex agree everywhere unless a component hangs on a foreign label.
    check_all(
        piece == piece[label],
        lambda v: (
            f"label[{v}]={label[v]}, but no path joins {v} and {label[v]}: "
            f"{num_pieces} components were merged into {num_labels}"
        ),
    )


def contract(graph: Graph) -> tuple[np.ndarray, int]:
    """Return which piece each vertex belongs to after every edge has been contracted, and the number of pieces."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    piece, num_pieces = np.arange(graph.num_vertices), graph.num_vertices
    for chunk in edge_chunks(graph):
        src, dst = piece[chunk.src], piece[chunk.dst]
        is_open = src != dst
        if not is_open.any():
            continue
        ends = (src[is_open], dst[is_open])
        matrix = coo_array((np.ones(len(ends[0])), ends), shape=(num_pieces, num_pieces))
        num_pieces, merged = connected_components(matrix, directed=False)
        piece = merged[piece]
    return piece, int(num_pieces)
