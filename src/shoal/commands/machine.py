# SPDX-License-Identifier: Apache-2.0
"""``shoal devices``: what there is to run on, and what the compiled code is made with."""

from __future__ import annotations

import platform
from typing import Any

from shoal.commands import display
from shoal.commands.options import Json, expanded
from shoal.machine import available_memory_bytes, cpu_name, memory_bytes


@expanded
def devices(json: Json = False) -> None:
    """List the devices of this machine, and the versions behind them."""
    facts = describe_devices()
    if json:
        display.print_json(facts)
        return
    for device in facts.pop("devices"):
        shown = {name: display.format_bytes(v) if name.endswith("_bytes") else v for name, v in device.items()}
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
        "devices": [cpu],
        "shoal": shoal.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
        "cache_folder": str(cache_folder()),
    }
