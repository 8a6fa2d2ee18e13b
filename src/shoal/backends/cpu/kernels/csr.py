# SPDX-License-Identifier: Apache-2.0
"""Sort edges into CSR: a counting sort into buckets of 2**bucket_bits sources, then a radix sort of each in cache.

An edge u -> v is the number (u's position in its bucket) << vertex_bits | v, which fits in the type of a vertex id, so
the array that will be ``indices`` holds the edges while they are sorted and no second one is needed.
Thread t takes the t-th of equal, contiguous ranges of the edges and has counters and cursors of its own: nothing it
writes is another's, and edges keep their order, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import fetch_add, nonnegative

#: Counters of one digit take at most 16 KiB of the first-level cache.
_MAX_DIGIT_BITS = 11
_MIN_DIGIT_BITS = 3


@inner
def _share(thread, num_threads, size):
    return size * thread // num_threads, size * (thread + 1) // num_threads


@compiled()
def count_edges(thread, num_threads, src, dst, is_mirrored, keep_loops, bucket_bits, counts):
    """Count the edges to store in each bucket into ``counts[thread]``; a mirrored edge counts at both ends."""
    start, end = _share(thread, num_threads, src.size)
    for i in range(start, end):
        u, v = src[i], dst[i]
        if u != v or keep_loops:
            counts[thread, nonnegative(u >> bucket_bits)] += 1
        if u != v and is_mirrored:
            counts[thread, nonnegative(v >> bucket_bits)] += 1


@inner
def _put(cursors, thread, u, v, bucket_bits, vertex_bits, keys, weights, i, out_weights):
    bucket = nonnegative(u >> bucket_bits)
    place = nonnegative(cursors[thread, bucket])
    cursors[thread, bucket] = place + 1
    keys[place] = (u & ((1 << bucket_bits) - 1)) << vertex_bits | v
    if weights is not None:
        out_weights[place] = weights[i]


@compiled()
def scatter_edges(
    thread,
    num_threads,
    src,
    dst,
    weights,
    is_mirrored,
    keep_loops,
    bucket_bits,
    vertex_bits,
    cursors,
    keys,
    out_weights,
):
    """Put every edge into its bucket, at ``cursors[thread]``."""
    start, end = _share(thread, num_threads, src.size)
    for i in range(start, end):
        u, v = src[i], dst[i]
        if u != v or keep_loops:
            _put(cursors, thread, u, v, bucket_bits, vertex_bits, keys, weights, i, out_weights)
        if u != v and is_mirrored:
            _put(cursors, thread, v, u, bucket_bits, vertex_bits, keys, weights, i, out_weights)


@compiled()
def scatter_reversed(
    thread, num_threads, first_rows, indptr, indices, weights, bucket_bits, vertex_bits, cursors, keys, out_weights
):
    """Put every edge u -> v of a CSR as v -> u into its bucket, in ascending order of u.

    ``first_rows[thread]`` is the row of the thread's first edge.
    """
    start, end = _share(thread, num_threads, indices.size)
    row = first_rows[thread]
    for i in range(start, end):
        while indptr[nonnegative(row + 1)] <= i:
            row += 1
        _put(cursors, thread, indices[i], row, bucket_bits, vertex_bits, keys, weights, i, out_weights)


@compiled()
def rank_rows(thread, num_threads, first_rows, indptr, indices, rank, bucket_bits, vertex_bits, keys):
    """Make every edge u -> v of a CSR the key of u -> rank[v], at the edge's own place.

    ``first_rows[thread]`` is the row of the thread's first edge.  ``keys`` may be ``indices``.
    """
    start, end = _share(thread, num_threads, indices.size)
    row = first_rows[thread]
    for i in range(start, end):
        while indptr[nonnegative(row + 1)] <= i:
            row += 1
        keys[i] = (row & ((1 << bucket_bits) - 1)) << vertex_bits | rank[nonnegative(indices[i])]


@compiled(allocates=True)
def sort_buckets(
    thread,
    num_threads,
    next_bucket,
    starts,
    bucket_bits,
    vertex_bits,
    lowest_bit,
    deduplicate,
    names,
    keys,
    weights,
    buffer_keys,
    buffer_weights,
    indptr,
):
    """Sort bucket after bucket, leave destinations in ``keys`` and the length of row v in ``indptr[v + 1]``.

    Edges are in order already in the bits below ``lowest_bit``.  Where keys have ranks in place of destinations,
    ``names`` are the vertices by rank.  Threads draw buckets from ``next_bucket`` (atomic), since their sizes differ; a
    bucket and its rows are its owner's alone, as is the thread's part of the buffers.
    """
    counts = np.empty(1 << _MAX_DIGIT_BITS, np.int64)
    base = buffer_keys.size // num_threads * thread
    bucket = fetch_add(next_bucket, 0, 1)
    while bucket < starts.size - 1:
        start, size = starts[bucket], starts[bucket + 1] - starts[bucket]
        is_in_buffer = _sort_keys(
            counts, lowest_bit, vertex_bits + bucket_bits, size, keys, weights, start, buffer_keys, buffer_weights, base
        )
        first = bucket << bucket_bits
        if is_in_buffer:
            _write_rows(
                deduplicate, names, vertex_bits, size, buffer_keys, buffer_weights, base, keys, weights, start, indptr,
                first,
            )  # fmt: skip
        else:
            _write_rows(
                deduplicate, names, vertex_bits, size, keys, weights, start, keys, weights, start, indptr, first
            )
        bucket = fetch_add(next_bucket, 0, 1)


@inner
def _sort_keys(counts, lowest_bit, end_bit, size, keys, weights, start, buffer_keys, buffer_weights, base):
    """Radix-sort ``size`` keys from ``start`` on, lowest digit first; return whether they ended up in the buffer.

    Digits are narrow for few keys, for which clearing the counters would cost more than another pass.
    """
    num_bits = end_bit - lowest_bit
    widest = _MIN_DIGIT_BITS
    while widest < _MAX_DIGIT_BITS and (1 << widest) < size:
        widest += 1
    num_digits = (num_bits + widest - 1) // widest
    if size < 2:
        num_digits = 0
    for digit in range(num_digits):
        low = lowest_bit + num_bits * digit // num_digits
        mask = (1 << (lowest_bit + num_bits * (digit + 1) // num_digits - low)) - 1
        if digit & 1:
            _move(counts, low, mask, size, buffer_keys, buffer_weights, base, keys, weights, start)
        else:
            _move(counts, low, mask, size, keys, weights, start, buffer_keys, buffer_weights, base)
    return num_digits & 1


@inner
def _move(counts, low, mask, size, keys, weights, start, to_keys, to_weights, to_start):
    """Move keys to where one digit says, keeping their order."""
    for digit in range(mask + 1):
        counts[digit] = 0
    for i in range(start, start + size):
        counts[nonnegative((keys[nonnegative(i)] >> low) & mask)] += 1
    total = to_start
    for digit in range(mask + 1):
        count = counts[digit]
        counts[digit] = total
        total += count
    for i in range(start, start + size):
        key = keys[nonnegative(i)]
        digit = nonnegative((key >> low) & mask)
        place = nonnegative(counts[digit])
        counts[digit] = place + 1
        to_keys[place] = key
        if weights is not None:
            to_weights[place] = weights[nonnegative(i)]


@inner
def _write_rows(
    deduplicate, names, vertex_bits, size, keys, weights, start, indices, out_weights, place, indptr, first
):
    """Write destinations and weights of sorted keys from ``place`` on, and count the edges of each row.

    In place too, since ``place`` never passes what is read.
    """
    if weights is not None:
        _sort_ties(keys, weights, start, start + size)
    mask = (1 << vertex_bits) - 1
    previous = keys.dtype.type(-1)
    for i in range(start, start + size):
        key = keys[nonnegative(i)]
        if not deduplicate or key != previous:
            indptr[nonnegative(first + (key >> vertex_bits) + 1)] += 1
            index = nonnegative(key & mask)
            if names is not None:
                index = names[index]
            indices[nonnegative(place)] = index
            if weights is not None:
                out_weights[nonnegative(place)] = weights[nonnegative(i)]
            place += 1
        previous = key


@inner
def _sort_ties(keys, weights, start, end):
    """Put the weights of parallel edges in order."""
    run = start
    for i in range(start + 1, end + 1):
        if i == end or keys[nonnegative(i)] != keys[nonnegative(run)]:
            if i - run > 1:
                _sort_weights(weights, run, i)
            run = i


@inner
def _sort_weights(weights, start, end):
    """Shell sort: parallel edges are few as a rule, and when they are many this is not quadratic."""
    gap = end - start
    while gap > 1:
        gap = max(1, gap * 5 // 11)
        for i in range(start + gap, end):
            weight = weights[nonnegative(i)]
            j = i
            while j >= start + gap and weights[nonnegative(j - gap)] > weight:
                weights[nonnegative(j)] = weights[nonnegative(j - gap)]
                j -= gap
            weights[nonnegative(j)] = weight


@compiled()
def close_gaps(starts, new_starts, indices, weights):
    """Move every bucket down to its new start, in ascending order, so that nothing is overwritten before it moves."""
    for bucket in range(new_starts.size - 1):
        shift = starts[bucket] - new_starts[bucket]
        for i in range(new_starts[bucket], new_starts[bucket + 1]):
            indices[i] = indices[i + shift]
            if weights is not None:
                weights[i] = weights[i + shift]
