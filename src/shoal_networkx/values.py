# SPDX-License-Identifier: Apache-2.0
"""An attribute of all edges, which in NetworkX may be anything, as an array of numbers, or why it is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Whole numbers from here on are not exact in a float64, in which lengths of paths are computed.
_EXACT = 2**53
_INT32 = 2**31


@dataclass(frozen=True)
class EdgeValues:
    """One value for each edge, parallel ones one after the other.

    Parameters
    ----------
    numbers : int32 or float64; None where values are no numbers
    kinds : the types of the values
    trouble : why there are no numbers
    values : what is there, where the numbers do not say it
    """

    numbers: np.ndarray | None
    kinds: frozenset[type]
    trouble: str | None = None
    values: list[Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all values are ints."""
        return self.kinds <= {int}

    def as_numbers(self) -> EdgeValues:
        """Return the values if they are numbers."""
        if self.trouble:
            raise NotImplementedError(self.trouble)
        return self

    def as_lengths(self, num_nodes: int, any_sign: bool = False) -> EdgeValues:
        """Return the values if NetworkX's sums of them have one type, and are numbers, however long a path is."""
        numbers = self.as_numbers().numbers
        if len(self.kinds) > 1:
            raise NotImplementedError("weights are ints and floats: lengths would be now the one, now the other")
        if numbers is None or not numbers.size:
            return self
        if numbers.min() < 0 and not any_sign:
            raise NotImplementedError(f"the weight {numbers.min()} is negative")
        most = max(float(numbers.max()), -float(numbers.min()))
        if most * num_nodes >= (_EXACT if self.is_whole else np.finfo(np.float64).max):
            raise NotImplementedError(f"paths of edges with weights as large as {most:g} may be too long to be exact")
        return self

    def least(self, parallels: np.ndarray | None) -> np.ndarray:
        """Return the smallest value of the edges to each neighbour."""
        return self._reduced(np.minimum, parallels)

    def total(self, parallels: np.ndarray | None) -> np.ndarray:
        """Return the sum of the values of the edges to each neighbour."""
        return self._reduced(np.add, parallels)

    def _reduced(self, combine: np.ufunc, parallels: np.ndarray | None) -> np.ndarray:
        assert self.numbers is not None
        if parallels is None or not parallels.size:
            return self.numbers
        return combine.reduceat(self.numbers, np.cumsum(parallels) - parallels)


def read_values(found: Iterable[Any], name: Any) -> EdgeValues:
    """Return values that edges have, as numbers if that is what they are."""
    values = list(found)
    kinds = frozenset(map(type, values))
    numbers, trouble = _as_floats(values, kinds)
    if numbers is None:
        return EdgeValues(None, kinds, f"weight={name!r}: edges have {trouble}", values)
    if kinds <= {int} and np.abs(numbers).max(initial=0) < _INT32:
        numbers = numbers.astype(np.int32)
    return EdgeValues(numbers, kinds, None, values if len(kinds) > 1 else None)  # ints among floats stay ints


def _as_floats(values: list[Any], kinds: frozenset[type]) -> tuple[np.ndarray | None, str]:
    """Return values as floats, or what is wrong with those that are not all exact numbers."""
    if not kinds <= {int, float}:
        return None, f"values of the type {', '.join(sorted(kind.__name__ for kind in kinds - {int, float}))}"
    too_large = "whole numbers among values of 2**53 or more"
    try:
        numbers = np.array(values, np.float64)
    except OverflowError:
        return None, too_large
    if not np.isfinite(numbers).all():
        return None, "values that are not finite"
    if int in kinds and np.abs(numbers).max() >= _EXACT:
        return None, too_large
    return numbers, ""
