# SPDX-License-Identifier: Apache-2.0
"""The devices of an MPI job as a backend: this rank's are CPU devices, of the others it knows what a run has to."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Session, Types
from shoal.backends.cpu.backend import CPUBackend
from shoal.backends.cpu.device import CPUDevice
from shoal.backends.cpu.kernels.meeting import compile_meetings
from shoal.backends.cpu.kernels.relay import compile_relay
from shoal.backends.cpu.phases import LoadedPhase
from shoal.backends.cpu.threads import available_cores
from shoal.backends.mpi.fleet import OPENING_SECONDS, Fleet, find_fleet
from shoal.backends.mpi.session import RankSession
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.program import Field, Phase, Program

if TYPE_CHECKING:
    from shoal.config import DeviceSpec
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Scheme
    from shoal.strategies.subgraph import FarPart


class RankDevice(CPUDevice):
    """Some cores of a rank, this one or another."""

    kind = "mpi"

    def __init__(self, num_threads: int, number: int, rank: int, *, is_here: bool) -> None:
        super().__init__(num_threads, number)
        self.rank, self.is_here = rank, is_here

    def place(self, graph: Graph, part: Any = None) -> Any:
        """Return the part of the graph that is this device's; of one of another rank, what is known of it."""
        return super().place(graph, part) if self.is_here else FarShard(graph, self, part)


@dataclass
class FarShard:
    """What this rank knows of a shard of another one."""

    graph: Graph
    device: RankDevice
    part: FarPart

    @property
    def num_local(self) -> int:
        """Vertices that the device has: its own and copies."""
        return self.part.num_local


class MPIBackend:
    """CPU devices of all processes of an MPI job."""

    kind = "mpi"
    captures = True
    least_shared_edges = 0  # no device has the edges of others

    def __init__(self) -> None:
        self.lock = threading.Lock()

    @cached_property
    def _cpu(self) -> CPUBackend:
        return CPUBackend()

    @property
    def ranks(self) -> Fleet:
        """The processes of the job."""
        return find_fleet()

    def make_devices(self, spec: DeviceSpec) -> list[RankDevice]:
        """Return the devices of all ranks, in the ranks' order; a rank's share the cores that it has."""
        fleet = find_fleet()
        per_rank = spec.num_devices // fleet.size
        cores = max(1, len(available_cores()) // fleet.ranks_here)
        threads = spec.threads_per_device or max(1, cores // per_rank)
        everywhere = np.concatenate(fleet.gather(np.array([threads]), OPENING_SECONDS))
        return [
            RankDevice(int(everywhere[rank]), rank * per_rank + k, rank, is_here=rank == fleet.rank)
            for rank in range(fleet.size)
            for k in range(per_rank)
        ]

    def load(
        self, program: Program, phase: Phase, types: Types, direction: str, duplication: str | None,
        load_balance: str, priority: str | None, stealing: str = "none",
    ) -> LoadedPhase:  # fmt: skip
        """Compile a phase for the types of a graph, or find it compiled."""
        found = find_fleet().do(
            lambda: self._cpu.load(program, phase, types, direction, duplication, load_balance, priority, stealing)
        )
        find_fleet().do(compile_relay if found.source.is_asynchronous else compile_meetings)
        return found

    def begin(
        self, shards: Sequence[Any], fields: dict[str, Field], phases: Sequence[tuple[Phase, LoadedPhase]],
        schedule: Schedule | None, state: dict[str, Any], knobs: tuple[float, float], title: str, scheme: Scheme,
    ) -> Session:  # fmt: skip
        """Put a program's state on the devices of this rank, when all ranks have come as far."""
        if schedule is None:
            return self._cpu.begin(shards, fields, phases, None, state, knobs, title, scheme)
        fleet = find_fleet()
        with fleet.telling():
            _check_alike(fleet, f"{title} on {_describe(shards)} by {schedule.name}")
            return RankSession(
                fleet, shards, fields, phases, schedule, state, knobs, title, self.lock,
                has_edges_room=scheme.may_have_edges_room,
            )  # fmt: skip


def _check_alike(fleet: Fleet, what: str) -> None:
    """Refuse to run different things on the ranks of a job: they would wait for one another's messages for ever."""
    told = fleet.gather_text(what, is_opening=True)
    other = next((rank for rank, text in enumerate(told) if text != told[0]), None)
    if other is not None:
        raise ArgumentError(
            "all ranks must make the same calls in the same order: "
            f"rank 0 runs {told[0]}, and rank {other} {told[other]}"
        )


def _describe(shards: Sequence[Any]) -> str:
    """Return in words what tells one graph, and one way to divide it, from another."""
    graph = shards[0].graph
    digest = 0
    for shard in shards:
        digest = zlib.crc32(np.ascontiguousarray(shard.part.owned_ids).data, digest)
    kind = "directed" if graph.is_directed else "undirected"
    return (f"a graph of {graph.num_vertices} vertices and {graph.num_edges} stored edges, {kind}, on {len(shards)} "
            f"devices, divided as {digest:08x}")  # fmt: skip
