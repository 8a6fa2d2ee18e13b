# SPDX-License-Identifier: Apache-2.0
"""Write behind: a file is written while what comes next is made.

One thing is written at a time, and who has something to write waits until what came before is in its file.  So with two
arrays that take turns, the one that was handed over is safe until the other one has been.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class WriteBehind:
    """A thread that writes; at the end of its context all is written, or the first failure is raised."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shoal-write")
        self._last: Future | None = None

    def submit(self, write: Callable[..., Any], *args: Any) -> None:
        """Begin to write when all before is written."""
        self.wait()
        self._last = self._thread.submit(write, *args)

    def wait(self) -> None:
        """Wait until all is written."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def __enter__(self) -> WriteBehind:
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self._thread.shutdown()
