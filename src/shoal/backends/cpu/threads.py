# SPDX-License-Identifier: Apache-2.0
"""Run one compiled kernel on several threads that shoal owns.

A kernel is ``kernel(thread, num_threads, *args)``, compiled without the GIL: every thread runs it, as every thread of a
GPU runs a kernel, and takes its part of the work by its number.  Threads live for one call, so nothing is left behind,
forks are safe and callers never share a pool.  The caller only waits, in Python, so Ctrl-C reaches it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


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
) -> list[Any]:
    """Call ``kernel(thread, num_threads, *args)`` on ``num_threads`` threads and return what each returned.

    With one thread and no ``on_interrupt`` the caller's own thread does the work.  ``on_interrupt`` is called when an
    exception (Ctrl-C) reaches the waiting caller; it must make the kernel return soon.  The exception is then re-raised
    after all threads have ended.
    """
    if num_threads == 1 and on_interrupt is None:
        return [kernel(0, 1, *args)]
    results: list[Any] = [None] * num_threads
    failures: list[BaseException] = []
    cores = available_cores()
    # Two threads on one core halve the speed of every superstep; with a core for each, each gets its own.
    bind = num_threads == len(cores) and hasattr(os, "sched_setaffinity")

    def work(thread: int) -> None:
        try:
            if bind:
                os.sched_setaffinity(0, {cores[thread]})
            results[thread] = kernel(thread, num_threads, *args)
        except BaseException as error:
            failures.append(error)
            if on_interrupt is not None:
                on_interrupt()

    threads = [threading.Thread(target=work, args=(i,), name=f"shoal-{i}") for i in range(num_threads)]
    for thread in threads:
        thread.start()
    _join(threads, on_interrupt)
    if failures:
        raise failures[0]
    return results


def _join(threads: list[threading.Thread], on_interrupt: Callable[[], None] | None) -> None:
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        if on_interrupt is not None:
            on_interrupt()
        for thread in threads:
            thread.join()
        raise
