# SPDX-License-Identifier: Apache-2.0
"""Pace: what an edge of a push takes a device, as earlier runs of the program on the same shards have shown.

It says how dear it is to bring an edge to another rank.  A program's first run goes by what is usual.  All ranks go by
the same number, as they have to decide alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shoal.backends.loops import control as slot

if TYPE_CHECKING:
    from shoal.backends.cpu.phase_run import PhaseRun
    from shoal.backends.mpi.session import RankSession

#: What a thread takes for an edge before anything is known: near the lower end of what the cost model of this kind of
#: processor has (`model/costs/cpu.toml`: 1.2 to 13 ns), where bringing it elsewhere is dear.
USUAL_SECONDS = 2e-9
#: So many edges it takes to doubt that.
USUAL_EDGES = 1 << 20
#: Of fewer edges in a superstep the time is that of its barriers.
LEAST_EDGES = 1 << 14


class Pace:
    """What this rank's devices have taken for edges; kept with the buffers of its shards."""

    def __init__(self, session: RankSession, runs: Sequence[PhaseRun]) -> None:
        self.session, self.runs = session, runs
        step = getattr(runs[0].phase.step, "__name__", "step")
        shape: list[tuple[tuple[int, ...], np.dtype]] = [((2,), np.dtype(np.int64))]
        (self.seen,) = session.workspaces[0].reserve(f"pace of {session.title}.{step}", shape)

    def seconds_per_edge(self) -> float:
        """Return what an edge takes a device; the ranks tell one another now."""
        graph = self.session.shards[0].graph
        threads = max(shard.device.threads_for(graph) for shard in self.session.everywhere)
        edges, nanoseconds = np.sum(self.session.fleet.gather(self.seen[None]), axis=0)[0].tolist()
        return (USUAL_EDGES * USUAL_SECONDS / threads + nanoseconds * 1e-9) / (USUAL_EDGES + edges)

    def learn(self) -> None:
        """Note what the run that has ended took, but for waiting and exchanges."""
        for run in self.runs:
            rows = np.concatenate([np.empty((0, slot.NUM_TRACE_COLUMNS), np.int64), *run.rows])
            rows = rows[(rows[:, slot.TRACE_DIRECTION] == slot.PUSH) & (rows[:, slot.TRACE_EDGES] >= LEAST_EDGES)]
            others = [slot.TRACE_BEGIN, slot.TRACE_IDLE, slot.TRACE_PACKING, slot.TRACE_COMBINING]
            self.seen += rows[:, slot.TRACE_EDGES].sum(), (rows[:, slot.TRACE_END] - rows[:, others].sum(axis=1)).sum()
