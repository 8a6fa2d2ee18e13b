# SPDX-License-Identifier: Apache-2.0
"""How long the buffers of a run are: one home for the run that makes them and the estimate made before it."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.backends.cpu.control import LINE
from shoal.backends.cpu.generator.flow import Flow
from shoal.backends.cpu.kernels.ordered import ENTRIES, NUM_NEAR
from shoal.program import Phase

TRACE_ROWS = 4096  # supersteps between two visits of Python
SMALL_TRACE_ROWS = 256
OUTBOX = 1024  # vertices a thread collects before it takes room in the queue: one atomic for 4 KiB


@dataclass(slots=True)
class BufferSizes:
    """Numbers of elements, for one phase on one device."""

    flow: Flow
    phase: Phase
    num_vertices: int  # on the device
    num_threads: int
    num_global: int | None = None  # of the whole graph, where there are several devices

    @property
    def frontiers(self) -> int:
        """Room in the queue for the frontiers that go from superstep to superstep: all of them, or two in turn."""
        if not self.flow.uses_frontier or self.phase.begin == "replay":
            return 0
        return self.num_vertices * (2 if self.phase.joins is None else self.phase.joins)

    @property
    def regions(self) -> int:
        """Room in the queue for the frontiers that do not leave a step."""
        return self.num_vertices * len(self.flow.regions)

    @property
    def levels(self) -> int:
        """Room for the bounds of the frontiers that are kept: as many on every device, also where they are empty."""
        num_vertices = self.num_vertices if self.num_global is None else self.num_global
        return (num_vertices * (self.phase.joins or 1) if self.phase.keep else 0) + 2

    @property
    def work(self) -> int:
        """Counters of pieces: a cache line for every operator and thread."""
        return LINE * len(self.flow.operators) * self.num_threads

    @property
    def trace_rows(self) -> int:
        """Supersteps that the trace has room for; short on one thread, which only then looks for Ctrl-C."""
        return TRACE_ROWS if self.num_threads > 1 else SMALL_TRACE_ROWS

    @property
    def blocks(self) -> int:
        """Blocks of the arena at first: one in every near bin, and every vertex waiting once."""
        return NUM_NEAR * self.num_threads + 1 + self.num_vertices // ENTRIES
