# SPDX-License-Identifier: Apache-2.0
"""Advance by priority: buckets per thread, emptied lowest first (delta-stepping, if the priority is distance / delta).

A bin of a thread is a chain of blocks of vertices, all full but the newest.  Blocks are ENTRIES places each of one
arena (``blocks``) and return to the free chain of the thread that emptied them.  An *end* is the place behind a block's
last entry, and so says which block it is and how many entries it has; 0 is no block's.  Each thread's row of ``bins``:
for every bin the end of its newest block, then the free chain and the lowest priority in the far bin; ``links[block]``
is the end of the next block of the chain.  Bin of a priority p: p modulo NUM_NEAR while p < CURRENT + NUM_NEAR, else
the far bin, which is sorted in when its turn comes.  What has fallen below CURRENT goes next.

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
    TELLS,
    TELLS_POSTED,
    WORLD_DEVICES,
)
from shoal.backends.loops.hooks import (
    BEFORE,
    CHANGED,
    HAS_WEIGHTS,
    HAS_WHERE,
    IS_SHARDED,
    IS_STRICT,
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
LATE = NUM_NEAR + 1  # what has fallen below CURRENT, where bits do not say what is stale
FREE = NUM_NEAR + 2  # the end of the first block of the thread's free chain
FAR_LOWEST = NUM_NEAR + 3  # lowest priority in the far bin
BINS_ROW = NUM_NEAR + 8
NONE = 0
NO_ROOM = -1

ENTRY_BITS = 6
ENTRIES = 1 << ENTRY_BITS  # vertices per block: 256 bytes, long enough to stream, short enough to share out hubs
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
def block_of(end):
    """Return the block that ends there."""
    return nonnegative((end - 1) >> ENTRY_BITS)


@inner
def begin_of(end):
    """Return the place of the first entry of the block that ends there."""
    return nonnegative((end - 1) & ~(ENTRIES - 1))


@inner
def take_block(control, links, bins, thread):
    """Return the begin of an empty block, or NO_ROOM when the arena is full."""
    end = bins[thread, FREE]
    if end != NONE:
        bins[thread, FREE] = links[block_of(end)]
        return begin_of(end)
    block = fetch_add(control, BLOCKS_USED, 1)
    if block >= links.shape[0]:
        fetch_add(control, BLOCKS_USED, -1)
        return NO_ROOM
    return block * ENTRIES


@inner
def free_block(links, bins, thread, end):
    """Return a block to the thread's free chain."""
    links[block_of(end)] = bins[thread, FREE]
    bins[thread, FREE] = end


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
    add_to_bin(control, blocks, links, bins, spill, thread, nonnegative(column), vertex, priority)


@inner
def add_to_bin(control, blocks, links, bins, spill, thread, column, vertex, priority):
    """Enter a vertex into one of the thread's bins."""
    place = bins[thread, column]
    if place & (ENTRIES - 1) == 0:  # there is no block, or it is full
        fresh = take_block(control, links, bins, thread)
        if fresh == NO_ROOM:
            spill_entry(control, spill, vertex, priority)
            return
        links[nonnegative(fresh >> ENTRY_BITS)] = place
        place = fresh
    blocks[nonnegative(place)] = vertex
    bins[thread, column] = place + 1


@inner
def publish(control, links, bins, thread, column, published, base):
    """Hand the blocks of one bin to all threads, for the next superstep."""
    end = bins[thread, column]
    bins[thread, column] = NONE
    entries = 0
    while end != NONE:
        published[base + fetch_add(control, OUTPUT, 1)] = end
        entries += end - begin_of(end)
        end = links[block_of(end)]
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
    """Return the end of a block that this thread added to the current bucket itself, or NONE."""
    end = bins[thread, column]
    if end == NONE or not is_allowed or load(control, STOP) != 0:
        return NONE
    bins[thread, column] = links[block_of(end)]
    return end


def enter(control, blocks, links, bins, waiting, spill, thread, current, vertex, STATE):
    """Let a vertex wait its turn."""
    raise_bit(waiting, vertex)
    add_entry(control, blocks, links, bins, spill, thread, current, vertex, bounded(PRIORITY(vertex=vertex)))


@inner
def prefetch_rows(blocks, place, end, indptr, indices, weights, has_weights):
    """Begin to load the row of a vertex that will soon be visited, and where that of a later one is."""
    if place + 2 * AHEAD_ENTRIES < end:
        prefetch(indptr, nonnegative(np.int64(blocks[nonnegative(place + 2 * AHEAD_ENTRIES)])))
    if place + AHEAD_ENTRIES < end:
        prefetch_row(blocks, place + AHEAD_ENTRIES, indptr, indices, weights, has_weights)


@inner
def prefetch_row(blocks, place, indptr, indices, weights, has_weights):
    """Begin to load the row of a vertex."""
    row = nonnegative(np.int64(indptr[nonnegative(np.int64(blocks[nonnegative(place)]))]))
    prefetch(indices, row)
    if has_weights:
        prefetch(weights, row)


def relax_block(num_threads, control, blocks, links, bins, waiting, spill, thread, current, end, indptr, indices,
                weights, STATE, SHARED):  # fmt: skip
    """Visit the edges of a block's vertices but the stale, enter the destinations the rule lets in, free the block."""
    visited = 0
    for place in range(begin_of(end), end):
        prefetch_rows(blocks, place, end, indptr, indices, weights, HAS_WEIGHTS)
        src = nonnegative(np.int64(blocks[place]))
        if not take_bit(waiting, src):
            continue
        if bounded(PRIORITY(vertex=src)) > current:
            enter(control, blocks, links, bins, waiting, spill, thread, current, src, STATE)
            continue
        visited += relax_vertex(
            num_threads, control, blocks, links, bins, waiting, spill, thread, current, src, src, indptr, indices,
            weights, STATE, SHARED
        )  # fmt: skip
    free_block(links, bins, thread, end)
    return visited


def relax_vertex(num_threads, control, blocks, links, bins, waiting, spill, thread, current, src, row_at, indptr,
                 indices, weights, STATE, SHARED):  # fmt: skip
    """Visit the edges of a vertex and enter the destinations the rule lets in; return how many edges there are."""
    start = nonnegative(np.int64(indptr[row_at]))
    stop = np.int64(indptr[row_at + 1])
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
    return stop - start


def sort_in(control, blocks, links, bins, waiting, spill, thread, current, STATE):
    """Enter the vertices of the far bin again, now that ``current`` has come nearer; drop the stale ones."""
    end = bins[thread, FAR]
    bins[thread, FAR] = NONE
    bins[thread, FAR_LOWEST] = NEVER
    while end != NONE:
        following = links[block_of(end)]
        for place in range(begin_of(end), end):
            vertex = nonnegative(np.int64(blocks[place]))
            priority = bounded(PRIORITY(vertex=vertex))
            if priority >= current if IS_STRICT else has_bit(waiting, vertex):
                add_entry(control, blocks, links, bins, spill, thread, current, vertex, priority)
        free_block(links, bins, thread, end)
        end = following


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
    control[TELLS] = TELLS_POSTED
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
            end = published[nonnegative(base + piece)]
            limit = visited + ALONE_EDGES
        else:
            end = next_own(control, links, bins, thread, column, visited < limit)
        if end == NONE:
            break
        visited += relax_block(
            num_threads, control, blocks, links, bins, waiting, spill, thread, current, end, indptr, indices, weights,
            STATE, SHARED
        )  # fmt: skip
    fetch_add(control, EDGES, visited)


# What generated modules call as it is; the templates they have copies of.
__all__ = [
    "ALONE_EDGES",
    "ENTRIES",
    "FAR",
    "FAR_LOWEST",
    "FIRST",
    "LATE",
    "NEVER",
    "NONE",
    "NUM_NEAR",
    "add_entry",
    "add_to_bin",
    "agree_on_lowest",
    "begin_of",
    "block_of",
    "bounded",
    "free_block",
    "lowest_bin",
    "next_own",
    "prefetch_row",
    "prefetch_rows",
    "publish",
    "settle_buckets",
]
