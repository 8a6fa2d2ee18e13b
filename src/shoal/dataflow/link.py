# SPDX-License-Identifier: Apache-2.0
"""Link: a way from one endpoint to another, with room for a few packets at its end.

A message is cut into packets; each waits until one of the receiver's buffers is free and is copied into it by whoever
brings the two together, the sender or the receiver that gives a buffer back.  What a router may send to one of several
links waits at all of them, and the first that has a buffer takes it.  How a packet gets from one memory into another,
and who waits for that, is `shoal.dataflow.memory`'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from shoal.dataflow.context import DataflowError, Endpoint
from shoal.dataflow.memory import Buffer, Lane, Mark, one_dimensional
from shoal.errors import ArgumentError, check_integer

if TYPE_CHECKING:
    from shoal.dataflow.context import Context

PACKET_SIZE = 1 << 16  # items; enough that a copy takes longer than the two threads need to agree on it
NUM_BUFFERS = 2  # one is worked on while the other is filled

T = TypeVar("T")


class Future(Generic[T]):
    """What will be there later."""

    def __init__(self, context: Context, find: Callable[[], tuple[T] | None], what: str) -> None:
        self._context, self._find, self._what = context, find, what
        self._found: tuple[T] | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is something to be had, without waiting."""
        with self._context.changed:
            self._context.settle()
            self._context.check()
            return self._look() is not None

    def result(self, timeout: float | None = None) -> T:
        """Wait for it; a failure anywhere in the context is raised."""
        with self._context.changed:
            return self._context.wait(self._look, timeout, self._what)[0]

    def _look(self) -> tuple[T] | None:
        self._found = self._found or self._find()
        return self._found


@dataclass(frozen=True)
class Segment:
    """A piece of a message: items, which piece it is, who sent it, and what the sender says of it.

    The items are in a NumPy array or, at a device of a GPU, in a CuPy array there.
    """

    data: Any
    number: int
    source: Endpoint
    metadata: Any = None

    def __len__(self) -> int:
        return len(self.data)


class PendingSegment:
    """A segment that is being received; its buffer is the receiver's until it is given back."""

    def __init__(self, link: Link, packet: Packet, buffer: Buffer | None, place: int) -> None:
        self._link, self._packet, self._buffer, self._place = link, packet, buffer, place
        self._mark: Mark | None = None  # of the end of the copy, where it is not over when it is there
        self._is_there = self._is_released = False

    def wait(self, timeout: float | None = None) -> Segment:
        """Return the segment when it has come; its items are valid until `release`.

        At a device of a GPU the calling thread's current stream waits in its place, and this returns at once.
        """
        context, memory = self._link.context, self._link.dst.memory
        with context.changed:
            context.wait(lambda: self._is_there and memory.join(self._mark), timeout, f"a segment on {self._link}")
        packet = self._packet
        assert self._buffer is not None, "it is there"
        return Segment(self._buffer.array[: len(packet.data)], packet.number, packet.source, packet.metadata)

    def release(self) -> None:
        """Give the buffer back: the next packet may come into it.

        At a device of a GPU it comes when the calling thread's current stream has done what it has been given so far.
        """
        with self._link.context.changed:
            if self._is_released:
                return
            if not self._is_there:
                self._link.context.wait(lambda: self._is_there, what=f"a segment on {self._link}")
            self._is_released = True
            assert self._buffer is not None, "it is there"
            marks = (self._mark, self._link.dst.memory.mark())
            self._buffer.marks = [mark for mark in marks if mark is not None]
            self._link._free.append(self._buffer)
            self._link._arrivals.pop(self._place)
        self._link._match()

    def _fill(self) -> None:
        """Copy the packet into the buffer, or let a stream do so."""
        packet, link, memory = self._packet, self._link, self._link.dst.memory
        buffer = self._fitting_buffer(packet.data.dtype)
        after = [*packet.marks, *buffer.marks]
        copy = None
        if len(packet.data):
            copy = memory.fill(buffer.array[: len(packet.data)], packet.source.memory, packet.data, after, link._lane)
        with link.context.changed:
            self._mark, self._is_there = (None, True) if copy is None else (copy.mark, True)
            link.context.follow(self._mark, () if copy is None else copy.kept, packet.arrived, repr(link))
            link.context.changed.notify_all()

    def _fitting_buffer(self, dtype: np.dtype) -> Buffer:
        """Return the buffer, or one for other items; the one before is kept until nobody reads it any more."""
        link, before = self._link, self._buffer
        if before is None or before.array.dtype != dtype:
            self._buffer = link.dst.memory.allocate(link.packet_size, dtype)
            with link.context.changed:
                for mark in () if before is None else before.marks:
                    link.context.follow(mark, (before,), lambda: None, repr(link))
        assert self._buffer is not None
        return self._buffer


@dataclass(eq=False)
class Packet:
    """Items on their way, right after some marks; where several links might take them, the first does."""

    data: Any
    number: int
    source: Endpoint
    metadata: Any
    marks: list[Mark]
    arrived: Callable[[], None]
    is_taken: bool = False


class Link:
    """A way from one endpoint to another.

    Parameters
    ----------
    src, dst : the endpoints; one of them may be a router
    packet_size : items of the longest packet; longer messages come in several
    num_buffers : packets that the receiver has room for at a time
    """

    def __init__(
        self, src: Endpoint, dst: Endpoint, packet_size: int = PACKET_SIZE, num_buffers: int = NUM_BUFFERS
    ) -> None:
        self.src, self.dst, self.context = src, dst, src.context
        self.packet_size = check_integer("packet_size", packet_size, 1)
        self.num_buffers = check_integer("num_buffers", num_buffers, 1)
        if dst.context is not src.context:
            raise ArgumentError(f"Link: {src.name} and {dst.name} belong to different contexts")
        if dst is src:
            raise ArgumentError(f"Link: {src.name} cannot be linked to itself")
        if any(link.dst is dst for link in src.outputs):
            raise ArgumentError(f"Link: there is a link from {src.name} to {dst.name} already")
        src.check_link(self)
        dst.check_link(self)
        self.is_shut = False
        self._packets: deque[Packet] = deque()
        self._free: deque[Buffer] = deque()
        self._num_buffers_made = 0
        self._arrivals: dict[int, PendingSegment] = {}
        self._num_arrived = self._num_asked = 0
        self._lane = Lane()
        with self.context.changed:
            src.outputs.append(self)
            dst.inputs.append(self)

    def __repr__(self) -> str:
        return f"<Link: {self.src.name} to {self.dst.name}>"

    # Sending

    def send(self, items: Any, metadata: Any = None) -> Future[None]:
        """Send an array; the future is done when all of it has been copied, and the array may be changed.

        An empty array is a message, too.  From a device of a GPU, what the calling thread's current stream has been
        given so far will be done before anything is copied.
        """
        data = one_dimensional("Link.send: items", items, self.src.memory)
        mark = self.src.memory.mark()
        marks = [] if mark is None else [mark]
        # A router has no room of its own: what comes to it must fit wherever it goes.
        size = min(link.packet_size for link in (self, *(self.dst.outputs if self.dst.is_router else ())))
        left = [0]

        def arrive() -> None:
            left[0] -= 1

        packets = [Packet(data[at : at + size], number, self.src, metadata, marks, arrive)
                   for number, at in enumerate(range(0, max(len(data), 1), size))]  # fmt: skip
        with self.context.changed:
            self.context.check()
            if self.is_shut:
                raise DataflowError(f"{self} was shut down, and nothing can be sent")
            queued = [entry for packet in packets for entry in self.dst.destinations(self, packet)]
            left[0] = len(queued)
            for packet, links in queued:
                for link in links:
                    link._packets.append(packet)
        for link in dict.fromkeys(link for _, links in queued for link in links):
            link._match()
        return Future(self.context, lambda: (None,) if left[0] == 0 else None, f"{self} to take a message")

    def shutdown(self) -> None:
        """Say that nothing more will be sent."""
        with self.context.changed:
            self.is_shut = True
            self.context.changed.notify_all()

    def drop(self, reason: str = "it was dropped") -> None:
        """Give the link up: what is on its way is lost, so everybody is told by an error."""
        self.context.fail(DataflowError(f"{self}: {reason}"))

    # Receiving

    def receive(self) -> Future[PendingSegment | None]:
        """Ask for the next segment; at the end, when the sender has shut down and all has come, it is None."""
        with self.context.changed:
            ticket, self._num_asked = self._num_asked, self._num_asked + 1

        def find() -> tuple[PendingSegment | None] | None:
            if ticket in self._arrivals:
                return (self._arrivals[ticket],)
            return (None,) if ticket >= self._num_arrived and self._is_over() else None

        return Future(self.context, find, f"a segment on {self}")

    def __iter__(self) -> Iterator[Segment]:
        """Go through the segments until the sender shuts down; each is valid until the next is asked for."""
        while (pending := self.receive().result()) is not None:
            try:
                yield pending.wait()
            finally:
                pending.release()

    def _is_over(self) -> bool:
        """Whether nothing more will come: all that may send here has shut down, and nothing is on its way."""
        senders = self.src.inputs if self.src.is_router else [self]
        return all(sender.is_shut for sender in senders) and not self._has_packet()

    def _has_packet(self) -> bool:
        """Whether a packet waits; those that other links have taken are forgotten."""
        while self._packets and self._packets[0].is_taken:
            self._packets.popleft()
        return bool(self._packets)

    def _match(self) -> None:
        """Bring packets and free buffers together as long as there are both, and copy."""
        while True:
            with self.context.changed:
                if not self._has_packet() or not self._has_buffer():
                    self.context.changed.notify_all()
                    return
                packet = self._packets.popleft()
                packet.is_taken = True
                pending = PendingSegment(self, packet, self._take_buffer(), self._num_arrived)
                self._arrivals[self._num_arrived] = pending
                self._num_arrived += 1
            pending._fill()

    def _has_buffer(self) -> bool:
        return bool(self._free) or self._num_buffers_made < self.num_buffers

    def _take_buffer(self) -> Buffer | None:
        """Return a buffer that was given back, or None for one that is still to be made."""
        if self._free:
            return self._free.popleft()
        self._num_buffers_made += 1
        return None
