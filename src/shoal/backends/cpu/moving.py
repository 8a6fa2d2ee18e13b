# SPDX-License-Identifier: Apache-2.0
"""What runs have still to do, on its way from the devices of one group to those of another, between two supersteps.

A frontier is a list, or, where priorities say what is next, the vertices that wait in buckets.  All of it is taken from
the devices that had it and given to those that own it from now on, as at the begin of a phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.backends.cpu.kernels.ordered import FAR_LOWEST, NONE
from shoal.backends.loops import control as slot

if TYPE_CHECKING:
    from shoal.backends.cpu.phase_run import PhaseRun
    from shoal.strategies.subgraph import Subgraph

#: What all devices of a group agree on when a superstep begins.
AGREED = [slot.SUPERSTEP, slot.SWAPPED, slot.SIZE, slot.NUM_VISITED, slot.NEEDED, slot.DIRECTION, slot.HAS_PULLED,
          slot.HAS_PULLED_LAST, slot.HAS_QUEUE, slot.HAS_BITMAP, slot.CURRENT]  # fmt: skip


def set_agreed(member: PhaseRun, others: Sequence[PhaseRun]) -> None:
    """Tell devices that come back what a member of the group knows."""
    for run in others:
        run.control[AGREED] = member.control[AGREED]


def move_frontier(before: Sequence[PhaseRun], after: Sequence[PhaseRun], parts: Sequence[Subgraph]) -> None:
    """Give the devices that go on, each with its part, what those that have run until now have to do next."""
    flow = before[0].loaded.source.flow
    if flow.ordered is not None:
        _move_waiting(before, after, parts)
        return
    lists = [run.workspace.queue[run.control[slot.BEGIN] : run.control[slot.END]] for run in before]
    vertices = np.concatenate(lists)
    for run, part in zip(after, parts, strict=True):
        _set_queue(run, vertices[part.owner[vertices] == part.device])
    if flow.uses_bitmaps:
        _move_marks(before, after, parts)
    if flow.pulls:
        remaining = np.bitwise_or.reduce([run.workspace.remaining for run in before])
        for run, part in zip(after, parts, strict=True):
            run.workspace.remaining[:] = remaining & part.owned_bits


def _set_queue(run: PhaseRun, vertices: np.ndarray) -> None:
    """Let the queue begin anew, with these vertices."""
    control, count = run.control, len(vertices)
    run.workspace.queue[:count] = vertices
    control[slot.BEGIN], control[slot.END], control[slot.LOCAL_SIZE] = 0, count, count
    control[slot.OUT_BASE] = count if run.loaded.source.flow.is_sliding else run.room


def _move_marks(before: Sequence[PhaseRun], after: Sequence[PhaseRun], parts: Sequence[Subgraph]) -> None:
    """Move the marks of the frontier, which are in one bitmap; the other is for those of the next, and clear."""
    swapped = before[0].control[slot.SWAPPED] & 1
    marks = np.bitwise_or.reduce([_bitmaps(run)[swapped] for run in before])
    for run, part in zip(after, parts, strict=True):
        _bitmaps(run)[swapped][:] = marks & part.owned_bits
        _bitmaps(run)[1 - swapped].fill(0)


def _bitmaps(run: PhaseRun) -> tuple[np.ndarray, np.ndarray]:
    return run.workspace.bitmap_a, run.workspace.bitmap_b


def _move_waiting(before: Sequence[PhaseRun], after: Sequence[PhaseRun], parts: Sequence[Subgraph]) -> None:
    """Let the vertices in all buckets wait in the spill bitmaps, from which they are entered first thing."""
    waiting = np.bitwise_or.reduce([bitmap for run in before for bitmap in _bitmaps(run)])
    for run, part in zip(after, parts, strict=True):
        bits, spill = _bitmaps(run)
        bits.fill(0)
        spill[:] = waiting & part.owned_bits
        run.bins.fill(NONE)
        run.bins[:, FAR_LOWEST] = slot.NEVER
        control = run.control
        control[[slot.BLOCKS_USED, slot.NUM_PUBLISHED, slot.SPILLED]] = 0
        control[slot.LOWEST], control[slot.HAS_SPILLED] = slot.NEVER, 1
        control[slot.LOCAL_SIZE] = np.bitwise_count(spill).sum()
