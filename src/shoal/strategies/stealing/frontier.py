# SPDX-License-Identifier: Apache-2.0
"""Frontier stealing: how many edges of each device's frontier each device processes in this superstep.

Whole numbers come from the linear program: its shares are rounded down, and the edges left over, about as many as
devices at most, go where they are cheapest.  Then thefts go back to their owners, the smallest first, as long as that
hardly delays the superstep: a theft has a price that the costs do not know.  GUM, sections III and V-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import ArgumentError
from shoal.strategies.stealing.balance import balance
from shoal.strategies.stealing.decision import Decision, finish_times, is_member

#: The paper's t1.  At 1 ns an edge these are a millisecond, some four decisions of eight devices.
LEAST_LOAD = 2**20
#: The paper's t2.  The slowest device can get rid of this at most, which should pay for the decision twice.
LEAST_GAP = 2**19
#: At 1 ns an edge these take 4 us, half of what four devices take to meet: a smaller theft costs more than it saves.
LEAST_THEFT = 2**12
#: Thefts go back if the superstep grows by no more than this: costs are not known better.
_SLACK = 0.005


def cost_matrix(
    bandwidth: Any, bytes_per_edge: float, seconds_per_edge: Any, evicted: Sequence[int] = ()
) -> np.ndarray:
    """Return the seconds that device j takes for an edge that lies on device i: ``bytes_per_edge / B_ij + g_i``.

    Parameters
    ----------
    bandwidth : bytes a second from device i to device j, on the diagonal that of its own memory; 0 where none leads
    seconds_per_edge : computing alone, one number or one for each device i that the edge lies on
    evicted : devices that do not take part, so that nothing is worth giving them

    Examples
    --------
    >>> cost_matrix([[8e11, 2e10], [2e10, 8e11]], bytes_per_edge=8, seconds_per_edge=1e-10) * 1e12
    array([[110., 500.],
           [500., 110.]])
    """
    with np.errstate(divide="ignore"):
        transfer = bytes_per_edge / np.asarray(bandwidth, np.float64)
    if transfer.ndim != 2 or transfer.shape[0] != transfer.shape[1]:
        raise ArgumentError(f"bandwidth has the shape {transfer.shape}; it must be a square matrix")
    costs = transfer + np.broadcast_to(seconds_per_edge, len(transfer))[:, None]
    costs[:, list(evicted)] = np.inf
    return costs


def evict(costs: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return the costs where only devices that own themselves take part."""
    return np.where(is_member(owners), costs, np.inf)


def should_steal(loads: Any, least_load: int = LEAST_LOAD, least_gap: int = LEAST_GAP) -> bool:
    """Return whether a decision can pay: somebody has much to do, and somebody much less.

    Parameters
    ----------
    loads : edges that each device that takes part would process
    least_load, least_gap : the paper's t1 and t2, in edges
    """
    highest = np.max(loads)
    return bool(highest >= least_load and highest - np.min(loads) >= least_gap)


def choose_thefts(
    loads: Any,
    costs: Any,
    owners: np.ndarray | None = None,
    *,
    least_load: int = LEAST_LOAD,
    least_gap: int = LEAST_GAP,
    least_theft: int = LEAST_THEFT,
) -> Decision:
    """Decide who steals what in a superstep; the devices that take part stay the same.

    Parameters
    ----------
    loads, costs, owners, least_theft : see `share_frontier`
    least_load, least_gap : see `should_steal`
    """
    loads, costs, owners = _check(loads, costs, owners)
    own = _own_shares(loads, owners)
    before = float(finish_times(own, costs).max())
    if not should_steal(own.sum(axis=0)[is_member(owners)], least_load, least_gap):
        return Decision(own, owners, "there is too little to steal", before, before)
    shares = share_frontier(loads, evict(costs, owners), owners, least_theft)
    after = float(finish_times(shares, costs).max())
    reason = "stealing ends the superstep sooner" if after < before else "stealing gains nothing"
    return Decision(shares, owners, reason, before, after)


def share_frontier(loads: Any, costs: Any, owners: np.ndarray | None = None, least_theft: int = 1) -> np.ndarray:
    """Return how many edges of device i device j processes, so that the last device finishes early.

    Within a percent of the least possible for up to eight devices with loads of 0 or at least 10,000 edges, and never
    later than if nobody stole.

    Parameters
    ----------
    loads : edges of each device's frontier
    costs : seconds of an edge, see `cost_matrix`; infinite for who must not have it
    owners : who processes the edges of device i but for thefts; by default i itself, or the cheapest if i is evicted
    least_theft : smaller thefts, in edges, are left out, whatever they would save

    Returns
    -------
    int64; row i sums to ``loads[i]``

    Examples
    --------
    >>> share_frontier([90_000, 0, 0], [[1, 4, 4], [4, 1, 4], [4, 4, 1]])
    array([[60000, 15000, 15000],
           [    0,     0,     0],
           [    0,     0,     0]])
    """
    loads, costs, owners = _check(loads, costs, owners)
    own = _own_shares(loads, owners)
    if len(loads) == 1 or loads.max() < max(least_theft, 1):
        return own
    loaded = np.flatnonzero(loads)
    shares = np.zeros_like(own)
    fractions = balance(loads[loaded], costs[loaded], owners[loaded])
    shares[loaded] = _round(fractions, loads[loaded], costs[loaded])
    best = finish_times(fractions, costs[loaded]).max()
    _put_back(shares, costs, owners, least_theft, (1 + _SLACK) * best)
    return shares if finish_times(shares, costs).max() < finish_times(own, costs).max() else own


def _check(loads: Any, costs: Any, owners: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arguments as arrays, if everything that is there to do can be done by its owner."""
    loads, costs = check_loads(loads, costs)
    devices = np.arange(loads.size)
    if owners is None:
        owners = np.where(np.isfinite(costs.diagonal()), devices, costs.argmin(axis=1))
    is_stuck = (loads > 0) & np.isinf(costs[devices, owners])
    if is_stuck.any():
        device = int(is_stuck.argmax())
        raise ArgumentError(f"costs[{device}, {owners[device]}]=inf, but device {device} has {loads[device]} edges")
    return loads, costs, owners


def check_loads(loads: Any, costs: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return loads and costs as arrays, if they are of as many devices and none is negative."""
    loads, costs = np.asarray(loads, np.int64), np.asarray(costs, np.float64)
    if costs.shape != (loads.size, loads.size) or not loads.size:
        raise ArgumentError(
            f"costs has the shape {costs.shape} for {loads.size} loads; it must be square, of that size"
        )
    if not (loads.min() >= 0 and costs.min() > 0):  # a NaN is not above 0
        raise ArgumentError(
            f"loads and costs have minima {loads.min()} and {costs.min()}; allowed: from 0, and above 0"
        )
    return loads, costs


def _own_shares(loads: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return the shares where nobody steals."""
    shares = np.zeros((len(loads), len(loads)), np.int64)
    shares[np.arange(len(loads)), owners] = loads
    return shares


def _round(fractions: np.ndarray, loads: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return whole shares that sum to the loads."""
    shares = fractions.astype(np.int64)
    shares[np.arange(len(loads)), costs.argmin(axis=1)] += loads - shares.sum(axis=1)
    return shares


def _put_back(shares: np.ndarray, costs: np.ndarray, owners: np.ndarray, least_theft: int, limit: float) -> None:
    """Give thefts back that are too small, or without which owners finish before ``limit``; the smallest first."""
    times = finish_times(shares, costs)
    victims, thieves = np.nonzero(shares)
    is_theft = thieves != owners[victims]
    victims, thieves = victims[is_theft], thieves[is_theft]
    for theft in np.argsort(shares[victims, thieves], kind="stable"):
        victim, thief = victims[theft], thieves[theft]
        owner, edges = owners[victim], shares[victim, thief]
        later = times[owner] + costs[victim, owner] * edges
        if edges < least_theft or later <= limit:
            shares[victim, owner] += edges
            shares[victim, thief] = 0
            times[owner] = later
            times[thief] -= costs[victim, thief] * edges
