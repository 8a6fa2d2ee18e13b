# SPDX-License-Identifier: Apache-2.0
"""Quiet: how devices without supersteps find that nothing is left below the threshold, or at all; no device leads.

Threshold: a device visits vertices whose priority is not above it, lowest first.  It rises when nothing below it is
left: all devices are idle, and as many items were received as were sent.  Each device has a line with its state (odd:
idle; it only counts up) and, written before that turned odd, what it has sent and received and the lowest priority that
waits there.  Whoever reads all lines twice with the same odd states in between has seen one moment in which nobody
worked and nothing was under way (Mattern's four counters, with the states for the second two).  Nothing can come of
such a moment but by a higher threshold, and as that only rises, one compare-and-exchange sets it.

A pause is such a moment, too: devices that are to pause visit nothing and say that nothing waits, so the threshold
rises to where all is done as soon as all that was sent has been received.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import compare_exchange, load, nanoseconds, nonnegative, store
from shoal.backends.cpu.world import posted
from shoal.backends.loops.control import (
    BUDGET,
    DEVICE,
    ITEMS_RECEIVED,
    ITEMS_SENT,
    LINE,
    NEVER,
    POSTED_ITEMS_RECEIVED,
    POSTED_ITEMS_SENT,
    POSTED_LOWEST,
    POSTED_STATE,
    STOP,
    UNLIMITED,
    WORLD_DEVICES,
    WORLD_THRESHOLD,
)

# Priorities that one rise of the threshold takes in.  At every rise devices wait for one another, but who waits goes
# ahead; a device that runs ahead of others does what they make useless.  Two devices, searches of New York's and
# Florida's roads: 4 take up to a tenth less time than 16, and than 64.
WINDOW = 4


@inner
def channel_of(world, sender, receiver):
    """Return the place of a channel's count of items written; that of items read is a line behind it."""
    return nonnegative((sender * world[WORLD_DEVICES] + receiver) * 2 * LINE)


@inner
def has_mail(control, world, channels):
    """Whether any channel has something for this device."""
    for sender in range(world[WORLD_DEVICES]):
        place = channel_of(world, sender, control[DEVICE])
        if load(channels, place) != channels[nonnegative(place + LINE)]:
            return True
    return False


@inner
def is_time_to_pause(control):
    """Whether nothing more is to be visited: the clock has come at which to return to Python."""
    budget = load(control, BUDGET)
    return budget != UNLIMITED and nanoseconds() >= budget


@inner
def raised_to(lowest):
    """Return the threshold with which the lowest priority that waits anywhere is visited; NEVER if nothing waits."""
    return NEVER if lowest == NEVER else min(lowest + WINDOW, NEVER) - 1


@inner
def next_threshold(world, threshold):
    """Return the threshold to come if nothing below this one is left anywhere; else this one.

    Devices of other processes never seem idle here: who speaks for them raises the threshold of all.
    """
    devices = world[WORLD_DEVICES]
    states = np.int64(0)
    under_way = np.int64(0)
    lowest = NEVER
    for device in range(devices):
        state = load(world, posted(world, device, POSTED_STATE))
        if state & 1 == 0:
            return threshold
        states += state
        lowest = min(lowest, load(world, posted(world, device, POSTED_LOWEST)))
        under_way += load(world, posted(world, device, POSTED_ITEMS_SENT))
        under_way -= load(world, posted(world, device, POSTED_ITEMS_RECEIVED))
    if under_way != 0 or lowest <= threshold:
        return threshold
    for device in range(devices):  # states only count up: the same sum means the same states
        states -= load(world, posted(world, device, POSTED_STATE))
    if states != 0:
        return threshold
    return raised_to(lowest)


@inner
def say_idle(control, world, lowest):
    """Tell all devices that this one has nothing to do below the threshold, and the lowest priority it has above."""
    device = control[DEVICE]
    place = posted(world, device, POSTED_STATE)
    store(world, posted(world, device, POSTED_LOWEST), lowest)
    store(world, posted(world, device, POSTED_ITEMS_SENT), control[ITEMS_SENT])
    store(world, posted(world, device, POSTED_ITEMS_RECEIVED), control[ITEMS_RECEIVED])
    store(world, place, world[place] + 1)


@inner
def say_busy(control, world):
    """Tell all devices that this one goes on, and return the threshold; NEVER if there is nothing left anywhere."""
    place = posted(world, control[DEVICE], POSTED_STATE)
    found = load(world, WORLD_THRESHOLD)
    store(world, place, world[place] + 1)
    return found


@inner
def has_news(control, world, channels, threshold, is_paused):
    """Whether an idle device has to go on: for mail, a higher threshold, which it raises if it can, a pause, a stop."""
    if load(world, WORLD_THRESHOLD) != threshold or has_mail(control, world, channels):
        return True
    if is_time_to_pause(control) != is_paused:
        return True
    coming = next_threshold(world, threshold)
    if coming != threshold:
        compare_exchange(world, WORLD_THRESHOLD, threshold, coming)
        return True
    return load(control, STOP) != 0


# What generated modules call.
__all__ = [
    "WINDOW",
    "channel_of",
    "has_mail",
    "has_news",
    "is_time_to_pause",
    "next_threshold",
    "raised_to",
    "say_busy",
    "say_idle",
]
