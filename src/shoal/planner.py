# SPDX-License-Identifier: Apache-2.0
"""compare_strategies(): what each way to run an algorithm on several devices would take, before any is run.

Parts are built as a run builds them; state and buffers follow from the program's phases, and border and mail from the
parts, as `shoal.backends.cpu.border` lays them out.  Messages are those of the schedule, items a bound on what a device
sends (see `shoal.execution.volume`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from shoal.algorithms.arguments import both_ways, graph_of
from shoal.algorithms.betweenness import Betweenness, batch_width
from shoal.algorithms.bfs import BFS
from shoal.algorithms.components import Components
from shoal.algorithms.cores import CoreNumbers, KCore
from shoal.algorithms.eigenvector import Eigenvector
from shoal.algorithms.forest import forest_program
from shoal.algorithms.hits import Hits
from shoal.algorithms.katz import Katz
from shoal.algorithms.pagerank import PageRank
from shoal.algorithms.sssp import sssp_program
from shoal.algorithms.strong_components import Trim
from shoal.config import MAX_DEVICES, REFUSED, RESOLVED, RunConfig, parse_devices
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.exchanges import Sharing
from shoal.execution.choices import SEGMENT_REASON, choose
from shoal.execution.plans import sharing_of
from shoal.execution.volume import bound_volume
from shoal.footprint import INT64_BYTES, Footprint
from shoal.graph import Graph
from shoal.memory import sizes_of
from shoal.program import Program
from shoal.strategies.communication import COMMUNICATIONS, Schedule, make_schedule
from shoal.strategies.duplication import DUPLICATIONS, build_subgraphs
from shoal.strategies.partition import PARTITIONERS, partition_graph
from shoal.strategies.subgraph import Edges, Subgraph

#: The program that each algorithm runs by default; betweenness in batches as wide as those of all sources.
PROGRAMS: dict[str, Callable[[Graph], Program]] = {
    "bfs": lambda graph: BFS(),
    "sssp": sssp_program,
    "cc": lambda graph: Components(can_skip=not graph.is_directed),
    "bc": lambda graph: Betweenness(batch_width(graph.num_vertices, graph.num_vertices)),
    "pagerank": lambda graph: PageRank("float64", 100, False, False),
    "eigenvector": lambda graph: Eigenvector(1000, False),
    "katz": lambda graph: Katz(1000, False, False),
    "hits": lambda graph: Hits(1000, False, graph.is_directed),
    "scc": lambda graph: Trim(),  # it sends more than the searches do
    "msf": forest_program,
    "core": lambda graph: CoreNumbers(),
    "kcore": lambda graph: KCore(),
}
#: Algorithms whose program runs on the graph with both directions of every edge.
GO_BOTH_WAYS = ("core", "kcore")


@dataclass(frozen=True)
class PlannedRun:
    """What one combination of strategies takes.

    Parameters
    ----------
    graph_bytes : of each device: its edges and the tables of its part, also where they are the graph's own memory
    state_bytes, buffer_bytes, exchange_bytes : of each device: fields, buffers of the run, border and mail
    messages : of all devices in a superstep, at most
    items : that each device sends at most in a ``"run"`` or ``"superstep"``, as ``items_per`` says
    is_auto : whether ``auto`` takes it
    """

    partition: str
    duplication: str
    communication: str
    graph_bytes: tuple[int, ...]
    state_bytes: tuple[int, ...]
    buffer_bytes: tuple[int, ...]
    exchange_bytes: tuple[int, ...]
    messages: int
    items: tuple[int, ...]
    items_per: str
    is_auto: bool

    @property
    def memory_bytes(self) -> tuple[int, ...]:
        """All that each device holds."""
        parts = (self.graph_bytes, self.state_bytes, self.buffer_bytes, self.exchange_bytes)
        return tuple(map(sum, zip(*parts, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of each device and the largest, for JSON."""
        largest = {"memory_bytes_max": max(self.memory_bytes), "items_max": max(self.items)}
        return asdict(self) | {"memory_bytes": self.memory_bytes} | largest


@dataclass(frozen=True)
class Comparison:
    """The combinations that are possible, why ``auto`` takes the one it takes, and what is not possible here."""

    algorithm: str
    num_devices: int
    runs: list[PlannedRun]
    reason: str
    impossible: dict[str, str]  # partitions, with the reason


def compare_strategies(
    graph: Graph, num_devices: int, algorithm: str = "bfs", *, fanout: int = 1, partition_seed: int = 0
) -> Comparison:
    """Return what every combination of strategies would take to run an algorithm on several devices.

    Examples
    --------
    >>> import shoal
    >>> compared = compare_strategies(shoal.generate.grid(4, 4), 2, "pagerank")
    >>> chosen = next(run for run in compared.runs if run.is_auto)
    >>> chosen.partition, chosen.duplication, chosen.communication, chosen.messages, chosen.items
    ('segment', 'one-hop', 'selective', 2, (4, 4))
    """
    check_integer("devices", num_devices, 2, MAX_DEVICES)
    check_choice("algorithm", algorithm, PROGRAMS)
    config = RunConfig(devices=f"cpu:{num_devices}", fanout=fanout, partition_seed=partition_seed)
    if algorithm in GO_BOTH_WAYS:
        graph = graph_of(both_ways(graph))
    program = PROGRAMS[algorithm](graph)
    sharings = [sharing_of(program, phase, config.direction) for phase in program.phases()]
    auto = choose(sharings, config, "cpu", num_devices)
    footprints = {duplication: Footprint(sizes_of(graph), config, duplication) for duplication in DUPLICATIONS}
    runs: list[PlannedRun] = []
    impossible: dict[str, str] = {}
    for partition in PARTITIONERS:
        try:
            owner = partition_graph(graph, num_devices, partition, partition_seed)
        except ArgumentError as error:  # it needs what is not installed
            impossible[partition] = str(error)
            continue
        planner = _Planner(graph, program, sharings, owner, config, footprints)
        for duplication, communication in _allowed(sharings, config):
            takes = (partition, duplication, communication)
            is_auto = takes == (RESOLVED["partition"], auto.duplication, auto.communication)
            runs.append(PlannedRun(*takes, **planner.plan(duplication, communication), is_auto=is_auto))
    return Comparison(algorithm, num_devices, runs, f"{auto.reason}; {SEGMENT_REASON}", impossible)


def _allowed(sharings: list[Sharing], config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield the duplications and communications that go together and that the program can do with."""
    for duplication, communication in itertools.product(DUPLICATIONS, COMMUNICATIONS):
        if (("duplication", duplication), ("communication", communication)) in REFUSED:
            continue
        try:
            asked = replace(config, duplication=duplication, communication=communication)
            choose(sharings, asked, "cpu", parse_devices(config.devices).num_devices)
        except ArgumentError:
            continue
        yield duplication, communication


class _Planner:
    """One partition of a graph, and what strategies take on it."""

    def __init__(
        self, graph: Graph, program: Program, sharings: list[Sharing], owner: np.ndarray, config: RunConfig,
        footprints: dict[str, Footprint],
    ) -> None:  # fmt: skip
        self.graph, self.program, self.sharings, self.owner, self.config = graph, program, sharings, owner, config
        self.footprints = footprints
        self.parts: dict[str, list[Subgraph]] = {}

    def plan(self, duplication: str, communication: str) -> dict[str, Any]:
        """Return the numbers of a `PlannedRun`."""
        parts = self._parts(duplication)
        schedule = make_schedule(communication, len(parts), self.config.fanout)
        volume = bound_volume(self.sharings, schedule, parts)
        footprint = self.footprints[duplication]
        stages = [footprint.resized(part.num_local).stage(self.program, begins_everywhere=False) for part in parts]
        return {
            "graph_bytes": tuple(map(_part_bytes, parts)),
            "state_bytes": tuple(stage.state_bytes for stage in stages),
            "buffer_bytes": tuple(stage.buffer_bytes for stage in stages),
            "exchange_bytes": self._exchange_bytes(footprint, schedule, parts),
            "messages": volume.messages,
            "items": volume.items,
            "items_per": volume.per,
        }

    def _parts(self, duplication: str) -> list[Subgraph]:
        if duplication not in self.parts:
            footprint = self.footprints[duplication]
            pulls = any(footprint.source(self.program, phase).uses_in_edges for phase in self.program.phases())
            self.parts[duplication] = build_subgraphs(
                self.graph, self.owner, parse_devices(self.config.devices).num_devices, duplication, with_in_edges=pulls
            )
        return self.parts[duplication]

    def _exchange_bytes(self, footprint: Footprint, schedule: Schedule, parts: Sequence[Subgraph]) -> tuple[int, ...]:
        """Return the most that border and mail of each device take in a phase."""
        from shoal.backends.loops.control import world_size
        from shoal.backends.loops.mail import mail_sizes

        mail = mail_sizes(list(parts), schedule).sum(axis=1)
        num_local = np.array([part.num_local for part in parts])
        words = -(-num_local // 64)
        id_bytes = self.graph.vertex_dtype.itemsize
        world = INT64_BYTES * world_size(len(parts)) // len(parts)
        most = np.zeros(len(parts), np.int64)
        for phase in self.program.phases():
            source = footprint.source(self.program, phase)
            bits = words if source.flow.pulls and parts[0].global_ids is None else 0
            sent = mail * (id_bytes + footprint.bytes_per_vertex(self.program, source.mailed))
            kept = num_local * (id_bytes + footprint.bytes_per_vertex(self.program, source.remembered))
            most = np.maximum(most, sent + kept + INT64_BYTES * (2 * words + bits) + world)
        return tuple(most.tolist())


def _part_bytes(part: Subgraph) -> int:
    """Return the bytes of a device's edges, of its tables, and of the table of who has copies."""
    seen: dict[int, np.ndarray] = {}
    for value in vars(part).values():
        for array in value if isinstance(value, Edges) else (value,):
            if isinstance(array, np.ndarray):
                seen[id(array)] = array  # an undirected graph's edges are those of both directions
    copies = (part.num_local + 1) * INT64_BYTES + part.copy_here.size * (2 + part.copy_there.itemsize)
    return sum(array.nbytes for array in seen.values()) + copies
