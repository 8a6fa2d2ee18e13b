# SPDX-License-Identifier: Apache-2.0
"""An array that is appended to and whose final size can only be guessed."""

from __future__ import annotations

from typing import Any

import numpy as np


class GrowingArray:
    """One-dimensional; memory that is reserved but never written costs no pages, so a generous guess is free."""

    def __init__(self, dtype: Any) -> None:
        self._array = np.empty(0, dtype)
        self._size = 0

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def reserve(self, count: int, guessed_total: int = 0) -> np.ndarray:
        """Return room for ``count`` more elements; `commit` makes those that were written part of the array."""
        if self._size + count > self._array.size:
            capacity = max(self._size + count, guessed_total, self._size * 3 // 2)
            self._move_to(np.empty(capacity, self.dtype))
        return self._array[self._size : self._size + count]

    def commit(self, count: int) -> None:
        """Keep the first ``count`` elements of the room last reserved."""
        self._size += count

    def append(self, values: np.ndarray, guessed_total: int = 0) -> None:
        """Copy ``values`` to the end."""
        self.reserve(values.size, guessed_total)[:] = values
        self.commit(values.size)

    def append_numbers(self, values: np.ndarray, has_decimals: bool, guessed_total: int = 0) -> None:
        """Append float64 values; an array of int32 becomes one of float64 when they do not fit."""
        fits = values.size == 0 or (not has_decimals and values.min() >= -(2**31) and values.max() < 2**31)
        if self.dtype == np.int32 and not fits:
            self.widen(np.float64)
        self.append(values, guessed_total)

    def widen(self, dtype: Any) -> None:
        """Change the type of all elements."""
        self._move_to(np.empty(self._array.size, dtype))

    def _move_to(self, target: np.ndarray) -> None:
        target[: self._size] = self._array[: self._size]
        self._array = target

    def finish(self) -> np.ndarray:
        """Return what was committed."""
        return self._array[: self._size]
