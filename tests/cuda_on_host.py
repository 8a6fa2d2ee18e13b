# SPDX-License-Identifier: Apache-2.0
"""Kernels of the CUDA backend run by the CPU, thread by thread, with NumPy in CuPy's place: for tests without a GPU.

What is run is the text that a GPU gets, compiled by a C++ compiler with ``cuda_on_host.hpp``, or with blocks as threads
of the CPU by ``cuda_grid_on_host.hpp``.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import shutil
import subprocess
import threading
import types
from pathlib import Path

import numpy as np

from shoal.backends.cuda.compiler import HEADERS

COMPILER = shutil.which("g++") or shutil.which("clang++")
#: Libraries that are loaded beside one another must not share the variables that stand for CUDA's.
OPTIONS = ("-std=c++17", "-w", "-fno-gnu-unique")
#: Kernels loop over what more threads would do.
MAX_BLOCKS = 3
BLOCK = 256
_MAX_PARAMETERS = 32
_one_at_a_time = threading.Lock()  # what stands for CUDA's variables is a library's own


class DeviceArray(np.ndarray):
    """An array that says ``get`` as CuPy's do."""

    def get(self):
        return np.array(self)


def _as_device(make):
    return lambda *args, **options: np.asarray(make(*args, **options)).view(DeviceArray)


def _dirty(size, dtype):
    array = np.empty(size, dtype)
    array.view(np.uint8)[:] = 0xAB  # so that what is never written is noticed
    return array


class _OnlyDevice(contextlib.nullcontext):
    id = 0


def make_cupy() -> types.ModuleType:
    """Return the part of CuPy that building graphs needs, made of NumPy."""
    cupy = types.ModuleType("cupy")
    for name in ("arange", "asarray", "ascontiguousarray", "concatenate", "cumsum", "full", "zeros"):
        setattr(cupy, name, _as_device(getattr(np, name)))
    cupy.empty = _as_device(_dirty)
    cupy.argsort = _as_device(functools.partial(np.argsort, kind="stable"))
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    cupy.cuda = types.SimpleNamespace(Device=_OnlyDevice, runtime=runtime)
    return cupy


class HostKernel:
    """Stands for `shoal.backends.cuda.modules.Kernel`; checks the width of every argument."""

    def __init__(self, library, name):
        self.name = name
        self.launch, measure = library[f"launch_{name}"], library[f"measure_{name}"]
        sizes = (ctypes.c_int * _MAX_PARAMETERS)()
        self.sizes = sizes[: measure(sizes)]

    def __call__(self, grid, block, *args):
        values = [self._as_value(arg) for arg in args]
        assert [value.nbytes for value in values] == self.sizes, self.name
        addresses = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        with _one_at_a_time:
            self.launch(ctypes.c_uint(grid), ctypes.c_uint(block), addresses)

    def over(self, num_items, *args):
        if num_items > 0:
            self(min(-(-num_items // BLOCK), MAX_BLOCKS), BLOCK, np.uint64(num_items), *args)

    def _as_value(self, arg):
        if isinstance(arg, np.generic):
            return np.array([arg])
        assert arg is None or isinstance(arg, DeviceArray), f"{self.name} was given {arg!r}"
        assert arg is None or arg.flags.c_contiguous
        return np.array([0 if arg is None else arg.ctypes.data], np.uintp)


def make_loader(folder: Path, machine: str = "cuda_on_host.hpp"):
    """Return what stands for `shoal.backends.cuda.modules.load_kernel`; it keeps what it compiles in a folder."""

    @functools.cache
    def load_library(text):
        return ctypes.CDLL(str(_compile(text, folder, machine)))

    return functools.cache(lambda text, name: HostKernel(load_library(text), name))


def _compile(text: str, folder: Path, machine: str) -> Path:
    number = len(list(folder.glob("*.cpp")))
    source, library = folder / f"kernels{number}.cpp", folder / f"kernels{number}.so"
    options = [COMPILER, *OPTIONS, f"-I{Path(__file__).parent}", f"-I{HEADERS}"]
    source.write_text(f'#include "{machine}"\n{text}')
    expanded = subprocess.run([*options, "-E", source], check=True, capture_output=True, text=True).stdout
    names = re.findall(r'extern "C"\s+void\s+(\w+)\s*\(', expanded)
    source.write_text(source.read_text() + "".join(_ENTRIES.replace("NAME", name) for name in names))
    subprocess.run([*options, "-O1", "-shared", "-fPIC", "-pthread", source, "-o", library], check=True)
    return library


_ENTRIES = """
extern "C" void launch_NAME(unsigned int grid, unsigned int block, void** args) {
    host::launch(NAME, grid, block, args);
}
extern "C" int measure_NAME(int* sizes) { return host::measure(NAME, sizes); }
"""
