# SPDX-License-Identifier: Apache-2.0
"""Copy elements between a whole graph's arrays and a device's: rows of so many elements per vertex, flat.

Every thread has a share of the vertices; nobody else writes their elements.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled


@compiled()
def take_rows(thread, num_threads, source, rows, width, target):
    """Make row i of ``target`` the row ``rows[i]`` of ``source``."""
    length = rows.shape[0]
    for i in range(thread * length // num_threads, (thread + 1) * length // num_threads):
        for k in range(width):
            target[i * width + k] = source[rows[i] * width + k]


@compiled()
def put_rows(thread, num_threads, source, source_rows, target_rows, width, target):
    """Make row ``target_rows[i]`` of ``target`` the row ``source_rows[i]`` of ``source``."""
    length = source_rows.shape[0]
    for i in range(thread * length // num_threads, (thread + 1) * length // num_threads):
        for k in range(width):
            target[target_rows[i] * width + k] = source[source_rows[i] * width + k]
