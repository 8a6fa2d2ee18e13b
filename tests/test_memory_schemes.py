# SPDX-License-Identifier: Apache-2.0
"""Memory schemes: frontiers get the room they need, limits hold, and what a run would need is said."""

import json
import re

import numpy as np
import pytest

import shoal
from shoal import atomic
from shoal.config import AXES, parse_bytes
from shoal.strategies import memory
from shoal.strategies.memory import SCHEMES

pytestmark = pytest.mark.host_only("about the room of frontiers on the CPU")

KRONECKER = shoal.generate.rmat(9, seed=3, weights=(1, 20))
GRID = shoal.generate.grid(25, 30, weights=(1, 20), seed=2)
GRAPHS = {"kronecker": KRONECKER, "grid": GRID}
DEVICES = ("cpu:1x2", "cpu:3x1")
MANY_SOURCES = [3, 50, 100, 200]
ALGORITHMS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, 0, **how),
    "bfs_push": lambda graph, **how: shoal.bfs(graph, 0, direction="push", **how),
    "bfs_pull": lambda graph, **how: shoal.bfs(graph, 0, direction="pull", **how),
    "bfs_batch": lambda graph, **how: shoal.bfs(graph, MANY_SOURCES, **how),
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, **how),
    "components": lambda graph, **how: shoal.connected_components(graph, **how),
    "betweenness": lambda graph, **how: shoal.betweenness_centrality(graph, MANY_SOURCES, **how),
    "pagerank": lambda graph, **how: shoal.pagerank(graph, **how),
}
VALUES = {"components": "label", "betweenness": "centrality", "pagerank": "rank"}


class Pairs(shoal.Program):
    """A filter before an advance, whose outputs stay in the step; a vertex may join again and again."""

    left = shoal.Vertex("int64", fill=0, combine=shoal.maximum)

    def start(self, source, steps):
        self.left[source] = steps
        return [source]

    @shoal.rule
    def goes_on(vertex, left):
        return left[vertex] > 0

    @shoal.rule
    def hand_on(src, dst, left):
        return atomic.max(left, dst, left[src] - 1)

    def step(self, frontier):
        return shoal.advance(shoal.filter(frontier, self.goes_on), self.hand_on)


class Twice(shoal.Program):
    """A vertex joins the frontiers of its first two visits."""

    times = shoal.Vertex("int64", fill=0)
    last = shoal.Vertex("int64", fill=-1)

    def start(self):
        self.times[0] = 1
        return [0]

    @shoal.rule
    def wants(vertex, times, last, superstep):
        return times[vertex] < 2 and last[vertex] < superstep

    @shoal.rule
    def visit(src, dst, times, last, superstep):
        if atomic.max(last, dst, superstep):
            atomic.add(times, dst, 1)
            return True
        return False

    def step(self, frontier):
        return shoal.advance(frontier, self.visit, where=self.wants, direction="auto")

    def phases(self):
        return [shoal.Phase(self.step, joins=2)]


class Lying(shoal.Program):
    """Its output is said to be unique, and is not."""

    nothing = shoal.Vertex("int64")

    def start(self):
        return [0]

    @shoal.rule
    def always(src, dst):
        return True

    def step(self, frontier):
        return shoal.advance(frontier, self.always, unique=True)

    def phases(self):
        return [shoal.Phase(self.step, max_supersteps=20)]


def fresh(graph):
    """The same graph, with nothing kept of earlier runs."""
    return shoal.Graph.from_csr(graph.indptr, graph.indices, graph.weights, directed=graph.is_directed)


@pytest.fixture(autouse=True)
def own_factors(tmp_path, monkeypatch):
    """Let no run see the room that runs of other tests needed; compiled code is found where it is."""
    monkeypatch.setattr("shoal.execution.bsp.base_folder", lambda: tmp_path)
    return tmp_path


def test_the_table_has_every_scheme():
    assert set(AXES["memory"]) == {"auto", *SCHEMES}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("devices", DEVICES)
def test_room_grows_from_almost_nothing(algorithm, devices, monkeypatch):
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    name = VALUES.get(algorithm, "distance")
    for graph in GRAPHS.values():
        expected = ALGORITHMS[algorithm](fresh(graph), devices=devices)
        found = ALGORITHMS[algorithm](fresh(graph), devices=devices, memory="fixed")
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
        assert found.stats.num_supersteps == expected.stats.num_supersteps
        assert found.stats.edges_visited == pytest.approx(expected.stats.edges_visited, rel=0.2)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_outputs_inside_a_step_grow_too(devices, scheme, monkeypatch):
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    for graph in GRAPHS.values():
        expected = np.maximum(6 - shoal.bfs(graph, 0).distance, 0)
        expected[shoal.bfs(graph, 0).distance < 0] = 0
        found = shoal.run(Pairs(), fresh(graph), source=0, steps=6, devices=devices, memory=scheme)
        np.testing.assert_array_equal(found.left, expected)


@pytest.mark.parametrize("do_b", [0.1, 1e9])
@pytest.mark.parametrize("do_a", [0.01, 1.0, 3.0])
def test_a_push_after_a_pull_has_room_for_its_frontier_too(do_a, do_b, monkeypatch):
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    ends = np.random.default_rng(0).integers(0, 1000, (2, 3000))
    graph = shoal.Graph.from_edges(*ends, num_vertices=1000)
    expected = shoal.run(Twice(), graph, do_a=do_a, do_b=do_b)
    found = shoal.run(Twice(), fresh(graph), do_a=do_a, do_b=do_b, memory="fixed")
    np.testing.assert_array_equal(found.times, expected.times)


@pytest.mark.parametrize("limit", [None, 140_000])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_output_that_does_not_fit_is_refused_under_every_scheme(scheme, limit):
    ends = np.random.default_rng(0).integers(0, 3000, (2, 60_000))
    with pytest.raises(shoal.ProgramError, match="twice in a superstep"):
        shoal.run(Lying(), shoal.Graph.from_edges(*ends), memory=scheme, memory_limit=limit)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("components", "pagerank")])
def test_schemes_in_order_of_what_they_reserve(algorithm, devices):
    # Denser than the others, so that there are more edges than anything else.
    graph = shoal.generate.rmat(9, 32, seed=3, weights=(1, 20))
    run = ALGORITHMS[algorithm]
    peaks = {how: run(fresh(graph), devices=devices, memory=how).stats.peak_memory_bytes for how in SCHEMES}
    assert peaks["fused"] <= peaks["just-enough"]
    assert peaks["fused"] < peaks["maximum"]


def test_programs_whose_outputs_are_known_get_fixed_rooms():
    assert shoal.pagerank(KRONECKER).stats.config["memory"] == "fixed"
    assert shoal.connected_components(KRONECKER).stats.config["memory"] == "fixed"
    assert shoal.bfs(KRONECKER, 0).stats.config["memory"] == "fused"
    assert shoal.sssp(KRONECKER, 0).stats.config["memory"] == "fused"
    assert shoal.betweenness_centrality(KRONECKER, [0]).stats.config["memory"] == "fused"


def test_a_second_run_has_the_room_of_the_first(own_factors):
    first = shoal.bfs(fresh(GRID), 0, direction="push", memory="fixed")
    (kept,) = own_factors.iterdir()
    factors = json.loads(kept.read_text())
    assert factors["BFS 0 1"] > memory.FIRST_FACTOR
    again = shoal.bfs(fresh(GRID), 0, direction="push", memory="fixed")  # it finds the file
    assert json.loads(kept.read_text()) == factors
    assert again.stats.peak_memory_bytes <= first.stats.peak_memory_bytes


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[1]", '{"BFS 0 1": "much"}', '{"BFS 0 1": -1}', '{"BFS 0 1": Infinity}', '{"BFS 0 1": 1e30}'],
)
def test_a_broken_file_of_factors_is_no_reason_to_fail(own_factors, broken):
    shoal.bfs(fresh(GRID), 0, memory="fixed")
    (kept,) = own_factors.iterdir()
    kept.write_text(broken)
    np.testing.assert_array_equal(shoal.bfs(fresh(GRID), 0, memory="fixed").distance, shoal.bfs(GRID, 0).distance)


def test_factors_that_cannot_be_written_are_kept_with_the_graph(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr("shoal.execution.bsp.base_folder", lambda: blocked / "folder")
    graph = fresh(GRID)
    shoal.bfs(graph, 0, memory="fixed")
    np.testing.assert_array_equal(shoal.bfs(graph, 0, memory="fixed").distance, shoal.bfs(GRID, 0).distance)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_limit_holds_or_the_error_says_what_is_needed(algorithm, devices, scheme):
    graph = fresh(KRONECKER)
    expected = ALGORITHMS[algorithm](graph, devices=devices)
    limit, needed, found = 0, 1, None
    while needed > limit:
        limit = needed
        try:
            found = ALGORITHMS[algorithm](graph, devices=devices, memory=scheme, memory_limit=limit)
        except shoal.OutOfMemoryError as error:
            pattern = rf"device cpu:\d needs (\d+) bytes beside the graph; memory_limit={limit}"
            needed = int(re.search(pattern, str(error))[1])
    name = VALUES.get(algorithm, "distance")
    np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)
    assert max(found.stats.device_peaks) <= limit
    assert limit <= 1.35 * max(expected.stats.device_peaks)


def test_what_an_earlier_run_left_does_not_count():
    limit = max(shoal.bfs(fresh(KRONECKER), 0, memory_limit="1GB").stats.device_peaks)
    graph = fresh(KRONECKER)
    shoal.betweenness_centrality(graph, MANY_SOURCES)
    assert max(shoal.bfs(graph, 0, memory_limit=limit).stats.device_peaks) <= limit


def test_what_was_needed_is_kept_not_what_there_was(own_factors):
    graph = fresh(GRID)
    alone = fresh(GRID)
    shoal.bfs(alone, MANY_SOURCES, memory="fixed")
    (kept,) = own_factors.iterdir()
    expected = json.loads(kept.read_text())
    kept.unlink()
    shoal.bfs(graph, MANY_SOURCES)  # leaves a queue as long as can be needed
    shoal.bfs(graph, MANY_SOURCES, memory="fixed")
    assert json.loads(kept.read_text()) == expected


def test_a_limit_that_is_large_enough_changes_nothing():
    roomy = shoal.bfs(fresh(KRONECKER), 0, memory_limit="1GiB")
    assert roomy.stats.peak_memory_bytes == shoal.bfs(fresh(KRONECKER), 0).stats.peak_memory_bytes
    assert roomy.stats.config["memory_limit"] == "1GiB"


def test_a_run_after_one_that_took_too_much_is_as_any(monkeypatch):
    graph = fresh(KRONECKER)
    with pytest.raises(shoal.OutOfMemoryError):
        shoal.bfs(graph, 0, memory_limit=30_000)
    np.testing.assert_array_equal(shoal.bfs(graph, 0).distance, shoal.bfs(KRONECKER, 0).distance)


def test_edges_worth_of_room_is_given_back():
    graph = fresh(KRONECKER)
    before = shoal.bfs(graph, 0).stats.peak_memory_bytes
    assert shoal.bfs(graph, 0, memory="maximum").stats.peak_memory_bytes > before
    assert shoal.bfs(graph, 0).stats.peak_memory_bytes == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), (12, 12), ("12", 12), ("3kB", 3000), ("2 KiB", 2048), ("1.5MB", 1_500_000), ("2GiB", 2 << 30),
     ("1T", 10**12)],
)  # fmt: skip
def test_limits_may_have_units(text, expected):
    assert parse_bytes("memory_limit", text) == expected


@pytest.mark.parametrize("bad", [0, -5, 1.5, True, "much", "5XB", "", "-1MB", []])
def test_what_is_no_limit_is_refused(bad):
    with pytest.raises(shoal.ArgumentError, match="memory_limit="):
        shoal.bfs(GRID, 0, memory_limit=bad)
