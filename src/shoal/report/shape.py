# SPDX-License-Identifier: Apache-2.0
"""What a trace must have so that all that is shown of a run can be shown: one table of checks by key.

Keys that are not in the table may be anything.  Numbers have a limit, so that sums of them stay finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Check = Callable[[Any], Iterator[str]]

#: Some 30,000 years in seconds, and the whole numbers that are exact as float64.
_MOST_SECONDS, _MOST = 1e12, 2**53
_MOST_DEVICES = 2**16
#: Of each superstep a list with an entry for each device; a trace without the last ones shows zeros.
_TIMED = ("begin_seconds", "seconds", "idle_seconds")
_COUNTED = ("frontier_size", "edges_visited", "bytes_sent")
_ALSO_TIMED = ("pack_seconds", "combine_seconds", "steal_seconds")
_ALSO_COUNTED = ("messages", "items_sent", "items_combined", "stolen_edges")


def what_is_wrong(trace: dict[str, Any]) -> list[str]:
    """Return the places of a trace where something is missing or is not what it must be."""
    stats = trace.get("stats")
    count = stats.get("num_devices") if isinstance(stats, dict) else None
    if not isinstance(count, int) or not _is_number(count, _MOST_DEVICES, 1):
        return ["stats.num_devices"]
    rows = stats.get("supersteps") if isinstance(stats, dict) else None
    return list(_parts(count, len(rows) if isinstance(rows, list) else 0)(trace))


def _parts(num_devices: int, num_rows: int) -> Check:
    """Return the check of a trace of so many devices and supersteps."""
    of_each = {name: _list(_seconds, num_devices) for name in _TIMED}
    of_each |= {name: _list(_count, num_devices) for name in _COUNTED} | {"direction": _list(_word, num_devices)}
    may_be = {name: _list(_seconds, num_devices) for name in _ALSO_TIMED}
    may_be |= {name: _list(_count, num_devices) for name in _ALSO_COUNTED}
    counts = ("num_supersteps", "num_threads", "work_items", "peak_memory_bytes", "edges_visited", "bytes_sent")
    stats: dict[str, Check] = dict.fromkeys((*counts, *_ALSO_COUNTED), _count) | dict.fromkeys(
        ("seconds", "idle_seconds"), _seconds
    )
    stats |= {
        "config": _object({"devices": _word}, {"memory_limit": _limit}),
        "peak_memory_bytes_by_device": _list(_count, num_devices),
        "supersteps": _list(_object(of_each, may_be)),
    }
    phase = _object({"program": _word, "step": _word, "num_supersteps": _count})
    pairs = _list(_list(_count, num_devices), num_devices)
    others = {"reasons": _words, "phases": _list(phase), "bytes_by_pair": pairs, "group_sizes": _list(_count, num_rows),
              "regroupings": _list(_object({"seconds": _seconds}))}  # fmt: skip
    return _object({
        "call": _word,
        "created": _word,
        "graph": _object({"num_vertices": _count, "num_edges": _count, "is_directed": _flag, "is_weighted": _flag,
                          "bytes": _count}),
        "environment": _object(
            {"cpu": _word, "cores_available": _count, "memory_bytes": _count, "system": _word, "python": _word,
             "versions": _words},
            {"gpus": _list(_object({"number": _count, "name": _word, "memory_bytes": _count}))},
        ),
        "stats": _object(stats, others),
    })  # fmt: skip


def _is_number(value: Any, most: float, least: float = 0) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def _seconds(value: Any) -> Iterator[str]:
    if not _is_number(value, _MOST_SECONDS, -_MOST_SECONDS):  # clocks of devices may differ
        yield ""


def _count(value: Any) -> Iterator[str]:
    if not _is_number(value, _MOST):
        yield ""


def _word(value: Any) -> Iterator[str]:
    if not isinstance(value, str):
        yield ""


def _flag(value: Any) -> Iterator[str]:
    if not isinstance(value, bool):
        yield ""


def _limit(value: Any) -> Iterator[str]:
    """Check a limit of memory, which is written as the user gave it."""
    from shoal.config import parse_bytes
    from shoal.errors import ArgumentError

    try:
        parse_bytes("memory_limit", value)
    except ArgumentError:
        yield ""


def _words(value: Any) -> Iterator[str]:
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value.values()):
        yield ""


def _list(check: Check, size: int | None = None) -> Check:
    """Return the check of a list, of so many entries if that is given."""

    def check_all(value: Any) -> Iterator[str]:
        if not isinstance(value, list) or size not in (None, len(value)):
            yield ""
            return
        for number, item in enumerate(value):
            yield from (f"[{number}]{place}" for place in check(item))

    return check_all


def _object(needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    """Return the check of an object that has some keys, and may have others."""

    def check_keys(value: Any) -> Iterator[str]:
        if not isinstance(value, dict):
            yield ""
            return
        yield from (f".{name}" for name in needed if name not in value)
        for name, check in (needed | (optional or {})).items():
            if name in value:
                yield from (f".{name}{place}" for place in check(value[name]))

    return check_keys
