# SPDX-License-Identifier: Apache-2.0
"""The topology of this machine, measured: copies from device to device, timed alone, the best of a few.

GPUs are asked by CuPy which of them reach one another directly; other pairs copy by way of the host.  Devices of a CPU
share its memory: what one sends another is a copy there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.errors import ShoalError, check_choice, check_integer
from shoal.machine import count_gpus, cpu_name, import_cupy, open_peer_access
from shoal.model.matrices import two_values
from shoal.model.topology import Topology

# Larger than the caches of a core, and copied in some milliseconds.
_HOST_BYTES = 1 << 25
# Takes 0.13 ms in the memory of an H200, so that a launch hardly counts.
_GPU_BYTES = 1 << 28
_REPEATS = 3
# What a copy reaches on the GPU that compute_scale compares with, an H200: measured.
_H200_BYTES_PER_SECOND = 4.0e12
# A compiled barrier of four threads took 6 us, a grid barrier of an H200 1 us: both measured elsewhere.
_CPU_BARRIER_SECONDS = 6e-6
_GRID_BARRIER_SECONDS = 1e-6
# Pairs that differ by less are taken to share a switch: the noise of such measurements.
_ALIKE = 0.8
_COPY = "measured: a copy of {} MiB, the best of {}"


def discover(kind: str = "auto", num_devices: int | None = None) -> Topology:
    """Measure the topology of this machine: its GPUs where it has any, otherwise devices of its CPU.

    Parameters
    ----------
    kind : ``cuda``, ``cpu``, or ``auto``
    num_devices : by default all GPUs, or a device for every core

    Examples
    --------
    >>> discover("cpu", num_devices=2).num_devices
    2
    """
    num_gpus = _num_gpus(check_choice("kind", kind, ("auto", "cpu", "cuda")))
    if num_gpus:
        return discover_gpus(
            num_gpus if num_devices is None else check_integer("num_devices", num_devices, 1, num_gpus)
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return discover_cpu(cores if num_devices is None else check_integer("num_devices", num_devices, 1))


def _num_gpus(kind: str) -> int:
    """Return how many GPUs to measure: none where the CPU is asked for, or there is no GPU and nobody asked for one."""
    try:
        return 0 if kind == "cpu" else count_gpus("discover()")
    except ShoalError:
        if kind == "cuda":
            raise
        return 0


def discover_cpu(num_devices: int) -> Topology:
    """Measure copies in this machine's memory."""
    source = np.ones(_HOST_BYTES, np.uint8)
    target = np.zeros_like(source)
    seconds = _best_seconds(lambda: np.copyto(target, source))
    latency = _best_seconds(lambda: np.copyto(target[:1], source[:1]))
    local = 2 * _HOST_BYTES / seconds  # read and written
    return Topology(
        name=cpu_name(),
        num_devices=num_devices,
        bandwidth=two_values(local, _HOST_BYTES / seconds, num_devices),
        latency_seconds=latency,
        barrier_seconds=(0.0, _CPU_BARRIER_SECONDS)[:num_devices],
        compute_scale=local / _H200_BYTES_PER_SECOND,
        source=_sources(_HOST_BYTES, "assumed: a barrier of compiled code, measured elsewhere"),
        is_switched=True,
    )


def discover_gpus(num_devices: int) -> Topology:
    """Measure copies between GPUs, each pair in each direction."""
    cupy = import_cupy("discover()")
    devices = range(num_devices)
    peers = [[i != j and open_peer_access(i, j) for j in devices] for i in devices]
    buffers = [_allocate(cupy, device) for device in devices]
    rows = tuple(tuple(_gpu_bandwidth(cupy, buffers, i, j) for j in devices) for i in devices)
    latency = _gpu_seconds(cupy, buffers, 0, num_devices - 1, num_bytes=1)
    others = [rows[i][j] for i in devices for j in devices if i != j]
    local = min(rows[i][i] for i in devices)
    return Topology(
        name=cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        num_devices=num_devices,
        bandwidth=rows,
        latency_seconds=latency,
        barrier_seconds=tuple(_GRID_BARRIER_SECONDS + latency * more for more in devices),
        compute_scale=local / _H200_BYTES_PER_SECOND,
        source=_sources(_GPU_BYTES, "assumed: a grid barrier as on an H200, and a message for every further device"),
        num_links=tuple(tuple(map(int, row)) for row in peers),
        is_switched=min(others, default=0.0) >= _ALIKE * max(others, default=0.0),
    )


def _allocate(cupy: Any, device: int) -> tuple[Any, Any]:
    """Return two arrays of a GPU: what is sent from it, and what is sent to it."""
    with cupy.cuda.Device(device):
        return cupy.zeros(_GPU_BYTES, np.uint8), cupy.zeros(_GPU_BYTES, np.uint8)


def _gpu_bandwidth(cupy: Any, buffers: list[tuple[Any, Any]], i: int, j: int) -> float:
    # A copy on one GPU reads and writes the same memory.
    return (2 if i == j else 1) * _GPU_BYTES / _gpu_seconds(cupy, buffers, i, j, _GPU_BYTES)


def _gpu_seconds(cupy: Any, buffers: list[tuple[Any, Any]], i: int, j: int, num_bytes: int) -> float:
    runtime = cupy.cuda.runtime
    source, target = buffers[i][0].data.ptr, buffers[j][1].data.ptr

    def copy() -> None:
        runtime.memcpyPeer(target, j, source, i, num_bytes)
        runtime.deviceSynchronize()

    with cupy.cuda.Device(i):
        runtime.deviceSynchronize()
        return _best_seconds(copy)


def _best_seconds(copy: Callable[[], None]) -> float:
    """Return the least time of a few copies, after one that touches all memory."""
    copy()
    times = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        copy()
        times.append(time.perf_counter() - started)
    return max(min(times), 1e-9)  # clocks may not see less


def _sources(num_bytes: int, barrier: str) -> dict[str, str]:
    copied = _COPY.format(num_bytes >> 20, _REPEATS)
    return {
        "bandwidth": copied,
        "latency_seconds": "measured: a copy of one byte",
        "barrier_seconds": barrier,
        "compute_scale": "a device's own copy over the 4.0 TB/s of an H200",
    }
