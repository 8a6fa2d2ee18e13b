# SPDX-License-Identifier: Apache-2.0
"""Polynomials of the features of a frontier: how features are scaled, and the terms of a degree.

Degrees and their ranges count by their logarithm, since they lie orders of magnitude apart; Gini coefficient and
entropy as they are.  What remains goes onto [-1, 1] by the range trained on.  Outside that range a polynomial of degree
4 says anything at all, so features beyond it count as its ends.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from shoal.model.features import FEATURES

#: Features before this one count by their logarithm: degrees, which are never below 0.
NUM_DEGREES = FEATURES.index("gini")
#: Where all samples had the same value, a feature tells nothing; its range is this instead of 0.
_LEAST_SPAN = 1e-9


def flatten(features: np.ndarray) -> np.ndarray:
    """Return features with the logarithm of those that are degrees; one row or many."""
    flat = np.array(features, np.float64)
    flat[..., :NUM_DEGREES] = np.log2(1 + flat[..., :NUM_DEGREES])
    return flat


def scale(flat: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return flattened features in [-1, 1]; what lies beyond the range counts as its end."""
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, _LEAST_SPAN)
    return np.clip((flat - middle) / half, -1, 1)


def num_terms(degree: int) -> int:
    """Return how many coefficients a polynomial of a degree has."""
    return math.comb(len(FEATURES) + degree, degree)


def degree_of(num_coefficients: int) -> int | None:
    """Return the degree of a polynomial with so many coefficients; None if there is none."""
    return next((degree for degree in range(7) if num_terms(degree) == num_coefficients), None)


@functools.cache
def _factors(degree: int) -> np.ndarray:
    """Return for each term the places in (1, x_0, x_1, ...) whose product it is; the first is the constant."""
    places = itertools.combinations_with_replacement(range(len(FEATURES) + 1), degree)
    return np.array(list(places), np.int64).reshape(num_terms(degree), degree)


def terms(scaled: np.ndarray, degree: int) -> np.ndarray:
    """Return the terms of scaled features, one row or many."""
    extended = np.concatenate([np.ones((*scaled.shape[:-1], 1)), scaled], axis=-1)
    return extended[..., _factors(degree)].prod(axis=-1)
