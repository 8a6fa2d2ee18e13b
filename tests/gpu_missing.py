# SPDX-License-Identifier: Apache-2.0
"""What is missing on this machine to run kernels on a GPU."""

from __future__ import annotations

import functools

import numpy as np

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30 asks for it
    np.row_stack = np.vstack


@functools.cache
def what_is_missing() -> str | None:
    """Say in one line what is missing to run kernels, None if nothing is."""
    try:
        import cuda.core  # noqa: F401
        import cupy
    except ImportError as error:
        return f"kernels need CuPy and cuda.core: {error}"
    try:
        num_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"kernels need a GPU: {error}"
    return None if num_devices else "kernels need a GPU: there is none"
