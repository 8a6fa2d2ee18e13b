# SPDX-License-Identifier: Apache-2.0
"""What somebody who is no device does at channels whose other end is in another process: look, publish, sum up.

The counts of a channel stay what they are between two devices: who carries its items here is their writer here, and who
carries them away their reader, but the count of items read is told by the process in which they are.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import load, store
from shoal.backends.cpu.kernels.quiet import channel_of, raised_to
from shoal.backends.cpu.world import posted
from shoal.backends.loops.control import (
    LINE,
    NEVER,
    POSTED_LOWEST,
    POSTED_STATE,
    WORLD_DEVICES,
    WORLD_ROWS,
    WORLD_THRESHOLD,
    world_size,
)

# What a process says of its devices in a wave: the lowest priority that waits here, items that its devices have
# received, and, for each process, items that they have sent there.
SAID_LOWEST = 0
SAID_RECEIVED = 1
SAID_SENT = 2


@compiled()
def has_fresh(channels, places, told, least):
    """Whether a count in any of these places is by so much above what was told of it."""
    for k in range(places.shape[0]):
        if load(channels, places[k]) - told[k] >= least[k]:
            return True
    return False


@compiled()
def read_counts(channels, places, found):
    """Read the counts in some places; what they count was written before."""
    for k in range(places.shape[0]):
        found[k] = load(channels, places[k])


@compiled()
def publish(channels, places, counts):
    """Let devices know of counts; what they count has been written."""
    for k in range(places.shape[0]):
        store(channels, places[k], counts[k])


@compiled()
def raise_threshold(world, lowest):
    """Let the devices here go on with the lowest priority that waits anywhere, and return the threshold."""
    threshold = raised_to(lowest)
    store(world, WORLD_THRESHOLD, threshold)
    return threshold


@compiled()
def sum_up(world, channels, rank_of, rank, threshold, expected, row):
    """Write what is to be said of the devices here, if there was a moment in which all of them were idle.

    And if they have nothing to do that is known of: nothing below the threshold, and no items that are still expected.
    The states are read twice, so the counts between are those of one moment.
    """
    devices = world[WORLD_DEVICES]
    states = np.int64(0)
    lowest = NEVER
    for device in range(devices):
        if rank_of[device] == rank:
            state = load(world, posted(world, device, POSTED_STATE))
            if state & 1 == 0:
                return False
            states += state
            lowest = min(lowest, load(world, posted(world, device, POSTED_LOWEST)))
    if lowest <= threshold:
        return False
    row[:] = 0
    for device in range(devices):
        if rank_of[device] == rank:
            for other in range(devices):
                row[SAID_SENT + rank_of[other]] += load(channels, channel_of(world, device, other))
                row[SAID_RECEIVED] += load(channels, channel_of(world, other, device) + LINE)
    for device in range(devices):
        if rank_of[device] == rank:
            states -= load(world, posted(world, device, POSTED_STATE))
    row[SAID_LOWEST] = lowest
    return states == 0 and row[SAID_RECEIVED] >= expected


def compile_relay() -> None:
    """Compile what carries items, before anybody waits for it."""
    one = np.zeros(1, np.int64)
    world, channels, row = np.zeros(world_size(1), np.int64), np.zeros(2 * LINE, np.int64), np.zeros(3, np.int64)
    world[WORLD_DEVICES] = 1
    has_fresh(channels, one, one, one)
    read_counts(channels, one, one.copy())
    publish(channels, one, one)
    raise_threshold(world, 0)
    world[WORLD_ROWS + POSTED_STATE] = 1
    sum_up(world, channels, one, 0, 0, 0, row)
