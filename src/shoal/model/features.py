# SPDX-License-Identifier: Apache-2.0
"""The six features of a frontier by which the cost of its edges is told (GUM, table I), in one pass over its degrees.

Averages and ranges are exact.  Gini coefficient and entropy are of the out-degrees, whose edges a superstep looks
along, and take all degrees of a bin to be the bin's mean.  Where bins are as wide as an eighth (see
`shoal.backends.cpu.kernels.features`) the Gini coefficient comes out too low by less than `GINI_ERROR`, and the entropy
too high by less than `ENTROPY_ERROR` over the logarithm of the number of vertices:

    the true Gini coefficient is that of the means plus what bins have inside, each weighed by its part of the vertices
    and of the edges; values between a and r a have at most (sqrt r - 1) / (sqrt r + 1)
    the entropy is ln S - sum d ln d / S; in a bin the mean of d ln d is over that of the mean by at most
    mean ln E[d^2] / E[d]^2, and that quotient is at most (1 + r)^2 / 4 r (Kantorovich)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.errors import ArgumentError

#: In the order of a feature vector.
FEATURES = ("mean_in_degree", "mean_out_degree", "in_degree_range", "out_degree_range", "gini", "entropy")
#: The widest bin begins at a power of two: its last degree is less than 9/8 of the first.
_WIDEST = 9 / 8
GINI_ERROR = (math.sqrt(_WIDEST) - 1) / (math.sqrt(_WIDEST) + 1)
ENTROPY_ERROR = math.log((1 + _WIDEST) ** 2 / (4 * _WIDEST))


def frontier_features(indptr: Any, queue: Any, in_indptr: Any | None = None) -> np.ndarray:
    """Return the features of a frontier as float64, in the order of `FEATURES`; zeros if it is empty.

    Parameters
    ----------
    indptr : of the graph
    queue : ids of the frontier's vertices
    in_indptr : ``indptr`` of the reversed graph; not needed where that is the same

    Examples
    --------
    >>> frontier_features([0, 3, 4, 4], [0, 1]).round(3).tolist()
    [2.0, 2.0, 2.0, 2.0, 0.25, 0.811]
    """
    from shoal.backends.cpu.kernels import features as kernels

    rows = _as_ids("indptr", indptr)
    in_rows = rows if in_indptr is None else _as_ids("in_indptr", in_indptr)
    vertices = _as_ids("queue", queue)
    if len(in_rows) != len(rows):
        raise ArgumentError(f"in_indptr has {len(in_rows)} entries; it must have as many as indptr: {len(rows)}")
    if not len(vertices):
        return np.zeros(len(FEATURES))
    if vertices.min() < 0 or vertices.max() >= len(rows) - 1:
        raise ArgumentError(f"queue has {vertices.min()} to {vertices.max()}; vertices are from 0 to {len(rows) - 2}")
    counts, sums = np.zeros((2, kernels.NUM_BINS), np.int64)
    extremes = np.zeros(kernels.NUM_EXTREMES, np.int64)
    kernels.bin_degrees(rows, in_rows, vertices, counts, sums, extremes)
    return np.array([
        extremes[kernels.SUM_IN] / len(vertices),
        sums.sum() / len(vertices),
        extremes[kernels.MOST_IN] - extremes[kernels.LEAST_IN],
        extremes[kernels.MOST_OUT] - extremes[kernels.LEAST_OUT],
        *unevenness(counts, sums),
    ])  # fmt: skip


def unevenness(counts: np.ndarray, sums: np.ndarray) -> tuple[float, float]:
    """Return Gini coefficient and relative entropy of values in ascending bins: how many each has, and their sum.

    With a bin for every value both are exact.  Values that are all 0 are even: 0 and 1, as is a single one.
    """
    filled = counts > 0
    counts, sums = counts[filled].astype(np.float64), sums[filled].astype(np.float64)
    num_values, total = counts.sum(), sums.sum()
    if num_values == 1 or total == 0:
        return 0.0, 1.0
    # Lorenz's curve is a chain of straight lines; twice the area between it and the diagonal.
    shares = np.cumsum(sums) / total
    below = np.append(0.0, shares[:-1])
    gini = 1 - ((shares + below) * counts).sum() / num_values
    heavy = sums > 0
    entropy = math.log(total) - (sums[heavy] * np.log(sums[heavy] / counts[heavy])).sum() / total
    return float(max(gini, 0.0)), float(min(max(entropy, 0.0) / math.log(num_values), 1.0))


def _as_ids(name: str, values: Any) -> np.ndarray:
    """Return ids or offsets as an array of int32 or int64."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(f"{name} is an array of {array.dtype} with {array.ndim} dimensions; it must list integers")
    is_known = array.dtype in (np.int32, np.int64)
    return np.ascontiguousarray(array if is_known else array.astype(np.int64))
