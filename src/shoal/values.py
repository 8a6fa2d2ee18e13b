# SPDX-License-Identifier: Apache-2.0
"""Which element types a program's fields may have, and which values these types can hold.

A value is taken over without changing it: a fraction is not cut off for an integer type, and a number beyond a type's
range is refused.  Only the precision of a float may be lost.  ``place`` says in messages which field it is about.
"""

from __future__ import annotations

import functools
import reprlib
from typing import Any

import numpy as np

from shoal.errors import ProgramError

#: Element types that compiled code has atomics for, and bool.
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def as_dtype(place: str, dtype: Any) -> np.dtype:
    """Return the element type that ``dtype`` names."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        found = None
    if found is None or found.name not in DTYPES or not found.isnative:
        raise ProgramError(f"{place}: dtype={shown(dtype)} is not allowed; allowed: vertex, {', '.join(DTYPES)}")
    return found


def as_number(place: str, value: Any, dtype: np.dtype) -> Any:
    """Return ``value`` as a number of type ``dtype``."""
    if isinstance(value, (np.ndarray, np.generic)) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, _NUMBERS) or not _holds(dtype, value):
        raise ProgramError(f"{place}={shown(value)} is not allowed; it must be {_describe(dtype)}")
    return dtype.type(value)


def as_numbers(place: str, value: Any, dtype: np.dtype, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return ``value`` as an array of ``shape`` (None: one dimension); one of type ``dtype`` already is not copied."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty(1, object)
    if array.size and array.dtype.kind not in "biuf":
        raise ProgramError(f"{place}={shown(value)} is not allowed; it must be an array, each item {_describe(dtype)}")
    if array.ndim != 1 if shape is None else array.shape != shape:
        allowed = "one dimension" if shape is None else f"shape {shape}"
        raise ProgramError(f"{place} has shape {array.shape}; it must be an array of {allowed}")
    if array.size and not np.can_cast(array.dtype, dtype):
        _check_items(place, array, dtype)
    return array.astype(dtype, copy=False)


def shown(value: Any) -> str:
    """Return a value as part of a message: on one line, and not long."""
    return " ".join(reprlib.repr(value).split())


@functools.cache
def _limits(dtype: np.dtype) -> tuple[Any, Any]:
    """Return the smallest and the largest finite number of a type, as numbers of Python."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _describe(dtype: np.dtype) -> str:
    low, high = _limits(dtype)
    if dtype.kind == "f":
        return f"a number of {dtype}: inf, nan, or from {low:g} to {high:g}"
    return f"a whole number of {dtype}: from {low} to {high}"


def _holds(dtype: np.dtype, value: Any) -> bool:
    low, high = _limits(dtype)
    if dtype.kind == "f" and (value != value or value in (np.inf, -np.inf)):
        return True
    return low <= value <= high and (dtype.kind == "f" or value == int(value))


def _check_items(place: str, array: np.ndarray, dtype: np.dtype) -> None:
    low, high = _limits(dtype)
    if dtype.kind == "f":
        is_wrong = np.isfinite(array) & ((array < low) | (array > high))
    else:
        # One more than the largest is a power of two: exact as a float, which the largest itself may not be.
        is_wrong = ~((array >= low) & (array < high + 1))
        if array.dtype.kind == "f":
            is_wrong |= array != np.floor(array)
    if is_wrong.any():
        position = tuple(int(i) for i in np.argwhere(is_wrong)[0])
        index = ", ".join(map(str, position))
        raise ProgramError(f"{place}[{index}]={array[position]} is not allowed; it must be {_describe(dtype)}")
