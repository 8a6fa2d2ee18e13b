# SPDX-License-Identifier: Apache-2.0
"""Selection: which vertices of a frontier go to which device, given how many edges each is to have.

The frontier is cut into consecutive ranges, one for each device in the order of their numbers, since a vertex's edges
stay together.  Each cut is the end of a vertex that is nearest to where the shares would have it.  GUM, algorithm 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import ArgumentError


def select(prefix_degrees: np.ndarray, shares: Any) -> np.ndarray:
    """Return the cuts of a frontier: device j gets its vertices from ``cuts[j]`` to before ``cuts[j + 1]``.

    Both ends of a device's range are off by at most half the degree of the vertex there.  A device without a share
    gets no vertex; vertices without edges go along with those before them.

    Parameters
    ----------
    prefix_degrees : for each vertex of the frontier, the edges of it and all before it
    shares : edges for each device, which sum to the edges of the frontier

    Examples
    --------
    >>> select(np.cumsum([5, 1, 1, 1, 4]), [6, 2, 4])
    array([0, 2, 4, 5])
    """
    ends = np.cumsum(shares, dtype=np.int64)
    num_vertices = len(prefix_degrees)
    num_edges = int(prefix_degrees[-1]) if num_vertices else 0
    if ends[-1] != num_edges:
        raise ArgumentError(f"shares sum to {ends[-1]}; they must sum to the {num_edges} edges of the frontier")
    cuts = np.zeros(len(ends) + 1, np.int64)
    # Nobody cuts where nothing is shared out yet, or vertices without edges would go to a device without a share.
    is_inside = ends > 0
    cuts[1:][is_inside] = _nearest(prefix_degrees, ends[is_inside])
    cuts[-1] = num_vertices
    return cuts


def _nearest(prefix_degrees: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return how many vertices have together as nearly ``ends`` edges as possible; the fewer, if two are as near."""
    below = np.searchsorted(prefix_degrees, ends, side="right")
    above = np.minimum(below + 1, len(prefix_degrees))
    edges_below = np.where(below > 0, prefix_degrees[below - 1], 0)
    return np.where(prefix_degrees[above - 1] - ends < ends - edges_below, above, below)
