# SPDX-License-Identifier: Apache-2.0
"""Decisions about stealing, taken again on the counts of a run that knew no stealing.

Decisions are those of `shoal.strategies.stealing`, and each is charged what it takes on a host.  The paper's thresholds
follow from that: a frontier is shared if the last device could gain twice what the decision takes, so t1 and t2 are
edges for so long.  Whether devices leave is decided where they meet for longer than the last one works, as long as that
takes no more than `_BUDGET` of all such supersteps so far: a run that meets little has little to gain.  Whether they
come back is decided likewise, or at once if there is much to do.
Loads are taken to be divisible at any edge; whole vertices are off by half a vertex's edges at each cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.errors import check_choice
from shoal.model.reduction_tree import reduction_order
from shoal.model.topology import Topology
from shoal.strategies.stealing import Groups, SynchronisationEstimate, choose_group, choose_thefts, should_regroup
from shoal.strategies.stealing.decision import finish_times

STEALING = ("none", "frontier", "ownership", "both")
#: Group decisions take this part of the supersteps that were mostly meeting, of which the larger part can be gained.
_BUDGET = 0.05
#: A group that has so many decisions' time to work in a superstep is worth a decision at once.
_URGENT = 4
#: The last device must be able to gain so many times what the decision takes.
_GAIN = 2


def frontier_decision_seconds(num_devices: int) -> float:
    """Return what `choose_thefts` takes: 87, 105, 179, 545 us of 2, 4, 8, 16 devices, measured."""
    return 80e-6 + 1.6e-6 * num_devices**2


def group_decision_seconds(num_devices: int) -> float:
    """Return what `choose_group` takes where nobody can steal: 15.7, 16.2, 16.6, 18.7 us, measured likewise."""
    return 15.3e-6 + 0.21e-6 * num_devices


@dataclass(frozen=True)
class Step:
    """Who did what in a superstep: ``shares[i, j]`` edges of device i on device j, whose parts ``owners`` have."""

    shares: np.ndarray
    owners: np.ndarray
    decision_seconds: float

    @property
    def num_members(self) -> int:
        """How many devices took part."""
        return len(set(self.owners.tolist()))

    @property
    def stolen_edges(self) -> int:
        """Edges that went to another device than the one that has their part."""
        return int(self.shares.sum() - self.shares[np.arange(len(self.shares)), self.owners].sum())


class Replay:
    """The decisions of a run, superstep after superstep."""

    def __init__(self, stealing: str, topology: Topology, costs: np.ndarray) -> None:
        check_choice("stealing", stealing, STEALING)
        self.shares_frontier = stealing in ("frontier", "both") and len(costs) > 1
        self.regroups = stealing in ("ownership", "both") and len(costs) > 1
        self.topology, self.costs = topology, costs
        self.owners = np.arange(len(costs))
        if self.regroups:
            self.groups = Groups([list(reduction.owner) for reduction in reversed(reduction_order(topology))])
        self.synchronisation = SynchronisationEstimate()
        self.met_seconds = self.spent_seconds = self.last_seconds = 0.0

    def step(self, loads: np.ndarray) -> Step:
        """Decide a superstep with so many edges on each device."""
        seconds = 0.0
        if self.regroups and self._may_regroup(loads):
            seconds = self._regroup(loads)
        shares = np.zeros_like(self.costs, dtype=np.int64)
        shares[np.arange(len(loads)), self.owners] = loads
        if self.shares_frontier:
            decision = self._share(loads)
            if decision is not None:
                shares, seconds = decision, seconds + frontier_decision_seconds(len(loads))
        return Step(shares, self.owners, seconds)

    def finish(self, step: Step, compute_seconds: float, superstep_seconds: float) -> None:
        """Learn what a superstep took, without its decisions."""
        self.synchronisation.add(superstep_seconds, compute_seconds, step.num_members)
        self.last_seconds = superstep_seconds
        if superstep_seconds > 2 * compute_seconds:
            self.met_seconds += superstep_seconds

    def _own_seconds(self, loads: np.ndarray) -> np.ndarray:
        """Return what each device would work if nobody stole from the frontier."""
        devices = np.arange(len(loads))
        return np.bincount(self.owners, self.costs[devices, self.owners] * loads, len(loads))

    def _may_regroup(self, loads: np.ndarray) -> bool:
        num_members = len(set(self.owners.tolist()))
        if not should_regroup(self.last_seconds, num_members, len(loads)):
            return False
        takes, working = self._regroup_seconds(loads), self._own_seconds(loads).max()
        if num_members == len(loads):
            # All that leaving can save is the meeting.
            if working > self.synchronisation.seconds_per_member * num_members:
                return False
        elif working >= _URGENT * takes:
            return True
        return self.spent_seconds + takes <= _BUDGET * self.met_seconds

    def _regroup(self, loads: np.ndarray) -> float:
        """Choose the group; return what that takes, with a meeting of all if it is another one."""
        takes = self._regroup_seconds(loads)
        self.spent_seconds += takes
        decision = choose_group(
            loads,
            self.costs,
            self.groups,
            self.synchronisation.seconds_per_member,
            len(set(self.owners.tolist())),
            least_theft=self._least_theft_of_groups(loads),
        )
        if (decision.owners != self.owners).any():
            takes += self.topology.barrier_seconds[-1]
        self.owners = decision.owners
        return takes

    def _least_theft_of_groups(self, loads: np.ndarray) -> int:
        """Return the least theft that groups count on; where frontiers are not shared, none is large enough."""
        return self._least_theft() if self.shares_frontier else int(loads.sum()) + 1

    def _regroup_seconds(self, loads: np.ndarray) -> float:
        """Return what a decision about the group takes: little if nobody has enough to be stolen from."""
        is_plain = loads.max() < self._least_theft_of_groups(loads)
        return group_decision_seconds(len(loads)) if is_plain else frontier_decision_seconds(len(loads))

    def _share(self, loads: np.ndarray) -> np.ndarray | None:
        """Return who processes what if that is worth deciding."""
        edges = frontier_decision_seconds(len(loads)) / self.costs.diagonal().min()
        decision = choose_thefts(
            loads,
            self.costs,
            self.owners,
            least_load=int(2 * _GAIN * edges),
            least_gap=int(_GAIN * edges),
            least_theft=self._least_theft(),
        )
        is_considered = decision.reason != "there is too little to steal"
        return decision.shares if is_considered else None

    def _least_theft(self) -> int:
        """Return the edges that take as long as two messages, there and back."""
        return 1 + int(2 * self.topology.latency_seconds / self.costs.diagonal().min())


def compute_seconds(step: Step, costs: np.ndarray, latency_seconds: float) -> np.ndarray:
    """Return what each device works, with the latency of one access where it reads edges of others."""
    reads = (step.shares - np.diag(step.shares.diagonal())).any(axis=0)
    return finish_times(step.shares, costs) + latency_seconds * reads
