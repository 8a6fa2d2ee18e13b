# SPDX-License-Identifier: Apache-2.0
"""Ownership stealing: how many devices take part, where a superstep is mostly meeting.

A group of m devices takes z + p m: z as `share_frontier` has it, with infinite costs for the others, and p what a
device more costs all to meet.  A group cannot take less than the work at the least cost, divided by m; groups are
looked at in the order of that bound, and most not at all.  Where no frontier is large enough to steal from, as in the
supersteps that groups are for, every group's time is a few additions, and all are looked at together: that takes a
third of the time.  The present group stays unless another is clearly better, since to hand over takes time, and what
pays for one superstep must not be undone in the next.  GUM, section IV, algorithm 2.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_integer, check_number
from shoal.strategies.stealing.decision import Decision, finish_times, is_member
from shoal.strategies.stealing.frontier import LEAST_THEFT, check_loads, evict, share_frontier

#: Another group must take so much less than the present one.  Loads of neighbouring supersteps differ by more than
#: that only where a frontier grows or dies out.
MARGIN = 0.1
#: The paper's t3.  Eight devices that add 12 us each make a tenth of it, which is the least gain that counts.
LONGEST_SECONDS = 1e-3
#: Samples of the estimate: seven interrupted supersteps in a row do not move the median of fifteen.
_WINDOW = 15


class Groups:
    """Who owns whose edges where 1, 2, ... of the devices take part, checked once for many decisions.

    Parameters
    ----------
    owners : ``owners[m - 1][i]`` is who owns device i's edges where m devices take part; those own themselves
    num_devices : by default as many as there are groups
    """

    def __init__(self, owners: Sequence[Any] | np.ndarray, num_devices: int | None = None) -> None:
        self.owners = _check_groups(owners, len(owners) if num_devices is None else num_devices)
        self.sizes = np.arange(1, len(self.owners) + 1)
        self._devices = self.sizes - 1
        # The place of each owner among those of all groups, so that one sum serves them all.
        self._places = (self.owners + len(self.owners) * self._devices[:, None]).ravel()

    def __len__(self) -> int:
        return len(self.owners)

    def own_seconds(self, loads: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Return when the last device of each group finishes if nobody steals from a frontier."""
        # An infinite cost counts only where there are edges.
        seconds = np.multiply(costs[self._devices, self.owners], loads, out=np.zeros(costs.shape), where=loads > 0)
        return np.bincount(self._places, seconds.ravel(), seconds.size).reshape(seconds.shape).max(axis=1)

    def own_shares(self, loads: np.ndarray, size: int) -> np.ndarray:
        """Return who processes what in the group of so many devices if nobody steals."""
        shares = np.zeros(self.owners.shape, np.int64)
        shares[self._devices, self.owners[size - 1]] = loads
        return shares


class SynchronisationEstimate:
    """What each device that takes part adds to a superstep, from the last ones: the paper's p."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_WINDOW)

    def add(self, superstep_seconds: float, compute_seconds: float, num_members: int) -> None:
        """Take a superstep into account; ``compute_seconds`` are those of its slowest device."""
        num_members = check_integer("num_members", num_members, 1)
        self._samples.append(max(superstep_seconds - compute_seconds, 0.0) / num_members)

    @property
    def seconds_per_member(self) -> float:
        """The median; 0 before the first superstep, so that nobody is left out unheard."""
        return statistics.median(self._samples) if self._samples else 0.0


def should_regroup(
    superstep_seconds: float, num_members: int, num_devices: int, longest_seconds: float = LONGEST_SECONDS
) -> bool:
    """Return whether the group may change: after a short superstep, or if somebody is left out who might be needed."""
    return superstep_seconds < longest_seconds or num_members < num_devices


def choose_group(
    loads: Any,
    costs: Any,
    groups: Groups | Sequence[Any] | np.ndarray,
    seconds_per_member: float,
    num_members: int | None = None,
    *,
    least_theft: int = LEAST_THEFT,
    margin: float = MARGIN,
) -> Decision:
    """Decide which devices take part in the next supersteps, and who steals what in this one.

    Parameters
    ----------
    loads, costs, least_theft : see `share_frontier`; of all devices, whoever takes part
    groups : see `Groups`; made of its ``owners`` each time if they are given instead
    seconds_per_member : see `SynchronisationEstimate`
    num_members : how many take part now; by default all
    margin : another group must take less than the present one by this fraction
    """
    loads, costs = check_loads(loads, costs)
    made = groups if isinstance(groups, Groups) else Groups(groups, loads.size)
    if len(made) != loads.size:
        raise ArgumentError(f"groups are of {len(made)} devices for {loads.size} loads; they must be of as many")
    present = check_integer("num_members", loads.size if num_members is None else num_members, 1, loads.size)
    seconds_per_member = check_number("seconds_per_member", seconds_per_member, 0)
    if loads.max() < max(least_theft, 1):
        return _choose_without_thefts(loads, costs, made, seconds_per_member, present, margin)
    return _choose_with_thefts(loads, costs, made, seconds_per_member, present, least_theft, margin)


def _choose_without_thefts(
    loads: np.ndarray, costs: np.ndarray, groups: Groups, seconds_per_member: float, present: int, margin: float
) -> Decision:
    """Compare all groups at once."""
    seconds = groups.own_seconds(loads, costs) + seconds_per_member * groups.sizes
    best = int(seconds.argmin()) + 1
    before = float(seconds[present - 1])
    if seconds[best - 1] == np.inf:
        raise ArgumentError("costs are infinite for every group; in one of them all edges must have an owner")
    size = best if seconds[best - 1] < (1 - margin) * before else present
    owners = groups.owners[size - 1]
    return Decision(groups.own_shares(loads, size), owners, _reason(present, size), before, float(seconds[size - 1]))


def _choose_with_thefts(
    loads: np.ndarray,
    costs: np.ndarray,
    groups: Groups,
    seconds_per_member: float,
    present: int,
    least_theft: int,
    margin: float,
) -> Decision:
    """Share the frontier out in one group after the other, as long as one can be better."""
    owners = groups.owners

    def shares_and_seconds(size: int) -> tuple[np.ndarray, float]:
        shares = share_frontier(loads, evict(costs, owners[size - 1]), owners[size - 1], least_theft)
        return shares, float(finish_times(shares, costs).max()) + seconds_per_member * size

    size, (shares, seconds) = present, shares_and_seconds(present)
    before, limit = seconds, (1 - margin) * seconds
    bounds = _bounds(loads, costs, owners) + seconds_per_member * groups.sizes
    for other in (np.argsort(bounds, kind="stable") + 1).tolist():
        if bounds[other - 1] >= limit:
            break
        if other == present:
            continue
        found, needed = shares_and_seconds(other)
        if needed < limit:
            size, shares, seconds, limit = other, found, needed, needed
    return Decision(shares, owners[size - 1], _reason(present, size), before, seconds)


def _check_groups(groups: Sequence[Any] | np.ndarray, num_devices: int) -> np.ndarray:
    """Return the owners in each group as a matrix, if m devices of group m own themselves and nobody else is owner."""
    owners = np.asarray(groups, np.int64)
    devices = np.arange(num_devices)
    if owners.shape != (num_devices, num_devices):
        raise ArgumentError(f"groups has the shape {owners.shape}; it must be {(num_devices, num_devices)}")
    if owners.min() < 0 or owners.max() >= num_devices:
        raise ArgumentError(f"groups names {owners.min()} to {owners.max()}; devices are from 0 to {num_devices - 1}")
    members = is_member(owners)
    is_right = (members.sum(axis=1) == devices + 1) & np.take_along_axis(members, owners, axis=1).all(axis=1)
    if not is_right.all():
        row = int(is_right.argmin())
        raise ArgumentError(
            f"groups[{row}]={owners[row].tolist()}; {row + 1} devices must own themselves, others nobody"
        )
    return owners


def _bounds(loads: np.ndarray, costs: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return for each group a time that its last device cannot finish before: all work at the least cost, shared."""
    loaded = np.flatnonzero(loads)
    least = np.where(is_member(owners)[:, None, :], costs[loaded], np.inf).min(axis=2)
    return least @ loads[loaded] / np.arange(1, len(loads) + 1)


def _reason(present: int, size: int) -> str:
    if size == present:
        return f"no other group is clearly faster than {present} of the devices"
    why = "meeting takes longer than the work of the others" if size < present else "there is work for more"
    return f"from {present} to {size} devices: {why}"
