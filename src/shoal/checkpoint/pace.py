# SPDX-License-Identifier: Apache-2.0
"""Pace: how often a run is looked at between two supersteps, to keep what it has done."""

from __future__ import annotations

import re
import time
from typing import Any

from shoal.errors import ArgumentError, check_integer

DEFAULT = "60s"  # what a run may lose: little beside a run that needs checkpoints, much beside writing its state
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h)")
_UNITS = {"s": 1, "min": 60, "h": 3600}
#: Supersteps between two visits at most: how long a run's trace is anyway.
MAX_ROWS = 4096


class Pace:
    """A number of supersteps, or of seconds."""

    def __init__(self, every: Any = DEFAULT) -> None:
        name, allowed = "checkpoint_every", "a number of supersteps, or a time as '30s', '5min' or '1h'"
        self.supersteps: int | None = None
        self.seconds: float | None = None
        match = _SECONDS.fullmatch(every.strip()) if isinstance(every, str) else None
        if match is not None:
            self.seconds = float(match[1]) * _UNITS[match[2]]
        elif isinstance(every, str) and not every.strip().isdigit():
            raise ArgumentError(f"{name}={every!r} is not known; allowed: {allowed}")
        else:
            self.supersteps = check_integer(name, int(every) if isinstance(every, str) else every, 1)
        self.saved()

    def begin_run(self) -> None:
        """Count supersteps anew."""
        self.num_supersteps = 0

    def saved(self) -> None:
        """Begin to wait for the next time."""
        self.num_supersteps = 0
        self.last = time.monotonic()

    def span(self) -> tuple[int, int | None]:
        """Return after how many supersteps at most, and at which clock, a run is to come back."""
        if self.supersteps is not None:
            return min(self.supersteps - self.num_supersteps, MAX_ROWS), None
        assert self.seconds is not None
        return MAX_ROWS, int((self.last + self.seconds) * 1e9)

    def is_due(self, num_supersteps: int, rows: int) -> bool:
        """Whether to write a snapshot, now that so many supersteps are over of ``rows`` for which there was room.

        A run that came back before the room was used up came for the clock's sake, or was asked to: then all processes
        of a job know it, whosever clock it was.
        """
        self.num_supersteps += num_supersteps
        if self.supersteps is not None and self.num_supersteps >= self.supersteps:
            return True
        return num_supersteps < rows
