# SPDX-License-Identifier: Apache-2.0
"""Fit a polynomial to supersteps that were timed, so that its relative error is least (RMSRE; GUM, equation 3).

The loss is the mean of ((g - t) / t)^2.  g is linear in its coefficients, so the least is found by solving weighted
normal equations, each sample with the weight 1 / t^2: no descent, no seed, and the same answer each time.  Samples are
far fewer than what 210 terms can follow, so coefficients but the constant are held small by a ridge.  How small is
found by leaving out one graph after the other, never single supersteps: those of one graph are alike, and to foretell
one by its neighbours is no achievement.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.errors import ArgumentError
from shoal.model import polynomial

#: The degree that the paper takes.
DEGREE = 4
#: Ridges that are tried; results hardly change within a factor of 3.
RIDGES = tuple(10.0**power for power in np.arange(-4, 2.5, 0.5))


def rmsre(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Return the root mean squared relative error.

    Examples
    --------
    >>> rmsre(np.array([1.2, 1.6]), np.array([1.0, 2.0]))
    0.2
    """
    return round(float(np.sqrt(np.mean((predicted / measured - 1) ** 2))), 12)


class PolynomialFit:
    """A polynomial of the features, fitted to samples; `predict` keeps to the range that they had."""

    def __init__(self, features: np.ndarray, seconds: np.ndarray, ridge: float, degree: int = DEGREE) -> None:
        flat = polynomial.flatten(features)
        self.degree = degree
        self.low, self.high = flat.min(axis=0), flat.max(axis=0)
        self.least, self.most = float(seconds.min()), float(seconds.max())
        rows = self._terms(features) / seconds[:, None]
        self.coefficients = _solve(rows.T @ rows, rows.sum(axis=0), ridge)

    def _terms(self, features: np.ndarray) -> np.ndarray:
        return polynomial.terms(polynomial.scale(polynomial.flatten(features), self.low, self.high), self.degree)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return the seconds of each row of features."""
        return np.clip(self._terms(features) @ self.coefficients, self.least, self.most)


def choose_ridge(
    features: np.ndarray, seconds: np.ndarray, groups: Sequence[str] | np.ndarray, degree: int = DEGREE
) -> float:
    """Return the ridge by which left-out groups of samples are foretold best."""
    names = np.unique(groups)
    if len(names) < 2:
        raise ArgumentError(f"samples are of {len(names)} graph; it must be at least 2, so that one can be left out")
    flat = polynomial.flatten(features)
    scaled = polynomial.scale(flat, flat.min(axis=0), flat.max(axis=0))
    rows = polynomial.terms(scaled, degree) / seconds[:, None]
    squares, totals = rows.T @ rows, rows.sum(axis=0)
    errors = np.zeros(len(RIDGES))
    for name in names:
        left = rows[np.asarray(groups) == name]
        others, sums = squares - left.T @ left, totals - left.sum(axis=0)
        errors += [np.sum((left @ _solve(others, sums, ridge) - 1) ** 2) for ridge in RIDGES]
    return RIDGES[int(errors.argmin())]


def _solve(squares: np.ndarray, totals: np.ndarray, ridge: float) -> np.ndarray:
    """Return coefficients; the penalty of all but the constant is in units of the constant's own square."""
    penalty = np.full(len(totals), ridge * squares[0, 0] / len(totals))
    penalty[0] = 0
    return np.linalg.solve(squares + np.diag(penalty), totals)


def fit_polynomial(
    features: np.ndarray, seconds: np.ndarray, groups: Sequence[str] | np.ndarray, degree: int = DEGREE
) -> PolynomialFit:
    """Fit a polynomial with the ridge that foretells graphs best which it has not seen."""
    return PolynomialFit(features, seconds, choose_ridge(features, seconds, groups, degree), degree)
