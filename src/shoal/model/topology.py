# SPDX-License-Identifier: Apache-2.0
"""Topologies: what it costs the devices of a machine, pair by pair, to send to one another and to wait for one another.

B_ij is the bandwidth from device i to device j, in one direction; B_ii that of i's own memory (GUM, section III-B).
The BSP model (Gunrock's multi-GPU paper, section III-A) asks for two numbers of it: g, the time to send one byte, and
l, what a superstep costs whatever is done in it.  All fields are checked when a topology is made, and never change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from shoal.errors import ArgumentError, check_integer, check_number
from shoal.model import matrices
from shoal.model.matrices import Matrix, check_matrix, is_list
from shoal.model.tables import write_table

#: A matrix has a million pairs of them.
MAX_DEVICES = 1024
#: The fields that have a value for each pair of devices.
_MATRICES = ("bandwidth", "num_links", "paths")


@dataclass(frozen=True)
class Topology:
    """The devices of a machine and their links.

    Parameters
    ----------
    bandwidth : B_ij in bytes a second, a row for each device
    latency_seconds : of one message
    barrier_seconds : of a superstep of 1, 2, ... devices whatever is done in it: launches, synchronisation and latency,
        however many rounds are exchanged.  One number holds for any number of devices; fewer than there are devices
        go on along the straight line from two devices to the last, and stay as they are where there are only two
    compute_scale : the speed of a device, that of an H200 being 1
    source : where the numbers come from, in words, or for each field
    num_links : direct links of each pair; by default one
    paths : the way of each pair: ``local``, ``direct``, ``host``, ``through K`` (another device); by default
        ``direct`` where it has links, otherwise ``host``
    is_switched : whether all that a device sends leaves by one port, so that its pairs share it
    """

    name: str
    num_devices: int
    bandwidth: Matrix[float]
    latency_seconds: float = 0.0
    barrier_seconds: tuple[float, ...] = (0.0,)
    compute_scale: float = 1.0
    source: Mapping[str, str] = field(default_factory=dict, hash=False)
    num_links: Matrix[int] = ()
    paths: Matrix[str] = ()
    is_switched: bool = False

    def __post_init__(self) -> None:
        count = check_integer("num_devices", self.num_devices, 1, MAX_DEVICES)
        bandwidth = check_matrix("bandwidth", self.bandwidth, count, matrices.check_bandwidth)
        links = matrices.two_values(0, 1, count) if self.num_links == () else self.num_links
        links = check_matrix("num_links", links, count, matrices.check_count)
        paths = matrices.name_paths(links) if self.paths == () else self.paths
        values: dict[str, Any] = {
            "name": _check_text("name", self.name),
            "num_devices": count,
            "bandwidth": bandwidth,
            "latency_seconds": check_number("latency_seconds", self.latency_seconds, 0, open_high=True),
            "compute_scale": check_number("compute_scale", self.compute_scale, 0, open_low=True, open_high=True),
            "num_links": links,
            "paths": check_matrix("paths", paths, count, _check_text),
            "is_switched": _check_flag("is_switched", self.is_switched),
        }
        source = _check_source(self.source)
        values["barrier_seconds"], values["source"] = _complete(self.barrier_seconds, source, count)
        for name, value in values.items():
            object.__setattr__(self, name, value)  # frozen, so set this way

    def links(self, i: int, j: int) -> int:
        """Return the number of direct links from device i to device j."""
        return self.num_links[self._check_device("i", i)][self._check_device("j", j)]

    def path(self, i: int, j: int) -> str:
        """Return the way from device i to device j in words; a device on it has its number in the whole machine."""
        return self.paths[self._check_device("i", i)][self._check_device("j", j)]

    def outgoing_bandwidth(self, device: int) -> float:
        """Return what a device can send at most, in bytes a second, to all others together; 0 where there are none.

        Direct links add up unless they share a port.  Other paths do not: they take links of others.
        """
        row = self.bandwidth[self._check_device("device", device)]
        others = [j for j in range(self.num_devices) if j != device]
        linked = [row[j] for j in others if self.num_links[device][j]]
        if self.is_switched or not linked:
            return max((row[j] for j in others), default=0.0)
        return sum(linked)

    @property
    def seconds_per_byte(self) -> float:
        """Return g: the time of one byte that the device with the least bandwidth sends; 0 for a device alone."""
        if self.num_devices == 1:
            return 0.0
        return 1 / min(map(self.outgoing_bandwidth, range(self.num_devices)))

    def seconds_per_superstep(self, num_devices: int | None = None) -> float:
        """Return l, where so many devices take part; by default all."""
        if num_devices is None:
            return self.barrier_seconds[-1]
        return self.barrier_seconds[check_integer("num_devices", num_devices, 1, self.num_devices) - 1]

    @property
    def is_uniform(self) -> bool:
        """Return whether all pairs are alike, and all devices."""
        return all(getattr(self, name) == self._uniform(name, self.num_devices) for name in _MATRICES)

    def subset(self, devices: Sequence[int]) -> Topology:
        """Return the topology of some of the devices, in this order; those left out still pass on what others send."""
        given = list(devices) if is_list(devices) else []
        kept = [self._check_device("devices", device) for device in given]
        if not kept or len(set(kept)) < len(kept):
            raise ArgumentError(f"devices={devices!r} is not allowed; it must be a list of different devices")
        parts: dict[str, Any] = {name: matrices.select(getattr(self, name), kept) for name in _MATRICES}
        return replace(self, num_devices=len(kept), barrier_seconds=self.barrier_seconds[: len(kept)], **parts)

    def resized(self, num_devices: int) -> Topology:
        """Return the topology with its first devices only, or with more of them where they hang on a switch.

        Examples
        --------
        >>> from shoal.model import find_topology
        >>> six = find_topology("pcie-k40-quad").resized(6)
        >>> [round(1e6 * seconds, 1) for seconds in six.barrier_seconds]
        [66.8, 124.0, 142.0, 188.0, 220.0, 252.0]
        """
        count = check_integer("num_devices", num_devices, 1, MAX_DEVICES)
        if count == self.num_devices:
            return self
        if count < self.num_devices:
            return self.subset(range(count))
        if not (self.is_switched and self.is_uniform and self.num_devices > 1):
            raise ArgumentError(
                f"num_devices={count} is out of range; {self.name} has {self.num_devices} devices, and only machines "
                "whose pairs all go through one switch can have more"
            )
        grown: dict[str, Any] = {name: self._uniform(name, count) for name in _MATRICES}
        return replace(self, num_devices=count, **grown)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, as a file has them."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load_topology` reads: TOML or JSON by its suffix."""
        write_table(self.to_dict(), path)

    def _uniform(self, name: str, num_devices: int) -> Matrix[Any]:
        """Return what a matrix would be if all devices were as the first."""
        row = getattr(self, name)[0]
        return matrices.two_values(row[0], row[-1], num_devices)

    def _check_device(self, name: str, device: Any) -> int:
        return check_integer(name, device, 0, self.num_devices - 1)


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name}={value!r} is not allowed; it must be a word")
    return value


def _check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}={value!r} is not allowed; it must be True or False")
    return value


def _check_source(source: Any) -> dict[str, str]:
    if isinstance(source, str):
        return {"all": source} if source else {}
    if not isinstance(source, Mapping) or not all(isinstance(word, str) for item in source.items() for word in item):
        raise ArgumentError(f"source={source!r} is not allowed; it must be words, or words for each field")
    return dict(source)


def _complete(seconds: Any, source: dict[str, str], count: int) -> tuple[tuple[float, ...], dict[str, str]]:
    """Return the barrier's seconds of 1 to ``count`` devices, and their source, which says if they were continued."""
    given = list(seconds) if is_list(seconds) else [seconds]
    if not 1 <= len(given) <= count:
        raise ArgumentError(f"barrier_seconds={given} is not allowed; it must be a number, or 1 to {count} of them")
    known = [check_number(f"barrier_seconds[{i}]", value, 0, open_high=True) for i, value in enumerate(given)]
    if len(known) in (1, count):
        return tuple(known + known[-1:] * (count - len(known))), source
    # The step from one device to two is synchronisation itself; what a device more costs shows from there on.
    step = (known[-1] - known[1]) / (len(known) - 2) if len(known) > 2 else 0.0
    more = [max(0.0, known[-1] + step * k) for k in range(1, count - len(known) + 1)]
    note = f"; on a straight line beyond {len(known)} devices"
    return tuple(known + more), source | {"barrier_seconds": (source.get("barrier_seconds", "given") + note)}


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
