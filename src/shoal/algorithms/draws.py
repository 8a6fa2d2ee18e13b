# SPDX-License-Identifier: Apache-2.0
"""Random numbers of rules: a function of a vertex and a superstep, on every device and thread the same."""

from __future__ import annotations

import numpy as np

from shoal.rules import rule

# SplitMix64 (Steele, Lea and Flood 2014): increments and multipliers, for a bijection of 64 bits.
_BY_VERTEX, _BY_SUPERSTEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


@rule
def draw(one, superstep):
    """Return a number of 64 bits with its sign; those of two vertices in one superstep differ."""
    word = np.uint64(one) * _BY_VERTEX + np.uint64(superstep + 1) * _BY_SUPERSTEP
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return np.int64(word ^ (word >> _31))
