# SPDX-License-Identifier: Apache-2.0
"""A program on several GPU devices: every device's part of its state, and the one kernel, or one a GPU, of all of them.

Devices that share a GPU are rows of blocks of one cooperative kernel; those of other GPUs have kernels of their own.
They meet and exchange inside: Python enters only when all have come back, with one reason.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.base import Reason
from shoal.backends.cuda.border import Border, Shared, part_of
from shoal.backends.cuda.channels import Channels, Ends
from shoal.backends.cuda.dealing import Deals, check_reach
from shoal.backends.cuda.device import Shard, in_whole_words
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.cuda.launch import BLOCK_THREADS
from shoal.backends.cuda.phase_run import PhaseRun, await_all, write_beside
from shoal.backends.cuda.phases import LoadedPhase
from shoal.backends.cuda.room import Room
from shoal.backends.cuda.worklist_run import WorklistRun
from shoal.backends.loops import control as slot
from shoal.backends.loops.together import RunsTogether
from shoal.errors import ShoalError
from shoal.exchanges import Sharing
from shoal.machine import import_cupy
from shoal.program import Field, Phase, Scalar, Vertex

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance

PARAMETER_BYTES = 8  # of every parameter of a device, whatever it is


class ManyGPUs:
    """A program on several devices, each with its part of the state."""

    def __init__(
        self, shards: Sequence[Shard], fields: dict[str, Field], phases: Sequence[tuple[Phase, LoadedPhase]],
        schedule: Schedule, state: dict[str, Any], knobs: tuple[float, float], title: str,
    ) -> None:  # fmt: skip
        self.shards, self.fields, self.phases, self.schedule, self.knobs = shards, fields, phases, schedule, knobs
        if any(code.source.deals for _, code in phases):
            check_reach(shards)
        self.vertex_names = [name for name, declared in fields.items() if isinstance(declared, Vertex)]
        sources = [(phase, code.source) for phase, code in phases]
        self.rooms = [Room(title, shard, sources, self._state_bytes(shard, state)) for shard in shards]
        self.states = [self._put_there(number, state) for number in range(len(shards))]
        self.kept: list[dict[str, Any]] = [{} for _ in shards]

    def _state_bytes(self, shard: Shard, state: dict[str, Any]) -> int:
        """Return what a device's own state takes."""
        count, num_local = shard.graph.num_vertices, shard.num_local
        arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
        return sum(array.nbytes // count * num_local if name in self.vertex_names else array.nbytes
                   for name, array in arrays.items())  # fmt: skip

    def _put_there(self, number: int, state: dict[str, Any]) -> dict[str, Any]:
        """Copy a device's part of the graph to its GPU, and then its state; return that."""
        shard, room = self.shards[number], self.rooms[number]
        with shard.device.use():
            room.check()
            return room.fit(lambda: self._upload(shard, state))

    def _upload(self, shard: Shard, state: dict[str, Any]) -> dict[str, Any]:
        """Return a device's own state: of vertices those that it has."""
        cupy, ids = import_cupy(), part_of(shard).global_ids
        shard.edges(incoming=False)
        if any(code.uses_in_edges for _, code in self.phases):
            shard.edges(incoming=True)
        own = dict(state)
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                is_divided = ids is not None and name in self.vertex_names
                own[name] = in_whole_words(cupy.asarray(value[ids] if is_divided else value))
        return own

    def begin_phase(self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance]) -> ManyRuns:
        """Return a run of one phase, ready to begin on all devices."""
        phase, code = self.phases[number]
        sharing = code.source.flow.sharing
        assert sharing is not None
        if number > 0:
            self._refresh_copies(sharing)
        self._empty_copies(sharing)
        with self.shards[0].device.use():
            kind = Channels if code.source.is_asynchronous else Shared
            shared = self.rooms[0].fit(lambda: kind(self.shards, self.schedule, code.source, self.states[0]))
        runs = []
        for device, (shard, room) in enumerate(zip(self.shards, self.rooms, strict=True)):
            make = functools.partial(self._make_run, device, code, phase, shared, frontier, allowances[device])
            with shard.device.use():
                runs.append(room.fit(make))
        with self.shards[0].device.use():
            deals = self.rooms[0].fit(lambda: _deal(runs, code.source))
        return ManyRuns(runs, shared, deals)

    def _make_run(
        self, number: int, code: LoadedPhase, phase: Phase, shared: Shared | Channels, frontier: np.ndarray | None,
        allowance: Allowance,
    ) -> PhaseRun:  # fmt: skip
        """Return a device's run of a phase."""
        shard, own, kept = self.shards[number], self.states[number], self.kept[number]
        allowance = allowance.beside(shared.bytes_of(number))
        given = (code, phase, shard, own, kept, frontier, self.knobs, allowance, self.rooms[number].fit)
        if isinstance(shared, Channels):
            return WorklistRun(*given, Ends(shard, shared))
        shares_own = not self.schedule.is_routed and code.source.flow.shares_own
        return PhaseRun(*given, Border(shard, shared, shares_own, own))

    def skip_phase(self) -> None:
        """Note that there is nothing to replay."""
        for kept in self.kept:
            kept.clear()

    def _refresh_copies(self, sharing: Sharing) -> None:
        """Give the copies that a phase will read their owners' values, as an earlier phase left them."""
        for name in sharing.mirrored_at_begin():
            for giver, own in zip(self.shards, self.states, strict=True):
                part = part_of(giver)
                for peer, (taker, state) in enumerate(zip(self.shards, self.states, strict=True)):
                    span = slice(*part.copy_indptr[peer : peer + 2])
                    _hand_over(giver, own[name], part.copy_here[span], taker, state[name], part.copy_there[span])
        for name in sharing.whole_fields:
            for giver, own in zip(self.shards, self.states, strict=True):
                owned = part_of(giver).owned
                for taker, state in zip(self.shards, self.states, strict=True):
                    if state is not own:
                        _hand_over(giver, own[name], owned, taker, state[name], owned)

    def _empty_copies(self, sharing: Sharing) -> None:
        """Let copies that are emptied when they have been sent begin empty: their owners have what they hold."""
        names = {name for number in range(len(sharing.operators)) for name in sharing.resets(number)}
        for shard, own in zip(self.shards, self.states, strict=True) if names else ():
            part = part_of(shard)
            with shard.device.use():
                is_copy = import_cupy().asarray(part.owner != part.device)
                for name in names:
                    own[name][is_copy] = sharing.identity(name, own[name].dtype)

    def end(self, state: dict[str, Any]) -> None:
        """Put the owners' values, and the scalars, into the whole state."""
        for shard, own in zip(self.shards, self.states, strict=True):
            part = part_of(shard)
            with shard.device.use():
                owned = import_cupy().asarray(part.owned)
                for name in self.vertex_names:
                    state[name][part.owned_ids] = own[name][owned].get()
        self._end_scalars(state)

    def hand_over(self, state: dict[str, Any]) -> None:
        """Let the caller have the owners' values in arrays on the first device; of scalars, the numbers."""
        first = self.shards[0]
        for name in self.vertex_names:
            with first.device.use():
                whole = import_cupy().empty(state[name].shape, state[name].dtype)
            for shard, own in zip(self.shards, self.states, strict=True):
                part = part_of(shard)
                _hand_over(shard, own[name], part.owned, first, whole, part.owned_ids)
            state[name] = whole
        self._end_scalars(state)

    def _end_scalars(self, state: dict[str, Any]) -> None:
        for name, declared in self.fields.items():
            if isinstance(declared, Scalar):
                state[name][:] = self.states[0][name].get()  # the same on all


def _hand_over(giver: Shard, source: Any, here: np.ndarray, taker: Shard, target: Any, there: np.ndarray) -> None:
    """Put some elements of a device's array into another device's."""
    cupy = import_cupy()
    with giver.device.use():
        values = source[cupy.asarray(here)]
        if giver.device.number != taker.device.number:
            values = values.get()
    with taker.device.use():
        target[cupy.asarray(there)] = cupy.asarray(values)


class ManyRuns(RunsTogether):
    """The runs of one phase on all devices; `resume` until it is done."""

    def __init__(self, runs: Sequence[PhaseRun], shared: Any, deals: Deals | None = None) -> None:
        super().__init__(runs, shared)
        self.deals = deals  # if devices may visit edges for one another

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        return super().thefts if self.deals is None else self.deals.thefts

    def resume(self) -> Reason:
        """Run until the kernels come back, and return why."""
        for run in self.runs:
            run.begin()
        events, held = [], []
        try:
            for group in self._by_gpu():
                parameters, event = _launch(group)
                held.append(parameters)  # until the kernel has read it
                events.append(event)
            await_all(events, self._stop)
        except BaseException:
            with contextlib.suppress(import_cupy().cuda.runtime.CUDARuntimeError):  # of a GPU that has failed
                self._abandon()
                for event in events:
                    event.synchronize()
            raise
        reasons = [run.end() for run in self.runs]
        if any(run.is_lost for run in self.runs):
            raise ShoalError("the run was given up: a kernel on another GPU did not start")
        return max(reasons)

    def _by_gpu(self) -> list[list[PhaseRun]]:
        """Return the runs that share a GPU, together."""
        groups: dict[int, list[PhaseRun]] = {}
        for run in self.runs:
            groups.setdefault(run.shard.device.number, []).append(run)
        return list(groups.values())

    def _stop(self) -> None:
        """Make all kernels come back after the superstep."""
        for run in self.runs:
            run.stop()

    def _abandon(self) -> None:
        """Let nobody wait for a device that will not come."""
        place = self.shared.world[slot.WORLD_ABANDONED : slot.WORLD_ABANDONED + 1]
        write_beside(self.runs[0].shard, place, 1)


def _deal(runs: Sequence[PhaseRun], source: PhaseSource) -> Deals | None:
    """Tell every device where the arrays of all are, if they may visit edges for one another."""
    if not source.deals:
        return None
    deals = Deals(runs, source)
    for run, tables in zip(runs, deals.tables, strict=True):
        run.border.deals = tables
    return deals


def _launch(runs: list[PhaseRun]) -> tuple[Any, Any]:
    """Start the kernel of the devices that share a GPU; return its parameters and the event of its end."""
    cupy, first = import_cupy(), runs[0]
    with first.shard.device.use():
        packed = b"".join(_as_bytes(argument) for run in runs for argument in run.arguments())
        parameters = cupy.asarray(np.frombuffer(packed, np.uint8))
        first.kernel((first.num_blocks, len(runs)), BLOCK_THREADS, parameters, is_cooperative=True)
        return parameters, cupy.cuda.get_current_stream().record()


def _as_bytes(argument: Any) -> bytes:
    """Return a parameter of a device as its kernel reads it."""
    if argument is None:
        return bytes(PARAMETER_BYTES)
    if isinstance(argument, np.generic):
        return argument.tobytes().ljust(PARAMETER_BYTES, b"\0")
    return np.uint64(argument.data.ptr).tobytes()
