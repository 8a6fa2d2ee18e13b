# SPDX-License-Identifier: Apache-2.0
"""What is to be done with the edges of files: how they are read, and how they are divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.errors import ArgumentError, check_choice
from shoal.io.options import ReadOptions

#: Partitions that ask for nothing but the degrees of the vertices.
STREAMED = ("segment", "random")


@dataclass(frozen=True)
class Request:
    """How edges are read, and who gets them."""

    num_devices: int
    partition: Any
    seed: int
    duplication: str
    in_edges: bool
    reading: ReadOptions

    def __post_init__(self) -> None:
        if isinstance(self.partition, str):
            check_choice("partition", self.partition, STREAMED)
        elif callable(self.partition):
            raise ArgumentError("partition is a function, which would need the graph; "
                                f"allowed: {', '.join(STREAMED)}, or an array")  # fmt: skip
