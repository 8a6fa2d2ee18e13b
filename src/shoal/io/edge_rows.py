# SPDX-License-Identifier: Apache-2.0
"""Read text with one edge a line into arrays, block after block, on all cores.

Ids are int32 until one does not fit.  Weights are int32 until one has a point or does not fit, then float64.
Numbers that need more than one exact operation to be read (17 digits, "inf") and labels go through pyarrow.
The parser is shoal's own because, for 15.7 million edges on two cores, pyarrow's CSV reader takes 2.5 times as long
(and knows no runs of blanks), SciPy's Matrix Market reader 5 times as long and 3 times the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.backends.cpu.kernels import text_rows
from shoal.backends.cpu.kernels.text_rows import Layout
from shoal.backends.cpu.threads import run_threads
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.fields import explain
from shoal.io.growing import GrowingArray
from shoal.io.text_source import Block, TextSource
from shoal.io.tokens import read_labels, read_weights

LARGEST_INT32 = 2**31 - 1
LARGEST_ID = 10**18 - 1  # of the digits that always fit 64 bits


class NotNumbersError(Exception):
    """An id is not a whole number, in a file that may have labels."""


def read_edge_rows(
    source: TextSource, layout: Layout, *, may_have_labels: bool = False, has_real_weights: bool = False
) -> EdgeRows:
    """Read the rest of a source.

    With ``may_have_labels``, an id that is no number raises `NotNumbersError` instead of an error for the user.  With
    ``has_real_weights``, weights are float64 even if all are whole.
    """
    reader = _Reader(source, layout, may_have_labels, np.float64 if has_real_weights else np.int32)
    for block in source.blocks():
        reader.add(block)
    return reader.finish()


def stream_edge_rows(source: TextSource, layout: Layout) -> Iterator[EdgeRows]:
    """Yield the rows of the rest of a source, a block at a time; types are as narrow as those of a block fit."""
    yield _Reader(source, layout, False, np.int32).finish()  # none yet, but it tells whether there are weights
    for block in source.blocks():
        reader = _Reader(source, layout, False, np.int32, expects_more=False)
        reader.add(block)
        yield reader.finish()


class _Reader:
    """Appends the rows of block after block."""

    def __init__(
        self, source: TextSource, layout: Layout, may_have_labels: bool, weight_dtype: Any, expects_more: bool = True
    ) -> None:
        self.source, self.expects_more = source, expects_more
        self.may_have_labels = may_have_labels
        self.last_id = layout.last_id
        self.layout = layout._replace(last_id=min(layout.last_id, LARGEST_INT32))
        self.src, self.dst = GrowingArray(np.int32), GrowingArray(np.int32)
        self.weights = GrowingArray(weight_dtype)
        self.labels: tuple[list[Any], list[Any]] = ([], [])
        self.largest_id = -1
        self.num_rows = 0

    def finish(self) -> EdgeRows:
        has_weights = self.layout.weight_column >= 0
        return EdgeRows(
            self.src.finish(),
            self.dst.finish(),
            self.weights.finish() if has_weights else None,
            self.largest_id,
            *self.labels,
            num_rows=self.num_rows,
        )

    def add(self, block: Block) -> None:
        """Parse a block, twice if its ids turn out too large for int32, and append its rows."""
        size = int(block.num_lines.sum())
        room = [
            ids.reserve(0 if self.layout.is_text else size, self._guess_rows(block)) for ids in (self.src, self.dst)
        ]
        weights = np.empty(size if self.layout.weight_column >= 0 else 0)
        bounds = np.empty((3, size if self.layout.is_text or weights.size else 0, 2), np.int64)
        report = np.zeros((self.source.num_threads, 8), np.int64)
        first_rows = np.cumsum(block.num_lines) - block.num_lines
        arguments = (block.text, block.cuts, first_rows, self.layout, *room, weights, bounds, report)
        run_threads(text_rows.parse_rows, self.source.num_threads, *arguments)
        if self._has_widened(block, report):
            self.add(block)
            return
        num_rows = report[:, text_rows.NUM_ROWS]
        for array in (*room, weights, *bounds):
            _close_gaps(array, first_rows, num_rows)
        self._append(block, report, weights[: num_rows.sum()], bounds[:, : num_rows.sum()])

    def _guess_rows(self, block: Block) -> int:
        """Guess the rows of the whole file; with a margin, since a copy costs more than pages nobody touches."""
        if self.source.size is None or not self.expects_more:
            return 0
        return int(1.05 * block.num_lines.sum() / block.text.size * self.source.size)

    def _has_widened(self, block: Block, report: np.ndarray) -> bool:
        """Raise the error of the first bad line, unless wider ids are all that is needed: then widen them."""
        bad = np.flatnonzero(report[:, text_rows.STATUS])
        if not bad.size:
            return False
        status, position = (int(value) for value in report[bad[0], : text_rows.POSITION + 1])
        if status == text_rows.OUT_OF_RANGE and self.layout.last_id < self.last_id:
            self.layout = self.layout._replace(last_id=self.last_id)
            for ids in (self.src, self.dst):
                ids.widen(np.int64)
            return True
        if status == text_rows.BAD_ID and self.may_have_labels:
            raise NotNumbersError
        line = bytes(block.text[position:]).split(b"\n", 1)[0].strip()
        raise self.source.line_error(block, position, explain(status, line, self.layout))

    def _append(self, block: Block, report: np.ndarray, weights: np.ndarray, bounds: np.ndarray) -> None:
        def fail(position: int, reason: str) -> Exception:
            return self.source.line_error(block, position, reason)

        num_rows = int(report[:, text_rows.NUM_ROWS].sum())
        if report[:, text_rows.NUM_UNREAD].any():
            unread = np.flatnonzero(np.isnan(weights))
            weights[unread] = read_weights(block.text, bounds[2, unread], fail)
        if self.layout.is_text:
            for labels, side in zip(self.labels, bounds, strict=False):
                labels.append(read_labels(block.text, side, fail))
        else:
            self.src.commit(num_rows)
            self.dst.commit(num_rows)
        has_decimals = bool(report[:, text_rows.NUM_DECIMAL].any())
        self.weights.append_numbers(weights, has_decimals, self._guess_rows(block))
        self.largest_id = max(self.largest_id, int(report[:, text_rows.LARGEST_ID].max()))
        self.num_rows += num_rows


def _close_gaps(array: np.ndarray, first_rows: np.ndarray, num_rows: np.ndarray) -> None:
    """Move the rows of every thread to right after those of the thread before it."""
    end = 0
    for start, count in zip(first_rows.tolist(), num_rows.tolist(), strict=True):
        if start != end and array.size:
            array[end : end + count] = array[start : start + count]
        end += count
