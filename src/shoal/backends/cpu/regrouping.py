# SPDX-License-Identifier: Apache-2.0
"""Ownership stealing: devices hand over their parts while there is little to do, and take them back when there is more.

At level k every 2^k-th device takes part: it has its own part and those of the devices behind it, as if the graph had
been partitioned among so many devices from the start.  So a group is another world block, another schedule, another
table of owners, and the same loops of the same devices.  Whoever does not take part has no thread that runs, only
memory.  Compiled code decides (`kernels.grouping`); the loops then come back between two supersteps, when nothing is on
its way, and values, frontiers and what is visited next go to where they are owned from now on.  When the phase ends all
values go home.  (GUM, section IV; its reduction tree over links that are all alike.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import read_only
from shoal.backends.base import Reason, Regrouping
from shoal.backends.cpu.border import Shared
from shoal.backends.cpu.kernels import grouping
from shoal.backends.cpu.many_runs import ManyRuns
from shoal.backends.cpu.moving import move_frontier, set_agreed
from shoal.backends.cpu.rows import copy_rows
from shoal.backends.cpu.threads import available_cores
from shoal.backends.loops import control as slot
from shoal.program import Scalar, Vertex

if TYPE_CHECKING:
    from shoal.backends.cpu.phase_run import PhaseRun
    from shoal.backends.cpu.sessions import ManyDevices
    from shoal.strategies.subgraph import Subgraph

# What a change takes beside moving values, until one was measured: loops leave, and threads start, a quarter of a
# millisecond for two of them; caches are cold on the other side.
LEAST_COST_SECONDS = 5e-4


class RegroupingRuns(ManyRuns):
    """The runs of one phase on devices that may hand their parts over; `resume` until it is done."""

    budget = slot.UNLIMITED  # tests let the loops come back after every superstep

    def __init__(self, runs: Sequence[PhaseRun], shared: Shared, session: ManyDevices) -> None:
        super().__init__(runs, shared)
        self.session, self.source = session, runs[0].loaded.source
        self.parts_by_level = runs[0].shard.coarser
        self.parts_by_level[0] = session.parts
        self.level, self.num_supersteps = 0, 0
        self.made: list[Regrouping] = []
        self.whole = shared  # of all devices
        self.sent, self.stolen = np.zeros((2, len(runs), len(runs)), np.int64)  # in groups that are no more
        assert shared.group is not None
        self.group = shared.group
        self.group[grouping.COST] = LEAST_COST_SECONDS * 1e9
        self.group[grouping.AT_ONCE] = len(available_cores()) / runs[0].num_threads

    def resume(self) -> Reason:
        """Run until the loops come back and return why."""
        for run in self.members:
            run.control[slot.BUDGET] = min(self.budget, int(run.control[slot.BUDGET]))
        self.group[grouping.WAITS] = 1
        reason = super().resume()
        for run in self.runs:  # whoever asked has been heard; what is asked again is asked before the next time
            run.control[slot.BUDGET] = slot.UNLIMITED
        self._add_rows()
        if reason == Reason.DONE:
            self._move_values(0)
        elif reason == Reason.BUDGET and self.wanted_level() != self.level:
            if self._can_change():
                self._change_to(self.wanted_level())
            self.group[[grouping.LEVEL, grouping.WANTED]] = self.level
            self.group[grouping.LEVELS :: grouping.PER_LEVEL] = 0.0
        return reason

    def wanted_level(self) -> int:
        """Return the level that the loops have decided for."""
        return int(self.group[grouping.WANTED])

    def _can_change(self) -> bool:
        """Whether frontiers are lists or in buckets; about a pull they are bitmaps, and the group stays."""
        control = self.runs[0].control
        is_list = control[slot.HAS_QUEUE] and not control[slot.HAS_PULLED_LAST] and control[slot.DIRECTION] == slot.PUSH
        return self.source.flow.ordered is not None or bool(is_list)

    def _add_rows(self) -> None:
        """Add a row for each superstep on devices that did not take part: nothing was done there."""
        rows = self.runs[0].rows[-1]
        self.num_supersteps += len(rows)
        kept = [slot.TRACE_BEGIN, slot.TRACE_END, slot.TRACE_DIRECTION]
        nothing = np.zeros_like(rows)
        nothing[:, kept] = rows[:, kept]
        nothing[:, slot.TRACE_END] = rows[:, slot.TRACE_BEGIN]
        for run in self.runs:
            if run not in self.members:
                run.rows.append(nothing.copy())

    # Changes

    def _change_to(self, level: int) -> None:
        """Let the devices of a level go on, with what all devices have to do."""
        began = time.perf_counter()
        self.sent, self.stolen = self._sent_so_far(), self.thefts
        self._move_values(level)
        parts, before, after = self._parts_at(level), self.members, self.runs[:: 1 << level]
        move_frontier(before, after, parts)
        set_agreed(before[0], [run for run in after if run not in before])
        self.shared = self._make_shared(parts)
        for run, part in zip(after, parts, strict=True):
            run.join(part, self.shared)
        self._take_part(after)
        self.level = level
        seconds = time.perf_counter() - began
        hosts = [device >> level << level for device in range(len(self.runs))]
        self.made.append(Regrouping(self.num_supersteps, hosts, seconds))
        self.group[grouping.COST] = (LEAST_COST_SECONDS + seconds) * 1e9

    def _parts_at(self, level: int) -> list[Subgraph]:
        """Return the parts of the devices of a level; they are kept with the first shard."""
        if level not in self.parts_by_level:
            self.parts_by_level[level] = fold(self.parts_by_level[0], level)
        return self.parts_by_level[level]

    def _make_shared(self, parts: list[Subgraph]) -> Shared:
        """Return what a group's devices have in common; its mail lies where that of all devices does."""
        threads = sum(run.num_threads for run in self.runs[: len(parts)])
        schedule = self.whole.schedule.among(len(parts))
        shared = Shared(parts, schedule, self.source, self.session.states[0], threads, self.session.workspaces[0])
        shared.group = self.group
        return shared

    def _move_values(self, level: int) -> None:
        """Put the values of vertices whose owner is another at a level where it is; what stays behind are copies."""
        finer, coarser = sorted((self.level, level))
        for part in self._parts_at(finer) if finer != coarser else ():
            home, host = part.device << finer, part.device << finer >> coarser << coarser
            if home == host:
                continue
            giver, taker = (home, host) if level > self.level else (host, home)
            states = self.session.states
            self._hand_over(states[giver], states[taker], part.owned, comes_back=level < self.level)

    def _hand_over(self, giver: dict[str, Any], taker: dict[str, Any], owned: np.ndarray, *, comes_back: bool) -> None:
        """Hand some vertices over; a device that comes back is told what it has missed of what all devices know."""
        sharing = self.source.flow.sharing
        assert sharing is not None
        resets = {name for number in range(len(sharing.operators)) for name in sharing.resets(number)}
        for name, declared in self.session.fields.items():
            if isinstance(declared, Scalar):
                if comes_back:
                    taker[name][:] = giver[name]
            elif isinstance(declared, Vertex):
                if comes_back and name in sharing.whole_fields:
                    np.copyto(taker[name], giver[name])
                else:
                    copy_rows(0, 1, giver[name], owned, taker[name], owned)
                if name in resets:
                    giver[name][owned] = sharing.identity(name, giver[name].dtype)

    # What all groups did

    def _with_present(self, counted: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Return what devices did to one another in earlier groups and in the present one."""
        members = np.arange(0, len(self.runs), 1 << self.level)
        total = counted.copy()
        total[np.ix_(members, members)] += now
        return total

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        return self.stolen if self.shared.deals is None else self._with_present(self.stolen, self.shared.thefts)

    def _sent_so_far(self) -> np.ndarray:
        return self._with_present(self.sent, self.shared.traffic())

    @property
    def traffic(self) -> Callable[[], np.ndarray]:
        """What tells the bytes that each device has sent to each."""
        return self._sent_so_far

    @property
    def regroupings(self) -> list[Regrouping]:
        """When devices handed over their parts, or took them back."""
        return self.made

    @property
    def peaks(self) -> list[int]:
        """The most memory that each device's buffers took, with its share of what is for all."""
        return [run.peaks[0] + self.whole.bytes_of(number) for number, run in enumerate(self.runs)]


def fold(parts: Sequence[Subgraph], level: int) -> list[Subgraph]:
    """Return the parts of every 2^level-th device, each with those behind it; of copies nothing is known."""
    count = (len(parts) + (1 << level) - 1) >> level
    owner = read_only(parts[0].owner >> level)
    none, offsets = parts[0].copy_here[:0], read_only(np.zeros(count + 1, np.int64))
    sizes = read_only(np.zeros(count, np.int64))
    return [
        replace(
            parts[device << level], device=device, num_devices=count, owner=owner,
            owned=read_only(np.flatnonzero(owner == device).astype(parts[0].owned.dtype)),
            copy_indptr=offsets, copy_here=none, copy_there=none, border_sizes=sizes,
        )
        for device in range(count)
    ]  # fmt: skip
