# SPDX-License-Identifier: Apache-2.0
"""Communities by the Louvain method: local moves, then the same on the graph of communities, until nothing is gained.

What one climb through the levels has found is where the next begins at the lowest: a vertex that followed its community
into another may leave it again.  From level to level and from climb to climb the modularity never falls; when a climb
gains less than the threshold, it was the last.  (Blondel, Guillaume, Lambiotte and Lefebvre 2008; to climb anew:
Rotta and Noack 2011)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.algorithms.arguments import check_undirected, graph_of, make_config
from shoal.algorithms.contraction import Level, contract, first_level
from shoal.algorithms.label_propagation import check_weights, smallest_members
from shoal.algorithms.local_moves import LocalMoves
from shoal.algorithms.verify_communities import verify_louvain
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import check_integer, check_number
from shoal.graph import Graph
from shoal.placement import Placed, placed_for
from shoal.results import LouvainResult
from shoal.run import run_configured
from shoal.stats import Stats

# Climbs gain most at first: on social and random graphs the second gained up to 0.02, the third at most 0.001.
LEAST_CLIMB = 1e-4


@public_call
def louvain_communities(
    graph: Graph | Placed,
    *,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    max_supersteps: int = 1000,
    weighted: bool = False,
    validate: bool = False,
    **strategies: Any,
) -> LouvainResult:
    """Find communities of high modularity in an undirected graph, by the Louvain method.

    Parameters
    ----------
    resolution : more of it makes smaller communities
    threshold : a level ends when supersteps gain no more modularity than this
    max_supersteps : and after so many
    weighted : edges count by their weights, which must not be negative
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> g = shoal.Graph.from_edges([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3])
    >>> r = shoal.louvain_communities(g)
    >>> r.label.tolist(), r.count, round(r.modularity, 3)
    ([0, 0, 0, 3, 3, 3], 2, 0.357)
    """
    plain, config = graph_of(graph), make_config(strategies)
    check_undirected("louvain_communities", plain)
    check_weights(plain, weighted)
    resolution = check_number("resolution", resolution, 0)
    threshold = check_number("threshold", threshold, 0)
    limit = check_integer("max_supersteps", max_supersteps, 1)
    search = _Search(placed_for(graph, config), config, resolution, threshold, limit)
    label, count = smallest_members(search.find(first_level(plain, weighted)))
    assert search.stats is not None
    if validate:
        verify_louvain(plain, label, search.modularity, resolution=resolution, weighted=weighted)
    return LouvainResult(plain, search.stats, label, count, search.modularity, tuple(search.levels))


@dataclass
class _Search:
    """One call: how it runs, and what its runs have brought."""

    placed: Placed
    config: RunConfig
    resolution: float
    threshold: float
    max_supersteps: int
    modularity: float = -np.inf
    levels: list[tuple[int, float]] = field(default_factory=list)  # communities and modularity after each
    stats: Stats | None = None

    def find(self, level: Level) -> np.ndarray:
        """Return the community of every vertex, climb after climb."""
        label = np.arange(level.graph.num_vertices)
        while True:
            before = self.modularity
            label = self._climb(level, label)
            if not self.modularity > before + LEAST_CLIMB:
                return label

    def _climb(self, level: Level, label: np.ndarray) -> np.ndarray:
        """Return the communities after local moves from given ones, on the level and those above it."""
        placed, owner, community = self.placed, self.placed.owner, label
        label = np.arange(level.graph.num_vertices)
        while True:
            names, community = np.unique(self._move(level, placed, community), return_inverse=True)
            label = community[label]
            self.levels.append((len(names), self.modularity))
            if len(names) == level.graph.num_vertices or level.is_empty:
                return label
            level = contract(level, community, len(names))
            owner = None if owner is None else np.asarray(owner)[names]
            placed = Placed(
                level.graph, placed.devices, placed.num_devices, placed.partition, placed.duplication, owner
            )
            community = np.arange(len(names))

    def _move(self, level: Level, placed: Placed, community: np.ndarray) -> np.ndarray:
        """Return the communities of the best modularity that local moves find."""
        program = LocalMoves(level.graph.is_weighted, self.max_supersteps)
        arguments = {"level": level, "community": community, "resolution": self.resolution,
                     "least_gain": self.threshold}  # fmt: skip
        outcome = run_configured(program, placed, self.config, arguments)
        self.stats = outcome.stats if self.stats is None else self.stats.including(outcome.stats)
        self.modularity = 0.0 if level.is_empty else float(outcome.state["best_quality"][0])
        return outcome.state["kept"]
