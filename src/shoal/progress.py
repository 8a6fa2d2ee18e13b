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
    """

    program: str
    step: str
    superstep: int
    frontier_size: int
    seconds: float


Observer = Callable[[Progress], None]
PERIOD_SECONDS = 0.1  # between two reports: often enough for an eye, too rare to cost anything


class Watch:
    """An observer, and when it was last told."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
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
def observe(callback: Observer) -> Iterator[None]:
    """Call ``callback`` with a `Progress` about ten times a second while runs in this context are under way.

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
    token = _watch.set(Watch(callback))
    try:
        yield
    finally:
        _watch.reset(token)


def current_watch() -> Watch | None:
    """Return what watches the runs of this context, if anything does."""
    return _watch.get()
