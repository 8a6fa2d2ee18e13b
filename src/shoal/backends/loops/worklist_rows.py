# SPDX-License-Identifier: Apache-2.0
"""What a device without supersteps leaves in the trace: one row about all that it did."""

from __future__ import annotations

import numpy as np

from shoal.backends.loops import control as slot

_COLUMNS = {
    slot.TRACE_FRONTIER: slot.WORK_ITEMS, slot.TRACE_EDGES: slot.EDGES, slot.TRACE_MESSAGES: slot.MESSAGES,
    slot.TRACE_ITEMS_SENT: slot.ITEMS_SENT, slot.TRACE_BYTES_SENT: slot.BYTES_SENT,
    slot.TRACE_COMBINED: slot.COMBINED, slot.TRACE_IDLE: slot.IDLE,
}  # fmt: skip


def worklist_row(control: np.ndarray, began: int, ended: int) -> np.ndarray:
    """Return the row of a run that began and ended at these times, in nanoseconds; its counters begin anew."""
    row = np.zeros((1, slot.NUM_TRACE_COLUMNS), np.int64)
    row[0, slot.TRACE_BEGIN], row[0, slot.TRACE_END] = began, ended
    row[0, slot.TRACE_DIRECTION] = slot.NO_SUPERSTEPS
    for column, number in _COLUMNS.items():
        row[0, column] = control[number]
        control[number] = 0  # the next row is about what follows
    control[slot.ITEMS_RECEIVED] = 0  # everywhere as many as were sent
    return row
