# SPDX-License-Identifier: Apache-2.0
"""GPUs as a backend: its devices, its compiled phases and their runs, by the names that execution knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Alone, Session, Types
from shoal.backends.cuda.channels import Channels, Ends
from shoal.backends.cuda.device import CUDADevice, Shard, find_devices, in_whole_words
from shoal.backends.cuda.hubs import HubOrder, hub_bytes, moved_fields
from shoal.backends.cuda.many import ManyGPUs, ManyRuns
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.backends.cuda.phases import LoadedPhase, load_phase
from shoal.backends.cuda.room import Room
from shoal.backends.cuda.worklist_run import WorklistRun
from shoal.machine import import_cupy
from shoal.program import Constant, Field, Phase, Program, Scalar, Vertex

if TYPE_CHECKING:
    from shoal.config import DeviceSpec
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance, Scheme


class CUDABackend:
    """NVIDIA GPUs."""

    kind = "cuda"
    captures = False  # what a phase has kept lies in the GPU's memory
    least_shared_edges = 0
    ranks = Alone()

    def make_devices(self, spec: DeviceSpec) -> list[CUDADevice]:
        """Return the GPUs that are asked for."""
        return find_devices(spec.numbers)

    def load(
        self, program: Program, phase: Phase, types: Types, direction: str, duplication: str | None,
        load_balance: str, priority: str | None, stealing: str = "none",
    ) -> LoadedPhase:  # fmt: skip
        """Write a phase for the types of a graph, or find it written; with ``duplication`` for several devices.

        With ``stealing`` these visit edges for one another.
        """
        return load_phase(program, phase, types, direction, duplication, load_balance, priority, stealing)

    def begin(
        self, shards: Sequence[Shard], fields: dict[str, Field], phases: Sequence[tuple[Phase, LoadedPhase]],
        schedule: Schedule | None, state: dict[str, Any], knobs: tuple[float, float], title: str, scheme: Scheme,
    ) -> Session:  # fmt: skip
        """Put a program's state on its GPUs."""
        if schedule is None:
            return OneGPU(shards[0], fields, phases, state, knobs, title, scheme)
        return ManyGPUs(shards, fields, phases, schedule, state, knobs, title)


class OneGPU:
    """A program on one GPU, which has its whole state."""

    def __init__(
        self, shard: Shard, fields: dict[str, Field], phases: Sequence[tuple[Phase, LoadedPhase]],
        state: dict[str, Any], knobs: tuple[float, float], title: str, scheme: Scheme,
    ) -> None:  # fmt: skip
        self.shard, self.fields, self.phases, self.knobs = shard, fields, phases, knobs
        num_bytes = {name: value.nbytes for name, value in state.items() if isinstance(value, np.ndarray)}
        self.constant_bytes = sum(num_bytes[name] for name in num_bytes if isinstance(fields[name], Constant))
        sources = [(phase, code.source) for phase, code in phases]
        self.room = Room(title, shard, sources, sum(num_bytes.values()), scheme)
        self.moved: frozenset[str] = frozenset()  # the fields whose values are in hub order
        with shard.device.use():
            self.room.check()
            self.state = self.room.fit(lambda: self._upload(state))
        self.kept: dict[str, Any] = {}  # the frontiers of a phase, for a later one to replay

    def _upload(self, state: dict[str, Any]) -> dict[str, Any]:
        """Copy the graph and then the state: turning edges round takes room that the state may have afterwards."""
        cupy = import_cupy()
        self.shard.edges(incoming=False)
        if any(code.uses_in_edges for _, code in self.phases):
            self.shard.edges(incoming=True)
        self._take_hub_order()
        uploaded = {name: cupy.asarray(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        for name in self.moved:
            uploaded[name] = uploaded[name][self.shard.hubs.order]
        return {**state, **{name: in_whole_words(value) for name, value in uploaded.items()}}

    def _take_hub_order(self) -> None:
        """Let an optimized graph have its vertices in hub order, if the program allows it and there is room."""
        graph = self.shard.graph
        moved = moved_fields(tuple(code for _, code in self.phases)) if graph.is_optimized else None
        if moved is None or (self.shard.hubs is None and not self.room.has_spare(hub_bytes(graph))):
            return
        self.shard.hubs = self.shard.hubs or HubOrder(self.shard)
        self.moved = moved

    def begin_phase(
        self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance]
    ) -> PhaseRun | ManyRuns:
        """Return a run of one phase, ready to begin."""
        phase, code = self.phases[number]
        allowance = allowances[0].beside(self.constant_bytes)  # a GPU has copies of them
        shard, fit = self.shard.hubs.shard if self.moved else self.shard, self.room.fit
        given = (code, phase, shard, self.state, self.kept, frontier, self.knobs, allowance, fit)

        def make() -> PhaseRun | ManyRuns:
            if not code.source.is_asynchronous:
                return PhaseRun(*given)
            channels = Channels([shard], None, code.source, self.state)
            return ManyRuns([WorklistRun(*given, Ends(shard, channels))], channels)

        with self.shard.device.use():
            return fit(make)

    def skip_phase(self) -> None:
        """Note that there is nothing to replay."""
        self.kept.clear()

    def end(self, state: dict[str, Any]) -> None:
        """Put what the GPU has into the state on the host."""
        with self.shard.device.use():
            for name, declared in self.fields.items():
                if not isinstance(declared, Constant):
                    self._in_order(name).get(out=state[name])

    def hand_over(self, state: dict[str, Any]) -> None:
        """Let the caller have the GPU's own arrays; of scalars, the numbers."""
        with self.shard.device.use():
            for name, declared in self.fields.items():
                if isinstance(declared, Vertex):
                    state[name] = self._in_order(name)
                elif isinstance(declared, Scalar):
                    self.state[name].get(out=state[name])

    def _in_order(self, name: str) -> Any:
        """Return a field's values by the numbers of vertices."""
        return self.state[name][self.shard.hubs.place] if name in self.moved else self.state[name]
