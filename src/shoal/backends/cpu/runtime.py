# SPDX-License-Identifier: Apache-2.0
"""What generated modules import: the barrier, bit operations, and the plain twins of the atomics.

Barrier: sense by generation number.  `arrive` is True for the last thread, which does the serial part and calls
`release`; the others wait in `await_release`.  One synchronisation a superstep thus covers join, serial part and fork.
A thread that will never arrive (its rule failed, or it did not start) leaves word in ``control[ABANDONED]``.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import (
    as_addend,
    as_bits,
    as_element,
    atomic_or,
    fetch_add,
    fetch_and,
    fetch_or,
    give_way,
    load,
    nonnegative,
    store,
    trailing_zeros,
)
from shoal.backends.loops.control import (
    ABANDONED,
    ARRIVED,
    GENERATION,
    LINE,
    NUM_VERTICES,
    STOP,
)

# A wait between balanced threads is under a microsecond, some hundred polls; past that the core is better given away
# (more threads than cores, or another process).
SPINS_BEFORE_YIELD = 4000


@inner
def arrive(control, num_threads):
    """Join; True for the last thread."""
    if num_threads == 1:
        return True
    return fetch_add(control, ARRIVED, 1) == num_threads - 1


@inner
def release(control):
    """Let the waiting threads go (called by the last one)."""
    store(control, ARRIVED, 0)
    fetch_add(control, GENERATION, 1)


@inner
def await_release(control, generation):
    """Wait until the last thread has called `release` since ``generation`` was read; raise if that will never be."""
    spins = 0
    while load(control, GENERATION) == generation:
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            if load(control, ABANDONED) != 0:
                raise RuntimeError("another thread has left the run")
            give_way()


@inner
def barrier(control, num_threads):
    """Wait for all threads; no serial part."""
    generation = load(control, GENERATION)
    if arrive(control, num_threads):
        release(control)
    else:
        await_release(control, generation)


@inner
def has_bit(bitmap, vertex):
    """Whether ``vertex`` is in the bitmap."""
    return (bitmap[vertex >> 6] >> np.uint64(vertex & 63)) & np.uint64(1) != 0


@inner
def add_bit(bitmap, vertex):
    """Put ``vertex`` into the bitmap; True if it was not there.  Any thread may call it for any vertex."""
    bit = np.uint64(1) << np.uint64(vertex & 63)
    if bitmap[vertex >> 6] & bit != 0:
        return False
    return atomic_or(bitmap, vertex >> 6, bit) & bit == 0


# Bits through which threads pass work: what was written before the bit is set is seen by whoever takes it.


@inner
def raise_bit(bitmap, vertex):
    """Set a vertex's bit; True if it was not set."""
    bit = np.uint64(1) << np.uint64(vertex & 63)
    return fetch_or(bitmap, vertex >> 6, bit) & bit == 0


@inner
def take_bit(bitmap, vertex):
    """Clear a vertex's bit; True for the one thread that found it set."""
    bit = np.uint64(1) << np.uint64(vertex & 63)
    if bitmap[vertex >> 6] & bit == 0:
        return False
    return fetch_and(bitmap, vertex >> 6, ~bit) & bit != 0


# Twins of the atomics for an element that only the calling thread writes (the destination of a pull).  They refuse the
# same types and convert their operands in the same way.


@inner
def plain_min(array, index, value):
    proposal = as_element(array, index, value)
    if value < array[index] and proposal < array[index]:
        array[index] = proposal
        return True
    return False


@inner
def plain_max(array, index, value):
    proposal = as_element(array, index, value)
    if value > array[index] and proposal > array[index]:
        array[index] = proposal
        return True
    return False


@inner
def plain_add(array, index, value):
    old = array[index]
    array[index] = old + as_addend(array, index, value)
    return old


@inner
def plain_or(array, index, value):
    old = array[index]
    array[index] = old | as_bits(array, index, value)
    return old


@inner
def plain_and(array, index, value):
    old = array[index]
    array[index] = old & as_bits(array, index, value)
    return old


@inner
def plain_exchange(array, index, value):
    old = array[index]
    array[index] = as_element(array, index, value)
    return old


@inner
def plain_compare_exchange(array, index, expected, desired):
    replacement = as_element(array, index, desired)
    if array[index] == expected:
        array[index] = replacement
        return True
    return False


# A sum of floats with what rounding took from it: the real part is the sum, the imaginary part the rest.  With twice
# the digits the order of the summands shows only far behind the last digit that is kept (Knuth's exact sum of two).


@inner
def add_exactly(total, value):
    """Add a number to a sum and what its rounding loses to the rest."""
    if value == 0.0:  # as most values of some sums are
        return total
    rounded = total.real + value
    added = rounded - total.real
    lost = (total.real - (rounded - added)) + (value - added)
    return complex(rounded, total.imag + lost)


@inner
def sum_of(total):
    """Return the sum as one number; of what is no number, or too large for one, there is no rest."""
    return total.real + total.imag if math.isfinite(total.real) else total.real


# Work is cut into numbered pieces.  Every thread has a counter of its own for its share of them, takes those first and
# then the others': what it wrote in the superstep before is likely in its cache still, and counters are rarely shared.


@inner
def next_piece(control, work, number, turn, thread, num_threads, num_pieces):
    """Return the next piece of operator ``number`` and the turn it was found in; -1 when none is left or at a stop.

    A thread begins with turn 0, its own share, and hands the turn back in.
    """
    while turn < num_threads and load(control, STOP) == 0:
        owner = thread + turn
        if owner >= num_threads:
            owner -= num_threads
        piece = owner * num_pieces // num_threads
        piece += fetch_add(work, nonnegative((number * num_threads + owner) * LINE), 1)
        if piece < (owner + 1) * num_pieces // num_threads:
            return piece, turn
        turn += 1
    return -1, turn


@inner
def reset_work(work, number, num_threads):
    """Serial: make all pieces of an operator available again."""
    for owner in range(num_threads):
        store(work, (number * num_threads + owner) * LINE, 0)


@inner
def piece_size(length, num_threads):
    """Vertices per piece: a sixteenth of a thread's share, so that the last pieces even out unlike vertices."""
    return max(min(length // (num_threads * 16), 1024), 16)


@inner
def flush(control, output, base, capacity, queue, outbox, thread, count):
    """Move ``count`` vertices from the thread's outbox to the queue; a queue too short ends the run."""
    if count == 0:
        return
    start = fetch_add(control, output, count)
    if start + count > capacity:
        store(control, STOP, Reason.OVERFLOW)
        return
    for i in range(count):
        queue[base + start + i] = outbox[thread, i]


@inner
def clear_words(thread, num_threads, bitmap):
    """Set the thread's share of the bitmap to zero."""
    length = bitmap.shape[0]
    for word in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        bitmap[word] = np.uint64(0)


@inner
def queue_to_bitmap(thread, num_threads, queue, begin, end, bitmap):
    """Set the bits of the thread's share of ``queue[begin:end]`` in a bitmap that is clear."""
    length = end - begin
    first = begin + thread * length // num_threads
    for position in range(nonnegative(first), begin + (thread + 1) * length // num_threads):
        vertex = nonnegative(np.int64(queue[position]))
        atomic_or(bitmap, vertex >> 6, np.uint64(1) << np.uint64(vertex & 63))


@inner
def list_everything(thread, num_threads, control, queue, base):
    """Write the thread's share of all vertices at ``base``; a queue too short ends the run."""
    length = control[NUM_VERTICES]
    if base + length > queue.shape[0]:
        store(control, STOP, Reason.OVERFLOW)
        return
    for vertex in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        queue[base + vertex] = vertex


@inner
def copy_vertices(thread, num_threads, control, vertices, queue, base):
    """Write the thread's share of a list of vertices at ``base``; a queue too short ends the run."""
    length = vertices.shape[0]
    if base + length > queue.shape[0]:
        store(control, STOP, Reason.OVERFLOW)
        return
    for position in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        queue[base + position] = vertices[position]


@inner
def bitmap_to_queue(thread, num_threads, control, counter, bitmap, queue, base, outbox):
    """Append the vertices of the thread's share of the bitmap at ``base + control[counter]``."""
    length = bitmap.shape[0]
    capacity = queue.shape[0] - base
    pending = 0
    for word in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        bits = bitmap[word]
        while bits != 0:
            outbox[thread, pending] = (word << 6) + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
            pending += 1
            if pending == outbox.shape[1]:
                flush(control, counter, base, capacity, queue, outbox, thread, pending)
                pending = 0
    flush(control, counter, base, capacity, queue, outbox, thread, pending)
