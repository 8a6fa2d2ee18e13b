# SPDX-License-Identifier: Apache-2.0
"""The BSP cost of a run: W + C + H g + S l (Gunrock's multi-GPU paper, sections III-A and V).

W is the time of the local work, C that of combining what was received, H the bytes a device sends, S the number of
supersteps.  Devices wait for the slowest in every superstep, so W, C and H are sums over the supersteps of the most
that any one device did.  Transfers are not taken to overlap work: a run that overlaps them can be faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.errors import ArgumentError, check_integer, check_number
from shoal.model.topology import Topology
from shoal.model.topology_files import find_topology


@dataclass(frozen=True)
class Breakdown:
    """The modelled seconds of a run, by what they are spent on: W, C, H g and S l."""

    work: float
    combine: float
    transfer: float
    synchronise: float

    @property
    def total(self) -> float:
        """Return the modelled seconds of the whole run."""
        return self.work + self.combine + self.transfer + self.synchronise


def bsp_seconds(
    work_seconds: float,
    items_combined_seconds: float,
    bytes_sent: float,
    num_supersteps: int,
    topology: Topology | str,
    num_devices: int | None = None,
) -> float:
    """Return W + C + H g + S l: the time of a run whose local work is known.

    Parameters
    ----------
    num_devices : that take part; by default all of the topology

    Examples
    --------
    >>> round(bsp_seconds(0.010, 0.002, 40e6, 10, "pcie-k40-quad"), 6)
    0.01588
    """
    return _price(work_seconds, items_combined_seconds, bytes_sent, num_supersteps, topology, num_devices).total


def predict(
    stats_dict: Mapping[str, Any],
    topology: Topology | str,
    seconds_per_edge: float,
    seconds_per_item: float,
) -> Breakdown:
    """Return what the run behind ``stats.to_dict()`` would take on as many devices of a machine.

    Where ``supersteps`` has no entry (``stats="totals"``, or of a very long run), counts are taken to be shared equally
    by the devices: the least they can take.

    Parameters
    ----------
    seconds_per_edge : of one device, for an edge visited
    seconds_per_item : of one device, for an item combined
    """
    per_edge = check_number("seconds_per_edge", seconds_per_edge, 0, open_high=True)
    per_item = check_number("seconds_per_item", seconds_per_item, 0, open_high=True)
    if not isinstance(stats_dict, Mapping):
        raise ArgumentError(f"stats_dict={stats_dict!r} is not allowed; it must be what Stats.to_dict() returns")
    return _price(
        per_edge * _slowest(stats_dict, "edges_visited"),
        per_item * _slowest(stats_dict, "items_combined"),
        _slowest(stats_dict, "bytes_sent"),
        _entry(stats_dict, "num_supersteps"),
        topology,
        _num_devices(stats_dict),
    )


def _price(
    work_seconds: float,
    combine_seconds: float,
    bytes_sent: float,
    num_supersteps: int,
    topology: Topology | str,
    num_devices: int | None,
) -> Breakdown:
    links = find_topology(topology)
    if num_devices is not None:
        links = links.resized(num_devices)
    return Breakdown(
        work=check_number("work_seconds", work_seconds, 0, open_high=True),
        combine=check_number("items_combined_seconds", combine_seconds, 0, open_high=True),
        transfer=check_number("bytes_sent", bytes_sent, 0, open_high=True) * links.seconds_per_byte,
        synchronise=check_integer("num_supersteps", num_supersteps, 0) * links.seconds_per_superstep(),
    )


def _slowest(stats: Mapping[str, Any], key: str) -> float:
    """Return the sum over supersteps of the largest count of a device; what has no superstep is shared equally."""
    total = check_integer(key, _entry(stats, key), 0)
    rows = [_counts(row, key) for row in stats.get("supersteps", ())]
    listed = sum(map(sum, rows))
    if listed > total:
        raise ArgumentError(f"{key}={total} is not allowed; its supersteps alone have {listed}")
    return sum(max(row, default=0) for row in rows) + (total - listed) / _num_devices(stats)


def _num_devices(stats: Mapping[str, Any]) -> int:
    return check_integer("num_devices", stats.get("num_devices", 1), 1)


def _entry(stats: Mapping[str, Any], key: str) -> Any:
    if key not in stats:
        raise ArgumentError(f"stats_dict has no {key!r}; it must be what Stats.to_dict() returns")
    return stats[key]


def _counts(row: Any, key: str) -> Sequence[int]:
    counts = row.get(key) if isinstance(row, Mapping) else None
    if not isinstance(counts, Sequence) or isinstance(counts, str):
        raise ArgumentError(f"supersteps with {key}={counts!r} are not allowed; each needs a list over the devices")
    return counts
