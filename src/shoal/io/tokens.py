# SPDX-License-Identifier: Apache-2.0
"""Tokens that the compiled parser leaves to pyarrow: labels, and numbers it cannot read exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.backends.cpu.kernels.text import LARGEST_EXACT, copy_tokens
from shoal.io.fields import show, unquote

#: Makes an error for the line of a byte of the block.
Fail = Callable[[int, str], Exception]


def gather_tokens(text: np.ndarray, bounds: np.ndarray) -> Any:
    """Return the tokens between the (start, end) in ``bounds`` as an Arrow array of bytes, without their quotes."""
    import pyarrow as pa

    starts, ends = np.ascontiguousarray(bounds[:, 0]), np.ascontiguousarray(bounds[:, 1])
    offsets = np.empty(starts.size + 1, np.int64)
    tokens = np.empty(int((ends - starts).sum()), np.uint8)
    copy_tokens(text, starts, ends, offsets, tokens)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(tokens)]
    return pa.Array.from_buffers(pa.large_binary(), starts.size, buffers)


def read_labels(text: np.ndarray, bounds: np.ndarray, fail: Fail) -> Any:
    """Return tokens as a dictionary-encoded Arrow array of strings."""
    import pyarrow as pa

    distinct = gather_tokens(text, bounds).dictionary_encode()
    try:
        names = distinct.dictionary.cast(pa.large_string())
    except pa.ArrowInvalid:
        position, token = _first_token(text, bounds, lambda token: not _is_utf8(token))
        raise fail(position, f"{show(token)} is not UTF-8 text") from None
    return pa.DictionaryArray.from_arrays(distinct.indices, names)


def read_weights(text: np.ndarray, bounds: np.ndarray, fail: Fail) -> np.ndarray:
    """Return tokens as float64, correctly rounded; refuse NaN, overflow and whole numbers that would be rounded."""
    import pyarrow as pa

    tokens = gather_tokens(text, bounds)
    try:
        tokens = tokens.cast(pa.large_string())
        weights = tokens.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        position, token = _first_token(text, bounds, lambda token: not _is_number(token))
        raise fail(position, f"{show(token)} is not a weight") from None
    wrong = np.flatnonzero(np.isnan(weights) | _is_inexact(tokens, weights))
    if wrong.size:
        start, end = bounds[wrong[0]]
        reason = "is not a weight" if np.isnan(weights[wrong[0]]) else "is too large for a weight"
        raise fail(int(start), f"{show(bytes(text[start:end]))} {reason}")
    return weights


def _is_inexact(tokens: Any, weights: np.ndarray) -> np.ndarray:
    """Find whole numbers that float64 rounds, and numbers that became infinite."""
    import pyarrow.compute as pc

    is_large = np.abs(weights) >= LARGEST_EXACT  # itself it was read already
    if not is_large.any():
        return is_large
    is_whole = pc.match_substring_regex(tokens, r"^[+-]?[0-9]+$").to_numpy(zero_copy_only=False)
    is_infinite = pc.match_substring_regex(tokens, r"^[+-]?[iI]").to_numpy(zero_copy_only=False)
    return is_large & (is_whole | (np.isinf(weights) & ~is_infinite))


def _first_token(text: np.ndarray, bounds: np.ndarray, is_wrong: Callable[[bytes], bool]) -> tuple[int, bytes]:
    for start, end in bounds.tolist():
        token = bytes(text[start:end])
        if is_wrong(token):
            return start, token
    raise AssertionError("pyarrow refused a token that looks right")


def _is_number(token: bytes) -> bool:
    """Say whether pyarrow reads a token as a number: what Python takes for one differs in blanks, signs and digits."""
    import pyarrow as pa

    try:
        pa.array([unquote(token)]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
