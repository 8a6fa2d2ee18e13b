# SPDX-License-Identifier: Apache-2.0
"""Dealing: before a push, devices with more edges in their frontier than others give some of its vertices away.

A thief visits a vertex's edges in the place of its owner.  It needs the vertex, what the rule reads there, and the
edges, which it reads where they are: devices of a CPU have the graph's memory in common.  What it finds is listed,
sent and combined as what it finds at edges of its own, early and once for each destination.  (GUM, section IV.)

``deals`` has a row for each device: the edges in every chunk of its frontier, and in all of them; where its mail for
thieves begins, and how long it may be; the cuts, which say what items of that each thief takes; and the edges that each
has taken so far.  A device writes its own row only, and others read it when they have met.  What goes by priority is
dealt by blocks of the bucket that is being emptied: an item then is a block, of which not all entries need be there.
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
    SIZE,
    WORLD_DEVICES,
)
from shoal.backends.loops.hooks import CLEARS_MARKS, ENTER, PACK, PRIORITY, TAKE, world

# Parts of a frontier that are weighed, and given away whole: a share is then off by half a hundredth at most, if no hub
# is in between.
CHUNKS = 256
LOAD = CHUNKS
START = CHUNKS + 1
ROOM_FOR_DEALT = CHUNKS + 2
CUTS = CHUNKS + 3  # one for each device, and the end of the last one's part; then what each has taken
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
    edges as the mean: who has more gives that to those who have less, both in the order of their numbers.
    """
    devices = world[WORLD_DEVICES]
    device = control[DEVICE]
    load = np.int64(0)
    for chunk in range(CHUNKS):
        load += deals[dealt(world, device, chunk)]
    deals[dealt(world, device, LOAD)] = load
    meet(control, world)
    total = np.int64(0)
    largest = np.int64(0)
    for other in range(devices):
        total += deals[dealt(world, other, LOAD)]
        largest = max(largest, deals[dealt(world, other, LOAD)])
    mean = total // devices
    missing = np.int64(0)  # on devices that have less
    before = np.int64(0)  # what devices of lower numbers give away
    for other in range(devices):
        missing += max(mean - deals[dealt(world, other, LOAD)], 0)
        if other < device:
            before += max(deals[dealt(world, other, LOAD)] - mean, 0)
    chunk = np.int64(CHUNKS)
    if missing > 0 and largest > (1.0 + LEAST_GAIN) * mean:
        given = np.int64(0)
        first = control[END] - deals[dealt(world, device, ROOM_FOR_DEALT)]
        while (
            chunk > 0
            and chunk_begin(control, chunk - 1) >= first
            and given + deals[dealt(world, device, chunk - 1)] <= load - mean
        ):
            chunk -= 1
            given += deals[dealt(world, device, chunk)]
    control[DEALT_AT] = chunk_begin(control, chunk)
    cut_among_thieves(control, world, deals, chunk, mean, missing, before)


@inner
def cut_among_thieves(control, world, deals, chunk, mean, missing, before):
    """Write down who gets which of the chunks from ``chunk`` on; the last to have less than the mean takes the rest."""
    devices = world[WORLD_DEVICES]
    device = control[DEVICE]
    wanted = np.int64(0)  # by thieves up to the one at hand
    found = np.int64(0)  # given to them
    for thief in range(devices):
        deals[dealt(world, device, CUTS + thief)] = chunk_begin(control, chunk) - control[DEALT_AT]
        lacks = max(mean - deals[dealt(world, thief, LOAD)], 0)
        wanted += lacks
        taken = np.int64(0)
        while lacks > 0 and chunk < CHUNKS and (before + found < wanted or wanted == missing):
            taken += deals[dealt(world, device, chunk)]
            found += deals[dealt(world, device, chunk)]
            chunk += 1
        deals[dealt(world, device, CUTS + devices + 1 + thief)] += taken
    deals[dealt(world, device, CUTS + devices)] = chunk_begin(control, chunk) - control[DEALT_AT]


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
                num_threads, control, blocks, links, bins, waiting, spill, thread, current, nonnegative(src), indptr,
                indices, weights, STATE, SHARED
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
