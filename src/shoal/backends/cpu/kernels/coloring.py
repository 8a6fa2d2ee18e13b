# SPDX-License-Identifier: Apache-2.0
"""Colours of vertices, given one after the other.  One thread: a colour follows from those given before."""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative


@compiled()
def color_in_order(indptr, indices, order, taken_by, color):
    """Fill ``color``, which is -1 everywhere; ``taken_by`` says for each colour which vertex last found it taken."""
    for position in range(order.shape[0]):
        vertex = nonnegative(order[position])
        for edge in range(nonnegative(indptr[vertex]), indptr[vertex + 1]):
            theirs = color[nonnegative(indices[edge])]
            if theirs >= 0:
                taken_by[theirs] = vertex
        free = 0
        while taken_by[free] == vertex:
            free += 1
        color[vertex] = free
