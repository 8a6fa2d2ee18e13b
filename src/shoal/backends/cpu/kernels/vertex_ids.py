# SPDX-License-Identifier: Apache-2.0
"""Which ids occur among the ends of edges, and new ids in their place.

Thread mapping: thread t takes an equal, contiguous part of the ids.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative


@compiled()
def mark_present(thread, num_threads, ids, is_present):
    """Set ``is_present`` for every id; threads may set the same byte at once, to the same value, so none is atomic."""
    for i in range(ids.size * thread // num_threads, ids.size * (thread + 1) // num_threads):
        is_present[nonnegative(ids[nonnegative(i)])] = 1


@compiled()
def replace_ids(thread, num_threads, ids, replacements):
    """Put ``replacements[id]`` in the place of every id."""
    for i in range(ids.size * thread // num_threads, ids.size * (thread + 1) // num_threads):
        ids[nonnegative(i)] = replacements[nonnegative(ids[nonnegative(i)])]
