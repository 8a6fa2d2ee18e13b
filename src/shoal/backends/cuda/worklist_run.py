# SPDX-License-Identifier: Apache-2.0
"""Runs without supersteps on GPU devices: each is a row of blocks that goes round by itself, until nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.backends.loops import control as slot
from shoal.backends.loops.worklist_rows import worklist_row

if TYPE_CHECKING:
    from shoal.backends.cuda.channels import Ends


class WorklistRun(PhaseRun):
    """One phase without supersteps on one device; `border` is its ends of the channels."""

    border: Ends
    jitter = 0  # tests set it to a number, to let devices get ahead of one another
    began = 0  # nanoseconds, by the GPU's clock
    is_noted = False  # one that is done may come back again while others are not
    is_fused = True  # or else the kernel comes back after every round, to compare

    def _prepare(self, frontier: np.ndarray | None, size: int) -> None:
        control, part, graph = self.control, self.border.part, self.shard.graph
        control[slot.NUM_VERTICES], control[slot.NUM_LOCAL] = graph.num_vertices, self.num_local
        control[slot.NUM_OWNED] = self.num_local if part is None else part.num_owned
        control[slot.SIZE] = size
        control[slot.BUDGET] = 1 if self.is_fused else 0
        control[slot.JITTER] = self.jitter
        control[self.source.slot("WINDOW")] = 1
        if part is not None:
            control[slot.DEVICE] = part.device
            control[slot.JITTER] *= 2 * part.device + 1
            frontier = part.find_owned(frontier)
        vertices = np.arange(self.num_local) if frontier is None else frontier
        if self.source.has_priority:
            self._begin_pile(vertices)
        else:
            control[slot.END], control[slot.OUT_BASE] = len(vertices), self.num_local
            self.queue[: len(vertices)] = self.cupy.asarray(vertices.astype(self.queue.dtype))
            self.bitmaps[0][:] = self._bits_of(vertices)

    def end(self) -> Reason:
        """Note all that the device did as one row, and return why the kernel came back."""
        with self.shard.device.use():
            self.control = control = self.device_control.get()
        self.reason = Reason(int(control[slot.REASON]))
        self.began = self.began or int(control[slot.STARTED])
        if self.reason == Reason.DONE and not self.is_noted:
            self.is_noted = True
            self.rows.append(worklist_row(control, self.began, int(control[self.source.slot("FINISHED")])))
        return self.reason

    def grow(self) -> None:
        """Do nothing: there is room for all that can come."""
