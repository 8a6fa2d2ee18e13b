# SPDX-License-Identifier: Apache-2.0
"""Devices deal vertices of their frontiers: nothing is lost or done twice, loads are even, answers are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_thefts
from graphs import graphs
from shoal import Program, Vertex, add, advance, atomic, filter, minimum, rule
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.execution.plans import sharing_of

pytestmark = pytest.mark.host_only("about several devices of the CPU")

LEAST_EVEN_EDGES = 20_000  # where a chunk of a frontier is small beside a device's share
STEALING = {"stealing": "frontier"}


@pytest.fixture(autouse=True)
def _always_deals(monkeypatch):
    """Deal on small graphs too."""
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)


def heavy_first(graph, num_devices):
    """A partition that gives the vertices with most edges to the first device."""
    return np.argsort(np.argsort(-graph.degree, kind="stable")) * num_devices // max(graph.num_vertices, 1)


SKEWED = shoal.generate.rmat(13, 16, seed=1, weights=(1, 255))
HUB = int(SKEWED.degree.argmax())


@pytest.mark.parametrize("num_devices", [2, 4, 8])
def test_every_edge_of_a_frontier_is_visited_once_and_loads_are_even(num_devices):
    how = {"devices": f"cpu:{num_devices}x1", "partition": heavy_first(SKEWED, num_devices), "direction": "push"}
    found = shoal.bfs(SKEWED, HUB, validate=True, **STEALING, **how)
    plain = shoal.bfs(SKEWED, HUB, **how)
    np.testing.assert_array_equal(found.distance, plain.distance)
    stats, others = found.stats.to_dict(), plain.stats.to_dict()
    num_even = 0
    for level, (row, other) in enumerate(zip(stats["supersteps"], others["supersteps"], strict=True)):
        edges = int(SKEWED.degree[found.distance == level].sum())
        assert sum(row["edges_visited"]) == sum(other["edges_visited"]) == edges
        if edges >= LEAST_EVEN_EDGES:
            num_even += 1
            mean = edges / num_devices
            assert max(other["edges_visited"]) > 1.2 * mean
            assert max(row["edges_visited"]) <= 1.1 * mean
    assert num_even > 0
    assert_thefts(stats)
    for row in stats["supersteps"]:
        assert ((np.array(row["steal_seconds"]) > 0) >= (np.array(row["stolen_edges"]) > 0)).all()
        assert (np.array(row["steal_seconds"]) + row["idle_seconds"] <= np.array(row["seconds"]) + 1e-9).all()
    assert others["steal_seconds"] == others["stolen_edges"] == 0


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("devices", ["cpu:3x1", "cpu:2x2"])
def test_shortest_paths_deal_buckets(devices, communication):
    part = heavy_first(SKEWED, int(devices[4]))
    found = shoal.sssp(SKEWED, HUB, devices=devices, partition=part, communication=communication, validate=True,
                       **STEALING)  # fmt: skip
    np.testing.assert_array_equal(found.distance, oracles.sssp_distance(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0
    smallest = shoal.sssp(SKEWED, HUB, devices=devices, partition=part, deterministic=True, **STEALING)
    np.testing.assert_array_equal(smallest.parent, shoal.sssp(SKEWED, HUB, deterministic=True).parent)


@settings(max_examples=25)
@given(graph=graphs(weights="int32", min_vertices=1, max_vertices=60), count=st.integers(2, 5), data=st.data())
def test_any_partition_of_any_graph(graph, count, data):
    owners = st.lists(st.integers(0, count - 1), min_size=graph.num_vertices, max_size=graph.num_vertices)
    how = {"devices": f"cpu:{count}x1", "partition": np.array(data.draw(owners)), **STEALING}
    np.testing.assert_array_equal(
        shoal.bfs(graph, 0, direction="push", validate=True, **how).distance, oracles.bfs_distance(graph, 0)
    )
    np.testing.assert_array_equal(shoal.sssp(graph, 0, validate=True, **how).distance, oracles.sssp_distance(graph, 0))


class Nearest(Program):
    """Hops by a minimum: what is read at a source is written at destinations."""

    level = Vertex("int32", fill=2**31 - 1, combine=minimum)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def lower(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    def step(self, frontier):
        return advance(frontier, self.lower)


class Paths(Program):
    """Numbers of shortest paths: copies that add up are emptied when they are sent."""

    paths = Vertex("int64", combine=add)
    level = Vertex("int32", fill=-1)
    found = Vertex("int64", combine=add)

    def start(self, source):
        self.paths[source], self.level[source] = 1, 0
        return [source]

    @rule
    def spread(src, dst, found, paths):
        atomic.add(found, dst, paths[src])
        return True

    @rule
    def is_fresh(vertex, level, superstep, paths, found):
        arrived = found[vertex]
        found[vertex] = 0
        if level[vertex] >= 0:
            return False
        level[vertex] = superstep + 1
        paths[vertex] = arrived
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.spread), self.is_fresh)


@pytest.mark.parametrize(("program", "field"), [(Nearest, "level"), (Paths, "paths")])
def test_programs_of_ones_own_are_dealt(program, field):
    how = {"devices": "cpu:4x1", "partition": heavy_first(SKEWED, 4), "source": HUB}
    found = shoal.run(program(), SKEWED, **STEALING, **how)
    np.testing.assert_array_equal(getattr(found, field), getattr(shoal.run(program(), SKEWED, source=HUB), field))
    assert found.stats.to_dict()["stolen_edges"] > 0


def test_where_dealing_would_be_wrong_there_is_none():
    run = shoal.betweenness_centrality(SKEWED, [HUB], devices="cpu:4x1", partition=heavy_first(SKEWED, 4), **STEALING)
    np.testing.assert_allclose(run.centrality, shoal.betweenness_centrality(SKEWED, [HUB]).centrality, rtol=1e-6)
    assert run.stats.to_dict()["stolen_edges"] == 0

    class Counts(Program):
        """It writes at the vertex whose edges it visits."""

        seen = Vertex("int64", combine=add)

        def start(self):
            return None

        @rule
        def count(src, seen):
            seen[src] += 1
            return False

        def step(self, frontier):
            return advance(frontier, self.count)

    program = Counts()
    assert not sharing_of(program, program.phases()[0], "auto").is_dealt(0)


def test_even_frontiers_are_left_alone():
    graph = shoal.generate.uniform(10, seed=2)
    run = shoal.bfs(graph, 0, devices="cpu:2x1", partition="random", direction="push", **STEALING)
    rows = run.stats.to_dict()["supersteps"]
    heaviest = max(rows, key=lambda row: sum(row["edges_visited"]))
    assert max(heaviest["edges_visited"]) <= 1.1 * np.mean(heaviest["edges_visited"])


def test_small_frontiers_are_left_alone(monkeypatch):
    monkeypatch.undo()
    run = shoal.bfs(shoal.generate.grid(30, 30), 0, devices="cpu:4x1", **STEALING)
    assert run.stats.to_dict()["stolen_edges"] == 0
    assert np.sum(run.stats.to_dict()["thefts"]) == 0


def test_one_device_has_nobody_to_steal_from():
    run = shoal.bfs(SKEWED, HUB, devices="cpu", **STEALING)
    assert run.stats.to_dict()["stolen_edges"] == 0
    assert "thefts" not in run.stats.to_dict()
