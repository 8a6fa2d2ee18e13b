# SPDX-License-Identifier: Apache-2.0
"""One run of one phase on a CPU device: its control block, its buffers, and the one door to its compiled loop."""

from __future__ import annotations

import time
import traceback
from typing import Any

import numpy as np

from shoal.backends.cpu import control as slot
from shoal.backends.cpu.backend import LoadedPhase, Shard, Workspace
from shoal.backends.cpu.control import Reason, control_size
from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES, FAR_LOWEST, NEVER, NONE, NUM_NEAR
from shoal.backends.cpu.kernels.vertices import BLOCK
from shoal.backends.cpu.threads import run_threads
from shoal.errors import ProgramError
from shoal.program import Phase
from shoal.progress import Progress, current_watch

TRACE_ROWS = 4096  # supersteps between two visits of Python
SMALL_TRACE_ROWS = 256
# A small graph's run goes on the caller's own thread for so long: much longer than a thread takes to start, and short
# enough for Ctrl-C, which waits there for the loop to come back.
INLINE_NANOSECONDS = 20_000_000
OUTBOX = 1024  # vertices a thread collects before it takes room in the queue: one atomic for 4 KiB


class PhaseRun:
    """One run of one phase on one device: its control block and buffers; `resume` until it is done."""

    def __init__(
        self, loaded: LoadedPhase, phase: Phase, shard: Shard, workspace: Workspace, state: dict[str, Any],
        frontier: np.ndarray | None, do_a: float, do_b: float, title: str,
    ) -> None:  # fmt: skip
        self.loaded, self.phase, self.shard, self.workspace = loaded, phase, shard, workspace
        self.state, self.title = state, title
        self.watch, self.began = current_watch(), time.monotonic()
        self.num_threads = shard.device.threads_for(shard.graph)
        self.is_inline = shard.device.is_small(shard.graph)  # runs on the caller's own thread, until it proves long
        self.control = np.zeros(control_size(loaded.source.num_operators), np.int64)
        rows = TRACE_ROWS if self.num_threads > 1 else SMALL_TRACE_ROWS
        self.trace = np.empty((rows, slot.NUM_TRACE_COLUMNS), np.int64)
        self.rows: list[np.ndarray] = []
        self._prepare(frontier)
        self.arguments = self._arguments(np.array([do_a, do_b]))

    def _prepare(self, frontier: np.ndarray | None) -> None:
        graph, control, source = self.shard.graph, self.control, self.loaded.source
        num_vertices = graph.num_vertices
        control[slot.NUM_VERTICES] = num_vertices
        control[slot.NUM_EDGES] = graph.num_edges
        control[slot.MAX_SUPERSTEPS] = 2**62 if self.phase.max_supersteps is None else self.phase.max_supersteps
        control[slot.BUDGET] = time.monotonic_ns() + INLINE_NANOSECONDS if self.is_inline else 2**62
        control[slot.LOWEST] = NEVER
        if self.phase.begin == "replay":
            self._begin_replay()
        elif source.is_ordered:
            self._begin_buckets(frontier)
        else:
            self._begin_queue(frontier)

    def _begin_queue(self, frontier: np.ndarray | None) -> None:
        control, source, workspace = self.control, self.loaded.source, self.workspace
        num_vertices = self.shard.graph.num_vertices
        joins = self.phase.joins if source.is_sliding else 2
        length = num_vertices * ((joins or 1) + source.num_regions)
        if len(workspace.queue) < length:
            workspace.queue = np.empty(length, self.shard.graph.indices.dtype)
        if self.phase.keep and len(workspace.levels) < num_vertices * (joins or 1) + 2:
            workspace.levels = np.empty(num_vertices * (joins or 1) + 2, np.int64)
        workspace.bitmap_a.fill(0)
        workspace.bitmap_b.fill(0)
        if source.uses_in_edges:
            workspace.remaining.fill(2**64 - 1)
            if num_vertices % 64:
                workspace.remaining[-1] = 2 ** (num_vertices % 64) - 1
        size = num_vertices if frontier is None else len(frontier)
        workspace.queue[:size] = np.arange(num_vertices, dtype=workspace.queue.dtype) if frontier is None else frontier
        control[slot.INTERMEDIATE] = num_vertices * (joins or 1)
        control[slot.END] = control[slot.SIZE] = control[slot.NUM_VISITED] = size
        control[slot.OUT_BASE] = size if source.is_sliding else num_vertices
        control[slot.HAS_QUEUE] = 1
        if self.phase.keep:
            workspace.levels[:2] = (0, size)
            control[slot.HISTORY] = 1

    def _begin_replay(self) -> None:
        control, levels = self.control, self.workspace.levels
        count = self.workspace.num_levels
        control[slot.HISTORY] = count
        control[slot.BEGIN], control[slot.END] = levels[count - 1], levels[count]
        control[slot.SIZE] = control[slot.END] - control[slot.BEGIN]

    def _begin_buckets(self, frontier: np.ndarray | None) -> None:
        """Put the first frontier into blocks, published for the first superstep."""
        graph, control = self.shard.graph, self.control
        first = np.arange(graph.num_vertices, dtype=graph.indices.dtype) if frontier is None else np.asarray(frontier)
        used = -(-len(first) // ENTRIES)
        # Room for a block in every near bin and for every vertex to wait once; more when needed.
        num_blocks = used + NUM_NEAR * self.num_threads + graph.num_vertices // ENTRIES
        self.blocks = np.empty((num_blocks, ENTRIES), graph.indices.dtype)
        self.links = np.empty(2 * num_blocks, np.int64)
        self.bins = np.full((self.num_threads, BINS_ROW), NONE, np.int64)
        self.bins[:, FAR_LOWEST] = NEVER
        self.blocks[:used].reshape(-1)[: len(first)] = first
        counts = np.full(used, ENTRIES)
        counts[-1:] = len(first) - (used - 1) * ENTRIES
        self.links[1 : 2 * used : 2] = counts
        self.workspace.queue = np.empty(2 * num_blocks, graph.indices.dtype)
        self.workspace.queue[:used] = np.arange(used)
        self.workspace.bitmap_a.fill(0)
        self.workspace.bitmap_b.fill(0)
        control[slot.BLOCKS_USED] = control[slot.TODO] = used
        control[slot.SIZE] = len(first)

    def _arguments(self, knobs: np.ndarray) -> tuple:
        self.knobs = knobs
        source, workspace = self.loaded.source, self.workspace
        graph = self.shard.graph
        out = self.shard.edges(incoming=False)
        incoming = self.shard.edges(incoming=True) if source.uses_in_edges else out
        self.outbox = outbox = np.empty((self.num_threads, OUTBOX), graph.indices.dtype)
        num_blocks = -(-graph.num_vertices // BLOCK) if source.num_partials else 0
        self.partials = partials = np.empty((num_blocks, source.num_partials))
        if not source.is_ordered:
            self.blocks, self.links, self.bins = outbox, workspace.levels, partials.view(np.int64)
        return (
            self.control, self.trace, workspace.levels, knobs, *out, *incoming, workspace.queue, workspace.bitmap_a,
            workspace.bitmap_b, workspace.remaining, outbox, partials, self.blocks, self.links, self.bins,
            *self.state.values(),
        )  # fmt: skip

    def resume(self) -> Reason:
        """Run until the loop comes back and return why; the trace's rows are taken over."""
        control = self.control
        control[slot.REASON] = 0
        control[slot.STARTED] = time.monotonic_ns()
        if self.is_inline:
            self._loop(0, 1, *self.arguments)
        else:
            on_wait = None if self.watch is None else self.report
            run_threads(self._loop, self.num_threads, *self.arguments, on_interrupt=self.stop, on_wait=on_wait)
        self.rows.append(self.trace[: control[slot.TRACE_ROWS]].copy())
        control[slot.TRACE_ROWS] = 0
        self.workspace.num_levels = int(control[slot.HISTORY])
        reason = Reason(int(control[slot.REASON]))
        if reason == Reason.DONE and control[slot.SWAPPED] & 1:
            for left, right in self.loaded.source.swaps:
                self.state[left], self.state[right] = self.state[right], self.state[left]
        if reason != Reason.DONE and control[slot.STARTED] >= control[slot.BUDGET]:
            self._move_to_thread()
        if self.watch is not None and self.watch.is_due:  # of many short runs each is too short to be reported
            self.report()
        return reason

    def _loop(self, *arguments: Any) -> None:
        try:
            self.loaded.loop(*arguments)
        except Exception as error:
            raise ProgramError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        """Name the rule that failed: compiled code leaves its place in the generated module in the traceback."""
        frames = traceback.walk_tb(error.__traceback__)
        places = [line for frame, line in frames if frame.f_code.co_filename != __file__]
        rules = self.loaded.source.rule_lines
        failed = [rule.where() for line in places for first, last, rule in rules if first <= line <= last]
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        where = failed[-1] if failed else "a rule"
        return f"{self.title}: {where} failed in superstep {self.control[slot.SUPERSTEP]}: {what}"

    def _move_to_thread(self) -> None:
        """Go on with a thread and a long trace: the run is worth them, and Ctrl-C reaches a caller that waits."""
        self.is_inline = False
        self.control[slot.BUDGET] = 2**62
        self.trace = np.empty((TRACE_ROWS, slot.NUM_TRACE_COLUMNS), np.int64)
        self.arguments = self._arguments(self.knobs)

    def stop(self) -> None:
        """Make the loop come back at the next chance, on every thread; the run cannot be resumed."""
        self.control[slot.STOP] = Reason.STOPPED
        self.control[slot.ABANDONED] = 1

    def report(self) -> None:
        """Tell whoever watches where the run is."""
        assert self.watch is not None
        step = getattr(self.phase.step, "__name__", "step")
        superstep, size = (int(self.control[number]) for number in (slot.SUPERSTEP, slot.SIZE))
        self.watch.tell(Progress(self.title, step, superstep, size, time.monotonic() - self.began))

    def grow(self) -> None:
        """Double the arena of blocks; the queue of published blocks grows with it."""
        count = len(self.blocks)
        self.blocks = np.concatenate([self.blocks, np.empty_like(self.blocks)])
        self.links = np.concatenate([self.links, np.empty_like(self.links)])
        queue = np.empty(4 * count, self.workspace.queue.dtype)
        half = len(self.workspace.queue) // 2
        queue[:half] = self.workspace.queue[:half]
        queue[2 * count : 2 * count + half] = self.workspace.queue[half:]
        self.workspace.queue = queue
        self.arguments = self._arguments(self.knobs)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do at all."""
        return bool(self.control[slot.SIZE] == 0)

    @property
    def nbytes(self) -> int:
        """Memory of the run's buffers, the program's fields excluded."""
        own = [self.control, self.trace, self.outbox, self.partials]
        if self.loaded.source.is_ordered:
            own += [self.blocks, self.links, self.bins]
        return self.workspace.nbytes + sum(array.nbytes for array in own)
