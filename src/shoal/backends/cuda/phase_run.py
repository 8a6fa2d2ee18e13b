# SPDX-License-Identifier: Apache-2.0
"""One run of one phase on a GPU: its control block, its buffers, and the one door to its kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Reason, Regrouping
from shoal.backends.cuda.buffers import NUM_BITMAPS, NUM_PILES, TRACE_ROWS, BufferSizes, Kept, gathers, pushes
from shoal.backends.cuda.device import Shard, num_words
from shoal.backends.cuda.events import has_come
from shoal.backends.cuda.generator.phase import KERNEL
from shoal.backends.cuda.growth import OutputRoom
from shoal.backends.cuda.launch import BLOCK_THREADS, BLOCK_WARPS
from shoal.backends.cuda.modules import Kernel, make_kernel
from shoal.backends.cuda.phases import LoadedPhase
from shoal.backends.loops import control as slot
from shoal.backends.loops.rooms import Rooms
from shoal.machine import import_cupy
from shoal.program import Constant, Phase

if TYPE_CHECKING:
    from shoal.backends.cuda.border import Border
    from shoal.graph import Graph
    from shoal.strategies.memory import Allowance

# Devices deal edges among one another where their frontiers have at least so many together.  At ten billion edges a
# second one device would take a hundred microseconds for them, and to weigh, meet and search some ten of these.  That
# is an estimate: it was measured on no GPU.
LEAST_DEALT_EDGES = 1 << 20
SPIN_SECONDS = 0.002  # for so long the host looks all the time whether a kernel has ended, then now and then
NAP_SECONDS = 0.0005


def _make(make: Callable[[], Any]) -> Any:
    return make()


class PhaseRun:
    """One run of one phase on one GPU: `resume` until it is done.

    ``fit`` returns what the function it is given allocates, or says what the GPU would need.  ``border`` is what the
    device has of what it shares with others.
    """

    traffic = None  # that of several devices is theirs together
    least_dealt = LEAST_DEALT_EDGES  # tests let devices deal on small graphs

    def __init__(
        self, loaded: LoadedPhase, phase: Phase, shard: Shard, state: dict[str, Any], kept: dict[str, Any],
        frontier: np.ndarray | None, knobs: tuple[float, float], allowance: Allowance,
        fit: Callable[[Callable[[], Any]], Any] = _make, border: Any = None,
    ) -> None:  # fmt: skip
        self.loaded, self.phase, self.shard, self.state, self.kept = loaded, phase, shard, state, kept
        self.cupy, self.fit, self.border = import_cupy(), fit, border
        self.source, self.flow = loaded.source, loaded.source.flow
        self.num_local = shard.num_local
        self.num_blocks = loaded.source.blocks_per_processor * shard.device.own_processors
        self.control = np.zeros(self.source.control_length, np.int64)
        self.rows: list[np.ndarray] = []
        self.reason = Reason.RUNNING
        self.knobs = self.cupy.asarray(np.array(knobs))
        self._make_gather_tables()
        rooms = Rooms(self.flow, phase, self.num_local, shard.graph.num_edges, allowance.scheme)
        border_bytes = 0 if border is None else border.nbytes
        self.output = OutputRoom(rooms, self._measure(), allowance, self.row_values.nbytes + border_bytes)
        size = shard.graph.num_vertices if frontier is None else len(frontier)
        if border is None:
            self.output.begin(size, lambda: _count_edges(shard.graph, frontier))
        else:  # what comes from other devices is not known before
            self.output.begin_full()
        self._make_buffers()
        self._prepare(frontier, size)
        self.device_control = self.cupy.asarray(self.control)
        self.kernel = _load(loaded.growing if self.output.may_grow else loaded, shard.device.number)

    @property
    def sizes(self) -> BufferSizes:
        """The sizes of the buffers."""
        return self.output.sizes

    def _make_buffers(self) -> None:
        cupy, sizes, vertex, pieces = self.cupy, self.sizes, self.shard.graph.indices.dtype, self.sizes.pieces
        self.trace = cupy.empty((TRACE_ROWS, slot.NUM_TRACE_COLUMNS), cupy.int64)
        self.bitmaps = [cupy.zeros(sizes.bitmap, cupy.uint32) for _ in range(NUM_BITMAPS)]
        self.remaining = cupy.zeros(sizes.remaining, cupy.uint32)
        if self.flow.pulls:
            self.remaining[:] = self.shard.wanting
        self.pieces = (cupy.empty(pieces, vertex), cupy.empty(pieces, cupy.uint32)) if pieces else (None, None)
        self.ledger = cupy.zeros(sizes.ledger, cupy.int64) if sizes.ledger else None
        self.piles = [cupy.empty(sizes.pile, vertex) for _ in range(NUM_PILES)]
        self.partials = cupy.empty(sizes.partials, cupy.uint8)
        self.levels = self.kept["device_levels"] if sizes.kept.levels else cupy.empty(sizes.levels, cupy.int64)
        self.queue = self.kept["queue"] if sizes.kept.queue else cupy.empty(sizes.queue, vertex)
        if len(self.queue) < sizes.queue:
            longer = cupy.empty(sizes.queue, vertex)
            longer[: sizes.kept.end] = self.queue[: sizes.kept.end]
            self.queue = self.kept["queue"] = longer

    def _make_gather_tables(self) -> None:
        self.row_tables, self.tiles = (None,) * 4, None
        if gathers(self.flow):
            self.row_tables, self.tiles = self.shard.rows, self.shard.tiles(self.num_blocks * BLOCK_WARPS)
        num_pieces = 0 if self.row_tables[2] is None else len(self.row_tables[2])
        self.row_values = self.cupy.empty(max(num_pieces, 1), self.cupy.uint64)

    def _measure(self) -> BufferSizes:
        """Return the sizes of the buffers, with room for every vertex."""
        kept, found = Kept(), self.kept
        if self.phase.begin == "replay" and found:
            kept = Kept(len(found["queue"]), int(found["levels"][found["count"]]), len(found["device_levels"]))
        num_pieces = self._count_pieces() if pushes(self.flow) else 0
        vertex_bytes = self.shard.graph.indices.dtype.itemsize
        return BufferSizes(
            self.source, self.phase, self.num_local, vertex_bytes, self.num_blocks, num_pieces, kept,
            num_levels=self.shard.graph.num_vertices,
        )  # fmt: skip

    def _count_pieces(self) -> int:
        """Return the pieces that a push cuts all vertices into whose edges it may visit."""
        count = 0
        for shard in self.border.shared.shards if self.source.deals else [self.shard]:
            with shard.device.use():
                count += shard.max_pieces
        return count

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return self.output.num_bytes

    def _prepare(self, frontier: np.ndarray | None, size: int) -> None:
        graph, control, flow, n = self.shard.graph, self.control, self.flow, self.num_local
        control[slot.NUM_VERTICES], control[slot.NUM_EDGES] = graph.num_vertices, graph.num_edges
        control[slot.NUM_LOCAL] = control[slot.NUM_OWNED] = n
        limit = self.phase.max_supersteps
        control[slot.MAX_SUPERSTEPS] = slot.UNLIMITED if limit is None else limit
        control[slot.BUDGET] = slot.UNLIMITED
        control[slot.SIZE] = size
        if self.border is not None:
            frontier = self._begin_shared(self.border, frontier)
            size = len(frontier)
        control[slot.LOCAL_SIZE] = size
        control[slot.MAX_DEGREE] = graph.max_degree
        control[slot.DEALS_FROM] = self.least_dealt
        self._write_room()
        if self.phase.begin == "replay":
            self._begin_replay()
        elif flow.ordered is not None:
            self._begin_pile(frontier)
        elif flow.uses_frontier:
            self._begin_queue(frontier, size)

    def _begin_shared(self, border: Border, frontier: np.ndarray | None) -> np.ndarray:
        """Prepare what is there only with other devices; return the device's own part of the first frontier."""
        control, part = self.control, border.part
        control[slot.DEVICE], control[slot.SHARES_OWN] = part.device, border.shares_own
        control[slot.NUM_OWNED] = part.num_owned
        if self.flow.pulls:  # a pull asks of every source whether it is in the frontier
            self.bitmaps[0][:] = self._bits_of(part.find_local(frontier))
            control[slot.HAS_BITMAP] = 1
        return part.find_owned(frontier)

    def _bits_of(self, vertices: np.ndarray | None) -> Any:
        """Return some of the device's vertices, or all, as a bitmap."""
        flags = np.zeros(num_words(self.num_local) * 32, np.uint8)
        flags[slice(self.num_local) if vertices is None else vertices] = 1
        return self.cupy.asarray(np.packbits(flags, bitorder="little").view(np.uint32))

    def _write_room(self) -> None:
        """Tell the kernel what room there is; frontiers have the first entries of the queue."""
        control, room, num_frontiers = self.control, self.output.entries, self.sizes.frontiers
        control[slot.ROOM], control[slot.CEILING] = room, self.output.ceiling
        control[slot.CAPACITY] = min(room, self.num_local)
        control[slot.INTERMEDIATE] = num_frontiers
        control[slot.QUEUE_END] = min(num_frontiers, (self.phase.joins or 0) * self.num_local)

    def _begin_queue(self, frontier: np.ndarray | None, size: int) -> None:
        """Write the first frontier."""
        control, cupy, vertex = self.control, self.cupy, self.queue.dtype
        first = cupy.arange(size, dtype=vertex) if frontier is None else cupy.asarray(frontier.astype(vertex))
        self.queue[:size] = first
        control[slot.END] = size
        control[slot.NUM_VISITED] = control[slot.SIZE]
        control[slot.OUT_BASE] = size if self.flow.is_sliding else self.output.entries
        control[slot.HAS_QUEUE] = 1
        if self.phase.keep:
            self.levels[:2] = cupy.asarray(np.array([0, size]))
            control[slot.HISTORY] = 1

    def _begin_replay(self) -> None:
        """Begin with the last of the frontiers kept; what the step itself makes goes behind them."""
        control, count = self.control, self.kept.get("count", 0)
        begin, end = (int(bound) for bound in self.kept["levels"][count - 1 : count + 1]) if count else (0, 0)
        control[slot.INTERMEDIATE] = end
        control[slot.HISTORY] = count
        control[slot.BEGIN], control[slot.END] = begin, end
        control[slot.SIZE] = control[slot.LOCAL_SIZE] = end - begin
        control[slot.HAS_QUEUE] = 1

    def _begin_pile(self, frontier: np.ndarray | None) -> None:
        """Let the first frontier wait: the kernel knows its priorities, Python does not."""
        control, n = self.control, self.num_local
        vertices = np.arange(n) if frontier is None else frontier
        self.piles[0][: len(vertices)] = self.cupy.asarray(vertices.astype(self.queue.dtype))
        self.remaining[:] = self._bits_of(vertices)
        control[self.source.slot("PILE")] = len(vertices)
        control[self.source.slot("PILE_DUE")] = 1
        control[slot.CURRENT], control[slot.LOWEST] = slot.FIRST, slot.NEVER
        control[slot.OUT_BASE] = n
        control[slot.LOCAL_SIZE] = 0

    def arguments(self) -> list[Any]:
        """Return what the kernel takes: arrays, numbers of its own widths, None for no array."""
        out = self.shard.edges(incoming=False)
        incoming = self.shard.edges(incoming=True) if self.source.uses_in_edges else out
        row_vertices, row_firsts, row_owners, row_numbers = self.row_tables
        num_rows = 0 if row_vertices is None else len(row_vertices)
        arguments = [
            self.device_control, self.trace, TRACE_ROWS, self.levels, len(self.levels), self.knobs, *out, *incoming,
            self.queue, len(self.queue), *self.bitmaps, self.remaining, num_words(self.num_local), *self.pieces,
            0 if self.pieces[0] is None else len(self.pieces[0]), self.shard.graph.max_degree,
            num_rows, row_vertices, row_firsts, row_owners, row_numbers, self.row_values,
            0 if self.tiles is None else len(self.tiles) - 1, self.tiles, self.shard.side_by_side, *self.piles,
            self.partials,
        ]  # fmt: skip
        if self.ledger is not None:
            arguments += [self.ledger, self.num_local]
        for name, declared in self.source.fields.items():
            value = self.state[name]
            if isinstance(declared, Constant) and not declared.is_array:
                arguments.append(self.source.dtypes[name].type(value))
            elif isinstance(declared, Constant):
                arguments += [value, len(value)]
            else:
                arguments.append(value)
        if self.border is not None:
            arguments += self.border.arguments()
        return [np.int64(argument) if isinstance(argument, int) else argument for argument in arguments]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all."""
        return self.control[slot.HISTORY if self.phase.begin == "replay" else slot.SIZE] == 0

    def resume(self) -> Reason:
        """Run until the kernel comes back, and return why."""
        self.begin()
        with self.shard.device.use():
            self.kernel(self.num_blocks, BLOCK_THREADS, *self.arguments(), is_cooperative=True)
            await_all([self.cupy.cuda.get_current_stream().record()], self.stop)
        return self.end()

    def begin(self) -> None:
        """Get ready to enter the kernel."""
        self.control[slot.REASON] = self.control[slot.TRACE_ROWS] = 0
        with self.shard.device.use():
            self.device_control.set(self.control)

    def end(self) -> Reason:
        """Take over what the kernel has left, and return why it came back."""
        with self.shard.device.use():
            self.control = self.device_control.get()
            self.rows.append(self.trace[: self.control[slot.TRACE_ROWS]].get())
            self.reason = Reason(int(self.control[slot.REASON]))
            if self.reason == Reason.DONE:
                self._keep()
        return self.reason

    def stop(self) -> None:
        """Make the kernel come back after the superstep."""
        write_beside(self.shard, self.device_control[slot.STOP : slot.STOP + 1], Reason.STOPPED)

    @property
    def is_lost(self) -> bool:
        """Whether the kernel came back because others would not."""
        return bool(self.control[self.source.slot("IS_LOST")])

    def _keep(self) -> None:
        """Hand over what a later phase may replay, and let fields change places."""
        if self.phase.keep:
            count = int(self.control[slot.HISTORY])
            bounds = self.levels[: count + 1].get()
            self.kept.update(count=count, levels=bounds, device_levels=self.levels, queue=self.queue)
        if self.control[slot.SWAPPED] & 1:
            for left, right in self.source.swaps:
                self.state[left], self.state[right] = self.state[right], self.state[left]

    def grow(self) -> None:
        """Make room for what the next superstep needs, if there is none, and copy the frontiers that are there."""
        control, is_sliding, has_queue = self.control, self.flow.is_sliding, self.control[slot.HAS_QUEUE] != 0
        begin, end = (int(control[place]) for place in (slot.BEGIN, slot.END)) if has_queue else (0, 0)
        coming = 0
        if is_sliding:
            begin, end = 0, int(control[slot.OUT_BASE])
            coming = 0 if has_queue else int(control[slot.LOCAL_SIZE])  # a bitmap still, it will come behind these
        size = end - begin
        with self.shard.device.use():
            before = size + coming if is_sliding else 0
            longer = self.output.grow(before, int(control[slot.NEEDED]), self._make_queue)
            if longer is None:
                return
            longer[:size] = self.queue[begin:end]
            self.queue = longer
        self._write_room()
        if not is_sliding:
            control[slot.BEGIN], control[slot.END] = 0, size
            control[slot.OUT_BASE] = self.output.entries if has_queue else 0

    def _make_queue(self, length: int) -> Any:
        return self.fit(lambda: self.cupy.empty(length, self.queue.dtype))

    @property
    def thefts(self) -> np.ndarray:
        """Nothing: there is nobody to steal from."""
        return np.zeros((1, 1), np.int64)

    @property
    def regroupings(self) -> list[Regrouping]:
        """Nothing: every device keeps its part."""
        return []

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time."""
        rows, self.rows = self.rows, []
        return [rows]

    @property
    def peaks(self) -> list[int]:
        """The most bytes that the device's buffers took."""
        return [self.output.peak_bytes]

    @property
    def room_factor(self) -> float:
        """The room that an output needed, in parts of the device's vertices."""
        return self.output.factor


def await_all(events: Sequence[Any], stop: Callable[[], None]) -> None:
    """Wait for kernels; Ctrl-C ends them at their next superstep."""
    began = time.perf_counter()
    try:
        while not all(map(has_come, events)):
            if time.perf_counter() - began > SPIN_SECONDS:
                time.sleep(NAP_SECONDS)
    except KeyboardInterrupt:
        stop()
        for event in events:
            event.synchronize()
        raise


def write_beside(shard: Shard, place: Any, value: int) -> None:
    """Write a number into an array on a GPU while a kernel runs there."""
    cupy = import_cupy()
    with shard.device.use(), cupy.cuda.Stream(non_blocking=True) as beside:
        place.set(np.array([value], np.int64), stream=beside)
        beside.synchronize()


def _count_edges(graph: Graph, frontier: np.ndarray | None) -> int:
    """Return the edges of a frontier."""
    return graph.num_edges if frontier is None else int(graph.degree[frontier].sum())


_kernels: dict[tuple[int, int], tuple[LoadedPhase, Kernel]] = {}  # by phase and device; a phase that is kept stays so


def _load(loaded: LoadedPhase, device: int) -> Kernel:
    """Return a phase's kernel on the current GPU."""
    key = (id(loaded), device)
    if key not in _kernels:
        _kernels[key] = (loaded, make_kernel(loaded.cubin, KERNEL))
    return _kernels[key][1]
