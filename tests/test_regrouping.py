# SPDX-License-Identifier: Apache-2.0
"""Devices hand over their parts and take them back: nothing is lost or done twice, answers are the same."""

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import shoal
from graphs import graphs, path_graph
from processes import SOURCES, interrupt, start_script
from regrouping import regroup_always, size_of
from shoal import Phase, Program, Scalar, Vertex, add, advance, atomic, filter, minimum, reduce, rule
from shoal.backends.base import Reason
from shoal.backends.cpu.border import lay_out_group
from shoal.backends.cpu.buffers import SMALL_TRACE_ROWS
from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.kernels import grouping
from shoal.backends.cpu.phase_run import PhaseRun
from shoal.backends.cpu.regrouping import RegroupingRuns, fold
from shoal.backends.loops import control as slot
from shoal.report.charts import draw_groups
from shoal.report.trace import record_run

pytestmark = [
    pytest.mark.host_only("about several devices of the CPU"),
    pytest.mark.usefixtures("way_out", "no_thread_is_left"),
]

GRID = shoal.generate.grid(24, 31, weights=(1, 50))
SKEWED = shoal.generate.rmat(9, 8, seed=1, weights=(1, 255), directed=True)
HUB = int(SKEWED.degree.argmax())
STEALING = ("ownership", "both")


@pytest.fixture
def always(monkeypatch):
    """Another group after every superstep, whose devices deal frontiers however small they are."""
    monkeypatch.setattr(PhaseRun, "least_dealt", 1)
    regroup_always(monkeypatch)


# Answers and counts


def hosts_of(stats, superstep):
    """Who takes part in a superstep, as the changes have it."""
    found = list(range(stats["num_devices"]))
    for change in stats["regroupings"]:
        found = change["hosts"] if change["superstep"] <= superstep else found
    return found


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("stealing", STEALING)
@pytest.mark.parametrize("num_devices", [2, 3, 4, 7, 8])
def test_every_edge_is_visited_once_by_a_device_that_takes_part(num_devices, stealing):
    how = {"devices": f"cpu:{num_devices}x1", "partition": "random", "direction": "push", "stealing": stealing}
    found = shoal.bfs(GRID, 5, validate=True, **how)
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(GRID, 5))
    stats = found.stats.to_dict()
    for level, row in enumerate(stats["supersteps"]):
        assert sum(row["edges_visited"]) == GRID.degree[found.distance == level].sum()
        assert sum(row["frontier_size"]) == np.count_nonzero(found.distance == level)
        size = size_of(level, num_devices)
        taking_part = np.isin(np.arange(num_devices), hosts_of(stats, level))
        assert stats["group_sizes"][level] == size
        for key in ("edges_visited", "messages", "idle_seconds", "seconds", "stolen_edges"):
            assert not np.array(row[key])[~taking_part].any()
    messages = sum(sum(row["messages"]) for row in stats["supersteps"])
    assert messages == stats["messages"]
    assert np.sum(stats["bytes_by_pair"]) == stats["bytes_sent"] > 0
    for change in stats["regroupings"]:
        hosts = change["hosts"]
        assert all(hosts[host] == host for host in hosts)
        assert len(set(hosts)) == stats["group_sizes"][change["superstep"]]
        assert change["seconds"] > 0
    if stealing == "both":
        assert np.sum(stats["thefts"]) == stats["stolen_edges"] > 0


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("stealing", STEALING)
@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("devices", ["cpu:4x1", "cpu:5x2"])
def test_shortest_paths_move_their_buckets(devices, communication, stealing):
    how = {"devices": devices, "communication": communication, "stealing": stealing}
    for graph, source in ((GRID, 0), (SKEWED, HUB)):
        found = shoal.sssp(graph, source, validate=True, **how)
        np.testing.assert_array_equal(found.distance, oracles.sssp_distance(graph, source))
        smallest = shoal.sssp(graph, source, deterministic=True, **how)
        np.testing.assert_array_equal(smallest.parent, shoal.sssp(graph, source, deterministic=True).parent)
        assert len(found.stats.to_dict()["regroupings"]) > 3


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("knobs", [{}, {"do_a": 1e-9, "do_b": 1e9}, {"direction": "push"}], ids=str)
def test_searches_that_pull_too(knobs, communication):
    how = {"devices": "cpu:4x1", "communication": communication, "stealing": "ownership", **knobs}
    for graph, source in ((GRID, 0), (SKEWED, HUB)):
        found = shoal.bfs(graph, source, validate=True, **how)
        np.testing.assert_array_equal(found.distance, oracles.bfs_distance(graph, source))
        if communication != "selective":
            targets = [int(found.distance.argmax())]
            some = shoal.bfs(graph, source, targets=targets, **how)
            assert some.distance[targets] == found.distance[targets]


@settings(max_examples=25)
@given(graph=graphs(weights="int32", min_vertices=1, max_vertices=60), count=st.integers(2, 6), data=st.data())
def test_any_partition_of_any_graph_in_any_groups(graph, count, data):
    owners = st.lists(st.integers(0, count - 1), min_size=graph.num_vertices, max_size=graph.num_vertices)
    levels = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    how = {"devices": f"cpu:{count}x1", "partition": np.array(data.draw(owners)), "stealing": "ownership"}
    with pytest.MonkeyPatch.context() as monkeypatch:
        regroup_always(monkeypatch, levels)
        bfs = shoal.bfs(graph, 0, validate=True, **how)
        sssp = shoal.sssp(graph, 0, validate=True, **how)
    np.testing.assert_array_equal(bfs.distance, oracles.bfs_distance(graph, 0))
    np.testing.assert_array_equal(sssp.distance, oracles.sssp_distance(graph, 0))


class Paths(Program):
    """Numbers of shortest paths: copies that add up are emptied when sent, and a scalar counts the frontier."""

    paths = Vertex("int64", combine=add)
    level = Vertex("int32", fill=-1)
    found = Vertex("int64", combine=add)
    count = Scalar("int64", combine=add)

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

    @rule
    def one(vertex):
        return 1

    def step(self, frontier):
        fresh = filter(advance(frontier, self.spread), self.is_fresh)
        reduce(fresh, self.one, into=self.count)
        return fresh


class Both(Program):
    """Twice the same search, one phase behind the other: the second finds the values where the partition has them."""

    level = Vertex("int32", fill=2**31 - 1, combine=minimum)
    again = Vertex("int32", fill=2**31 - 1, combine=minimum)

    def start(self, source):
        self.level[source] = self.again[source] = 0
        return [source]

    @rule
    def lower(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    @rule
    def lower_again(src, dst, again, level):
        return atomic.min(again, dst, again[src] + 1 + 0 * level[src])

    def search(self, frontier):
        return advance(frontier, self.lower)

    def search_again(self, frontier):
        return advance(frontier, self.lower_again)

    def phases(self):
        return [Phase(self.search), Phase(self.search_again)]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("communication", ["selective", "broadcast", "ring"])
@pytest.mark.parametrize(("program", "fields"), [(Paths, ("paths", "level", "count")), (Both, ("level", "again"))])
def test_programs_of_ones_own(program, fields, communication):
    expected = shoal.run(program(), GRID, source=3)
    found = shoal.run(program(), GRID, source=3, devices="cpu:4x1", communication=communication, stealing="ownership")
    for field in fields:
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    stats = found.stats.to_dict()
    assert len(stats["regroupings"]) > 3
    assert stats["group_sizes"][0] == 4
    for before in np.cumsum([phase["num_supersteps"] for phase in stats["phases"]])[:-1]:
        assert stats["group_sizes"][before] == 4  # a phase begins with everybody


# Who keeps parts, and why

KEEPING = {
    "batch": (lambda **how: shoal.bfs(GRID, [0, 5], **how), "whoever has copies"),
    "components": (lambda **how: shoal.connected_components(GRID, **how), "done for every vertex"),
    "pagerank": (lambda **how: shoal.pagerank(GRID, **how), "done for every vertex"),
    "betweenness": (lambda **how: shoal.betweenness_centrality(GRID, [0], **how), "gone through again"),
}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", KEEPING)
def test_where_parts_are_kept_stats_say_why(name):
    run, reason = KEEPING[name]
    stats = run(devices="cpu:4x1", stealing="ownership").stats.to_dict()
    assert set(stats["group_sizes"]) == {4}
    assert stats["regroupings"] == []
    assert reason in stats["reasons"]["stealing"]


def test_one_device_and_others_say_nothing_of_groups():
    assert "group_sizes" not in shoal.bfs(GRID, 0, devices="cpu", stealing="ownership").stats.to_dict()
    assert "group_sizes" not in shoal.bfs(GRID, 0, devices="cpu:2", stealing="frontier").stats.to_dict()
    totals = shoal.bfs(GRID, 0, devices="cpu:2", stealing="ownership", stats="totals").stats.to_dict()
    assert "group_sizes" not in totals
    assert "thefts" not in totals


@pytest.mark.usefixtures("always")
def test_the_report_shows_who_takes_part():
    stats = shoal.bfs(GRID, 5, devices="cpu:4x1", direction="push", stealing="ownership").stats
    trace = record_run("bfs", GRID, stats)
    chart = draw_groups(trace)
    sizes = stats.to_dict()["group_sizes"]
    shown = chart.figure["data"][0]["y"]
    assert np.frombuffer(base64.b64decode(shown["bdata"]), shown["dtype"]).tolist() == sizes
    assert f"changed {len(stats.to_dict()['regroupings'])} times" in chart.note
    assert draw_groups(record_run("bfs", GRID, shoal.bfs(GRID, 5, devices="cpu:4x1").stats)) is None


# Decisions


@compiled()
def weigh(control, world, group):
    grouping.weigh_groups(control, world, group)


class Clock:
    """Supersteps as device 0 sees them, with times that a test makes up."""

    def __init__(self, num_devices, at_once=None, cost=500_000):
        self.num_devices, self.level = num_devices, 0
        self.group = lay_out_group(num_devices)
        self.group[grouping.COST], self.group[grouping.AT_ONCE] = cost, at_once or num_devices

    def superstep(self, loads, per_edge=5, meeting=20_000):
        """One superstep of so many edges on each device of the present group; the group that is wanted."""
        control, world = np.zeros(slot.control_size(1), np.int64), np.zeros(slot.world_size(len(loads)), np.int64)
        world[slot.WORLD_DEVICES], control[slot.BUDGET] = len(loads), slot.UNLIMITED
        lines = world[slot.WORLD_ROWS :][: len(loads) * slot.LINE].reshape(-1, slot.LINE)
        lines[:, slot.POSTED_WORK], lines[:, slot.POSTED_WORKED] = loads, np.array(loads) * per_edge
        turns = max(len(loads) / self.group[grouping.AT_ONCE], 1)  # for a core
        self.group[grouping.LASTED] = max(loads) * per_edge * turns + (meeting if len(loads) > 1 else 0)
        weigh(control, world, self.group)
        wanted = int(self.group[grouping.WANTED])
        assert (control[slot.BUDGET] == 0) == (wanted != self.level)
        return wanted

    def change_to(self, level):
        self.level = level
        self.group[[grouping.LEVEL, grouping.WANTED]] = level
        self.group[grouping.LEVELS :: grouping.PER_LEVEL] = 0

    def until_change(self, loads, limit=10_000, **how):
        """How many supersteps alike it takes until another group is wanted, and which."""
        for number in range(limit):
            wanted = self.superstep(loads, **how)
            if wanted != self.level:
                return number, wanted
        return limit, self.level


def test_a_group_shrinks_when_it_has_lost_what_a_change_costs():
    clock = Clock(8)
    supersteps, level = clock.until_change([10] * 8, meeting=80_000)
    assert level == 3
    lost = 80_000 * 7 / 8 - 7 * 10 * 5  # in each superstep
    assert supersteps == pytest.approx(max(500_000 / lost, grouping.LEAST_SUPERSTEPS), abs=2)


def test_a_dearer_change_waits_longer():
    cheap, dear = Clock(4, cost=100_000), Clock(4, cost=5_000_000)
    assert cheap.until_change([10] * 4)[0] * 20 < dear.until_change([10] * 4)[0] * 1.5


def test_a_group_with_enough_to_do_stays_and_one_alone_grows():
    clock = Clock(4)
    assert clock.until_change([100_000] * 4, limit=500) == (500, 0)
    clock.change_to(2)
    assert clock.until_change([400_000])[1] == 0
    clock.change_to(2)
    assert clock.until_change([100], limit=2000)[1] == 2


def test_no_more_devices_than_have_cores():
    clock = Clock(8, at_once=2)
    clock.until_change([50_000] * 8, limit=50)
    clock.change_to(3)
    assert clock.until_change([400_000])[1] == 2


def test_a_single_superstep_that_was_interrupted_changes_nothing():
    clock = Clock(4)
    clock.until_change([100_000] * 4, limit=50)
    clock.change_to(2)
    for _ in range(grouping.LEAST_SUPERSTEPS - 2):
        assert clock.superstep([4_000_000_000]) == 2
    assert clock.until_change([100], limit=1000)[1] == 2


def test_what_lies_on_one_device_is_left_there():
    """Growing would not help, as was seen when all took part."""
    clock = Clock(4)
    assert clock.until_change([20_000, 0, 0, 0], meeting=400_000)[1] == 2
    clock.change_to(2)
    assert clock.until_change([20_000], limit=20)[1] == 2


def test_a_long_path_is_left_to_one_device(monkeypatch):
    """Nothing is to be shared out, so whatever meeting costs, it is too much; loops come back for changes only."""
    reasons, resume = [], RegroupingRuns.resume

    def watched(runs):
        reasons.append(resume(runs))
        return reasons[-1]

    monkeypatch.setattr(RegroupingRuns, "resume", watched)
    graph = path_graph(20_000)
    for _ in range(2):
        reasons.clear()
        found = shoal.bfs(graph, 0, devices="cpu:8x1", partition="random", direction="push", stealing="ownership")
        np.testing.assert_array_equal(found.distance, np.arange(20_000))
        stats = found.stats.to_dict()
        assert stats["group_sizes"][0] == 8
        assert stats["group_sizes"][-1] == 1
        full_traces = 20_000 // SMALL_TRACE_ROWS
        assert len(reasons) <= len(stats["regroupings"]) + full_traces + 1


def test_folded_parts_are_those_of_a_coarser_partition():
    placed = shoal.place(GRID, "cpu:7", partition="random")
    parts = [shard.part for shard in placed.shards_for("all", with_in_edges=False)]
    for level, count in enumerate([7, 4, 2, 1]):
        folded = fold(parts, level)
        assert len(folded) == count
        for device, part in enumerate(folded):
            expected = np.flatnonzero(parts[0].owner >> level == device)
            np.testing.assert_array_equal(part.owned, expected)
            np.testing.assert_array_equal(part.owner[expected], device)
            bits = np.unpackbits(part.owned_bits.view(np.uint8), bitorder="little")
            np.testing.assert_array_equal(np.flatnonzero(bits), expected)


# What can go wrong while some do not take part


class FailsLate(Both):
    """A search whose rule fails far from its source."""

    @rule
    def lower(src, dst, level):
        assert level[src] < 20, "too far"
        return atomic.min(level, dst, level[src] + 1)


@pytest.mark.parametrize("levels", [(2,), (1,), (0, 1)], ids=str)
def test_a_rule_that_fails(levels, monkeypatch):
    regroup_always(monkeypatch, levels)
    graph = shoal.place(GRID, "cpu:4x1")
    with pytest.raises(shoal.ProgramError, match=r"rule 'lower' .* failed on device cpu:.* in superstep 20"):
        shoal.run(FailsLate(), graph, source=0, stealing="ownership")
    found = shoal.bfs(graph, 0, stealing="ownership")
    np.testing.assert_array_equal(found.distance, oracles.bfs_distance(GRID, 0))


@pytest.mark.parametrize("moment", ["move_frontier", "set_agreed", "copy_rows"])
def test_a_change_that_fails(moment, monkeypatch):
    """An interrupt may come between two supersteps, too."""

    def interrupted(*arguments, **how):
        raise KeyboardInterrupt

    regroup_always(monkeypatch)
    graph = shoal.place(GRID, "cpu:4x1")
    with monkeypatch.context() as broken:
        broken.setattr(f"shoal.backends.cpu.regrouping.{moment}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shoal.sssp(graph, 0, stealing="ownership")
    found = shoal.sssp(graph, 0, stealing="ownership")
    np.testing.assert_array_equal(found.distance, oracles.sssp_distance(GRID, 0))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("memory", ["just-enough", "fixed", "maximum"])
@pytest.mark.parametrize("algorithm", [shoal.bfs, shoal.sssp])
def test_lists_and_buckets_grow(algorithm, memory, monkeypatch):
    reasons, resume = set(), RegroupingRuns.resume

    def watched(runs):
        reason = resume(runs)
        reasons.add((reason, len(runs.members)))
        return reason

    monkeypatch.setattr(RegroupingRuns, "resume", watched)
    if algorithm is shoal.sssp:  # next to no room at first
        monkeypatch.setattr("shoal.backends.cpu.buffers.BufferSizes.blocks", lambda sizes, room: 2)
    found = algorithm(GRID, 0, devices="cpu:4x1", memory=memory, stealing="ownership", validate=True)
    oracle = oracles.bfs_distance if algorithm is shoal.bfs else oracles.sssp_distance
    np.testing.assert_array_equal(found.distance, oracle(GRID, 0))
    if algorithm is shoal.sssp:
        assert any(reason == Reason.NEEDS_MEMORY and size < 4 for reason, size in reasons)
    limit = max(found.stats.to_dict()["peak_memory_bytes_by_device"])
    again = algorithm(GRID, 0, devices="cpu:4x1", memory=memory, memory_limit=limit, stealing="ownership")
    np.testing.assert_array_equal(again.distance, found.distance)
    with pytest.raises(shoal.OutOfMemoryError):
        algorithm(GRID, 0, devices="cpu:4x1", memory=memory, memory_limit=1000, stealing="ownership")


INTERRUPTED = """\
import json, threading
import pytest
import shoal
from regrouping import regroup_always
from shoal import Program, advance, rule

class Endless(Program):
    @rule
    def always(src, dst):
        return True

    def step(self, frontier):
        return advance(frontier, self.always)

def stop(progress):
    raise InterruptedError

graph = shoal.generate.grid(40, 40)
how = {"devices": "cpu:4x1", "stealing": "ownership"}
expected = shoal.bfs(graph, 0, **how).distance
with pytest.MonkeyPatch.context() as monkeypatch:
    regroup_always(monkeypatch, LEVELS)
    try:  # once before: Ctrl-C while it is compiled would be another test
        with shoal.observe(stop):
            shoal.run(Endless(), graph, **how)
    except InterruptedError:
        print("running")
    try:
        shoal.run(Endless(), graph, **how)
    except KeyboardInterrupt:
        print("interrupted")
threads = [thread.name for thread in threading.enumerate()]
print(json.dumps({"threads": threads, "is_right": bool((shoal.bfs(graph, 0, **how).distance == expected).all())}))
"""


@pytest.mark.parametrize("levels", ["(2,)", "(1, 2, 0)"])
def test_a_run_ends_when_told(levels, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(INTERRUPTED.replace("LEVELS", levels))
    process = start_script(script, PYTHONPATH=os.pathsep.join([str(SOURCES), str(Path(__file__).parent)]))
    try:
        interrupt(process)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert json.loads(output) == {"threads": ["MainThread"], "is_right": True}
