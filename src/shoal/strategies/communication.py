# SPDX-License-Identifier: Apache-2.0
"""Communication: which device receives from which, in which round of an exchange.

A strategy only says whom a device receives from; `make_schedule` writes that down as a table, which an engine follows
without knowing the strategy.  Whatever the strategy, a device receives the contribution of every other device exactly
once in an exchange, so that adding what arrives counts nothing twice.

Selective and broadcast: Gunrock's multi-GPU paper, section III-C.  Butterfly: ButterFly BFS, section 3.  Ring: the
second of the plain all-to-all approaches there, one peer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from shoal.errors import check_choice, check_integer


@dataclass(frozen=True, eq=False)
class Schedule:
    """Who receives from whom in an exchange: a table of rounds and devices.

    Parameters
    ----------
    is_routed : a device sends to each peer only what concerns that peer; otherwise everybody is to know everything
    forwards : what a device sends in a round: ``"own"``, what it made itself; ``"all"``, that and everything received
        in earlier rounds; ``"last"``, what it received in the round before, in the first round its own
    receive_indptr, receive_peers : int64; device d receives in round r from
        ``receive_peers[receive_indptr[row] : receive_indptr[row + 1]]``, row = r num_devices + d, in ascending order
    """

    name: str
    num_devices: int
    is_routed: bool
    forwards: str
    receive_indptr: np.ndarray
    receive_peers: np.ndarray
    fanout: int = 1

    def among(self, num_devices: int) -> Schedule:
        """Return the table of the same strategy for fewer devices."""
        return make_schedule(self.name, num_devices, min(self.fanout, num_devices))

    @property
    def num_rounds(self) -> int:
        """Rounds of an exchange; a device alone has none."""
        return (len(self.receive_indptr) - 1) // self.num_devices

    @property
    def num_messages(self) -> int:
        """Messages between two devices in a whole exchange."""
        return len(self.receive_peers)

    @property
    def max_peers(self) -> int:
        """The most peers that a device receives from in one round."""
        return int(np.diff(self.receive_indptr).max(initial=0))

    def peers(self, round_index: int, device: int) -> np.ndarray:
        """Return the devices that ``device`` receives from in a round."""
        row = round_index * self.num_devices + device
        return self.receive_peers[self.receive_indptr[row] : self.receive_indptr[row + 1]]

    def receive_bound(self, num_vertices: int) -> int:
        """Return how many items a device can receive in one round at most.

        A message names a vertex once at most, so each peer sends up to ``num_vertices`` items: of the whole graph, or,
        if messages are routed, of those that concern the receiver.
        """
        return self.max_peers * check_integer("num_vertices", num_vertices, 0)


class Communication(Protocol):
    """A way to exchange: how many rounds, and whom a device receives from in each."""

    is_routed: ClassVar[bool]
    forwards: ClassVar[str]

    def num_rounds(self, num_devices: int) -> int:
        """Return the number of rounds between two or more devices."""

    def peers(self, round_index: int, device: int, num_devices: int) -> Sequence[int]:
        """Return the devices that ``device`` receives from in a round, in ascending order."""


class SelectiveCommunication:
    """Each device sends to each other one what that one hosts."""

    is_routed: ClassVar[bool] = True
    forwards: ClassVar[str] = "own"

    def num_rounds(self, num_devices: int) -> int:
        """Return 1: everything at once."""
        return 1

    def peers(self, round_index: int, device: int, num_devices: int) -> Sequence[int]:
        """Return all other devices."""
        return [peer for peer in range(num_devices) if peer != device]


class BroadcastCommunication(SelectiveCommunication):
    """Each device sends everything to each other one."""

    is_routed: ClassVar[bool] = False


class RingCommunication:
    """Contributions go round: each device hands on to the next what it received from the one before."""

    is_routed: ClassVar[bool] = False
    forwards: ClassVar[str] = "last"

    def num_rounds(self, num_devices: int) -> int:
        """Return the number of steps in which a contribution has come round."""
        return num_devices - 1

    def peers(self, round_index: int, device: int, num_devices: int) -> Sequence[int]:
        """Return the device before this one."""
        return [(device - 1) % num_devices]


@dataclass(frozen=True)
class ButterflyCommunication:
    """Blocks of devices that know the same merge into blocks of ``radix`` times their size, round by round.

    Before round t the devices of an aligned block of ``radix**t`` ids hold the contributions of exactly that block, as
    far as it exists.  In the round a device receives from each other block, ``radix - 1`` at most, that lies with its
    own in an aligned block of ``radix**(t + 1)``: from the member at its own offset, or from the last one if the
    block ends before.  So it receives disjoint groups.  With ``radix**k`` devices its peers are those that differ from
    it in digit t only.
    """

    fanout: int
    is_routed: ClassVar[bool] = False
    forwards: ClassVar[str] = "all"

    @property
    def radix(self) -> int:
        """How many blocks merge into one; a fanout of two and more counts the device itself."""
        return max(self.fanout, 2)

    def num_rounds(self, num_devices: int) -> int:
        """Return the logarithm of ``num_devices`` to the base ``radix``, rounded up."""
        rounds, size = 0, 1
        while size < num_devices:
            rounds, size = rounds + 1, size * self.radix
        return rounds

    def peers(self, round_index: int, device: int, num_devices: int) -> Sequence[int]:
        """Return one member of each other block that merges with the device's own."""
        size = self.radix**round_index
        offset = device % size
        begin = device - device % (size * self.radix)
        blocks = range(begin, min(begin + size * self.radix, num_devices), size)
        # Only the last block can end early, and only where the devices end.
        return [min(block + offset, num_devices - 1) for block in blocks if block != device - offset]


#: From a name to the strategy, given the fanout, which only butterfly has a use for.
COMMUNICATIONS: dict[str, Callable[[int], Communication]] = {
    "selective": lambda fanout: SelectiveCommunication(),
    "broadcast": lambda fanout: BroadcastCommunication(),
    "butterfly": ButterflyCommunication,
    "ring": lambda fanout: RingCommunication(),
}


def make_schedule(communication: str, num_devices: int, fanout: int = 1) -> Schedule:
    """Return the table of a strategy for a number of devices.

    Parameters
    ----------
    communication : a name in `COMMUNICATIONS`
    fanout : of a butterfly, from 1 to ``num_devices``: more of it is fewer rounds of more messages

    Examples
    --------
    >>> schedule = make_schedule("butterfly", 16, fanout=4)
    >>> schedule.num_rounds, schedule.num_messages, schedule.peers(1, 0).tolist()
    (2, 96, [4, 8, 12])
    """
    check_choice("communication", communication, COMMUNICATIONS)
    num_devices = check_integer("num_devices", num_devices, 1)
    fanout = check_integer("fanout", fanout, 1, num_devices)
    strategy = COMMUNICATIONS[communication](fanout)
    indptr, peers = _table(strategy, num_devices)
    return Schedule(communication, num_devices, strategy.is_routed, strategy.forwards, indptr, peers, fanout)


def _table(strategy: Communication, num_devices: int) -> tuple[np.ndarray, np.ndarray]:
    num_rounds = strategy.num_rounds(num_devices) if num_devices > 1 else 0
    rows = [strategy.peers(r, device, num_devices) for r in range(num_rounds) for device in range(num_devices)]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    peers = np.array([peer for row in rows for peer in row], dtype=np.int64)
    for array in (indptr, peers):
        array.flags.writeable = False
    return indptr, peers
