# SPDX-License-Identifier: Apache-2.0
"""Run one compiled kernel on several threads that shoal owns.

A kernel is ``kernel(thread, num_threads, *args)``, compiled without the GIL: every thread runs it, as every thread of a
GPU runs a kernel, and takes its part of the work by its number.  Threads live for one call, so nothing is left behind,
forks are safe and callers never share a pool.  The caller only waits, in Python, so Ctrl-C reaches it.

An interrupt can reach the caller anywhere, but never a worker.  So it is the workers that count who has begun and who
has ended, and the caller only looks: however often it is interrupted, what it looks at is right.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from shoal.errors import ShoalError
from shoal.progress import PERIOD_SECONDS

# A thread that starts takes under a millisecond; one whose start was interrupted before it was made never comes.
GIVEN_UP_SECONDS = 0.1


def available_cores() -> list[int]:
    """Return the cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run_threads(
    kernel: Callable[..., Any],
    num_threads: int,
    *args: Any,
    on_interrupt: Callable[[], None] | None = None,
    on_wait: Callable[[], None] | None = None,
    beside: Callable[[], None] | None = None,
) -> list[Any]:
    """Call ``kernel(thread, num_threads, *args)`` on ``num_threads`` threads and return what each returned.

    With one thread and no ``on_interrupt`` the caller's own thread does the work.  ``on_interrupt`` is called when the
    kernel cannot end as it should: an exception (Ctrl-C) reached the waiting caller, a thread did not start, or the
    kernel failed on one.  It must make the kernel return soon, also where it waits for other threads, and must not
    raise.  The first exception is raised when all threads have ended.  ``on_wait`` is called by the waiting caller,
    every `PERIOD_SECONDS`.  With ``beside`` the caller does that first, while the threads run; it ends by itself.
    """
    if num_threads == 1 and on_interrupt is None:
        return [kernel(0, 1, *args)]
    team = _Team(kernel, num_threads, args, on_interrupt or _do_nothing, has_company=beside is not None)
    try:
        try:
            team.start()
            if beside is not None:
                beside()
            team.wait(on_wait)
        except BaseException:
            team.leave()
            raise
    except BaseException:  # maybe another interrupt, just before the threads were told or the caller began to wait
        team.leave()
        raise
    if team.failures:
        raise team.failures[0]
    return team.results


def _do_nothing() -> None:
    """For kernels that always end by themselves."""


class _Team:
    """The threads of one call.

    ``num_missing`` have not begun and ``num_running`` have begun and not ended; both are changed under ``lock``.  A
    thread that comes when nobody is missing has been given up and does nothing.
    """

    def __init__(
        self, kernel: Callable, num_threads: int, args: tuple, on_interrupt: Callable[[], None], *, has_company: bool
    ) -> None:
        self.has_company = has_company
        self.kernel, self.args, self.on_interrupt = kernel, args, on_interrupt
        self.num_threads = self.num_missing = num_threads
        self.num_running = 0
        self.results: list[Any] = [None] * num_threads
        self.failures: list[BaseException] = []  # the first one is the cause of the others
        self.lock = threading.Lock()
        self.all_ended = threading.Lock()  # released by the last thread to end
        self.all_ended.acquire()
        self.cores = available_cores()
        self.threads = [threading.Thread(target=self._work, args=(i,), name=f"shoal-{i}") for i in range(num_threads)]

    # In the caller

    def start(self) -> None:
        """Start the threads."""
        for number, thread in enumerate(self.threads):
            try:
                thread.start()
            except RuntimeError as error:
                raise ShoalError(
                    f"only {number} of {self.num_threads} threads could be started ({error}); "
                    "ask for fewer, as in devices='cpu:1x2'"
                ) from None

    def wait(self, on_wait: Callable[[], None] | None = None) -> None:
        """Wait until all threads have ended."""
        timeout = -1 if on_wait is None else PERIOD_SECONDS
        while self.num_missing or self.num_running:
            if not self.all_ended.acquire(timeout=timeout) and on_wait is not None:
                on_wait()
        for thread in self.threads:
            if thread.is_alive():
                thread.join()  # it has nothing left to do

    def leave(self) -> None:
        """Tell the threads to end and wait until they have, whatever comes in between."""
        while not self._has_left():
            pass

    def _has_left(self) -> bool:
        try:
            with self.lock:
                self.num_missing = 0
            self.on_interrupt()
            self.wait()
            self._await_given_up()
        except BaseException:
            return False
        return True

    def _await_given_up(self) -> None:
        """Let a thread end that was being started when an interrupt came: it is there, but does not say so yet."""
        deadline = time.monotonic() + GIVEN_UP_SECONDS
        while set(self.threads) & set(threading.enumerate()) and time.monotonic() < deadline:
            time.sleep(GIVEN_UP_SECONDS / 1000)

    # In the threads

    def _work(self, thread: int) -> None:
        with self.lock:
            if self.num_missing == 0:
                return
            self.num_missing -= 1
            self.num_running += 1
        try:
            self._bind(thread)
            self.results[thread] = self.kernel(thread, self.num_threads, *self.args)
        except BaseException as error:
            self.failures.append(error)
            self.on_interrupt()
        with self.lock:
            self.num_running -= 1
            if self.num_missing == self.num_running == 0:
                self.all_ended.release()

    def _bind(self, thread: int) -> None:
        """With a core for each thread, give each its own: two on one core halve the speed of every superstep.

        Where the caller works beside them, and maybe other processes, there is none for each.
        """
        if self.num_threads == len(self.cores) and not self.has_company and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):  # a core that has been taken away meanwhile
                os.sched_setaffinity(0, {self.cores[thread]})
