# SPDX-License-Identifier: Apache-2.0
"""How somebody who is no device takes part in the meetings of devices: comes last, and lets them go on."""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import fetch_add, load, nanoseconds, store
from shoal.backends.cpu.world import stand_by
from shoal.backends.loops.control import (
    WORLD_ABANDONED,
    WORLD_ARRIVED,
    WORLD_GENERATION,
    WORLD_LEFT,
    WORLD_MEETING,
    WORLD_ROWS,
    WORLD_SPINS,
)

WAITING = 0  # not all have come
CAME = 1  # all devices wait in a meeting
ENDED = 2  # none will come any more: all are back from their loops, or the run is abandoned


@compiled()
def await_devices(world, patience):
    """Wait for all devices to meet, for so many nanoseconds."""
    began = nanoseconds()
    spins = 0
    while load(world, WORLD_ARRIVED) != world[WORLD_MEETING] - 1:
        if load(world, WORLD_ABANDONED) != 0 or load(world, WORLD_LEFT) != 0:
            return ENDED
        spins += 1
        if spins > world[WORLD_SPINS]:
            if nanoseconds() - began > patience:
                return WAITING
            stand_by(world, began)
    return CAME


def compile_meetings() -> None:
    """Compile what a meeting will call, before anybody waits for it."""
    world = np.zeros(WORLD_ROWS, np.int64)
    world[WORLD_LEFT], world[WORLD_MEETING] = 1, 2
    await_devices(world, 0)
    end_meeting(world)


@compiled()
def end_meeting(world):
    """Let the devices that have met go on."""
    store(world, WORLD_ARRIVED, 0)
    fetch_add(world, WORLD_GENERATION, 1)
