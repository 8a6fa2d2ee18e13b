# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none: NumPy in CuPy's place, memory that is counted and can run out, kernels that do nothing."""

from __future__ import annotations

import contextlib
import sys
import types
import weakref

import numpy as np

from cuda_on_host import DeviceArray
from shoal.backends.base import Reason
from shoal.backends.cuda import building, phase_run
from shoal.backends.cuda.device import find_device

ARRAYS = ("trace", "remaining", "row_values", "partials", "queue", "levels", "device_control", "knobs", "ledger")
LISTS = ("bitmaps", "pieces", "piles")


class OutOfMemoryError(MemoryError):
    """As CuPy's."""


class FakeArray(DeviceArray):
    """An array that goes back to the host as CuPy's do."""

    __cuda_array_interface__ = property(lambda self: {})

    def get(self, out=None):
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, values):
        self[...] = values


def array_bytes(run):
    """The bytes of a run's own arrays."""
    arrays = [getattr(run, name) for name in ARRAYS] + [array for name in LISTS for array in getattr(run, name)]
    return sum(array.nbytes for array in arrays if array is not None)


class OnlyDevice(contextlib.nullcontext):
    """As CuPy's device: one can be in it, and the current one has a number."""

    id = 0


class FakeGPU:
    """Counts the arrays that are made; ``held`` is what the pool keeps back until it is told to let go.

    What is free is said to be ``free`` where that is given, whatever is true.
    """

    def __init__(self, total=10**12, held=0, free=None):
        self.total, self.held, self.said = total, held, free
        self.in_use = self.peak = self.num_frees = self.num_questions = 0
        self.limit = 0

    def take(self, array):
        """Return a copy of an array, on the GPU."""
        if self.in_use + self.held + array.nbytes > self.total:
            raise OutOfMemoryError(f"Out of memory allocating {array.nbytes} bytes")
        made = np.array(array).view(FakeArray)
        self.in_use += made.nbytes
        self.peak = max(self.peak, self.in_use)
        weakref.finalize(made, self._give_back, made.nbytes)
        return made

    def _give_back(self, num_bytes):
        self.in_use -= num_bytes

    # CuPy's pool

    def free_all_blocks(self):
        self.num_frees += 1
        self.held = 0

    def free_bytes(self):
        return 0

    def used_bytes(self):
        return self.in_use

    def get_limit(self):
        return self.limit

    # CUDA's runtime

    def memGetInfo(self):  # noqa: N802
        self.num_questions += 1
        return (self.total - self.in_use - self.held if self.said is None else self.said), self.total

    def cupy(self):
        """Return the part of CuPy that a run needs."""
        cupy = types.ModuleType("cupy")
        names = ("arange", "argsort", "asarray", "concatenate", "cumsum", "diff", "empty", "empty_like", "flatnonzero",
                 "packbits", "searchsorted", "unique", "where", "zeros", "zeros_like")  # fmt: skip
        for name in names:
            setattr(cupy, name, self._taking(getattr(np, name)))
        for name in ("int64", "uint8", "uint32", "uint64"):
            setattr(cupy, name, getattr(np, name))
        runtime = types.SimpleNamespace(memGetInfo=self.memGetInfo, getDeviceCount=lambda: 1,
                                        getDeviceProperties=lambda number: {"multiProcessorCount": 132},
                                        CUDARuntimeError=RuntimeError, eventQuery=lambda pointer: 0)  # fmt: skip
        memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
        cupy.cuda = types.SimpleNamespace(runtime=runtime, memory=memory, Device=type("Device", (OnlyDevice,), {}))
        cupy.get_default_memory_pool = lambda: self
        return cupy

    def _taking(self, make):
        return lambda *args, **options: self.take(make(*args, **options))

    def install(self, monkeypatch):
        """Let shoal find this GPU, whose kernels end at once; return a list of what runs will say of their bytes, and
        what their arrays have."""
        runs = []

        def resume(run):
            runs.append((run.nbytes, array_bytes(run)))
            run.reason = Reason.DONE
            run._keep()
            return Reason.DONE

        def reverse(indptr, indices, weights, num_vertices, *, is_ranked):
            arrays = [None if array is None else self.take(array) for array in (indptr, indices, weights)]
            return tuple(None if array is None else self.take(array) for array in arrays)  # as ranges are joined

        monkeypatch.setitem(sys.modules, "cupy", self.cupy())
        monkeypatch.setattr(phase_run, "_load", lambda loaded, device: None)
        monkeypatch.setattr(phase_run.PhaseRun, "resume", resume)
        monkeypatch.setattr(building, "reverse_csr", reverse)
        find_device.cache_clear()
        return runs
