# SPDX-License-Identifier: Apache-2.0
"""One run of one phase on a GPU: its control block, its buffers, and the one door to its kernel."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cuda.buffers import NUM_BITMAPS, NUM_PILES, TRACE_ROWS, BufferSizes, Kept, gathers, pushes
from shoal.backends.cuda.device import Shard, import_cupy, num_words
from shoal.backends.cuda.generator.phase import BLOCK_THREADS, BLOCK_WARPS, BLOCKS_PER_PROCESSOR, KERNEL
from shoal.backends.cuda.modules import Kernel, make_kernel
from shoal.backends.cuda.phases import LoadedPhase
from shoal.backends.loops import control as slot
from shoal.errors import ArgumentError
from shoal.program import Constant, Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Allowance

SPIN_SECONDS = 0.002  # for so long the host looks all the time whether a kernel has ended, then now and then
NAP_SECONDS = 0.0005


class PhaseRun:
    """One run of one phase on one GPU: `resume` until it is done."""

    def __init__(
        self, loaded: LoadedPhase, phase: Phase, shard: Shard, state: dict[str, Any], kept: dict[str, Any],
        frontier: np.ndarray | None, knobs: tuple[float, float], allowance: Allowance,
    ) -> None:  # fmt: skip
        self.loaded, self.phase, self.shard, self.state, self.kept = loaded, phase, shard, state, kept
        self.cupy = import_cupy()
        self.source, self.flow = loaded.source, loaded.source.flow
        if self.flow.grows and allowance.scheme.name not in ("fused", "fixed"):
            raise ArgumentError(f"memory={allowance.scheme.name!r} is not possible on a GPU; allowed: fused, fixed")
        graph = shard.graph
        self.num_vertices = graph.num_vertices
        self.num_blocks = BLOCKS_PER_PROCESSOR * shard.device.num_processors
        self.control = np.zeros(self.source.control_length, np.int64)
        self.rows: list[np.ndarray] = []
        self.reason = Reason.RUNNING
        self.knobs = self.cupy.asarray(np.array(knobs))
        self._make_gather_tables()
        self.sizes = self._measure()
        allowance.budget.check(self.nbytes)
        self._make_buffers()
        self._prepare(frontier)
        self.device_control = self.cupy.asarray(self.control)
        self.kernel = _load(loaded, shard.device.number)

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
            self.queue = longer

    def _make_gather_tables(self) -> None:
        self.row_tables, self.tiles = (None,) * 4, None
        if gathers(self.flow):
            self.row_tables, self.tiles = self.shard.rows, self.shard.tiles(self.num_blocks * BLOCK_WARPS)
        num_pieces = 0 if self.row_tables[2] is None else len(self.row_tables[2])
        self.row_values = self.cupy.empty(max(num_pieces, 1), self.cupy.uint64)

    def _measure(self) -> BufferSizes:
        """Return the sizes of the buffers."""
        kept, found = Kept(), self.kept
        if self.phase.begin == "replay" and found:
            kept = Kept(len(found["queue"]), int(found["levels"][found["count"]]), len(found["device_levels"]))
        num_pieces = self.shard.max_pieces if pushes(self.flow) else 0
        vertex_bytes = self.shard.graph.indices.dtype.itemsize
        return BufferSizes(self.source, self.phase, self.num_vertices, vertex_bytes, self.num_blocks, num_pieces, kept)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return self.sizes.num_bytes + self.row_values.nbytes

    def _prepare(self, frontier: np.ndarray | None) -> None:
        graph, control, flow, n = self.shard.graph, self.control, self.flow, self.num_vertices
        control[slot.NUM_VERTICES], control[slot.NUM_EDGES] = n, graph.num_edges
        control[slot.NUM_LOCAL] = control[slot.NUM_OWNED] = n
        limit = self.phase.max_supersteps
        control[slot.MAX_SUPERSTEPS] = slot.UNLIMITED if limit is None else limit
        control[slot.BUDGET] = slot.UNLIMITED
        size = n if frontier is None else len(frontier)
        control[slot.SIZE] = control[slot.LOCAL_SIZE] = size
        num_frontiers = self.sizes.frontiers
        control[slot.ROOM] = control[slot.CEILING] = control[slot.CAPACITY] = n
        control[slot.INTERMEDIATE] = num_frontiers
        control[slot.QUEUE_END] = min(num_frontiers, (self.phase.joins or 0) * n)
        if self.phase.begin == "replay":
            self._begin_replay()
        elif flow.ordered is not None:
            self._begin_pile(frontier)
        elif flow.uses_frontier:
            self._begin_queue(frontier, size)

    def _begin_queue(self, frontier: np.ndarray | None, size: int) -> None:
        """Write the first frontier."""
        control, cupy, vertex = self.control, self.cupy, self.queue.dtype
        first = cupy.arange(size, dtype=vertex) if frontier is None else cupy.asarray(frontier.astype(vertex))
        self.queue[:size] = first
        control[slot.END] = size
        control[slot.NUM_VISITED] = size
        control[slot.OUT_BASE] = size if self.flow.is_sliding else self.num_vertices
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
        control, cupy, n = self.control, self.cupy, self.num_vertices
        vertices = np.arange(n) if frontier is None else frontier
        self.piles[0][: len(vertices)] = cupy.asarray(vertices.astype(self.queue.dtype))
        flags = np.zeros(num_words(n) * 32, np.uint8)
        flags[vertices] = 1
        self.remaining[:] = cupy.asarray(np.packbits(flags, bitorder="little").view(np.uint32))
        control[self.source.slot("PILE")] = len(vertices)
        control[self.source.slot("PILE_DUE")] = 1
        control[slot.CURRENT], control[slot.LOWEST] = slot.FIRST, slot.NEVER
        control[slot.OUT_BASE] = n
        control[slot.LOCAL_SIZE] = 0

    def _arguments(self) -> list[Any]:
        out = self.shard.edges(incoming=False)
        incoming = self.shard.edges(incoming=True) if self.source.uses_in_edges else out
        row_vertices, row_firsts, row_owners, row_numbers = self.row_tables
        num_rows = 0 if row_vertices is None else len(row_vertices)
        arguments = [
            self.device_control, self.trace, TRACE_ROWS, self.levels, len(self.levels), self.knobs, *out, *incoming,
            self.queue, len(self.queue), *self.bitmaps, self.remaining, num_words(self.num_vertices), *self.pieces,
            0 if self.pieces[0] is None else len(self.pieces[0]), self.shard.graph.max_degree,
            num_rows, row_vertices, row_firsts, row_owners, row_numbers, self.row_values,
            0 if self.tiles is None else len(self.tiles) - 1, self.tiles, *self.piles, self.partials,
        ]  # fmt: skip
        if self.ledger is not None:
            arguments += [self.ledger, self.num_vertices]
        for name, declared in self.source.fields.items():
            value = self.state[name]
            if isinstance(declared, Constant) and not declared.is_array:
                arguments.append(self.source.dtypes[name].type(value))
            elif isinstance(declared, Constant):
                arguments += [value, len(value)]
            else:
                arguments.append(value)
        return [np.int64(argument) if isinstance(argument, int) else argument for argument in arguments]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all."""
        return self.control[slot.HISTORY if self.phase.begin == "replay" else slot.SIZE] == 0

    def resume(self) -> Reason:
        """Run until the kernel comes back, and return why."""
        self.control[slot.REASON] = self.control[slot.TRACE_ROWS] = 0
        self.device_control.set(self.control)
        self.kernel(self.num_blocks, BLOCK_THREADS, *self._arguments(), is_cooperative=True)
        self._await(self.cupy.cuda.get_current_stream().record())
        self.control = self.device_control.get()
        self.rows.append(self.trace[: self.control[slot.TRACE_ROWS]].get())
        self.reason = Reason(int(self.control[slot.REASON]))
        self._keep()
        return self.reason

    def _await(self, event: Any) -> None:
        """Wait for the kernel; Ctrl-C ends it at its next superstep."""
        began = time.perf_counter()
        try:
            while not event.done:
                if time.perf_counter() - began > SPIN_SECONDS:
                    time.sleep(NAP_SECONDS)
        except KeyboardInterrupt:
            self._stop()
            event.synchronize()
            raise

    def _stop(self) -> None:
        """Write into the control block while the kernel runs."""
        with self.cupy.cuda.Stream(non_blocking=True) as beside:
            self.device_control[slot.STOP : slot.STOP + 1].set(np.array([Reason.STOPPED], np.int64), stream=beside)
            beside.synchronize()

    def _keep(self) -> None:
        """Hand over what a later phase may replay, and let fields change places."""
        if self.phase.keep:
            count = int(self.control[slot.HISTORY])
            bounds = self.levels[: count + 1].get()
            self.kept.update(count=count, levels=bounds, device_levels=self.levels, queue=self.queue)
        if self.reason == Reason.DONE and self.control[slot.SWAPPED] & 1:
            for left, right in self.source.swaps:
                self.state[left], self.state[right] = self.state[right], self.state[left]

    def grow(self) -> None:
        """Make room for what the next superstep needs; a GPU's queues have room for all vertices."""
        raise AssertionError("a queue with room for every vertex needs no more")

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time."""
        rows, self.rows = self.rows, []
        return [rows]

    @property
    def peaks(self) -> list[int]:
        """The most bytes that the device's buffers took."""
        return [self.nbytes]

    @property
    def room_factor(self) -> float:
        """The room that an output got, in parts of the device's vertices."""
        return 1.0


_kernels: dict[tuple[int, int], tuple[LoadedPhase, Kernel]] = {}  # by phase and device; a phase that is kept stays so


def _load(loaded: LoadedPhase, device: int) -> Kernel:
    """Return a phase's kernel on the current GPU."""
    key = (id(loaded), device)
    if key not in _kernels:
        _kernels[key] = (loaded, make_kernel(loaded.cubin, KERNEL))
    return _kernels[key][1]
