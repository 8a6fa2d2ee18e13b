# SPDX-License-Identifier: Apache-2.0
"""Runs without supersteps on CPU devices: each device is one thread, and what it sends goes through channels.

Everything is as long as it can ever be needed before the run begins: the arena of what waits has room for each of the
device's vertices twice, the list of what is to be sent for each once, and what finds its channel full stays listed.  So
nothing grows, and nothing overflows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.base import Position, Reason
from shoal.backends.cpu.border import SPINS, SPINS_ON_SHARED_CORES, edge_ids_for
from shoal.backends.cpu.device import Shard, Workspace
from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES, FAR_LOWEST, NONE, NUM_NEAR
from shoal.backends.cpu.kernels.worklist import FOUND_TOGETHER
from shoal.backends.cpu.loop_run import LoopRun
from shoal.backends.cpu.phase_run import INLINE_NANOSECONDS, set_bits, vertices_of
from shoal.backends.cpu.phases import LoadedPhase
from shoal.backends.cpu.threads import available_cores
from shoal.backends.loops import control as slot
from shoal.backends.loops.control import LINE, control_size, world_size
from shoal.backends.loops.mail import next_hops
from shoal.backends.loops.worklist_rows import worklist_row
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance
    from shoal.strategies.subgraph import Subgraph

# Items that a channel holds at most.  A receiver looks after every block of vertices, a sender stops at nothing: some
# blocks' worth of edges.  More would only be more memory for them to walk through.
MAX_ROOM = 4096


def arena_blocks(num_owned: int) -> int:
    """Return the blocks of the arena: twice what holds every vertex, as entries may be stale, and one for every bin."""
    return 2 * (num_owned // ENTRIES + 1) + NUM_NEAR + 2


class Channels:
    """What the devices of one phase have in common: a channel from each to each, and the block by which they agree."""

    def __init__(
        self, parts: Sequence[Subgraph], schedule: Schedule, source: Any, state: dict[str, Any], workspace: Workspace
    ) -> None:
        count = schedule.num_devices
        self.num_sharing = len(parts)
        self.world = np.zeros(world_size(count), np.int64)
        self.world[slot.WORLD_DEVICES] = count
        self.world[slot.WORLD_SPINS] = SPINS if count <= len(available_cores()) else SPINS_ON_SHARED_CORES
        self.first_threshold = slot.FIRST if source.has_priority else slot.NEVER - 1
        self.hops = [next_hops(schedule, device) for device in range(count)]
        self.counts = np.zeros(count * count * 2 * LINE, np.int64)
        room = self._find_rooms(parts)
        self.room = read_only(room.reshape(-1))
        self.mail_at, length = self._lay_out(room)
        shapes = [((length, *state[name].shape[1:]), state[name].dtype) for name in source.mailed]
        self.mail_ids, *self.mail = workspace.reserve("mail", [((length,), parts[0].owned.dtype), *shapes])

    def _find_rooms(self, parts: Sequence[Subgraph]) -> np.ndarray:
        """Return how many items each sender's channel to each receiver holds."""
        return find_rooms(parts, self.hops)

    def _lay_out(self, room: np.ndarray) -> tuple[np.ndarray, int]:
        """Return where the items of each channel begin, and how many there can be in all of them."""
        ends = np.cumsum(room)
        return read_only(ends - room.reshape(-1)), int(ends[-1])

    @property
    def item_bytes(self) -> int:
        """Bytes of an item: whose it is, and its values."""
        return self.mail_ids.itemsize + sum(array[:1].nbytes for array in self.mail)

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device has sent to each: its channels count the items."""
        return partial(_bytes_by_pair, self.counts, len(self.hops), self.item_bytes)

    def bytes_of(self, device: int) -> int:
        """Return the bytes of a device's share."""
        arrays = (self.world, self.counts, self.mail_ids, *self.mail)
        return sum(array.nbytes for array in arrays) // self.num_sharing


def _bytes_by_pair(counts: np.ndarray, num_devices: int, item_bytes: int) -> np.ndarray:
    return counts[:: 2 * LINE].reshape(num_devices, num_devices) * item_bytes


def find_rooms(parts: Sequence[Subgraph], hops: Sequence[np.ndarray]) -> np.ndarray:
    """Return how many items each part's channel to each receiver holds, a power of two, and 0 where none goes."""
    count = len(hops)
    rooms = np.zeros((count, count), np.int64)
    for part in parts:
        hop = hops[part.device]
        sizes = part.border_sizes if len(set(hop.tolist())) > 1 else np.full(count, part.num_local)
        np.maximum.at(rooms[part.device], hop, np.asarray(sizes, np.int64))
        rooms[part.device, part.device] = 0
    longest = np.minimum(rooms, MAX_ROOM)
    powers = 1 << np.ceil(np.log2(np.maximum(longest, 1))).astype(np.int64)
    return np.where(longest > 0, powers, 0)


class WorklistRun(LoopRun):
    """One phase without supersteps on one device."""

    num_threads = 1
    jitter = 0  # tests set it to a number, to let devices get ahead of one another
    room_factor = 1.0  # nothing that a later run could learn from

    def __init__(
        self, loaded: LoadedPhase, phase: Phase, shard: Shard, workspace: Workspace, state: dict[str, Any],
        frontier: np.ndarray | None, title: str, allowance: Allowance, channels: Channels | None = None,
    ) -> None:  # fmt: skip
        super().__init__(loaded, phase, shard, title, is_shared=channels is not None)
        self.state = state
        self.workspace, self.channels, self.budget = workspace, channels, allowance.budget
        graph, part, source = shard.graph, shard.part, loaded.source
        self.control = np.zeros(control_size(len(source.flow.operators)), np.int64)
        self.control[slot.SIZE] = graph.num_vertices if frontier is None else len(frontier)
        num_owned = shard.num_local if part is None else part.num_owned
        self.control[slot.NUM_VERTICES], self.control[slot.NUM_OWNED] = graph.num_vertices, num_owned
        self.control[slot.CURRENT] = slot.FIRST if source.has_priority else 0
        self.control[slot.JITTER], self.control[slot.BUDGET] = self.jitter, slot.UNLIMITED
        self.is_inline = channels is None and shard.device.is_small(graph)  # until it proves long
        num_blocks = arena_blocks(num_owned)
        arena = ((num_blocks * ENTRIES,), graph.indices.dtype), ((num_blocks,), np.dtype(np.int64))
        self.blocks, self.links = workspace.reserve("arena", list(arena))  # kept: fresh memory costs more
        self.bins = np.full((1, BINS_ROW), NONE, np.int64)
        self.bins[:, FAR_LOWEST] = slot.NEVER
        self.found = np.empty((2, FOUND_TOGETHER), np.int64)
        workspace.bitmap_a.fill(0)
        if part is not None:
            self.control[slot.DEVICE] = part.device
            self.control[slot.JITTER] *= 2 * part.device + 1
            frontier = part.find_owned(frontier)
        set_bits(workspace.bitmap_b, shard.num_local, frontier)
        self.control[slot.SPILLED] = 1  # the first frontier waits there: only the loop knows its priorities
        self.others: list[np.ndarray] = []
        between = () if channels is None else self._between(channels)
        edges = shard.edges(incoming=False, weighted=source.uses_weights)
        self.arguments = (
            self.control, *edges, self.blocks, self.links, self.bins, workspace.bitmap_a, workspace.bitmap_b,
            self.found, *state.values(), *between,
        )  # fmt: skip
        self.budget.check(self.nbytes)

    def _between(self, channels: Channels) -> tuple:
        """Return what the loop takes where there are several devices."""
        part = self.shard.part
        assert part is not None
        words, bits = ((part.num_local + 63) // 64,), np.dtype(np.uint64)
        (listed,) = self.workspace.reserve("border", [((max(part.num_local, 1),), part.owned.dtype)])
        dirty, voices = self.workspace.reserve("marks", [(words, bits), (words, bits)])  # clean, as a run leaves them
        self.others = [listed, dirty, voices]
        none = part.owned[:0]
        return (
            channels.world, part.owner, none if part.address is None else part.address,
            none if part.global_ids is None else part.global_ids, listed, dirty, voices,
            edge_ids_for(self.shard, self.loaded.source), channels.hops[part.device], channels.counts, channels.mail_at,
            channels.room, channels.mail_ids, *channels.mail,
        )  # fmt: skip

    def begin(self) -> None:
        """Get ready to enter the loop."""
        super().begin()
        if self.is_inline:
            self.control[slot.BUDGET] = min(self.control[slot.BUDGET], time.monotonic_ns() + INLINE_NANOSECONDS)
        if self.channels is not None:
            self.channels.world[slot.WORLD_THRESHOLD] = self.channels.first_threshold

    def end(self) -> Reason:
        """Note all that the device did as one row, and return why the loop came back."""
        control = self.control
        self.rows.append(worklist_row(control, control[slot.STARTED], time.monotonic_ns()))
        if control[slot.STOP] != 0:
            return Reason(int(control[slot.STOP]))
        if self.is_inline:
            self.is_inline, control[slot.BUDGET] = False, slot.UNLIMITED
        return Reason.BUDGET if self.workspace.bitmap_b.any() else Reason.DONE

    def state_by_name(self) -> dict[str, Any]:
        """Return the fields."""
        return self.state

    def position(self) -> Position:
        """Return what waits, now that the run has paused; the device's own vertices."""
        return Position(0, 0, 0, False, self.as_global(vertices_of(self.workspace.bitmap_b)))

    def grow(self) -> None:
        """Do nothing: there is room for all that can come."""

    @property
    def nbytes(self) -> int:
        """Memory of the run's buffers, the program's fields excluded."""
        own = (self.control, self.blocks, self.links, self.bins, self.found, *self.others)
        return self.workspace.nbytes + sum(array.nbytes for array in own)

    @property
    def peaks(self) -> list[int]:
        """The most memory that the buffers took."""
        return [self.nbytes]
