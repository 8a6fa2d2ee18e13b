# SPDX-License-Identifier: Apache-2.0
"""The rows that the CUDA backend builds together: all edges once, within the capacity, in keys of 64 bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.backends.cuda.ranges import Buckets, choose_capacity

pytestmark = pytest.mark.host_only("cuts rows into ranges: nothing is run")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.integers(1, 200))
def test_ranges_hold_every_edge_once_and_fit(counts, capacity):
    buckets = Buckets.of(len(counts))
    counts = np.array(counts)
    ranges = buckets.plan(counts, capacity)
    assert [part.num_keys for part in ranges] == [counts[part.first_row : part.end_row].sum() for part in ranges]
    assert sum(part.num_keys for part in ranges) == counts.sum()
    assert all(before.end_row <= after.first_row for before, after in itertools.pairwise(ranges))
    assert all(part.num_keys <= capacity or part.num_rows == 1 for part in ranges)


@pytest.mark.parametrize("num_vertices", [0, 1, 2, 3, 2**16, 2**16 + 1, 2**31 - 1, 2**33 + 7, 2**40])
def test_rows_of_a_range_and_an_id_fit_in_a_key(num_vertices):
    buckets = Buckets.of(num_vertices)
    assert buckets.num_buckets <= 2**16
    assert buckets.num_buckets << buckets.bits >= num_vertices
    ranges = buckets.plan(np.ones(buckets.num_buckets, np.int64), capacity=10**9)
    assert sum(part.num_keys for part in ranges) == buckets.num_buckets
    for part in ranges:
        assert part.end_row <= max(num_vertices, 0)
        assert ((part.num_rows - 1) << buckets.vertex_bits) + max(num_vertices - 1, 0) < 2**64


def test_sorting_a_range_takes_half_of_the_csr():
    int32, int64, float64 = (np.dtype(name) for name in ("int32", "int64", "float64"))
    assert choose_capacity(8 << 20, int32, None) == 1 << 20
    assert choose_capacity(8 << 20, int64, None) == 2 << 20
    assert choose_capacity(2**30, int32, float64) * 64 <= 2**30 * 12 // 2
    assert choose_capacity(0, int32, None) > 0
