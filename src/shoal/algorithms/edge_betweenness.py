# SPDX-License-Identifier: Apache-2.0
"""Betweenness centrality of edges, by the sweeps that find that of vertices.

What the two sweeps leave behind says all: an edge to the next level has sigma(src) (1 + delta(dst)) / sigma(dst) of
the shortest paths, and ``share`` is the quotient.  State belongs to vertices, so devices run the sweeps, and one
compiled pass over the rows, on the host, adds to the edges what a batch of sources gives them.
Paper: Brandes, "On variants of shortest-path betweenness centrality and their generic computation", 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.betweenness import batches_of, choose_sources, run_batch
from shoal.algorithms.verify_edge_betweenness import verify_edge_betweenness
from shoal.arrays import read_only
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.placement import Placed
from shoal.results import EdgeCentralityResult

# Two threads take 0.15 ms to start, which is what they save on so many edges in a batch of 8 sources (a Kronecker graph
# of scale 16, two cores).
EDGES_PER_THREAD = 2**14


@public_call
def edge_betweenness_centrality(
    graph: Graph | Placed,
    sources: Any = None,
    *,
    samples: int | None = None,
    seed: int | None = None,
    normalized: bool = True,
    validate: bool = False,
    **strategies: Any,
) -> EdgeCentralityResult:
    """Find the share of shortest paths (in hops) that lead along each edge.

    An undirected edge has the paths of both directions, parallel edges have equal shares, and self-loops have none.

    Parameters
    ----------
    sources : vertices whose paths count; by default all, which is exact
    samples : take so many sources at random instead, from ``seed``
    normalized : divide by the number of pairs, as NetworkX does
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.edge_betweenness_centrality(shoal.Graph.from_edges([0, 1, 2], [1, 2, 3]), normalized=False)
    >>> r.src.tolist(), r.dst.tolist(), r.centrality.tolist()
    ([0, 1, 2], [1, 2, 3], [3.0, 4.0, 3.0])
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    _check_output(config)
    chosen = choose_sources(plain, sources, samples, seed)
    everyone = np.arange(plain.num_vertices) if chosen is None else chosen
    edges = _Edges(plain)
    stats = None
    for batch in batches_of(everyone, plain.num_vertices):
        outcome = run_batch("edge_betweenness_centrality", graph, batch, config)
        edges.add(outcome.state)
        stats = outcome.stats if stats is None else stats.including(outcome.stats)
        del outcome  # its arrays are not needed while the next batch runs
    edges.total *= _scale(plain, len(everyone), normalized)
    if validate:
        verify_edge_betweenness(plain, edges.src, edges.dst, edges.total, sources=chosen, normalized=normalized)
    return EdgeCentralityResult(plain, stats, edges.src, edges.dst, edges.total, len(everyone))


def _check_output(config: RunConfig) -> None:
    if config.output != "host":
        raise ArgumentError(f"output={config.output!r} is not allowed with edge_betweenness_centrality, which adds up "
                            "edges on the host; allowed: 'host'")  # fmt: skip


class _Edges:
    """The edges of a graph, each once, and what has been added to them."""

    def __init__(self, graph: Graph) -> None:
        from shoal.backends.cpu.kernels.path_edges import count_once, list_once
        from shoal.backends.cpu.threads import available_cores, run_threads

        self.is_directed = graph.is_directed
        self.num_threads = min(len(available_cores()), 1 + graph.num_edges // EDGES_PER_THREAD)
        given = (read_only(graph.indptr), read_only(graph.indices), graph.is_directed)
        starts = np.zeros(graph.num_vertices + 1, np.int64)
        run_threads(count_once, self.num_threads, *given, starts)
        self.starts = np.cumsum(starts, out=starts)
        self.src, self.dst = (np.empty(int(starts[-1]), graph.vertex_dtype) for _ in range(2))
        run_threads(list_once, self.num_threads, *given, self.starts, self.src, self.dst)
        self.total = np.zeros(len(self.src))

    def add(self, state: dict[str, np.ndarray]) -> None:
        """Add what a batch's sweeps have found."""
        from shoal.backends.cpu.kernels.path_edges import add_paths
        from shoal.backends.cpu.threads import run_threads

        found = state["depth"], state["paths"], state["share"]
        run_threads(add_paths, self.num_threads, self.starts, self.dst, self.is_directed, *found, self.total)


def _scale(graph: Graph, num_sources: int, normalized: bool) -> float:
    """Return NetworkX's factor: over the pairs of a source and another vertex, or from the sources taken to all."""
    count = graph.num_vertices
    if count < 2:
        return 1.0
    return 1 / (num_sources * (count - 1)) if normalized else count / (num_sources * (1 if graph.is_directed else 2))
