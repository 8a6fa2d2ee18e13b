# SPDX-License-Identifier: Apache-2.0
"""Subgraph: a device's part of a graph, as plain arrays that a device can be given, a file hold or a message carry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np


class Edges(NamedTuple):
    """Rows over all local ids, each in the order of the graph; those of copies are empty."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A device's part of a graph: the vertices it owns, their edges, copies of other vertices, and who copies its own.

    Its arrays are read-only; ids and offsets have the types of the graph's.

    Parameters
    ----------
    num_global, num_local : vertices of the whole graph; owned ones and copies
    owned : local ids of the owned vertices, ascending, as their global ids are
    global_ids : of each local id, None where they are the same
    owner : device of each local id, uint16
    address : of each local id its local id at its owner, None where they are the same
    out_edges : the edges that leave owned vertices
    in_edges : those that enter them, by destination, if asked for; of an undirected graph ``out_edges`` itself
    first_edges, first_in_edges : where the row of each owned vertex begins in ``indices`` of the graph, or its reverse
    copy_indptr, copy_here, copy_there
        ``copy_here[copy_indptr[p]:copy_indptr[p + 1]]`` are the owned vertices that the edges of peer p mention,
        ascending; the same places of ``copy_there`` are the ids of their copies at p.
    border_sizes : for each peer the number of its vertices that ``out_edges`` mention, int64
    """

    device: int
    num_devices: int
    num_global: int
    num_local: int
    owned: np.ndarray
    global_ids: np.ndarray | None
    owner: np.ndarray
    address: np.ndarray | None
    out_edges: Edges
    in_edges: Edges | None
    first_edges: np.ndarray
    first_in_edges: np.ndarray | None
    copy_indptr: np.ndarray
    copy_here: np.ndarray
    copy_there: np.ndarray
    border_sizes: np.ndarray

    @property
    def num_owned(self) -> int:
        """Number of owned vertices."""
        return self.owned.size

    @property
    def owned_ids(self) -> np.ndarray:
        """The graph's ids of the owned vertices, ascending."""
        return self.owned if self.global_ids is None else self.global_ids[self.owned]

    @cached_property
    def owned_bits(self) -> np.ndarray:
        """The owned vertices as a bitmap, 64 local ids to a word."""
        flags = np.zeros((self.num_local + 63) // 64 * 64, bool)
        flags[self.owned] = True
        bits = np.packbits(flags, bitorder="little").view(np.uint64)
        bits.flags.writeable = False
        return bits

    @property
    def num_edges(self) -> int:
        """Number of edges that leave owned vertices."""
        return self.out_edges.indices.size

    def edge_ids(self) -> np.ndarray:
        """Return the place in ``graph.indices`` of each edge of ``out_edges``."""
        return _places(self.out_edges, self.owned, self.first_edges)

    def in_edge_ids(self) -> np.ndarray | None:
        """Return the place in ``graph.reverse().indices`` of each edge of ``in_edges``, None without them."""
        if self.in_edges is None or self.first_in_edges is None:
            return None
        return _places(self.in_edges, self.owned, self.first_in_edges)

    def copies(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each local id where its copies begin, and of each copy its device and its id there."""
        peers = np.repeat(np.arange(self.num_devices, dtype=np.uint16), np.diff(self.copy_indptr))
        order = np.argsort(self.copy_here, kind="stable")
        offsets = np.zeros(self.num_local + 1, np.int64)
        np.cumsum(np.bincount(self.copy_here, minlength=self.num_local), out=offsets[1:])
        return offsets, peers[order], self.copy_there[order]

    def find_owned(self, vertices: np.ndarray | None) -> np.ndarray:
        """Return the local ids of those global ids that the device owns; of all that it owns for None."""
        if vertices is None:
            return self.owned
        if self.global_ids is None:
            return vertices[self.owner[vertices] == self.device]
        return _positions(self.global_ids[: self.num_owned], vertices)

    def find_local(self, vertices: np.ndarray | None) -> np.ndarray | None:
        """Return the local ids of those global ids that the device has; None for all."""
        if vertices is None or self.global_ids is None:
            return vertices
        copies = _positions(self.global_ids[self.num_owned :], vertices) + self.num_owned
        return np.concatenate([self.find_owned(vertices), copies])


@dataclass(frozen=True, eq=False)
class FarPart:
    """What a process knows of a part that another one has: whose it is, what it owns, how many vertices it has."""

    device: int
    num_local: int
    owned_ids: np.ndarray
    global_ids: np.ndarray | None  # none of them are known; None where they would be the graph's


def _positions(ascending: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where those of ``wanted`` that are there stand in an array."""
    places = np.searchsorted(ascending, wanted.astype(ascending.dtype, copy=False))  # of one type, or all are converted
    inside = places < len(ascending)
    places, wanted = places[inside], wanted[inside]
    return places[ascending[places] == wanted]


def _places(edges: Edges, owned: np.ndarray, first_edges: np.ndarray) -> np.ndarray:
    begin, end = edges.indptr[owned], edges.indptr[1:][owned]
    places = np.arange(edges.indices.size, dtype=edges.indptr.dtype)
    places += np.repeat(first_edges - begin, end - begin)
    return places
