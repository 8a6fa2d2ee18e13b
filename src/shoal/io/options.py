# SPDX-License-Identifier: Apache-2.0
"""What a caller of `shoal.read` asked for, in one object that every format gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shoal.errors import ArgumentError, FileFormatError, check_integer


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The keyword arguments of `shoal.read`; None leaves the matter to the file."""

    directed: bool | None = None
    weighted: bool | None = None
    num_vertices: int | None = None
    deduplicate: bool = False
    drop_self_loops: bool = False
    vertex_dtype: Any = None
    edge_dtype: Any = None
    src_column: str | int | None = None
    dst_column: str | int | None = None
    weight_column: str | int | None = None
    mmap: bool = True

    def __post_init__(self) -> None:
        for name in ("directed", "weighted"):
            _check_flag(name, getattr(self, name), (True, False, None))
        for name in ("deduplicate", "drop_self_loops", "mmap"):
            _check_flag(name, getattr(self, name), (True, False))
        if self.num_vertices is not None:
            check_integer("num_vertices", self.num_vertices, 0, 2**63 - 2)
        if self.weighted is False and self.weight_column is not None:
            raise ArgumentError(f"weight_column={self.weight_column!r} is not allowed with weighted=False")

    def refuse_columns(self, format_name: str) -> None:
        """Refuse names of columns for a format that has none."""
        for name in ("src_column", "dst_column", "weight_column"):
            value = getattr(self, name)
            if value is not None:
                raise ArgumentError(
                    f"{name}={value!r} is not allowed; the format {format_name} has no choice of columns"
                )

    def wants_weights(self, path: str, has_weights: bool) -> bool:
        """Say whether to read weights, given whether the file has them."""
        if self.weighted and not has_weights:
            raise FileFormatError(f"{path}: has no weights, and weighted=True asks for them")
        return has_weights and self.weighted is not False

    def check_num_vertices(self, path: str, declared: int) -> None:
        """Refuse a number of vertices other than the one the file declares."""
        if self.num_vertices is not None and self.num_vertices != declared:
            raise ArgumentError(f"num_vertices={self.num_vertices} is not allowed; {path} declares {declared} vertices")


def _check_flag(name: str, value: Any, allowed: tuple[bool | None, ...]) -> None:
    if not any(value is choice for choice in allowed):
        raise ArgumentError(f"{name}={value!r} is not allowed; allowed: {', '.join(map(str, allowed))}")
