# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search, direction-optimizing, from one source or from up to 64 at once.

One source: a vertex's parent is claimed by compare-and-exchange (push) or by the vertex itself (pull, with early exit);
the distance is the superstep's number.  Many sources: a bit per source in one word per vertex, so that an edge is
looked at once for all of them (multi-source BFS, Then et al., VLDB 2014).  Directions: see `shoal.backends.cpu`.
Paper: Gunrock multi-GPU, sections IV (Algorithms 1 and 2) and VI-A; Beamer et al., SC 2012.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shoal.algorithms.arguments import as_list, check_vertex, check_vertices, graph_of, is_batch, make_config
from shoal.algorithms.sssp import FARTHEST_WORD, HALF, split_words
from shoal.algorithms.verify_bfs import verify_bfs
from shoal.calls import public_call
from shoal.config import RunConfig
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.operators import advance, compute, everything, gather
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Vertex, bit_or, first, minimum
from shoal.results import TraversalResult
from shoal.rules import atomic, rule
from shoal.run import run_configured

UNREACHED = -1
FAR = 2**31 - 1  # without supersteps: farther than anything
NOBODY = 2**63 - 1
MAX_BATCH = 64  # bits in the word of sources that each vertex carries


class BFS(Program):
    """Hops and parents from one source."""

    distance = Vertex("int32", fill=UNREACHED, combine=first)
    parent = Vertex("vertex", fill=UNREACHED, combine=first)
    targets = Constant("vertex", is_array=True)

    def __init__(self, cutoff: int | None = None, has_targets: bool = False) -> None:
        self.max_distance = cutoff
        self.has_targets = has_targets

    def start(self, source: int, targets: Any = ()) -> list[int]:
        self.distance[source] = 0
        self.parent[source] = source
        self.targets = targets
        return [source]

    @rule
    def unvisited(vertex, parent):
        return parent[vertex] == UNREACHED

    @rule
    def discover(src, dst, superstep, distance, parent):
        if atomic.compare_exchange(parent, dst, UNREACHED, src):
            distance[dst] = superstep + 1
            return True
        return False

    @rule
    def reached_targets(targets, parent):
        for i in range(len(targets)):
            if parent[targets[i]] == UNREACHED:
                return False
        return True

    def step(self, frontier):
        return advance(frontier, self.discover, where=self.unvisited, direction="auto", unique=True)

    def phases(self) -> list[Phase]:
        until = self.reached_targets if self.has_targets else None
        return [Phase(self.step, until=until, joins=1, max_supersteps=self.max_distance)]


class AsynchronousBFS(Program):
    """Hops and parents without supersteps, as words: of the hops and the neighbour that told of them the least.

    Neighbours that tell of as many hops come too late, unless the smallest of them is asked for; a vertex that comes
    nearer tells its neighbours again (see `shoal.algorithms.sssp.PackedSSSP`).
    """

    word = Vertex("int64", fill=FARTHEST_WORD, combine=minimum)
    cutoff = Constant("int64")

    def __init__(self, is_deterministic: bool = False) -> None:
        self.relax = self.relax_to_smallest if is_deterministic else self.relax_to_any

    def start(self, source: int, cutoff: int | None) -> list[int]:
        self.word[source] = source
        self.cutoff = FAR if cutoff is None else min(cutoff, FAR)
        return [source]

    @rule
    def level(vertex, word):
        return word[vertex] >> HALF

    @rule
    def relax_to_any(src, dst, word, cutoff):
        proposal = (word[src] >> HALF) + 1
        if proposal >= word[dst] >> HALF or proposal > cutoff:
            return False
        return atomic.min(word, dst, (proposal << HALF) | src)

    @rule
    def relax_to_smallest(src, dst, word, cutoff):
        proposal = (word[src] >> HALF) + 1
        before = word[dst] >> HALF
        if proposal > before or proposal > cutoff:
            return False
        return atomic.min(word, dst, (proposal << HALF) | src) and proposal < before

    def step(self, frontier):
        return advance(frontier, self.relax, priority=self.level, unique=True)


class BatchBFS(Program):
    """Hops and parents from up to 64 sources in one traversal; bit k of a word stands for source k."""

    visit = Vertex("uint64")  # sources whose frontier the vertex is in
    seen = Vertex("uint64")
    found = Vertex("uint64", combine=bit_or)  # sources that reach the vertex in this superstep
    everyone = Constant("uint64")

    def __init__(self, width: int, cutoff: int | None = None) -> None:
        self.distance = Vertex("int32", fill=UNREACHED, combine=first, width=width)
        self.parent = Vertex("vertex", fill=UNREACHED, combine=first, width=width)
        self.max_distance = cutoff

    def start(self, sources: np.ndarray) -> np.ndarray:
        for k, source in enumerate(sources):
            self.found[source] |= np.uint64(1) << np.uint64(k)
            self.distance[source, k] = 0
            self.parent[source, k] = source
        self.everyone = 2 ** len(sources) - 1
        return sources

    @rule
    def settle(vertex, visit, seen, found):
        visit[vertex] = found[vertex]
        seen[vertex] |= found[vertex]
        found[vertex] = 0

    @rule
    def is_incomplete(vertex, seen, found, everyone):
        return seen[vertex] | found[vertex] != everyone

    @rule
    def discover(src, dst, superstep, visit, seen, found, distance, parent):
        fresh = visit[src] & ~seen[dst]
        if fresh == 0:
            return False
        fresh &= ~atomic.bit_or(found, dst, fresh)
        k = 0
        while fresh != 0:
            if fresh & np.uint64(1) != 0:
                distance[dst, k] = superstep + 1
                parent[dst, k] = src
            fresh >>= np.uint64(1)
            k += 1
        return True

    def step(self, frontier):
        compute(frontier, self.settle)
        return advance(frontier, self.discover, where=self.is_incomplete, direction="auto")

    def phases(self) -> list[Phase]:
        return [Phase(self.step, max_supersteps=self.max_distance)]


class SmallestParents(Program):
    """The smallest of the possible parents of every vertex, given the distances."""

    distance = Constant("int32", is_array=True)
    parent = Vertex("vertex", fill=UNREACHED)

    def start(self, distance: np.ndarray) -> None:
        self.distance = distance

    @rule
    def candidate(src, dst, distance):
        if distance[src] >= 0 and distance[src] + 1 == distance[dst]:
            return src
        return NOBODY

    @rule
    def keep(vertex, value, distance, parent):
        if distance[vertex] == 0:
            parent[vertex] = vertex
        elif distance[vertex] > 0:
            parent[vertex] = value

    def step(self, frontier):
        gather(everything, self.candidate, finish=self.keep, combine=minimum, dtype="int64")

    def phases(self) -> list[Phase]:
        return [Phase(self.step, max_supersteps=1)]


@public_call
def bfs(
    graph: Graph | Placed,
    source: Any,
    *,
    cutoff: int | None = None,
    targets: Any = None,
    parents: bool = True,
    validate: bool = False,
    **strategies: Any,
) -> TraversalResult:
    """Find the hops from ``source`` to every vertex, and a tree of shortest paths.

    Parameters
    ----------
    source : a vertex, or a list of them: then ``distance`` and ``parent`` have a row for each
    cutoff : do not go farther than so many hops
    targets : stop when these are reached; what was not reached until then counts as unreachable
    parents : False leaves ``parent`` out of the result
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.bfs(shoal.Graph.from_edges([0, 1], [1, 2]), source=0)
    >>> r.distance.tolist(), r.parent.tolist()
    ([0, 1, 2], [0, 0, 1])
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    if cutoff is not None:
        cutoff = check_integer("cutoff", cutoff, 0)
    if is_batch(source):
        if targets is not None:
            raise ArgumentError("targets= needs one source; a batch runs until every source is done")
        result = _bfs_batch(graph, plain, source, cutoff, config)
    else:
        result = _bfs_single(graph, plain, source, cutoff, targets, config)
    if validate:
        verify_bfs(plain, result.source, result.distance, result.parent, cutoff=cutoff, targets=targets)
    if not parents:
        result.parent = None
    return result


def _bfs_single(graph, plain: Graph, source: Any, cutoff: int | None, targets: Any, config: RunConfig):
    source = check_vertex("source", source, plain.num_vertices)
    wanted = () if targets is None else check_vertices("targets", as_list(targets), plain.num_vertices)
    if config.execution == "async":
        return _bfs_asynchronous(graph, plain, source, cutoff, targets, config)
    program = BFS(cutoff, has_targets=targets is not None)
    outcome = run_configured(program, graph, config, {"source": source, "targets": wanted})
    distance, parent = outcome.state["distance"], outcome.state["parent"]
    if config.deterministic:
        parent = _smallest_parents(graph, distance, config)
    return TraversalResult(plain, outcome.stats, source, distance, parent)


def _bfs_asynchronous(graph, plain: Graph, source: int, cutoff: int | None, targets: Any, config: RunConfig):
    if targets is not None:
        raise ArgumentError(
            "execution='async' does not go with targets=: that they are reached is asked once a superstep"
        )
    if plain.num_vertices > FAR:
        raise ArgumentError(f"execution='async': bfs of {plain.num_vertices} vertices; without supersteps there may be "
                            f"{FAR}, whose ids and hops share a word")  # fmt: skip
    outcome = run_configured(_program(config.deterministic), graph, config, {"source": source, "cutoff": cutoff})
    hops, parent = split_words(outcome.state["word"])
    distance = np.where(hops == FAR, np.int32(UNREACHED), hops)
    return TraversalResult(plain, outcome.stats, source, distance, parent.astype(plain.vertex_dtype, copy=False))


_program = functools.cache(AsynchronousBFS)


def _bfs_batch(graph, plain: Graph, source: Any, cutoff: int | None, config: RunConfig) -> TraversalResult:
    sources = check_vertices("source", source, plain.num_vertices)
    if len(sources) == 0:
        raise ArgumentError("source has 0 vertices; a batch needs at least 1")
    rows: dict[str, Any] = {}
    stats = None
    for begin in range(0, len(sources), MAX_BATCH):
        batch = sources[begin : begin + MAX_BATCH]
        outcome = run_configured(BatchBFS(len(batch), cutoff), graph, config, {"sources": batch})
        for name in ("distance", "parent"):
            columns = outcome.state[name]
            if begin == 0:
                rows[name] = np.empty_like(columns, order="C", shape=(len(sources), plain.num_vertices))
            rows[name][begin : begin + MAX_BATCH] = columns.T
        del columns
        stats = outcome.stats if stats is None else stats.including(outcome.stats)
        del outcome  # its arrays are not needed while the next batch runs
    distance, parent = rows["distance"], rows["parent"]
    if config.deterministic:
        parent = np.stack([_smallest_parents(graph, row, config) for row in distance])
    return TraversalResult(plain, stats, sources, distance, parent)


def _smallest_parents(graph: Graph | Placed, distance: np.ndarray, config: RunConfig) -> np.ndarray:
    return run_configured(SmallestParents(), graph, config, {"distance": distance}).state["parent"]
