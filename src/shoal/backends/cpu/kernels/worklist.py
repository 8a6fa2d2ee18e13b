# SPDX-License-Identifier: Apache-2.0
"""Templates of work without supersteps: each device is one thread that receives, takes, visits, sends and waits.

What waits to be visited is in bins as those of `shoal.backends.cpu.kernels.ordered`: blocks of an arena, with a bit in
``waiting`` per vertex.  Without priorities a bin is a generation: what is entered goes behind all that is there.  Where
rules let a vertex in only when its priority falls (IS_STRICT), there are no bits: an entry whose vertex has another
priority than its bin is stale, and what has fallen below CURRENT has a bin of its own, LATE.
Whatever the arena cannot take is in the bitmap ``spill``; `tidy` then throws out what is stale and enters the rest
anew: the arena has room for every vertex twice, so that there always is some.

A copy that a rule has changed is *listed*: once, by its bit in ``dirty``, so a list as long as there are vertices
cannot overflow.  Its value is read when it is sent, so what changes often in between is sent once.  A *channel* leads
from one device to another: a ring of items with a count of those written and one of those read, each on a line of its
own, and written by one side only.  What finds its channel full stays listed.

When the threshold rises, and when all is done: `shoal.backends.cpu.kernels.quiet`.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import (
    give_way,
    load,
    nanoseconds,
    nonnegative,
    prefetch,
    store,
    trailing_zeros,
)
from shoal.backends.cpu.kernels.ordered import (
    FAR,
    FAR_LOWEST,
    LATE,
    NONE,
    NUM_NEAR,
    add_entry,
    add_to_bin,
    begin_of,
    block_of,
    bounded,
    free_block,
    prefetch_row,
    sort_in,
)
from shoal.backends.cpu.kernels.quiet import channel_of, has_news, is_time_to_pause, say_busy, say_idle
from shoal.backends.cpu.runtime import has_bit
from shoal.backends.cpu.world import mark, stand_by, tell, unmark
from shoal.backends.loops.control import (
    BYTES_SENT,
    COMBINED,
    CURRENT,
    DEVICE,
    EDGES,
    IDLE,
    ITEMS_RECEIVED,
    ITEMS_SENT,
    JITTER,
    LINE,
    LISTED_BEGIN,
    LISTED_END,
    MESSAGES,
    NEVER,
    NUM_OWNED,
    SPILLED,
    STOP,
    WORK_ITEMS,
    WORLD_DEVICES,
    WORLD_SPINS,
)
from shoal.backends.loops.hooks import (
    BEFORE,
    CHANGED,
    FILTER,
    GUARD,
    HAS_GUARD,
    HAS_ON_RECEIVE,
    HAS_ON_SEND,
    HAS_PRIORITY,
    HAS_WEIGHTS,
    HAS_WHERE,
    IS_CERTAIN,
    IS_RENUMBERED,
    IS_SHARDED,
    IS_STRICT,
    ITEM_BYTES,
    MERGE,
    ON_RECEIVE,
    ON_SEND,
    PACK,
    PRIORITY,
    RESET,
    RULE,
    TAKE_UP,
    WHERE,
    address,
    channels,
    dirty,
    hops,
    listed,
    mail_at,
    mail_ids,
    mail_room,
    owner,
    voices,
    world,
)
from shoal.worklists import KEEP, PASS

# Listed vertices that are sent at once: enough to share the cost of telling the receiver, few enough not to keep it
# waiting.
SENT_TOGETHER = 256
# Edges that a guard has let pass are visited when there are so many, or the block ends: as many as stay in the first
# cache with what they lead to.
FOUND_TOGETHER = 512
# Priorities above the threshold that a device goes ahead by while it waits.  Two devices, searches of New York's and
# Florida's roads: they wait a quarter of the time that they do with none; with 16 as much again as with 64, and with
# 128 they visit up to a tenth more vertices.
AHEAD = 64
# Vertices whose row of edges is fetched before its turn; where it begins was asked for when they were entered.
ROWS_AHEAD = 8


@inner
def dawdle(control):
    """Now and then, if asked to, let other devices get ahead."""
    number = control[JITTER]
    if number == 0:
        return
    number ^= number << 13  # Marsaglia's xorshift
    number ^= (number >> 7) & 0x1FFFFFFFFFFFFFF
    number ^= number << 17
    control[JITTER] = number
    if number & 7 == 0:
        until = nanoseconds() + ((number >> 8) & 0x3FFF)
        while nanoseconds() < until:
            give_way()


@inner
def add_listed(control, listed, vertex):
    """List a vertex for others."""
    listed[nonnegative(control[LISTED_END] % listed.shape[0])] = vertex
    control[LISTED_END] += 1


@inner
def lowest_waiting(bins, current):
    """Return the lowest priority that may have entries, which what is late goes with; NEVER without any."""
    if bins[0, LATE] != NONE:
        return current
    for priority in range(current, current + NUM_NEAR):
        if bins[0, nonnegative(priority & (NUM_NEAR - 1))] != NONE:
            return min(priority, bins[0, FAR_LOWEST])
    return bins[0, FAR_LOWEST]


def enter(control, blocks, links, bins, waiting, spill, vertex, STATE):
    """Let a vertex of this device's wait."""
    current = control[CURRENT]
    if IS_STRICT:
        priority = bounded(PRIORITY(vertex=vertex))
        if priority < current:
            add_to_bin(control, blocks, links, bins, spill, 0, LATE, vertex, priority)
        else:
            add_entry(control, blocks, links, bins, spill, 0, current, vertex, priority)
    else:
        is_new = mark(waiting, vertex, 1)
        if HAS_PRIORITY:
            add_entry(control, blocks, links, bins, spill, 0, current, vertex, bounded(PRIORITY(vertex=vertex)))
        elif is_new:
            add_entry(control, blocks, links, bins, spill, 0, current, vertex, current + 1)


def is_waiting(waiting, vertex, column, current, STATE):
    """Whether a vertex that has an entry in a bin waits; if not, it went with another entry since."""
    if IS_STRICT:
        priority = bounded(PRIORITY(vertex=vertex))
        if column == FAR:
            return priority > current
        return column == LATE or priority == current + ((column - current) & (NUM_NEAR - 1))
    return has_bit(waiting, vertex)


def collect_waiting(control, blocks, links, bins, waiting, spill, STATE):
    """Let all that waits in the bins wait in the spill bitmap."""
    for column in range(LATE + 1):
        end = bins[0, column]
        bins[0, column] = NONE
        while end != NONE:
            following = links[block_of(end)]
            for place in range(begin_of(end), end):
                vertex = nonnegative(np.int64(blocks[place]))
                if is_waiting(waiting, vertex, column, control[CURRENT], STATE):
                    mark(spill, vertex, 1)
            free_block(links, bins, 0, end)
            end = following
    bins[0, FAR_LOWEST] = NEVER


def tidy(control, blocks, links, bins, waiting, spill, STATE):
    """Enter every vertex that waits once: those of the spill bitmap, and those of all bins."""
    collect_waiting(control, blocks, links, bins, waiting, spill, STATE)
    control[SPILLED] = 0
    for word in range(spill.shape[0]):
        bits = spill[word]
        spill[word] = np.uint64(0)
        while bits != 0:
            vertex = nonnegative((word << 6) + np.int64(trailing_zeros(bits)))
            bits &= bits - np.uint64(1)
            if not IS_STRICT:
                unmark(waiting, vertex, 1)
            enter(control, blocks, links, bins, waiting, spill, vertex, STATE)


def pass_on(control, blocks, links, bins, waiting, spill, src, dst, edge, indptr, weights, STATE, SHARED):
    """Visit an edge: let its destination wait, or list it for its owner, if the rule says so."""
    if HAS_WHERE and not WHERE(vertex=dst):
        return
    if IS_SHARDED:
        is_copy = dst >= control[NUM_OWNED] if IS_RENUMBERED else owner[dst] != control[DEVICE]
        if is_copy:
            before = BEFORE(vertex=dst)
            joins = RULE(src=src, dst=dst, edge=edge)
            changed = CHANGED(vertex=dst, before=before)
            if HAS_ON_SEND:
                if not joins and not changed:
                    return
                if ON_SEND(vertex=dst, is_owned=False) & PASS == 0:
                    return
            if tell(voices, dst, joins, changed, dirty, 1):
                add_listed(control, listed, dst)
            return
    if RULE(src=src, dst=dst, edge=edge) and FILTER(vertex=dst):
        if HAS_ON_SEND:
            flags = ON_SEND(vertex=dst, is_owned=True)
            if IS_SHARDED:
                if flags & PASS != 0 and tell(voices, dst, True, True, dirty, 1):
                    add_listed(control, listed, dst)
            if flags & KEEP == 0:
                return
        prefetch(indptr, dst)
        enter(control, blocks, links, bins, waiting, spill, dst, STATE)


def pass_on_found(control, blocks, links, bins, waiting, spill, found, num_found, indptr, indices, weights, STATE,
                  SHARED):  # fmt: skip
    """Visit the edges that were found to be worth it."""
    for place in range(num_found):
        src = nonnegative(found[0, place])
        edge = nonnegative(found[1, place])
        dst = nonnegative(np.int64(indices[edge]))
        pass_on(control, blocks, links, bins, waiting, spill, src, dst, edge, indptr, weights, STATE, SHARED)


def visit_block(control, blocks, links, bins, waiting, spill, found, column, end, level, indptr, indices, weights,
                STATE, SHARED):  # fmt: skip
    """Visit the vertices of a block that still wait, none of a priority above ``level``, and free it."""
    visited = 0
    items = 0
    num_found = nonnegative(0)
    current = control[CURRENT]
    begin = begin_of(end)
    for place in range(begin, min(begin + ROWS_AHEAD, end)):
        prefetch_row(blocks, place, indptr, indices, weights, HAS_WEIGHTS)
    for place in range(begin, end):
        if place + ROWS_AHEAD < end:
            prefetch_row(blocks, place + ROWS_AHEAD, indptr, indices, weights, HAS_WEIGHTS)
        src = nonnegative(np.int64(blocks[place]))
        if not is_waiting(waiting, src, column, current, STATE):
            continue
        if not IS_STRICT:
            if HAS_PRIORITY:
                priority = bounded(PRIORITY(vertex=src))
                if priority > level:
                    add_entry(control, blocks, links, bins, spill, 0, current, src, priority)
                    continue
            unmark(waiting, src, 1)
        items += 1
        TAKE_UP(vertex=src)
        start = nonnegative(np.int64(indptr[src]))
        stop = np.int64(indptr[src + 1])
        visited += stop - start
        for edge in range(start, stop):
            dst = nonnegative(np.int64(indices[edge]))
            if HAS_GUARD:
                found[0, num_found] = src
                found[1, num_found] = edge
                num_found = nonnegative(num_found + GUARD(src=src, dst=dst, edge=edge))
                if num_found == FOUND_TOGETHER:
                    pass_on_found(control, blocks, links, bins, waiting, spill, found, num_found, indptr, indices,
                                  weights, STATE, SHARED)  # fmt: skip
                    num_found = nonnegative(0)
            else:
                pass_on(control, blocks, links, bins, waiting, spill, src, dst, edge, indptr, weights, STATE, SHARED)
    if HAS_GUARD:
        pass_on_found(control, blocks, links, bins, waiting, spill, found, num_found, indptr, indices, weights, STATE,
                      SHARED)  # fmt: skip
    free_block(links, bins, 0, end)
    control[EDGES] += visited
    control[WORK_ITEMS] += items


def send_listed(control, STATE, SHARED):
    """Put listed vertices and their values into the channels, as many as find room."""
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    length = listed.shape[0]
    begin = control[LISTED_BEGIN]
    end = control[LISTED_END]
    sent = 0
    for position in range(begin, end):
        vertex = nonnegative(np.int64(listed[nonnegative(position % length)]))
        pair = nonnegative(device * devices + hops[nonnegative(np.int64(owner[vertex]))])
        written = channels[nonnegative(pair * 2 * LINE + 1)]  # the sender's own count runs ahead of what it has told
        if written - load(channels, nonnegative(pair * 2 * LINE + LINE)) >= mail_room[pair]:
            add_listed(control, listed, vertex)
            continue
        slot = nonnegative(mail_at[pair] + (written & (mail_room[pair] - 1)))
        name = vertex
        if IS_RENUMBERED:
            name = np.int64(address[vertex])
        joins = has_bit(voices, vertex)
        mail_ids[slot] = name if joins else ~name
        PACK(slot=slot, vertex=vertex)
        unmark(dirty, vertex, 1)
        if joins:
            unmark(voices, vertex, 1)
        if HAS_ON_SEND or HAS_ON_RECEIVE:
            if np.int64(owner[vertex]) != device:  # an owner that tells others keeps what it has
                RESET(vertex=vertex)
        else:
            RESET(vertex=vertex)
        channels[nonnegative(pair * 2 * LINE + 1)] = written + 1
        sent += 1
    control[LISTED_BEGIN] = end
    if sent > 0:
        for receiver in range(devices):
            place = channel_of(world, device, receiver)
            written = channels[nonnegative(place + 1)]
            if written != channels[place]:
                store(channels, place, written)
                control[MESSAGES] += 1
        control[ITEMS_SENT] += sent
        control[BYTES_SENT] += sent * (mail_ids.itemsize + ITEM_BYTES)


def receive(control, blocks, links, bins, waiting, spill, STATE, SHARED):
    """Combine what has arrived with this device's values; enter what that changes, and list what others own."""
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    for sender in range(devices):
        place = channel_of(world, sender, device)
        written = load(channels, place)
        read = channels[nonnegative(place + LINE)]
        if written == read:
            continue
        pair = nonnegative(sender * devices + device)
        for item in range(read, written):
            slot = nonnegative(mail_at[pair] + (item & (mail_room[pair] - 1)))
            code = np.int64(mail_ids[slot])
            joins = code >= 0
            vertex = nonnegative(code if joins else ~code)
            if HAS_ON_RECEIVE:
                is_owned = np.int64(owner[vertex]) == device
                flags = ON_RECEIVE(slot=slot, vertex=vertex, is_owned=is_owned)
                if flags & (KEEP | PASS) == 0:
                    continue
                changed = MERGE(slot=slot, vertex=vertex, is_alone=True)
                if flags & PASS != 0 and tell(voices, vertex, joins and changed, changed, dirty, 1):
                    add_listed(control, listed, vertex)
                if flags & KEEP != 0 and is_owned and joins and changed and FILTER(vertex=vertex):
                    enter(control, blocks, links, bins, waiting, spill, vertex, STATE)
                continue
            changed = MERGE(slot=slot, vertex=vertex, is_alone=True)
            if IS_CERTAIN:
                changed = changed or joins
            if np.int64(owner[vertex]) != device:
                if tell(voices, vertex, joins and changed, changed, dirty, 1):
                    add_listed(control, listed, vertex)
            elif joins and changed and FILTER(vertex=vertex):
                enter(control, blocks, links, bins, waiting, spill, vertex, STATE)
        store(channels, nonnegative(place + LINE), written)
        control[ITEMS_RECEIVED] += written - read
        control[COMBINED] += written - read


def visit_lowest(control, blocks, links, bins, waiting, spill, found, lowest, indptr, indices, weights, STATE,
                 SHARED):  # fmt: skip
    """Visit a block of the lowest priority, or sort in what waits far ahead first; return whether that bin is empty."""
    control[CURRENT] = lowest
    if HAS_PRIORITY and bins[0, FAR] != NONE and bins[0, FAR_LOWEST] < lowest + NUM_NEAR:
        sort_in(control, blocks, links, bins, waiting, spill, 0, lowest, STATE)
        return False
    column = nonnegative(lowest & (NUM_NEAR - 1))
    if IS_STRICT:
        if bins[0, LATE] != NONE:
            column = nonnegative(LATE)
    end = bins[0, column]
    bins[0, column] = links[block_of(end)]
    visit_block(
        control, blocks, links, bins, waiting, spill, found, column, end, lowest, indptr, indices, weights, STATE,
        SHARED
    )  # fmt: skip
    return bins[0, column] == NONE


def go_ahead(control, blocks, links, bins, waiting, spill, found, threshold, indptr, indices, weights, STATE,
             SHARED):  # fmt: skip
    """Visit a block that waits a little above the threshold, if there is one; return whether there was.

    CURRENT stays where it is, so that whatever comes below has its place before all of this.
    """
    current = control[CURRENT]
    for priority in range(max(current, threshold + 1), min(current + NUM_NEAR, threshold + 1 + AHEAD)):
        column = nonnegative(priority & (NUM_NEAR - 1))
        end = bins[0, column]
        if end != NONE:
            bins[0, column] = links[block_of(end)]
            visit_block(
                control, blocks, links, bins, waiting, spill, found, column, end, priority, indptr, indices, weights,
                STATE, SHARED
            )  # fmt: skip
            return True
    return False


def await_work(control, blocks, links, bins, waiting, spill, found, lowest, threshold, indptr, indices, weights,
               STATE, SHARED):  # fmt: skip
    """Wait for mail or a higher threshold, and return the threshold; NEVER if there is nothing left anywhere.

    Who waits has nothing to lose, so it goes ahead of the threshold, by itself: what it finds stays listed, and what it
    finds too early is found again, as if nobody had been there.  All that it has told the others stays true.
    """
    is_paused = is_time_to_pause(control)
    since = nanoseconds()
    say_idle(control, world, NEVER if is_paused else lowest)
    spins = 0
    while not has_news(control, world, channels, threshold, is_paused):
        if HAS_PRIORITY and control[SPILLED] == 0 and not is_paused:
            if go_ahead(control, blocks, links, bins, waiting, spill, found, threshold, indptr, indices, weights, STATE,
                        SHARED):  # fmt: skip
                since = nanoseconds()
                continue
        began = nanoseconds()
        spins += 1
        if spins > world[WORLD_SPINS]:
            stand_by(world, since)
        control[IDLE] += nanoseconds() - began
    return say_busy(control, world)


def work(control, blocks, links, bins, waiting, spill, found, indptr, indices, weights, threshold, STATE, SHARED):
    """Receive, visit, send and wait, until nothing is left on any device."""
    while load(control, STOP) == 0:
        dawdle(control)
        if control[SPILLED] != 0:
            tidy(control, blocks, links, bins, waiting, spill, STATE)
        if IS_SHARDED:
            receive(control, blocks, links, bins, waiting, spill, STATE, SHARED)
        lowest = lowest_waiting(bins, control[CURRENT])
        if lowest <= threshold and not is_time_to_pause(control):
            is_empty = visit_lowest(control, blocks, links, bins, waiting, spill, found, lowest, indptr, indices,
                                    weights, STATE, SHARED)  # fmt: skip
            if IS_SHARDED:
                if control[LISTED_END] - control[LISTED_BEGIN] >= SENT_TOGETHER or is_empty:
                    send_listed(control, STATE, SHARED)
        elif IS_SHARDED:
            send_listed(control, STATE, SHARED)
            if control[LISTED_END] == control[LISTED_BEGIN]:
                threshold = await_work(control, blocks, links, bins, waiting, spill, found, lowest, threshold, indptr,
                                       indices, weights, STATE, SHARED)  # fmt: skip
                if threshold == NEVER:
                    break
            elif world[WORLD_SPINS] == 0:
                give_way()  # a channel is full, and whoever empties it may need the core
        else:
            break
    collect_waiting(control, blocks, links, bins, waiting, spill, STATE)  # what a pause has left
    control[SPILLED] = 1


# What generated modules call as it is; the templates they have copies of.
__all__ = [
    "AHEAD",
    "FOUND_TOGETHER",
    "KEEP",
    "PASS",
    "ROWS_AHEAD",
    "SENT_TOGETHER",
    "add_listed",
    "dawdle",
    "lowest_waiting",
]
