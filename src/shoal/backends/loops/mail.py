# SPDX-License-Identifier: Apache-2.0
"""Mail: how many items devices may have for one another, and how many hear of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.arrays import read_only

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.subgraph import Subgraph


def count_receivers(schedule: Schedule) -> np.ndarray:
    """Return for every round and device how many receive from it."""
    count = schedule.num_devices
    counts = np.zeros(max(schedule.num_rounds, 1) * count, np.int64)
    for row in range(schedule.num_rounds * count):
        peers = schedule.peers(row // count, row % count)
        np.add.at(counts, row // count * count + peers, 1)
    return read_only(counts)


def mail_sizes(parts: Sequence[Subgraph], schedule: Schedule, num_owned: Sequence[int] | None = None) -> np.ndarray:
    """Return how many items each sender may have for each receiver; with one mail for all, for itself.

    Devices that deal vertices to one another may come to all of a receiver's, whoever has the edges that lead there:
    ``num_owned`` says how many these are.
    """
    sizes = np.zeros((schedule.num_devices, schedule.num_devices), np.int64)
    for part in parts:
        if schedule.is_routed:
            reached = part.border_sizes if num_owned is None else num_owned
            sizes[part.device] = np.maximum(reached, np.diff(part.copy_indptr))
        else:
            sizes[part.device, part.device] = part.num_global
    return sizes


def next_hops(schedule: Schedule, device: int) -> np.ndarray:
    """Return to whom a device sends what is for each of the devices: to just that one, or to the next in the ring."""
    hops = np.arange(schedule.num_devices, dtype=np.int64)
    if not schedule.is_routed:
        hops[:] = (device + 1) % schedule.num_devices
    return read_only(hops)
