# SPDX-License-Identifier: Apache-2.0
"""Kernels that turn every edge from the end of lower to that of higher rank, each neighbour once, without loops.

Rows are those of ranks.  Threads take blocks of rows in turn, since degrees rise with the rank; each has a row of
``seen``, in which a neighbour's entry is the rank of the row that had it last.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative

# Rows that a thread takes at a time: of so many the last are no more than a thousandth of a large graph's edges.
ROWS = 64


@compiled()
def count_higher(thread, num_threads, indptr, indices, order, rank, seen, counts):
    """Write into ``counts[r + 1]`` how many neighbours of a higher rank the vertex of rank r has."""
    for block in range(thread * ROWS, order.shape[0], num_threads * ROWS):
        for row in range(block, min(block + ROWS, order.shape[0])):
            vertex = nonnegative(np.int64(order[row]))
            count = 0
            for edge in range(nonnegative(np.int64(indptr[vertex])), np.int64(indptr[vertex + 1])):
                other = nonnegative(np.int64(rank[nonnegative(np.int64(indices[edge]))]))
                if other > row and seen[thread, other] != row:
                    seen[thread, other] = row
                    count += 1
            counts[row + 1] = count


@compiled()
def list_higher(thread, num_threads, indptr, indices, order, rank, seen, new_indptr, new_indices):
    """Write the ranks of these neighbours into the rows; ``seen`` has been cleared."""
    for block in range(thread * ROWS, order.shape[0], num_threads * ROWS):
        for row in range(block, min(block + ROWS, order.shape[0])):
            vertex = nonnegative(np.int64(order[row]))
            place = nonnegative(np.int64(new_indptr[row]))
            for edge in range(nonnegative(np.int64(indptr[vertex])), np.int64(indptr[vertex + 1])):
                other = nonnegative(np.int64(rank[nonnegative(np.int64(indices[edge]))]))
                if other > row and seen[thread, other] != row:
                    seen[thread, other] = row
                    new_indices[place] = other
                    place += 1
