# SPDX-License-Identifier: Apache-2.0
"""Rooms: how many entries of the queue a memory scheme gives the outputs of a phase, on any kind of device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shoal.backends.loops.flow import Flow
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Scheme


@dataclass(frozen=True)
class Rooms:
    """Numbers of entries, for one phase on one device."""

    flow: Flow
    phase: Phase
    num_vertices: int  # on the device
    num_edges: int
    scheme: Scheme

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

    def room_behind(self, begin: int, needed: int, most: int) -> int:
        """Return the entries of an output such that so many vertices fit, behind those of earlier frontiers.

        There are never more than ``most``: those that all outputs together could use, or the ceiling.
        """
        if self.phase.joins is None:
            return min(needed, most)
        fitting = -(-(begin + needed) // self.phase.joins)
        return min(max(needed, fitting) if self.flow.regions else fitting, most)
