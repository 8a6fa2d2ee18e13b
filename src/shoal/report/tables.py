# SPDX-License-Identifier: Apache-2.0
"""What a run's page and a terminal say in words and numbers: totals, strategies with reasons, where it ran."""

from __future__ import annotations

from typing import Any

from shoal.config import AXES
from shoal.machine import format_bytes
from shoal.report.figures import format_seconds
from shoal.report.trace import RunTrace

#: Rows of the table of phases; many sources make many phases that are all alike.
MAX_PHASES = 20


def totals_of(trace: RunTrace) -> dict[str, str]:
    """Return the run's totals in words, by name."""
    stats, seconds = trace.stats, trace.stats["seconds"]
    device_seconds = trace.column("seconds").sum()
    totals = {
        "time": format_seconds(seconds),
        "devices": str(stats["num_devices"]),
        "threads in all": str(stats["num_threads"]),
        "supersteps": "none" if trace.is_asynchronous else f"{stats['num_supersteps']:,}",
        "edges visited": f"{stats['edges_visited']:,}",
        "edges a second": f"{_compact(stats['edges_visited'] / seconds)}" if seconds > 0 else "-",
    }
    if trace.num_devices > 1:
        totals["sent"] = f"{format_bytes(stats['bytes_sent'])} in {stats['messages']:,} messages"
        totals["idle in supersteps"] = f"{stats['idle_seconds'] / device_seconds:.1%}" if device_seconds > 0 else "-"
    return totals | {"peak memory": format_bytes(stats["peak_memory_bytes"])}


def _compact(count: float) -> str:
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {name}"
    return f"{count:.3g}"


def strategies_of(trace: RunTrace) -> list[tuple[str, str, str]]:
    """Return of every axis its name, what the run took, and why."""
    config, reasons = trace.stats["config"], trace.stats.get("reasons", {})
    rows = [("devices", str(config["devices"]), reasons.get("devices", "as asked"))]
    for axis in AXES:
        taken = str(config.get(axis, "auto"))
        if axis in reasons:
            rows.append((axis, taken, f"auto: {reasons[axis]}"))
        elif taken != "auto" and axis not in ("stats", "output"):
            rows.append((axis, taken, _why(axis, trace)))
    if "edges" in reasons:
        rows.append(("edges", str(config["edges"]), reasons["edges"]))
    return rows


def _why(axis: str, trace: RunTrace) -> str:
    return "does not matter on one device" if axis == "partition" and trace.num_devices == 1 else "as asked"


def environment_of(trace: RunTrace) -> dict[str, str]:
    """Return where and when the run was, by name."""
    environment = trace.environment
    return {
        "processor": f"{environment['cpu']}, {environment['cores_available']} cores available",
        **{f"GPU {gpu['number']}": f"{gpu['name']}, {format_bytes(gpu['memory_bytes'])}"
           for gpu in environment.get("gpus", ())},
        "memory": format_bytes(environment["memory_bytes"]),
        "system": environment["system"],
        "Python": environment["python"],
        "packages": ", ".join(f"{name} {version}" for name, version in environment["versions"].items()),
        "when": trace.created,
    }  # fmt: skip


def phases_of(trace: RunTrace) -> tuple[list[tuple[str, str, str]], int]:
    """Return program, step and supersteps of the first phases, and how many more there are."""
    phases: list[dict[str, Any]] = trace.stats.get("phases", [])
    rows = [(p["program"], p["step"], f"{p['num_supersteps']:,}") for p in phases[:MAX_PHASES]]
    return rows, max(len(phases) - MAX_PHASES, 0)
