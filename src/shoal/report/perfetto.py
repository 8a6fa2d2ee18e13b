# SPDX-License-Identifier: Apache-2.0
"""A run in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open: all supersteps, one by one.

A device is a thread of one process; what it spent time on are slices, and the size of the frontier and the bytes sent
are counters.  Times are microseconds since the first superstep began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from shoal.io.files import replacing
from shoal.report.kinds import measured_kinds, seconds_of
from shoal.report.trace import RunTrace

_PROCESS = 1
_SAID = ("frontier_size", "edges_visited", "messages", "items_sent", "bytes_sent", "items_combined", "stolen_edges")


def write_perfetto(trace: RunTrace, path: str) -> None:
    """Write a file, whole or not at all."""
    value = {
        "traceEvents": list(_events(trace)),
        "displayTimeUnit": "ns",
        "otherData": {"title": trace.title, "created": trace.created, "cpu": trace.environment["cpu"]},
    }
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file, separators=(",", ":"))


def _events(trace: RunTrace) -> Iterator[dict[str, Any]]:
    yield _named("process_name", 0, f"shoal: {trace.title}")
    for device in range(trace.num_devices):
        yield _named("thread_name", device, f"device {device}")
        yield {"ph": "M", "pid": _PROCESS, "tid": device, "name": "thread_sort_index", "args": {"sort_index": device}}
    yield from _slices(trace)
    yield from _counters(trace)


def _named(what: str, device: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": _PROCESS, "tid": device, "name": what, "args": {"name": name}}


def _slices(trace: RunTrace) -> Iterator[dict[str, Any]]:
    kinds = [(kind, seconds_of(trace, kind)) for kind in measured_kinds(trace)]
    counts = {key: trace.column(key).astype(int).tolist() for key in _SAID}
    for number, direction in enumerate(trace.directions):
        for device in range(trace.num_devices):
            begin = float(trace.begin[number, device])
            said = {"superstep": number, "direction": direction}
            said |= {key: values[number][device] for key, values in counts.items()}
            for kind, seconds in kinds:
                length = float(seconds[number, device])
                if length > 0:
                    yield {
                        "ph": "X", "pid": _PROCESS, "tid": device, "name": kind.name, "cat": kind.name,
                        "ts": round(begin * 1e6, 3), "dur": round(length * 1e6, 3), "args": said,
                    }  # fmt: skip
                begin += length


def _counters(trace: RunTrace) -> Iterator[dict[str, Any]]:
    """Yield what all devices together have at the begin of each superstep."""
    if trace.is_asynchronous:
        return
    begins = trace.begin.min(axis=1, initial=float("inf"))
    for name, key in (("frontier", "frontier_size"), ("bytes sent", "bytes_sent")):
        for begin, value in zip(begins.tolist(), trace.column(key).sum(axis=1).tolist(), strict=True):
            yield {"ph": "C", "pid": _PROCESS, "name": name, "ts": round(begin * 1e6, 3), "args": {name: value}}
