# SPDX-License-Identifier: Apache-2.0
"""Advance by priority: buckets per thread, emptied lowest first (delta-stepping, if the priority is distance / delta).

A bin of a thread is a chain of blocks of vertices.  Blocks come from one arena (``blocks``; ``links[2 * block]`` is the
next block of the chain, ``links[2 * block + 1]`` the number of entries) and return to the free chain of the thread that
emptied them.  Each thread's row of ``bins``: for every bin its newest block, then the free chain and the lowest
priority in the far bin.  Bin of a priority p: p modulo NUM_NEAR while p < CURRENT + NUM_NEAR, else the far bin, which
is sorted in when its turn comes.  What has fallen below CURRENT goes next.

Every vertex that the rule lets in gets an entry and its bit in ``waiting``.  Whoever comes to an entry takes the bit;
an entry without it is stale, as its vertex went with another one since.  The bit is set after the rule has written and
taken before the rule reads, so an improvement is either seen or entered again.  When the arena is full the vertex goes
into the bitmap ``spill`` instead and the loop returns for more memory: nothing is lost.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import (
    atomic_min,
    exchange,
    fetch_add,
    load,
    nonnegative,
    prefetch,
    store,
    trailing_zeros,
)
from shoal.backends.cpu.runtime import (
    add_bit,
    arrive,
    await_release,
    barrier,
    has_bit,
    next_piece,
    raise_bit,
    release,
    take_bit,
)
from shoal.backends.cpu.world import meet, note, posted, tell
from shoal.backends.loops.control import (
    BLOCKS_USED,
    CURRENT,
    DEVICE,
    EDGES,
    ENTERED,
    FIRST,
    GENERATION,
    HAS_SPILLED,
    LOWEST,
    NEVER,
    NUM_PUBLISHED,
    OUTPUT,
    POSTED_LOWEST,
    PUBLISHED_AT,
    SHARES_OWN,
    SPILLED,
    STOP,
    WORLD_DEVICES,
)
from shoal.backends.loops.hooks import (
    BEFORE,
    CHANGED,
    HAS_WEIGHTS,
    HAS_WHERE,
    IS_SHARDED,
    PRIORITY,
    RULE,
    WHERE,
    border,
    dirty,
    owner,
    voices,
    world,
)

NUM_NEAR = 256  # bins within reach of CURRENT; a power of two; more only lengthens the search for the lowest
FAR = NUM_NEAR
FREE = NUM_NEAR + 1  # head of the thread's free chain
FAR_LOWEST = NUM_NEAR + 2  # lowest priority in the far bin
BINS_ROW = NUM_NEAR + 8
NONE = -1

ENTRIES = 64  # vertices per block: 256 bytes, long enough to stream, short enough to share out a bucket of hubs
# A thread goes on alone with what it added to the current bucket for this many edges: a superstep's two barriers cost
# as much as some hundred relaxations, and on a road network a bucket has hardly more.
ALONE_EDGES = 4096
# Vertices whose row of edges is fetched before its turn, as its place in memory has nothing to do with the one before;
# its first line, the processor fetches the others.  Fetching the destinations' state too gained nothing on a Kronecker
# graph, a uniform one and a grid.
AHEAD_ENTRIES = 4


@inner
def bounded(priority):
    """Return a priority between those that stand for the begin and the end, which no vertex has."""
    return min(max(np.int64(priority), FIRST + 1), NEVER - 1)


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
def spill_entry(control, spill, vertex, priority):
    """Keep a vertex aside until there is room."""
    if add_bit(spill, vertex):
        fetch_add(control, SPILLED, 1)
    atomic_min(control, LOWEST, priority)


@inner
def add_entry(control, blocks, links, bins, spill, thread, current, vertex, priority):
    """Enter a vertex into the thread's bin of its priority."""
    column = FAR
    if priority < current + NUM_NEAR:
        priority = max(priority, current)
        column = priority & (NUM_NEAR - 1)
    elif priority < bins[thread, FAR_LOWEST]:
        bins[thread, FAR_LOWEST] = priority
    column = nonnegative(column)
    block = bins[thread, column]
    count = ENTRIES if block == NONE else links[2 * nonnegative(block) + 1]
    if count == ENTRIES:
        fresh = take_block(control, links, bins, thread)
        if fresh == NONE:
            spill_entry(control, spill, vertex, priority)
            return
        links[2 * nonnegative(fresh)] = block
        bins[thread, column] = fresh
        block = fresh
        count = 0
    block = nonnegative(block)
    blocks[block, nonnegative(count)] = vertex
    links[2 * block + 1] = count + 1


@inner
def publish(control, links, bins, thread, column, published, base):
    """Hand the blocks of one bin to all threads, for the next superstep."""
    block = bins[thread, column]
    bins[thread, column] = NONE
    entries = 0
    while block != NONE:
        published[base + fetch_add(control, OUTPUT, 1)] = block
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
def settle_buckets(control, published):
    """Serial: the blocks published become the next superstep's work."""
    control[CURRENT] = control[LOWEST]
    control[NUM_PUBLISHED] = control[OUTPUT]
    control[PUBLISHED_AT] = published.shape[0] // 2 - control[PUBLISHED_AT]
    # Vertices that were spilled are entered first thing in the next superstep: the bucket stays until they are.
    store(control, LOWEST, control[CURRENT] if load(control, SPILLED) != 0 else NEVER)
    store(control, OUTPUT, control[ENTERED])
    store(control, ENTERED, 0)


@inner
def next_own(control, links, bins, thread, column, is_allowed):
    """Return a block that this thread added to the current bucket itself, or NONE."""
    block = bins[thread, column]
    if block == NONE or not is_allowed or load(control, STOP) != 0:
        return NONE
    bins[thread, column] = links[2 * block]
    return block


def enter(control, blocks, links, bins, waiting, spill, thread, current, vertex, STATE):
    """Let a vertex wait its turn."""
    raise_bit(waiting, vertex)
    add_entry(control, blocks, links, bins, spill, thread, current, vertex, bounded(PRIORITY(vertex=vertex)))


@inner
def prefetch_rows(blocks, block, entry, count, indptr, indices, weights, has_weights):
    """Begin to load the row of a vertex that will soon be visited, and where that of a later one is."""
    if entry + 2 * AHEAD_ENTRIES < count:
        prefetch(indptr, nonnegative(np.int64(blocks[block, entry + 2 * AHEAD_ENTRIES])))
    if entry + AHEAD_ENTRIES < count:
        row = nonnegative(np.int64(indptr[nonnegative(np.int64(blocks[block, entry + AHEAD_ENTRIES]))]))
        prefetch(indices, row)
        if has_weights:
            prefetch(weights, row)


def relax_block(num_threads, control, blocks, links, bins, waiting, spill, thread, current, block, indptr, indices,
                weights, STATE, SHARED):  # fmt: skip
    """Visit the edges of a block's vertices but the stale, enter the destinations the rule lets in, free the block."""
    visited = 0
    count = links[2 * block + 1]
    for entry in range(count):
        prefetch_rows(blocks, block, entry, count, indptr, indices, weights, HAS_WEIGHTS)
        src = nonnegative(np.int64(blocks[block, entry]))
        if not take_bit(waiting, src):
            continue
        if bounded(PRIORITY(vertex=src)) > current:
            enter(control, blocks, links, bins, waiting, spill, thread, current, src, STATE)
            continue
        start = nonnegative(np.int64(indptr[src]))
        stop = np.int64(indptr[src + 1])
        visited += stop - start
        for edge in range(start, stop):
            dst = nonnegative(np.int64(indices[edge]))
            if HAS_WHERE and not WHERE(vertex=dst):
                continue
            if IS_SHARDED:
                if owner[dst] != control[DEVICE]:
                    before = BEFORE(vertex=dst)
                    joins = RULE(src=src, dst=dst, edge=edge)
                    if tell(voices, dst, joins, CHANGED(vertex=dst, before=before), dirty, num_threads):
                        note(control, border, dst)
                    continue
            if RULE(src=src, dst=dst, edge=edge):
                if IS_SHARDED:
                    if control[SHARES_OWN] != 0 and tell(voices, dst, True, True, dirty, num_threads):
                        note(control, border, dst)
                enter(control, blocks, links, bins, waiting, spill, thread, current, dst, STATE)
    free_block(links, bins, thread, block)
    return visited


def sort_in(control, blocks, links, bins, waiting, spill, thread, current, STATE):
    """Enter the vertices of the far bin again, now that ``current`` has come nearer; drop the stale ones."""
    block = bins[thread, FAR]
    bins[thread, FAR] = NONE
    bins[thread, FAR_LOWEST] = NEVER
    while block != NONE:
        following = links[2 * block]
        for entry in range(links[2 * block + 1]):
            vertex = nonnegative(np.int64(blocks[block, entry]))
            if has_bit(waiting, vertex):
                priority = bounded(PRIORITY(vertex=vertex))
                add_entry(control, blocks, links, bins, spill, thread, current, vertex, priority)
        free_block(links, bins, thread, block)
        block = following


def take_spilled(thread, num_threads, control, blocks, links, bins, waiting, spill, current, STATE):
    """Enter the vertices of the spill bitmap: the first of the phase, or those that found no room."""
    length = spill.shape[0]
    for word in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        bits = spill[word]
        if bits != 0:
            bits = exchange(spill, word, np.uint64(0))
        while bits != 0:
            vertex = nonnegative((word << 6) + np.int64(trailing_zeros(bits)))
            bits &= bits - np.uint64(1)
            enter(control, blocks, links, bins, waiting, spill, thread, current, vertex, STATE)


@inner
def agree_on_lowest(control, world):
    """Serial: make the lowest bucket of all devices this one's."""
    store(world, posted(world, control[DEVICE], POSTED_LOWEST), load(control, LOWEST))
    meet(control, world)
    lowest = NEVER
    for device in range(world[WORLD_DEVICES]):
        lowest = min(lowest, load(world, posted(world, device, POSTED_LOWEST)))
    store(control, LOWEST, lowest)


def agree(thread, num_threads, control, blocks, links, bins, published, waiting, spill, STATE, SHARED):
    """Find the lowest bucket of all threads, and devices, and publish its blocks."""
    lowest_bin(control, bins, thread, control[CURRENT])
    if IS_SHARDED:
        generation = load(control, GENERATION)
        if arrive(control, num_threads):
            agree_on_lowest(control, world)
            release(control)
        else:
            await_release(control, generation)
    else:
        barrier(control, num_threads)
    current = load(control, LOWEST)
    if current != NEVER:
        if bins[thread, FAR_LOWEST] < current + NUM_NEAR:
            sort_in(control, blocks, links, bins, waiting, spill, thread, current, STATE)
        base = published.shape[0] // 2 - control[PUBLISHED_AT]
        publish(control, links, bins, thread, nonnegative(current & (NUM_NEAR - 1)), published, base)


def ordered_push(thread, num_threads, control, work, number, blocks, links, bins, published, waiting, spill, indptr,
                 indices, weights, STATE, SHARED):  # fmt: skip
    """Empty the published blocks of the current bucket."""
    if control[HAS_SPILLED] != 0:
        take_spilled(thread, num_threads, control, blocks, links, bins, waiting, spill, control[CURRENT], STATE)
    if control[CURRENT] == FIRST:
        agree(thread, num_threads, control, blocks, links, bins, published, waiting, spill, STATE, SHARED)
        generation = load(control, GENERATION)
        if arrive(control, num_threads):
            settle_buckets(control, published)
            store(control, OUTPUT, 0)
            release(control)
        else:
            await_release(control, generation)
    current = control[CURRENT]
    base = control[PUBLISHED_AT]
    column = nonnegative(current & (NUM_NEAR - 1))
    visited = 0
    turn = 0
    limit = ALONE_EDGES
    while True:
        piece, turn = next_piece(control, work, number, turn, thread, num_threads, control[NUM_PUBLISHED])
        if piece >= 0:
            block = published[nonnegative(base + piece)]
            limit = visited + ALONE_EDGES
        else:
            block = next_own(control, links, bins, thread, column, visited < limit)
        if block == NONE:
            break
        visited += relax_block(
            num_threads, control, blocks, links, bins, waiting, spill, thread, current, nonnegative(block), indptr,
            indices, weights, STATE, SHARED
        )  # fmt: skip
    fetch_add(control, EDGES, visited)


# What generated modules call as it is; the templates they have copies of.
__all__ = [
    "ALONE_EDGES",
    "FAR",
    "FAR_LOWEST",
    "FIRST",
    "NEVER",
    "NONE",
    "NUM_NEAR",
    "add_entry",
    "agree_on_lowest",
    "bounded",
    "free_block",
    "lowest_bin",
    "next_own",
    "prefetch_rows",
    "publish",
    "settle_buckets",
]
