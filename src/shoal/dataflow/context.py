# SPDX-License-Identifier: Apache-2.0
"""Context: endpoints, the threads that work for them, and one place where everybody waits.

Whatever waits does so in `Context.wait`: it ends when what it waits for has come, when any part has failed, or when its
time is up.  So a failure anywhere is an error in all threads, and the caller's is raised where the context is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shoal.config import parse_devices
from shoal.errors import ArgumentError, ShoalError

if TYPE_CHECKING:
    from shoal.dataflow.link import Link, Packet


class DataflowError(ShoalError):
    """A part of a dataflow graph failed, or was used after its end."""


class Endpoint:
    """What can send and receive: the host, a device, or a router."""

    is_router = False

    def __init__(self, context: Context, name: str) -> None:
        self.context, self.name = context, name
        self.inputs: list[Link] = []
        self.outputs: list[Link] = []

    def check_link(self, link: Link) -> None:
        """Refuse a link that the endpoint has no place for."""

    def destinations(self, link: Link, packet: Packet) -> list[tuple[Packet, list[Link]]]:
        """Return the packets that become of one that came over a link, and for each the links one of which takes it."""
        return [(packet, [link])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"


class Context:
    """A host and its devices, between which links are made; leave it with ``with`` to wait for all workers.

    Parameters
    ----------
    devices : as in `shoal.RunConfig`; so far those of a CPU

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
        spec = parse_devices(devices)
        if spec.kind != "cpu":
            raise ArgumentError(f"Context: devices={devices!r} is not there yet; allowed: cpu, cpu:N")
        self.host = Endpoint(self, "host")
        self.devices = tuple(Endpoint(self, f"{spec.kind}:{number}") for number in range(spec.num_devices))
        self.changed = threading.Condition()
        self.error: BaseException | None = None
        self.failed_at: str | None = None
        self._threads: list[threading.Thread] = []

    def start(self, endpoint: Endpoint, work: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in a thread of its own; what it raises ends the whole context."""

        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                self.fail(error, endpoint.name)

        thread = threading.Thread(target=run, name=f"shoal-{endpoint.name}", daemon=True)
        self._threads.append(thread)
        thread.start()

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
            self.check()
            found = is_over()
            if found:
                return found
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise DataflowError(f"nothing came within {timeout:g} s: {what}")
            self.changed.wait(left)

    def join(self, timeout: float | None = None) -> None:
        """Wait until all workers are done; raise what one of them raised."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for thread in self._threads:
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                raise DataflowError(f"{thread.name} is still at work after {timeout:g} s")
        self.check()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.join()
            return
        self.fail(error)  # the workers' waits end with it
        for thread in self._threads:
            thread.join(1.0)
