# SPDX-License-Identifier: Apache-2.0
"""Lane: the messages between two ranks that carry what devices without supersteps have put into channels.

A message has a header: flags, for each channel there the items written that have come with this message and all before
it, and for each channel back the items read.  The items follow, channel by channel, array by array; how many there are
says the difference to what was there before.  Messages of two ranks do not overtake one another.  No channel can
overflow: its sender writes no more than was read, as far as it was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.backends.cpu.kernels.relay import has_fresh, publish, read_counts
from shoal.backends.loops.control import LINE
from shoal.backends.mpi.channels import RankChannels
from shoal.backends.mpi.fleet import Fleet

#: Bytes of items in a message: more would only let the receiver's devices wait for the whole of it.
MESSAGE_BYTES = 1 << 16
#: Messages that may be on their way to a rank, so that it need not answer before the next one leaves.
NUM_UNDER_WAY = 4

PAUSE, LAST = 1, 2  # flags: devices are to visit nothing more; no other message follows
_COUNT_BYTES = 8


class Lane:
    """Channels between this rank and another one, both ways."""

    def __init__(self, fleet: Fleet, channels: RankChannels, rank: int) -> None:
        self.fleet, self.channels, self.rank = fleet, channels, rank
        self.there = channels.between(fleet.rank, rank)
        self.back = channels.between(rank, fleet.rank)
        written, read = _places(self.there), _places(self.back) + LINE
        self.places = np.concatenate([written, read])  # of the counts that this rank tells,
        self.answers = np.concatenate([_places(self.back), _places(self.there) + LINE])  # and of those that it is told
        self.told, self.found, self.heard = (np.zeros(len(self.places), np.int64) for _ in range(3))
        # Of what was read it is soon enough to tell when half the room is free again.
        rooms = channels.room[self.back] // 2
        self.least = np.concatenate([np.ones_like(written), np.maximum(rooms, 1)])
        self.arrays = [(_as_bytes(array), _row_bytes(array)) for array in (channels.mail_ids, *channels.mail)]
        self.item_bytes = sum(size for _, size in self.arrays)
        self.header_bytes = _COUNT_BYTES * (1 + len(self.places))
        self.inbox, self.coming, self.is_over = np.zeros(self._bytes_of(self.back), np.uint8), None, False
        self.outboxes = [np.zeros(self._bytes_of(self.there), np.uint8) for _ in range(NUM_UNDER_WAY)]
        self.going: list[Any] = [None] * NUM_UNDER_WAY

    def _bytes_of(self, pairs: list[int]) -> int:
        """Return the most bytes of a message with items of some channels: one item is always possible."""
        room = int(self.channels.room[pairs].sum())
        return self.header_bytes + self.item_bytes * min(room, max(MESSAGE_BYTES // self.item_bytes, 1))

    def listen(self) -> None:
        """Expect the first message, or the next one."""
        self.is_over = False
        self.coming = self.fleet.receive(self.inbox, self.rank)

    # To the other rank

    def send(self, flags: int = 0) -> bool:
        """Send what is new, if there is anything, or with flags in any case; False if nothing was sent."""
        if not flags and not has_fresh(self.channels.counts, self.places, self.told, self.least):
            return False
        number = next((n for n, request in enumerate(self.going) if request is None or request.Test()), None)
        if number is None:
            return False
        size = self._pack(self.outboxes[number], flags)
        self.going[number] = self.fleet.send(self.outboxes[number][:size], self.rank)
        return True

    def _pack(self, box: np.ndarray, flags: int) -> int:
        """Write a message, and return its bytes."""
        read_counts(self.channels.counts, self.places, self.found)
        position, count = self.header_bytes, len(self.there)
        for k in np.flatnonzero(self.found[:count] != self.told[:count]).tolist():
            room = (len(box) - position) // self.item_bytes
            self.found[k] = min(self.found[k], self.told[k] + room)
            for piece in self._pieces(self.there[k], int(self.told[k]), int(self.found[k])):
                box[position : position + len(piece)] = piece
                position += len(piece)
        self.told[:] = self.found
        header = box[: self.header_bytes].view(np.int64)
        header[0], header[1:] = flags, self.told
        return position

    def _pieces(self, pair: int, begin: int, end: int) -> Iterator[np.ndarray]:
        """Give the bytes of a channel's items from one count to another."""
        at, room = int(self.channels.mail_at[pair]), int(self.channels.room[pair])
        first = begin & (room - 1)
        last = min(first + end - begin, room)
        behind = first + end - begin - last  # that are at the ring's begin again
        for content, size in self.arrays:
            yield content[(at + first) * size : (at + last) * size]
            yield content[at * size : (at + behind) * size]

    # From the other rank

    def receive(self) -> int | None:
        """Take in a message, if one has come, and return its flags."""
        if self.coming is None or not self.coming.Test():
            return None
        header = self.inbox[: self.header_bytes].view(np.int64)
        position = self.header_bytes
        for k in np.flatnonzero(header[1 : 1 + len(self.back)] != self.heard[: len(self.back)]).tolist():
            for piece in self._pieces(self.back[k], int(self.heard[k]), int(header[1 + k])):
                piece[:] = self.inbox[position : position + len(piece)]
                position += len(piece)
        self.heard[:] = header[1:]
        publish(self.channels.counts, self.answers, self.heard)
        flags = int(header[0])
        if flags & LAST:
            self.coming, self.is_over = None, True
        else:
            self.listen()
        return flags


def _places(pairs: list[int]) -> np.ndarray:
    """Return where the counts of items written of some channels are."""
    return np.array(pairs, np.int64) * 2 * LINE


def _row_bytes(array: np.ndarray) -> int:
    return array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))


def _as_bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
