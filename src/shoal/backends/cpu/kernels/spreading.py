# SPDX-License-Identifier: Apache-2.0
"""Kernels that spread edges over ranges of their sources, each of which fits in memory by itself.

Thread t takes the t-th of equal, contiguous pieces of the edges and has counters of its own, or the buckets from
``cuts[t]`` to ``cuts[t + 1]``: nothing it writes is another's.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled
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
def copy_ends(thread, num_threads, src, dst, new_ids, out_src, out_dst):
    """Copy both ends of edges, as ``new_ids`` if there are any."""
    start, end = share(src.size, thread, num_threads)
    for i in range(start, end):
        if new_ids is None:
            out_src[i], out_dst[i] = src[i], dst[i]
        else:
            out_src[i], out_dst[i] = new_ids[nonnegative(src[i])], new_ids[nonnegative(dst[i])]


@compiled()
def gather_buckets(thread, num_threads, cuts, places, starts, keys, weights, out_keys, out_weights):
    """Put the keys of bucket b from ``starts[b]`` on; ``places[k, b]`` is where those of chunk k begin."""
    for bucket in range(cuts[thread], cuts[thread + 1]):
        place = nonnegative(starts[bucket])
        for chunk in range(places.shape[0]):
            for i in range(nonnegative(places[chunk, bucket]), places[chunk, bucket + 1]):
                out_keys[place] = keys[i]
                if weights is not None:
                    out_weights[place] = weights[i]
                place += 1
