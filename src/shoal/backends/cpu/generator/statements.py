# SPDX-License-Identifier: Apache-2.0
"""Statements that many parts of a loop have in common."""

from __future__ import annotations


def join(serial: list[str]) -> list[str]:
    """Return the statements of one synchronisation: all threads wait while the last to come does ``serial``."""
    if not serial:
        return ["barrier(control, num_threads)"]
    return [
        "generation = load(control, GENERATION)",
        "if arrive(control, num_threads):",
        *(f"    {line}" for line in serial),
        "    release(control)",
        "else:",
        "    await_release(control, generation)",
    ]
