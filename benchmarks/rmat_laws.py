# SPDX-License-Identifier: Apache-2.0
"""What is to be expected of an R-MAT graph of any scale, in closed form, so that nothing has to be drawn.

An edge falls into a quarter of the matrix with the probabilities a, b, c, d, level by level.  So the ends of edges that
a vertex has are nearly Poisson, with a mean that depends only on how many bits of its id are set; and how often the
same pair is drawn, on how often each quarter was taken.  With b = c rows and columns are alike.
"""

from __future__ import annotations

import math

import numpy as np

A, B, D = 0.57, 0.19, 0.05


def linked_part(scale: int, edge_factor: int) -> float:
    """Return which part of the vertices have edges."""
    weights, means = _vertices(scale, edge_factor)
    return float(1 - weights @ np.exp(-means))


def stored_part(scale: int, edge_factor: int) -> float:
    """Return which part of the edges drawn are left without copies, each stored in the rows of both ends."""
    edges = edge_factor * 2.0**scale
    found = 0.0
    for i in range(scale + 1):
        for j in range(scale + 1 - i):
            # i times into a, j times into d, the rest into b or c: 2**rest cells are alike.
            rest = scale - i - j
            cells = math.comb(scale, i) * math.comb(scale - i, j) * 2.0**rest
            found += cells * -math.expm1(-2 * edges * A**i * D**j * B**rest)
    return found / (2 * edges)


def border_part(scale: int, edge_factor: int, num_devices: int) -> float:
    """Return which part of the stored edges lead to a vertex that no other edge of the same device leads to.

    Each device has the rows of vertices that are drawn; of several edges to a vertex one counts.
    """
    weights, means = _vertices(scale, edge_factor)
    parts = num_devices * -np.expm1(-means / num_devices)
    return float(weights @ parts / (2 * edge_factor * stored_part(scale, edge_factor)))


def _vertices(scale: int, edge_factor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of the vertices with each number of bits set, and the ends of edges that they have."""
    ones = np.arange(scale + 1)
    weights = np.array([math.comb(scale, k) for k in ones.tolist()]) / 2.0**scale
    return weights, 2 * edge_factor * 2.0**scale * (A + B) ** (scale - ones) * (B + D) ** ones
