# SPDX-License-Identifier: Apache-2.0
"""Border: what one of several devices has beside its shard, to exchange values with the others; and what all share.

`Shared` is there once per phase: the block by which devices meet, the schedule, and the mail.  A `Border` is a device's
own: its list of vertices that others want to hear of, and the tables that say who.  Mail is as long as can be needed: a
device has at most one item for each copy of a vertex, and where everybody is told everything, one for every vertex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.cpu.device import NO_WEIGHTS
from shoal.backends.cpu.kernels.dealing import CUTS, PLACE, ROOM_FOR_DEALT, SLACK, START
from shoal.backends.cpu.kernels.grouping import DEVICES, LEVELS, PER_EDGE, PER_LEVEL, SKEW
from shoal.backends.cpu.kernels.ordered import ENTRIES
from shoal.backends.cpu.threads import available_cores
from shoal.backends.loops import control as slot
from shoal.backends.loops.control import FORWARDS, world_size
from shoal.backends.loops.mail import count_receivers, mail_sizes
from shoal.backends.loops.traffic import bytes_by_pair

if TYPE_CHECKING:
    from shoal.backends.cpu.device import Shard, Workspace
    from shoal.backends.loops.lists import NeighbourLists
    from shoal.strategies.communication import Schedule
    from shoal.strategies.subgraph import Subgraph

# Between devices that have a core for each thread a wait is short; with fewer cores than threads whoever is waited for
# needs the core, so it is given away at once.
SPINS = 4000
SPINS_ON_SHARED_CORES = 0


class Shared:
    """What the devices of one phase have in common."""

    rows_come = False  # every device reads the edges of all where they are

    def __init__(
        self, parts: list[Subgraph], schedule: Schedule, source: Any, state: dict[str, Any], threads: int,
        workspace: Workspace,
    ) -> None:  # fmt: skip
        count = schedule.num_devices
        self.schedule = schedule
        self.world = np.zeros(world_size(count), np.int64)
        self.world[slot.WORLD_DEVICES] = self.world[slot.WORLD_MEETING] = count
        self.world[slot.WORLD_SPINS] = SPINS if threads <= len(available_cores()) else SPINS_ON_SHARED_CORES
        self.world[slot.WORLD_ROUTED] = schedule.is_routed
        self.world[slot.WORLD_FORWARDS] = FORWARDS[schedule.forwards]
        self.world[slot.WORLD_ROUNDS] = schedule.num_rounds
        self.num_receivers = count_receivers(schedule)
        self.mail_at, self.mail_lengths, length = self._lay_out_mail(parts, deals=source.steals)
        self.group = lay_out_group(count) if source.regroups else None  # by which they decide who takes part
        self.deals: np.ndarray | None = None  # by which devices give vertices to one another
        self.rows: tuple[np.ndarray, ...] = ()  # of vertices that came from where edges cannot be read
        if source.deals:
            self.deals, length = self._lay_out_deals(parts, length, by_blocks=source.flow.ordered is not None)
            self.rows = self._lay_out_rows(parts[0], length, source)
        shapes = [((length, *state[name].shape[1:]), state[name].dtype) for name in source.mailed]
        self.mail_ids, *self.mail = workspace.reserve("mail", [((length,), parts[0].owned.dtype), *shapes])
        num_bits = count * ((parts[0].num_local + 63) // 64) if source.flow.pulls and parts[0].global_ids is None else 0
        (self.mail_bits,) = workspace.reserve("mail bits", [((num_bits,), np.dtype(np.uint64))])
        self.posted = [np.empty(count, dtype) for dtype in source.partials.values()]

    def _lay_out_mail(self, parts: Sequence[Subgraph], *, deals: bool) -> tuple[np.ndarray, np.ndarray, int]:
        """Return where the mail of each sender for each receiver begins, how long each sender's is, and all of it."""
        sizes = mail_sizes(parts, self.schedule, [part.num_owned for part in parts] if deals else None)
        ends = np.cumsum(sizes)
        return read_only(ends - sizes.reshape(-1)), sizes.sum(axis=1), int(ends[-1])

    def _lay_out_deals(self, parts: Sequence[Subgraph], length: int, *, by_blocks: bool) -> tuple[np.ndarray, int]:
        """Return the rows by which devices deal, and how long the mail is with all vertices that they may give away."""
        num_owned, places = self._whereabouts(parts)
        count = len(num_owned)
        rows = np.zeros((count, CUTS + 2 * count + 1), np.int64)
        ends = length + np.cumsum(num_owned)
        rows[:, START] = ends - num_owned
        rows[:, ROOM_FOR_DEALT] = num_owned // (ENTRIES if by_blocks else 1)
        rows[:, PLACE] = places
        rows[:, SLACK] = slot.UNLIMITED
        return rows.reshape(-1), int(ends[-1])

    def _whereabouts(self, parts: Sequence[Subgraph]) -> tuple[np.ndarray, np.ndarray]:
        """Return how many vertices each device owns, and where it is: devices of one place read each other's edges."""
        return np.array([part.num_owned for part in parts]), np.zeros(len(parts), np.int64)

    def _lay_out_rows(self, part: Subgraph, mail_length: int, source: Any) -> tuple[np.ndarray, ...]:
        """Return the arrays for rows that come along with vertices: none do."""
        return tuple(read_only(np.empty(0, dtype)) for dtype in row_types(part, source))

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device has sent to each."""
        return partial(bytes_by_pair, self.world, self.schedule)

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        assert self.deals is not None
        count = self.schedule.num_devices
        return self.deals.reshape(count, -1)[:, -count:].copy()

    def bytes_of(self, device: int) -> int:
        """Return the bytes of a device's share: its mail for the others, and a part of what belongs to none."""
        per_item = sum(array.nbytes // max(len(array), 1) for array in (self.mail_ids, *self.mail))
        common = self.world.nbytes + self.mail_bits.nbytes
        return int(self.mail_lengths[device]) * per_item + common // len(self.mail_lengths)


def row_types(part: Subgraph, source: Any) -> list[np.dtype]:
    """Return the types of offsets, destinations, weights and the graph's numbers of edges, as code takes them."""
    indptr, indices, weights = part.out_edges
    weights = weights if source.uses_weights and weights is not None else NO_WEIGHTS
    return [array.dtype for array in (indptr, indices, weights, indptr)]


def asks_edge_ids(source: Any) -> bool:
    """Whether a rule asks for the graph's numbers of edges."""
    return any("edge" in rule.parameters for op in source.flow.operators for rule in op.rules.values())


def lay_out_group(count: int) -> np.ndarray:
    """Return the block in which devices keep their estimates of what groups of them would take."""
    group = np.zeros(LEVELS + PER_LEVEL * ((count - 1).bit_length() + 1))
    group[DEVICES], group[PER_EDGE] = count, np.inf
    group[LEVELS + SKEW :: PER_LEVEL] = 1.0
    return group


class Border:
    """One device's side of the exchanges."""

    def __init__(
        self, shard: Shard, shared: Shared, shares_own: bool, workspace: Workspace, lists: NeighbourLists | None = None
    ) -> None:
        assert shard.part is not None
        self.shard, self.part, self.shared, self.shares_own = shard, shard.part, shared, shares_own
        words = ((self.part.num_local + 63) // 64,)
        bits = np.dtype(np.uint64)
        (self.listed,) = workspace.reserve("border", [((self.part.num_local,), self.part.owned.dtype)])
        # Clean, as a run leaves them.
        self.dirty, self.voices = workspace.reserve("marks", [(words, bits), (words, bits)])
        self.earlier: list[np.ndarray] = []
        self.lists = lists  # if the phase asks for them

    def join(self, part: Subgraph, shared: Shared) -> None:
        """Exchange with the devices of another group from now on."""
        self.part, self.shared = part, shared

    def make_room(self, source: Any, state: dict[str, Any]) -> None:
        """Make the arrays for the values before an operator, of fields whose changes will be looked for."""
        self.earlier = [np.empty_like(state[name]) for name in source.remembered]

    def arguments(self, source: Any) -> tuple:
        """Return what the loop takes behind its other arguments."""
        part, shared, schedule = self.part, self.shared, self.shared.schedule
        none = part.owned[:0]
        lists = () if self.lists is None else (read_only(self.lists.indptr), read_only(self.lists.indices))
        deals = () if shared.deals is None else (shared.deals, *shared.rows)
        group = () if shared.group is None else (shared.group,)
        return (
            *lists, shared.world, part.owner, none if part.address is None else part.address,
            none if part.global_ids is None else part.global_ids, part.owned, *self.shard.copies, self.listed,
            self.dirty, self.voices, read_only(schedule.receive_indptr), read_only(schedule.receive_peers),
            shared.num_receivers, shared.mail_at, self._edge_ids(source), shared.mail_bits, shared.mail_ids,
            *deals, *group, *shared.mail, *self.earlier, *shared.posted,
        )  # fmt: skip

    def _edge_ids(self, source: Any) -> np.ndarray:
        """Return the graph's numbers of the edges that the code looks at."""
        return edge_ids_for(self.shard, source, of_all=source.steals and not self.shared.rows_come)

    def buffers(self) -> list[np.ndarray]:
        """Return the arrays, to count their bytes."""
        lists = [] if self.lists is None else [self.lists.indptr, self.lists.indices]
        return [self.listed, self.dirty, self.voices, *self.earlier, *lists]


def edge_ids_for(shard: Shard, source: Any, *, of_all: bool = False) -> np.ndarray:
    """Return the graph's numbers of a device's edges, or of all there are, if a rule asks for them."""
    assert shard.part is not None
    if not asks_edge_ids(source):
        return read_only(shard.part.out_edges.indptr[:0])
    if of_all:
        return read_only(np.arange(shard.graph.num_edges, dtype=shard.graph.indptr.dtype))
    return read_only(shard.part.edge_ids())
