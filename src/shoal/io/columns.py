# SPDX-License-Identifier: Apache-2.0
"""Which columns of a table are source, destination and weight."""

from __future__ import annotations

from typing import NamedTuple

from shoal.errors import ArgumentError, FileFormatError
from shoal.io.options import ReadOptions

#: Names that tables of edges commonly have, without regard to case.
_PAIRS = [("src", "dst"), ("source", "target"), ("from", "to"), ("u", "v"), ("fromnodeid", "tonodeid")]
_WEIGHTS = ("weight", "w")


class EdgeColumns(NamedTuple):
    """Positions of columns; ``weight`` is -1 without one."""

    src: int
    dst: int
    weight: int


def has_pair(names: list[str]) -> bool:
    """Say whether names of columns are ones that tables of edges commonly have."""
    return _find_pair(names) is not None


def _find_pair(names: list[str]) -> tuple[int, int] | None:
    lowered = [name.lower() for name in names]
    for src, dst in _PAIRS:
        if src in lowered and dst in lowered:
            return lowered.index(src), lowered.index(dst)
    return None


def choose_columns(place: str, names: list[str] | None, num_columns: int, options: ReadOptions) -> EdgeColumns:
    """Choose columns by the caller's word, then by common names, then by position.

    ``place`` is the file, or file and line, for error messages; ``names`` is None for a table without a header.
    """
    given = [_given(place, names, num_columns, options, side) for side in ("src_column", "dst_column", "weight_column")]
    pair = _find_pair(names or [])
    is_free = given[0] is None and given[1] is None
    if is_free and pair is None and (num_columns > 3 or num_columns < 2):
        shown = "" if names is None else f" ({', '.join(names)})"
        raise FileFormatError(
            f"{place}: has {num_columns} column{'s' * (num_columns != 1)}{shown}, and edges have 2 or 3: "
            "src, dst and a weight" + ("; choose with src_column and dst_column" if num_columns > 3 else "")
        )
    default = pair or (0, 1)
    src = default[0] if given[0] is None else given[0]
    dst = default[1] if given[1] is None else given[1]
    if src == dst:
        raise ArgumentError(f"src_column={options.src_column!r} and dst_column={options.dst_column!r} are one column")
    weight = given[2]
    if weight is None:
        weight = _named_weight(names or [])
    if weight is None and is_free and num_columns == 3 and (src, dst) == (0, 1):
        weight = 2
    if not options.wants_weights(place, weight is not None) or weight is None:
        weight = -1
    return EdgeColumns(src, dst, weight)


def _given(place: str, names: list[str] | None, num_columns: int, options: ReadOptions, side: str) -> int | None:
    column = getattr(options, side)
    if column is None:
        return None
    if names is not None and column in names:
        return names.index(column)
    if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < num_columns:
        return column
    allowed = ", ".join(names) if names else f"0 to {num_columns - 1}, since there is no header"
    raise ArgumentError(f"{side}={column!r} is not a column of {place}; allowed: {allowed}")


def _named_weight(names: list[str]) -> int | None:
    return next((i for i, name in enumerate(names) if name.lower() in _WEIGHTS), None)
