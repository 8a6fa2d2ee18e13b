# SPDX-License-Identifier: Apache-2.0
"""Betweenness centrality by Brandes' two sweeps, for several sources at once.

Forward: breadth-first, counting shortest paths.  Backward: level by level from the deepest, each vertex collects the
dependencies of its successors.  Column k of every array, and bit k of every mask, belongs to source k of the batch.
Masks say which sources an edge concerns, so that the wide arrays are touched only along shortest-path edges: ``visit``
(sources whose frontier a vertex is in), ``seen`` and ``found`` forward; backward ``level_mask`` of the level at hand
and ``deeper_mask`` of the one below it.  These two change places and are never cleared: what is left in them stems from
three or more levels below, and no edge leads that far down.
Paper: Brandes 2001; Gunrock multi-GPU, section IV (two phases, forward and backward).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import as_list, check_vertices, graph_of, make_config
from shoal.algorithms.verify_centrality import verify_betweenness
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import ArgumentError, ConvergenceError, check_integer
from shoal.graph import Graph
from shoal.operators import advance, compute, reduce, swap, update
from shoal.placement import Placed
from shoal.program import Phase, Program, Scalar, Vertex, add, bit_or, maximum
from shoal.results import CentralityResult
from shoal.rules import Rule, atomic, rule
from shoal.run import run_configured

WIDTHS = (1, 4, 8, 16)  # sources per batch; a mask has a bit for each
# The widest batch is for graphs whose state, half a kilobyte a vertex then, stays in a core's cache; on a Kronecker
# graph of a million vertices it was a tenth slower than two batches of 8.
WIDEST_VERTICES = 2048


class Betweenness(Program):
    """Dependencies of one batch of sources, added up per vertex."""

    centrality = Vertex("float64")
    level = Scalar("int64", combine=maximum)
    most_paths = Scalar("float64", combine=maximum)

    def __init__(self, width: int) -> None:
        self.width = width
        mask = "uint8" if width <= 8 else "uint16"
        self.visit, self.seen, self.found = Vertex(mask), Vertex(mask), Vertex(mask, combine=bit_or)
        self.level_mask, self.deeper_mask = Vertex(mask), Vertex(mask)
        self.depth = Vertex("int32", fill=-1, width=width)
        self.paths = Vertex("float64", combine=add, width=width)
        self.dependency = Vertex("float64", width=width)
        self.share = Vertex("float64", width=width)
        for name, made in _rules(width).items():
            setattr(self, name, made)

    def start(self, sources: np.ndarray) -> np.ndarray:
        for k, source in enumerate(sources):
            self.found[source] |= self.found.dtype.type(1 << k)
            self.paths[source, k] = 1.0
        return sources

    def forward(self, frontier):
        reduce(frontier, self.settle, into=self.most_paths)
        update(self.level, self.this_superstep)
        return advance(frontier, self.count_paths, where=self.is_incomplete, direction="auto", early_exit=False)

    def backward(self, frontier):
        compute(frontier, self.mark_level)
        advance(frontier, self.collect)
        compute(frontier, self.close)
        update(self.level, self.level_above)
        swap(self.level_mask, self.deeper_mask)

    def phases(self) -> list[Phase]:
        return [
            Phase(self.forward, until=self.has_overflown, keep=True, joins=self.width),
            Phase(self.backward, begin="replay"),
        ]


@functools.cache
def _rules(width: int) -> dict[str, Rule]:
    """Return the rules for batches of ``width`` sources."""
    everyone = 2**width - 1

    @rule
    def settle(vertex, superstep, visit, seen, found, depth, paths):
        fresh = found[vertex] & ~seen[vertex]
        visit[vertex] = fresh
        seen[vertex] |= fresh
        found[vertex] = 0
        largest = 0.0
        for k in range(width):
            if (fresh >> k) & 1 != 0:
                depth[vertex, k] = superstep
                largest = max(largest, paths[vertex, k])
        return largest

    @rule
    def this_superstep(superstep):
        return superstep

    @rule
    def has_overflown(most_paths):
        return most_paths == np.inf

    @rule
    def is_incomplete(vertex, seen):
        return seen[vertex] != everyone

    @rule
    def count_paths(src, dst, visit, seen, found, paths):
        fresh = visit[src] & ~seen[dst]
        if fresh == 0:
            return False
        atomic.add_row(paths, dst, paths[src], fresh, width)
        if found[dst] & fresh != fresh:
            atomic.bit_or(found, dst, fresh)
        return True

    @rule
    def mark_level(vertex, level, depth, level_mask):
        mask = 0
        for k in range(width):
            if depth[vertex, k] == level:
                mask |= 1 << k
        level_mask[vertex] = mask

    @rule
    def collect(src, dst, level_mask, deeper_mask, dependency, share):
        both = level_mask[src] & deeper_mask[dst]
        if both != 0:
            atomic.add_row(dependency, src, share[dst], both, width)
        return False

    @rule
    def close(vertex, level, depth, paths, dependency, share, centrality):
        total = 0.0
        for k in range(width):
            if depth[vertex, k] == level:
                collected = dependency[vertex, k] * paths[vertex, k]
                share[vertex, k] = (1.0 + collected) / paths[vertex, k]
                if level > 0:
                    total += collected
        centrality[vertex] += total

    @rule
    def level_above(level):
        return level - 1

    forward = (settle, this_superstep, has_overflown, is_incomplete, count_paths)
    made = (*forward, mark_level, collect, close, level_above)
    return {item.name: item for item in made}


@public_call
def betweenness_centrality(
    graph: Graph | Placed,
    sources: Any = None,
    *,
    samples: int | None = None,
    seed: int | None = None,
    normalized: bool = True,
    endpoints: bool = False,
    validate: bool = False,
    **strategies: Any,
) -> CentralityResult:
    """Find the share of shortest paths (in hops) that lead through each vertex.

    Parameters
    ----------
    sources : vertices whose paths count; by default all, which is exact
    samples : take so many sources at random instead, from ``seed``
    normalized : divide by the number of pairs, as NetworkX does
    endpoints : count a path's ends too
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> shoal.betweenness_centrality(shoal.Graph.from_edges([0, 1], [1, 2])).centrality.tolist()
    [0.0, 1.0, 0.0]
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    chosen = choose_sources(plain, sources, samples, seed)
    total, stats = None, None
    everyone = np.arange(plain.num_vertices) if chosen is None else chosen
    for batch in batches_of(everyone, plain.num_vertices):
        outcome = run_batch("betweenness_centrality", graph, batch, config)
        found = outcome.state["centrality"]
        total = found if total is None else np.add(total, found, out=total)
        if endpoints:
            _add_endpoints(total, batch, outcome.state["depth"])
        stats = outcome.stats if stats is None else stats.including(outcome.stats)
        del outcome  # its arrays are not needed while the next batch runs
    _scale(total, plain, chosen, normalized, endpoints)
    if validate:
        verify_betweenness(plain, total, sources=chosen, normalized=normalized, endpoints=endpoints)
    return CentralityResult(plain, stats, total, len(everyone))


def choose_sources(graph: Graph, sources: Any, samples: int | None, seed: int | None) -> np.ndarray | None:
    """Return the sources listed or sampled, None for all."""
    if samples is None:
        if sources is None:
            return None
        return _check_sources(check_vertices("sources", as_list(sources), graph.num_vertices))
    if sources is not None:
        raise ArgumentError(f"samples={samples} and sources= exclude each other; give one of them")
    samples = check_integer("samples", samples, 1, graph.num_vertices)
    seed = None if seed is None else check_integer("seed", seed, 0)
    return np.random.default_rng(seed).choice(graph.num_vertices, samples, replace=False)


def _check_sources(sources: np.ndarray) -> np.ndarray:
    """Refuse an empty list, whose centrality has no scale, and a vertex listed twice."""
    if len(sources) == 0:
        raise ArgumentError("sources=[] is not allowed; it must name at least 1 vertex")
    if len(sources) > 1:  # to look for copies takes a tenth of the time of a call on a tiny graph
        values, counts = np.unique(sources, return_counts=True)
        if counts.max() > 1:
            raise ArgumentError(f"sources names vertex {values[counts.argmax()]} {counts.max()} times; once is allowed")
    return sources


def batch_width(num_vertices: int, num_sources: int) -> int:
    """Return how many sources a batch has room for, of so many sources on a graph of so many vertices."""
    widest = WIDTHS[-1] if num_vertices <= WIDEST_VERTICES else WIDTHS[-2]
    return next(width for width in WIDTHS if width >= min(max(num_sources, 1), widest))


def batches_of(sources: np.ndarray, num_vertices: int) -> list[np.ndarray]:
    """Cut the sources into batches of the same width and a rest; no sources are one batch."""
    width = batch_width(num_vertices, len(sources))
    return [sources[i : i + width] for i in range(0, max(len(sources), 1), width)]


_program = functools.cache(Betweenness)


def run_batch(call: str, graph: Graph | Placed, batch: np.ndarray, config: RunConfig) -> Any:
    """Return the state and statistics of both sweeps from a batch of sources, for the function named ``call``."""
    width = batch_width(graph_of(graph).num_vertices, len(batch))
    outcome = run_configured(_program(width), graph, config, {"sources": batch})
    if outcome.state["most_paths"][0] == np.inf:
        raise ConvergenceError(
            f"{call}: from some of the sources {batch.tolist()} there are more than 1.8e308 shortest paths to a "
            "vertex, too many for double precision; centrality means little on such a graph"
        )
    return outcome


def _add_endpoints(total: np.ndarray, batch: np.ndarray, depth: np.ndarray) -> None:
    """Count every path at its two ends: each vertex reached from a source, and the source as often."""
    for k, source in enumerate(batch):
        reached = depth[:, k] >= 0
        reached[source] = False
        total += reached
        total[source] += np.count_nonzero(reached)


def _scale(total: np.ndarray, graph: Graph, sources: np.ndarray | None, normalized: bool, endpoints: bool) -> None:
    """Multiply a sum of dependencies by NetworkX's factor: over pairs, and from the sources taken to all vertices."""
    others = graph.num_vertices - (0 if endpoints else 1)
    if others < 2 or (sources is not None and len(sources) == 0):
        return
    per_source = 1 / (others - 1) if normalized else others / (1 if graph.is_directed else 2)
    if sources is None:
        total *= per_source / others
        return
    own = total[sources]
    total *= per_source / len(sources)
    if not endpoints:
        # A source is never inside the paths that start at it: it has one sample fewer, and alone none (not a number).
        total[sources] = own * (per_source / (len(sources) - 1)) if len(sources) > 1 else np.nan
