# SPDX-License-Identifier: Apache-2.0
"""Context: endpoints, the threads that work for them, and one place where everybody waits.

Whatever waits does so in `Context.wait`: it ends when what it waits for has come, when any part has failed, or when its
time is up.  So a failure anywhere is an error in all threads, and the caller's is raised where the context is left.
GPUs tell nobody when a copy has ended: as long as one is under way, whoever waits looks for its end now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.config import parse_devices
from shoal.dataflow.memory import Mark, Memory, make_memories
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.dataflow.link import Link, Packet

NAP_SECONDS = 5e-5  # between two looks at copies under way: a packet takes a GPU some ten microseconds
GRACE_SECONDS = 1.0  # for what is under way where something failed: nothing that ends by itself takes so long


class DataflowError(ShoalError):
    """A part of a dataflow graph failed, or was used after its end."""


class Endpoint:
    """What can send and receive: the host, a device, or a router."""

    is_router = False

    def __init__(self, context: Context, name: str, memory: Memory) -> None:
        self.context, self.name, self.memory = context, name, memory
        self.inputs: list[Link] = []
        self.outputs: list[Link] = []

    def check_link(self, link: Link) -> None:
        """Refuse a link that the endpoint has no place for."""

    def destinations(self, link: Link, packet: Packet) -> list[tuple[Packet, list[Link]]]:
        """Return the packets that become of one that came over a link, and for each the links one of which takes it."""
        return [(packet, [link])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


@dataclass(eq=False)
class _Underway:
    """What a stream has been given: the mark of its end, what must be kept until then, and whom to tell."""

    mark: Mark
    kept: tuple[Any, ...]
    tell: Callable[[], None]
    where: str


class Context:
    """A host and its devices, between which links are made; leave it with ``with`` to wait for all workers.

    Parameters
    ----------
    devices : as in `shoal.RunConfig`; those of a CPU are threads of the host, those of a GPU have its memory, and each
        a stream

    Examples
    --------
    >>> from shoal.dataflow import Context, Link
    >>> with Context("cpu:1") as context:
    ...     link = Link(context.host, context.devices[0], packet_size=2)
    ...     _ = link.send([1, 2, 3])
    ...     link.shutdown()
    ...     [segment.data.tolist() for segment in link]
    [[1, 2], [3]]
    """

    def __init__(self, devices: str = "cpu") -> None:
        host, memories = make_memories(parse_devices(devices))
        self.host = Endpoint(self, host.name, host)
        self.devices = tuple(Endpoint(self, memory.name, memory) for memory in memories)
        self.changed = threading.Condition()
        self.error: BaseException | None = None
        self.failed_at: str | None = None
        self._threads: list[threading.Thread] = []
        self._underway: list[_Underway] = []

    def start(self, endpoint: Endpoint, work: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in a thread of its own; what it raises ends the whole context.

        For a device of a GPU, that GPU is the thread's current one, and a stream of its own the current stream.
        """

        def try_work() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self.fail(error, endpoint.name)

        def run() -> None:
            try:
                with endpoint.memory.working(lambda mark: self._finish(mark, endpoint.name)):
                    try_work()
            except BaseException as error:
                self.fail(error, endpoint.name)

        thread = threading.Thread(target=run, name=f"shoal-{endpoint.name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _finish(self, mark: Mark, where: str) -> None:
        """Wait for what a worker has left its stream to do; what that fails at is the worker's error."""
        with self.changed:
            self.follow(mark, (), lambda: None, where)
            self.wait(lambda: mark.is_done, what=f"the stream of {where}")

    def fail(self, error: BaseException, where: str | None = None) -> None:
        """End all waiting with an error; the first one is kept."""
        with self.changed:
            if self.error is None:
                self.error, self.failed_at = error, where
            self.changed.notify_all()

    def check(self) -> None:
        """Raise if a part has failed."""
        if self.error is not None:
            place = "" if self.failed_at is None else f" at {self.failed_at}"
            raise DataflowError(f"the dataflow failed{place}: {self.error}") from self.error

    def wait(self, is_over: Callable[[], Any], timeout: float | None = None, what: str = "the dataflow") -> Any:
        """Return what ``is_over`` returns as soon as it is true.

        Call it with `changed` held.  A failure anywhere is raised, and so is a wait of more than ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.settle()
            self.check()
            found = is_over()
            if found:
                return found
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise DataflowError(f"nothing came within {timeout:g} s: {what}")
            if self._underway:
                left = NAP_SECONDS if left is None else min(left, NAP_SECONDS)
            self.changed.wait(left)

    def follow(self, mark: Mark | None, kept: tuple[Any, ...], tell: Callable[[], None], where: str) -> None:
        """Keep what a copy needs until its mark is done, and tell then; call it with `changed` held."""
        if mark is None:
            tell()
        else:
            self._underway.append(_Underway(mark, kept, tell, where))

    def settle(self) -> None:
        """Take note of the copies that have ended; call it with `changed` held."""
        ended = [copy for copy in self._underway if self._has_ended(copy)]
        for copy in ended:
            self._underway.remove(copy)
            copy.tell()
        if ended:
            self.changed.notify_all()

    def _has_ended(self, copy: _Underway) -> bool:
        try:
            return copy.mark.is_done
        except Exception as error:
            self.fail(error, copy.where)
            return True  # nothing more will come of it

    def join(self, timeout: float | None = None) -> None:
        """Wait until all workers are done, and all copies; raise what one of them raised."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                raise DataflowError(f"{thread.name} is still at work after {timeout:g} s")
        with self.changed:
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            self.wait(lambda: not self._underway, left, "copies to end")

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.join()
                return
            self.fail(error)  # the workers' waits end with it
            for thread in self._threads:
                thread.join(GRACE_SECONDS)
        finally:
            self._let_end()

    def _let_end(self) -> None:
        """Give what is under way where something failed a little time: it writes to memory that others will have."""
        deadline = time.monotonic() + GRACE_SECONDS
        with self.changed:
            while self._underway and time.monotonic() < deadline:
                self.settle()
                self.changed.wait(NAP_SECONDS)
