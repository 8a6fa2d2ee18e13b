# SPDX-License-Identifier: Apache-2.0
"""``shoal devices``: what there is to run on, and what the compiled code is made with."""

from __future__ import annotations

import platform
from typing import Any

from shoal.commands import display
from shoal.commands.options import Json, expanded
from shoal.machine import available_memory_bytes, cpu_name, format_bytes, memory_bytes


@expanded
def devices(json: Json = False) -> None:
    """List the devices of this machine, and the versions behind them."""
    facts = describe_devices()
    if json:
        display.print_json(facts)
        return
    for device in facts.pop("devices"):
        shown = {name: format_bytes(v) if name.endswith("_bytes") else v for name, v in device.items()}
        display.print_facts(
            f"device {device['name']}", {name.removesuffix("_bytes"): value for name, value in shown.items()}
        )
    display.print_facts("compiled code", facts)


def describe_devices() -> dict[str, Any]:
    """Return the devices and the versions of what compiles for them."""
    import llvmlite
    import llvmlite.binding
    import numba
    import numpy

    import shoal
    from shoal.backends.cpu.compiler import cache_folder
    from shoal.backends.cpu.device import CPUDevice
    from shoal.backends.cpu.threads import available_cores

    cpu = {
        "name": CPUDevice.kind,
        "processor": cpu_name(),
        "cores": len(available_cores()),
        "threads": CPUDevice().num_threads,
        "memory_bytes": memory_bytes(),
        "available_memory_bytes": available_memory_bytes(),
    }
    return {
        "devices": [cpu, *describe_gpus()],
        "shoal": shoal.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
        "cache_folder": str(cache_folder()),
    }


def describe_gpus() -> list[dict[str, Any]]:
    """Return the GPUs that CuPy finds; none where there is no CuPy, no driver or no GPU."""
    try:
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except Exception:  # CuPy raises many kinds where a driver is missing
        return []
    return [_describe_gpu(cupy, number) for number in range(count)]


def _describe_gpu(cupy: Any, number: int) -> dict[str, Any]:
    facts = cupy.cuda.runtime.getDeviceProperties(number)
    with cupy.cuda.Device(number):
        available, total = cupy.cuda.runtime.memGetInfo()
    return {
        "name": f"cuda:{number}",
        "processor": facts["name"].decode(),
        "architecture": f"sm_{facts['major']}{facts['minor']}",
        "multiprocessors": facts["multiProcessorCount"],
        "memory_bytes": total,
        "available_memory_bytes": available,
    }
