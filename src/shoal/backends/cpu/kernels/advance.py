# SPDX-License-Identifier: Apache-2.0
"""Templates of advance on the CPU: push from a queue, pull into a bitmap.

Threads take pieces of the work one at a time (`next_piece`), so a hub delays one thread, not all.
Output vertices collect in the thread's row of ``outbox`` and move to the queue a row at a time: one atomic addition
for a thousand vertices.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import fetch_add, nonnegative, prefetch, trailing_zeros
from shoal.backends.cpu.runtime import add_bit, flush, has_bit, next_piece, piece_size
from shoal.backends.cpu.world import stash, tell
from shoal.backends.loops.control import BORDER, BY_PLACE, DEVICE, EDGES, OUTPUT
from shoal.backends.loops.hooks import (
    ALL_SOURCES,
    BEFORE,
    CHANGED,
    CLEARS_MARKS,
    EARLY_EXIT,
    FETCH,
    FIRST_EDGES,
    FROM_QUEUE,
    HAS_OUTPUT,
    HAS_WHERE,
    IS_DEALT,
    IS_SHARDED,
    READS_ROWS,
    RULE,
    SKIP_EDGES,
    UNIQUE,
    WHERE,
    border,
    dirty,
    owner,
    voices,
)

# Vertices whose edges are fetched before their turn: rows are scattered over memory, and the atomics of a rule keep the
# processor from looking that far by itself.  8 to 16 measured alike on a Kronecker graph, a grid and their components.
AHEAD = 8
# Edges whose sources' rows a pull fetches before their turn, if they are in the frontier.  16 and 32 measured alike on
# a uniform graph of a million vertices, 8 a twentieth slower.  A push fetches no rows: only its rule knows which it
# will read, and the level of betweenness that reads none took four times as long.
EDGES_AHEAD = 16
PULL_CHUNK = 1024  # vertices; 16 whole words of the bitmap, two cache lines, so no two threads write one line at once


@inner
def row_of(sources, position, by_place):
    """Return which row of the edges is that of a vertex to be visited."""
    return nonnegative(position) if by_place else nonnegative(np.int64(sources[position]))


def push(thread, num_threads, control, work, number, begin, end, sources, queue, base, output, capacity, outbox,
         marks_in, marks_out, indptr, indices, weights, STATE, SHARED):  # fmt: skip
    """Visit the edges of ``sources[begin:end]``; append destinations the rule accepts at ``base + control[output]``.

    A destination may be reached by several threads: rules use atomics.  ``marks_out`` de-duplicates; ``marks_in`` is
    cleared a word at a time, where nobody reads it and all of it must become zero.  A copy that the rule changes is
    listed in ``border`` (once: ``dirty``); ``voices`` has those for which the rule says True.  Rows that came along
    with another device's vertices are found by their places in the mail.
    """
    by_place = IS_DEALT and control[BY_PLACE] != 0
    size = piece_size(end - begin, num_threads)
    num_pieces = (end - begin + size - 1) // size
    turn = 0
    pending = 0
    visited = 0
    if IS_SHARDED:
        device = control[DEVICE]
        listed = 0
        row = num_threads + thread
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = begin + piece * size
        for position in range(first, min(first + size, end)):
            src = nonnegative(np.int64(sources[position])) if FROM_QUEUE else nonnegative(position)
            row_at = row_of(sources, position, by_place) if FROM_QUEUE else src
            if FROM_QUEUE and position + 2 * AHEAD < end:
                prefetch(indptr, row_of(sources, position + 2 * AHEAD, by_place))
            if FROM_QUEUE and position + AHEAD < end:
                coming = row_of(sources, position + AHEAD, by_place)
                prefetch(indices, nonnegative(np.int64(indptr[coming])))
            if position + AHEAD // 2 < end:
                near = position + AHEAD // 2
                coming = row_of(sources, near, by_place) if FROM_QUEUE else nonnegative(near)
                edge = np.int64(indptr[coming]) + SKIP_EDGES
                if edge < np.int64(indptr[coming + 1]):
                    FETCH(vertex=nonnegative(np.int64(indices[nonnegative(edge)])))
            if CLEARS_MARKS:
                marks_in[src >> 6] = np.uint64(0)
            start = np.int64(indptr[row_at]) + SKIP_EDGES
            stop = np.int64(indptr[row_at + 1])
            if FIRST_EDGES >= 0:
                stop = min(stop, start + FIRST_EDGES)
            visited += max(stop - start, 0)
            for edge in range(nonnegative(start), stop):
                dst = nonnegative(np.int64(indices[edge]))
                if HAS_WHERE and not WHERE(vertex=dst):
                    continue
                if IS_SHARDED:
                    if owner[dst] != device:
                        before = BEFORE(vertex=dst)
                        joins = RULE(src=src, dst=dst, edge=edge)
                        if tell(voices, dst, joins, CHANGED(vertex=dst, before=before), dirty, num_threads):
                            listed = stash(control, border, outbox, row, listed, dst)
                        continue
                if RULE(src=src, dst=dst, edge=edge) and HAS_OUTPUT:
                    if not UNIQUE and not add_bit(marks_out, dst):
                        continue
                    outbox[thread, pending] = dst
                    pending += 1
                    if pending == outbox.shape[1]:
                        flush(control, output, base, capacity, queue, outbox, thread, pending)
                        pending = 0
    if HAS_OUTPUT:
        flush(control, output, base, capacity, queue, outbox, thread, pending)
    if IS_SHARDED:
        flush(control, BORDER, 0, border.shape[0], border, outbox, row, listed)
    fetch_add(control, EDGES, visited)


def pull(
    thread, num_threads, control, work, number, num_vertices, front, back, remaining, indptr, indices, weights, STATE
):
    """Let every vertex that wants a visit look among its sources for one in ``front``; write the joined to ``back``.

    ``indptr`` and ``indices`` are the incoming edges.  ``remaining`` holds the vertices that may still want a visit;
    one that does not, or that no edge enters, is dropped for good, so later pulls pass it by 64 at a time.  Only the
    thread that holds the chunk writes a destination's state and its words of the bitmaps: no atomics.
    """
    joined_total = 0
    visited = 0
    num_pieces = (num_vertices + PULL_CHUNK - 1) // PULL_CHUNK
    turn = 0
    if READS_ROWS:
        last = nonnegative(max(indices.shape[0] - 1, 0))
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = piece * PULL_CHUNK
        for word in range(nonnegative(first >> 6), (min(first + PULL_CHUNK, num_vertices) + 63) >> 6):
            wanting = remaining[word]
            kept = np.uint64(0)
            joined_bits = np.uint64(0)
            while wanting != 0:
                bit = wanting & (~wanting + np.uint64(1))
                dst = nonnegative((word << 6) + np.int64(trailing_zeros(wanting)))
                wanting ^= bit
                edge = nonnegative(np.int64(indptr[dst]))
                stop = np.int64(indptr[dst + 1])
                if edge == stop or not WHERE(vertex=dst):
                    continue
                joined = False
                visited -= edge
                while edge < stop:
                    src = nonnegative(np.int64(indices[edge]))
                    if READS_ROWS:
                        coming = nonnegative(np.int64(indices[min(edge + EDGES_AHEAD, last)]))
                        FETCH(vertex=coming if ALL_SOURCES or has_bit(front, coming) else dst)
                    if ALL_SOURCES or has_bit(front, src):
                        if RULE(src=src, dst=dst, edge=edge):
                            joined = True
                        if EARLY_EXIT and not WHERE(vertex=dst):
                            edge += 1
                            break
                    edge += 1
                visited += edge
                if joined:
                    joined_bits |= bit
                    joined_total += 1
                if not EARLY_EXIT or WHERE(vertex=dst):
                    kept |= bit
            remaining[word] = kept
            back[word] = joined_bits
    fetch_add(control, OUTPUT, joined_total)
    fetch_add(control, EDGES, visited)
