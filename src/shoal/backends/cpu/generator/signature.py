# SPDX-License-Identifier: Apache-2.0
"""The parameters of a generated loop and their types."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.program import Constant, Field

#: Parameters of every loop, before the program's fields and the partial values of its reductions.
LOOP_PARAMETERS = (
    "thread", "num_threads", "control", "work", "trace", "levels", "knobs",
    "indptr", "indices", "weights", "in_indptr", "in_indices", "in_weights",
    "queue", "bitmap_a", "bitmap_b", "remaining", "outbox", "blocks", "links", "bins", "published",
)  # fmt: skip


def numba_signature(
    fields: dict[str, Field],
    dtypes: dict[str, np.dtype],
    partials: dict[str, np.dtype],
    vertex: np.dtype,
    edge: np.dtype,
    weight: np.dtype | None,
) -> Any:
    """Return the type of a loop for the given element types."""
    from numba import from_dtype, types

    def array(dtype: Any, ndim: int = 1, readonly: bool = False) -> Any:
        return types.Array(from_dtype(np.dtype(dtype)), ndim, "C", readonly=readonly)

    graph = [array(edge, readonly=True), array(vertex, readonly=True), array(weight or np.int32, readonly=True)]
    bitmap, words = array(np.uint64), array(np.int64)
    fixed = [
        types.int64, types.int64, words, words, array(np.int64, 2), words, array(np.float64),
        *graph, *graph,
        array(vertex), bitmap, bitmap, bitmap, array(vertex, 2), array(vertex, 2), words, array(np.int64, 2), words,
    ]  # fmt: skip
    own = []
    for name, declared in fields.items():
        if isinstance(declared, Constant) and not declared.is_array:
            own.append(from_dtype(dtypes[name]))
        else:
            ndim = 2 if getattr(declared, "width", None) else 1
            own.append(array(dtypes[name], ndim, readonly=isinstance(declared, Constant)))
    return types.void(*fixed, *own, *(array(dtype) for dtype in partials.values()))
