# SPDX-License-Identifier: Apache-2.0
"""Templates of the operators that look at whole lists of neighbours: intersect and tally.

Every thread has rows of its own to note things in (`shoal.backends.cpu.scratch`): a mark for every vertex, and a table
of keys as long as a list can get.  They are clean between two vertices, and so between two operators and two runs.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import fetch_add, nonnegative, whole
from shoal.backends.cpu.runtime import flush, next_piece, piece_size
from shoal.backends.cpu.world import stash, tell
from shoal.backends.loops.control import BORDER, DEVICE, EDGES
from shoal.backends.loops.hooks import (
    BEFORE,
    CHANGED,
    CHOOSE,
    FROM_QUEUE,
    HAS_BETWEEN,
    IS_SHARDED,
    KEY,
    RULE,
    border,
    dirty,
    owner,
    voices,
)

# Vertices per piece of an intersection.  Its work goes with the squares of degrees, so that a thousand hubs in a row
# take as long as all others: 16 of them even out, and one atomic addition is nothing beside them.
LISTS_PIECE = 16
# Multiplied by it, keys that lie together come far apart (Knuth's multiplicative hashing, by the golden ratio).
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def intersect(thread, num_threads, control, work, number, begin, end, queue, indptr, indices, weights, list_indptr,
              list_indices, marks, keys, outbox, STATE, SHARED):  # fmt: skip
    """Mark the neighbours of a vertex, look for marks in the lists of each of them, then run the rule on its edges.

    ``marks[thread, v]`` is 0 but for neighbours: of those it is one more than the edges from other neighbours that were
    found.  A destination may be reached by several threads: rules use atomics.  Copies are listed as by a push.
    """
    num_pieces = (end - begin + LISTS_PIECE - 1) // LISTS_PIECE
    turn = 0
    visited = 0
    if IS_SHARDED:
        device = control[DEVICE]
        listed = 0
        row = num_threads + thread
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = begin + piece * LISTS_PIECE
        for position in range(first, min(first + LISTS_PIECE, end)):
            src = nonnegative(np.int64(queue[position])) if FROM_QUEUE else nonnegative(position)
            start = nonnegative(np.int64(indptr[src]))
            stop = np.int64(indptr[src + 1])
            for edge in range(start, stop):
                marks[thread, nonnegative(np.int64(indices[edge]))] = 1
            for edge in range(start, stop):
                dst = nonnegative(np.int64(indices[edge]))
                begin_list = nonnegative(np.int64(list_indptr[dst]))
                end_list = np.int64(list_indptr[dst + 1])
                visited += end_list - begin_list
                common = 0
                for place in range(begin_list, end_list):
                    third = nonnegative(np.int64(list_indices[place]))
                    mark = marks[thread, third]
                    is_marked = np.int32(mark > 0)
                    common += is_marked
                    if HAS_BETWEEN:
                        marks[thread, third] = mark + is_marked
                keys[thread, edge - start] = common
            for edge in range(start, stop):
                dst = nonnegative(np.int64(indices[edge]))
                between = np.int64(marks[thread, dst]) - 1
                shared = keys[thread, edge - start]
                if IS_SHARDED:
                    if owner[dst] != device:
                        before = BEFORE(vertex=dst)
                        RULE(src=src, dst=dst, edge=edge, shared=shared, between=between)
                        if tell(voices, dst, False, CHANGED(vertex=dst, before=before), dirty, num_threads):
                            listed = stash(control, border, outbox, row, listed, dst)
                        continue
                RULE(src=src, dst=dst, edge=edge, shared=shared, between=between)
            for edge in range(start, stop):
                marks[thread, nonnegative(np.int64(indices[edge]))] = 0
            visited += stop - start
    if IS_SHARDED:
        flush(control, BORDER, 0, border.shape[0], border, outbox, row, listed)
    fetch_add(control, EDGES, visited)


def tally(thread, num_threads, control, work, number, begin, end, queue, indptr, indices, weights, marks, keys, totals,
          STATE):  # fmt: skip
    """Sum the rule over each vertex's incoming edges by key, and hand it the keys with their sums.

    The keys of a vertex are numbered as they come; ``marks[thread]`` is a hash table of these numbers, from 1, as long
    as the vertex's list asks for, so that those of most vertices stay in the cache.  The second half of the row of keys
    says where in the table each is.
    """
    size = piece_size(end - begin, num_threads)
    num_pieces = (end - begin + size - 1) // size
    places = keys.shape[1] // 2
    turn = 0
    visited = 0
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = begin + piece * size
        for position in range(first, min(first + size, end)):
            dst = nonnegative(np.int64(queue[position])) if FROM_QUEUE else nonnegative(position)
            start = nonnegative(np.int64(indptr[dst]))
            stop = np.int64(indptr[dst + 1])
            visited += stop - start
            bits = table_bits(stop - start)
            count = 0
            for edge in range(start, stop):
                src = nonnegative(np.int64(indices[edge]))
                key = np.int64(whole(KEY(src=src, dst=dst, edge=edge)))
                slot = first_slot(key, bits)
                entry = np.int64(marks[thread, slot])
                while entry != 0 and keys[thread, nonnegative(entry - 1)] != key:
                    slot = next_slot(slot, bits)
                    entry = np.int64(marks[thread, slot])
                if entry == 0:
                    keys[thread, count] = key
                    keys[thread, places + count] = slot
                    totals[thread, count] = 0.0
                    count += 1
                    entry = np.int64(count)
                    marks[thread, slot] = count
                totals[thread, nonnegative(entry - 1)] += RULE(src=src, dst=dst, edge=edge)
            for i in range(nonnegative(count)):
                marks[thread, nonnegative(keys[thread, places + i])] = 0
                CHOOSE(vertex=dst, key=keys[thread, i], value=totals[thread, i])
    fetch_add(control, EDGES, visited)


@inner
def table_bits(length):
    """Return the binary logarithm of a table's length for so many keys: at least twice as long."""
    bits = 1
    while (1 << bits) < 2 * length:
        bits += 1
    return bits


@inner
def first_slot(key, bits):
    """Return where in a table a key is looked for first."""
    return nonnegative(np.int64((np.uint64(key) * SPREAD) >> np.uint64(64 - bits)))


@inner
def next_slot(slot, bits):
    """Return where a key is looked for next."""
    return nonnegative((slot + 1) & ((1 << bits) - 1))
