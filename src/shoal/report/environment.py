# SPDX-License-Identifier: Apache-2.0
"""What a reader of a run's times needs to know: the machine, and the versions of what compiled and ran the program."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from shoal.backends.cpu.threads import available_cores
from shoal.config import parse_devices
from shoal.machine import cpu_name, import_cupy, memory_bytes

_PACKAGES = ("shoal", "numpy", "numba", "scipy", "cupy-cuda13x")


def describe_machine() -> dict[str, Any]:
    """Return what a reader needs to judge the times."""
    return {
        "cpu": cpu_name(),
        "cores_available": len(available_cores()),
        "memory_bytes": memory_bytes(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def describe_environment(devices: str) -> dict[str, Any]:
    """Return the machine with the GPUs among its devices, and the versions of the packages that are installed."""
    versions = {name: metadata.version(name) for name in _PACKAGES if _is_installed(name)}
    spec = parse_devices(devices)
    gpus = {"gpus": [_describe_gpu(number) for number in sorted(set(spec.numbers))]} if spec.kind == "cuda" else {}
    return describe_machine() | gpus | {"versions": versions}


def _describe_gpu(number: int) -> dict[str, Any]:
    facts = import_cupy().cuda.runtime.getDeviceProperties(number)
    return {"number": number, "name": facts["name"].decode(), "memory_bytes": facts["totalGlobalMem"]}


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
