# SPDX-License-Identifier: Apache-2.0
"""Sessions: a program's state on one device, or every device's part of it, and its way there and back.

Of several devices each has the values of its own vertices and of the copies it holds; at the end the owners' count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Capture, Position
from shoal.backends.cpu.border import Border, Shared
from shoal.backends.cpu.device import Shard
from shoal.backends.cpu.kernels.distribution import put_rows, take_rows
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.backends.cpu.phases import LoadedPhase
from shoal.backends.cpu.regrouping import RegroupingRuns
from shoal.backends.cpu.rows import copy_rows, copy_share, is_segment, plain, row_width
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.backends.cpu.worklist_run import Channels, WorklistRun
from shoal.backends.loops.lists import NeighbourLists, exchange_lists
from shoal.exchanges import Sharing
from shoal.program import Constant, Field, Phase, Scalar, Vertex

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance
    from shoal.strategies.subgraph import Subgraph

Phases = Sequence[tuple[Phase, LoadedPhase]]

MANY_BYTES = 8 << 20  # to copy less is quicker than to start two threads for it, which takes half a millisecond


class OneDevice:
    """A program on one device, which has its whole state."""

    def __init__(
        self, shard: Shard, fields: dict[str, Field], phases: Phases, state: dict[str, Any],
        knobs: tuple[float, float], title: str, *, has_edges_room: bool,
    ) -> None:  # fmt: skip
        self.shard, self.fields, self.phases, self.state = shard, fields, phases, state
        self.knobs, self.title = knobs, title
        self.workspace = shard.acquire_workspace(has_edges_room=has_edges_room)

    def begin_phase(
        self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance],
        position: Position | None = None,
    ) -> PhaseRun | WorklistRun:  # fmt: skip
        """Return a run of one phase, ready to begin or to go on."""
        phase, code = self.phases[number]
        if code.source.is_asynchronous:
            first = frontier if position is None else position.frontier
            return WorklistRun(code, phase, self.shard, self.workspace, self.state, first, self.title, allowances[0])
        return PhaseRun(
            code, phase, self.shard, self.workspace, self.state, frontier, self.knobs, self.title, allowances[0],
            position=position,
        )  # fmt: skip

    def capture(self, run: PhaseRun | WorklistRun) -> Capture:
        """Return what is needed to go on with a run that came back between two supersteps."""
        state = run.state_by_name()
        vertices = [name for name, declared in self.fields.items() if isinstance(declared, Vertex)]
        return Capture(None, ((name, state[name]) for name in vertices), scalars_of(self.fields, state), run.position())

    def skip_phase(self) -> None:
        """Note that there is nothing to replay, nor of an earlier run's phases."""
        self.workspace.num_levels = 0

    def end(self, state: dict[str, Any]) -> None:
        """Keep the buffers; not after a failure: whoever was interrupted may still hold them."""
        self.shard.release_workspace(self.workspace)

    hand_over = end  # a CPU's arrays are the host's


class ManyDevices:
    """A program on several devices, each with its part of the state."""

    def __init__(
        self, shards: Sequence[Shard], fields: dict[str, Field], phases: Phases, schedule: Schedule,
        state: dict[str, Any], knobs: tuple[float, float], title: str, *, has_edges_room: bool,
    ) -> None:  # fmt: skip
        self.shards, self.fields, self.phases, self.schedule = shards, fields, phases, schedule
        self.knobs, self.title = knobs, title
        self.workspaces = [shard.acquire_workspace(has_edges_room=has_edges_room) for shard in shards]
        self.vertex_names = [name for name, declared in fields.items() if isinstance(declared, Vertex)]
        self.parts = [shard.part for shard in shards if shard.part is not None]
        self.states = [self._make_state(i, state) for i in range(len(shards))]
        self.mentioned = [self._mentioned(i) for i in range(len(shards))]
        run_threads(self._scatter, self._num_threads, state)

    @property
    def _num_threads(self) -> int:
        num_bytes = sum(own[name].nbytes for own in self.states for name in self.vertex_names)
        return len(available_cores()) if num_bytes >= MANY_BYTES else 1

    def _make_state(self, number: int, state: dict[str, Any]) -> dict[str, Any]:
        """Return a device's own state: scalars copied, constants shared, fields of vertices still to be filled."""
        if number == 0 and self.parts[0].global_ids is None:
            return dict(state)  # what the first device has of other vertices is overwritten at the end
        length = self.parts[number].num_local
        shapes = [((length, *state[name].shape[1:]), state[name].dtype) for name in self.vertex_names]
        arrays = dict(zip(self.vertex_names, self.workspaces[number].reserve("state", shapes), strict=True))
        others = {name: state[name] if isinstance(declared, Constant) else state[name].copy()
                  for name, declared in self.fields.items() if name not in arrays}  # fmt: skip
        return {name: arrays[name] if name in arrays else others[name] for name in self.fields}

    def _mentioned(self, peer: int) -> np.ndarray | None:
        """Return the copies that a device's edges mention, if it needs no others and picking them out pays; else None.

        Without supersteps items go straight to their owners, and no rule reads what lies elsewhere.
        """
        is_direct = self.schedule.is_routed and all(code.source.is_asynchronous for _, code in self.phases)
        sharings = [code.source.flow.sharing for _, code in self.phases]
        if not is_direct or any(sharing is None or sharing.whole_fields for sharing in sharings):
            return None
        part = self.parts[peer]
        num_mentioned = int(part.border_sizes.sum())
        if part.global_ids is not None or not is_segment(part.owned) or 8 * num_mentioned > part.num_local:
            return None
        return np.concatenate([other.copy_there[slice(*other.copy_indptr[peer : peer + 2])] for other in self.parts])

    def _scatter(self, thread: int, num_threads: int, state: dict[str, Any]) -> None:
        """Fill one thread's share of every device's fields from the whole state."""
        for part, own, mentioned in zip(self.parts, self.states, self.mentioned, strict=True):
            for name in self._copied(own, state):
                source, target, width = plain(state[name]), plain(own[name]), row_width(own[name])
                if part.global_ids is not None:
                    take_rows(thread, num_threads, source, part.global_ids, width, target)
                elif mentioned is not None:
                    copy_rows(thread, num_threads, state[name], part.owned, own[name], part.owned)
                    put_rows(thread, num_threads, source, mentioned, mentioned, width, target)
                else:
                    copy_share(thread, num_threads, source, target)

    def _gather(self, thread: int, num_threads: int, state: dict[str, Any]) -> None:
        """Put one thread's share of the owners' values into the whole state."""
        for part, own in zip(self.parts, self.states, strict=True):
            vertices = part.owned if part.global_ids is None else part.global_ids[: part.num_owned]
            for name in self._copied(own, state):
                copy_rows(thread, num_threads, own[name], part.owned, state[name], vertices)

    def _copied(self, own: dict[str, Any], state: dict[str, Any]) -> list[str]:
        """Return the fields of vertices that are a device's own copies."""
        return [name for name in self.vertex_names if own[name] is not state[name]]

    def begin_phase(
        self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance],
        position: Position | None = None,
    ) -> ManyRuns:  # fmt: skip
        """Return a run of one phase, ready to begin or to go on, on all devices."""
        phase, code = self.phases[number]
        source = code.source
        assert source.flow.sharing is not None
        if number > 0 and position is None:  # else all copies are what the whole state says
            self._refresh_copies(source.flow.sharing)
        self._empty_copies(source.flow.sharing)
        if source.is_asynchronous:
            first = frontier if position is None else position.frontier
            return self._begin_worklists(code, phase, first, allowances)
        shared = self._make_shared(source)
        shares_own = not self.schedule.is_routed and source.flow.shares_own
        lists: Sequence[NeighbourLists | None] = [None] * len(self.parts)
        if source.flow.sharing.asks_lists:
            lists = self._exchange_lists()
        devices = zip(self.shards, self.workspaces, self.states, allowances, lists, strict=True)
        runs = [
            PhaseRun(
                code, phase, shard, workspace, own, frontier, self.knobs, self.title,
                allowance.beside(shared.bytes_of(part.device)), Border(shard, shared, shares_own, workspace, have),
                position,
            )
            for part, (shard, workspace, own, allowance, have) in zip(self.parts, devices, strict=True)
        ]  # fmt: skip
        return self._together(runs, shared)

    def _make_shared(self, source: Any) -> Shared:
        """Return what the devices of a phase have in common."""
        threads = sum(shard.device.threads_for(shard.graph) for shard in self.shards)
        return Shared(self.parts, self.schedule, source, self.states[0], threads, self.workspaces[0])

    def _exchange_lists(self) -> Sequence[NeighbourLists]:
        """Return the lists of neighbours that the devices have sent one another."""
        return exchange_lists(self.parts, self.schedule)

    def _together(self, runs: list[PhaseRun], shared: Shared) -> ManyRuns:
        """Return the runs of all devices as one."""
        if runs[0].loaded.source.regroups:
            return RegroupingRuns(runs, shared, self)
        return ManyRuns(runs, shared)

    def capture(self, runs: ManyRuns) -> Capture:
        """Return what is needed to go on with a run that came back between two supersteps."""
        parts, states = zip(*((run.part, run.state_by_name()) for run in runs.members), strict=True)
        fields = ((name, owned_values(name, parts, states)) for name in self.vertex_names)
        ids = np.concatenate([part.owned_ids for part in parts])
        positions = [run.position() for run in runs.members]
        return Capture(ids, fields, scalars_of(self.fields, states[0]), join_positions(positions))

    def _begin_worklists(
        self, code: LoadedPhase, phase: Phase, frontier: np.ndarray | None, allowances: Sequence[Allowance]
    ) -> ManyRuns:
        """Return a run of a phase without supersteps."""
        channels = self._make_channels(code.source)
        devices = zip(self.shards, self.workspaces, self.states, allowances, strict=True)
        runs = [
            WorklistRun(
                code, phase, shard, workspace, own, frontier, self.title,
                allowance.beside(channels.bytes_of(part.device)), channels,
            )
            for part, (shard, workspace, own, allowance) in zip(self.parts, devices, strict=True)
        ]  # fmt: skip
        return self._worklists_together(runs, channels)

    def _make_channels(self, source: Any) -> Channels:
        """Return what the devices of a phase without supersteps have in common."""
        return Channels(self.parts, self.schedule, source, self.states[0], self.workspaces[0])

    def _worklists_together(self, runs: list[WorklistRun], channels: Channels) -> ManyRuns:
        """Return the runs without supersteps of all devices as one."""
        return ManyRuns(runs, channels)

    def skip_phase(self) -> None:
        """Note that there is nothing to replay, nor of an earlier run's phases."""
        for workspace in self.workspaces:
            workspace.num_levels = 0

    def _refresh_copies(self, sharing: Sharing) -> None:
        """Give the copies that a phase will read their owners' values, as an earlier phase left them."""
        for name in sharing.mirrored_at_begin():
            for part, own in zip(self.parts, self.states, strict=True):
                for peer, state in enumerate(self.states):
                    span = slice(*part.copy_indptr[peer : peer + 2])
                    state[name][part.copy_there[span]] = own[name][part.copy_here[span]]
        for name in sharing.whole_fields:
            for part, own in zip(self.parts, self.states, strict=True):
                for state in self.states:
                    if state is not own:
                        state[name][part.owned] = own[name][part.owned]

    def _empty_copies(self, sharing: Sharing) -> None:
        """Let copies that are emptied when they have been sent begin empty: their owners have what they hold."""
        names = {name for number in range(len(sharing.operators)) for name in sharing.resets(number)}
        for part, own in zip(self.parts, self.states, strict=True) if names else ():
            is_copy = part.owner != part.device
            for name in names:
                own[name][is_copy] = sharing.identity(name, own[name].dtype)

    def end(self, state: dict[str, Any]) -> None:
        """Put the owners' values, and the scalars, into the whole state; keep the buffers."""
        if self.parts[0].global_ids is None:
            state.update(self.states[0])  # the same arrays, but two that change places may have
        run_threads(self._gather, self._num_threads, state)
        for name, declared in self.fields.items():
            if isinstance(declared, Scalar):
                state[name][:] = self.states[0][name]  # the same on all
        for shard, workspace in zip(self.shards, self.workspaces, strict=True):
            shard.release_workspace(workspace)

    hand_over = end  # a CPU's arrays are the host's


def scalars_of(fields: dict[str, Field], state: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the values that are the same on all devices."""
    return {name: state[name] for name, declared in fields.items() if isinstance(declared, Scalar)}


def owned_values(name: str, parts: Sequence[Subgraph], states: Sequence[dict[str, Any]]) -> np.ndarray:
    """Return the owners' values of a field, one device's behind the other's."""
    return np.concatenate([state[name][part.owned] for part, state in zip(parts, states, strict=True)])


def join_positions(positions: Sequence[Position]) -> Position:
    """Return where several devices stand together; they agree on all but whose vertices are whose."""
    first = positions[0]
    frontier = None
    if first.frontier is not None:
        frontier = np.concatenate([position.frontier for position in positions if position.frontier is not None])
    kept = [np.concatenate(pieces) for pieces in zip(*(position.kept for position in positions), strict=True)]
    return replace(first, frontier=frontier, kept=kept)
