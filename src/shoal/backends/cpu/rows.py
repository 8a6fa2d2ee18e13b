# SPDX-License-Identifier: Apache-2.0
"""Rows of fields on their way from one array to another, a thread's share of them."""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.kernels.distribution import put_rows


def copy_rows(
    thread: int, num_threads: int, source: np.ndarray, source_rows: np.ndarray, target: np.ndarray,
    target_rows: np.ndarray,
) -> None:  # fmt: skip
    """Copy one thread's share of ascending rows to as many others."""
    if is_segment(source_rows) and is_segment(target_rows):
        here, there = (slice(int(rows[0]), int(rows[-1]) + 1) for rows in (source_rows, target_rows))
        copy_share(thread, num_threads, plain(source[here]), plain(target[there]))
    else:
        put_rows(thread, num_threads, plain(source), source_rows, target_rows, row_width(source), plain(target))


def is_segment(ascending: np.ndarray) -> bool:
    """Whether ascending numbers are all of those from the first to the last."""
    return len(ascending) > 0 and int(ascending[-1]) - int(ascending[0]) == len(ascending) - 1


def copy_share(thread: int, num_threads: int, source: np.ndarray, target: np.ndarray) -> None:
    """Copy one thread's share; NumPy's copy writes past the cache, which a compiled loop does not."""
    share = slice(thread * len(source) // num_threads, (thread + 1) * len(source) // num_threads)
    np.copyto(target[share], source[share])


def plain(array: np.ndarray) -> np.ndarray:
    """Return an array's elements in a row, as numbers of their size: copying needs no other type."""
    return array.reshape(-1).view(f"u{array.itemsize}")


def row_width(array: np.ndarray) -> int:
    """Return the elements of a vertex."""
    return array.shape[1] if array.ndim > 1 else 1
