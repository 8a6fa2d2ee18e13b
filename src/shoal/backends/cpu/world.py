# SPDX-License-Identifier: Apache-2.0
"""What generated modules import where there are several devices: how these meet, and list vertices for one another.

The block ``world`` is all devices'; what one posts in its own line the others read after they have met.  ``border``,
``dirty`` (vertices in it) and ``voices`` (those that join) are one device's.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import (
    atomic_and,
    atomic_or,
    fetch_add,
    give_way,
    load,
    nanoseconds,
    nap,
    nonnegative,
    store,
)
from shoal.backends.cpu.runtime import flush
from shoal.backends.loops.control import (
    BORDER,
    IDLE,
    IS_POSTED,
    IS_READING,
    IS_REDUCED,
    LINE,
    TELLS,
    TELLS_NOTHING,
    WORLD_ABANDONED,
    WORLD_ARRIVED,
    WORLD_DEVICES,
    WORLD_GENERATION,
    WORLD_MEETING,
    WORLD_ROWS,
    WORLD_SPINS,
)

# Who only gives the core away stands behind all who want it, and each of these may run for some milliseconds; who
# has slept goes first.  Two ranks on two cores, 753 supersteps on a grid: 0.05 s, and beside two processes that compute
# 0.08 s; without naps, and with a courier that held its core while it waited, 2 s and 5.7 s.
YIELDING_NANOSECONDS = 200_000
NAP_MICROSECONDS = 20


@inner
def stand_by(world, began):
    """Let others have the core, in a wait that began at this clock."""
    if world[WORLD_SPINS] == 0 and nanoseconds() - began > YIELDING_NANOSECONDS:
        nap(NAP_MICROSECONDS)
    else:
        give_way()


@inner
def meet(control, world):
    """Wait for all devices; called by one thread of each, while its others wait for it.

    Devices of other processes are one more that comes: whoever speaks for them sees in ``control[TELLS]`` what there is
    to tell and to hear, and comes last.
    """
    control[IS_READING] = 0
    control[IS_POSTED] = 0
    control[IS_REDUCED] = 0
    began = nanoseconds()
    generation = load(world, WORLD_GENERATION)
    if fetch_add(world, WORLD_ARRIVED, 1) == world[WORLD_MEETING] - 1:
        store(world, WORLD_ARRIVED, 0)
        fetch_add(world, WORLD_GENERATION, 1)
        control[TELLS] = TELLS_NOTHING
        return
    spins = 0
    while load(world, WORLD_GENERATION) == generation:
        spins += 1
        if spins > world[WORLD_SPINS]:
            if load(world, WORLD_ABANDONED) != 0:
                raise RuntimeError("another device has left the run")
            stand_by(world, began)
    control[IDLE] += nanoseconds() - began
    control[TELLS] = TELLS_NOTHING


@inner
def posted(world, device, what):
    """Return the place of what a device tells the others."""
    return nonnegative(WORLD_ROWS + device * LINE + what)


@inner
def num_items(world, sender, receiver):
    """Return the place of the number of items that one device has for another (for all: for itself)."""
    devices = world[WORLD_DEVICES]
    return nonnegative(WORLD_ROWS + devices * LINE + sender * devices + receiver)


@inner
def bytes_sent(world, sender, place):
    """Return the place of the bytes that a device has sent: to a receiver, or in a round to each of its receivers."""
    devices = world[WORLD_DEVICES]
    return nonnegative(WORLD_ROWS + devices * LINE + devices * devices + sender * devices + place)


@inner
def stash(control, border, outbox, row, count, vertex):
    """List a vertex for other devices, by way of a row of the outbox; the new number of entries in it."""
    outbox[row, count] = vertex
    count += 1
    if count == outbox.shape[1]:
        flush(control, BORDER, 0, border.shape[0], border, outbox, row, count)
        count = 0
    return count


@inner
def note(control, border, vertex):
    """List a vertex for other devices at once."""
    border[nonnegative(fetch_add(control, BORDER, 1))] = vertex


# A device of one thread needs no atomics for what only its own threads write.


@inner
def mark(bitmap, vertex, num_threads):
    """Put ``vertex`` into a bitmap of this device's; True if it was not there."""
    bit = np.uint64(1) << np.uint64(vertex & 63)
    word = bitmap[vertex >> 6]
    if word & bit != 0:
        return False
    if num_threads == 1:
        bitmap[vertex >> 6] = word | bit
        return True
    return atomic_or(bitmap, vertex >> 6, bit) & bit == 0


@inner
def unmark(bitmap, vertex, num_threads):
    """Take ``vertex`` out of a bitmap of this device's."""
    mask = ~(np.uint64(1) << np.uint64(vertex & 63))
    if num_threads == 1:
        bitmap[vertex >> 6] &= mask
    else:
        atomic_and(bitmap, vertex >> 6, mask)


@inner
def tell(voices, vertex, joins, changed, dirty, num_threads):
    """Whether a copy that a rule was at is to be listed for other devices: it joins, or changed, and is not listed."""
    if joins:
        mark(voices, vertex, num_threads)
    return (joins or changed) and mark(dirty, vertex, num_threads)


@inner
def take_number(array, index, num_threads):
    """Count up an element that only this device's threads write; the old value."""
    if num_threads == 1:
        old = array[index]
        array[index] = old + 1
        return old
    return fetch_add(array, index, 1)
