# SPDX-License-Identifier: Apache-2.0
"""What is kept of an answer: a few numbers that no wrong answer is likely to share with a right one.

Libraries give distances, levels or parents, name components as they like and scale centralities differently; all of it
becomes numbers that do not depend on such choices.  Two answers agree if the numbers they have in common do.
"""

from __future__ import annotations

import math

import numpy as np

Answer = dict[str, float]


def from_distances(distance: np.ndarray, is_reached: np.ndarray) -> Answer:
    """Summarize a search by the vertices it reached and their distances."""
    reached = distance[is_reached]
    return {
        "reached": int(reached.size),
        "distance_sum": float(reached.sum(dtype=np.float64)),
        "largest_distance": float(reached.max(initial=0)),
    }


def from_parents(parent: np.ndarray, source: int) -> Answer:
    """Summarize a breadth-first search by its tree; ``parent`` is negative where nothing was reached.

    The depth of all vertices is found by doubling: a vertex that knows its distance to an ancestor adds the distance
    that the ancestor knows.  The source is its own ancestor at distance 0.
    """
    is_reached = parent >= 0
    is_reached[source] = True
    ancestor = np.where(is_reached, parent, np.arange(parent.size))
    ancestor[source] = source
    depth = (ancestor != np.arange(parent.size)).astype(np.int64)
    while (step := depth[ancestor]).any():
        depth += step
        ancestor = ancestor[ancestor]
    return from_distances(depth, is_reached)


def from_labels(label: np.ndarray) -> Answer:
    """Summarize components by their number and sizes."""
    _, sizes = np.unique(label, return_counts=True)
    return {
        "components": int(sizes.size),
        "largest_component": int(sizes.max(initial=0)),
        "square_sum": float(np.square(sizes, dtype=np.float64).sum()),
    }


def from_scores(score: np.ndarray) -> Answer:
    """Summarize ranks or centralities by shares of their sum: libraries normalise them differently."""
    total = float(score.sum())
    share = score / total if total > 0 else score
    positions = np.linspace(0.0, 1.0, share.size)
    return {
        "largest_share": float(share.max(initial=0)),
        "first_share": float(share[0]) if share.size else 0.0,
        "share_by_position": float(positions @ share),
        "share_norm": float(np.linalg.norm(share)),
    }


def agree(left: Answer, right: Answer, tolerance: float) -> bool:
    """Whether two answers are the same within a relative tolerance in everything they both state."""
    # An absolute slack of 1e-12 lets a share of exactly 0 differ by rounding.
    slack = 1e-12 if tolerance else 0.0
    return all(
        math.isclose(left[key], right[key], rel_tol=tolerance, abs_tol=slack) for key in left.keys() & right.keys()
    )
