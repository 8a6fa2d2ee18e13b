# SPDX-License-Identifier: Apache-2.0
"""How long the buffers of a run are: one home for the run that makes them and the estimate made before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shoal.backends.cpu.kernels.ordered import ENTRIES, NUM_NEAR
from shoal.backends.loops.control import LINE
from shoal.backends.loops.rooms import Rooms

TRACE_ROWS = 4096  # supersteps between two visits of Python
SMALL_TRACE_ROWS = 256
OUTBOX = 1024  # vertices a thread collects before it takes room in the queue: one atomic for 4 KiB


@dataclass(frozen=True)
class BufferSizes(Rooms):
    """Numbers of elements, for one phase on one device."""

    num_threads: int
    num_global: int | None = None  # vertices of the whole graph, where there are several devices

    @cached_property
    def queue_end(self) -> int:
        """Where frontiers that lie one behind the other must end: no vertex joins more of them than it may."""
        return self.num_vertices * (self.phase.joins or 0)

    def room_in(self, length: int) -> int:
        """Return the entries that every output has in a queue of some length."""
        return length // max(self.queue(1), 1)

    @cached_property
    def levels(self) -> int:
        """Room for the bounds of the frontiers that are kept: as many on every device, also where they are empty."""
        num_vertices = self.num_vertices if self.num_global is None else self.num_global
        return (num_vertices * (self.phase.joins or 1) if self.phase.keep else 0) + 2

    @cached_property
    def work(self) -> int:
        """Counters of pieces: a cache line for every operator and thread."""
        return LINE * len(self.flow.operators) * self.num_threads

    @cached_property
    def trace_rows(self) -> int:
        """Supersteps that the trace has room for; short on one thread, which only then looks for Ctrl-C."""
        return TRACE_ROWS if self.num_threads > 1 else SMALL_TRACE_ROWS

    def blocks(self, room: int) -> int:
        """Return the blocks of the arena at first: one in every near bin, and so many vertices waiting."""
        return NUM_NEAR * self.num_threads + 1 + room // ENTRIES

    def room_of_blocks(self, blocks: int) -> int:
        """Return how many vertices may wait in so many blocks."""
        return (blocks - self.blocks(0)) * ENTRIES
