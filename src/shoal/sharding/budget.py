# SPDX-License-Identifier: Apache-2.0
"""Budget: how much memory a process may take, what of it is gone, and so how many edges may be in memory at once."""

from __future__ import annotations

import os
from dataclasses import dataclass

from shoal.errors import OutOfMemoryError
from shoal.machine import anonymous_memory_bytes, format_bytes

#: What reading takes beside what is counted: a batch, and what Arrow and the kernels keep.  Measured with batches of
#: 2**20 rows of Parquet: 150 MB.
BESIDE_BYTES = 192 * 2**20
#: What a process has at most when it has loaded shoal.  One that has more has it for something else.
NEW_PROCESS_BYTES = 256 * 2**20
#: Fewer edges in memory at once would make more files than a process may have open, and a graph of any size slow.
_LEAST_EDGES = 2**16
#: Allocators keep some of what is given back, and a sort has counters and buffers of its own.
_SLACK = 1.2


@dataclass
class Budget:
    """Bytes that a process may take, in all; ``taken`` by arrays that stay, as they come and go."""

    total: int
    begin: int
    taken: int = 0

    @classmethod
    def of(cls, total: int) -> Budget:
        """Return the budget of this process from now on."""
        return cls(total, min(anonymous_memory_bytes(), NEW_PROCESS_BYTES) + BESIDE_BYTES)

    @property
    def left(self) -> int:
        """Bytes for what does not stay."""
        return self.total - self.begin - self.taken

    def check(self, num_bytes: int, what: str) -> None:
        """Refuse what does not fit, before it is allocated."""
        if num_bytes > self.left:
            needed = self.total - self.left + num_bytes
            raise OutOfMemoryError(
                f"{what} takes {format_bytes(num_bytes)} of memory: memory={format_bytes(self.total)} is not enough, "
                f"about {format_bytes(needed)} is needed"
            )

    def take(self, num_bytes: int, what: str) -> None:
        """Count what stays."""
        self.check(num_bytes, what)
        self.taken += num_bytes

    def edges(self, bytes_per_edge: int, beside: int = 0) -> int:
        """Return how many edges may be in memory at once, ``beside`` so many bytes."""
        count = int((self.left - beside) / (_SLACK * bytes_per_edge))
        if count < _LEAST_EDGES:
            self.check(beside + int(_LEAST_EDGES * _SLACK * bytes_per_edge), "a piece of the graph to be sorted")
        return max(count, _LEAST_EDGES)


def open_files_limit() -> int:
    """Return how many files more a process may have open; half of what the system says, for all others."""
    try:
        return max(16, os.sysconf("SC_OPEN_MAX") // 2)
    except (OSError, ValueError):
        return 128
