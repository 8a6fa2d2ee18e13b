# SPDX-License-Identifier: Apache-2.0
"""How long the buffers of a run are: one home for the run that makes them and the estimate made before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shoal.backends.cpu.kernels.ordered import ENTRIES, NUM_NEAR
from shoal.backends.loops.control import LINE
from shoal.backends.loops.flow import Flow
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Scheme

TRACE_ROWS = 4096  # supersteps between two visits of Python
SMALL_TRACE_ROWS = 256
OUTBOX = 1024  # vertices a thread collects before it takes room in the queue: one atomic for 4 KiB


@dataclass(frozen=True)
class BufferSizes:
    """Numbers of elements, for one phase on one device."""

    flow: Flow
    phase: Phase
    num_vertices: int  # on the device
    num_threads: int
    num_edges: int
    scheme: Scheme
    num_global: int | None = None  # vertices of the whole graph, where there are several devices

    @cached_property
    def ceiling(self) -> int:
        """The most entries of the queue that an operator's output may be given."""
        return self.scheme.most_entries(self.num_vertices, self._num_pushed)

    def first_room(self, factor: float) -> int:
        """Return the entries of an output before the run; the factor is that of earlier ones."""
        return self.scheme.first_entries(self.num_vertices, self._num_pushed, factor if self.flow.is_open else 1.0)

    @cached_property
    def _num_pushed(self) -> int:
        """Edges over which an advance puts out vertices."""
        return self.num_edges if self.flow.pushes_out else 0

    def queue(self, room: int) -> int:
        """Return the length of the queue that gives every output so many entries."""
        return self.frontiers(room) + room * len(self.flow.regions)

    def frontiers(self, room: int) -> int:
        """Return the entries for the frontiers that go from superstep to superstep: all of them, or two in turn."""
        if not self.flow.uses_frontier or self.phase.begin == "replay":
            return 0
        return room * (2 if self.phase.joins is None else self.phase.joins)

    @cached_property
    def queue_end(self) -> int:
        """Where frontiers that lie one behind the other must end: no vertex joins more of them than it may."""
        return self.num_vertices * (self.phase.joins or 0)

    def room_in(self, length: int) -> int:
        """Return the entries that every output has in a queue of some length."""
        return length // max(self.queue(1), 1)

    def room_behind(self, begin: int, needed: int, most: int) -> int:
        """Return the entries of an output such that so many vertices fit, behind those of earlier frontiers.

        There are never more than ``most``: those that all outputs together could use, or the ceiling.
        """
        if self.phase.joins is None:
            return min(needed, most)
        fitting = -(-(begin + needed) // self.phase.joins)
        return min(max(needed, fitting) if self.flow.regions else fitting, most)

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
