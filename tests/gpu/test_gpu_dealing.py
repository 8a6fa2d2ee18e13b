# SPDX-License-Identifier: Apache-2.0
"""GPU devices deal vertices of their frontiers: rows of blocks of one GPU, and GPUs that read one another's memory."""

import numpy as np
import pytest

import oracles
import shoal
from checks import assert_thefts
from shoal.backends.cuda.border import can_reach
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.config import AXES
from shoal.machine import count_gpus
from test_cuda_dealing_emulated import Visits, expected_totals
from test_dealing import Nearest, Paths, heavy_first

STEALING = {"stealing": "frontier"}
SKEWED = shoal.generate.rmat(14, 16, seed=1, weights=(1, 255))
HUB = int(SKEWED.degree.argmax())
LEAST_EVEN_EDGES = 50_000  # where a hub has few edges beside a device's share
DEVICES = ["cuda:0*2", "cuda:0*4", "cuda:0*7", "cuda:all"]


@pytest.fixture(autouse=True)
def _always_deals(monkeypatch):
    """Deal on small graphs, too."""
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)


@pytest.fixture(params=DEVICES)
def how(request):
    """Devices and a partition by which the first of them has the hubs."""
    if request.param != "cuda:all":
        return {"devices": request.param, "partition": heavy_first(SKEWED, int(request.param[7:]))}
    count = count_gpus("cuda:all")
    if count < 2:
        pytest.skip("needs two GPUs")
    if not can_reach(range(count)):
        pytest.skip("needs GPUs that can read one another's memory")
    return {"devices": "cuda:all", "partition": heavy_first(SKEWED, count)}


def test_every_edge_of_a_frontier_is_visited_once_and_loads_are_even(how):
    found = shoal.bfs(SKEWED, HUB, direction="push", validate=True, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, HUB))
    stats = found.stats.to_dict()
    others = shoal.bfs(SKEWED, HUB, direction="push", **how).stats.to_dict()
    num_even = 0
    for level, (row, other) in enumerate(zip(stats["supersteps"], others["supersteps"], strict=True)):
        edges = int(SKEWED.degree[found.distance == level].sum())
        assert sum(row["edges_visited"]) == edges
        if edges >= LEAST_EVEN_EDGES:
            num_even += 1
            longest = SKEWED.degree[found.distance == level].max()
            mean = edges / len(row["edges_visited"])
            assert max(row["edges_visited"]) <= 17 / 16 * mean + longest < max(other["edges_visited"])
        assert ((np.array(row["steal_seconds"]) > 0) >= (np.array(row["stolen_edges"]) > 0)).all()
    assert num_even > 0
    assert_thefts(stats)


@pytest.mark.parametrize(("program", "field"), [(Nearest, "level"), (Paths, "paths")])
def test_programs_of_ones_own_are_dealt(program, field, how):
    found = shoal.run(program(), SKEWED, source=HUB, **STEALING, **how)
    expected = shoal.run(program(), SKEWED, source=HUB, devices="cpu")
    np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert found.stats.to_dict()["stolen_edges"] > 0


def test_edges_have_the_graph_s_numbers_and_weights_whoever_visits_them(how):
    found = shoal.run(Visits(), SKEWED, source=HUB, **STEALING, **how)
    np.testing.assert_array_equal(found.total, expected_totals(SKEWED, HUB))


@pytest.mark.parametrize("communication", AXES["communication"][1:])
@pytest.mark.parametrize("balance", AXES["load_balance"])
def test_shortest_paths_deal_near_vertices(balance, communication, how):
    found = shoal.sssp(SKEWED, HUB, validate=True, load_balance=balance, communication=communication, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.sssp_distance(SKEWED, HUB))
    assert found.stats.to_dict()["stolen_edges"] > 0


def test_searches_that_may_pull_deal_their_pushes(how):
    found = shoal.bfs(SKEWED, HUB, validate=True, do_a=10.0, **STEALING, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, HUB))


def test_components_and_ranks_are_what_they_are_without(how):
    labels = shoal.connected_components(SKEWED, validate=True, **STEALING, **how)
    np.testing.assert_array_equal(labels.label, oracles.component_labels(SKEWED))
    ranks = shoal.pagerank(SKEWED, iterations=10, **STEALING, **how)
    np.testing.assert_array_equal(ranks.rank, shoal.pagerank(SKEWED, iterations=10, **how).rank)


def test_runs_one_after_the_other_are_all_right(how):
    """What a run leaves of a row is nothing to the next one."""
    placed = shoal.place(SKEWED, **how)
    for source in np.flatnonzero(SKEWED.degree)[:20]:
        found = shoal.bfs(placed, int(source), direction="push", duplication="all", **STEALING)
        np.testing.assert_array_equal(found.distance, oracles.bfs_distance(SKEWED, int(source)))


def test_small_frontiers_are_left_alone(monkeypatch):
    monkeypatch.undo()
    run = shoal.bfs(shoal.generate.grid(30, 30), 0, devices="cuda:0*4", **STEALING)
    assert run.stats.to_dict()["stolen_edges"] == 0
