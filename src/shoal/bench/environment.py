# SPDX-License-Identifier: Apache-2.0
"""The machine a benchmark runs on, and the cores it may use.

All libraries get the same cores.  Those that use OpenMP are told through the environment, which their run-time library
reads when it is loaded; each brings a copy of its own.  A copy binds the thread that loads it to the first core, and
every copy loaded after it, and every thread started from that thread, would have that one core only: so the affinity of
the calling thread is set back before each import and before each sample of a library that starts its own threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from shoal.backends.cpu.threads import available_cores
from shoal.errors import check_integer

#: Modules that bring an OpenMP run-time library; once one is imported, binding cannot be changed.
_OPENMP_MODULES = ("networkit", "igraph", "graphblas")
_HAS_AFFINITY = hasattr(os, "sched_setaffinity")


class Cores:
    """The cores of one benchmark run."""

    def __init__(self, num_threads: int | None) -> None:
        available = available_cores()
        count = len(available) if num_threads is None else check_integer("num_threads", num_threads, 1, len(available))
        self.cores = available[:count]
        self.is_bound = False

    @property
    def num_threads(self) -> int:
        """How many threads each library uses."""
        return len(self.cores)

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep the process to these cores, and tell libraries that are imported from now on."""
        settings = self._settings()
        before = {name: os.environ.get(name) for name in settings}
        affinity = available_cores()
        is_late = any(module in sys.modules for module in _OPENMP_MODULES)
        self.is_bound = _HAS_AFFINITY and (not is_late or before == settings)
        os.environ.update(settings)
        self.release()
        try:
            yield
        finally:
            _restore(before)
            _set_affinity(affinity)

    def _settings(self) -> dict[str, str]:
        count = str(self.num_threads)
        settings = {"OMP_NUM_THREADS": count, "RAYON_NUM_THREADS": count}
        if _HAS_AFFINITY:
            settings |= {"OMP_PROC_BIND": "true", "OMP_PLACES": ",".join(f"{{{core}}}" for core in self.cores)}
        return settings

    def pin(self) -> None:
        """Keep the calling thread on the first core: it is the first thread of every OpenMP team."""
        if self.is_bound:
            _set_affinity(self.cores[:1])

    def release(self) -> None:
        """Let the calling thread, and threads it starts, use all cores of the run."""
        _set_affinity(self.cores)


def _set_affinity(cores: list[int]) -> None:
    if _HAS_AFFINITY:
        os.sched_setaffinity(0, cores)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def seconds_of_others() -> float:
    """Return the processor time that other processes and guests of the host have used since the machine started.

    A difference of two values over the time between them is the number of cores that a sample had to do without.
    """
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, file.readline().split()[1:9])
    except OSError:
        return 0.0  # not known on this system, and not counted
    all_seconds = (user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return all_seconds - own.user - own.system
