# SPDX-License-Identifier: Apache-2.0
"""Kernels whose blocks and warps wait for one another, compiled for the CPU with ``cuda_grid_on_host.hpp``."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

from cuda_on_host import COMPILER, OPTIONS
from shoal.backends.cuda.compiler import HEADERS

BLOCK_WARPS = 2
#: What stands for the machine's own words.
ASSEMBLY = {
    "mov.u64": "now = 0;",
    "ld.acquire": "value = host::load_acquire(address);",
    "atom.acq_rel": "before = __atomic_fetch_add(address, 1, __ATOMIC_ACQ_REL);",
    "st.release": "__atomic_store_n(address, value, __ATOMIC_RELEASE);",
    "cp.async": "",
}


def build_grid(folder, source, text):
    """Return the library of a text that includes headers of kernels, with the constants of a phase's source."""
    for path in HEADERS.glob("*.cuh"):
        (folder / path.name).write_text(_without_assembly(path.read_text()))
    constants, count = re.subn(
        r"BLOCK_WARPS = \d+", f"BLOCK_WARPS = {BLOCK_WARPS}", source.text.partition("#include")[0]
    )
    assert count == 1
    written, found = folder / "grid.cpp", folder / "grid.so"
    written.write_text("\n".join(['#include "cuda_grid_on_host.hpp"', constants, text]))
    options = ["-O1", "-shared", "-fPIC", "-pthread", f"-I{folder}", f"-I{Path(__file__).parent}"]
    subprocess.run([COMPILER, *OPTIONS, *options, written, "-o", found], check=True)
    return ctypes.CDLL(str(found))


def _without_assembly(text):
    return re.sub(r'asm volatile\("([a-z]+\.\w+).*?\);', lambda match: ASSEMBLY[match[1]], text, flags=re.DOTALL)


def as_argument(value):
    """Return an array's address, or a whole number, as a function of the library takes it."""
    is_array = isinstance(value, np.ndarray)
    return ctypes.c_void_p(value.ctypes.data) if is_array else ctypes.c_longlong(int(value))
