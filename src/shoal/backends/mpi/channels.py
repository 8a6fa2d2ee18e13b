# SPDX-License-Identifier: Apache-2.0
"""Channels of a rank's devices: to and from one another, and to and from those of other ranks.

A channel between two ranks is there on both, with as much room: what its sender has written is carried to the same
places on the receiver's rank, and how much of it was read is told to the sender's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.cpu.border import SPINS, SPINS_ON_SHARED_CORES
from shoal.backends.cpu.threads import available_cores
from shoal.backends.cpu.worklist_run import Channels
from shoal.backends.loops import control as slot

if TYPE_CHECKING:
    from shoal.backends.mpi.fleet import Fleet
    from shoal.strategies.subgraph import Subgraph


class RankChannels(Channels):
    """What the devices of one rank have in common where there are no supersteps."""

    def __init__(self, fleet: Fleet, rank_of: Sequence[int], *of_phase: Any) -> None:
        self.fleet, self.rank_of = fleet, np.array(rank_of, np.int64)
        self.is_here = self.rank_of == fleet.rank
        super().__init__(*of_phase)
        # Whoever speaks for the other ranks needs a core, too, and so do the other ranks of the machine.
        threads = (self.num_sharing + 1) * fleet.ranks_here
        self.world[slot.WORLD_SPINS] = SPINS if threads <= len(available_cores()) else SPINS_ON_SHARED_CORES

    def _find_rooms(self, parts: Sequence[Subgraph]) -> np.ndarray:
        """Return how many items each channel holds: only a sender's rank knows those that it sends by."""
        own = super()._find_rooms(parts)[[part.device for part in parts]]
        return np.concatenate(self.fleet.gather(own))

    def _lay_out(self, room: np.ndarray) -> tuple[np.ndarray, int]:
        """Leave out the items of channels that neither begin nor end here."""
        lengths = np.where(self.is_here[:, None] | self.is_here, room, 0).reshape(-1)
        ends = np.cumsum(lengths)
        return read_only(ends - lengths), int(ends[-1])

    def between(self, sender: int, receiver: int) -> list[int]:
        """Return the channels from one rank's devices to another's, in an order that both know."""
        count = len(self.rank_of)
        pairs = (self.rank_of == sender)[:, None] & (self.rank_of == receiver) & (self.room.reshape(count, count) > 0)
        return np.flatnonzero(pairs).tolist()

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device of this rank has sent to each; nothing of the other ranks'."""
        sent = super().traffic
        return lambda: np.where(self.is_here[:, None], sent(), 0)
