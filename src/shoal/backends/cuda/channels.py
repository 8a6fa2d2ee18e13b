# SPDX-License-Identifier: Apache-2.0
"""Channels: what GPU devices without supersteps have between them, and each device's ends.

From each device to each leads a channel of a few batches (see kernels/worklist.cuh).  Every batch has room for all that
its sender can ever have listed for the receiver, so that nothing overflows and nothing grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.cuda.border import InReach, edge_ids, part_of, part_tables, pointers
from shoal.backends.cuda.device import Shard, num_words
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.loops import control as slot
from shoal.backends.loops.control import LINE, world_size
from shoal.backends.loops.mail import next_hops
from shoal.machine import import_cupy

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule

NUM_BUFFERS = 2  # batches of a channel: one that is read, and one that is written; as in kernels/worklist.cuh


class Channels(InReach):
    """What the devices of one phase have in common; a device that is alone has no channel, but a world of its own."""

    def __init__(
        self, shards: Sequence[Shard], schedule: Schedule | None, source: PhaseSource, state: dict[str, Any]
    ) -> None:
        super().__init__(shards)
        self.source, count = source, len(shards)
        world = np.zeros(world_size(count), np.int64)
        world[slot.WORLD_DEVICES] = count
        world[slot.WORLD_THRESHOLD] = slot.FIRST if source.has_priority else slot.NEVER - 1
        self.world = self.filled(world)
        self.lines = self.filled(np.zeros(count * count * 2 * LINE, np.int64))
        self.hops = [np.zeros(1, np.int64)] if schedule is None else [next_hops(schedule, n) for n in range(count)]
        self.rooms = np.zeros((count, count), np.int64) if schedule is None else self._rooms()
        sizes = NUM_BUFFERS * self.rooms
        self.mail_at = np.cumsum(sizes, axis=1) - sizes  # in a sender's own mail
        lengths = sizes.sum(axis=1).tolist()
        self.mail_ids = self.of_each(lengths, (), shards[0].graph.indices.dtype)
        self.mail = {name: self.of_each(lengths, state[name].shape[1:], state[name].dtype) for name in source.mailed}

    traffic = None  # batches are counted, and what is in them only by sender

    def _rooms(self) -> np.ndarray:
        """Return how many items a batch of each sender for each receiver has: every copy that may be listed."""
        rooms = np.zeros((len(self.shards), len(self.shards)), np.int64)
        for shard, hops in zip(self.shards, self.hops, strict=True):
            part = part_of(shard)
            is_direct = len(set(hops.tolist())) > 1
            sizes = part.border_sizes if is_direct else np.full(len(hops), part.num_local)
            np.maximum.at(rooms[part.device], hops, np.asarray(sizes, np.int64))
            rooms[part.device, part.device] = 0
        return rooms

    def bytes_of(self, device: int) -> int:
        """Return the bytes of a device's mail, and of its part of what belongs to none."""
        own = [self.mail_ids[device], *(arrays[device] for arrays in self.mail.values())]
        return sum(array.nbytes for array in own) + (self.world.nbytes + self.lines.nbytes) // len(self.shards)


class Ends:
    """One device's ends of the channels."""

    def __init__(self, shard: Shard, channels: Channels) -> None:
        cupy, count, num_local = import_cupy(), len(channels.shards), shard.num_local
        is_alone = count == 1
        words, vertex = 1 if is_alone else num_words(num_local), shard.graph.indices.dtype
        self.shard, self.channels, self.part = shard, channels, shard.part
        self.listed = cupy.empty(1 if is_alone else 2 * max(num_local, 1), vertex)  # two lists, by turns
        self.dirty, self.voices = (cupy.zeros(max(words, 1), cupy.uint32) for _ in range(2))
        self.mail_counts, self.arrived, self.is_free = (cupy.zeros(count, cupy.int64) for _ in range(3))
        number = 0 if shard.part is None else shard.part.device
        self.tables = [cupy.asarray(table) for table in (channels.mail_at, channels.rooms, channels.hops[number])]
        self.mail_ids, *self.mail = (pointers(arrays) for arrays in (channels.mail_ids, *channels.mail.values()))

    def arguments(self) -> list[Any]:
        """Return what the kernel takes behind its other arguments; of what only supersteps have, nothing."""
        channels, tables = self.channels, {} if self.part is None else part_tables(self.shard)
        mail_at, rooms, hops = self.tables
        return [
            channels.world, tables.get("owner"), tables.get("address"), tables.get("global_ids"), None, self.listed,
            self.dirty, self.voices, None, None, None, mail_at, self.mail_ids, None, self.mail_counts, None, None, None,
            None if self.part is None else edge_ids(self.shard, channels.source), None, *self.mail, channels.lines,
            rooms, hops, self.arrived, self.is_free,
        ]  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of what is the device's own."""
        own = (self.listed, self.dirty, self.voices, self.mail_counts, self.arrived, self.is_free, *self.tables)
        return sum(array.nbytes for array in own)
