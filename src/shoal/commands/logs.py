# SPDX-License-Identifier: Apache-2.0
"""``--log-level``: what shoal's loggers say, on standard error, while a command runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.errors import check_choice

LEVELS = ("debug", "info", "warning", "error")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@contextmanager
def logging_at(level: str) -> Iterator[None]:
    """Write what is logged at a level or above to standard error."""
    level = check_choice("log_level", level, LEVELS).upper()
    logger = logging.getLogger("shoal")
    before = logger.level
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
