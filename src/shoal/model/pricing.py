# SPDX-License-Identifier: Apache-2.0
"""scaling(): what the counts of a run would take on a machine, by what the time is spent on (GUM, figure 6).

    compute        edges x c_ij: the cost model's seconds of an edge, and the reading of those that are stolen
    serialization  items packed and combined, or words of bits, x the cost model's seconds of an item
    communication  transfers of the exchange, by the links (`shoal.model.transfers`)
    overhead       the topology's barrier, and decisions about stealing
    idle           waiting for the slowest device, in compute, serialization and transfers

Devices first compute and pack, then exchange, then meet.  All of it is *modelled*.  Runs without supersteps depend on
the order in which messages arrive, and are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_number
from shoal.model.cost import CostModel
from shoal.model.cost_files import find_cost
from shoal.model.counts import Counts
from shoal.model.features import FEATURES
from shoal.model.replay import Replay, Step, compute_seconds
from shoal.model.topology import Topology
from shoal.model.topology_files import find_topology
from shoal.model.transfers import message_weights, transfer_seconds
from shoal.strategies.communication import make_schedule

#: What travels as bits is packed by words of so many bytes, each as an item.
_WORD_BYTES = 8
#: An edge that is stolen is read from its owner: an id and a weight of four bytes each.
BYTES_PER_EDGE = 8.0
PARTS = ("compute", "communication", "serialization", "idle", "overhead")


@dataclass(frozen=True, eq=False)
class Timeline:
    """A run on a machine, modelled: seconds of each superstep (rows) and device (columns)."""

    compute: np.ndarray
    communication: np.ndarray
    serialization: np.ndarray
    idle: np.ndarray
    overhead: np.ndarray
    steps: list[Step]

    @property
    def superstep_seconds(self) -> np.ndarray:
        """How long each superstep takes: the same for all devices, whatever they spend it on."""
        return sum(getattr(self, name)[:, 0] for name in PARTS)

    @property
    def seconds(self) -> float:
        """How long the run takes."""
        return float(self.superstep_seconds.sum())

    @property
    def group_sizes(self) -> list[int]:
        """How many devices take part in each superstep."""
        return [step.num_members for step in self.steps]

    def idle_fraction(self, superstep: int) -> float:
        """Return which part of the last device's compute the least loaded one has nothing to do."""
        busy = self.compute[superstep]
        return float(1 - busy.min() / busy.max()) if busy.max() else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as plain values; parts are means over the devices, which sum to the whole."""
        return {
            "timing": "modelled",
            "seconds": self.seconds,
            **{f"{name}_seconds": float(getattr(self, name).mean(axis=1).sum()) for name in PARTS},
            "num_supersteps": len(self.steps),
            "stolen_edges": sum(step.stolen_edges for step in self.steps),
            "least_members": min(self.group_sizes, default=0),
        }


def scaling(
    counts: Counts,
    topology: Topology | str,
    cost: CostModel | str,
    *,
    communication: str = "selective",
    fanout: int = 1,
    stealing: str = "none",
    features: Any = None,
    bytes_per_edge: float = BYTES_PER_EDGE,
) -> Timeline:
    """Return what a run with these counts would take on as many devices of a machine.

    Parameters
    ----------
    counts : of a run with this ``communication`` and ``fanout`` and without stealing, on logical devices
    topology, cost : by name, from a file, or made; the cost is scaled from the device measured to those of the topology
    stealing : ``none``, ``frontier``, ``ownership`` or ``both``: decisions are taken anew, and charged
    features : of each device's part, a row each (`frontier_features`); only a constant cost does without
    bytes_per_edge : that are read of an edge that is stolen

    Examples
    --------
    >>> import shoal
    >>> stats = shoal.pagerank(shoal.generate.grid(9, 9), iterations=2, devices="cpu:2").stats.to_dict()
    >>> run = scaling(Counts.of(stats), "dgx-h100", "h200-assumed")
    >>> run.to_dict()["timing"], len(run.superstep_seconds)
    ('modelled', 2)
    """
    links = find_topology(topology).resized(counts.num_devices)
    priced = find_cost(cost)
    check_number("bytes_per_edge", bytes_per_edge, 0, open_high=True)
    slower = priced.scaled_to(links)
    per_edge = slower * _seconds_per_edge(priced, features, counts.num_devices)
    per_item = slower * priced.nanoseconds_per_item * 1e-9
    costs = priced.cost_matrix(links, per_edge, bytes_per_edge)
    pricing = _Pricing(counts, links, costs, per_item, communication, fanout)
    return pricing.replay(stealing)


def _seconds_per_edge(cost: CostModel, features: Any, num_devices: int) -> np.ndarray:
    if features is None:
        if cost.degree:
            raise ArgumentError(f"features=None is not allowed with the cost {cost.name}; it must be a row of "
                                f"{len(FEATURES)} for each of {num_devices} devices")  # fmt: skip
        features = np.zeros((num_devices, len(FEATURES)))
    rows = np.asarray(features, np.float64)
    if rows.shape != (num_devices, len(FEATURES)):
        raise ArgumentError(f"features has the shape {rows.shape}; it must be {(num_devices, len(FEATURES))}")
    return np.asarray(cost.seconds_per_edge(rows))


class _Pricing:
    """The counts of a run and what they cost; groups of devices are priced as they come up."""

    def __init__(
        self, counts: Counts, topology: Topology, costs: np.ndarray, per_item: float, communication: str, fanout: int
    ) -> None:
        self.counts, self.topology, self.costs, self.per_item = counts, topology, costs, per_item
        self.communication, self.fanout = communication, fanout
        self.whole = make_schedule(communication, counts.num_devices, min(fanout, counts.num_devices))
        self.fanouts = message_weights(self.whole).sum(axis=(0, 2))
        self.cached: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def replay(self, stealing: str) -> Timeline:
        """Take all decisions and price what follows from them."""
        replay = Replay(stealing, self.topology, self.costs)
        shape = self.counts.edges_visited.shape
        parts = {name: np.zeros(shape) for name in PARTS}
        steps = []
        for row, loads in enumerate(self.counts.edges_visited):
            step = replay.step(loads)
            own, exchange, items = (values[row] for values in self._exchange(step.owners))
            compute = compute_seconds(step, self.costs, self.topology.latency_seconds)
            barrier = self.topology.seconds_per_superstep(step.num_members)
            busy = compute + items
            parts["compute"][row], parts["communication"][row], parts["serialization"][row] = compute, own, items
            parts["idle"][row] = busy.max() - busy + exchange - own
            parts["overhead"][row] = barrier + step.decision_seconds
            replay.finish(step, float(compute.max()), float(busy.max() + exchange + barrier))
            steps.append(step)
        return Timeline(**parts, steps=steps)

    def _exchange(self, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the transfers of each device, the exchange, and packing, of all supersteps, for a group of devices.

        What is sent between parts that one device has is not sent; the rest is sent by whoever has the part.
        """
        key = tuple(owners.tolist())
        if key not in self.cached:
            members = np.unique(owners)
            schedule = make_schedule(self.communication, len(members), min(self.fanout, len(members)))
            kept = self._kept(owners, members, message_weights(schedule).sum(axis=(0, 2)))
            to_member = (owners[:, None] == members).astype(np.float64)
            sent = (self.counts.bytes_sent * kept) @ to_member
            packed = np.minimum(self.counts.items_sent, -(-self.counts.bytes_sent // _WORD_BYTES))
            items = ((packed + self.counts.items_combined) * kept) @ to_member
            own, exchange = transfer_seconds(sent, schedule, self.topology.subset(members.tolist()))
            spread = np.zeros((2, *self.counts.edges_visited.shape))
            spread[0][:, members], spread[1][:, members] = own, items * self.per_item
            self.cached[key] = spread[0], exchange, spread[1]
        return self.cached[key]

    def _kept(self, owners: np.ndarray, members: np.ndarray, fanouts: np.ndarray) -> np.ndarray:
        """Return the part of each device's messages that is still sent, as if all of them were alike."""
        num_devices = len(owners)
        if self.whole.is_routed:
            others = num_devices - np.bincount(owners, minlength=num_devices)[owners]
            return others / max(num_devices - 1, 1)
        return fanouts[np.searchsorted(members, owners)] / np.maximum(self.fanouts, 1)
