# SPDX-License-Identifier: Apache-2.0
"""Text with one vertex a line: read it block after block into a CSR, and write a CSR as such lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal.backends.cpu.kernels import text_adjacency as kernels
from shoal.backends.cpu.threads import run_threads
from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.edge_batches import BATCH_EDGES
from shoal.io.fields import show
from shoal.io.growing import GrowingArray
from shoal.io.text_source import Block, TextSource
from shoal.io.text_target import format_weights, join_words
from shoal.io.tokens import read_weights


def read_adjacency(source: TextSource, header: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Read the lines of ``header.num_vertices`` vertices; return indptr, indices and weights."""
    reader = _Reader(source, header)
    for block in source.blocks():
        reader.add(block)
    return reader.finish()


class _Reader:
    """Appends the lines of block after block."""

    def __init__(self, source: TextSource, header: Any) -> None:
        self.source = source
        self.header = header
        self.layout = kernels.LineLayout(ord("%"), header.num_skipped, int(header.has_weights), header.num_vertices)
        self.lengths = GrowingArray(np.int64)
        self.neighbours = GrowingArray(np.int32 if header.num_vertices < 2**31 else np.int64)
        self.weights = GrowingArray(np.int32)
        self.num_vertices = 0

    def add(self, block: Block) -> None:
        """Parse a block and append its vertices."""
        size = block.text.size // 2 + 1
        lengths = np.empty(int(block.num_lines.sum()), np.int64)
        neighbours = np.empty(size, self.neighbours.dtype)
        weights = np.empty(size if self.layout.has_weights else 0)
        bounds = np.empty((weights.size, 2), np.int64)
        report = np.zeros((self.source.num_threads, 8), np.int64)
        first_lines = np.cumsum(block.num_lines) - block.num_lines
        arguments = (block.text, block.cuts, first_lines, self.layout, lengths, neighbours, weights, bounds, report)
        run_threads(kernels.parse_adjacency, self.source.num_threads, *arguments)
        self._check(block, report)
        self._append_lengths(block, lengths)
        for start, notes in zip((block.cuts[:-1] // 2).tolist(), report, strict=True):
            part = slice(start, start + int(notes[kernels.NUM_NEIGHBOURS]))
            self.neighbours.append(neighbours[part])
            if self.layout.has_weights:
                self._append_weights(block, weights[part], bounds[part], notes)

    def _check(self, block: Block, report: np.ndarray) -> None:
        """Raise the error of the first bad line."""
        bad = np.flatnonzero(report[:, kernels.STATUS])
        if bad.size:
            status, position = (int(value) for value in report[bad[0], : kernels.POSITION + 1])
            rest = bytes(block.text[position : position + 100]).split(b"\n", 1)[0].split()
            raise self.source.line_error(block, position, self._explain(status, rest[0] if rest else b""))

    def _explain(self, status: int, token: bytes) -> str:
        if status == kernels.OUT_OF_RANGE:
            return f"vertex id {token.decode('utf-8', 'replace')} is out of range; allowed: 1 to {self.layout.last_id}"
        if status == kernels.NO_WEIGHT:
            return "the last neighbour has no weight"
        if status == kernels.BAD_WEIGHT:
            return f"{show(token)} is not a weight"
        if status == kernels.BAD_SKIPPED:
            reason = "is not the weight or size of a vertex" if token else "ends before the vertex's own weights"
            return f"{show(token)} {reason}" if token else f"the line {reason}"
        return f"{show(token)} is not a vertex id"

    def _append_lengths(self, block: Block, lengths: np.ndarray) -> None:
        """Keep the lengths of lines that are vertices; only empty lines may stand after the last vertex."""
        lines = np.flatnonzero(lengths != kernels.COMMENT)
        num_wanted = self.header.num_vertices - self.num_vertices
        surplus = lines[num_wanted:]
        surplus = surplus[lengths[surplus] > 0]
        if surplus.size:
            reason = f"a line too many for the {self.header.num_vertices} vertices declared in line {self.header.line}"
            raise FileFormatError(f"{self.source.path}, line {block.first_line + int(surplus[0])}: {reason}")
        lines = lines[:num_wanted]
        empty = lines[lengths[lines] == kernels.EMPTY]
        if empty.size and self.layout.num_skipped:
            reason = f"is empty, and {self.layout.num_skipped} numbers of the vertex must stand there"
            raise FileFormatError(f"{self.source.path}, line {block.first_line + int(empty[0])}: {reason}")
        self.lengths.append(np.maximum(lengths[lines], 0))
        self.num_vertices += lines.size

    def _append_weights(self, block: Block, weights: np.ndarray, bounds: np.ndarray, notes: np.ndarray) -> None:
        def fail(position: int, reason: str) -> Exception:
            return self.source.line_error(block, position, reason)

        if notes[kernels.NUM_UNREAD]:
            unread = np.flatnonzero(np.isnan(weights))
            weights[unread] = read_weights(block.text, bounds[unread], fail)
        self.weights.append_numbers(weights, has_decimals=bool(notes[kernels.NUM_DECIMAL]))

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if self.num_vertices < self.header.num_vertices:
            raise FileFormatError(
                f"{self.source.path}: ends after {self.num_vertices} of the {self.header.num_vertices} vertices "
                f"declared in line {self.header.line}"
            )
        indptr = np.concatenate(([0], np.cumsum(self.lengths.finish())))
        return indptr, self.neighbours.finish(), self.weights.finish() if self.layout.has_weights else None


def adjacency_lines(graph: Graph) -> Iterator[Any]:
    """Yield Arrow arrays of lines, for a batch of vertices each: neighbours from 1, each with its weight behind it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = np.arange(0, graph.num_edges, BATCH_EDGES)
    rows = np.unique(np.append(np.searchsorted(graph.indptr, wanted, side="right") - 1, [0, graph.num_vertices]))
    for first, last in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        start, end = int(graph.indptr[first]), int(graph.indptr[last])
        words = pa.array(graph.indices[start:end] + 1).cast(pa.large_string())
        if graph.weights is not None:
            weights = format_weights(graph.weights[start:end]).cast(pa.large_string())
            words = pc.binary_join_element_wise(words, weights, pa.scalar(" ", pa.large_string()))
        yield join_words(words, graph.indptr[first : last + 1].astype(np.int64) - start, " ")
