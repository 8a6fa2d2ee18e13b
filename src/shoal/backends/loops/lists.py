# SPDX-License-Identifier: Apache-2.0
"""The exchange of lists: before a phase that looks at the lists of neighbours of both ends of an edge.

A device has the edges of its own vertices; of the vertices at their other ends it needs the lists too.  Owners send
them, along the schedule of all exchanges: to whoever mentions a vertex where messages are routed, and where everybody
is told everything, those of all that anybody mentions.  An item is a vertex with its list: its id, a length, and as
many ids.  What a list says of vertices that the receiver does not have is dropped there: no edge of its own leads to
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.subgraph import Subgraph

LENGTH_BYTES = 8  # of a list's length in a message


class Traffic(NamedTuple):
    """What a device sends in an exchange of lists, and how many items it takes of what it receives."""

    messages: int
    items: int
    num_bytes: int
    combined: int


class Lists(NamedTuple):
    """Vertices, how many neighbours each has, and these, one list behind the other."""

    vertices: np.ndarray
    lengths: np.ndarray
    ids: np.ndarray


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """Lists of neighbours by a device's ids: of its own vertices and of those that its edges mention."""

    indptr: np.ndarray
    indices: np.ndarray
    traffic: Traffic


def exchange_lists(parts: Sequence[Subgraph], schedule: Schedule) -> list[NeighbourLists]:
    """Return the lists that each device has after the exchange."""
    sizes, taken = measure_lists(parts, schedule)
    traffic = count_traffic(sizes, taken, schedule)
    return [
        NeighbourLists(*collect_lists(part, [lists_for(other, part.device) for other in parts if other is not part]),
                       traffic[part.device])
        for part in parts
    ]  # fmt: skip


def collect_lists(part: Subgraph, received: Iterable[Lists]) -> tuple[np.ndarray, np.ndarray]:
    """Return one device's lists: its own, and those that the others have sent."""
    edges = part.out_edges
    found = [Lists(np.asarray(part.owned), *_rows(edges.indptr, edges.indices, part.owned))]
    found += [_taken(part, lists) for lists in received]
    lengths = np.zeros(part.num_local, np.int64)
    for vertices, counts, _ in found:
        lengths[vertices] = counts
    indptr = np.zeros(part.num_local + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    indices = np.empty(int(indptr[-1]), edges.indices.dtype)
    for vertices, counts, ids in found:
        indices[_places(indptr[vertices], counts)] = ids
    return indptr, indices


def lists_for(part: Subgraph, receiver: int) -> Lists:
    """Return what a device sends to another: that one's ids of vertices, and their lists, by the graph's ids."""
    span = slice(*part.copy_indptr[receiver : receiver + 2])
    counts, ids = _rows(part.out_edges.indptr, part.out_edges.indices, part.copy_here[span])
    return Lists(part.copy_there[span], counts, ids if part.global_ids is None else part.global_ids[ids])


def _taken(part: Subgraph, lists: Lists) -> Lists:
    """Return what a device takes of lists that it receives, by its own ids."""
    if part.global_ids is None:
        return lists
    ids = find_local(part, lists.ids)
    is_known = ids >= 0
    row = np.repeat(np.arange(len(lists.lengths)), lists.lengths)
    lengths = np.bincount(row[is_known], minlength=len(lists.lengths))
    return Lists(lists.vertices, lengths, ids[is_known])


def find_local(part: Subgraph, global_ids: np.ndarray) -> np.ndarray:
    """Return a device's own number of each of the graph's ids, -1 for those that it does not have."""
    assert part.global_ids is not None
    found = np.full(len(global_ids), -1, np.int64)
    for begin, end in ((0, part.num_owned), (part.num_owned, part.num_local)):  # both ascend
        names = part.global_ids[begin:end]
        if len(names):
            place = np.minimum(np.searchsorted(names, global_ids), len(names) - 1)
            is_here = names[place] == global_ids
            found[is_here] = begin + place[is_here]
    return found


def _rows(indptr: np.ndarray, indices: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of some rows, and what is in them, one behind the other."""
    begins = indptr[vertices].astype(np.int64)
    counts = indptr[vertices.astype(np.int64) + 1] - begins
    return counts, indices[_places(begins, counts)]


def _places(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return ``begins[i], begins[i] + 1, ...``, so many of each, one behind the other."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(begins - before, counts)


def count_traffic(sizes: np.ndarray, taken: np.ndarray, schedule: Schedule) -> list[Traffic]:
    """Return what each device sends and takes, as the schedule says."""
    count = schedule.num_devices
    sent = np.zeros((count, 3), np.int64)
    held = [{device} for device in range(count)]
    for round_number in range(schedule.num_rounds):
        before = [set(origins) for origins in held]
        for receiver in range(count):
            for sender in map(int, schedule.peers(round_number, receiver)):
                origins = {"own": {sender}, "all": before[sender], "last": {(sender - round_number) % count}}
                carried = origins[schedule.forwards]
                sent[sender, 0] += 1
                sent[sender, 1:] += sum(sizes[origin, receiver if schedule.is_routed else origin] for origin in carried)
                held[receiver] |= carried
    return [
        Traffic(messages, items, num_bytes, combined)
        for (messages, items, num_bytes), combined in zip(sent.tolist(), taken.tolist(), strict=True)
    ]


def measure_lists(parts: Sequence[Subgraph], schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Return the items and bytes that each part has for each device, or for all: for itself; and what each takes."""
    is_routed, count = schedule.is_routed, schedule.num_devices
    sizes = np.zeros((count, count, 2), np.int64)
    taken = np.zeros(count, np.int64)
    for part in parts:
        taken += np.diff(part.copy_indptr)
        peers = range(count) if is_routed else [part.device]
        for peer in peers:
            span = slice(*part.copy_indptr[peer : peer + 2])
            vertices = part.copy_here[span] if is_routed else np.unique(part.copy_here)
            ends = vertices.astype(np.int64) + 1
            num_ids = int((part.out_edges.indptr[ends] - part.out_edges.indptr[vertices]).sum())
            id_bytes = part.out_edges.indices.itemsize
            num_bytes = num_ids * id_bytes + len(vertices) * (id_bytes + LENGTH_BYTES)
            sizes[part.device, peer] = len(vertices), num_bytes
    return sizes, taken
