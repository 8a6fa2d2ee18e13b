# SPDX-License-Identifier: Apache-2.0
"""Templates of the operators over vertices: compute, filter, reduce and gather.

Reductions are in fixed order: vertices are cut into blocks whatever the number of threads, a block is summed by one
thread into its place in the scalars' partial values, and these are combined one after the other.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import atomic_and, fetch_add, nonnegative
from shoal.backends.cpu.runtime import flush, next_piece, piece_size
from shoal.backends.loops.control import EDGES
from shoal.backends.loops.hooks import ADD, COMBINE, FINISH, FROM_QUEUE, HAS_MARKS, IDENTITY, RULE, STORE, ZERO

# Vertices per block.  A block of the heaviest vertices is the longest a thread can lag behind the others; 1024 vertices
# keep a block's sums in registers for long and leave 1,000 rows for a million vertices.
BLOCK = 1024


@inner
def num_blocks(length):
    """Return the number of blocks that so many vertices make."""
    return (length + BLOCK - 1) // BLOCK


def compute(thread, num_threads, control, work, number, begin, end, queue, STATE):
    """Run the rule on every vertex; a vertex is one thread's."""
    size = piece_size(end - begin, num_threads)
    num_pieces = (end - begin + size - 1) // size
    turn = 0
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = begin + piece * size
        for position in range(first, min(first + size, end)):
            vertex = nonnegative(np.int64(queue[position])) if FROM_QUEUE else nonnegative(position)
            RULE(vertex=vertex)


def filter(thread, num_threads, control, work, number, begin, end, sources, queue, base, output, capacity, outbox,
           marks, STATE):  # fmt: skip
    """Append the vertices for which the rule is true at ``base + control[output]``; unmark the others."""
    size = piece_size(end - begin, num_threads)
    num_pieces = (end - begin + size - 1) // size
    turn = 0
    pending = 0
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, num_pieces)
        if piece < 0:
            break
        first = begin + piece * size
        for position in range(first, min(first + size, end)):
            vertex = nonnegative(np.int64(sources[position])) if FROM_QUEUE else nonnegative(position)
            if RULE(vertex=vertex):
                outbox[thread, pending] = vertex
                pending += 1
                if pending == outbox.shape[1]:
                    flush(control, output, base, capacity, queue, outbox, thread, pending)
                    pending = 0
            elif HAS_MARKS:
                atomic_and(marks, vertex >> 6, ~(np.uint64(1) << np.uint64(vertex & 63)))
    flush(control, output, base, capacity, queue, outbox, thread, pending)


def reduce(thread, num_threads, control, work, number, begin, end, queue, STATE):
    """Combine the rule's value over each block of vertices into the block's partial values."""
    count = num_blocks(end - begin)
    turn = 0
    while True:
        block, turn = next_piece(control, work, number, turn, thread, num_threads, count)
        if block < 0:
            break
        total = IDENTITY()
        first = begin + block * BLOCK
        for position in range(first, min(first + BLOCK, end)):
            vertex = nonnegative(np.int64(queue[position])) if FROM_QUEUE else nonnegative(position)
            total = COMBINE(total, RULE(vertex=vertex))
        STORE(block=block, total=total)


def gather(thread, num_threads, control, work, number, begin, end, queue, indptr, indices, weights, STATE):
    """Sum the rule over each vertex's incoming edges, hand the sum to finish, combine what that returns by blocks."""
    count = num_blocks(end - begin)
    turn = 0
    visited = 0
    while True:
        block, turn = next_piece(control, work, number, turn, thread, num_threads, count)
        if block < 0:
            break
        total = IDENTITY()
        first = begin + block * BLOCK
        for position in range(first, min(first + BLOCK, end)):
            dst = nonnegative(np.int64(queue[position])) if FROM_QUEUE else nonnegative(position)
            start = nonnegative(np.int64(indptr[dst]))
            stop = np.int64(indptr[dst + 1])
            visited += stop - start
            # Four sums at a time: one chain of additions would wait for each; vector gathers are slower still.
            value, second, third, fourth = ZERO(), ZERO(), ZERO(), ZERO()
            if 0 < stop - start <= 4:
                # How many there are cannot be foreseen, so four are looked at, the last again for those that are not
                # there: a rule that is gathered only reads.
                src = nonnegative(np.int64(indices[start]))
                value = RULE(src=src, dst=dst, edge=start)
                edge = min(start + 1, stop - 1)
                src = nonnegative(np.int64(indices[edge]))
                found = RULE(src=src, dst=dst, edge=edge)
                second = found if start + 1 < stop else second
                edge = min(start + 2, stop - 1)
                src = nonnegative(np.int64(indices[edge]))
                found = RULE(src=src, dst=dst, edge=edge)
                third = found if start + 2 < stop else third
                edge = min(start + 3, stop - 1)
                src = nonnegative(np.int64(indices[edge]))
                found = RULE(src=src, dst=dst, edge=edge)
                fourth = found if start + 3 < stop else fourth
            else:
                edge = start
                while edge + 4 <= stop:
                    src = nonnegative(np.int64(indices[edge]))
                    value = ADD(value, RULE(src=src, dst=dst, edge=edge))
                    src = nonnegative(np.int64(indices[edge + 1]))
                    second = ADD(second, RULE(src=src, dst=dst, edge=edge + 1))
                    src = nonnegative(np.int64(indices[edge + 2]))
                    third = ADD(third, RULE(src=src, dst=dst, edge=edge + 2))
                    src = nonnegative(np.int64(indices[edge + 3]))
                    fourth = ADD(fourth, RULE(src=src, dst=dst, edge=edge + 3))
                    edge += 4
                while edge < stop:
                    src = nonnegative(np.int64(indices[edge]))
                    value = ADD(value, RULE(src=src, dst=dst, edge=edge))
                    edge += 1
            value = ADD(ADD(value, second), ADD(third, fourth))
            total = COMBINE(total, FINISH(vertex=dst, value=value))
        STORE(block=block, total=total)
    fetch_add(control, EDGES, visited)
