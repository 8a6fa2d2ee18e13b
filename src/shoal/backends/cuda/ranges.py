# SPDX-License-Identifier: Apache-2.0
"""Which rows of a CSR are built together, so that sorting their edges takes little memory beside the CSR."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Rows are counted in at most 2**16 buckets: half a megabyte of counters, which stays in the GPU's cache.
_BUCKET_NUMBER_BITS = 16
_KEY_BITS = 64
#: A range may have so many edges whatever the graph: below, launches matter and memory does not.
_MIN_CAPACITY = 2**16
#: Ranges are sized for sorting to take this part of what the CSR takes.
_SORTING_PART = 0.5
#: The key and its place in the sort's second buffer.
_BYTES_PER_KEY = 16
#: The key before and after the first of two sorts, its number there, and the second sort's copies of key and number.
_BYTES_PER_WEIGHTED_KEY = 56


class Range(NamedTuple):
    """Rows that are built together, and the number of their edges, copies included."""

    first_row: int
    end_row: int
    num_keys: int

    @property
    def num_rows(self) -> int:
        """Number of rows, empty ones too."""
        return self.end_row - self.first_row


class Buckets(NamedTuple):
    """Rows of a graph in buckets of ``2**bits``, and the bits that hold every vertex id."""

    num_vertices: int
    vertex_bits: int
    bits: int
    num_buckets: int

    @classmethod
    def of(cls, num_vertices: int) -> Buckets:
        """Return as many buckets as there are rows, or the number at which rows are counted together."""
        vertex_bits = max(1, (num_vertices - 1).bit_length())
        bits = max(0, vertex_bits - _BUCKET_NUMBER_BITS)
        return cls(num_vertices, vertex_bits, bits, max(1, -(-num_vertices >> bits)))

    def plan(self, num_edges: np.ndarray, capacity: int) -> list[Range]:
        """Join buckets to ranges of at most ``capacity`` edges (a single bucket may have more) that fit in a key.

        ``num_edges`` are the edges of each bucket; ranges without any are left out.
        """
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(num_edges, dtype=np.int64)])
        max_buckets = max(1, 1 << (_KEY_BITS - self.vertex_bits) >> self.bits)
        ranges, first = [], 0
        while first < self.num_buckets:
            fitting = int(np.searchsorted(starts, starts[first] + capacity, side="right")) - 1
            end = min(max(fitting, first + 1), first + max_buckets, self.num_buckets)
            rows = (first << self.bits, min(end << self.bits, self.num_vertices))
            ranges.append(Range(*rows, int(starts[end] - starts[first])))
            first = end
        return [part for part in ranges if part.num_keys]


def choose_capacity(num_edges: int, vertex_dtype: np.dtype, weight_dtype: np.dtype | None) -> int:
    """Return the edges of a range for which sorting takes no more than its part of a CSR of ``num_edges``."""
    weight_bytes = 0 if weight_dtype is None else weight_dtype.itemsize
    sorting_bytes = _BYTES_PER_KEY if weight_dtype is None else _BYTES_PER_WEIGHTED_KEY + weight_bytes
    csr_bytes = num_edges * (vertex_dtype.itemsize + weight_bytes)
    return max(_MIN_CAPACITY, int(csr_bytes * _SORTING_PART) // sorting_bytes)
