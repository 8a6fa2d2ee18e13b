# SPDX-License-Identifier: Apache-2.0
"""Tests in this folder run kernels: they are skipped where there is no GPU, CuPy or cuda.core."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the graphs and oracles of the other tests

from gpu_missing import what_is_missing


@pytest.fixture(autouse=True)
def gpu() -> None:
    """Skip a test that needs what is not there."""
    reason = what_is_missing()
    if reason:
        pytest.skip(reason)
