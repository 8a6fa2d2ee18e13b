# SPDX-License-Identifier: Apache-2.0
"""Kernels that spread a batch of edges over ranges of their sources, each of which fits in memory by itself.

Thread t takes the t-th of equal, contiguous pieces of the batch and has counters and cursors of its own, so that edges
keep their order.  An edge goes by its source; a mirrored one by its destination, too, turned round.  The range of id v
is ``range_of[v >> shift]``; with ``new_ids`` edges are written by others, which ascend as ids do.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative
from shoal.backends.cpu.kernels.generate import share


@compiled()
def count_groups(thread, num_threads, src, dst, is_mirrored, keeps_loops, shift, counts):
    """Count the edges to store of each 2**shift ids into ``counts[thread]``."""
    start, end = share(src.size, thread, num_threads)
    for i in range(start, end):
        u, v = src[i], dst[i]
        if u != v or keeps_loops:
            counts[thread, nonnegative(u >> shift)] += 1
        if u != v and is_mirrored:
            counts[thread, nonnegative(v >> shift)] += 1


@compiled()
def count_ranges(thread, num_threads, src, dst, is_mirrored, keeps_loops, shift, range_of, counts):
    """Count the edges that go to each range into ``counts[thread]``."""
    start, end = share(src.size, thread, num_threads)
    for i in range(start, end):
        u, v = src[i], dst[i]
        if u != v or keeps_loops:
            counts[thread, range_of[nonnegative(u >> shift)]] += 1
        if u != v and is_mirrored:
            counts[thread, range_of[nonnegative(v >> shift)]] += 1


@inner
def _put(cursors, thread, number, u, v, weights, new_ids, i, out_src, out_dst, out_weights):
    place = nonnegative(cursors[thread, number])
    cursors[thread, number] = place + 1
    if new_ids is None:
        out_src[place], out_dst[place] = u, v
    else:
        out_src[place], out_dst[place] = new_ids[nonnegative(u)], new_ids[nonnegative(v)]
    if weights is not None:
        out_weights[place] = weights[i]


@compiled()
def spread(
    thread, num_threads, src, dst, weights, new_ids, is_mirrored, keeps_loops, shift, range_of, cursors, out_src,
    out_dst, out_weights,
):  # fmt: skip
    """Put every edge where its range has room, at ``cursors[thread]``."""
    start, end = share(src.size, thread, num_threads)
    for i in range(start, end):
        u, v = src[i], dst[i]
        if u != v or keeps_loops:
            number = range_of[nonnegative(u >> shift)]
            _put(cursors, thread, number, u, v, weights, new_ids, i, out_src, out_dst, out_weights)
        if u != v and is_mirrored:
            number = range_of[nonnegative(v >> shift)]
            _put(cursors, thread, number, v, u, weights, new_ids, i, out_src, out_dst, out_weights)
