# SPDX-License-Identifier: Apache-2.0
"""Backends: kinds of devices, each with its compiler, its kernels and its way to run them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.backends.base import Backend


@functools.cache
def find_backend(kind: str) -> Backend:
    """Return the backend for a kind of device; it is imported only now."""
    if kind == "cuda":
        from shoal.backends.cuda.backend import CUDABackend

        return CUDABackend()
    if kind == "mpi":
        from shoal.backends.mpi.backend import MPIBackend

        return MPIBackend()
    assert kind == "cpu", kind  # what `shoal.config.parse_devices` lets through
    from shoal.backends.cpu.backend import CPUBackend

    return CPUBackend()
