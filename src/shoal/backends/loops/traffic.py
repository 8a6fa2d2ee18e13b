# SPDX-License-Identifier: Apache-2.0
"""Traffic: the bytes that devices sent one another in a phase, as the loops have counted them in the world block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import on_host

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule


def bytes_by_pair(world: Any, schedule: Schedule) -> np.ndarray:
    """Return the bytes from each device to each.

    What all are told alike is counted by sender and round; the schedule says who received it.
    """
    count = schedule.num_devices
    counted = on_host(world)[-count * count :].reshape(count, count)
    if schedule.is_routed:
        return counted.copy()
    rows = np.repeat(np.arange(len(schedule.receive_indptr) - 1), np.diff(schedule.receive_indptr))
    rounds, receivers = np.divmod(rows, count)
    pairs = np.zeros((count, count), np.int64)
    np.add.at(pairs, (schedule.receive_peers, receivers), counted[schedule.receive_peers, rounds])
    return pairs
