# SPDX-License-Identifier: Apache-2.0
"""Sessions on many ranks: each has the state of its own devices, and at the end all have that of all vertices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.base import Position, Reason
from shoal.backends.cpu.border import Shared
from shoal.backends.cpu.device import Shard
from shoal.backends.cpu.loop_run import LoopRun
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.backends.cpu.sessions import ManyDevices, Phases
from shoal.backends.cpu.threads import run_threads
from shoal.backends.cpu.worklist_run import Channels, WorklistRun
from shoal.backends.loops import control as slot
from shoal.backends.loops.lists import Lists, NeighbourLists, collect_lists, count_traffic, lists_for, measure_lists
from shoal.backends.loops.mail import mail_sizes
from shoal.backends.mpi.channels import RankChannels
from shoal.backends.mpi.courier import Courier
from shoal.backends.mpi.dealing import Dealing, reserve_rows
from shoal.backends.mpi.fleet import Fleet
from shoal.backends.mpi.legs import lay_out_contributions
from shoal.backends.mpi.relay import Relay
from shoal.exchanges import Sharing
from shoal.program import Field

if TYPE_CHECKING:
    from shoal.strategies.communication import Schedule
    from shoal.strategies.memory import Allowance
    from shoal.strategies.subgraph import Subgraph


class SharedByRanks(Shared):
    """What the devices of one rank have in common; of mail for and from others only what passes through here."""

    def __init__(self, session: RankSession, source: Any) -> None:
        self.session = session
        self.rows_come = source.deals and not session.has_whole_graph
        self.sent: list[np.ndarray] = []  # rows that come along with vertices of others
        # Whoever speaks for the other ranks needs a core, too, and so do the other ranks of the machine.
        threads = (
            sum(shard.device.threads_for(shard.graph) for shard in session.shards) + 1
        ) * session.fleet.ranks_here
        super().__init__(
            session.parts, session.schedule, source, session.states[0], threads, session.workspaces[0]
        )  # fmt: skip
        self.world[slot.WORLD_MEETING] = len(session.parts) + 1

    def _whereabouts(self, parts: Sequence[Subgraph]) -> tuple[np.ndarray, np.ndarray]:
        session = self.session
        places = np.arange(len(session.rank_of)) if self.rows_come else np.array(session.rank_of)
        return np.array(session.num_owned), places

    def _lay_out_rows(self, part: Subgraph, mail_length: int, source: Any) -> tuple[np.ndarray, ...]:
        if not self.rows_come:
            return super()._lay_out_rows(part, mail_length, source)
        self.sent = reserve_rows(self.session, source, mail_length)
        return tuple(map(read_only, self.sent))

    def bytes_of(self, device: int) -> int:
        """Return the bytes of a device's share, with the room for rows that come along."""
        return super().bytes_of(device) + sum(array.nbytes for array in self.sent) // len(self.session.parts)

    def _lay_out_mail(self, parts: Sequence[Subgraph], *, deals: bool) -> tuple[np.ndarray, np.ndarray, int]:
        session = self.session
        if not self.schedule.is_routed:
            length = parts[0].num_global
            at, lengths, total = lay_out_contributions(self.schedule, session.rank_of, session.fleet.rank, length)
            return read_only(at), lengths, total
        is_here = np.array(session.rank_of) == session.fleet.rank
        sizes = np.where(is_here[:, None] | is_here, session.mail_sizes(deals=deals), 0)
        ends = np.cumsum(sizes)
        return read_only(ends - sizes.reshape(-1)), np.where(is_here, sizes.sum(axis=1), 0), int(ends[-1])


class RankRuns(ManyRuns):
    """The runs of one phase on a rank's devices; it comes back when those of all ranks do, and for the same reason."""

    def __init__(
        self, runs: Sequence[LoopRun], shared: SharedByRanks | RankChannels, session: RankSession,
        courier: Courier | Relay,
    ) -> None:  # fmt: skip
        super().__init__(runs, shared)
        self.session, self.fleet, self.courier = session, session.fleet, courier
        self.num_left = 0
        if runs[0].phase.begin == "replay":
            here = np.array([runs[0].control[slot.SIZE]])
            total = int(np.concatenate(self.fleet.gather(here)).sum())
            for run in runs:
                run.control[slot.SIZE] = total

    def resume(self) -> Reason:
        """Run until the loops come back and return why."""
        with self.fleet.telling():
            reason = self.courier.agree(super().resume())
            if reason == Reason.DONE:
                self.courier.close()
            return reason

    def _run_loops(self, on_wait: Callable[[], None] | None) -> None:
        self.num_left = 0
        self.shared.world[slot.WORLD_LEFT] = 0
        run_threads(
            self._loop, len(self.places), on_interrupt=self.stop, beside=lambda: self.courier.serve(on_wait)
        )  # fmt: skip

    def _loop(self, number: int, count: int) -> Any:
        super()._loop(number, count)
        with self.session.lock:
            self.num_left += 1
            if self.num_left == count:
                self.shared.world[slot.WORLD_LEFT] = 1

    def take_rows(self) -> list[list[np.ndarray]]:
        """Hand over the rows of the trace since the last time, of all devices of all ranks."""
        here = [np.concatenate(chunks) for chunks in super().take_rows()]
        found = self.fleet.gather(np.concatenate(here))
        num_rows = len(here[0])  # of every device: they leave their loops in the same superstep
        return [[rows[k * num_rows : (k + 1) * num_rows]] for rows in found for k in range(len(rows) // num_rows)]

    @property
    def peaks(self) -> list[int]:
        """The most memory that each device's buffers took, on all ranks."""
        parts = self.session.parts
        here = [run.peaks[0] + self.shared.bytes_of(part.device) for run, part in zip(self.runs, parts, strict=True)]
        return np.concatenate(self.fleet.gather(np.array(here))).tolist()

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, on all ranks: owners have noted them."""
        count = self.session.schedule.num_devices
        found = np.zeros((count, count), np.int64)
        if not self.runs[0].loaded.source.deals:
            return found
        here = [part.device for part in self.session.parts]
        found[here] = self.shared.thefts[here]
        return np.sum(self.fleet.gather(found[None]), axis=0)[0]

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device has sent to each; the ranks tell one another now."""
        total = np.sum(self.fleet.gather(self.shared.traffic()[None]), axis=0)[0]
        return lambda: total


class RankSession(ManyDevices):
    """A program on the devices of many ranks, as one of these sees it: shards of its own, far shards of the others."""

    def __init__(
        self, fleet: Fleet, shards: Sequence[Any], fields: dict[str, Field], phases: Phases,
        schedule: Schedule, state: dict[str, Any], knobs: tuple[float, float], title: str, lock: Any,
        *, has_edges_room: bool,
    ) -> None:  # fmt: skip
        self.fleet, self.everywhere, self.lock = fleet, shards, lock
        self.rank_of = [shard.device.rank for shard in shards]
        self._mail_sizes: dict[bool, np.ndarray] = {}
        here = [shard for shard in shards if isinstance(shard, Shard)]
        super().__init__(here, fields, phases, schedule, state, knobs, title, has_edges_room=has_edges_room)

    def mail_sizes(self, *, deals: bool) -> np.ndarray:
        """Return how many items each device may have for each, of all ranks."""
        if deals not in self._mail_sizes:
            num_owned = self.num_owned if deals else None
            own = mail_sizes(self.parts, self.schedule, num_owned)[[part.device for part in self.parts]]
            self._mail_sizes[deals] = np.concatenate(self.fleet.gather(own))
        return self._mail_sizes[deals]

    @cached_property
    def num_owned(self) -> list[int]:
        """How many vertices each device owns, of all ranks."""
        return [len(shard.part.owned_ids) for shard in self.everywhere]

    @cached_property
    def has_whole_graph(self) -> bool:
        """Whether all ranks have all edges, and not only those of their devices."""
        is_here = isinstance(self.shards[0].graph.indices, np.ndarray)
        return bool(np.all(self.fleet.gather(np.array([is_here]))))

    def begin_phase(
        self, number: int, frontier: np.ndarray | None, allowances: Sequence[Allowance],
        position: Position | None = None,
    ) -> ManyRuns:  # fmt: skip
        """Return a run of one phase, ready to begin or to go on, on this rank's devices."""
        here = [allowances[part.device] for part in self.parts]
        with self.fleet.telling():
            return super().begin_phase(number, frontier, here, position)

    def _make_shared(self, source: Any) -> SharedByRanks:
        return SharedByRanks(self, source)

    def _together(self, runs: list[PhaseRun], shared: Shared) -> RankRuns:
        assert isinstance(shared, SharedByRanks)
        source = runs[0].loaded.source
        places = {name: number for number, name in enumerate(source.mailed)}
        carried = [tuple(places[name] for name in names) for names in source.carried]
        dealing = Dealing(self, shared, runs) if source.deals else None
        courier = Courier(self.fleet, shared, runs[0].control, self.rank_of, carried, dealing)
        return RankRuns(runs, shared, self, courier)

    def _make_channels(self, source: Any) -> RankChannels:
        return RankChannels(
            self.fleet, self.rank_of, self.parts, self.schedule, source, self.states[0], self.workspaces[0]
        )  # fmt: skip

    def _worklists_together(self, runs: list[WorklistRun], channels: Channels) -> ManyRuns:
        assert isinstance(channels, RankChannels)
        if self.fleet.size == 1:
            return super()._worklists_together(runs, channels)  # who see all devices raise the threshold themselves
        return RankRuns(runs, channels, self, Relay(self.fleet, channels, runs))

    def _mentioned(self, peer: int) -> None:
        """Let every copy begin as the whole state says: whose edges mention it only other ranks know."""

    def _exchange_lists(self) -> Sequence[NeighbourLists]:
        """Return the lists of neighbours that this rank's devices have been sent."""
        sizes, taken = measure_lists(self.parts, self.schedule)
        sizes = np.sum(self.fleet.gather(sizes[None]), axis=0)[0]
        taken = np.sum(self.fleet.gather(taken[None]), axis=0)[0]
        traffic = count_traffic(sizes, taken, self.schedule)
        received = self._send_to_devices(lambda part, peer: [np.asarray(a) for a in lists_for(part, peer)])
        found = []
        for part in self.parts:
            vertex = part.out_edges.indices.dtype
            kinds = (part.copy_there.dtype, np.dtype(np.int64), vertex)
            lists = [Lists(*map(np.ndarray.view, arrays, kinds)) for arrays in received[part.device]]
            found.append(NeighbourLists(*collect_lists(part, lists), traffic[part.device]))
        return found

    def _refresh_copies(self, sharing: Sharing) -> None:
        """Give the copies that a phase will read their owners' values, as an earlier phase left them."""
        own = {part.device: state for part, state in zip(self.parts, self.states, strict=True)}
        for name in sharing.mirrored_at_begin():

            def values_for(part: Subgraph, peer: int, name: str = name) -> list[np.ndarray]:
                span = slice(*part.copy_indptr[peer : peer + 2])
                return [part.copy_there[span], own[part.device][name][part.copy_here[span]]]

            received = self._send_to_devices(values_for)
            for part in self.parts:
                array = own[part.device][name]
                for ids, values in received[part.device]:
                    array[ids.view(part.copy_there.dtype)] = values.view(array.dtype).reshape(-1, *array.shape[1:])
        for name in sharing.whole_fields:
            self._spread(name, [own[part.device] for part in self.parts])

    def _send_to_devices(self, make: Callable[[Subgraph, int], list[np.ndarray]]) -> dict[int, list[list[np.ndarray]]]:
        """Let each device send arrays to each other one; return those for the devices here, as bytes."""
        blobs = []
        for rank in range(self.fleet.size):
            pieces = [
                _packed(part.device, peer, make(part, peer))
                for part in self.parts
                for peer, there in enumerate(self.rank_of)
                if there == rank and peer != part.device
            ]
            blobs.append(np.concatenate([np.zeros(0, np.uint8), *pieces]))
        found: dict[int, list[list[np.ndarray]]] = {part.device: [] for part in self.parts}
        for blob in self.fleet.exchange(blobs):
            _unpack_into(found, blob)
        return found

    def _spread(self, name: str, states: Sequence[dict[str, Any]]) -> None:
        """Write the owners' values of a field, on all ranks, into states that have all vertices by the graph's ids."""
        own = [state[name][part.owned] for part, state in zip(self.parts, self.states, strict=True)]
        for shards, values in zip(self._shards_by_rank, self.fleet.gather(np.concatenate(own)), strict=True):
            begin = 0
            for shard in shards:
                ids = shard.part.owned_ids
                for state in states:
                    state[name][ids] = values[begin : begin + len(ids)]
                begin += len(ids)

    @property
    def _shards_by_rank(self) -> list[list[Any]]:
        return [[s for s in self.everywhere if s.device.rank == rank] for rank in range(self.fleet.size)]

    def end(self, state: dict[str, Any]) -> None:
        """Put the owners' values, and the scalars, into the whole state, on every rank; keep the buffers."""
        with self.fleet.telling():
            states = self.states
            if self.parts[0].global_ids is None:
                state.update(states[0])  # the same arrays, but two that change places may have
            for name in self.vertex_names:
                self._spread(name, [state])
            super().end(state)

    hand_over = end


#: Before arrays in a message: who sent them to whom, how many there are, and the bytes of each, of three at most.
_HEADER = 6
_MAX_ARRAYS = 3
_ALIGNMENT = 8


def _packed(sender: int, receiver: int, arrays: list[np.ndarray]) -> np.ndarray:
    """Return arrays as bytes, with a header; each begins where any type may."""
    sizes = [array.nbytes for array in arrays] + [0] * (_MAX_ARRAYS - len(arrays))
    header = np.array([sender, receiver, len(arrays), *sizes], np.int64)
    pieces = [header.view(np.uint8)]
    for array in arrays:
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces += [content, np.zeros(-content.nbytes % _ALIGNMENT, np.uint8)]
    return np.concatenate(pieces)


def _unpack_into(found: dict[int, list[list[np.ndarray]]], blob: np.ndarray) -> None:
    """Add what a rank has sent to what its receivers have."""
    position = 0
    while position < len(blob):
        header = blob[position : position + 8 * _HEADER].view(np.int64).tolist()
        position += 8 * _HEADER
        arrays = []
        for size in header[3 : 3 + header[2]]:
            arrays.append(blob[position : position + size])
            position += size + -size % _ALIGNMENT
        found[header[1]].append(arrays)
