# SPDX-License-Identifier: Apache-2.0
"""Whether every edge of a CSR has a twin, in one pass: a sum over edges that is the same for the transposed edges.

Edge u -> v of weight w adds h(u, v, w) - h(v, u, w), modulo 2**64, where h mixes its arguments and a key that nobody
knows beforehand (the finalizer of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
2014).  Where the edges are symmetric the sum is 0; where they are not it is, one time in 2**64.
Thread t takes the t-th of equal ranges of the edges; it only reads what others read.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative


@inner
def mix(value):
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled()
def sum_differences(thread, num_threads, first_rows, indptr, indices, weights, key, sums):
    """Put a thread's sum into ``sums[thread]``; ``first_rows[thread]`` is the row of the thread's first edge."""
    start = indices.size * thread // num_threads
    end = indices.size * (thread + 1) // num_threads
    row = first_rows[thread]
    total = np.uint64(0)
    for i in range(start, end):
        while indptr[nonnegative(row + 1)] <= i:
            row += 1
        src, dst = np.uint64(row), np.uint64(indices[i])
        if src != dst:
            own = key
            if weights is not None:
                own = mix(key + np.uint64(np.int64(weights[i])))
            # One half of each id's hash is turned, or u -> v and v -> u would be alike.
            here, there = mix(src + own), mix(dst + own)
            total += mix(here + (there << np.uint64(1))) - mix(there + (here << np.uint64(1)))
    sums[thread] = total
