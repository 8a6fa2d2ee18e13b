# SPDX-License-Identifier: Apache-2.0
"""Kernels that cut a graph into the parts of its devices.

Thread t takes the t-th of equal, contiguous ranges of the vertices, or of a device's edges: ``offsets`` are those of
the device's rows, ``first_edges`` where each row begins in the graph, ``first_rows[thread]`` the row of the thread's
first edge.  Whatever is written is written by one thread, but for ``marks``: there all threads write the same value.
"""

from __future__ import annotations

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative
from shoal.backends.cpu.kernels.generate import share


@compiled()
def count_owned(thread, num_threads, owner, counts):
    """Count the vertices of each device into ``counts[thread]``."""
    start, end = share(owner.size, thread, num_threads)
    for vertex in range(start, end):
        counts[thread, owner[vertex]] += 1


@compiled()
def list_owned(thread, num_threads, owner, starts, cursors, vertices, address):
    """List the vertices of each device in ascending order; ``address`` gets each one's place among its device's.

    ``cursors[thread]`` is where the thread's first vertex of each device goes.
    """
    start, end = share(owner.size, thread, num_threads)
    for vertex in range(start, end):
        device = owner[vertex]
        place = nonnegative(cursors[thread, device])
        cursors[thread, device] = place + 1
        vertices[place] = vertex
        if address is not None:
            address[vertex] = place - starts[device]


@compiled()
def mark_ends(thread, num_threads, first_rows, offsets, first_edges, indices, mark, marks):
    """Set the bit ``mark`` at the end of every edge.

    Threads may set it at one vertex at once: they read the same old value, or the new one, and write the same.
    """
    edge, end = share(offsets[-1], thread, num_threads)
    row = nonnegative(first_rows[thread])
    while edge < end:
        stop = min(offsets[row + 1], end)
        shift = first_edges[row] - offsets[row]
        for i in range(nonnegative(edge + shift), stop + shift):
            vertex = nonnegative(indices[i])
            if marks[vertex] & mark == 0:  # a line that is only read stays in every core's cache
                marks[vertex] |= mark
        edge = stop
        row += 1


@compiled()
def count_cut(thread, num_threads, first_rows, offsets, first_edges, indices, device, owner):
    """Return how many of the device's edges end on another one."""
    edge, end = share(offsets[-1], thread, num_threads)
    row = nonnegative(first_rows[thread])
    count = 0
    while edge < end:
        stop = min(offsets[row + 1], end)
        shift = first_edges[row] - offsets[row]
        for i in range(nonnegative(edge + shift), stop + shift):
            count += owner[nonnegative(indices[i])] != device
        edge = stop
        row += 1
    return count


@compiled()
def count_remote(thread, num_threads, device, owner, marks):
    """Return how many vertices of other devices are marked."""
    start, end = share(owner.size, thread, num_threads)
    count = 0
    for vertex in range(start, end):
        count += (marks[vertex] != 0) & (owner[vertex] != device)
    return count


@compiled()
def list_remote(thread, num_threads, device, owner, places, marks, remote, remote_marks):
    """List the marked vertices of other devices in ascending order, from ``places[thread]`` on, and clear all marks."""
    start, end = share(owner.size, thread, num_threads)
    place = nonnegative(places[thread])
    for vertex in range(start, end):
        if marks[vertex] != 0:
            if owner[vertex] != device:
                remote[place] = vertex
                remote_marks[place] = marks[vertex]
                place += 1
            marks[vertex] = 0


@compiled()
def copy_edges(
    thread, num_threads, first_rows, offsets, first_edges, indices, weights, local_ids, out_indices, out_weights
):
    """Copy the device's edges in their order, their ends as ``local_ids`` if there are any."""
    edge, end = share(offsets[-1], thread, num_threads)
    row = nonnegative(first_rows[thread])
    while edge < end:
        stop = min(offsets[row + 1], end)
        shift = first_edges[row] - offsets[row]
        for i in range(nonnegative(edge), stop):
            vertex = indices[nonnegative(i + shift)]
            if local_ids is not None:
                vertex = local_ids[nonnegative(vertex)]
            out_indices[i] = vertex
            if weights is not None:
                out_weights[i] = weights[nonnegative(i + shift)]
        edge = stop
        row += 1
