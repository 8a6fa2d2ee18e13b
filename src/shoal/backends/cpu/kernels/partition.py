# SPDX-License-Identifier: Apache-2.0
"""Kernels that give vertices to devices.

They are sequential, since every choice depends on all before it: one thread writes everything.  A vertex's random
number is a function of the seed's key and its own id (SplitMix64, see ``generate.py``).
"""

from __future__ import annotations

import numpy as np

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative
from shoal.backends.cpu.kernels.generate import draw

#: The device of a vertex that has none yet: ids of devices take 16 bits.
UNASSIGNED = 2**16
#: The upper 53 bits of a random word are a float64 in [0, 1) exactly.
_UNUSED_BITS = np.uint64(11)
_UNIT = 2.0**-53


@compiled()
def place_hubs(order, num_hubs, indptr, devices, loads):
    """Give each of the first ``num_hubs`` vertices of ``order`` to the device that has least, the first of several."""
    for k in range(num_hubs):
        vertex = nonnegative(order[k])
        device = 0
        for other in range(loads.size):
            if loads[other] < loads[device]:
                device = other
        devices[vertex] = device
        loads[device] += 1 + indptr[vertex + 1] - indptr[vertex]


@inner
def _count_neighbours(row, indices, devices, counts, touched):
    """Count a row's assigned neighbours by device; return how many devices have some, listed in ``touched``."""
    num_touched = 0
    for edge in range(row[0], row[1]):
        device = devices[nonnegative(indices[edge])]
        if device != UNASSIGNED:
            if counts[device] == 0:
                touched[num_touched] = device
                num_touched += 1
            counts[device] += 1
    return num_touched


@inner
def _choose(uniform, num_open, open_devices, num_touched, touched, counts, loads, highest):
    """Draw a device: the open ones share a weight of 1, and one with room weighs the vertex's neighbours there squared.

    ``uniform`` is in [0, 1), and what is left of it after the choice between these two draws the open device.
    """
    total = 1.0
    for k in range(num_touched):
        if loads[touched[k]] <= highest:
            total += float(counts[touched[k]]) ** 2
    point = uniform * total
    if point < 1:
        return open_devices[nonnegative(min(num_open - 1, int(point * num_open)))]
    point -= 1
    chosen = open_devices[0]
    for k in range(num_touched):
        if point >= 0 and loads[touched[k]] <= highest:
            chosen = touched[k]
            point -= float(counts[chosen]) ** 2
    return chosen


@compiled()
def place_by_neighbours(order, indptr, indices, key, fair, limit, devices, loads, open_devices, counts, touched):
    """Draw a device for each vertex of ``order`` by where its neighbours are, such that no load passes ``limit``.

    ``open_devices`` are those whose load is at most ``fair``, a mean share: there always is one while a vertex is left,
    and ``limit`` is so far above ``fair`` that every vertex of ``order`` fits on it.  ``counts`` is zero before and
    after; ``open_devices``, ``counts`` and ``touched`` have a place for each device.
    """
    num_open = 0
    for device in range(loads.size):
        if loads[device] <= fair:
            open_devices[num_open] = device
            num_open += 1
    for k in range(order.size):
        vertex = nonnegative(order[k])
        row = nonnegative(indptr[vertex]), nonnegative(indptr[vertex + 1])
        load = 1 + row[1] - row[0]
        num_touched = _count_neighbours(row, indices, devices, counts, touched)
        uniform = float(draw(key, np.uint64(vertex)) >> _UNUSED_BITS) * _UNIT
        device = _choose(uniform, num_open, open_devices, num_touched, touched, counts, loads, limit - load)
        for j in range(num_touched):
            counts[touched[j]] = 0
        devices[vertex] = device
        was_open = loads[device] <= fair
        loads[device] += load
        if was_open and loads[device] > fair:
            num_open = _close(device, open_devices, num_open)


@inner
def _close(device, open_devices, num_open):
    """Take a device off the list, the last one into its place; a device is closed once."""
    for k in range(num_open):
        if open_devices[k] == device:
            open_devices[k] = open_devices[num_open - 1]
            break
    return num_open - 1
