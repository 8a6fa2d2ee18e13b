# SPDX-License-Identifier: Apache-2.0
"""Link: a way from one endpoint to another, with room for a few packets at its end.

A message is cut into packets; each waits until one of the receiver's buffers is free and is copied into it by whoever
brings the two together, the sender or the receiver that gives a buffer back.  What a router may send to one of several
links waits at all of them, and the first that has a buffer takes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from shoal.dataflow.context import DataflowError, Endpoint
from shoal.errors import ArgumentError, check_integer

if TYPE_CHECKING:
    from shoal.dataflow.context import Context

PACKET_SIZE = 1 << 16  # items; enough that a copy takes longer than the two threads need to agree on it
NUM_BUFFERS = 2  # one is worked on while the other is filled

T = TypeVar("T")


def one_dimensional(name: str, items: Any) -> np.ndarray:
    """Return items as an array without gaps."""
    array = np.asarray(items)
    if array.ndim != 1:
        raise ArgumentError(f"{name}: an array of {array.ndim} dimensions; 1 is allowed")
    return np.ascontiguousarray(array)


class Future(Generic[T]):
    """What will be there later."""

    def __init__(self, context: Context, find: Callable[[], tuple[T] | None], what: str) -> None:
        self._context, self._find, self._what = context, find, what
        self._found: tuple[T] | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is something to be had, without waiting."""
        with self._context.changed:
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
    """A piece of a message: items, which piece it is, who sent it, and what the sender says of it."""

    data: np.ndarray
    number: int
    source: Endpoint
    metadata: Any = None

    def __len__(self) -> int:
        return len(self.data)


class PendingSegment:
    """A segment that is being received; its buffer is the receiver's until it is given back."""

    def __init__(self, link: Link, packet: Packet, buffer: np.ndarray, place: int) -> None:
        self._link, self._packet, self._buffer, self._place = link, packet, buffer, place
        self._is_there = self._is_released = False

    def wait(self, timeout: float | None = None) -> Segment:
        """Return the segment when it has come; its items are valid until `release`."""
        context = self._link.context
        with context.changed:
            context.wait(lambda: self._is_there, timeout, f"a segment on {self._link}")
        packet = self._packet
        return Segment(self._buffer[: len(packet.data)], packet.number, packet.source, packet.metadata)

    def release(self) -> None:
        """Give the buffer back: the next packet may come into it."""
        with self._link.context.changed:
            if self._is_released:
                return
            self._is_released = True
            self._link._free.append(self._buffer)
            self._link._arrivals.pop(self._place)
        self._link._match()

    def _fill(self) -> None:
        np.copyto(self._buffer[: len(self._packet.data)], self._packet.data)
        with self._link.context.changed:
            self._is_there = True
            self._packet.arrived()
            self._link.context.changed.notify_all()


@dataclass(eq=False)
class Packet:
    """Items on their way; where several links might take them, the first does."""

    data: np.ndarray
    number: int
    source: Endpoint
    metadata: Any
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
        self._free: deque[np.ndarray] = deque()
        self._num_buffers_made = 0
        self._arrivals: dict[int, PendingSegment] = {}
        self._num_arrived = self._num_asked = 0
        with self.context.changed:
            src.outputs.append(self)
            dst.inputs.append(self)

    def __repr__(self) -> str:
        return f"<Link: {self.src.name} to {self.dst.name}>"

    # Sending

    def send(self, items: Any, metadata: Any = None) -> Future[None]:
        """Send an array; the future is done when all of it has been copied, and the array may be changed.

        An empty array is a message, too.
        """
        data = one_dimensional("Link.send: items", items)
        # A router has no room of its own: what comes to it must fit wherever it goes.
        size = min(link.packet_size for link in (self, *(self.dst.outputs if self.dst.is_router else ())))
        left = [0]

        def arrive() -> None:
            left[0] -= 1

        packets = [Packet(data[at : at + size], number, self.src, metadata, arrive)
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
                pending = PendingSegment(self, packet, self._take_buffer(packet.data.dtype), self._num_arrived)
                self._arrivals[self._num_arrived] = pending
                self._num_arrived += 1
            pending._fill()

    def _has_buffer(self) -> bool:
        return bool(self._free) or self._num_buffers_made < self.num_buffers

    def _take_buffer(self, dtype: np.dtype) -> np.ndarray:
        if not self._free:
            self._num_buffers_made += 1
            return np.empty(self.packet_size, dtype)
        buffer = self._free.popleft()
        return buffer if buffer.dtype == dtype else np.empty(self.packet_size, dtype)
