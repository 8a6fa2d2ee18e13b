# SPDX-License-Identifier: Apache-2.0
"""Advance by priority: buckets per thread, emptied lowest first (delta-stepping, if the priority is distance / delta).

A bin of a thread is a chain of blocks of vertices.  Blocks come from one arena (``blocks``; ``links[block]`` holds the
next block and the number of entries) and return to the free chain of the thread that emptied them.  Each thread's row
of ``bins``: for every bin its newest block, then the free chain and the lowest priority in the far bin.  Bin of a
priority p: p modulo NUM_NEAR while p < CURRENT + NUM_NEAR, else the far bin, which is sorted in when its turn comes.

An entry is stale when its vertex has meanwhile moved to a lower bucket; it is skipped.  A vertex that improves within a
bucket it already waits in is not entered again.  When the arena is full the vertex goes into the spill bitmap instead
and the loop returns for more memory: nothing is lost.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.control import (
    BLOCKS_USED,
    CURRENT,
    EDGES,
    ENTERED,
    HAS_SPILLED,
    LOWEST,
    OUTPUT,
    SIZE,
    SPILLED,
    STOP,
    SWAPPED,
    TODO,
)
from shoal.backends.cpu.hooks import FETCH, HAS_WHERE, PRIORITY, RULE, WHERE
from shoal.backends.cpu.intrinsics import atomic_min, fetch_add, load, nonnegative, store
from shoal.backends.cpu.runtime import add_bit, barrier

NUM_NEAR = 256  # bins within reach of CURRENT; a power of two; more only lengthens the search for the lowest
FAR = NUM_NEAR
FREE = NUM_NEAR + 1  # head of the thread's free chain
FAR_LOWEST = NUM_NEAR + 2  # lowest priority in the far bin
BINS_ROW = NUM_NEAR + 8
NONE = -1
NEVER = np.int64(2**62)

ENTRIES = 64  # vertices per block: 256 bytes, long enough to stream, short enough to share out a bucket of hubs
# A thread goes on alone with what it added to the current bucket for this many edges: a superstep's two barriers cost
# as much as some hundred relaxations, and on a road network a bucket has hardly more.
ALONE_EDGES = 4096
# Edges whose destination is fetched before its turn: the atomic of an improvement keeps the processor from looking
# ahead by itself.
AHEAD_EDGES = 16


@inner
def take_block(control, links, bins, thread):
    """Return an empty block, or NONE when the arena is full."""
    block = bins[thread, FREE]
    if block != NONE:
        bins[thread, FREE] = links[2 * block]
        return block
    block = fetch_add(control, BLOCKS_USED, 1)
    if 2 * block >= links.shape[0]:
        fetch_add(control, BLOCKS_USED, -1)
        return NONE
    return block


@inner
def free_block(links, bins, thread, block):
    """Return a block to the thread's free chain."""
    links[2 * block] = bins[thread, FREE]
    bins[thread, FREE] = block


@inner
def add_entry(control, blocks, links, bins, spill, thread, current, vertex, priority):
    """Enter a vertex into the thread's bin of its priority."""
    column = FAR
    if priority < current + NUM_NEAR:
        column = priority & (NUM_NEAR - 1)
    elif priority < bins[thread, FAR_LOWEST]:
        bins[thread, FAR_LOWEST] = priority
    column = nonnegative(column)
    block = bins[thread, column]
    count = ENTRIES if block == NONE else links[2 * block + 1]
    if count == ENTRIES:
        fresh = take_block(control, links, bins, thread)
        if fresh == NONE:
            if add_bit(spill, vertex):
                fetch_add(control, SPILLED, 1)
            atomic_min(control, LOWEST, priority)
            return
        links[2 * fresh] = block
        bins[thread, column] = fresh
        block = fresh
        count = 0
    block = nonnegative(block)
    blocks[block, nonnegative(count)] = vertex
    links[2 * block + 1] = count + 1


@inner
def publish(control, links, bins, thread, column, queue, base):
    """Hand the blocks of one bin to all threads, for the next superstep."""
    block = bins[thread, column]
    bins[thread, column] = NONE
    entries = 0
    while block != NONE:
        queue[base + fetch_add(control, OUTPUT, 1)] = block
        entries += links[2 * block + 1]
        block = links[2 * block]
    fetch_add(control, ENTERED, entries)


@inner
def lowest_bin(control, bins, thread, current):
    """Tell the others the lowest priority this thread has entries of."""
    lowest = bins[thread, FAR_LOWEST]
    for priority in range(current, current + NUM_NEAR):
        if bins[thread, nonnegative(priority & (NUM_NEAR - 1))] != NONE:
            lowest = min(lowest, priority)
            break
    atomic_min(control, LOWEST, lowest)


@inner
def settle_bins(control, bins):
    """Serial: the blocks published become the next superstep's work."""
    control[CURRENT] = control[LOWEST]
    control[TODO] = control[OUTPUT]
    store(control, LOWEST, NEVER)
    store(control, OUTPUT, control[ENTERED])
    store(control, ENTERED, 0)


def relax_block(control, blocks, links, bins, spill, thread, current, block, indptr, indices, weights, STATE):
    """Visit the edges of a block's vertices but the stale, enter the destinations that improved, free the block."""
    visited = 0
    for entry in range(links[2 * block + 1]):
        src = nonnegative(np.int64(blocks[block, entry]))
        if PRIORITY(vertex=src) < current:
            continue
        start = nonnegative(np.int64(indptr[src]))
        stop = np.int64(indptr[src + 1])
        visited += stop - start
        for edge in range(start, stop):
            if edge + AHEAD_EDGES < indices.shape[0]:
                FETCH(vertex=nonnegative(np.int64(indices[edge + AHEAD_EDGES])))
            dst = nonnegative(np.int64(indices[edge]))
            if HAS_WHERE and not WHERE(vertex=dst):
                continue
            before = PRIORITY(vertex=dst)
            if RULE(src=src, dst=dst, edge=edge):
                after = PRIORITY(vertex=dst)
                if after != before or after == current:
                    add_entry(control, blocks, links, bins, spill, thread, current, dst, after)
    free_block(links, bins, thread, block)
    return visited


@inner
def next_published(control, work, queue, base):
    """Return the next block of those published, or NONE."""
    item = fetch_add(control, work, 1)
    if item >= control[TODO] or load(control, STOP) != 0:
        return NONE
    return np.int64(queue[base + item])


@inner
def next_own(control, links, bins, thread, column, is_allowed):
    """Return a block that this thread added to the current bucket itself, or NONE."""
    block = bins[thread, column]
    if block == NONE or not is_allowed or load(control, STOP) != 0:
        return NONE
    bins[thread, column] = links[2 * block]
    return block


def sort_in(control, blocks, links, bins, spill, thread, current, STATE):
    """Enter the vertices of the far bin again, now that ``current`` has come nearer; drop the stale ones."""
    block = bins[thread, FAR]
    bins[thread, FAR] = NONE
    bins[thread, FAR_LOWEST] = NEVER
    while block != NONE:
        following = links[2 * block]
        count = links[2 * block + 1]
        for entry in range(count):
            vertex = nonnegative(np.int64(blocks[block, entry]))
            priority = PRIORITY(vertex=vertex)
            if priority >= current:
                add_entry(control, blocks, links, bins, spill, thread, current, vertex, priority)
        free_block(links, bins, thread, block)
        block = following


def take_spilled(thread, num_threads, control, blocks, links, bins, spill, current, STATE):
    """Enter the vertices that found no room before the arena grew."""
    length = spill.shape[0]
    for word in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        if spill[word] == 0:
            continue
        bits = spill[word]
        spill[word] = np.uint64(0)
        for bit in range(64):
            if (bits >> np.uint64(bit)) & np.uint64(1) != 0:
                vertex = nonnegative((word << 6) + bit)
                add_entry(control, blocks, links, bins, spill, thread, current, vertex, PRIORITY(vertex=vertex))


def ordered_push(thread, num_threads, control, work, blocks, links, bins, queue, spill, indptr, indices, weights,
                 STATE):  # fmt: skip
    """One superstep: empty the published blocks of the current bucket, and agree on the next."""
    current = control[CURRENT]
    half = queue.shape[0] // 2
    base = (control[SWAPPED] & 1) * half
    visited = 0
    if control[HAS_SPILLED] != 0:
        take_spilled(thread, num_threads, control, blocks, links, bins, spill, current, STATE)
    column = nonnegative(current & (NUM_NEAR - 1))
    block = next_published(control, work, queue, base)
    is_alone = False
    limit = 0
    while True:
        if block == NONE and not is_alone:
            is_alone = True
            limit = visited + ALONE_EDGES
        if is_alone:
            block = next_own(control, links, bins, thread, column, visited < limit)
        if block == NONE:
            break
        visited += relax_block(
            control, blocks, links, bins, spill, thread, current, nonnegative(block), indptr, indices, weights, STATE
        )
        if not is_alone:
            block = next_published(control, work, queue, base)
    fetch_add(control, EDGES, visited)
    lowest_bin(control, bins, thread, current)
    barrier(control, num_threads)
    current = load(control, LOWEST)
    if current != NEVER:
        if bins[thread, FAR_LOWEST] < current + NUM_NEAR:
            sort_in(control, blocks, links, bins, spill, thread, current, STATE)
        publish(control, links, bins, thread, nonnegative(current & (NUM_NEAR - 1)), queue, half - base)


__all__ = [
    "AHEAD_EDGES",
    "ALONE_EDGES",
    "BINS_ROW",
    "ENTRIES",
    "FAR",
    "FAR_LOWEST",
    "FREE",
    "NEVER",
    "NONE",
    "NUM_NEAR",
    "SIZE",
    "add_entry",
    "free_block",
    "lowest_bin",
    "next_own",
    "next_published",
    "publish",
    "settle_bins",
    "take_block",
]
