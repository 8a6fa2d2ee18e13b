# SPDX-License-Identifier: Apache-2.0
"""Scratch: what each thread notes while it is at a vertex, for operators that look at whole lists of neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.backends.loops.flow import Flow


@dataclass(frozen=True)
class ScratchSizes:
    """The lengths of a thread's rows: marks of vertices or entries of a table, keys, and their sums."""

    marks: int
    keys: int
    totals: int

    @property
    def nbytes(self) -> int:
        """Bytes of one thread's rows."""
        return 4 * self.marks + 8 * (self.keys + self.totals)

    def shapes(self, num_threads: int) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Return the shapes and types of the arrays of all threads."""
        lengths = ((self.marks, np.int32), (self.keys, np.int64), (self.totals, np.float64))
        return [((num_threads, length), np.dtype(dtype)) for length, dtype in lengths]


def scratch_sizes(flow: Flow, num_vertices: int, longest_out: int, longest_in: int) -> ScratchSizes:
    """Return the lengths for a step, given the vertices of a device and its longest lists."""
    marks = keys = totals = 0
    if flow.intersects:
        marks, keys = num_vertices, longest_out
    if flow.tallies:
        table = 1 << max((2 * longest_in - 1).bit_length(), 1)  # as `table_bits` has it
        marks, keys, totals = max(marks, table), max(keys, 2 * longest_in), longest_in
    return ScratchSizes(marks, keys, totals)
