# SPDX-License-Identifier: Apache-2.0
"""Watch a run while it is under way.

The caller of an algorithm waits for its threads; meanwhile it looks now and then at where they are and tells an
observer.  Observers belong to the caller's context, so calls on several threads do not meet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from shoal.errors import ArgumentError


@dataclass(frozen=True)
class Progress:
    """Where a run is.

    Parameters
    ----------
    program : name of the program's class
    step : name of the step of the phase under way
    superstep : supersteps of the phase that are over
    frontier_size : vertices in the frontier
    seconds : since the phase began
    max_supersteps : how many the phase will have at most; None where only its end will tell
    """

    program: str
    step: str
    superstep: int
    frontier_size: int
    seconds: float
    max_supersteps: int | None = None


@dataclass(frozen=True)
class Work:
    """How far a piece of work beside a run is: a file that is read, a graph that is built.

    Parameters
    ----------
    name : what is done
    done, total : so much, and of how much; None where only the end will tell
    unit : of both: ``"bytes"`` or ``"edges"``
    seconds : since it began
    """

    name: str
    done: int
    total: int | None
    unit: str
    seconds: float


Observer = Callable[[Progress], None]
WorkObserver = Callable[[Work], None]
PERIOD_SECONDS = 0.1  # between two reports: often enough for an eye, too rare to cost anything


class Watch:
    """Observers, and when one was last told."""

    def __init__(self, observer: Observer, work_observer: WorkObserver | None = None) -> None:
        self.observer, self.work_observer = observer, work_observer
        self.told = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether a report would not come too soon after the last one."""
        return time.monotonic() - self.told >= PERIOD_SECONDS

    def tell(self, progress: Progress) -> None:
        """Report to the observer."""
        self.told = time.monotonic()
        self.observer(progress)


_watch: ContextVar[Watch | None] = ContextVar("shoal_watch", default=None)


@contextmanager
def observe(callback: Observer, *, work: WorkObserver | None = None) -> Iterator[None]:
    """Call ``callback`` with a `Progress` about ten times a second while runs in this context are under way.

    ``work`` is called with a `Work` while text files are read and graphs are built.

    It is called on the caller's own thread; an exception that it raises ends the run and is passed on.  What takes less
    than a tenth of a second is not reported.

    Examples
    --------
    >>> import shoal
    >>> with shoal.observe(lambda progress: print(progress.superstep, progress.frontier_size)):
    ...     result = shoal.bfs(shoal.generate.grid(30, 30), 0)
    """
    if not callable(callback):
        raise ArgumentError(f"callback={callback!r} is not allowed; it must be a function of one Progress")
    if work is not None and not callable(work):
        raise ArgumentError(f"work={work!r} is not allowed; it must be a function of one Work")
    token = _watch.set(Watch(callback, work))
    try:
        yield
    finally:
        _watch.reset(token)


def current_watch() -> Watch | None:
    """Return what watches the runs of this context, if anything does."""
    return _watch.get()


class WorkReporter:
    """Tells what watches this context how far a piece of work is, if that wants to know."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        watch = _watch.get()
        self._watch = None if watch is None or watch.work_observer is None else watch
        self._name, self._total, self._unit = name, total, unit
        self._began = time.monotonic()

    def report(self, done: int) -> None:
        """Say how much is done, unless the last report was only just now."""
        if self._watch is None or self._watch.work_observer is None or not self._watch.is_due:
            return
        now = time.monotonic()
        self._watch.told = now
        self._watch.work_observer(Work(self._name, done, self._total, self._unit, now - self._began))
