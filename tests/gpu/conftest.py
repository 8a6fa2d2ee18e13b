# SPDX-License-Identifier: Apache-2.0
"""Tests in this folder run kernels: they are skipped where there is no GPU, CuPy or cuda.core."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import numpy as np
import pytest

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30 asks for it
    np.row_stack = np.vstack

sys.path.insert(0, str(Path(__file__).parents[1]))  # the graphs and oracles of the other tests


@functools.cache
def reason_to_skip() -> str | None:
    """Say what is missing to run kernels, None if nothing is."""
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


@pytest.fixture(autouse=True)
def gpu() -> None:
    """Skip a test that needs what is not there."""
    reason = reason_to_skip()
    if reason:
        pytest.skip(reason)
