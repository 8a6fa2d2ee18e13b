# SPDX-License-Identifier: Apache-2.0
"""``shoal devices``: what there is to run on, and what the compiled code is made with; or a machine's topology."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.commands import display
from shoal.commands.options import Json, expanded
from shoal.machine import available_memory_bytes, cpu_name, format_bytes, memory_bytes

if TYPE_CHECKING:
    from shoal.model import Topology

HERE = "here"


@expanded
def devices(
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE|here",
            help="Show what links the devices of a machine have instead: by name, of a file, or here, measured.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the devices of this machine, and the versions behind them; or show a machine's topology."""
    if topology is not None:
        show_topology(topology, json)
        return
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


def show_topology(name: str, json: bool) -> None:
    """Print a topology, as JSON in the form of its file."""
    from shoal.model import discover, find_topology

    found = discover() if name == HERE else find_topology(name)
    if json:
        display.print_json(found.to_dict())
        return
    is_plain = found.is_switched and found.is_uniform
    display.print_facts(found.name, _topology_facts(found, is_plain))
    if not is_plain:
        numbers = range(found.num_devices)
        columns = {"": [f"{i}" for i in numbers]} | {f"{j}": [_link(found, i, j) for i in numbers] for j in numbers}
        display.print_rows("from (row) to (column), in GB/s", columns)
    print("(N): over N direct links; ~K: through device K; host: through the host's memory")
    for field, words in found.source.items():
        print(f"{field}: {words}")


def _topology_facts(topology: Topology, is_plain: bool) -> dict[str, Any]:
    facts = {
        "devices": topology.num_devices,
        "outgoing, of a device": _gigabytes(1 / topology.seconds_per_byte) if topology.seconds_per_byte else None,
        "latency, of a message": _microseconds([topology.latency_seconds]),
        "barrier, of 1, 2, ... devices": _microseconds(topology.barrier_seconds),
        "compute scale, of an H200": topology.compute_scale,
    }
    if is_plain:
        facts["local memory"] = _gigabytes(topology.bandwidth[0][0])
    if is_plain and topology.num_devices > 1:
        links = topology.links(0, 1)
        facts["every pair"] = f"{_gigabytes(topology.bandwidth[0][1])} ({links}), through one port of a device"
    return facts


def _link(topology: Topology, i: int, j: int) -> str:
    width = f"{topology.bandwidth[i][j] / 1e9:.3g}"
    links, path = topology.links(i, j), topology.path(i, j)
    if i == j:
        return width
    return f"{width} ({links})" if links else f"{width} {path.replace('through ', '~')}"


def _gigabytes(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:,.4g} GB/s"


def _microseconds(times: Iterable[float]) -> str:
    return ", ".join(f"{seconds * 1e6:.4g}" for seconds in times) + " us"
