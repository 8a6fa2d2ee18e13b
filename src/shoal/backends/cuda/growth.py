# SPDX-License-Identifier: Apache-2.0
"""OutputRoom: how many entries of the queue outputs have on a GPU, before a run and when a superstep may need more.

The rules are a CPU's (`shoal.backends.cpu.phase_run`): what the scheme wants, or what a superstep can use at most where
the limit, or the GPU, allows no more.  A longer queue is made beside the one there is, and entries are copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.backends.cuda.buffers import BufferSizes
from shoal.backends.loops.rooms import Rooms
from shoal.errors import OutOfMemoryError

if TYPE_CHECKING:
    from shoal.strategies.memory import Allowance


class OutputRoom:
    """The sizes of a run's buffers, with the room that outputs have in the queue."""

    def __init__(self, rooms: Rooms, sizes: BufferSizes, allowance: Allowance, other_bytes: int) -> None:
        self.rooms, self.sizes, self.budget = rooms, sizes, allowance.budget
        self.other_bytes = other_bytes  # of buffers that are not among the sizes
        self.given_factor = allowance.factor
        self.is_ordered = rooms.flow.ordered is not None
        #: Entries that the scheme has asked for so far.  By priority every vertex has its place, in all schemes.
        self.needed = rooms.num_vertices if self.is_ordered else rooms.first_room(allowance.factor)
        self.peak_bytes = 0
        self.is_full = False

    @property
    def entries(self) -> int:
        """Entries that every output has."""
        return self.sizes.entries

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers."""
        return self.sizes.num_bytes + self.other_bytes

    @property
    def ceiling(self) -> int:
        """The most entries that an output may be given."""
        return self.entries if self.is_full else self.rooms.ceiling

    @property
    def may_grow(self) -> bool:
        """Whether a superstep may come that needs more than there is."""
        return self.rooms.flow.grows and self.entries < self.ceiling

    def begin_full(self) -> None:
        """Have room for every vertex from the begin, whatever the scheme, and no more."""
        self.is_full, self.needed = True, self.rooms.num_vertices
        self._take(self.sizes, _kept_bytes(self.sizes))

    @property
    def factor(self) -> float:
        """What the run needed, in parts of the vertices: what a later one may begin with."""
        return self.given_factor if self.is_ordered else self.needed / max(self.rooms.num_vertices, 1)

    def begin(self, size: int, count_edges: Callable[[], int]) -> None:
        """Choose the room before the run, for a first frontier of so many vertices and edges."""
        flow, least = self.rooms.flow, min(self.needed, self.rooms.num_vertices)
        if flow.grows and (self.budget.limit is not None or self.needed < self.rooms.ceiling):
            wanted, least = self._behind(size if flow.is_sliding else 0, max(count_edges(), size))
            self.needed = max(self.needed, wanted)
        sizes = replace(self.sizes, room=self.needed)
        if not self._allows(sizes, _kept_bytes(sizes)):
            sizes = replace(self.sizes, room=least)
        self._take(sizes, _kept_bytes(sizes))

    def grow(self, begin: int, needed: int, make: Callable[[int], Any]) -> Any:
        """Return a longer queue, of the length that ``make`` is given; None if the one there is will do.

        Parameters
        ----------
        begin, needed : entries of earlier frontiers, and those that the next superstep may put out behind them
        """
        there = self.entries
        wanted, least = self._behind(begin, needed)
        if wanted <= there:
            return None
        wanted, least = max(wanted, min(2 * there, self.rooms.num_vertices)), max(least, there)
        for room in (wanted, least):
            if room == there:
                return None
            queue = self._lengthen(room, make, is_last=room == least)
            if queue is not None:
                return queue
        raise AssertionError("the least room is had or refused")

    def _lengthen(self, room: int, make: Callable[[int], Any], *, is_last: bool) -> Any:
        """Return a queue with so much room; if there is no memory for it, None, or an error if less will not do."""
        longer, beside = replace(self.sizes, room=room), self.sizes.queue * self.sizes.vertex_bytes
        if not is_last and not self._allows(longer, beside):
            return None
        self._check(longer, beside)
        try:
            queue = make(longer.queue)
        except OutOfMemoryError:
            if is_last:
                raise
            return None
        self._take(longer, beside)
        self.needed = room
        return queue

    def _behind(self, begin: int, needed: int) -> tuple[int, int]:
        """Return the entries that the scheme gives outputs which may need so many, and those they can use at most."""
        wanted = self.rooms.room_behind(begin, needed, self.rooms.ceiling)
        return wanted, self.rooms.room_behind(begin, needed, self.rooms.num_vertices)

    def _allows(self, sizes: BufferSizes, beside: int) -> bool:
        return self.budget.limit is None or self.budget.allows(sizes.num_bytes + self.other_bytes + beside)

    def _check(self, sizes: BufferSizes, beside: int) -> None:
        if self.budget.limit is not None:
            self.budget.check(sizes.num_bytes + self.other_bytes + beside)

    def _take(self, sizes: BufferSizes, beside: int) -> None:
        """Have these sizes from now on; while entries are copied, there are so many bytes beside them."""
        self._check(sizes, beside)
        self.sizes = sizes
        self.peak_bytes = max(self.peak_bytes, self.num_bytes + beside)


def _kept_bytes(sizes: BufferSizes) -> int:
    """Return the bytes of a queue that an earlier phase kept, if it is too short and a longer one is made beside it."""
    return sizes.kept.queue * sizes.vertex_bytes if sizes.queue > sizes.kept.queue else 0
