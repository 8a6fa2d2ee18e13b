# SPDX-License-Identifier: Apache-2.0
"""Kernels on the current GPU: compiled once for each text, loaded once for each device, launched on CuPy's stream.

Arguments are CuPy arrays (their address is passed), None (a null pointer) and NumPy scalars of the very width that the
kernel declares.  Python's own numbers are refused: they have no width.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends.cuda.compiler import build

#: Threads of a block where the kernel asks for no other number.
BLOCK = 256
#: Blocks of 256 threads for each multiprocessor: the eight that fit at once and as many that follow, so that none
#: stands idle for long when the last edges are dealt out.
_BLOCKS_PER_MULTIPROCESSOR = 16


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded module: ``kernel(grid, block, *args)`` launches it on CuPy's current stream."""

    name: str
    handle: Any
    num_multiprocessors: int

    def __call__(self, grid: int | tuple[int, int], block: int, *args: Any, is_cooperative: bool = False) -> None:
        """Launch ``grid`` blocks, in a row or in rows, of ``block`` threads; returns before they have run."""
        from cuda.core import LaunchConfig, launch

        config = LaunchConfig(grid=grid, block=block, is_cooperative=is_cooperative)
        launch(_current_stream(), config, self.handle, *(self._as_argument(arg) for arg in args))

    def over(self, num_items: int, *args: Any) -> None:
        """Launch a thread for each item, or as many as keep the GPU busy; the kernel is told ``num_items`` first."""
        if num_items > 0:
            grid = min(-(-num_items // BLOCK), _BLOCKS_PER_MULTIPROCESSOR * self.num_multiprocessors)
            self(grid, BLOCK, np.uint64(num_items), *args)

    def _as_argument(self, arg: Any) -> Any:
        if arg is None:
            return 0  # cuda.core passes an int as an address
        if isinstance(arg, np.generic):
            return arg
        if hasattr(arg, "__cuda_array_interface__"):
            return arg.data.ptr
        raise TypeError(f"{self.name} cannot take {arg!r}; allowed: CuPy arrays, NumPy scalars and None")


def _current_stream() -> Any:
    """Return CuPy's current stream as cuda.core has it."""
    import cupy
    from cuda.core import Stream

    legacy_default = 1  # CuPy's null stream has the address 0, which the driver also calls 1
    return Stream.from_handle(cupy.cuda.get_current_stream().ptr or legacy_default)


def load_kernel(text: str, name: str) -> Kernel:
    """Return the kernel ``name`` of a source for CuPy's current device, which becomes the thread's."""
    return _load(_enter_device(), text, name)


def make_kernel(compile: Callable[[str], bytes], name: str) -> Kernel:
    """Return the kernel ``name`` of what ``compile`` makes for the architecture of CuPy's current device."""
    device_id = _enter_device()
    return _kernel_of(device_id, compile(_arch(device_id)), name)


def _enter_device() -> int:
    """Make CuPy's current device the thread's: one that has not used CuPy yet has no context to launch in."""
    import cupy
    from cuda.core import Device

    device = cupy.cuda.Device()
    Device(device.id).set_current()
    return device.id


def _arch(device_id: int) -> str:
    import cupy

    return f"sm_{cupy.cuda.Device(device_id).compute_capability}"


@functools.cache
def _load(device_id: int, text: str, name: str) -> Kernel:
    return _kernel_of(device_id, build(text, _arch(device_id)), name)


def _kernel_of(device_id: int, cubin: bytes, name: str) -> Kernel:
    import cupy
    from cuda.core import ObjectCode

    num_multiprocessors = cupy.cuda.Device(device_id).attributes["MultiProcessorCount"]
    return Kernel(name, ObjectCode.from_cubin(cubin, name="shoal").get_kernel(name), num_multiprocessors)
