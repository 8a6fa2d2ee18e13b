# SPDX-License-Identifier: Apache-2.0
"""Advance by priority: order, priorities far apart, an arena too small for them, and priorities that do not change."""

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

import shoal
from graphs import from_pairs, path_graph, random_graph
from placing import THREADS, levels_of, on_threads
from shoal import Constant, Phase, Program, Vertex, advance, atomic, maximum, rule
from shoal.backends.cpu.kernels.ordered import ENTRIES
from shoal.backends.cpu.phase_run import PhaseRun

UNREACHED = 2**60


class Distances(Program):
    """Shortest paths with a bucket for every distance; ``early`` counts visits before a vertex's turn."""

    distance = Vertex("int64", fill=UNREACHED)
    early = Vertex("int64")
    offset = Constant("int64")

    def __init__(self, limit=None):
        self.limit = limit

    def start(self, sources, offset=0):
        for source, distance in sources.items():
            self.distance[source] = distance
        self.offset = offset
        return list(sources)

    @rule
    def bucket(vertex, distance, offset):
        return distance[vertex] + offset

    @rule
    def relax(src, dst, weight, current_priority, distance, early, offset):
        if distance[src] + offset != current_priority:
            atomic.add(early, src, 1)
        return atomic.min(distance, dst, distance[src] + weight)

    def step(self, frontier):
        return advance(frontier, self.relax, priority=self.bucket)

    def phases(self):
        return [Phase(self.step, max_supersteps=self.limit)]


@pytest.fixture(scope="module")
def graph():
    """Weights from 1 to a million: thousands of times more buckets than are within reach at once."""
    plain = random_graph(2000, 9000, seed=8, directed=True, skew=1.2).deduplicated()
    weights = 2.0 ** np.random.default_rng(8).integers(0, 21, plain.num_edges)
    return shoal.Graph.from_csr(plain.indptr, plain.indices, weights.astype(np.int32))


@pytest.fixture
def growths(monkeypatch):
    """Runs begin with two blocks; the list gets an entry whenever one of them asks for more memory."""
    begin, grow = PhaseRun._begin_buckets, PhaseRun.grow
    counted = []

    def begin_small(run, frontier):
        begin(run, frontier)
        count = 2
        run.blocks, run.links = run.blocks[: ENTRIES * count].copy(), run.links[:count].copy()
        run.published = run.published[: 2 * count].copy()

    monkeypatch.setattr(PhaseRun, "_begin_buckets", begin_small)
    monkeypatch.setattr(PhaseRun, "grow", lambda run: counted.append(run) or grow(run))
    return counted


def shortest(graph, sources):
    """Distances from several sources that start at distances of their own."""
    matrix = graph.to_scipy()
    distance = np.min([dijkstra(matrix, indices=source) + begin for source, begin in sources.items()], axis=0)
    return np.where(np.isinf(distance), UNREACHED, distance).astype(np.int64)


@pytest.mark.parametrize("num_threads", THREADS)
def test_the_lowest_goes_first(graph, num_threads):
    result = shoal.run(Distances(), on_threads(graph, num_threads), sources={0: 0})
    np.testing.assert_array_equal(result.distance, shortest(graph, {0: 0}))
    assert not result.early.any()


@pytest.mark.host_only("a GPU has piles, not an arena")
@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_a_full_arena_grows_and_loses_nothing(graph, growths, num_threads):
    """Vertices that find no room are kept aside while several threads look for room at once."""
    placed = on_threads(graph, num_threads)
    for sources in [{0: 0}] * 5 + [dict.fromkeys(range(0, 2000, 3), 0)]:
        result = shoal.run(Distances(), placed, sources=sources)
        np.testing.assert_array_equal(result.distance, shortest(graph, sources))
    assert len(growths) >= 6


@pytest.mark.host_only("a GPU has piles, not an arena")
def test_a_full_arena_adds_no_superstep(graph, growths):
    for limit in range(1, 12):
        result = shoal.run(Distances(limit), on_threads(graph, 1), sources={0: 0})
        assert result.stats.num_supersteps == limit
    assert growths


def test_first_vertices_of_different_priority_wait_their_turn(graph):
    sources = {0: 5000, 7: 0, 9: 10**7}
    result = shoal.run(Distances(), graph, sources=sources)
    np.testing.assert_array_equal(result.distance, shortest(graph, sources))
    assert not result.early.any()


@pytest.mark.parametrize("offset", [-1000, -(10**9)])
def test_a_priority_may_be_negative(graph, offset):
    result = shoal.run(Distances(), graph, sources={0: 0}, offset=offset)
    np.testing.assert_array_equal(result.distance, shortest(graph, {0: 0}))


class BestFirst(Program):
    """Visit what can be reached, in the order of ranks that do not change."""

    seen = Vertex("int64", combine=maximum)
    rank = Constant("int64", is_array=True)

    def start(self, source, rank):
        self.rank = rank
        self.seen[source] = 1
        return [source]

    @rule
    def visit(dst, seen):
        return atomic.max(seen, dst, 1)

    @rule
    def rank_of(vertex, rank):
        return rank[vertex]

    def step(self, frontier):
        return advance(frontier, self.visit, priority=self.rank_of)


RANKS = {
    "rising": np.arange(50),
    "rising far": np.arange(50) * 1000,
    "falling": 10_000 - np.arange(50),
    "falling far": 10**6 - np.arange(50) * 1000,
    "as high as can be": np.full(50, 2**63 - 1),
    "as low as can be": np.full(50, -(2**63)),
    "at the borders of what is told apart": np.resize([2**62, 0, -(2**62)], 50),
}


@pytest.mark.parametrize("name", RANKS)
def test_a_priority_that_does_not_change(name):
    """A vertex that the rule lets in is visited, whether or not its priority moved or lies below the current one."""
    path = path_graph(50, weights=[1] * 49)
    assert set(shoal.run(BestFirst(), path, source=0, rank=RANKS[name]).seen) == {1}


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
@pytest.mark.parametrize("name", RANKS)
def test_a_priority_without_supersteps(name, devices):
    path = path_graph(50, weights=[1] * 49)
    result = shoal.run(BestFirst(), path, source=0, rank=RANKS[name], execution="async", devices=devices)
    assert set(result.seen) == {1}


def test_priorities_at_random(graph):
    rank = np.random.default_rng(3).integers(0, 10**6, graph.num_vertices)
    result = shoal.run(BestFirst(), graph, source=0, rank=rank)
    np.testing.assert_array_equal(result.seen == 1, levels_of(graph, 0) >= 0)


def detours(num_light_edges=0):
    """0 -> 2 looks far away until the way over 1 is found; only then comes 3, farther still, and 4 behind it.

    Light edges elsewhere make the width of a bucket small, where it is chosen from the graph.
    """
    pairs = [(0, 2), (0, 1), (1, 2), (0, 3), (3, 4)] + [(v, v + 1) for v in range(5, 5 + num_light_edges)]
    weights = [1000, 10, 10, 2000, 5] + [1] * num_light_edges
    return from_pairs(pairs, weights=np.array(weights, np.int32), directed=True)


def test_a_bucket_that_only_had_stale_vertices_is_not_the_end():
    result = shoal.run(Distances(), detours(), sources={0: 0})
    assert result.distance.tolist() == [0, 10, 20, 2000, 2005]


def test_shortest_paths_beyond_a_stale_bucket():
    assert shoal.sssp(detours(), 0, delta=1).distance.tolist() == [0, 10, 20, 2000, 2005]
    assert shoal.sssp(detours(3000), 0).distance[:5].tolist() == [0, 10, 20, 2000, 2005]
