# SPDX-License-Identifier: Apache-2.0
"""One run of one phase on a CPU device: its control block, its buffers, and the one door to its compiled loop."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Position, Reason
from shoal.backends.cpu.border import Border, Shared
from shoal.backends.cpu.buffers import OUTBOX, TRACE_ROWS
from shoal.backends.cpu.device import Shard, Workspace
from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES, FAR_LOWEST, NONE
from shoal.backends.cpu.kernels.vertices import BLOCK
from shoal.backends.cpu.loop_run import LoopRun
from shoal.backends.cpu.phases import LoadedPhase
from shoal.backends.cpu.scratch import scratch_sizes
from shoal.backends.loops import control as slot
from shoal.backends.loops.control import control_size
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Allowance
    from shoal.strategies.subgraph import Subgraph

# A small graph's run goes on the caller's own thread for so long: much longer than a thread takes to start, and short
# enough for Ctrl-C, which waits there for the loop to come back.
INLINE_NANOSECONDS = 20_000_000
# Edges of all frontiers together for which devices deal: they meet twice more for it, which takes as long as some
# thousand edges, and look at every vertex once more.
LEAST_DEALT_EDGES = 1 << 16


class PhaseRun(LoopRun):
    """One run of one phase on one device: its control block and buffers; `resume` until it is done."""

    least_dealt = LEAST_DEALT_EDGES  # tests let devices deal on small graphs

    def __init__(
        self, loaded: LoadedPhase, phase: Phase, shard: Shard, workspace: Workspace, state: dict[str, Any],
        frontier: np.ndarray | None, knobs: tuple[float, float], title: str, allowance: Allowance,
        border: Border | None = None, position: Position | None = None,
    ) -> None:  # fmt: skip
        super().__init__(loaded, phase, shard, title, is_shared=border is not None)
        self.kept = [] if position is None else [self._own(vertices) for vertices in position.kept]
        self.workspace, self.state, self.border, self.budget = workspace, state, border, allowance.budget
        self.num_threads = shard.device.threads_for(shard.graph)
        # On the caller's own thread, until it proves long.
        self.is_inline = border is None and shard.device.is_small(shard.graph)
        source, num_vertices = loaded.source, shard.num_local
        self.sizes = shard.sizes_of(source.flow, phase, allowance.scheme)
        self.room = self.sizes.first_room(allowance.factor)
        if source.steals:  # what the edges of other devices' vertices put out is not known before
            self.room = max(self.room, num_vertices)
        self.needed_room = self.room  # what earlier runs left is not
        self.peak_bytes = 0  # while something grew
        self.control = np.zeros(control_size(len(source.flow.operators)), np.int64)
        self.work = np.zeros(self.sizes.work, np.int64)
        self.trace = np.empty((self.sizes.trace_rows, slot.NUM_TRACE_COLUMNS), np.int64)
        rows = self.num_threads * (1 if border is None else 2)  # the second half is for vertices of other devices
        self.outbox = np.empty((rows, OUTBOX), shard.graph.indices.dtype)
        self.partials = [np.empty(-(-num_vertices // BLOCK), dtype) for dtype in source.partials.values()]
        self.knobs = np.array(knobs)
        self.has_blocks = False
        self.scratch = self._make_scratch() if source.flow.intersects or source.flow.tallies else []
        own = (self.control, self.work, self.trace, self.outbox, *self.partials, *self.scratch)
        self.own_bytes = sum([array.nbytes for array in own])
        if border is not None:
            border.make_room(source, state)
        self._prepare(frontier if position is None else position.frontier)
        if position is not None:
            self._go_on_from(position)
        self.arguments = self._arguments()
        if self.budget.limit is not None:
            self.budget.check(self.nbytes)  # memory that was not touched yet costs nothing

    def _make_scratch(self) -> list[np.ndarray]:
        """Return the arrays in which threads note what is in lists; they are clean, as a run leaves them."""
        flow, shard = self.loaded.source.flow, self.shard
        longest = [shard.longest_list(incoming=side) if is_asked else 0
                   for side, is_asked in ((False, flow.intersects), (True, flow.tallies))]  # fmt: skip
        shapes = scratch_sizes(flow, shard.num_local, *longest).shapes(self.num_threads)
        return self.workspace.reserve("scratch", shapes)

    def _prepare(self, frontier: np.ndarray | None) -> None:
        graph, control, flow = self.shard.graph, self.control, self.loaded.source.flow
        num_local, owned = self.shard.num_local, None if self.shard.part is None else self.shard.part.owned
        control[slot.NUM_VERTICES], control[slot.NUM_EDGES] = graph.num_vertices, graph.num_edges
        control[slot.NUM_LOCAL], control[slot.NUM_OWNED] = num_local, num_local if owned is None else len(owned)
        limit = self.phase.max_supersteps
        control[slot.MAX_SUPERSTEPS] = slot.UNLIMITED if limit is None else limit
        control[slot.BUDGET] = time.monotonic_ns() + INLINE_NANOSECONDS if self.is_inline else slot.UNLIMITED
        control[slot.SIZE] = graph.num_vertices if frontier is None else len(frontier)
        control[slot.DEALS_FROM] = self.least_dealt
        if flow.uses_bitmaps:
            self.workspace.bitmap_a.fill(0)
            self.workspace.bitmap_b.fill(0)
        if flow.pulls:
            self.workspace.remaining[:] = self.shard.owned_bits
        first = frontier
        if self.border is not None:
            frontier = self._begin_shared(frontier)
        control[slot.LOCAL_SIZE] = num_local if frontier is None else len(frontier)
        if self.phase.begin == "replay":
            self._begin_replay()
            return
        self._make_levels()
        if flow.is_open or flow.has_queue:
            self._reserve_queue(first)
        if flow.ordered is not None:
            self._begin_buckets(frontier)
        elif flow.uses_frontier:
            self._begin_queue(frontier)

    def _own(self, vertices: np.ndarray) -> np.ndarray:
        """Return those of some vertices that are the device's, by its own ids."""
        part = self.shard.part
        return vertices if part is None else part.find_owned(vertices)

    def _go_on_from(self, position: Position) -> None:
        """Count on from where an earlier run of the phase stood."""
        control = self.control
        control[slot.SUPERSTEP], control[slot.NUM_VISITED] = position.superstep, position.num_visited
        control[slot.DIRECTION], control[slot.HAS_PULLED] = position.direction, position.has_pulled

    def _begin_shared(self, frontier: np.ndarray | None) -> np.ndarray:
        """Prepare what is there only with other devices; return the device's own part of the first frontier."""
        assert self.border is not None
        self.control[slot.DEVICE] = self.border.part.device
        self.control[slot.SHARES_OWN] = self.border.shares_own
        self.control[slot.ROWS_COME] = self.border.shared.rows_come
        if self.border.lists is not None:  # sent before the first superstep, with which it is counted
            places = [slot.MESSAGES, slot.ITEMS_SENT, slot.BYTES_SENT, slot.COMBINED]
            self.control[places] = self.border.lists.traffic
        if self.loaded.source.flow.pulls:  # a pull asks of every source whether it is in the frontier
            set_bits(self.workspace.bitmap_a, self.shard.num_local, self.border.part.find_local(frontier))
            self.control[slot.HAS_BITMAP] = 1
        return self.border.part.find_owned(frontier)

    def _reserve_queue(self, frontier: np.ndarray | None) -> None:
        """Make the queue, with room for what the first superstep may put out; the frontier is in the graph's ids."""
        graph, flow = self.shard.graph, self.loaded.source.flow
        if not flow.grows or (self.budget.limit is None and self.room >= self.sizes.ceiling):
            useful = min(self.room, self.shard.num_local)
            is_limited_arena = flow.ordered is not None and self.budget.limit is not None  # it grows by itself
            self._set_room(useful if is_limited_arena else self.room, useful, num_kept=0)
            return
        self.control[slot.MAX_DEGREE] = self.shard.max_degree
        size = int(self.control[slot.LOCAL_SIZE]) + sum(map(len, self.kept))
        needed = graph.num_edges if frontier is None else int(graph.degree[frontier].sum())
        needed = self.shard.num_local if flow.pulls and flow.needs_queue else max(needed, size)
        wanted, least = self._rooms(size if flow.is_sliding else 0, needed)
        self.needed_room = max(self.room, wanted)
        there = min(self.sizes.room_in(len(self.workspace.queue)), self.sizes.ceiling)  # since an earlier run
        self._set_room(max(self.needed_room, there), least, num_kept=0)

    def _rooms(self, begin: int, needed: int) -> tuple[int, int]:
        """Return the entries that the scheme gives outputs which may need so many, and those they can use at most."""
        wanted = self.sizes.room_behind(begin, needed, self.sizes.ceiling)
        return wanted, self.sizes.room_behind(begin, needed, self.shard.num_local)

    def _set_room(self, wanted: int, least: int, num_kept: int) -> None:
        """Give outputs the entries that are wanted, or those they must have if the limit allows no more."""
        sizes, workspace = self.sizes, self.workspace
        self.room = wanted
        if self.budget.limit is not None:
            self.room = self._within_limit(wanted, least, has_two=num_kept > 0)
        before = workspace.queue
        workspace.reserve_queue(sizes.queue(self.room), num_kept=num_kept)
        if num_kept > 0 and workspace.queue is not before:  # while entries were moved there were two
            self.peak_bytes = max(self.peak_bytes, self.nbytes + before.nbytes)
        self._write_room(sizes.frontiers(self.room))

    def _within_limit(self, wanted: int, least: int, *, has_two: bool) -> int:
        """Return the entries that the limit allows, or say what those that are needed would take."""
        queue = self.workspace.queue
        others = self.nbytes - (0 if has_two else queue.nbytes)  # to move entries takes both queues
        needed = {room: others + self.sizes.queue(room) * queue.itemsize for room in (wanted, least)}
        if self.budget.allows(needed[wanted]):
            return wanted
        self.budget.check(needed[least])
        return least

    def _may_have(self, room: int) -> bool:
        """Whether the limit allows so many entries, made while those there are still there."""
        return self.budget.allows(self.nbytes + self.sizes.queue(room) * self.workspace.queue.itemsize)

    def _write_room(self, num_frontiers: int) -> None:
        """Tell the loop what room there is; frontiers have the first entries of the queue."""
        control, sizes = self.control, self.sizes
        control[slot.ROOM], control[slot.CEILING] = self.room, sizes.ceiling
        control[slot.CAPACITY] = min(self.room, self.shard.num_local)
        control[slot.INTERMEDIATE] = num_frontiers
        # Copies are never in a queue; what is a copy now may be this device's later.
        most = self.shard.num_local if self.loaded.source.regroups else int(control[slot.NUM_OWNED])
        control[slot.QUEUE_END] = min(num_frontiers, (self.phase.joins or 0) * most)

    def _make_levels(self) -> None:
        """Make the places for the bounds of kept frontiers; under a limit, drop what an earlier run has left."""
        workspace, length = self.workspace, self.sizes.levels
        if self.budget.limit is not None:
            workspace.drop_queue()
        if len(workspace.levels) < length or (self.budget.limit is not None and len(workspace.levels) > length):
            workspace.levels = np.empty(length, np.int64)

    def _begin_queue(self, frontier: np.ndarray | None) -> None:
        """Write the first frontier."""
        control, workspace = self.control, self.workspace
        num_local, size = self.shard.num_local, int(control[slot.LOCAL_SIZE])
        if self.kept:
            self._keep_again()
        begin = int(control[slot.BEGIN])
        end = begin + size
        workspace.queue[begin:end] = np.arange(num_local, dtype=workspace.queue.dtype) if frontier is None else frontier
        control[slot.END] = end
        control[slot.NUM_VISITED] = control[slot.SIZE]
        control[slot.OUT_BASE] = end if self.loaded.source.flow.is_sliding else self.room
        control[slot.HAS_QUEUE] = 1
        if self.phase.keep:
            workspace.levels[len(self.kept) : len(self.kept) + 2] = begin, end
            control[slot.HISTORY] = len(self.kept) + 1

    def _keep_again(self) -> None:
        """Put the frontiers that an earlier run has kept where they were: at the begin of the queue."""
        workspace = self.workspace
        ends = np.cumsum([0, *map(len, self.kept)])
        for begin, vertices in zip(ends[:-1], self.kept, strict=True):
            workspace.queue[begin : begin + len(vertices)] = vertices
        workspace.levels[: len(ends)] = ends
        self.control[slot.BEGIN] = ends[-1]

    def _begin_replay(self) -> None:
        """Begin with the last of the frontiers kept; what the step itself makes goes behind them."""
        if self.kept:
            self.workspace.reserve_queue(sum(map(len, self.kept)), num_kept=0)
            self.workspace.levels = np.empty(len(self.kept) + 1, np.int64)
            self._keep_again()
            self.workspace.num_levels = len(self.kept)
        control, levels = self.control, self.workspace.levels
        count = self.workspace.num_levels
        begin, end = levels[count - 1 : count + 1] if count else (0, 0)
        self.workspace.reserve_queue(int(end) + self.sizes.queue(self.room), num_kept=int(end))
        self._write_room(int(end))
        control[slot.HISTORY] = count
        control[slot.BEGIN], control[slot.END] = begin, end
        control[slot.SIZE] = control[slot.LOCAL_SIZE] = end - begin
        control[slot.HAS_QUEUE] = 1

    def _begin_buckets(self, frontier: np.ndarray | None) -> None:
        """Let the first frontier wait in the spill bitmap: the loop knows its priorities, Python does not."""
        graph, control, spill = self.shard.graph, self.control, self.workspace.bitmap_b
        num_blocks = self.sizes.blocks(self.room)
        self.blocks = np.empty(num_blocks * ENTRIES, graph.indices.dtype)
        self.links = np.empty(num_blocks, np.int64)
        self.published = np.empty(2 * num_blocks, np.int64)
        self.bins = np.full((self.num_threads, BINS_ROW), NONE, np.int64)
        self.bins[:, FAR_LOWEST] = slot.NEVER
        self.has_blocks = True
        set_bits(spill, graph.num_vertices, frontier)
        control[slot.LOWEST] = slot.NEVER
        control[slot.CURRENT] = slot.FIRST
        control[slot.HAS_SPILLED] = 1

    def _arguments(self) -> tuple:
        source, workspace = self.loaded.source, self.workspace
        is_weighted = source.uses_weights
        reads_all = source.steals and self.border is not None and not self.border.shared.rows_come
        out_edges = self.shard.whole_edges if reads_all else self.shard.edges
        in_edges = self.shard.whole_edges if source.regroups else self.shard.edges
        out = out_edges(incoming=False, weighted=is_weighted)
        incoming = in_edges(incoming=True, weighted=is_weighted) if source.uses_in_edges else out
        if source.flow.ordered is None:  # stand-ins of the right types for what the loop does not touch
            self.blocks, self.links, self.published = workspace.queue, workspace.levels, workspace.levels
            self.bins = self.trace
        return (
            self.control, self.work, self.trace, workspace.levels, self.knobs, *out, *incoming, workspace.queue,
            workspace.bitmap_a, workspace.bitmap_b, workspace.remaining, self.outbox, self.blocks, self.links,
            self.bins, self.published, *self.state.values(), *self.partials, *self.scratch,
            *(() if self.border is None else self.border.arguments(source)),
        )  # fmt: skip

    def come_back(self, num_supersteps: int, clock: int | None) -> None:
        """Come back at a clock in nanoseconds, or after so many supersteps."""
        super().come_back(num_supersteps, clock)
        self.is_inline = False  # it is not about a caller who waits
        if len(self.trace) != num_supersteps:
            self.own_bytes -= self.trace.nbytes
            self.trace = np.empty((num_supersteps, slot.NUM_TRACE_COLUMNS), np.int64)
            self.own_bytes += self.trace.nbytes
            self.arguments = self._arguments()

    def position(self) -> Position:
        """Return where the run stands, now that it has come back between two supersteps; the device's own vertices."""
        control, flow = self.control, self.loaded.source.flow
        levels, queue = self.workspace.levels, self.workspace.queue
        kept = []
        if self.phase.keep or self.phase.begin == "replay":
            bounds = levels[: control[slot.HISTORY] + 1].tolist()
            kept = [self.as_global(queue[begin:end]) for begin, end in itertools.pairwise(bounds)]
        frontier = None if self.phase.begin == "replay" else self._frontier()
        if self.phase.keep:
            kept.pop()  # it is the frontier
        is_everything = not (flow.uses_frontier or flow.ordered is not None)
        return Position(
            int(control[slot.SUPERSTEP]), int(control[slot.NUM_VISITED]), int(control[slot.DIRECTION]),
            bool(control[slot.HAS_PULLED]), None if is_everything or frontier is None else self.as_global(frontier),
            kept,
        )  # fmt: skip

    def state_by_name(self) -> dict[str, Any]:
        """Return the fields; of two that change places each has the other's array in every second superstep."""
        state = dict(self.state)
        if self.control[slot.SWAPPED] & 1:
            for left, right in self.loaded.source.swaps:
                state[left], state[right] = state[right], state[left]
        return state

    def _frontier(self) -> np.ndarray:
        """Return the frontier, or what waits to be visited by priority, by the device's ids."""
        control, workspace = self.control, self.workspace
        if self.loaded.source.flow.ordered is not None:
            return vertices_of((workspace.bitmap_a | workspace.bitmap_b) & self._owned_bits)
        if control[slot.HAS_QUEUE]:
            return workspace.queue[control[slot.BEGIN] : control[slot.END]]
        front = workspace.bitmap_b if control[slot.SWAPPED] & 1 else workspace.bitmap_a
        return vertices_of(front & self._owned_bits)

    @property
    def _owned_bits(self) -> np.ndarray:
        """The vertices that the device has, its own and those of devices that have handed theirs over, as a bitmap."""
        return self.shard.owned_bits if self.part is None else self.part.owned_bits

    @property
    def part(self) -> Subgraph | None:
        """The device's part as it is now: with those of devices that have handed theirs over."""
        return None if self.border is None else self.border.part

    def join(self, part: Subgraph, shared: Shared) -> None:
        """Go on as one of a group of devices, with a part that may be of several."""
        assert self.border is not None
        self.border.join(part, shared)
        control = self.control
        control[slot.DEVICE], control[slot.NUM_OWNED] = part.device, part.num_owned
        control[slot.SHARES_OWN] = self.border.shares_own and part.num_devices > 1
        control[[slot.IS_READING, slot.IS_POSTED, slot.IS_REDUCED]] = 0
        self.arguments = self._arguments()

    def end(self) -> Reason:
        """Take over what the loop has left, and return why it came back."""
        control = self.control
        self.rows.append(self.trace[: control[slot.TRACE_ROWS]].copy())
        control[slot.TRACE_ROWS] = 0
        self.workspace.num_levels = int(control[slot.HISTORY])
        reason = Reason(int(control[slot.REASON]))
        if reason == Reason.DONE:
            self.state.update(self.state_by_name())
        if self.is_inline and reason != Reason.DONE and control[slot.STARTED] >= control[slot.BUDGET]:
            self._move_to_thread()
        if self.watch is not None and self.watch.is_due:  # of many short runs each is too short to be reported
            self.report()
        return reason

    def _move_to_thread(self) -> None:
        """Go on with a thread and a long trace: the run is worth them, and Ctrl-C reaches a caller that waits."""
        self.is_inline = False
        self.control[slot.BUDGET] = slot.UNLIMITED
        trace_bytes = TRACE_ROWS * slot.NUM_TRACE_COLUMNS * self.trace.itemsize
        if self.budget.allows(self.nbytes + trace_bytes):
            self.own_bytes += trace_bytes - self.trace.nbytes
            self.trace = np.empty((TRACE_ROWS, slot.NUM_TRACE_COLUMNS), np.int64)
        self.arguments = self._arguments()

    def grow(self) -> None:
        """Make room for what the next superstep needs, if there is none."""
        if self.loaded.source.flow.ordered is not None:
            self._grow_blocks()
        else:
            self._grow_queue()
        self.arguments = self._arguments()

    def _grow_queue(self) -> None:
        """Give outputs at least twice the room; the frontiers that are kept, or the one there is, stay."""
        control, workspace = self.control, self.workspace
        is_sliding = self.loaded.source.flow.is_sliding
        begin = int(control[slot.OUT_BASE]) if is_sliding else 0
        # A frontier that is a bitmap still will come before the next one.
        coming = int(control[slot.LOCAL_SIZE]) if is_sliding and not control[slot.HAS_QUEUE] else 0
        wanted, least = self._rooms(begin + coming, int(control[slot.NEEDED]))
        if wanted <= self.room or (least <= self.room and not self._may_have(wanted)):
            return
        wanted, least = max(wanted, min(2 * self.room, self.shard.num_local)), max(least, self.room)
        if not is_sliding:
            size = int(control[slot.END] - control[slot.BEGIN]) if control[slot.HAS_QUEUE] else 0
            workspace.queue[:size] = workspace.queue[control[slot.BEGIN] : control[slot.BEGIN] + size].copy()
            control[slot.BEGIN], control[slot.END] = 0, size
            begin = size
        self._set_room(wanted, least, num_kept=begin)
        self.needed_room = self.room
        if not is_sliding:
            control[slot.OUT_BASE] = self.room if control[slot.HAS_QUEUE] else 0

    def _grow_blocks(self) -> None:
        """Double the arena of blocks, if vertices found no room in it; the list of published blocks grows with it."""
        if self.control[slot.HAS_SPILLED] == 0:
            return
        count = len(self.links)
        moved = 2 * (self.blocks.nbytes + self.links.nbytes + self.published.nbytes)  # old and new at once
        self.budget.check(self.nbytes + moved)
        self.peak_bytes = max(self.peak_bytes, self.nbytes + moved)
        self.blocks = np.concatenate([self.blocks, np.empty_like(self.blocks)])
        self.links = np.concatenate([self.links, np.empty_like(self.links)])
        old, self.published = self.published, np.empty(4 * count, np.int64)
        self.published[:count], self.published[2 * count : 3 * count] = old[:count], old[count:]
        self.control[slot.PUBLISHED_AT] *= 2
        self.room = self.needed_room = self.sizes.room_of_blocks(len(self.links))

    @property
    def peaks(self) -> list[int]:
        """The most memory that the buffers took."""
        return [max(self.peak_bytes, self.nbytes)]

    @property
    def room_factor(self) -> float:
        """The room that an output needed, in parts of the device's vertices."""
        return self.needed_room / max(self.shard.num_local, 1)

    @property
    def nbytes(self) -> int:
        """Memory of the run's buffers, the program's fields excluded."""
        others = [] if self.border is None else self.border.buffers()
        others += [self.blocks, self.links, self.bins, self.published] if self.has_blocks else []
        return self.workspace.nbytes + self.own_bytes + sum(array.nbytes for array in others)


def vertices_of(bitmap: np.ndarray) -> np.ndarray:
    """Return the vertices of a bitmap, ascending."""
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little"))


def set_bits(bitmap: np.ndarray, num_vertices: int, vertices: np.ndarray | None) -> None:
    """Put vertices, or with None all of them, into a bitmap, and nothing else."""
    if vertices is not None:
        bitmap.fill(0)
        vertices = vertices.astype(np.int64, copy=False)
        np.bitwise_or.at(bitmap, vertices >> 6, np.uint64(1) << (vertices & 63).astype(np.uint64))
        return
    bitmap.fill(2**64 - 1)
    if num_vertices % 64:
        bitmap[-1] = 2 ** (num_vertices % 64) - 1
