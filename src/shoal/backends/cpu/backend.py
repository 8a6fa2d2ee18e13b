# SPDX-License-Identifier: Apache-2.0
"""The CPU as a backend: its devices, its compiled phases and their runs, by the names that execution knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.backends.base import Alone, Session, Types
from shoal.backends.cpu.device import SMALL_EDGES, CPUDevice, Shard, make_devices
from shoal.backends.cpu.phases import LoadedPhase, load_phase
from shoal.backends.cpu.sessions import ManyDevices, OneDevice
from shoal.program import Field, Phase, Program

if TYPE_CHECKING:
    from shoal.config import DeviceSpec
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Scheme


class CPUBackend:
    """Devices of the CPU: each has some of the machine's cores, all have its memory in common."""

    kind = "cpu"
    captures = True
    least_shared_edges = SMALL_EDGES  # tests let devices share smaller graphs
    ranks = Alone()

    def make_devices(self, spec: DeviceSpec) -> list[CPUDevice]:
        """Return devices that share the cores of this machine, or have so many threads each."""
        return make_devices(spec.num_devices, spec.threads_per_device)

    def load(
        self, program: Program, phase: Phase, types: Types, direction: str, duplication: str | None,
        load_balance: str, priority: str | None, stealing: str = "none",
    ) -> LoadedPhase:  # fmt: skip
        """Compile a phase for the types of a graph, or find it compiled."""
        return load_phase(program, phase, types, direction, duplication, priority, stealing)

    def begin(
        self, shards: Sequence[Shard], fields: dict[str, Field], phases: Sequence[tuple[Phase, LoadedPhase]],
        schedule: Schedule | None, state: dict[str, Any], knobs: tuple[float, float], title: str, scheme: Scheme,
    ) -> Session:  # fmt: skip
        """Put a program's state on the devices of some shards; with a schedule there are several of them."""
        has_edges_room = scheme.may_have_edges_room
        if schedule is None:
            return OneDevice(shards[0], fields, phases, state, knobs, title, has_edges_room=has_edges_room)
        return ManyDevices(shards, fields, phases, schedule, state, knobs, title, has_edges_room=has_edges_room)
