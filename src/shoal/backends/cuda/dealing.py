# SPDX-License-Identifier: Apache-2.0
"""Deals: what the devices of a phase need to visit edges for one another: a row each, and where the arrays of all lie.

See kernels/dealing.cuh.  Kernels read the arrays in place, so each GPU must reach the memory of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.cuda.border import InReach, can_reach, edge_ids, pointers
from shoal.backends.cuda.device import Shard
from shoal.backends.cuda.generator import PhaseSource
from shoal.errors import ArgumentError

if TYPE_CHECKING:
    from shoal.backends.cuda.phase_run import PhaseRun

# Places of a row, as in kernels/dealing.cuh.
CHUNKS, LINES, LINE, TAKEN = 1024, 1024 + 4, 4, 3


def check_reach(shards: Sequence[Shard]) -> None:
    """Refuse devices that cannot visit edges for one another."""
    if not can_reach({shard.device.number for shard in shards}):
        names = ", ".join(dict.fromkeys(f"cuda:{shard.device.number}" for shard in shards))
        raise ArgumentError(
            f"stealing='frontier' is not possible on {names}: thieves read the edges of others where they are, and not "
            "each of these GPUs can read the memory of the others; allowed: auto, none"
        )


class Deals:
    """What is there of a phase's runs; each GPU has tables of where it is."""

    def __init__(self, runs: Sequence[PhaseRun], source: PhaseSource) -> None:
        shards = [run.shard for run in runs]
        reach, count = InReach(shards), len(runs)
        self.rows = reach.of_each([LINES + LINE * count] * count, (), np.dtype(np.int64))
        for shard, row in zip(shards, self.rows, strict=True):
            with shard.device.use():
                row[...] = 0
        edges = [shard.edges(incoming=False) for shard in shards]
        self.edge_ids = [_edge_ids(shard, source) for shard in shards]  # as long as there are tables of them
        by_name = [[run.state[name] for run in runs] for name in source.dealt_fields]
        lists = [self.rows, [run.queue for run in runs], *zip(*edges, strict=True), self.edge_ids, *by_name]
        self.tables = [self._tables(shard, lists) for shard in shards]

    @staticmethod
    def _tables(shard: Shard, lists: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the tables on a device's GPU; of what no device has there is none."""
        with shard.device.use():
            return [None if arrays[0] is None else pointers(arrays) for arrays in lists]

    @property
    def thefts(self) -> np.ndarray:
        """The edges that each device visited in the place of another, by their owner and who visited them."""
        return np.stack([row.get()[LINES:].reshape(-1, LINE)[:, TAKEN] for row in self.rows], axis=1)


def _edge_ids(shard: Shard, source: PhaseSource) -> Any:
    with shard.device.use():
        return edge_ids(shard, source)
