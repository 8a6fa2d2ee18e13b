# SPDX-License-Identifier: Apache-2.0
"""Grouping: how many devices take part in the supersteps to come, where these are mostly meeting.

A group of m devices takes z + p m: what its busiest device has to do, and what a device more costs all to meet (GUM,
section IV).  Groups are halves of halves: at level k every 2^k-th device has its own part and those of the devices
behind it.  Edges take all devices of a CPU as long; how long, and p, is estimated while running.

A group stays until what it has lost against another would have paid for the change: no threshold is needed beside what
a change costs, and one that was in vain costs no more than the delay before it.  Device 0, which is in every group,
keeps the estimates and decides; its loop then comes back, with all others, and Python hands the parts over.
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import load, nanoseconds, nonnegative, store
from shoal.backends.cpu.world import meet, posted
from shoal.backends.loops.control import (
    BUDGET,
    DEVICE,
    EDGES,
    IDLE,
    IS_POSTED,
    LOCAL_SIZE,
    POSTED_WORK,
    POSTED_WORKED,
    REASON,
    STARTED,
    WORLD_DEVICES,
)

# What device 0 notes, as floats; times are nanoseconds.
LEVEL = 0  # of the present group
WANTED = 1  # of the one that would be better
DEVICES = 2  # of the run
COST = 3  # of a change
PER_EDGE = 4  # an edge, or a vertex, takes so long
PER_DEVICE = 5  # and each device that meets adds so much: p
LASTED = 6  # the superstep that ends
WAITS = 7  # supersteps that do not count: threads were being started
AT_ONCE = 8  # so many devices have cores enough to work at once
LEVELS = 9  # then for each level what was lost by not being there,
SKEW = 1  # its largest load over its mean load,
WON = 2  # and what would have been won in the last superstep
PER_LEVEL = 3

# Fewer supersteps than this never change the group: one in which a thread had lost its core says nothing.
LEAST_SUPERSTEPS = 8
# An estimate follows so many supersteps: long enough for noise to even out, short beside the hundreds of a long tail.
WINDOW = 32
# The least time per edge is forgotten by so much in a superstep, and doubles in 700: caches and frontiers change.
FORGETS = 1.001


@inner
def group_size(group, level):
    """Return how many devices take part at a level."""
    return (np.int64(group[DEVICES]) + (1 << level) - 1) >> level


@inner
def post_work(control, world, group):
    """Serial: tell what this device had to do in the superstep that ends, and how long it worked at that."""
    if control[IS_POSTED] != 0:
        meet(control, world)
    device = control[DEVICE]
    lasted = nanoseconds() - control[STARTED]
    store(world, posted(world, device, POSTED_WORK), load(control, EDGES) + control[LOCAL_SIZE])
    store(world, posted(world, device, POSTED_WORKED), lasted - control[IDLE])
    if device == 0:
        group[LASTED] = lasted


@inner
def weigh_groups(control, world, group):
    """Serial, on device 0: learn from the superstep that has ended, and come back to Python if another group is due."""
    if control[DEVICE] != 0 or control[REASON] != 0:
        return
    if group[WAITS] > 0:
        group[WAITS] -= 1
        return
    total = np.int64(0)
    least = np.inf
    for device in range(world[WORLD_DEVICES]):
        work = load(world, posted(world, device, POSTED_WORK))
        total += work
        if work > 0:
            least = min(least, load(world, posted(world, device, POSTED_WORKED)) / work)
    if total > 0:
        learn(group, largest_load(world, 0), least)
        level = count_losses(group, weigh_levels(world, group, total))
        if group[nonnegative(LEVELS + PER_LEVEL * level)] >= group[COST]:
            group[WANTED] = level
            control[BUDGET] = 0


@inner
def largest_load(world, folds):
    """Return what the busiest device would have to do if the present group were folded so many times."""
    devices = world[WORLD_DEVICES]
    largest = np.int64(0)
    load_of_block = np.int64(0)
    for device in range(devices):
        if device & ((1 << folds) - 1) == 0:
            load_of_block = np.int64(0)
        load_of_block += load(world, posted(world, device, POSTED_WORK))
        largest = max(largest, load_of_block)
    return largest


@inner
def working_time(group, size, largest):
    """Return what a group of some size takes for the load of its busiest device: z."""
    return group[PER_EDGE] * largest * max(size / group[AT_ONCE], 1.0)


@inner
def learn(group, largest, least):
    """Take a superstep into the estimates; a wait for a device that had lost its core counts no more than a change."""
    group[PER_EDGE] = min(group[PER_EDGE] * FORGETS, least)
    size = group_size(group, np.int64(group[LEVEL]))
    if size > 1:
        meeting = group[LASTED] - working_time(group, size, largest)
        each = min(max(meeting, 0.0), group[COST]) / size
        known = group[PER_DEVICE]
        group[PER_DEVICE] = each if known == 0.0 else known + (each - known) / WINDOW


@inner
def weigh_levels(world, group, total):
    """Write down what would have been won at each level; return the most of it."""
    present = np.int64(group[LEVEL])
    size = group_size(group, present)
    here = working_time(group, size, largest_load(world, 0)) + group[PER_DEVICE] * size
    most = 0.0
    for level in range((group.shape[0] - LEVELS) // PER_LEVEL):
        place = nonnegative(LEVELS + PER_LEVEL * level)
        size = group_size(group, level)
        mean = total / size
        if level >= present:
            skew = largest_load(world, level - present) / mean
            group[place + SKEW] += (skew - group[place + SKEW]) / WINDOW
        else:  # as it was when last seen; with time it may have become even
            group[place + SKEW] += (1.0 - group[place + SKEW]) / (4 * WINDOW)
            skew = group[place + SKEW]
        group[place + WON] = here - working_time(group, size, skew * mean) - group[PER_DEVICE] * size
        most = max(most, group[place + WON])
    return most


@inner
def count_losses(group, most):
    """Add what would have been won at each level to what was lost; return the level at which that is most."""
    share = min(group[COST] / LEAST_SUPERSTEPS / max(most, 1.0), 1.0)
    best = np.int64(group[LEVEL])
    for level in range((group.shape[0] - LEVELS) // PER_LEVEL):
        place = nonnegative(LEVELS + PER_LEVEL * level)
        won = group[place + WON]
        group[place] = max(group[place] + (won * share if won > 0.0 else won), 0.0)
        if group[place] > group[nonnegative(LEVELS + PER_LEVEL * best)]:
            best = level
    return best


# What generated modules call.
__all__ = ["post_work", "weigh_groups"]
