# SPDX-License-Identifier: Apache-2.0
"""Duplication: which vertices of other devices a device has copies of, and so how its part of a graph is numbered.

A device has the edges that leave its own vertices.  ``all``: it has a copy of every other vertex, so local ids are
global ids and nothing is converted; rows of copies are empty.  ``one-hop``: only of the vertices that its edges
mention; its own have the ids 0, 1, ... in ascending global id, the copies follow in ascending global id.
Pan, Wang, Wu, Yang, Owens, *Multi-GPU graph analytics* (2017), section III-C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from shoal.arrays import read_only
from shoal.errors import check_choice, check_integer
from shoal.graph import Graph
from shoal.strategies.ownership import Ownership, Rows
from shoal.strategies.partition import partition_graph
from shoal.strategies.subgraph import Edges, FarPart, Subgraph

__all__ = ["DUPLICATIONS", "Edges", "PartitionReport", "Subgraph", "build_subgraphs", "describe_partition"]

#: Bits of a mark: an edge of the device ends there, or comes in from there.
OUT, IN = np.uint8(1), np.uint8(2)


def build_subgraphs(
    graph: Graph,
    owner: Any,
    num_devices: int,
    duplication: str,
    *,
    with_in_edges: bool,
    num_threads: int | None = None,
) -> list[Subgraph]:
    """Return the part of each device.

    Parameters
    ----------
    owner
        The device of each vertex, or whatever else `partition_graph` makes it of.
    with_in_edges
        Whether a device also has the edges that enter its vertices, and copies of where they come from.

    Examples
    --------
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> first, second = build_subgraphs(path, [0, 0, 1, 1], 2, "one-hop", with_in_edges=False)
    >>> second.global_ids.tolist(), second.out_edges.indices.tolist()
    ([2, 3, 1], [2, 1, 0])
    >>> first.copy_here.tolist(), first.copy_there.tolist()  # vertex 1 has the id 2 at the second
    ([1], [2])
    """
    here = [True] * check_integer("num_devices", num_devices, 1)
    parts = build_parts(graph, owner, duplication, here, with_in_edges=with_in_edges, num_threads=num_threads)
    return [part for part in parts if isinstance(part, Subgraph)]


def build_parts(
    graph: Graph,
    owner: Any,
    duplication: str,
    here: Sequence[bool],
    *,
    with_in_edges: bool,
    num_threads: int | None = None,
) -> list[Subgraph | FarPart]:
    """Return the part of each device, whole of those that are ``here``; of others what all processes must know."""
    num_devices = len(here)
    check_choice("duplication", duplication, DUPLICATIONS)
    if num_threads is not None:
        check_integer("num_threads", num_threads, 1)
    ownership = Ownership.of(
        partition_graph(graph, num_devices, owner),
        num_devices,
        graph.vertex_dtype,
        with_address=duplication == "one-hop",
        num_threads=num_threads,
    )
    strategy = DUPLICATIONS[duplication](ownership)
    parts: list[Any] = []
    copies = []
    for device in range(num_devices):
        part = _build_part(graph, ownership, strategy, device, with_in_edges)
        copies.append(part.pop("copies"))
        parts.append(part if here[device] else _far_part(ownership, part))
    return [
        part if isinstance(part, FarPart) else Subgraph(**part, **_gather_copies(copies, part["device"]))
        for part in parts
    ]


def _far_part(ownership: Ownership, part: dict[str, Any]) -> FarPart:
    """Return what is kept of a part that another process has."""
    is_renumbered = part["global_ids"] is not None
    unknown = read_only(part["global_ids"][:0]) if is_renumbered else None
    return FarPart(part["device"], part["num_local"], ownership.vertices_of(part["device"]), unknown)


class Numbering(NamedTuple):
    """The vertices of one device by local id; ``local_ids`` by global id, None where they are the same."""

    owned: np.ndarray
    global_ids: np.ndarray | None
    owner: np.ndarray
    address: np.ndarray | None
    local_ids: np.ndarray | None


class Duplication(Protocol):
    """Numbers the vertices of a device."""

    is_renumbered: bool  # whether local ids are others than global ones, and depend on what edges mention

    def __init__(self, ownership: Ownership) -> None: ...

    def number(self, device: int, remote: np.ndarray) -> Numbering:
        """Number a device's vertices and copies, at least those of ``remote``; ``local_ids`` until the next call."""
        ...


class AllDuplication:
    """A copy of every vertex: ids stay what they are."""

    is_renumbered = False

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership

    def number(self, device: int, remote: np.ndarray) -> Numbering:
        """Return the ids as they are."""
        return Numbering(self.ownership.vertices_of(device), None, self.ownership.owner, None, None)


class OneHopDuplication:
    """Copies of the vertices that edges mention: new ids, the device's own vertices first."""

    is_renumbered = True

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership
        self.local_ids = np.empty_like(ownership.vertices)  # of the device at hand; stale for what it does not mention

    def number(self, device: int, remote: np.ndarray) -> Numbering:
        """Return new ids for the owned and the mentioned vertices."""
        vertices = self.ownership.vertices_of(device)
        global_ids = np.concatenate([vertices, remote])
        ids = np.arange(global_ids.size, dtype=global_ids.dtype)
        self.local_ids[global_ids] = ids
        owner, address = self.ownership.owner[global_ids], self.ownership.address[global_ids]
        return Numbering(ids[: vertices.size], global_ids, owner, address, self.local_ids)


DUPLICATIONS: dict[str, type[Duplication]] = {"all": AllDuplication, "one-hop": OneHopDuplication}


class Copies(NamedTuple):
    """The copies that a device has, by owner and ascending: their ids at the owner and here."""

    bounds: np.ndarray
    at_owner: np.ndarray
    here: np.ndarray


def _build_part(
    graph: Graph, ownership: Ownership, strategy: Duplication, device: int, with_in_edges: bool
) -> dict[str, Any]:
    """Return the fields of a subgraph that follow from its own edges, and the copies it has of other vertices."""
    rows = ownership.rows_of(device, graph)
    ownership.mark(rows, OUT)
    in_rows = None
    if with_in_edges and graph.is_directed:
        in_rows = ownership.rows_of(device, graph.reverse())
        ownership.mark(in_rows, IN)
    remote, marks = ownership.take_remote(device)
    numbering = strategy.number(device, remote)
    out_edges = _copy_edges(ownership, rows, numbering)
    in_edges = None if in_rows is None else _copy_edges(ownership, in_rows, numbering)
    if with_in_edges and not graph.is_directed:
        in_rows, in_edges = rows, out_edges
    return {
        "device": device,
        "num_devices": ownership.num_devices,
        "num_global": graph.num_vertices,
        "num_local": numbering.owner.size,
        "owned": read_only(numbering.owned),
        "global_ids": _read_only_or_none(numbering.global_ids),
        "owner": read_only(numbering.owner),
        "address": _read_only_or_none(numbering.address),
        "out_edges": out_edges,
        "in_edges": in_edges,
        "first_edges": rows.first_edges,
        "first_in_edges": None if in_rows is None else in_rows.first_edges,
        "border_sizes": read_only(ownership.count_by_owner(remote[marks & OUT != 0])),
        "copies": group_copies(ownership, numbering, remote),
    }


def _read_only_or_none(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else read_only(array)


def _copy_edges(ownership: Ownership, rows: Rows, numbering: Numbering) -> Edges:
    """Return rows with local ids; where these are global and the rows lie together in the graph, nothing is copied."""
    indptr = np.zeros(numbering.owner.size + 1, rows.offsets.dtype)
    indptr[1:][numbering.owned] = np.diff(rows.offsets)
    np.cumsum(indptr, out=indptr)
    part = rows.slice_of_graph() if numbering.local_ids is None else None
    if part is not None:
        weights = None if rows.weights is None else rows.weights[part]
        return Edges(read_only(indptr), rows.indices[part], weights)
    indices = np.empty(rows.num_edges, rows.indices.dtype)
    weights = None if rows.weights is None else np.empty(rows.num_edges, rows.weights.dtype)
    ownership.run_over(rows, "copy_edges", rows.indices, rows.weights, numbering.local_ids, indices, weights)
    return Edges(read_only(indptr), read_only(indices), _read_only_or_none(weights))


def group_copies(ownership: Ownership, numbering: Numbering, remote: np.ndarray) -> Copies:
    """Return the copies that a device has."""
    order = np.argsort(ownership.owner[remote], kind="stable")  # a radix sort, for 16 bits
    remote = remote[order]
    bounds = np.cumsum(np.append(0, ownership.count_by_owner(remote)))
    if numbering.local_ids is None:
        return Copies(bounds, remote, remote)
    return Copies(bounds, ownership.address[remote], numbering.local_ids[remote])


def _gather_copies(copies: Sequence[Copies], device: int) -> dict[str, Any]:
    """Return what the peers have copies of among the vertices of ``device``."""
    sizes = [peer.bounds[device + 1] - peer.bounds[device] for peer in copies]
    here = [peer.at_owner[peer.bounds[device] : peer.bounds[device + 1]] for peer in copies]
    there = [peer.here[peer.bounds[device] : peer.bounds[device + 1]] for peer in copies]
    arrays = {
        "copy_indptr": np.cumsum([0, *sizes], dtype=np.int64),
        "copy_here": np.concatenate(here),
        "copy_there": np.concatenate(there),
    }
    return {name: read_only(array) for name, array in arrays.items()}


@dataclass(frozen=True)
class PartitionReport:
    """How good a partition is: what each device has, and how much of the graph lies between devices.

    Parameters
    ----------
    vertices, edges : of each device, those it owns and those that leave them
    borders : for each device |B_i|, the distinct vertices of other devices that its edges mention
    cut_edges : stored edges whose ends are on different devices
    """

    num_devices: int
    vertices: tuple[int, ...]
    edges: tuple[int, ...]
    borders: tuple[int, ...]
    cut_edges: int

    @property
    def vertex_balance(self) -> float:
        """Vertices of the device that has most, over the mean; 1 where there are none."""
        return _balance(self.vertices)

    @property
    def edge_balance(self) -> float:
        """Edges of the device that has most, over the mean; 1 where there are none."""
        return _balance(self.edges)

    @property
    def cut_fraction(self) -> float:
        """Part of the stored edges that is cut."""
        return self.cut_edges / max(1, sum(self.edges))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of each device and of all, for JSON."""
        return asdict(self) | {
            "vertex_balance": self.vertex_balance,
            "edge_balance": self.edge_balance,
            "cut_fraction": self.cut_fraction,
            "border_total": sum(self.borders),
            "border_max": max(self.borders),
        }


def _balance(amounts: tuple[int, ...]) -> float:
    return max(amounts) * len(amounts) / sum(amounts) if any(amounts) else 1.0


def describe_partition(graph: Graph, owner: Any, num_devices: int) -> PartitionReport:
    """Return what each device gets by a partition, and what it cuts.

    Examples
    --------
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> report = describe_partition(path, [0, 0, 1, 1], 2)
    >>> report.edges, report.borders, report.cut_edges
    ((3, 3), (1, 1), 2)
    """
    owner = partition_graph(graph, num_devices, owner)
    ownership = Ownership.of(owner, num_devices, graph.vertex_dtype)
    edges, borders, num_cut = [], [], 0
    for device in range(num_devices):
        rows = ownership.rows_of(device, graph)
        ownership.mark(rows, OUT)
        edges.append(rows.num_edges)
        borders.append(ownership.take_remote(device)[0].size)
        num_cut += sum(ownership.run_over(rows, "count_cut", rows.indices, device, ownership.owner))
    vertices = tuple(np.diff(ownership.starts).tolist())
    return PartitionReport(num_devices, vertices, tuple(edges), tuple(borders), num_cut)
