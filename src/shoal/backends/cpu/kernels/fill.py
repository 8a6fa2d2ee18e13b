# SPDX-License-Identifier: Apache-2.0
"""Fill an array on several threads, so that each touches the pages it will use."""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled


@compiled()
def fill_part(thread, num_threads, array, value):
    """Set the thread's share of a one-dimensional array."""
    length = array.shape[0]
    array[thread * length // num_threads : (thread + 1) * length // num_threads] = value
