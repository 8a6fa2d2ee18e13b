# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none, whose kernels run: generated kernels by a C++ compiler, their rules by Numba, for the CPU.

Blocks are threads of the CPU (``cuda_grid_on_host.hpp``), so that rows of blocks get ahead of one another as they do on
a GPU.  What CuPy does, NumPy does.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import types
from pathlib import Path

import numba
from numba import cfunc

from cuda_fake import FakeArray, FakeGPU
from cuda_grid import build_grid
from shoal.backends.cuda import phase_run
from shoal.backends.cuda.device import find_device
from shoal.backends.cuda.generator.phase import KERNEL
from shoal.backends.cuda.many import _as_bytes
from shoal.backends.cuda.phases import LoadedPhase
from shoal.backends.loops.control import LINE, WORLD_ROWS

NUM_PROCESSORS = 16
_HEADER = "from shoal.backends.cuda.intrinsics import *\n"
_CPU_HEADER = """import math
import numpy as np
from shoal.backends.cpu.compiler import inner
from shoal.backends.cpu.intrinsics import *
from shoal.backends.cpu.runtime import *
"""
_ENTRY = """
extern "C" void run_rows(unsigned int num_blocks, unsigned int num_rows, const char* given) {{
    host::run(num_blocks, BLOCK_WARPS * WARP, [=] {{ phase({passed}); }}, num_rows);
}}
"""


class Array(FakeArray):
    """An array with an address, as CuPy's have."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


class Event:
    """As CuPy's, of a kernel that has ended."""

    ptr = 0

    def synchronize(self):
        pass


class EmulatedGPU(FakeGPU):
    """A GPU whose kernels of rows run on the CPU."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def take(self, array):
        return super().take(array).view(Array)

    def cupy(self):
        cupy = super().cupy()
        stream = types.SimpleNamespace(record=Event)
        cupy.cuda.get_current_stream = lambda: stream
        properties = {"multiProcessorCount": NUM_PROCESSORS}
        cupy.cuda.runtime.getDeviceProperties = lambda number: properties
        return cupy

    def install(self, monkeypatch):
        """Let shoal find this GPU."""
        monkeypatch.setitem(sys.modules, "cupy", self.cupy())
        monkeypatch.setattr(phase_run, "_load", lambda loaded, device: kernel_of(loaded, self.folder))
        find_device.cache_clear()


_kernels: dict[tuple[str, str], Kernel] = {}


def kernel_of(loaded: LoadedPhase, folder):
    """Return the kernel of a phase, compiled once."""
    source = loaded.source
    key = source.text, source.module  # the same kernel may have other rules
    if key not in _kernels:
        place = Path(tempfile.mkdtemp(dir=folder))
        _kernels[key] = Kernel(source, place)
    return _kernels[key]


class Kernel:
    """Stands for `shoal.backends.cuda.modules.Kernel`, of a kernel in rows."""

    def __init__(self, source, folder):
        text = source.text
        for export in source.exports:  # functions that are found when the library is there
            assert export.declaration in text
            declared = export.declaration.removeprefix('extern "C" __device__ ').removesuffix(";")
            result, _, rest = declared.partition(f" {export.name}(")
            text = text.replace(export.declaration, f'extern "C" {{ {result} (*{export.name})({rest} = nullptr; }}')
        _, include, rest = text.partition("#include")
        self.library = build_grid(folder, source, include + rest + _ENTRY.format(passed=_passed(rest)))
        namespace = module_of(source.module, self.library)
        self.functions = [as_c_function(namespace[export.name], export) for export in source.exports]
        for export, function in zip(source.exports, self.functions, strict=True):
            ctypes.c_void_p.in_dll(self.library, export.name).value = function.address

    def __call__(self, grid, block, *arguments, is_cooperative):
        assert is_cooperative
        num_blocks, num_rows = grid if isinstance(grid, tuple) else (grid, 1)
        given = b"".join(_as_bytes(argument) for argument in arguments)
        self.library.run_rows(ctypes.c_uint(num_blocks), ctypes.c_uint(num_rows), ctypes.c_char_p(given))


def _passed(text):
    """Return the arguments of a kernel, each taken from 8 bytes of what is given."""
    _, _, declared = text.partition(f" {KERNEL}(")
    kinds = [line.strip().rpartition(" ")[0] for line in declared.partition(") {")[0].split(",")]
    return ", ".join(f"*reinterpret_cast<{kind} const*>(given + {8 * i})" for i, kind in enumerate(kinds))


def module_of(text, library):
    """Return the names of a generated module, made for the CPU; devices meet in the kernel's library."""
    assert _HEADER in text
    library.shoal_meet_devices.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.shoal_meet_devices.restype = None
    meet_devices = library.shoal_meet_devices

    @numba.njit
    def meet(control, world):
        meet_devices(control.ctypes, world.ctypes)

    @numba.njit
    def posted(world, device, what):
        return WORLD_ROWS + device * LINE + what

    namespace = {"__name__": "emulated", "meet": meet, "posted": posted}
    exec(compile(text.replace(_HEADER, _CPU_HEADER), "<emulated>", "exec"), namespace)
    return namespace


def as_c_function(function, export):
    """Return a function that takes arrays as a kernel hands them over."""
    kinds, names, given = [], [], []
    for number, argument in enumerate(export.arguments):
        element = numba.from_dtype(argument.dtype)
        if argument.length is None:
            kinds.append(element)
            names.append(f"a{number}")
            given.append(f"a{number}")
            continue
        dimensions = 1 if argument.width is None else 2
        kinds += [numba.types.voidptr] * 2 + [numba.int64] * 2 + [numba.types.CPointer(element)]
        kinds += [numba.int64] * 2 * dimensions
        own = [f"a{number}_{i}" for i in range(5 + 2 * dimensions)]
        names += own
        given.append(f"carray({own[4]}, ({', '.join(own[5 : 5 + dimensions])},))")
    result = numba.void if export.result is None else numba.from_dtype(export.result)
    text = f"def wrapper({', '.join(names)}):\n    return function({', '.join(given)})\n"
    namespace = {"function": numba.njit(function), "carray": numba.carray}
    exec(text, namespace)
    return cfunc(result(*kinds))(namespace["wrapper"])
