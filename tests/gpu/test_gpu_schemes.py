# SPDX-License-Identifier: Apache-2.0
"""Every algorithm gives the same on a GPU under every memory scheme, and while its queues grow."""

import functools
import re

import numpy as np
import pytest

import shoal
from cuda_stepper import Search
from graphs import path_graph, random_graph, star_graph
from shoal import generate
from shoal.backends.cuda.phase_run import PhaseRun
from shoal.strategies import memory
from shoal.strategies.memory import SCHEMES
from test_every_config import ALGORITHMS, assert_same
from test_memory_schemes import Lying, Pairs, Twice, fresh


@functools.cache
def graph_named(name):
    made = {
        "path": lambda: path_graph(3000, weights=WEIGHTS[:2999]),
        "star": lambda: star_graph(5000, weights=WEIGHTS),
        "hubs": lambda: random_graph(20_000, 300_000, seed=1, weights="int32", skew=6.0),
        "directed hubs": lambda: random_graph(20_000, 300_000, seed=2, weights="int32", skew=4.0, directed=True),
        "grid": lambda: generate.grid(40, 50, weights=(1, 20), seed=2),
    }
    return made[name]()


WEIGHTS = (np.arange(5000) % 19 + 1).astype(np.int32)
GRAPHS = ("path", "star", "hubs", "directed hubs", "grid")


@pytest.fixture(autouse=True)
def own_factors(tmp_path, monkeypatch):
    """Let no run see the room that runs of other tests needed; compiled code is found where it is."""
    monkeypatch.setattr("shoal.execution.bsp.base_folder", lambda: tmp_path)


@pytest.fixture
def growths(monkeypatch):
    """Begin with next to no room; return a list of the phases whose queue grew, one for each time."""
    monkeypatch.setattr(memory, "FIRST_FACTOR", 1e-9)
    found = []
    grow = PhaseRun.grow

    def grow_noted(run):
        before = run.queue
        grow(run)
        if run.queue is not before:
            found.append(run.phase.step.__name__)

    monkeypatch.setattr(PhaseRun, "grow", grow_noted)
    return found


@functools.cache
def fused(algorithm, name):
    return ALGORITHMS[algorithm](graph_named(name), devices="cuda", memory="fused")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme != "fused"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_schemes_give_what_fused_gives(algorithm, scheme, name):
    graph = fresh(graph_named(name))
    for _ in range(2):  # the second has what the first has learnt
        assert_same(ALGORITHMS[algorithm](graph, devices="cuda", memory=scheme), fused(algorithm, name))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_room_grows_from_almost_nothing(algorithm, name, growths):
    found = ALGORITHMS[algorithm](fresh(graph_named(name)), devices="cuda", memory="fixed")
    assert_same(found, fused(algorithm, name))
    if algorithm == "bfs_push" and name != "star":
        assert growths


@pytest.mark.parametrize("widths", [("int32", "int64"), ("int64", "int64")], ids=str)
def test_room_grows_in_every_width(widths, growths):
    vertex_dtype, edge_dtype = widths
    graph = random_graph(20_000, 300_000, seed=3, skew=4.0, vertex_dtype=vertex_dtype, edge_dtype=edge_dtype)
    expected = shoal.bfs(graph, 0, direction="push", devices="cuda").distance
    found = shoal.bfs(fresh(graph), 0, direction="push", devices="cuda", memory="fixed").distance
    np.testing.assert_array_equal(found, expected)
    assert growths


def test_a_path_grows_again_and_again(growths):
    graph = path_graph(100_000)
    found = shoal.bfs(graph, 0, direction="push", devices="cuda", memory="fixed")
    np.testing.assert_array_equal(found.distance, np.arange(100_000))
    assert len(growths) >= 10
    # One after the last vertex finds nothing; every one has its row, those before a visit of the host, too.
    expected = shoal.bfs(graph, 0, direction="push", devices="cuda").stats
    assert found.stats.num_supersteps == expected.num_supersteps
    assert found.stats.edges_visited == expected.edges_visited == graph.num_edges


@pytest.mark.parametrize("direction", ["auto", "push"])
@pytest.mark.parametrize("sources", [[3], [3, 50, 100, 200]])
@pytest.mark.parametrize("name", ["hubs", "directed hubs", "grid"])
def test_frontiers_are_kept_while_room_grows(name, sources, direction, growths):
    graph = graph_named(name)
    expected = shoal.betweenness_centrality(graph, sources, devices="cuda", direction=direction)
    found = shoal.betweenness_centrality(fresh(graph), sources, devices="cuda", direction=direction, memory="fixed")
    np.testing.assert_allclose(found.centrality, expected.centrality, rtol=1e-6, atol=1e-12)
    assert "forward" in growths
    assert "backward" not in growths


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("joins", [None, 1])
@pytest.mark.parametrize("direction", ["push", "auto", "pull"])
def test_kept_frontiers_are_those_of_the_search(direction, joins, scheme, growths):
    for name in GRAPHS:
        graph = graph_named(name)
        expected = shoal.bfs(graph, 0).distance
        program = Search(direction, joins=joins, is_kept=joins is not None)
        found = shoal.run(program, fresh(graph), source=0, devices="cuda", memory=scheme)
        np.testing.assert_array_equal(found.level, expected)
        if joins is not None:
            np.testing.assert_array_equal(found.turn, np.where(expected < 0, -1, expected.max() - expected))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_outputs_inside_a_step_grow_too(scheme, growths):
    for name in GRAPHS:
        graph = graph_named(name)
        distance = shoal.bfs(graph, 0).distance
        expected = np.where(distance < 0, 0, np.maximum(6 - distance, 0))
        found = shoal.run(Pairs(), fresh(graph), source=0, steps=6, devices="cuda", memory=scheme)
        np.testing.assert_array_equal(found.left, expected)


@pytest.mark.parametrize("do_b", [0.1, 1e9])
@pytest.mark.parametrize("do_a", [0.01, 1.0, 3.0])
def test_a_push_after_a_pull_has_room_for_its_frontier_too(do_a, do_b, growths):
    ends = np.random.default_rng(0).integers(0, 1000, (2, 3000))
    graph = shoal.Graph.from_edges(*ends, num_vertices=1000)
    expected = shoal.run(Twice(), graph, devices="cuda", do_a=do_a, do_b=do_b)
    found = shoal.run(Twice(), fresh(graph), devices="cuda", do_a=do_a, do_b=do_b, memory="fixed")
    np.testing.assert_array_equal(found.times, expected.times)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_output_that_does_not_fit_is_refused_under_every_scheme(scheme):
    ends = np.random.default_rng(0).integers(0, 3000, (2, 60_000))
    with pytest.raises(shoal.ProgramError, match="twice in a superstep"):
        shoal.run(Lying(), shoal.Graph.from_edges(*ends), devices="cuda", memory=scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("algorithm", ["bfs", "bfs_push", "bfs_batch", "sssp", "components", "betweenness", "pagerank"])
def test_a_limit_holds_or_the_error_says_what_is_needed(algorithm, scheme):
    graph, limit, needed, found = fresh(graph_named("hubs")), 0, 1, None
    while needed > limit:
        limit = needed
        try:
            found = ALGORITHMS[algorithm](graph, devices="cuda", memory=scheme, memory_limit=limit)
        except shoal.OutOfMemoryError as error:
            pattern = rf"device cuda:0 needs (\d+) bytes beside the graph; memory_limit={limit}"
            needed = int(re.search(pattern, str(error))[1])
    assert_same(found, fused(algorithm, "hubs"))


def test_schemes_in_order_of_what_they_reserve():
    graph = generate.rmat(14, 32, seed=3)
    how = {"source": int(graph.degree.argmax()), "direction": "push", "devices": "cuda"}
    peaks = {scheme: shoal.bfs(fresh(graph), memory=scheme, **how).stats.device_peaks[0] for scheme in SCHEMES}
    assert peaks["fused"] < peaks["just-enough"]
    assert peaks["maximum"] - peaks["fused"] == 4 * (graph.num_edges - graph.num_vertices)
