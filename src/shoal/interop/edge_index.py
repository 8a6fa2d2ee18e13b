# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric's ``edge_index``: an array of 2 x E whose rows are sources and destinations.

Undirected graphs are kept there in both directions, loops once, as they are in shoal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal import arrays
from shoal.errors import GraphError
from shoal.interop.edges import EdgeArrays, stored_edges

if TYPE_CHECKING:
    from shoal.graph import Graph


class EdgeIndex(NamedTuple):
    """The edges as PyTorch Geometric has them."""

    edge_index: np.ndarray
    edge_weight: np.ndarray | None


def read(edge_index: Any, edge_weight: Any, num_nodes: int | None) -> EdgeArrays:
    """Return the edges of a 2 x E array, or of an object that has one and perhaps ``edge_weight`` and ``num_nodes``."""
    if hasattr(edge_index, "edge_index"):
        data = edge_index
        edge_index = data.edge_index
        edge_weight = getattr(data, "edge_weight", None) if edge_weight is None else edge_weight
        num_nodes = getattr(data, "num_nodes", None) if num_nodes is None else num_nodes
    both = arrays.as_array("edge_index", edge_index, num_dimensions=2)
    if both.shape[0] != 2:
        raise GraphError(f"edge_index has the shape {both.shape}; it must be 2 x the number of edges")
    return EdgeArrays(both[0], both[1], edge_weight, num_nodes, is_directed=True)


def write(graph: Graph) -> EdgeIndex:
    """Return arrays of their own, which may be written to."""
    src, dst, weights = stored_edges(graph)
    return EdgeIndex(np.stack([src, dst]).astype(np.int64, copy=False), None if weights is None else weights.copy())
