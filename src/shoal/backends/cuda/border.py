# SPDX-License-Identifier: Apache-2.0
"""Border: what one of several devices has beside its shard, to exchange values with the others; and what all share.

`Shared` is there once per phase: the block by which devices meet, the schedule, and every device's mail.  Mail lies
with its sender; kernels of other GPUs read it there, or in the host's memory if they cannot.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.cuda.device import Shard, num_words, upload
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.loops import control as slot
from shoal.backends.loops.control import FORWARDS, world_size
from shoal.backends.loops.mail import count_receivers, mail_sizes
from shoal.backends.loops.traffic import bytes_by_pair
from shoal.machine import import_cupy, open_peer_access

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.subgraph import Subgraph

POINTER = np.dtype(np.uint64)
_open_access = functools.cache(open_peer_access)


class InReach:
    """Makes arrays that the kernels of all devices can reach."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self.is_reachable = can_reach({shard.device.number for shard in shards})

    def of_each(self, lengths: Sequence[int], shape: tuple[int, ...], dtype: np.dtype) -> list[Any]:
        """Return an array for every sender."""
        return [self.array(shard, (max(length, 1), *shape), dtype)
                for shard, length in zip(self.shards, lengths, strict=True)]  # fmt: skip

    def array(self, shard: Shard, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Return an array on a device that all devices can reach, or in the host's memory, which all can."""
        cupy = import_cupy()
        with shard.device.use():
            if self.is_reachable:
                return cupy.empty(shape, dtype)
            pinned = cupy.cuda.alloc_pinned_memory(int(np.prod(shape)) * dtype.itemsize)
            memory = cupy.cuda.UnownedMemory(pinned.ptr, pinned.size(), pinned, shard.device.number)
            return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def filled(self, values: np.ndarray) -> Any:
        """Return such an array with the values of another, on the first device."""
        array = self.array(self.shards[0], values.shape, values.dtype)
        array.set(values)
        return array


class Shared(InReach):
    """What the devices of one phase have in common."""

    def __init__(self, shards: Sequence[Shard], schedule: Schedule, source: PhaseSource, state: dict[str, Any]) -> None:
        super().__init__(shards)
        self.schedule, self.source = schedule, source
        parts = [part_of(shard) for shard in shards]
        count = len(parts)
        world = np.zeros(world_size(count), np.int64)
        world[slot.WORLD_DEVICES] = count
        world[slot.WORLD_ROUTED] = schedule.is_routed
        world[slot.WORLD_FORWARDS] = FORWARDS[schedule.forwards]
        world[slot.WORLD_ROUNDS] = schedule.num_rounds
        sizes = mail_sizes(parts, schedule, [part.num_owned for part in parts] if source.deals else None)
        self.mail_at = np.cumsum(sizes, axis=1) - sizes  # in a sender's own mail
        lengths = sizes.sum(axis=1).tolist()
        has_bits = source.flow.pulls and parts[0].global_ids is None
        words = num_words(parts[0].num_local) if has_bits else 0
        self.world = self.filled(world)
        self.mail_ids = self.of_each(lengths, (), parts[0].owned.dtype)
        self.mail_bits = self.of_each([words] * count, (), np.dtype(np.uint32))
        self.mail = {name: self.of_each(lengths, state[name].shape[1:], state[name].dtype) for name in source.mailed}
        self.posted = self.array(shards[0], (max(source.partial_bytes * count, 1),), np.dtype(np.uint8))
        self.tables = (schedule.receive_indptr, schedule.receive_peers, count_receivers(schedule))

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device has sent to each."""
        return partial(bytes_by_pair, self.world, self.schedule)

    def bytes_of(self, device: int) -> int:
        """Return the bytes of a device's mail, and of its part of what belongs to none."""
        own = [self.mail_ids[device], self.mail_bits[device], *(arrays[device] for arrays in self.mail.values())]
        return sum(array.nbytes for array in own) + (self.world.nbytes + self.posted.nbytes) // len(self.shards)


class Border:
    """One device's side of the exchanges."""

    def __init__(self, shard: Shard, shared: Shared, shares_own: bool, state: dict[str, Any]) -> None:
        cupy = import_cupy()
        self.shard, self.part, self.shared, self.shares_own = shard, part_of(shard), shared, shares_own
        words, vertex = num_words(self.part.num_local), self.part.owned.dtype
        self.listed = cupy.empty(max(self.part.num_local, 1), vertex)
        self.dirty, self.voices = (cupy.zeros(max(words, 1), cupy.uint32) for _ in range(2))
        self.mail_counts = cupy.zeros(self.part.num_devices, cupy.int64)
        self.earlier = {name: cupy.empty_like(state[name]) for name in shared.source.remembered}
        self.deals: Sequence[Any] = ()  # the tables by which devices visit edges for one another
        self.receive_at, self.receive_from, self.num_receivers = upload(shared.tables)
        self.mail_at = cupy.asarray(shared.mail_at)
        lists = (shared.mail_ids, shared.mail_bits, *shared.mail.values())
        self.mail_ids, self.mail_bits, *self.mail = (pointers(arrays) for arrays in lists)

    def arguments(self) -> list[Any]:
        """Return what the kernel takes behind its other arguments."""
        tables, shared = part_tables(self.shard), self.shared
        return [
            shared.world, tables["owner"], tables["address"], tables["global_ids"], tables["owned"], self.listed,
            self.dirty, self.voices, self.receive_at, self.receive_from, self.num_receivers, self.mail_at,
            self.mail_ids, self.mail_bits, self.mail_counts, tables["copy_at"], tables["copy_peers"],
            tables["copy_ids"], edge_ids(self.shard, shared.source), shared.posted, *self.mail, *self.earlier.values(),
            *self.deals,
        ]  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of what is the device's own."""
        own = (self.listed, self.dirty, self.voices, self.mail_counts, self.mail_at, *self.earlier.values())
        return sum(array.nbytes for array in own)


def part_of(shard: Shard) -> Subgraph:
    """Return the part of the graph that one of several devices has."""
    assert shard.part is not None
    return shard.part


def part_tables(shard: Shard) -> dict[str, Any]:
    """Return the tables of a part on its GPU: who owns a vertex, and who has copies; they are kept with the shard."""
    if shard.tables is None:
        part = part_of(shard)
        copy_at, copy_peers, copy_ids = part.copies()
        arrays = {"owner": part.owner, "address": part.address, "global_ids": part.global_ids, "owned": part.owned,
                  "copy_at": copy_at, "copy_peers": copy_peers, "copy_ids": copy_ids}  # fmt: skip
        shard.tables = dict(zip(arrays, upload(arrays.values()), strict=True))
    return shard.tables


def edge_ids(shard: Shard, source: PhaseSource) -> Any:
    """Return the graph's numbers of a device's edges, if a rule asks for them."""
    rules = [rule for operator in source.flow.operators for rule in operator.rules.values()]
    if not any("edge" in rule.parameters for rule in rules):
        return None
    return import_cupy().asarray(part_of(shard).edge_ids())


def pointers(arrays: Iterable[Any]) -> Any:
    """Return a table of addresses on the current GPU."""
    return import_cupy().asarray(np.array([array.data.ptr for array in arrays], POINTER))


def can_reach(numbers: Iterable[int]) -> bool:
    """Whether kernels of each of some GPUs can read the memory of the others; access is opened where it can be."""
    return all(_open_access(here, there) for here, there in itertools.permutations(sorted(numbers), 2))
