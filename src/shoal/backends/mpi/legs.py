# SPDX-License-Identifier: Apache-2.0
"""Legs: what ranks send one another in the rounds of a schedule, and where it lies in each one's memory.

A *place* is the mail of a sender for a receiver, or, where all are told the same, of whose contribution it is, twice.
A leg is all places that one rank has for another in a round, in an order that both know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule

Place = tuple[int, int]


class Leg(NamedTuple):
    """What this rank sends to another one in a round, and what it receives."""

    rank: int
    sent: list[Place]
    received: list[Place]


def find_legs(schedule: Schedule, rank_of: Sequence[int], rank: int, *, is_routed: bool) -> list[list[Leg]]:
    """Return the legs of every round, for a rank that has the devices which ``rank_of`` says."""
    rounds = []
    for round_number in range(schedule.num_rounds):
        sent: dict[int, set[Place]] = defaultdict(set)
        received: dict[int, set[Place]] = defaultdict(set)
        for receiver in range(schedule.num_devices):
            for peer in schedule.peers(round_number, receiver).tolist():
                here, there = rank_of[peer], rank_of[receiver]
                if here == there or rank not in (here, there):
                    continue
                origin = origin_of(schedule, peer, round_number)
                place = (peer, receiver) if is_routed else (origin, origin)
                (sent[there] if here == rank else received[here]).add(place)
        ranks = sorted(sent.keys() | received.keys())
        rounds.append([Leg(other, sorted(sent[other]), sorted(received[other])) for other in ranks])
    return rounds


def origin_of(schedule: Schedule, sender: int, round_number: int) -> int:
    """Return whose contribution a device sends in a round: in a ring that which started so many places back."""
    if schedule.forwards == "last":
        return (sender - round_number) % schedule.num_devices
    return sender


def lay_out_contributions(
    schedule: Schedule, rank_of: Sequence[int], rank: int, length: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return where every device's contribution lies on a rank, where all are told the same, how long it is, and all.

    Those of the rank's own devices have a place for themselves.  Others share places, as a contribution is needed from
    the round in which it comes to the last one in which it is read here or sent on: so a butterfly's take as many as
    come in one round, and a ring's hardly more than there are devices here.
    """
    slots = {device: number for number, device in enumerate(d for d, r in enumerate(rank_of) if r == rank)}
    num_own = len(slots)
    free_from: list[int] = []  # by shared place: the first round in which it is free
    for origin, (first, last) in sorted(_rounds_needed(schedule, rank_of, rank).items(), key=lambda item: item[1]):
        number = next((n for n, end in enumerate(free_from) if end <= first), len(free_from))
        free_from[number : number + 1] = [last + 1]
        slots[origin] = num_own + number
    count = schedule.num_devices
    places = np.zeros((count, count), np.int64)
    for device, number in slots.items():
        places[device, device] = number * length
    lengths = np.zeros(count, np.int64)
    lengths[[device for device, number in slots.items() if number < num_own]] = length
    return places.reshape(-1), lengths, (num_own + len(free_from)) * length


def _rounds_needed(schedule: Schedule, rank_of: Sequence[int], rank: int) -> dict[int, tuple[int, int]]:
    """Return for each contribution that comes from another rank the first and the last round in which it is used."""
    needed: dict[int, tuple[int, int]] = {}
    for round_number in range(schedule.num_rounds):
        for receiver in range(schedule.num_devices):
            for peer in schedule.peers(round_number, receiver).tolist():
                origin = origin_of(schedule, peer, round_number)
                if rank_of[origin] != rank and rank in (rank_of[receiver], rank_of[peer]):
                    first = needed.get(origin, (round_number, 0))[0]
                    needed[origin] = (first, round_number)
    return needed
