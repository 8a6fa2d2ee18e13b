# SPDX-License-Identifier: Apache-2.0
"""What the machine is and has: processor, memory, GPUs, and a folder for what is kept between processes."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Any

from shoal.errors import ShoalError


def available_memory_bytes() -> int:
    """Return what this process may still take: of the machine's, and of the limits of its control groups.

    Linux counts memory that caches would hand back; elsewhere it is all that the machine has.
    """
    free = _meminfo("MemAvailable:")
    left = control_group_bytes_left()
    if free is None:
        free = memory_bytes()
    return free if left is None else min(free, left)


def free_swap_bytes() -> int:
    """Return how much of other memory the system could move to disk."""
    return _meminfo("SwapFree:") or 0


def _meminfo(name: str) -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
    except OSError:
        return None


#: Where Linux has its control groups: of all kinds, and of the older one those of memory.  Files: the limit, what is
#: taken, and the name of what the group's caches would hand back.
_CONTROL_GROUPS = (
    ("", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def control_group_bytes_left(proc: str = "/proc/self/cgroup", groups: Any = _CONTROL_GROUPS) -> int | None:
    """Return the memory that the control groups of this process, as of a container, leave it; None without a limit."""
    try:
        own = [line.split(":", 2)[1:] for line in Path(proc).read_text().splitlines()]
    except OSError:
        return None
    left = []
    for kind, root, limit, taken, cached in groups:
        for name in (path for kinds, path in own if kind in kinds.split(",")):
            folder = Path(root, name.strip("/"))
            for group in (folder, *folder.parents):
                if not group.is_relative_to(root):
                    break
                with contextlib.suppress(OSError, ValueError):  # no such file; "max"
                    back = [int(line.split()[1]) for line in (group / "memory.stat").read_text().splitlines()
                            if line.split()[0] == cached]  # fmt: skip
                    left.append(_number(group / limit) - _number(group / taken) + sum(back))
    return max(0, min(left)) if left else None


def _number(path: Path) -> int:
    return int(path.read_text())


def memory_bytes() -> int:
    """Return how much memory the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def anonymous_memory_bytes() -> int:
    """Return the memory that this process has to itself: what it allocated, and no pages of files."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))
    except (OSError, StopIteration):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def format_bytes(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:,.3g} TB"


def cpu_name() -> str:
    """Return the processor's name, or that of its architecture where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def base_folder() -> Path:
    """Return the folder for what is kept between processes.

    ``SHOAL_CACHE_DIR`` moves it; the default is ``~/.cache/shoal`` (or ``XDG_CACHE_HOME``).
    """
    base = os.environ.get("SHOAL_CACHE_DIR")
    if base is None:
        base = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "shoal")
    return Path(base)


def import_cupy(asked: str = "devices='cuda'") -> Any:
    """Return CuPy, or say what is missing for what was asked."""
    try:
        import cupy
    except ImportError as error:
        raise ShoalError(f"{asked} needs CuPy ({error}); install it with: pip install 'shoal[cuda]'") from None
    return cupy


def count_gpus(asked: str = "devices='cuda'") -> int:
    """Return the number of GPUs, or say what is missing for what was asked."""
    cupy = import_cupy(asked)
    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ShoalError(f"{asked} needs a GPU and its driver: {error}") from None


#: Of a job that `shoal mpi-run` started: where its processes say who they are, and when a silent one is given up.
JOB_FOLDER, JOB_TIMEOUT = "SHOAL_JOB_FOLDER", "SHOAL_RANK_TIMEOUT"


def tell_job(name: str, text: str) -> None:
    """Leave word for whoever started the job that this process belongs to, if anybody wants to know."""
    folder = os.environ.get(JOB_FOLDER)
    if folder is not None:
        with contextlib.suppress(OSError):  # another machine's folder
            Path(folder, name).write_text(text)


def import_mpi(asked: str = "devices='mpi'") -> Any:
    """Return mpi4py's module, with MPI running, or say what is missing for what was asked."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ShoalError(f"{asked} needs mpi4py and an MPI library ({error}); "
                         "install them with: pip install 'shoal[mpi]'") from None  # fmt: skip
    return MPI


def count_ranks(asked: str = "devices='mpi'") -> int:
    """Return the number of processes of the MPI job that this one belongs to: 1 if it was started alone."""
    return import_mpi(asked).COMM_WORLD.size


#: What launchers tell a process, by their own names: its rank, and how many ranks there are.
_LAUNCHERS = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))


def launched_as() -> tuple[int, int]:
    """Return the rank of this process and the number of ranks, as its launcher says: 0 of 1 without one."""
    for rank, size in _LAUNCHERS:
        if os.environ.get(rank, "").isdigit() and os.environ.get(size, "").isdigit():
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def open_peer_access(here: int, there: int) -> bool:
    """Return whether one GPU reaches the memory of another directly, and let it."""
    cuda = import_cupy().cuda
    if not cuda.runtime.deviceCanAccessPeer(here, there):
        return False
    with cuda.Device(here):
        try:
            cuda.runtime.deviceEnablePeerAccess(there)
        except cuda.runtime.CUDARuntimeError as error:
            if "AlreadyEnabled" not in str(error):
                raise
    return True
