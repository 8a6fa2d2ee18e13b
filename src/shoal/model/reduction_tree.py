# SPDX-License-Identifier: Apache-2.0
"""Which devices go on when fewer are worth their synchronisation, and who takes over whom (GUM, section IV).

Devices leave in a fixed order: always the one without which direct links among the rest have most bandwidth together,
of several the one with the highest number, so that device 0, which coordinates, is the last.  What lies on a device
that left is read from there, so its part goes to the one with the best link to it, whoever had it before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from shoal.model.topology import Topology


@dataclass(frozen=True)
class Reduction:
    """The devices that go on, and for every device the one that has its part."""

    kept: tuple[int, ...]
    owner: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """Return how many devices go on."""
        return len(self.kept)


def reduction_order(topology: Topology) -> list[Reduction]:
    """Return which devices to keep, for n, n - 1, ... down to one of them.

    Examples
    --------
    >>> from shoal.model import find_topology
    >>> reduction_order(find_topology("dgx1-v100"))[-2]
    Reduction(kept=(0, 3), owner=(0, 0, 3, 3, 0, 3, 0, 3))
    """
    kept = list(range(topology.num_devices))
    found = [_reduce(topology, kept)]
    while len(kept) > 1:
        kept.remove(min(kept, key=lambda device: (_linked_bandwidth(topology, device, kept), -device)))
        found.append(_reduce(topology, kept))
    return found


def _linked_bandwidth(topology: Topology, device: int, kept: list[int]) -> float:
    """Return what would be lost without a device: the bandwidth of its links from and to others."""
    return sum(_direct(topology, device, other) + _direct(topology, other, device) for other in kept if other != device)


def _direct(topology: Topology, i: int, j: int) -> float:
    return topology.bandwidth[i][j] if topology.num_links[i][j] else 0.0


def _reduce(topology: Topology, kept: list[int]) -> Reduction:
    num_parts = Counter(kept)
    owner = list(range(topology.num_devices))
    for device in sorted(set(owner) - set(kept)):
        # A direct link first, since other paths take links of others; then whoever has fewest parts.
        owner[device] = max(
            kept,
            key=lambda heir: (
                _direct(topology, device, heir),
                topology.bandwidth[device][heir],
                -num_parts[heir],
                -heir,
            ),
        )
        num_parts[owner[device]] += 1
    return Reduction(tuple(kept), tuple(owner))
