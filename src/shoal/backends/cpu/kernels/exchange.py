# SPDX-License-Identifier: Apache-2.0
"""Templates of the exchanges between devices (see `shoal.exchanges`): list, pack, meet, merge, clean.

A device lists the vertices it has news of in ``border``, packs them and their values into its part of the mail, which
all devices can read, and when all have met merges what the schedule's round has for it.  Schedule and routing are data:
with routing a device has mail for every other, ``mail_at[sender * devices + receiver]``; without, one for all of them,
``mail_at[sender * devices + sender]``, and whoever is not concerned passes it by.

Who writes what: a device its own mail, border and bitmaps; of its threads each takes a share of the items.  Two of them
may have items for one vertex, from different devices: values are combined by atomics.  An id in the mail is that of
the receiver's numbering; its complement says that the vertex does not join the frontier.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import fetch_add, load, nanoseconds, nonnegative, population_count, store
from shoal.backends.cpu.runtime import flush, has_bit
from shoal.backends.cpu.world import bytes_sent, mark, meet, note, num_items, posted, take_number, tell, unmark
from shoal.backends.loops.control import (
    BORDER,
    BYTES_SENT,
    COMBINED,
    COMBINING,
    DEVICE,
    FORWARDS_ALL,
    FORWARDS_LAST,
    IS_READING,
    ITEMS_SENT,
    MESSAGES,
    NUM_LOCAL,
    PACKING,
    POSTED_LISTED,
    ROUND,
    SHARES_OWN,
    SINCE,
    TELLS,
    TELLS_BITS,
    TELLS_MAIL,
    WORLD_DEVICES,
    WORLD_FORWARDS,
    WORLD_ROUNDS,
    WORLD_ROUTED,
)
from shoal.backends.loops.hooks import (
    ANNOUNCES,
    CAN_PULL,
    DIFFERS,
    ENTER,
    FETCH,
    HAS_OUTPUT,
    IS_CERTAIN,
    IS_DECIDED,
    IS_ORDERED,
    IS_REPLICATED,
    MERGE,
    MERGE_COPY,
    PACK,
    PACK_COPY,
    REACHES_ALL,
    REMEMBER,
    RESET,
    TAKE,
)

# Items whose vertices' values are fetched before their turn: they are scattered over memory.
AHEAD_ITEMS = 16


@inner
def list_vertices(thread, num_threads, control, queue, begin, end, border):
    """Put the thread's share of ``queue[begin:end]`` into the border, which is empty."""
    length = end - begin
    for position in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        border[position] = queue[begin + position]


@inner
def post_items(control, world, table, round_number, num_own, item_bytes, exchange):
    """Serial: tell the others how many items there are for them, count them, and wait for the others to do so.

    The exchange's number says which fields' values an item has.
    """
    control[PACKING] += nanoseconds() - control[SINCE]
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    if world[WORLD_ROUTED] == 0 and (round_number == 0 or world[WORLD_FORWARDS] == FORWARDS_ALL):
        store(world, num_items(world, device, device), load(control, BORDER) + num_own)
        store(world, posted(world, device, POSTED_LISTED), load(control, BORDER))
    control[TELLS] = TELLS_MAIL + exchange
    control[ROUND] = round_number
    meet(control, world)
    receivers = table[nonnegative(round_number * devices + device)]
    control[MESSAGES] += receivers
    items = np.int64(0)
    if world[WORLD_ROUTED] != 0:
        for peer in range(devices):
            told = load(world, num_items(world, device, peer))
            items += told
            world[bytes_sent(world, device, peer)] += told * item_bytes
    else:
        origin = device
        if world[WORLD_FORWARDS] == FORWARDS_LAST:
            origin = (device - round_number + devices) % devices
        told = load(world, num_items(world, origin, origin))
        items = receivers * told
        world[bytes_sent(world, device, round_number)] += told * item_bytes
    control[ITEMS_SENT] += items
    control[BYTES_SENT] += items * item_bytes
    control[SINCE] = nanoseconds()


@inner
def begin_round(control, world):
    """Serial: let nobody write mail that others may still be reading; devices that have met since have read it."""
    if control[IS_READING] != 0:
        meet(control, world)
    device = control[DEVICE]
    if world[WORLD_ROUTED] != 0:
        for peer in range(world[WORLD_DEVICES]):
            store(world, num_items(world, device, peer), 0)
    control[SINCE] = nanoseconds()


@inner
def end_round(control, world, round_number):
    """Serial: go on to the next round, or past the exchange without waiting for others."""
    control[IS_READING] = 1
    control[COMBINING] += nanoseconds() - control[SINCE]
    if round_number + 1 < world[WORLD_ROUNDS]:
        begin_round(control, world)


@inner
def find_mail(control, world, round_number, peer, mail_at):
    """Return whose mail a device reads that receives from ``peer``, where it begins and how many items it has."""
    device = control[DEVICE]
    sender = sender_of(world, peer, round_number)
    receiver = device if world[WORLD_ROUTED] != 0 else sender
    place = nonnegative(sender * world[WORLD_DEVICES] + receiver)
    return sender, mail_at[place], load(world, num_items(world, sender, receiver))


@inner
def sender_of(world, peer, round_number):
    """Return whose mail a device reads that receives from ``peer``: in a ring what started so many places back."""
    if world[WORLD_FORWARDS] == FORWARDS_LAST:
        devices = world[WORLD_DEVICES]
        return (peer - round_number + devices) % devices
    return peer


def pack_collected(thread, num_threads, control, world, owner, address, border, dirty, voices, mail_at, mail_ids, marks,
                   queue, base, num_own, STATE):  # fmt: skip
    """Write the border's vertices and their values into the mail: for their owners, or for all.

    What all are told includes this device's own vertices that joined, ``queue[base : base + num_own]``.
    """
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    count = load(control, BORDER)
    is_renumbered = address.shape[0] > 0
    is_routed = world[WORLD_ROUTED] != 0
    forwards = world[WORLD_FORWARDS] == FORWARDS_ALL
    place = mail_at[nonnegative(device * devices + device)]
    for position in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
        vertex = nonnegative(np.int64(border[position]))
        name = vertex
        slot = place + position
        if is_routed:
            peer = np.int64(owner[vertex])
            slot = mail_at[nonnegative(device * devices + peer)]
            slot += take_number(world, num_items(world, device, peer), num_threads)
            if is_renumbered:
                name = np.int64(address[vertex])
        slot = nonnegative(slot)
        mail_ids[slot] = name if not IS_REPLICATED and has_bit(voices, vertex) else ~name
        PACK(slot=slot, vertex=vertex)
        if not IS_REPLICATED and not forwards:
            forget(thread, num_threads, control, owner, dirty, voices, vertex, marks, STATE)
    for position in range(nonnegative(thread * num_own // num_threads), (thread + 1) * num_own // num_threads):
        vertex = nonnegative(np.int64(queue[base + position]))
        slot = nonnegative(place + count + position)
        mail_ids[slot] = vertex
        if forwards:
            PACK(slot=slot, vertex=vertex)
        else:
            PACK_COPY(slot=slot, vertex=vertex)


def merge_collected(thread, num_threads, control, world, round_number, receive_at, receive_from, mail_at, mail_ids,
                    owner, dirty, voices, border, marks, queue, base, output, capacity, outbox, blocks, links, bins,
                    waiting, spill, current, STATE):  # fmt: skip
    """Combine a round's items with this device's values; what they change, and may join, joins the output."""
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    is_routed = world[WORLD_ROUTED] != 0
    forwards = world[WORLD_FORWARDS] == FORWARDS_ALL
    shares_own = control[SHARES_OWN] != 0
    pending = 0
    combined = 0
    table_row = nonnegative(round_number * devices + device)
    for i in range(receive_at[table_row], receive_at[table_row + 1]):
        sender, first, count = find_mail(control, world, round_number, receive_from[nonnegative(i)], mail_at)
        if REACHES_ALL and not IS_REPLICATED and not is_routed and not forwards:
            total = count
            count = load(world, posted(world, sender, POSTED_LISTED))
            length = total - count
            begin = first + count + thread * length // num_threads
            end = first + count + (thread + 1) * length // num_threads
            for slot in range(nonnegative(begin), end):
                if slot + AHEAD_ITEMS < end:
                    FETCH(vertex=nonnegative(np.int64(mail_ids[slot + AHEAD_ITEMS])))
                vertex = nonnegative(np.int64(mail_ids[slot]))
                combined += 1
                if MERGE_COPY(slot=slot, vertex=vertex, is_alone=num_threads == 1) and CAN_PULL:
                    mark(marks, vertex, num_threads)
        for item in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
            slot = nonnegative(first + item)
            if item + AHEAD_ITEMS < (thread + 1) * count // num_threads:
                coming = np.int64(mail_ids[slot + AHEAD_ITEMS])
                FETCH(vertex=nonnegative(max(coming, ~coming)))
            code = np.int64(mail_ids[slot])
            joins = code >= 0
            vertex = nonnegative(code if joins else ~code)
            is_own = np.int64(owner[vertex]) == device
            if not is_own and not REACHES_ALL and not forwards:
                continue
            combined += 1
            if is_own or forwards:
                changed = MERGE(slot=slot, vertex=vertex, is_alone=num_threads == 1)
            else:
                changed = MERGE_COPY(slot=slot, vertex=vertex, is_alone=num_threads == 1)
            if IS_DECIDED:
                joins = changed
            elif IS_CERTAIN:
                changed = changed or joins
            if joins and changed and is_own:
                if IS_ORDERED:
                    ENTER(vertex=vertex)
                elif HAS_OUTPUT and mark(marks, vertex, num_threads):
                    outbox[thread, pending] = vertex
                    pending += 1
                    if pending == outbox.shape[1]:
                        flush(control, output, base, capacity, queue, outbox, thread, pending)
                        pending = 0
            if REACHES_ALL and CAN_PULL and shares_own and joins and changed and not is_own:
                mark(marks, vertex, num_threads)
            if not IS_REPLICATED and forwards and changed and (IS_ORDERED or not is_own):
                if tell(voices, vertex, joins, True, dirty, num_threads):
                    note(control, border, vertex)
    if HAS_OUTPUT and not IS_ORDERED:
        flush(control, output, base, capacity, queue, outbox, thread, pending)
    fetch_add(control, COMBINED, combined)


def forget(thread, num_threads, control, owner, dirty, voices, vertex, marks, STATE):
    """Take a vertex off the border; empty a copy whose values must not be sent twice."""
    unmark(dirty, vertex, num_threads)
    joins = has_bit(voices, vertex)
    if joins:
        unmark(voices, vertex, num_threads)
    if np.int64(owner[vertex]) != control[DEVICE]:
        RESET(vertex=vertex)
        if REACHES_ALL and CAN_PULL and joins and control[SHARES_OWN] != 0:
            mark(marks, vertex, num_threads)  # found here: in the next frontier, as all devices know


def empty_copies(thread, num_threads, control, owner, STATE):
    """Empty the thread's share of all copies."""
    length = control[NUM_LOCAL]
    for vertex in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        if np.int64(owner[vertex]) != control[DEVICE]:
            RESET(vertex=vertex)


def clean_border(thread, num_threads, control, owner, dirty, voices, border, marks, STATE):
    """Forget all that was listed."""
    count = load(control, BORDER)
    for position in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
        vertex = nonnegative(np.int64(border[position]))
        forget(thread, num_threads, control, owner, dirty, voices, vertex, marks, STATE)


def pack_mirrored(thread, num_threads, control, world, copy_at, copy_peers, copy_ids, border, mail_at, mail_ids, STATE):
    """Write the border's vertices, this device's own, and their values into the mail: for whoever has copies."""
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    count = load(control, BORDER)
    for position in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
        vertex = nonnegative(np.int64(border[position]))
        if world[WORLD_ROUTED] == 0:
            slot = nonnegative(mail_at[nonnegative(device * devices + device)] + position)
            mail_ids[slot] = vertex
            PACK(slot=slot, vertex=vertex)
            continue
        for i in range(copy_at[vertex], copy_at[vertex + 1]):
            peer = np.int64(copy_peers[nonnegative(i)])
            place = mail_at[nonnegative(device * devices + peer)]
            slot = nonnegative(place + take_number(world, num_items(world, device, peer), num_threads))
            mail_ids[slot] = copy_ids[nonnegative(i)]
            PACK(slot=slot, vertex=vertex)


def take_mirrored(thread, num_threads, control, world, round_number, receive_at, receive_from, mail_at, mail_ids, marks,
                  border, STATE):  # fmt: skip
    """Put the owners' values of a round into this device's copies; with an announced frontier mark them too."""
    forwards = world[WORLD_FORWARDS] == FORWARDS_ALL
    combined = 0
    table_row = nonnegative(round_number * world[WORLD_DEVICES] + control[DEVICE])
    for i in range(receive_at[table_row], receive_at[table_row + 1]):
        _, first, count = find_mail(control, world, round_number, receive_from[nonnegative(i)], mail_at)
        for item in range(nonnegative(thread * count // num_threads), (thread + 1) * count // num_threads):
            slot = nonnegative(first + item)
            vertex = nonnegative(np.int64(mail_ids[slot]))
            combined += 1
            TAKE(slot=slot, vertex=vertex)
            if ANNOUNCES:
                mark(marks, vertex, num_threads)
            if forwards:
                note(control, border, vertex)
    fetch_add(control, COMBINED, combined)


@inner
def post_bits(thread, num_threads, control, front, mail_bits):
    """Copy the thread's share of the frontier's bitmap into this device's part of the mail, and count its vertices."""
    words = front.shape[0]
    first = control[DEVICE] * words
    count = np.int64(0)
    for word in range(nonnegative(thread * words // num_threads), (thread + 1) * words // num_threads):
        mail_bits[nonnegative(first + word)] = front[word]
        count += np.int64(population_count(front[word]))
    fetch_add(control, BORDER, count)


@inner
def take_bits(thread, num_threads, control, world, round_number, receive_at, receive_from, mail_bits, front):
    """Add the frontiers that a round has for this device to its own."""
    devices = world[WORLD_DEVICES]
    words = front.shape[0]
    table_row = nonnegative(round_number * devices + control[DEVICE])
    for i in range(receive_at[table_row], receive_at[table_row + 1]):
        sender = sender_of(world, receive_from[nonnegative(i)], round_number)
        first = sender * words
        for word in range(nonnegative(thread * words // num_threads), (thread + 1) * words // num_threads):
            front[word] |= mail_bits[nonnegative(first + word)]


@inner
def count_bits(control, world, table, round_number, num_bytes):
    """Serial: count the bitmaps that are sent, and their vertices; wait for the others."""
    control[PACKING] += nanoseconds() - control[SINCE]
    device = control[DEVICE]
    devices = world[WORLD_DEVICES]
    if round_number == 0 or world[WORLD_FORWARDS] == FORWARDS_ALL:
        store(world, num_items(world, device, device), load(control, BORDER))
        store(control, BORDER, 0)
    control[TELLS] = TELLS_BITS
    control[ROUND] = round_number
    meet(control, world)
    receivers = table[nonnegative(round_number * devices + device)]
    origin = device
    if world[WORLD_FORWARDS] == FORWARDS_LAST:
        origin = (device - round_number + devices) % devices
    control[MESSAGES] += receivers
    control[ITEMS_SENT] += receivers * load(world, num_items(world, origin, origin))
    control[BYTES_SENT] += receivers * num_bytes
    world[bytes_sent(world, device, round_number)] += num_bytes
    control[SINCE] = nanoseconds()


def list_changes(thread, num_threads, control, border, STATE):
    """List the vertices whose values are other than before the operator."""
    length = control[NUM_LOCAL]
    for vertex in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        if DIFFERS(vertex=vertex):
            note(control, border, vertex)


def remember_values(thread, num_threads, control, STATE):
    """Note all values before an operator, to find what it changes.  Until then all devices know the same."""
    length = control[NUM_LOCAL]
    for vertex in range(nonnegative(thread * length // num_threads), (thread + 1) * length // num_threads):
        REMEMBER(vertex=vertex)


# What generated modules call as it is; the templates they have copies of.
__all__ = [
    "AHEAD_ITEMS",
    "begin_round",
    "count_bits",
    "end_round",
    "find_mail",
    "list_vertices",
    "post_bits",
    "post_items",
    "sender_of",
    "take_bits",
]
