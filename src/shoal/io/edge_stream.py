# SPDX-License-Identifier: Apache-2.0
"""The edges of a file a batch at a time, so that a file of any size takes the memory of one batch.

A format that can do so has a function ``stream(path, options)``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shoal.errors import ArgumentError, FileFormatError
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.files import check_readable, compression_of
from shoal.io.formats import FORMATS, format_to_read
from shoal.io.options import ReadOptions

#: Rows of a batch, where the file leaves the choice: small beside any graph, large beside the start of a kernel.
BATCH_ROWS = 2**20


@dataclass(frozen=True)
class EdgeStream:
    """What a file says about its edges, and these.

    Parameters
    ----------
    num_vertices : what the file or the caller declares; None: the distinct ids are to be numbered
    is_quick : whether reading the rows again costs no more than reading a copy of them
    batches : begins to read, with no rows, so that even a file without edges tells whether they would have weights;
        an undirected edge comes once
    parts : the same for a rank, of some: about as many rows each; None where that takes as long as to read all
    """

    path: str
    is_directed: bool
    num_vertices: int | None
    is_quick: bool
    batches: Callable[[], Iterator[EdgeRows]]
    parts: Callable[[int, int], Iterator[EdgeRows]] | None = None

    def share(self, rank: int, size: int) -> Iterator[EdgeRows]:
        """Read a rank's part, of ``size``."""
        if self.parts is not None:
            return self.parts(rank, size)
        assert size == 1
        return self.batches()


def open_stream(path: str, options: ReadOptions, format: str | None = None) -> EdgeStream:
    """Look at the beginning of a file of edges."""
    check_readable(path)
    name = format_to_read(path, format)
    module = FORMATS[name].load()
    if not hasattr(module, "stream"):
        able = ", ".join(other for other, known in FORMATS.items() if hasattr(known.load(), "stream"))
        raise ArgumentError(f"{path}: is of the format {name}, which cannot be read batch by batch; allowed: {able}")
    if not FORMATS[name].is_text and compression_of(path) is not None:
        raise FileFormatError(f"{path}: is compressed, and {name} files must not be")
    return module.stream(os.fspath(path), options)
