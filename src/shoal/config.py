# SPDX-License-Identifier: Apache-2.0
"""RunConfig: every strategy of a run, its default and the names it may have.

This is the only home of defaults and of name tables; the command line, the tests and the error messages read them here.
The one default that may come from outside is what ``devices="auto"`` means: ``SHOAL_DEVICES``, so that a script runs on
a GPU without being changed.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, fields, replace
from typing import Any

from shoal.errors import ArgumentError, check_choice, check_integer, check_number
from shoal.machine import count_gpus, count_ranks

#: Allowed names per axis; every axis but the last two also means it when it says ``auto``.
AXES: dict[str, tuple[str, ...]] = {
    "partition": ("auto", "random", "biased-random", "segment", "metis"),
    "duplication": ("auto", "all", "one-hop"),
    "communication": ("auto", "selective", "broadcast", "butterfly", "ring"),
    "execution": ("auto", "bsp", "async"),
    "priority": ("auto", "soft", "none"),
    "stealing": ("auto", "none", "frontier", "ownership", "both"),
    "memory": ("auto", "just-enough", "fixed", "maximum", "fused"),
    "direction": ("auto", "push", "pull"),
    "load_balance": ("auto", "thread", "warp", "block", "lrb", "merge-path"),
    "stats": ("full", "totals"),
    "output": ("host", "device"),
}

#: What ``auto`` becomes where the program does not decide it superstep by superstep.  The environment is read once: a
#: graph stays where its first run has placed it.
RESOLVED = {
    "devices": os.environ.get("SHOAL_DEVICES") or "cpu",
    "execution": "bsp",
    "partition": "segment",
    "stealing": "none",
}

_NO_EXCHANGE = "without supersteps there is no exchange: what a device sends goes to its owner, or round the ring"
_IN_ORDER = "supersteps visit a frontier as a whole; only execution='async' has a worklist to put in order"
_NO_FRONTIER = "a pull asks which vertices are in a frontier, and without supersteps there is none"
_NO_WAITING = "without supersteps nobody waits for the slowest device, so nobody has time to steal"
_NO_MEETINGS = "without supersteps devices do not meet, so nobody is in the way who has little to do"
_STOLEN_IDS = "who visits the edges of others' vertices must know all that they lead to by the same ids"
_EVERYBODY = "everybody is told of every vertex, so everybody must have every vertex"
#: Pairs of strategies that make no sense together, and why.
REFUSED: dict[tuple[tuple[str, str], tuple[str, str]], str] = {
    (("duplication", "one-hop"), ("communication", name)): _EVERYBODY for name in ("broadcast", "butterfly", "ring")
} | {
    (("execution", "async"), ("communication", name)): _NO_EXCHANGE for name in ("broadcast", "butterfly")
} | {
    (("priority", name), ("execution", other)): _IN_ORDER for name in ("soft", "none") for other in ("auto", "bsp")
} | {
    (("execution", "async"), ("stealing", name)): _NO_WAITING for name in ("frontier", "both")
} | {
    (("duplication", "one-hop"), ("stealing", name)): _STOLEN_IDS for name in ("frontier", "ownership", "both")
} | {
    (("execution", "async"), ("stealing", "ownership")): _NO_MEETINGS,
    (("execution", "async"), ("direction", "pull")): _NO_FRONTIER,
}  # fmt: skip

#: Axes that devices of one kind have: what they are, and why all others know only ``auto``.
ONLY_ON: dict[str, tuple[str, str]] = {
    "load_balance": ("cuda", "its threads take pieces of a frontier one by one"),
}
_STANDING_PARTS = "only devices of one process on a CPU can go on with the parts of others"
#: What devices of some kinds cannot do, and why.
NOT_ON: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("stealing", "ownership"): (("cuda", "mpi"), _STANDING_PARTS),
    ("stealing", "both"): (("cuda", "mpi"), _STANDING_PARTS),
}


@dataclass(frozen=True)
class DeviceSpec:
    """What a ``devices`` string asks for."""

    kind: str
    num_devices: int
    threads_per_device: int | None = None
    numbers: tuple[int, ...] = ()  # of the GPUs


@dataclass(frozen=True)
class RunConfig:
    """The strategies of one run.

    Parameters
    ----------
    devices : ``"cpu"`` (one device, all cores), ``"cpu:N"`` (N devices that share the cores), ``"cpu:NxT"`` (N devices
        of T threads), ``"cuda"`` (a GPU), ``"cuda:K"`` (that of number K), ``"cuda:0-3"`` or ``"cuda:0,2"`` (several),
        ``"cuda:all"``, ``"cuda:0*N"`` (N devices that share one GPU), ``"mpi"`` (one device for each process of an MPI
        job), ``"mpi:cpu:N"`` or ``"mpi:cpu:NxT"`` (N for each, of T threads) or ``"auto"``: what the environment
        variable ``SHOAL_DEVICES`` names, ``"cpu"`` if there is none
    partition : which device gets a vertex and its edges: ``"random"``, ``"biased-random"`` (to where its neighbours
        are), ``"segment"`` (ids in a row, as many edges each), ``"metis"``, an array with each vertex's device, or a
        function of a graph and a number of devices that returns one
    duplication : of which other vertices a device has copies: ``"all"``, or ``"one-hop"``, those its edges mention
    communication : ``"selective"`` (a device is told what concerns it), ``"broadcast"`` (everybody everything),
        ``"butterfly"`` (that in rounds of few messages; ``fanout`` says how few) or ``"ring"``
    fanout : of a butterfly: 1 and 2 pair devices up, f exchanges among groups of f
    partition_seed : of random partitions
    execution : ``"bsp"``, supersteps separated by barriers; ``"async"``, every device, of one thread, visits what it
        has to visit as soon as it hears of it; for programs whose values combine in any order
    stealing : ``"frontier"``: where a device has more edges in its frontier than others, these visit some of them;
        ``"ownership"``: where they have less to do than it takes to meet, some hand their parts to others until there
        is more; ``"both"``; ``"none"``: everybody visits their own; GPUs and MPI ranks know ``"frontier"`` and
        ``"none"``
    priority : without supersteps, which vertices go first: ``"soft"``, those of the lowest priority on the device, and
        none far ahead of the other devices', or ``"none"``, in the order in which they come
    memory : how much room frontiers get: ``"fused"`` (as many entries as a device has vertices), ``"just-enough"``
        (as many as they have edges, where that is more), ``"maximum"`` (as many as there are edges) or ``"fixed"`` (as
        many as earlier runs on the graph needed); under each of them it grows where a frontier needs more
    memory_limit : bytes that the run may take on each device, beside the graph; a number, or one with a unit such as
        ``"500MB"`` or ``"2GiB"``
    direction : of programs that can push and pull
    load_balance : on a GPU, how the edges of a push are dealt: ``"thread"`` (each goes through its own vertex's),
        ``"warp"`` and ``"block"`` (those of its vertices are dealt to all its threads), ``"lrb"`` (logarithmic radix
        binning: vertices with about as many edges are taken together), ``"merge-path"`` (every warp gets as many of the
        whole frontier's) or ``"auto"`` (by warps, and the edges of hubs by pieces that any warp takes)
    do_a, do_b : turn from push to pull when FV > BV do_a, back when FV < BV do_b (see `shoal.backends.cpu`)
    deterministic : break ties between parents by the smaller id, so that every run gives the same ones
    stats : ``"full"`` keeps a row per superstep (of the first million), ``"totals"`` only their sums
    output : where the arrays of the result are: ``"host"`` (NumPy's) or ``"device"``, where the run was: on a GPU they
        are CuPy's and never were on the host, on a CPU they are NumPy's
    """

    devices: str = "auto"
    partition: Any = "auto"
    duplication: str = "auto"
    communication: str = "auto"
    fanout: int = 1
    partition_seed: int = 0
    execution: str = "auto"
    priority: str = "auto"
    stealing: str = "auto"
    memory: str = "auto"
    memory_limit: int | str | None = None
    direction: str = "auto"
    load_balance: str = "auto"
    # The paper's values for social graphs (section VI-A).
    do_a: float = 0.01
    do_b: float = 0.1
    deterministic: bool = False
    stats: str = "full"
    output: str = "host"

    def __post_init__(self) -> None:
        # What ``auto`` means is asked when a graph is placed: a wrong SHOAL_DEVICES must not fail `import shoal`.
        spec = None if self.devices == "auto" else parse_devices(self.devices)
        for axis, allowed in AXES.items():
            if axis != "partition" or isinstance(self.partition, str):
                check_choice(axis, getattr(self, axis), allowed)
        if not callable(self.partition) and not hasattr(self.partition, "__len__"):
            names = ", ".join(AXES["partition"])
            raise ArgumentError(f"partition={self.partition!r} is not known; allowed: {names}, an array or a function")
        for ((axis, name), (other, value)), reason in REFUSED.items():
            if getattr(self, axis) == name and getattr(self, other) == value:
                raise ArgumentError(f"{axis}={name!r} does not go with {other}={value!r}: {reason}")
        check_integer("partition_seed", self.partition_seed, 0)
        # A graph that is placed says which devices there are.
        check_integer("fanout", self.fanout, 1, MAX_DEVICES if spec is None else spec.num_devices)
        if spec is not None:
            self.check_devices(self.devices)
        parse_bytes("memory_limit", self.memory_limit)
        check_number("do_a", self.do_a, 0)
        check_number("do_b", self.do_b, 0)
        if not isinstance(self.deterministic, bool):
            raise ArgumentError(f"deterministic={self.deterministic!r} is not allowed; it must be True or False")

    def check_devices(self, devices: str) -> None:
        """Refuse devices on which the strategies are not possible: those of the call, or of a graph that is placed."""
        spec = parse_devices(devices)
        self.check_kind(spec.kind)
        if self.execution == "async" and (spec.threads_per_device or 1) > 1:
            alike = re.sub(r"(\d+)x(\d+)", lambda found: str(int(found[1]) * int(found[2])), devices)
            raise ArgumentError(
                f"devices={devices!r} does not go with execution='async': without supersteps a device has one "
                f"thread; {alike} has as many"
            )

    def check_kind(self, kind: str) -> None:
        """Refuse what devices of this kind do not know."""
        for axis, (only, reason) in ONLY_ON.items():
            value = getattr(self, axis)
            if value not in ("auto", "none") and kind != only:
                raise ArgumentError(f"{axis}={value!r} is not possible on {kind}: {reason}; allowed: auto")
        for (axis, value), (kinds, reason) in NOT_ON.items():
            if getattr(self, axis) == value and kind in kinds:
                allowed = ", ".join(name for name in AXES[axis] if kind not in NOT_ON.get((axis, name), ((), ""))[0])
                raise ArgumentError(f"{axis}={value!r} is not possible on {kind}: {reason}; allowed: {allowed}")

    def in_supersteps(self) -> RunConfig:
        """Return the same for a part of a call that cannot do without supersteps."""
        return self if self.execution != "async" else replace(self, execution="bsp", priority="auto")

    def resolved(self) -> dict[str, Any]:
        """Return the values in force, with ``auto`` replaced where the choice is made before the run."""
        return dict(_resolve(self) if isinstance(self.partition, str) else _resolve.__wrapped__(self))


@functools.lru_cache(maxsize=128)
def _resolve(config: RunConfig) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    if not isinstance(config.partition, str):
        values["partition"] = getattr(config.partition, "__name__", "array")
    for axis, value in RESOLVED.items():
        if values[axis] == "auto":
            values[axis] = value
    if values["priority"] == "auto":
        values["priority"] = "soft" if values["execution"] == "async" else "none"
    return values


_BYTES = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)


def parse_bytes(name: str, value: Any) -> int | None:
    """Return the number of bytes that a number, or a text with a unit, means; None for None."""
    if value is None:
        return None
    match = _BYTES.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        unit = (1024 if match[3] else 1000) ** (" kmgt".index((match[2] or " ").lower()))
        value = int(float(match[1]) * unit)
    elif isinstance(value, str):
        raise ArgumentError(f"{name}={value!r} is not known; allowed: bytes, as 500000000, 500MB or 2GiB")
    return check_integer(name, value, 1)


MAX_DEVICES = 1024  # far more than any box has; each takes a thread
_CPU = re.compile(r"cpu(?::(\d+)(?:x(\d+))?)?")
_MPI = re.compile(r"mpi(?::(cpu(?::\d+(?:x\d+)?)?))?")
_CUDA = re.compile(r"cuda(?::(\d+(?:-\d+)?(?:\*\d+)?(?:,\d+(?:-\d+)?(?:\*\d+)?)*))?")


def parse_devices(devices: Any) -> DeviceSpec:
    """Return what a ``devices`` string means, or say what is wrong with it."""
    name = "devices"
    if devices == "auto":
        name, devices = "SHOAL_DEVICES", RESOLVED["devices"]
    if devices == "cuda:all":
        numbers = tuple(range(count_gpus(f"{name}='cuda:all'")))
        return DeviceSpec("cuda", len(numbers), numbers=numbers)
    match = _MPI.fullmatch(devices) if isinstance(devices, str) else None
    if match is not None:
        each = _parse_devices(match[1] or "cpu")
        assert each is not None
        num_devices = each.num_devices * count_ranks(f"{name}={devices!r}")
        _check_count(devices, num_devices, "devices")
        return DeviceSpec("mpi", num_devices, each.threads_per_device)
    spec = _parse_devices(devices) if isinstance(devices, str) else None
    if spec is None:
        auto = "" if name == "SHOAL_DEVICES" else "auto, "
        raise ArgumentError(
            f"{name}={devices!r} is not known; allowed: {auto}cpu, cpu:N (N devices), cpu:NxT (of T threads each), "
            "cuda (a GPU), cuda:K (the GPU of that number), cuda:0-3 or cuda:0,2 (several), cuda:all, "
            "cuda:0*N (N devices on one), mpi (a device for each process of an MPI job), mpi:cpu:N (N for each) "
            "or mpi:cpu:NxT (of T threads each)"
        )
    return spec


@functools.lru_cache(maxsize=128)
def _parse_devices(devices: str) -> DeviceSpec | None:
    match = _CUDA.fullmatch(devices)
    if match is not None:
        numbers = _gpu_numbers(devices, match[1] or "0")
        return DeviceSpec("cuda", len(numbers), numbers=numbers)
    match = _CPU.fullmatch(devices)
    if match is None:
        return None
    count = int(match[1] or 1)
    threads = int(match[2]) if match[2] else None
    _check_count(devices, count, "devices")
    if threads is not None:
        _check_count(devices, threads, "threads")
    return DeviceSpec("cpu", count, threads)


def _gpu_numbers(devices: str, text: str) -> tuple[int, ...]:
    """Return the GPU of each device: ``0-2`` are three, ``0*3`` are three on one."""
    numbers: list[int] = []
    for item in text.split(","):
        span, _, times = item.partition("*")
        first, _, last = span.partition("-")
        if int(last or first) < int(first):
            raise ArgumentError(f"devices={devices!r} asks for GPUs {span}; the first must not be above the last")
        _check_count(devices, (int(last or first) - int(first) + 1) * int(times or 1), "devices")
        numbers += [number for number in range(int(first), int(last or first) + 1) for _ in range(int(times or 1))]
    _check_count(devices, len(numbers), "devices")
    return tuple(numbers)


def _check_count(devices: str, count: int, what: str) -> None:
    """Refuse none, and too many."""
    if count == 0:
        raise ArgumentError(f"devices={devices!r} asks for 0 {what}; it must be at least 1")
    if what == "devices" and count > MAX_DEVICES:
        raise ArgumentError(f"devices={devices!r} asks for {count} devices; at most {MAX_DEVICES} are allowed")


CONFIG_NAMES = frozenset(field.name for field in fields(RunConfig))
DEFAULT = RunConfig()
