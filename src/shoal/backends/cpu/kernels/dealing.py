# SPDX-License-Identifier: Apache-2.0
"""Dealing: before a push, devices with more edges in their frontier than others give some of its vertices away.

A thief visits a vertex's edges in the place of its owner.  It needs the vertex, what the rule reads there, and the
edges, which it reads where they are: devices of a CPU have the graph's memory in common.  Those of other processes that
have only their parts of the graph send the rows along: ROWS_COME.  What a thief finds is listed, sent and combined as
what it finds at edges of its own, early and once for each destination.  (GUM, section IV.)

``deals`` has a row for each device: the edges in every chunk of its frontier, and in all of them; where its mail for
thieves begins, and how long it may be; what it takes to bring vertices to others; the cuts, which say what items of its
mail each thief takes; and the edges that each has taken so far.  A device writes its own row only, and others read it
when they have met.  What goes by priority is dealt by blocks of the bucket that is being emptied: an item then is a
block, of which not all entries need be there.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import fetch_add, nonnegative
from shoal.backends.cpu.kernels.ordered import ENTRIES, begin_of, bounded, free_block, relax_vertex
from shoal.backends.cpu.runtime import has_bit, take_bit
from shoal.backends.cpu.world import meet
from shoal.backends.loops.control import (
    BEGIN,
    DEALS_FROM,
    DEALT_AT,
    DEVICE,
    EDGES,
    END,
    NUM_EDGES,
    NUM_PUBLISHED,
    NUM_VERTICES,
    PUBLISHED_AT,
    ROWS_COME,
    SIZE,
    TELLS,
    TELLS_DEALT,
    TELLS_LOADS,
    WORLD_DEVICES,
)
from shoal.backends.loops.hooks import CLEARS_MARKS, ENTER, PACK, PRIORITY, TAKE, world

# Parts of a frontier that are weighed, and given away whole: a share is then off by half a hundredth at most, if no hub
# is in between.
CHUNKS = 256
LOAD = CHUNKS
START = CHUNKS + 1
ROOM_FOR_DEALT = CHUNKS + 2
PLACE = CHUNKS + 3  # devices of one place read one another's edges where they are
SLACK = CHUNKS + 4  # edges by which a thief's part may be larger than its share
PRICE = (
    CHUNKS + 5
)  # what it takes to bring an edge from another place, in parts of PRICE_UNIT of what visiting it takes
LEAST_SAVED = CHUNKS + 6  # edges of which a superstep must be rid for places to deal with one another
CUTS = CHUNKS + 7  # one for each device, and the end of the last one's part; then what each has taken
PRICE_UNIT = 1024
# Of the mean load: the largest must be above it by so much, or chunks and meetings take what there is to gain.
LEAST_GAIN = 0.05


@inner
def dealt(world, device, what):
    """Return the place of something in a device's row."""
    return nonnegative(device * (CUTS + 2 * world[WORLD_DEVICES] + 1) + what)


@inner
def is_worth_dealing(control):
    """Whether the frontier of all devices has many edges, if its vertices are as all others; all of them agree."""
    return control[SIZE] * np.float64(control[NUM_EDGES]) >= np.float64(control[DEALS_FROM]) * control[NUM_VERTICES]


@inner
def chunk_begin(control, chunk):
    """Return where in the queue a chunk of the frontier begins."""
    begin = control[BEGIN]
    return begin + chunk * (control[END] - begin) // CHUNKS


@inner
def weigh_frontier(thread, num_threads, control, world, queue, indptr, deals):
    """Write how many edges each chunk of this device's frontier has, a thread's share of them."""
    device = control[DEVICE]
    for chunk in range(nonnegative(thread * CHUNKS // num_threads), (thread + 1) * CHUNKS // num_threads):
        edges = np.int64(0)
        for position in range(nonnegative(chunk_begin(control, chunk)), chunk_begin(control, chunk + 1)):
            vertex = nonnegative(np.int64(queue[position]))
            edges += np.int64(indptr[vertex + 1]) - np.int64(indptr[vertex])
        deals[dealt(world, device, chunk)] = edges


@inner
def weigh_blocks(thread, num_threads, control, world, published, blocks, waiting, indptr, deals):
    """Write how many edges each chunk of the blocks published on this device has, a thread's share of them."""
    device = control[DEVICE]
    for chunk in range(nonnegative(thread * CHUNKS // num_threads), (thread + 1) * CHUNKS // num_threads):
        edges = np.int64(0)
        for block in range(nonnegative(chunk_begin(control, chunk)), chunk_begin(control, chunk + 1)):
            end = published[block]
            for place in range(begin_of(end), end):
                vertex = nonnegative(np.int64(blocks[place]))
                if has_bit(waiting, vertex):
                    edges += np.int64(indptr[vertex + 1]) - np.int64(indptr[vertex])
        deals[dealt(world, device, chunk)] = edges


@inner
def weigh_by_blocks(control):
    """Serial: let the blocks published on this device be what its frontier is measured in."""
    control[BEGIN] = control[PUBLISHED_AT]
    control[END] = control[BEGIN] + control[NUM_PUBLISHED]


@inner
def share_out(control, world, deals):
    """Serial: decide what this device gives to whom, and write it down; its own frontier ends at DEALT_AT.

    An edge takes every device of a CPU as long, whoever owns it.  So the last is done first where all have as many
    edges as the mean: who has more gives that to those who have less, both in the order of their numbers, and first to
    those of the same place.  Other places are dealt with if what the last of them is rid of pays for bringing it there.
    """
    device = control[DEVICE]
    load = np.int64(0)
    for chunk in range(CHUNKS):
        load += deals[dealt(world, device, chunk)]
    deals[dealt(world, device, LOAD)] = load
    control[TELLS] = TELLS_LOADS
    meet(control, world)
    reaches_all = is_worth_carrying(world, deals)
    first, last = reach(world, deals, device, reaches_all)
    total = np.int64(0)
    largest = np.int64(0)
    for other in range(first, last):
        total += deals[dealt(world, other, LOAD)]
        largest = max(largest, deals[dealt(world, other, LOAD)])
    level = total // (last - first)
    if largest > (1.0 + LEAST_GAIN) * level:
        write_shares(control, world, deals, level, reaches_all)
    else:
        for thief in range(world[WORLD_DEVICES]):
            deals[dealt(world, device, CUTS + thief)] = 0
    cut_by_shares(control, world, deals)
    if reaches_all:
        control[TELLS] = TELLS_DEALT


@inner
def reach(world, deals, device, reaches_all):
    """Return the first of the devices with which one deals, and the end: all, or those of its place, in a row."""
    devices = world[WORLD_DEVICES]
    if reaches_all:
        return np.int64(0), devices
    place = deals[dealt(world, device, PLACE)]
    first = np.int64(device)
    while first > 0 and deals[dealt(world, first - 1, PLACE)] == place:
        first -= 1
    last = np.int64(device + 1)
    while last < devices and deals[dealt(world, last, PLACE)] == place:
        last += 1
    return first, last


@inner
def is_worth_carrying(world, deals):
    """Whether places deal with one another.

    All wait until vertices have been brought where they go, which takes as long as what comes to a place, or leaves it,
    where that is most.  Then the last has as much as the mean, and not as much as the mean of a place that has more.
    """
    devices = world[WORLD_DEVICES]
    total = np.int64(0)
    for device in range(devices):
        total += deals[dealt(world, device, LOAD)]
    mean = total // devices
    largest = np.int64(0)
    most = np.int64(0)  # edges that come to a place or leave it
    first = np.int64(0)
    while first < devices:
        _, last = reach(world, deals, first, False)
        load = np.int64(0)
        for device in range(first, last):
            load += deals[dealt(world, device, LOAD)]
        largest = max(largest, load // (last - first))
        most = max(most, abs(load - mean * (last - first)))
        first = last
    price = np.float64(most) * deals[dealt(world, 0, PRICE)] / PRICE_UNIT
    return largest - mean > LEAST_GAIN * mean + price + deals[dealt(world, 0, LEAST_SAVED)]


@inner
def excess(world, deals, device, level):
    """Return the edges that a device has above the level."""
    return max(deals[dealt(world, device, LOAD)] - level, 0)


@inner
def lack(control, world, deals, device, level):
    """Return the edges that a device may take over: of no frontier is its part more than the mean of all edges."""
    missing = max(level - deals[dealt(world, device, LOAD)], 0)
    return min(missing, control[NUM_EDGES] // world[WORLD_DEVICES])


@inner
def overlap(begin, end, other_begin, other_end):
    """Return how much two spans have in common."""
    return max(min(end, other_end) - max(begin, other_begin), 0)


@inner
def write_shares(control, world, deals, level, reaches_all):
    """Write where the cuts will be how many edges this device gives to each; all it has above the level, at most.

    What the devices of a place give lies on a line, and what they lack on another one; where these lie side by side it
    stays in the place.  Behind that the lines of all places follow one another.
    """
    devices = world[WORLD_DEVICES]
    giver = control[DEVICE]
    near_begin, near_end, far_begin, far_end = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    far = np.int64(0)
    first = np.int64(0)
    while first < devices:
        _, last = reach(world, deals, first, False)
        near = near_edges(control, world, deals, first, last, level)
        begin = np.int64(0)
        for device in range(first, last):
            end = begin + excess(world, deals, device, level)
            if device == giver:
                near_begin, near_end = min(begin, near), min(end, near)
                far_begin, far_end = far + max(begin - near, 0), far + max(end - near, 0)
            begin = end
        far += begin - near
        first = last
    far = np.int64(0)
    first = np.int64(0)
    while first < devices:
        _, last = reach(world, deals, first, False)
        near = near_edges(control, world, deals, first, last, level)
        is_own = first <= giver < last
        begin = np.int64(0)
        for thief in range(first, last):
            end = begin + lack(control, world, deals, thief, level)
            share = overlap(min(begin, near), min(end, near), near_begin, near_end) if is_own else np.int64(0)
            if reaches_all:
                share += overlap(far + max(begin - near, 0), far + max(end - near, 0), far_begin, far_end)
            deals[dealt(world, giver, CUTS + thief)] = share
            begin = end
        far += begin - near
        first = last


@inner
def near_edges(control, world, deals, first, last, level):
    """Return how many edges the devices of a place give to one another."""
    given = np.int64(0)
    missing = np.int64(0)
    for device in range(first, last):
        given += excess(world, deals, device, level)
        missing += lack(control, world, deals, device, level)
    return min(given, missing)


@inner
def cut_by_shares(control, world, deals):
    """Write cuts where the shares are: who gets which chunks, from the last one on; what is left over stays here."""
    devices = world[WORLD_DEVICES]
    device = control[DEVICE]
    first = control[END] - deals[dealt(world, device, ROOM_FOR_DEALT)]
    slack = deals[dealt(world, device, SLACK)]
    wanted = np.int64(0)  # by the thieves so far
    given = np.int64(0)
    chunk = np.int64(CHUNKS)
    for thief in range(devices - 1, -1, -1):
        share = deals[dealt(world, device, CUTS + thief)]
        deals[dealt(world, device, CUTS + thief + 1)] = chunk_begin(control, chunk)
        wanted += share
        taken = np.int64(0)
        while chunk > 0 and share > 0 and chunk_begin(control, chunk - 1) >= first:
            edges = deals[dealt(world, device, chunk - 1)]
            if given + edges > wanted or taken + edges > share + slack:
                break
            taken += edges
            given += edges
            chunk -= 1
        deals[dealt(world, device, CUTS + devices + 1 + thief)] += taken
    control[DEALT_AT] = chunk_begin(control, chunk)
    deals[dealt(world, device, CUTS)] = control[DEALT_AT]
    for thief in range(devices + 1):
        deals[dealt(world, device, CUTS + thief)] -= control[DEALT_AT]


def pack_dealt(thread, num_threads, control, world, deals, queue, marks_in, mail_ids, STATE):
    """Put the vertices that this device gives away, and what a rule reads there, into its mail for thieves."""
    begin = control[DEALT_AT]
    count = control[END] - begin
    first = deals[dealt(world, control[DEVICE], START)]
    for item in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
        vertex = nonnegative(np.int64(queue[nonnegative(begin + item)]))
        slot = nonnegative(first + item)
        if CLEARS_MARKS:
            marks_in[vertex >> 6] = np.uint64(0)
        mail_ids[slot] = vertex
        PACK(slot=slot, vertex=vertex)


def take_dealt(thread, num_threads, control, world, deals, victim, mail_ids, STATE):
    """Take over what a rule will read at the vertices that a victim gives to this device."""
    first, last = dealt_range(control, world, deals, victim, 1)
    for item in range(
        nonnegative(thread * (last - first) // num_threads), (thread + 1) * (last - first) // num_threads
    ):
        slot = nonnegative(first + item)
        TAKE(slot=slot, vertex=nonnegative(np.int64(mail_ids[slot])))


@inner
def dealt_range(control, world, deals, victim, entries):
    """Return where in the mail this device's part of what a victim gives away begins and ends; an item is so long."""
    start = deals[dealt(world, victim, START)]
    cut = CUTS + control[DEVICE]
    first, last = deals[dealt(world, victim, cut)], deals[dealt(world, victim, cut + 1)]
    return start + first * entries, start + last * entries


def pack_blocks(thread, num_threads, control, world, deals, published, blocks, links, bins, waiting, spill, current,
                mail_ids, STATE):  # fmt: skip
    """Put the entries of the blocks that this device gives away into its mail for thieves; those of no use are -1."""
    begin = control[DEALT_AT]
    count = control[END] - begin
    start = deals[dealt(world, control[DEVICE], START)]
    for item in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
        end = published[nonnegative(begin + item)]
        slot = nonnegative(start + item * ENTRIES)
        for i in range(ENTRIES):
            mail_ids[slot + i] = -1
        for place in range(begin_of(end), end):
            vertex = nonnegative(np.int64(blocks[place]))
            if not take_bit(waiting, vertex):
                continue
            if bounded(PRIORITY(vertex=vertex)) > current:
                ENTER(vertex=vertex)
                continue
            mail_ids[slot] = vertex
            PACK(slot=slot, vertex=vertex)
            slot += 1
        free_block(links, bins, thread, end)


def take_blocks(thread, num_threads, control, world, deals, victim, mail_ids, STATE):
    """Take over what a rule will read at the vertices in the blocks that a victim gives to this device."""
    first, last = dealt_range(control, world, deals, victim, ENTRIES)
    for item in range(
        nonnegative(thread * (last - first) // num_threads), (thread + 1) * (last - first) // num_threads
    ):
        slot = nonnegative(first + item)
        vertex = np.int64(mail_ids[slot])
        if vertex >= 0:
            TAKE(slot=slot, vertex=nonnegative(vertex))


def relax_dealt(thread, num_threads, control, deals, victim, mail_ids, blocks, links, bins, waiting, spill,
                current, indptr, indices, weights, STATE, SHARED):  # fmt: skip
    """Visit the edges of the vertices in the blocks that a victim gives to this device, a thread's share of them."""
    first, last = dealt_range(control, world, deals, victim, ENTRIES)
    visited = 0
    for slot in range(nonnegative(first + thread), last, num_threads):
        src = np.int64(mail_ids[slot])
        if src >= 0:
            visited += relax_vertex(
                num_threads, control, blocks, links, bins, waiting, spill, thread, current, nonnegative(src),
                slot if control[ROWS_COME] != 0 else nonnegative(src), indptr, indices, weights, STATE, SHARED
            )  # fmt: skip
    fetch_add(control, EDGES, visited)


# What generated modules call as it is; the templates they have copies of.
__all__ = [
    "START",
    "dealt",
    "dealt_range",
    "is_worth_dealing",
    "share_out",
    "weigh_blocks",
    "weigh_by_blocks",
    "weigh_frontier",
]
