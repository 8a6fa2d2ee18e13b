# SPDX-License-Identifier: Apache-2.0
"""Volume: how many messages and items devices send one another at most, before a run.

An item is a vertex with its values.  A collection carries what edges mention of other devices, |B_i| vertices at most;
a mirror and an announced frontier a device's own vertices, to those who have copies; a replication any vertex.  Where
messages are not routed each goes to all others, and where they are sent on, with everything that came before.
A phase of one superstep, or one in which a vertex joins once and keeps its first value, does so once in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.exchanges import Sharing
from shoal.strategies.communication import Schedule
from shoal.strategies.subgraph import Subgraph

_DIRECTIONS = ("push", "pull")


@dataclass(frozen=True)
class Volume:
    """What devices send at most.

    Parameters
    ----------
    messages : of all devices in a superstep
    items : of each device, in what ``per`` says: ``"run"`` or ``"superstep"``
    """

    messages: int
    items: tuple[int, ...]
    per: str


def bound_volume(sharings: Sequence[Sharing], schedule: Schedule, parts: Sequence[Subgraph]) -> Volume:
    """Return what the phases of a program make devices send, with the parts that they have of a graph."""
    bounds = {kind: _items(kind, schedule, parts) for kind in ("collect", "mirror", "announce", "bits", "replicate")}
    is_renumbered = parts[0].global_ids is not None
    messages, per_superstep, per_run = 0, np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    for sharing in sharings:
        kinds = {direction: _kinds(sharing, direction, is_renumbered) for direction in _DIRECTIONS}
        messages = max(messages, *(len(found) * schedule.num_messages for found in kinds.values()))
        for found in kinds.values():
            per_superstep = np.maximum(per_superstep, sum((bounds[kind] for kind in found), np.zeros_like(per_run)))
        once = [max(found.count(kind) for found in kinds.values()) for kind in bounds]
        per_run = per_run + sum(count * bound for count, bound in zip(once, bounds.values(), strict=True))
    is_once = all(map(_happens_once, sharings))
    items = per_run if is_once else per_superstep
    return Volume(messages, tuple(items.tolist()), "run" if is_once else "superstep")


def _kinds(sharing: Sharing, direction: str, is_renumbered: bool) -> list[str]:
    """Return the exchanges of a superstep that goes in one direction, by kind."""
    found: list[str] = []
    for number, operator in enumerate(sharing.operators):
        stated = operator.options.get("direction", "push")
        pulls = operator.kind == "advance" and (direction if stated == "auto" else stated) == "pull"
        # A pull writes at a device's own vertices only: what a free one collects, it collects in a push.
        skipped = ("collect", "replicate") if pulls and stated == "auto" else ()
        found += [exchange.kind for exchange in sharing.exchanges(number) if exchange.kind not in skipped]
        if pulls and sharing.asks_frontier(number):
            as_ids = is_renumbered or sharing.announced(number) or sharing.read_in_serial
            found.append("announce" if as_ids else "bits")
    return found


def _happens_once(sharing: Sharing) -> bool:
    """Whether a phase sends a vertex's values once at most."""
    phase = sharing.phase
    collected = {name for number in range(len(sharing.operators)) for name in sharing.collected(number)}
    keeps_first = all(sharing.combiner(name) == "first" for name in collected)
    return phase.max_supersteps == 1 or (phase.joins == 1 and keeps_first and not sharing.replicated)


def _items(kind: str, schedule: Schedule, parts: Sequence[Subgraph]) -> np.ndarray:
    """Return how many items each device sends at most in one exchange."""
    num_vertices = parts[0].num_global
    if schedule.is_routed and kind != "bits":
        if kind == "collect":
            return np.array([part.border_sizes.sum() for part in parts])
        return np.array([part.copy_here.size for part in parts])
    own = {"collect": [int(part.border_sizes.sum()) for part in parts], "replicate": [num_vertices] * len(parts)}
    made = own.get(kind, [part.num_owned for part in parts])
    items = np.zeros(len(parts), np.int64)
    for round_number in range(schedule.num_rounds):
        for receiver in range(len(parts)):
            for sender in schedule.peers(round_number, receiver):
                items[sender] += _sent(int(sender), round_number, schedule, made, num_vertices)
    return items


def _sent(sender: int, round_number: int, schedule: Schedule, made: list[int], num_vertices: int) -> int:
    """Return what one message of a round has at most, given what each device made itself."""
    if schedule.forwards == "all" and round_number > 0:
        return num_vertices
    return made[(sender - round_number) % len(made)] if schedule.forwards == "last" else made[sender]
