# SPDX-License-Identifier: Apache-2.0
"""RunConfig: every strategy of a run, its default and the names it may have.

This is the only home of defaults and of name tables; the command line, the tests and the error messages read them here.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields
from typing import Any

from shoal.errors import ArgumentError, check_choice, check_number

#: Allowed names per axis; every axis but ``stats`` also means it when it says ``auto``.
AXES: dict[str, tuple[str, ...]] = {
    "execution": ("auto", "bsp"),
    "direction": ("auto", "push", "pull"),
    "stats": ("full", "totals"),
}

#: What ``auto`` becomes where the program does not decide it superstep by superstep.
RESOLVED = {"devices": "cpu", "execution": "bsp"}


@dataclass(frozen=True)
class DeviceSpec:
    """What a ``devices`` string asks for."""

    kind: str
    num_devices: int
    threads_per_device: int | None


@dataclass(frozen=True)
class RunConfig:
    """The strategies of one run.

    Parameters
    ----------
    devices : ``"auto"``, ``"cpu"`` (one device, all cores) or ``"cpu:1xT"`` (one device, T threads)
    execution : ``"bsp"``, supersteps separated by barriers
    direction : of programs that can push and pull
    do_a, do_b : turn from push to pull when FV > BV do_a, back when FV < BV do_b (see `shoal.backends.cpu`)
    deterministic : break ties between parents by the smaller id, so that every run gives the same ones
    stats : ``"full"`` keeps a row per superstep (of the first million), ``"totals"`` only their sums
    """

    devices: str = "auto"
    execution: str = "auto"
    direction: str = "auto"
    # The paper's values for social graphs (section VI-A).
    do_a: float = 0.01
    do_b: float = 0.1
    deterministic: bool = False
    stats: str = "full"

    def __post_init__(self) -> None:
        for axis, allowed in AXES.items():
            check_choice(axis, getattr(self, axis), allowed)
        check_number("do_a", self.do_a, 0)
        check_number("do_b", self.do_b, 0)
        if not isinstance(self.deterministic, bool):
            raise ArgumentError(f"deterministic={self.deterministic!r} is not allowed; it must be True or False")
        parse_devices(self.devices)

    def resolved(self) -> dict[str, Any]:
        """Return the values in force, with ``auto`` replaced where the choice is made before the run."""
        return dict(_resolve(self))


@functools.lru_cache(maxsize=128)
def _resolve(config: RunConfig) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    for axis, value in RESOLVED.items():
        if values[axis] == "auto":
            values[axis] = value
    return values


_CPU = re.compile(r"cpu(?::(\d+)(?:x(\d+))?)?")


def parse_devices(devices: Any) -> DeviceSpec:
    """Return what a ``devices`` string means, or say what is wrong with it."""
    if devices == "auto":
        return DeviceSpec("cpu", 1, None)
    match = _CPU.fullmatch(devices) if isinstance(devices, str) else None
    if match is None:
        raise ArgumentError(f"devices={devices!r} is not known; allowed: auto, cpu, cpu:1xT (T threads)")
    count = int(match[1] or 1)
    threads = int(match[2]) if match[2] else None
    if count != 1:
        raise ArgumentError(f"devices={devices!r} asks for {count} devices; this version runs on one: cpu or cpu:1xT")
    if threads == 0:
        raise ArgumentError(f"devices={devices!r} asks for 0 threads; it must be at least 1")
    return DeviceSpec("cpu", count, threads)


CONFIG_NAMES = frozenset(field.name for field in fields(RunConfig))
DEFAULT = RunConfig()
