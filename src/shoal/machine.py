# SPDX-License-Identifier: Apache-2.0
"""What the machine is and has: its processor and its memory."""

from __future__ import annotations

import os
import platform


def available_memory_bytes() -> int:
    """Return what the machine has to give: Linux counts memory that caches would hand back, elsewhere all of it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return memory_bytes()


def memory_bytes() -> int:
    """Return how much memory the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def cpu_name() -> str:
    """Return the processor's name, or that of its architecture where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
