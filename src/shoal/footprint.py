# SPDX-License-Identifier: Apache-2.0
"""What one run of a program takes: its state, from the fields it declares, and the device's buffers, from its phases.

The buffers follow `shoal.backends.cpu.phase_run`, where they are made; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.config import RunConfig, parse_devices
from shoal.program import Phase, Program, Scalar, Vertex

INT64_BYTES = 8
NUM_BITMAPS = 3  # of a workspace: see `shoal.backends.cpu.backend`
OBJECT_BYTES = 1 << 16  # what Python needs for its own objects, so that an estimate holds for small graphs too


@dataclass(frozen=True)
class Sizes:
    """What the estimates depend on."""

    num_vertices: int
    num_edges: int
    is_directed: bool
    vertex_dtype: np.dtype
    edge_dtype: np.dtype
    weight_dtype: np.dtype | None
    distance_dtype: np.dtype
    may_be_flat: bool  # some edge may add nothing to a path's length

    @property
    def csr_bytes(self) -> int:
        weight = 0 if self.weight_dtype is None else self.weight_dtype.itemsize
        rows = (self.num_vertices + 1) * self.edge_dtype.itemsize
        return rows + self.num_edges * (self.vertex_dtype.itemsize + weight)


@dataclass(frozen=True)
class Stage:
    """Arrays that are there at the same time."""

    state_bytes: int
    buffer_bytes: int
    other_bytes: int
    uses_in_edges: bool

    def beside(self, num_bytes: int) -> Stage:
        """Return the stage with other arrays of so many bytes beside it."""
        return replace(self, other_bytes=self.other_bytes + num_bytes)


class Footprint:
    """The device's share: state and buffers of programs on a graph of given sizes."""

    def __init__(self, sizes: Sizes, config: RunConfig) -> None:
        from shoal.backends.cpu.backend import SMALL_EDGES, CPUDevice

        self.sizes, self.config = sizes, config
        threads = CPUDevice(parse_devices(config.devices).threads_per_device).num_threads
        self.num_threads = 1 if sizes.num_edges < SMALL_EDGES else threads

    def stage(self, program: Program, *, constants: int = 0, others: int = 0, begins_everywhere: bool = True) -> Stage:
        """Return what a run of ``program`` takes.

        Parameters
        ----------
        constants, others : bytes of the arrays it is given, and of those that are there beside it
        begins_everywhere : whether its first frontier is every vertex, of which a list is then made
        """
        buffers = temporary = queue = earlier = 0
        levels = self._level_bytes(None)
        uses_in_edges = False
        for phase in program.phases():
            source = self._source(program, phase)
            uses_in_edges |= source.uses_in_edges
            fixed, blocks = self._fixed_bytes(source), 0
            if source.is_ordered:
                queue, blocks = self._bucket_bytes()
                temporary = max(temporary, blocks)  # the blocks before they were doubled, and as much to add
            else:
                # The phase before is still there when a queue longer than its own is made.
                before, queue = queue, max(queue, self._queue_bytes(phase, source))
                levels = max(levels, self._level_bytes(phase))
                is_listed = phase.begin == "all" or (phase.begin == "start" and begins_everywhere)
                listed = INT64_BYTES * self.sizes.num_vertices if is_listed else 0
                temporary = max(temporary, listed + earlier + (before if queue > before else 0))
            bitmaps = NUM_BITMAPS * INT64_BYTES * ((self.sizes.num_vertices + 63) // 64)
            buffers = max(buffers, queue + levels + bitmaps + blocks + fixed)
            earlier = fixed
        state = self._state_bytes(program) + constants
        return Stage(state, buffers, others + temporary + OBJECT_BYTES, uses_in_edges)

    def _source(self, program: Program, phase: Phase) -> Any:
        from shoal.backends.cpu.generator import write_phase
        from shoal.operators import record

        recording = record(program, phase.step)
        for operator in recording.operators:
            if operator.options.get("direction") == "auto":
                operator.options["direction"] = self.config.direction
        is_weighted = self.sizes.weight_dtype is not None
        return write_phase(recording, phase, is_weighted=is_weighted, title=type(program).__name__)

    def _state_bytes(self, program: Program) -> int:
        from shoal.backends.cpu.backend import field_dtype

        total = 0
        for declared in program.fields().values():
            if isinstance(declared, (Vertex, Scalar)):
                length = self.sizes.num_vertices * (declared.width or 1) if isinstance(declared, Vertex) else 1
                total += length * field_dtype(declared, self.sizes.vertex_dtype).itemsize
        return total

    def _queue_bytes(self, phase: Phase, source: Any) -> int:
        if phase.begin == "replay":
            return 0
        joins = phase.joins if source.is_sliding else 2
        return self.sizes.num_vertices * ((joins or 1) + source.num_regions) * self.sizes.vertex_dtype.itemsize

    def _level_bytes(self, phase: Phase | None) -> int:
        """Return the bytes of the list of kept frontiers, which is never shorter than two."""
        joins = 0 if phase is None or not phase.keep else 2 if phase.joins is None else phase.joins
        return INT64_BYTES * (self.sizes.num_vertices * joins + 2)

    def _bucket_bytes(self) -> tuple[int, int]:
        """Return the queue's bytes and those of the blocks, doubled once: that graphs with hubs need it is usual."""
        from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES, NUM_NEAR

        vertex = self.sizes.vertex_dtype.itemsize
        num_blocks = 2 * (1 + NUM_NEAR * self.num_threads + self.sizes.num_vertices // ENTRIES)
        blocks = num_blocks * (ENTRIES * vertex + 2 * INT64_BYTES)
        return 2 * num_blocks * vertex, blocks + self.num_threads * BINS_ROW * INT64_BYTES

    def _fixed_bytes(self, source: Any) -> int:
        """Control block, trace, outboxes, sums per block of vertices."""
        from shoal.backends.cpu.control import NUM_TRACE_COLUMNS, control_size
        from shoal.backends.cpu.kernels.vertices import BLOCK
        from shoal.backends.cpu.phase_run import OUTBOX, SMALL_TRACE_ROWS, TRACE_ROWS

        rows = TRACE_ROWS if self.num_threads > 1 else SMALL_TRACE_ROWS
        sums = -(-self.sizes.num_vertices // BLOCK) * source.num_partials
        outboxes = self.num_threads * OUTBOX * self.sizes.vertex_dtype.itemsize
        return INT64_BYTES * (control_size(source.num_operators) + rows * NUM_TRACE_COLUMNS + sums) + outboxes
