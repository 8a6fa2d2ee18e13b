# SPDX-License-Identifier: Apache-2.0
"""GPU devices deal vertices of their frontiers, emulated: no edge is lost or visited twice, answers are the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_thefts
from cuda_emulated import EmulatedGPU
from cuda_on_host import COMPILER
from graphs import graphs
from shoal import Program, Vertex, add, advance, atomic, filter, rule
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.config import AXES
from test_dealing import Nearest, Paths, heavy_first
from test_every_config import ALGORITHMS, assert_same

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++"),
    pytest.mark.host_only("for machines without a GPU"),
]

STEALING = {"stealing": "frontier"}
SKEWED = shoal.generate.rmat(9, 8, seed=1, weights=(1, 255))
HUB = int(SKEWED.degree.argmax())
DIRECTED = shoal.generate.rmat(8, 6, seed=2, directed=True)
LEAST_EVEN_EDGES = 1000  # where a vertex has few edges beside a device's share


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def _always_deals(folder, monkeypatch):
    """Deal on small graphs, on a GPU that is none."""
    EmulatedGPU(folder).install(monkeypatch)
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)


def skewed_on(count):
    return {"devices": f"cuda:0*{count}", "partition": heavy_first(SKEWED, count)}


@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_edge_of_a_frontier_is_visited_once_and_loads_are_even(count):
    how = {**skewed_on(count), "direction": "push"}
    found = shoal.bfs(SKEWED, HUB, validate=True, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, HUB))
    stats, others = found.stats.to_dict(), shoal.bfs(SKEWED, HUB, **how).stats.to_dict()
    num_even = 0
    for level, (row, other) in enumerate(zip(stats["supersteps"], others["supersteps"], strict=True)):
        edges = int(SKEWED.degree[found.distance == level].sum())
        assert sum(row["edges_visited"]) == edges
        if edges >= LEAST_EVEN_EDGES:
            num_even += 1
            longest = SKEWED.degree[found.distance == level].max()
            assert max(row["edges_visited"]) <= edges / count + longest < max(other["edges_visited"])
    assert num_even > 0
    assert_thefts(stats)
    assert others["stolen_edges"] == 0


class Visits(Program):
    """What is added up at a destination, over all edges that lead there, says if one was visited twice."""

    code = Vertex("int64")  # of a vertex that was in the frontier, one more than its number
    total = Vertex("int64", combine=add)

    def start(self, source):
        self.code[source] = source + 1
        return [source]

    @rule
    def visit(src, dst, edge, weight, code, total):
        atomic.add(total, dst, edge * weight + code[src])
        return True

    @rule
    def is_fresh(vertex, code):
        if code[vertex] > 0:
            return False
        code[vertex] = vertex + 1
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.visit), self.is_fresh)


def expected_totals(graph, source):
    """The sum of what `Visits` adds up over the edges of all vertices that are reached, each of them once."""
    src, dst = np.repeat(np.arange(graph.num_vertices), graph.degree), graph.indices
    values = np.arange(graph.num_edges) * graph.weights.astype(np.int64) + src + 1
    is_reached = oracles.bfs_distance(graph, source)[src] >= 0
    totals = np.zeros(graph.num_vertices, np.int64)
    np.add.at(totals, dst[is_reached], values[is_reached])
    return totals


@pytest.mark.parametrize("count", [2, 4])
def test_edges_have_the_graph_s_numbers_and_weights_whoever_visits_them(count):
    found = shoal.run(Visits(), SKEWED, source=HUB, **STEALING, **skewed_on(count))
    np.testing.assert_array_equal(found.total, expected_totals(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0


@pytest.mark.parametrize(("program", "field"), [(Nearest, "level"), (Paths, "paths")])
def test_programs_of_ones_own_are_dealt(program, field):
    found = shoal.run(program(), SKEWED, source=HUB, **STEALING, **skewed_on(3))
    expected = shoal.run(program(), SKEWED, source=HUB, devices="cpu")
    np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert found.stats.to_dict()["stolen_edges"] > 0


@pytest.mark.parametrize("communication", AXES["communication"][1:])
def test_near_vertices_of_shortest_paths_are_dealt(communication):
    found = shoal.sssp(SKEWED, HUB, validate=True, communication=communication, **STEALING, **skewed_on(3))
    np.testing.assert_array_equal(found.distance, oracles.sssp_distance(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0


@pytest.mark.parametrize("communication", AXES["communication"][1:])
def test_searches_that_may_pull_deal_their_pushes(communication):
    found = shoal.bfs(SKEWED, HUB, validate=True, do_a=10.0, communication=communication, **STEALING, **skewed_on(3))
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0


@pytest.mark.parametrize("partition", AXES["partition"][1:])
@pytest.mark.parametrize("communication", AXES["communication"][1:])
def test_every_partition_and_communication(communication, partition):
    if partition == "metis":
        pytest.importorskip("pymetis")
    how = {"devices": "cuda:0*4", "partition": partition, "communication": communication, "direction": "push"}
    found = shoal.bfs(DIRECTED, 0, validate=True, fanout=2 if communication == "butterfly" else 1, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(DIRECTED, 0))


def test_pulls_gathers_and_hooks_are_left_as_they_are():
    how = {**skewed_on(3), **STEALING}
    labels = shoal.connected_components(SKEWED, validate=True, **how)
    np.testing.assert_array_equal(labels.label, oracles.component_labels(SKEWED))
    ranks = shoal.pagerank(SKEWED, iterations=2, **how)
    np.testing.assert_array_equal(ranks.rank, shoal.pagerank(SKEWED, iterations=2, **skewed_on(3)).rank)
    np.testing.assert_allclose(ranks.rank, shoal.pagerank(SKEWED, iterations=2, devices="cpu").rank, rtol=1e-12)
    assert labels.stats.to_dict()["stolen_edges"] == ranks.stats.to_dict()["stolen_edges"] == 0


@settings(max_examples=12, deadline=None)
@given(graph=graphs(weights="int32", min_vertices=1, max_vertices=60), count=st.integers(2, 5), data=st.data())
def test_any_partition_of_any_graph(graph, count, data):
    owners = st.lists(st.integers(0, count - 1), min_size=graph.num_vertices, max_size=graph.num_vertices)
    how = {"devices": f"cuda:0*{count}", "partition": np.array(data.draw(owners)), **STEALING}
    found = shoal.bfs(graph, 0, direction="push", validate=True, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(graph, 0))
    np.testing.assert_array_equal(shoal.sssp(graph, 0, validate=True, **how).distance, oracles.sssp_distance(graph, 0))


@pytest.mark.parametrize("balance", ["lrb", "merge-path"])  # which keep a ledger between the parts
def test_parts_are_pushed_by_every_load_balance(balance):
    found = shoal.bfs(SKEWED, HUB, direction="push", load_balance=balance, **STEALING, **skewed_on(3))
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0


def test_a_hub_alone_stays_where_it_is():
    """A vertex is of who has its first edge: given away whole it would only be visited elsewhere."""
    star = shoal.Graph.from_edges(np.zeros(3000, int), np.arange(1, 3001))
    found = shoal.bfs(star, 0, devices="cuda:0*3", partition="segment", direction="push", **STEALING)
    assert (found.distance[1:] == 1).all()
    first = found.stats.to_dict()["supersteps"][0]
    assert first["stolen_edges"] == [0, 0, 0]
    assert sum(first["edges_visited"]) == 3000


def test_small_frontiers_are_left_alone(monkeypatch):
    monkeypatch.setattr(PhaseRun, "least_dealt", SKEWED.num_edges + 1)
    stats = shoal.bfs(SKEWED, HUB, direction="push", **STEALING, **skewed_on(3)).stats.to_dict()
    assert stats["stolen_edges"] == np.sum(stats["thefts"]) == 0


def test_gpus_that_cannot_reach_one_another_are_refused(monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.dealing.can_reach", lambda numbers: False)
    with pytest.raises(shoal.ArgumentError, match=r"^stealing='frontier' is not possible on cuda:0: .*: auto, none$"):
        shoal.bfs(SKEWED, HUB, direction="push", **STEALING, **skewed_on(2))


@pytest.mark.parametrize("name", ["ownership", "both"])
def test_parts_are_not_handed_over(name):
    with pytest.raises(shoal.ArgumentError, match=f"^stealing='{name}' is not possible on cuda: .*: .*none, frontier$"):
        shoal.bfs(SKEWED, HUB, stealing=name, devices="cuda:0*2")


@pytest.mark.parametrize("algorithm", ["bfs_targets", "sssp_parents", "sssp_targets", "strong"])
def test_other_searches_are_dealt(algorithm):
    run = ALGORITHMS[algorithm]
    graph = DIRECTED if algorithm == "strong" else SKEWED
    how = {"devices": "cuda:0*3", "partition": heavy_first(graph, 3)}
    assert_same(run(graph, **STEALING, **how), run(graph, devices="cpu"))
