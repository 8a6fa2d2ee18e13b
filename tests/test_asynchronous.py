# SPDX-License-Identifier: Apache-2.0
"""Without supersteps: the results of one device in supersteps, whatever the devices, the strategies and the timing."""

import itertools
import signal
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from checks import assert_refused
from graphs import WIDTHS, graphs, path_graph, random_graph
from pairwise import all_pairs
from shoal import Constant, Phase, Program, Scalar, Vertex, add, advance, atomic, compute, filter, minimum, rule, update
from shoal.backends.cpu import worklist_run
from shoal.backends.cpu.backend import CPUBackend
from shoal.backends.cpu.worklist_run import WorklistRun
from shoal.backends.loops import control as slot
from shoal.config import AXES
from shoal.memory import estimate_memory
from shoal.program import bit_or, first, maximum
from test_every_config import assert_same

pytestmark = [
    pytest.mark.host_only("about devices of the CPU"),
    pytest.mark.usefixtures("way_out", "no_thread_is_left"),
]

FAR = 2**31 - 1
SOON_SECONDS = 1.0  # from a failure to the exception at the caller


class Reach(Program):
    """Which of the sources reach a vertex, as bits, and the largest of the marks on the way."""

    reached = Vertex("uint64", combine=bit_or)
    largest = Vertex("int32", fill=-1, combine=maximum)

    def start(self, sources, marks):
        for k, source in enumerate(sources):
            self.reached[source] |= np.uint64(1) << np.uint64(k)
        self.largest[:] = marks
        return sources

    @rule
    def pass_on(src, dst, reached, largest):
        found = atomic.bit_or(reached, dst, reached[src])
        improved = atomic.max(largest, dst, largest[src])
        return improved or found & reached[src] != reached[src]

    def step(self, frontier):
        return advance(frontier, self.pass_on)


def reach(graph, **how):
    marks = (np.arange(graph.num_vertices) * 7919 % 101).astype(np.int32)
    outcome = shoal.run(Reach(), graph, sources=list(range(min(3, graph.num_vertices))), marks=marks, **how)
    return outcome.reached.astype(np.int64) * 1000 + outcome.largest


def ranks(graph, **how):
    return shoal.pagerank(graph, tolerance=1e-10, max_iterations=1000, validate=True, **how).rank


ALGORITHMS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, 0, validate=True, **how).distance,
    "bfs_parents": lambda graph, **how: shoal.bfs(graph, 0, deterministic=True, **how).parent,
    "bfs_cutoff": lambda graph, **how: shoal.bfs(graph, 0, cutoff=2, validate=True, **how).distance,
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, validate=True, **how).distance,
    "sssp_parents": lambda graph, **how: shoal.sssp(graph, 0, deterministic=True, **how).parent,
    "pagerank": ranks,
    "components": lambda graph, **how: shoal.connected_components(graph, validate=True, **how).label,
    "own program": reach,
}  # fmt: skip
OPTIONS = {
    "algorithm": tuple(ALGORITHMS),
    "devices": (1, 2, 3, 4, 5, 8),
    "partition": AXES["partition"][1:],
    "duplication": AXES["duplication"][1:],
    "communication": ("selective", "ring"),
    "priority": AXES["priority"][1:],
    "memory": AXES["memory"][1:],
    "is_directed": (False, True),
}


def is_allowed(case):
    """What is refused is left out; without priorities, too, what is compiled by itself: one device, and all copies."""
    needs_all = case.get("communication") == "ring" or case.get("duplication") == "all"
    if case.get("priority") == "none" and (needs_all or case.get("devices") == 1):
        return False
    return not (case.get("duplication") == "one-hop" and case.get("communication") == "ring")


def strategies_of(case):
    names = ("partition", "duplication", "communication", "priority", "memory")
    return {"execution": "async", "devices": f"cpu:{case['devices']}x1", **{name: case[name] for name in names}}


@pytest.mark.parametrize("case", all_pairs(OPTIONS, is_allowed), ids=lambda case: "-".join(map(str, case.values())))
def test_every_strategy_gives_what_supersteps_on_one_device_give(case):
    run, how = ALGORITHMS[case["algorithm"]], strategies_of(case)

    @settings(max_examples=6)
    @given(graph=graphs(weights="int32", directed=case["is_directed"], max_vertices=40))
    def check(graph):
        assert_same(run(graph, **how), run(graph))

    check()


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "pagerank", "components", "own program"])
def test_timing_makes_no_difference(algorithm, monkeypatch):
    run = ALGORITHMS[algorithm]

    @settings(max_examples=200)
    @given(
        graph=graphs(weights="int32", directed=False, max_vertices=40),
        count=st.integers(2, 8),
        seed=st.integers(1, 2**40),
    )
    def check(graph, count, seed):
        monkeypatch.setattr(WorklistRun, "jitter", 2 * seed + 1)
        assert_same(run(graph, execution="async", devices=f"cpu:{count}x1"), run(graph))

    check()


def test_a_thousand_runs_end_alike(monkeypatch):
    graph = random_graph(300, 900, seed=2, weights="int32")
    placed = shoal.place(graph, "cpu:4x1", partition="random")
    expected = shoal.sssp(graph, 0).distance
    for seed in range(1000):
        monkeypatch.setattr(WorklistRun, "jitter", 2 * seed + 1 if seed % 2 else 0)
        assert np.array_equal(shoal.sssp(placed, 0, execution="async", parents=False).distance, expected), seed


#: Each kind is compiled by itself, which takes seconds.
KINDS = [(WIDTHS[1], "float64", "all"), (WIDTHS[2], "float32", "one-hop")]


@pytest.mark.parametrize(("widths", "weights", "duplication"), KINDS, ids=str)
def test_all_types(widths, weights, duplication):
    graph = random_graph(200, 800, seed=3, weights=weights, vertex_dtype=widths[0], edge_dtype=widths[1])
    how = {"execution": "async", "devices": "cpu:3x1", "duplication": duplication}
    found, expected = (shoal.sssp(graph, 0, parents=False, **strategies).distance for strategies in (how, {}))
    assert_same(found, expected)


@pytest.mark.parametrize("communication", ["selective", "ring"])
def test_full_channels_lose_nothing(communication, monkeypatch):
    monkeypatch.setattr(worklist_run, "MAX_ROOM", 1)
    graph = random_graph(100, 800, seed=5, weights="int32")
    how = {"execution": "async", "devices": "cpu:4x1", "partition": "random", "communication": communication}
    assert_same(ALGORITHMS["sssp"](graph, **how), ALGORITHMS["sssp"](graph))
    assert_same(ALGORITHMS["pagerank"](graph, **how), ALGORITHMS["pagerank"](graph))


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:3x1"])
def test_a_full_arena_is_tidied(devices, monkeypatch):
    num_bins = 3  # a wide bucket: what is stale lies in the bin where its vertex waits still
    monkeypatch.setattr(worklist_run, "arena_blocks", lambda num_owned: num_owned // 64 + 1 + num_bins)
    graph = random_graph(300, 30_000, seed=6, weights="int32")
    assert_same(
        shoal.sssp(graph, 0, delta=1e6, execution="async", devices=devices).distance, shoal.sssp(graph, 0).distance
    )


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:3x1"])
def test_a_full_arena_is_tidied_where_no_marks_say_what_is_stale(devices, monkeypatch):
    """Most vertices have entries in several bins, as they are found nearer before their turn comes."""
    monkeypatch.setattr(worklist_run, "arena_blocks", lambda num_owned: num_owned // 64 + 60)
    monkeypatch.setattr(worklist_run.WorklistRun, "jitter", 3)
    end, is_full = worklist_run.WorklistRun.end, []

    def look(run):
        is_full.append(run.control[slot.BLOCKS_USED] == len(run.links))
        return end(run)

    monkeypatch.setattr(worklist_run.WorklistRun, "end", look)
    graph = random_graph(3000, 40_000, seed=6, weights="int32")
    expected = shoal.run(Levels(), graph, execution="bsp")
    for partition in ("random", "segment"):
        found = shoal.run(Levels(), graph, execution="async", devices=devices, partition=partition)
        assert_same(found.distance, expected.distance)
    assert all(is_full)


class Levels(Program):
    """Shortest paths in which every distance is a priority of its own."""

    distance = Vertex("int64", fill=2**60, combine=minimum)

    def start(self):
        self.distance[0] = 0
        return [0]

    @rule
    def own(vertex, distance):
        return distance[vertex]

    @rule
    def relax(src, dst, weight, distance):
        return atomic.min(distance, dst, distance[src] + weight)

    def step(self, frontier):
        return advance(frontier, self.relax, priority=self.own, unique=True)


# Priorities


def test_soft_priorities_visit_less():
    graph = shoal.generate.grid(60, 60, seed=1, weights=(1, 255))
    source = graph.num_vertices // 2
    visited = {}
    for priority in ("soft", "none"):
        result = shoal.sssp(graph, source, execution="async", devices="cpu:4x1", partition="random", priority=priority)
        visited[priority] = result.stats.to_dict()["work_items"]
    reached = np.count_nonzero(np.isfinite(result.distance))
    assert reached <= visited["soft"] < visited["none"]


def test_on_one_device_a_search_by_levels_visits_every_vertex_once():
    graph = random_graph(500, 2000, seed=1)
    result = shoal.bfs(graph, 0, execution="async", devices="cpu:1x1")
    assert result.stats.to_dict()["work_items"] == np.count_nonzero(result.distance >= 0)


# Counts


def test_what_is_counted():
    graph = random_graph(200, 800, seed=1, weights="int32")
    result = shoal.sssp(graph, 0, execution="async", devices="cpu:2x1", parents=False)
    counts = result.stats.to_dict()
    assert counts["config"]["execution"] == "async"
    assert counts["config"]["priority"] == "soft"
    assert counts["num_supersteps"] == len(counts["supersteps"]) == 1
    assert counts["items_sent"] == counts["items_combined"] > 0
    assert counts["bytes_sent"] == 8 * counts["items_sent"]
    assert 0 < counts["messages"] <= counts["items_sent"]
    assert counts["supersteps"][0]["direction"] == ["async", "async"]
    assert counts["edges_visited"] >= graph.num_edges * 0.9
    in_supersteps = shoal.sssp(graph, 0).stats.to_dict()
    assert in_supersteps["work_items"] == 0
    assert in_supersteps["config"]["priority"] == "none"


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "sssp_parents", "pagerank", "own program"])
@pytest.mark.parametrize("duplication", ["all", "one-hop"])
def test_a_graph_of_few_edges_is_one_devices(algorithm, duplication, monkeypatch):
    graph = random_graph(200, 800, seed=2, weights="int32")
    how = {"execution": "async", "devices": "cpu:3x1", "duplication": duplication}
    found = {}
    for least in (graph.num_edges, graph.num_edges + 1):
        monkeypatch.setattr(CPUBackend, "least_shared_edges", least)
        assert_same(ALGORITHMS[algorithm](graph, **how), ALGORITHMS[algorithm](graph))
        found[least] = shoal.bfs(graph, 0, **how).stats.to_dict()
    shared, alone = found.values()
    assert shared["items_sent"] > 0
    assert "devices" not in shared["reasons"]
    assert alone["items_sent"] == 0
    assert "few edges" in alone["reasons"]["devices"]
    assert alone["supersteps"][0]["frontier_size"] == [alone["work_items"], 0, 0]
    assert alone["bytes_by_pair"] == [[0] * 3] * 3
    assert alone["peak_memory_bytes_by_device"][1:] == [0, 0]
    assert alone["config"] == shared["config"]


def test_little_work_that_lasts_is_left_for_ctrl_c(monkeypatch):
    monkeypatch.setattr("shoal.backends.cpu.worklist_run.INLINE_NANOSECONDS", 0)
    graph = random_graph(200, 800, seed=3, weights="int32")
    for run in (ALGORITHMS["sssp"], ALGORITHMS["pagerank"]):
        assert_same(run(graph, execution="async", devices="cpu:1x1"), run(graph))


def test_what_is_refused_does_not_depend_on_the_number_of_edges(monkeypatch):
    monkeypatch.setattr(CPUBackend, "least_shared_edges", 1 << 17)
    assert_refused(
        lambda: shoal.bfs(path_graph(5), 0, execution="async", devices="cpu:2", communication="butterfly"),
        "communication='butterfly'",
    )


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "pagerank"])
@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:3x1"])
def test_estimates_hold(algorithm, devices):
    graph = random_graph(20_000, 100_000, seed=1, weights="int32")
    how = {"execution": "async", "devices": devices}
    result = getattr(shoal, algorithm)(graph, **({} if algorithm == "pagerank" else {"source": 0}), **how)
    estimate = estimate_memory(graph, algorithm, **how)
    assert result.stats.peak_memory_bytes <= estimate.total_bytes - estimate.graph_bytes


# What is refused


class Step(Program):
    """A program of one step, for programs that cannot do without supersteps."""

    level = Vertex("int32", fill=FAR, combine=minimum)
    total = Vertex("int32", combine=add)
    owner = Vertex("int32", fill=-1, combine=first)
    best = Scalar("int64", combine=minimum)

    def __init__(self, step, **phase):
        self.which, self.phase = step, phase

    def start(self):
        self.level[0] = 0
        return [0]

    @rule
    def relax(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    @rule
    def relax_by_superstep(src, dst, superstep, level):
        return atomic.min(level, dst, superstep)

    @rule
    def count(src, dst, total):
        atomic.add(total, dst, 1)
        return True

    @rule
    def claim(src, dst, owner):
        return atomic.compare_exchange(owner, dst, -1, src)

    @rule
    def is_near(vertex, level):
        return level[vertex] < 3

    @rule
    def clip(vertex, level):
        level[vertex] = min(level[vertex], 3)
        return True

    @rule
    def lower(vertex, level):
        level[vertex] = max(level[vertex] - 1, 0)

    @rule
    def zero(superstep):
        return 0

    @rule
    def never():
        return False

    def twice(self, frontier):
        return advance(advance(frontier, self.relax), self.relax)

    def updated(self, frontier):
        update(self.best, self.zero)
        return advance(frontier, self.relax)

    def by_superstep(self, frontier):
        return advance(frontier, self.relax_by_superstep)

    def summed(self, frontier):
        return advance(frontier, self.count)

    def claimed(self, frontier):
        return advance(frontier, self.claim)

    def clipped(self, frontier):
        return filter(advance(frontier, self.relax), self.clip)

    def plain(self, frontier):
        return advance(frontier, self.relax)

    def some_edges(self, frontier):
        return advance(frontier, self.relax, first_edges=2)

    def pulled(self, frontier):
        return advance(frontier, self.relax, where=self.is_near, direction="pull")

    def beside(self, frontier):
        advance(frontier, self.relax)
        return frontier

    def phases(self):
        phase = {key: getattr(self, value) if key == "until" else value for key, value in self.phase.items()}
        return [Phase(getattr(self, self.which), **phase)]


@pytest.mark.parametrize(
    ("step", "phase", "reason"),
    [
        ("twice", {}, "is advance, advance; without supersteps it can be computes, one advance and a filter"),
        ("updated", {}, "is update, advance;"),
        ("by_superstep", {}, "has a rule that asks for superstep: .*relax_by_superstep"),
        ("summed", {}, "adds to total, which no compute of the step takes"),
        ("claimed", {}, "writes owner by combine=first, whose result depends on what comes first"),
        ("clipped", {}, "has a filter that writes"),
        ("some_edges", {}, "does not visit all edges"),
        ("pulled", {}, "pulls"),
        ("beside", {"max_supersteps": 5}, "has max_supersteps=5"),
        ("plain", {"until": "never"}, "ends by until="),
        ("plain", {"keep": True, "joins": 1}, "keeps or replays"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:2x1"])
def test_programs_that_need_supersteps_are_refused(step, phase, reason, devices):
    message = rf"^execution='async' is not possible: Step\.{step} .*{reason}.*; allowed: auto, bsp$"
    with pytest.raises(shoal.ArgumentError, match=message):
        shoal.run(Step(step, **phase), path_graph(5), execution="async", devices=devices)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, **how: shoal.betweenness_centrality(g, [0, 1], **how), "Betweenness"),
        (lambda g, **how: shoal.bfs(g, [0, 1], **how), "BatchBFS.step has a rule that asks for superstep"),
        (lambda g, **how: shoal.bfs(g, 0, targets=[1], **how), "targets="),
        (lambda g, **how: shoal.sssp(g, 0, targets=[1], **how), "SSSP.step"),
        (lambda g, **how: shoal.pagerank(g, iterations=3, **how), "iterations="),
        (lambda g, **how: shoal.pagerank(g, damping=1, **how), "damping=1"),
        (lambda g, **how: shoal.pagerank(g, tolerance=0, **how), "tolerance=0"),
    ],
)
def test_calls_that_need_supersteps_are_refused(call, message):
    with pytest.raises(shoal.ArgumentError, match=message) as refused:
        call(path_graph(5), execution="async", devices="cpu:2")
    assert "execution='async'" in str(refused.value)


def test_what_does_not_go_together_is_refused():
    graph = path_graph(4)
    for name in ("broadcast", "butterfly"):
        assert_refused(lambda name=name: shoal.bfs(graph, 0, execution="async", communication=name, devices="cpu:2"),
                       f"communication='{name}'")  # fmt: skip
    assert_refused(lambda: shoal.bfs(graph, 0, execution="async", devices="cpu:2x2"), "cpu:4")
    placed = shoal.place(graph, "cpu:2x2")
    for run in (shoal.bfs, shoal.connected_components):
        source = {} if run is shoal.connected_components else {"source": 0}
        assert_refused(lambda r=run, s=source: r(placed, **s, execution="async"), "cpu:4")
    assert_refused(lambda: shoal.bfs(graph, 0, execution="async", direction="pull"), "direction='pull'")
    for priority, execution in itertools.product(("soft", "none"), ("auto", "bsp")):
        assert_refused(lambda p=priority, e=execution: shoal.bfs(graph, 0, priority=p, execution=e), "supersteps")


# When something fails


class Failing(Program):
    """Fails at one vertex."""

    level = Vertex("int32", fill=FAR, combine=minimum)
    bad = Constant("int64")

    def start(self, bad):
        self.level[0] = 0
        self.bad = bad
        return [0]

    @rule
    def relax(src, dst, level, bad):
        assert src != bad
        return atomic.min(level, dst, level[src] + 1)

    def step(self, frontier):
        return advance(frontier, self.relax)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_rule_that_fails_ends_the_run_and_names_the_device(count):
    graph = path_graph(1000)
    began = time.monotonic()
    with pytest.raises(shoal.ProgramError, match=r"rule 'relax' .* failed.*: AssertionError") as failure:
        shoal.run(Failing(), graph, bad=900, execution="async", devices=f"cpu:{count}x1")
    assert time.monotonic() - began < 30 * SOON_SECONDS  # the first time with compiling
    assert "superstep" not in str(failure.value)
    if count > 1:
        assert f" on device cpu:{count - 1}" in str(failure.value)
    began = time.monotonic()
    with pytest.raises(shoal.ProgramError):
        shoal.run(Failing(), graph, bad=900, execution="async", devices=f"cpu:{count}x1")
    assert time.monotonic() - began < SOON_SECONDS
    assert shoal.run(Failing(), graph, bad=5000, execution="async", devices=f"cpu:{count}x1").level[-1] == 999


@pytest.mark.parametrize("failing", range(3))
def test_a_thread_that_dies_ends_the_run(failing, monkeypatch):
    loop = WorklistRun.loop

    def die(run, *arguments):
        if run.shard.part.device == failing:
            raise MemoryError("no more")
        loop(run, *arguments)

    graph = random_graph(300, 900, seed=1, weights="int32")
    monkeypatch.setattr(WorklistRun, "loop", die)
    began = time.monotonic()
    with pytest.raises(shoal.OutOfMemoryError, match=f"device cpu:{failing} failed: MemoryError: no more"):
        shoal.sssp(graph, 0, execution="async", devices="cpu:3x1", partition="random")
    assert time.monotonic() - began < 30 * SOON_SECONDS
    monkeypatch.undo()
    shoal.sssp(graph, 0, execution="async", devices="cpu:3x1", partition="random", validate=True)


class Endless(Program):
    """Never ends: every visit makes the next one."""

    count = Vertex("int64", combine=maximum)

    def start(self):
        return [0]

    @rule
    def count_up(src, dst, count):
        return atomic.max(count, dst, count[src] + 1)

    def step(self, frontier):
        return advance(frontier, self.count_up)


@pytest.mark.parametrize("devices", ["cpu:1x1", "cpu:3x1"])
def test_an_interrupt_ends_a_run_without_end(devices, monkeypatch):
    begin, moments = WorklistRun.begin, []

    def begin_and_set_the_alarm(run):
        begin(run)
        if not moments:
            moments.append(time.monotonic())
            signal.setitimer(signal.ITIMER_REAL, 0.2)

    monkeypatch.setattr(WorklistRun, "begin", begin_and_set_the_alarm)
    with pytest.raises(TimeoutError):
        shoal.run(Endless(), random_graph(50, 200, seed=1), execution="async", devices=devices)
    assert time.monotonic() - moments[0] < 0.2 + SOON_SECONDS


class Drain(Program):
    """Sums that are taken and passed on: what comes to a vertex, halved; a priority may go with it."""

    amount = Vertex("float64", combine=add)
    kept = Vertex("float64")
    passed = Vertex("float64")

    def start(self):
        self.amount[0] = 1.0
        return [0]

    @rule
    def take(vertex, amount, kept, passed):
        kept[vertex] += amount[vertex] / 2
        passed[vertex] = amount[vertex] / 2
        amount[vertex] = 0.0

    @rule
    def hand_on(src, dst, passed, amount):
        atomic.add(amount, dst, passed[src])
        return True

    @rule
    def is_much(vertex, amount):
        return amount[vertex] > 1e-9

    def step(self, frontier):
        compute(frontier, self.take)
        return filter(advance(frontier, self.hand_on), self.is_much)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_sums_that_are_taken_lose_nothing(count):
    graph = shoal.Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40, directed=True)
    result = shoal.run(Drain(), graph, execution="async", devices=f"cpu:{count}x1", partition="random")
    assert result.kept.sum() + result.amount.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(result.kept, shoal.run(Drain(), graph).kept, rtol=1e-9)
