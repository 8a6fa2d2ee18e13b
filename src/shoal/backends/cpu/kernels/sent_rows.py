# SPDX-License-Identifier: Apache-2.0
"""Rows of edges on their way: how long those of some vertices are, and their elements, one row behind the other."""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative


@compiled()
def measure_rows(vertices, indptr, lengths):
    """Write the length of each vertex's row, 0 for what is no vertex; return the length of all."""
    total = np.int64(0)
    for i in range(vertices.shape[0]):
        length = np.int64(0)
        vertex = np.int64(vertices[i])
        if vertex >= 0:
            length = np.int64(indptr[nonnegative(vertex + 1)]) - np.int64(indptr[nonnegative(vertex)])
        lengths[i] = length
        total += length
    return total


@compiled()
def copy_rows_of(vertices, indptr, elements, target):
    """Write the elements of the vertices' rows, one row behind the other."""
    place = np.int64(0)
    for i in range(vertices.shape[0]):
        vertex = np.int64(vertices[i])
        if vertex >= 0:
            begin = np.int64(indptr[nonnegative(vertex)])
            length = np.int64(indptr[nonnegative(vertex + 1)]) - begin
            for k in range(length):
                target[nonnegative(place + k)] = elements[nonnegative(begin + k)]
            place += length


@compiled()
def place_rows(lengths, begin, places):
    """Write where each row begins, the first at ``begin``, and behind them where the last one ends."""
    places[0] = begin
    for i in range(lengths.shape[0]):
        places[i + 1] = places[i] + lengths[i]
