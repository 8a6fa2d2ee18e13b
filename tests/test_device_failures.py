# SPDX-License-Identifier: Apache-2.0
"""When something fails on one of several devices, all end, the message says where, and the next run works."""

import itertools
import json
import threading
import time

import numpy as np
import pytest

import shoal
from graphs import from_pairs, path_graph, random_graph
from processes import interrupt, start_script
from shoal import Constant, Phase, Program, Scalar, Vertex, add, advance, atomic, compute, minimum, reduce, rule, update
from shoal.backends.cpu import border, device, phase_run, sessions
from shoal.execution import binding, bsp

pytestmark = [
    pytest.mark.host_only("about several devices of the CPU"),
    pytest.mark.usefixtures("way_out", "no_thread_is_left"),
]

GRAPH = random_graph(60, 240, seed=4, weights="int32")
SOON_SECONDS = 1.0  # from the failure to the exception at the caller; milliseconds, but for one long piece of work
FAR = 2**31 - 1


@pytest.fixture
def moments(monkeypatch):
    """When threads left their loops by an exception; the first of them is the one that failed."""
    found, loop = [], phase_run.PhaseRun.loop

    def watch(run, *arguments):
        try:
            loop(run, *arguments)
        except BaseException:
            found.append(time.monotonic())
            raise

    monkeypatch.setattr(phase_run.PhaseRun, "loop", watch)
    return found


def seconds_since_failure(moments):
    return time.monotonic() - moments[0]


def placed(num_devices, graph=GRAPH):
    """A graph dealt out to devices in turn: vertex v is on device v % num_devices."""
    owner = np.arange(graph.num_vertices) % num_devices
    return shoal.place(graph, f"cpu:{num_devices}", partition=owner)


# A rule that fails at one vertex


@rule
def keep_smaller(vertex, value, least, bad):
    assert vertex != bad, "bad vertex"
    if value < least[vertex]:
        least[vertex] = value
        return True
    return False


class Failing(Program):
    """Every operator once; the rule of one of them fails at vertex ``bad``."""

    least = Vertex("int64", fill=FAR)
    count = Vertex("int64")
    total = Scalar("int64", combine=add)
    twice = Scalar("int64", combine=add)
    bad = Constant("int64")

    def __init__(self, form):
        self.form = form
        combine = keep_smaller if form == "combine" else minimum
        self.least = Vertex("int64", fill=FAR, combine=combine)

    def start(self, bad=-1):
        self.bad = bad

    @rule
    def push(src, dst, least, bad):
        assert src != bad, "bad source"
        return atomic.min(least, dst, src)

    @rule
    def pull(src, dst, least, bad):
        assert dst != bad, "bad destination"
        return atomic.min(least, dst, src)

    @rule
    def propose(src, dst, least):
        return atomic.min(least, dst, src)

    @rule
    def always(vertex):
        return True

    @rule
    def compute(vertex, count, bad):
        assert vertex != bad, "bad vertex"
        count[vertex] += vertex

    @rule
    def reduce(vertex, bad):
        assert vertex != bad, "bad vertex"
        return vertex

    @rule
    def update(total, bad):
        assert bad < 0
        return total + 1

    @rule
    def until(superstep, bad):
        assert superstep != bad
        return superstep == 2

    def step(self, frontier):
        if self.form in ("push", "pull", "combine"):
            edge_rule = self.propose if self.form == "combine" else getattr(self, self.form)
            is_pull = self.form == "pull"
            advance(shoal.everything, edge_rule, where=self.always if is_pull else None,
                    direction="pull" if is_pull else "push", early_exit=False)  # fmt: skip
        elif self.form == "compute":
            compute(shoal.everything, self.compute)
        else:
            reduce(shoal.everything, self.reduce if self.form == "reduce" else self.always, into=self.total)
        if self.form == "update":
            update(self.twice, self.update)

    def phases(self):
        return [Phase(self.step, until=self.until if self.form == "until" else None, max_supersteps=3)]


RULES = {form: form for form in ("push", "pull", "compute", "reduce", "update", "until")} | {"combine": "keep_smaller"}
IN_EVERY_DEVICE = ("update", "until")  # whichever comes first


@pytest.mark.parametrize("num_devices", [2, 3, 7])
@pytest.mark.parametrize("form", RULES)
def test_a_rule_that_fails_on_one_device(form, num_devices, moments):
    """The message names the rule and the device; all devices end at once; the same graph can be used again."""
    graph, program, device = placed(num_devices), Failing(form), num_devices - 1
    expected = shoal.run(program, GRAPH)
    shoal.run(program, graph)  # compiled now
    bad = 2 if form == "until" else 5 * num_devices + device
    with pytest.raises(shoal.ProgramError) as caught:
        shoal.run(program, graph, bad=bad)
    assert seconds_since_failure(moments) < SOON_SECONDS
    message = str(caught.value)
    assert message.startswith(f"Failing: rule '{RULES[form]}' (")
    where = "cpu:" if form in IN_EVERY_DEVICE else f"cpu:{device} "
    assert f"failed on device {where}" in message
    assert isinstance(caught.value.__cause__, AssertionError)
    after = shoal.run(program, graph)
    for name in ("least", "count", "total", "twice"):
        np.testing.assert_array_equal(getattr(after, name), getattr(expected, name))


class Slow(Program):
    """A long superstep, in which the rule fails at vertex ``bad``."""

    total = Vertex("int64", combine=add)
    bad = Constant("int64")
    rounds = Constant("int64")

    def start(self, bad, rounds):
        self.bad, self.rounds = bad, rounds

    @rule
    def visit(src, dst, total, bad, rounds):
        assert src != bad
        value = src
        for turn in range(rounds):
            value = (value * 1103515245 + turn) % 2147483647
        atomic.add(total, dst, value)
        return False

    def step(self, frontier):
        return advance(frontier, self.visit)


@pytest.mark.parametrize("devices", ["cpu:2x1", "cpu:4x1", "cpu:2x2"])
def test_a_rule_that_fails_while_others_work(devices, moments):
    """Devices in the middle of a superstep of seconds do not come to its end."""
    vertices = np.arange(400_000)
    graph = shoal.Graph.from_edges(vertices, np.roll(vertices, 1), directed=True)
    there = shoal.place(graph, devices, partition=vertices % 2)
    shoal.run(Slow(), there, bad=-1, rounds=0)  # compiled now
    with pytest.raises(shoal.ProgramError, match=r"rule 'visit' .* failed on device cpu:1 "):
        shoal.run(Slow(), there, bad=1, rounds=1000)
    assert seconds_since_failure(moments) < SOON_SECONDS


@pytest.mark.parametrize("communication", ["broadcast", "butterfly", "ring"])
def test_a_rule_that_fails_while_others_exchange(communication):
    with pytest.raises(shoal.ProgramError, match=r"rule 'push' .* failed on device cpu:1 in superstep 0: Assert"):
        shoal.run(Failing("push"), placed(4), bad=9, communication=communication)


def test_a_rule_that_fails_where_devices_have_several_threads(monkeypatch):
    monkeypatch.setattr(device.CPUDevice, "is_small", lambda self, graph: False)
    graph = shoal.place(GRAPH, "cpu:2x3", partition=np.arange(60) % 2)
    with pytest.raises(shoal.ProgramError, match=r"rule 'push' .* failed on device cpu:1 "):
        shoal.run(Failing("push"), graph, bad=9)
    assert shoal.run(Failing("push"), graph).least.tolist() == shoal.run(Failing("push"), GRAPH).least.tolist()


# What is no rule's fault


@pytest.mark.parametrize("num_devices", [2, 3, 7])
@pytest.mark.parametrize("error", [RuntimeError("injected"), KeyError("lost"), MemoryError()], ids=repr)
def test_a_thread_that_fails(monkeypatch, num_devices, error):
    graph, device, loop, moments = placed(num_devices), num_devices // 2, phase_run.PhaseRun.loop, []
    expected = shoal.bfs(graph, 0).distance

    def fail(run, *arguments):
        if run.shard.device.name == f"cpu:{device}":
            moments.append(time.monotonic())
            raise error
        loop(run, *arguments)

    monkeypatch.setattr(phase_run.PhaseRun, "loop", fail)
    kind = shoal.OutOfMemoryError if isinstance(error, MemoryError) else RuntimeError
    with pytest.raises(kind, match=f"^BFS: device cpu:{device} failed: {type(error).__name__}") as caught:
        shoal.bfs(graph, 0)
    assert seconds_since_failure(moments) < SOON_SECONDS
    assert caught.value.__cause__ is error
    monkeypatch.undo()
    assert shoal.bfs(graph, 0).distance.tolist() == expected.tolist()


# Memory


def two_sources(graph):
    """Return two vertices, if there are so many: as few numbers of sources as possible are compiled."""
    return list(range(min(2, getattr(graph, "graph", graph).num_vertices))) or None


ALGORITHMS = {
    "bfs": lambda graph, **how: shoal.bfs(graph, 0, **how).distance,
    "batch": lambda graph, **how: shoal.bfs(graph, [0, 0, 0], **how).distance,
    "sssp": lambda graph, **how: shoal.sssp(graph, 0, **how).distance,
    "components": lambda graph, **how: shoal.connected_components(graph, **how).label,
    "betweenness": lambda graph, **how: shoal.betweenness_centrality(graph, two_sources(graph), **how).centrality,
    "pagerank": lambda graph, **how: shoal.pagerank(graph, **how).rank,
}
ALLOCATING = ("empty", "zeros", "full", "concatenate", "array", "arange", "empty_like", "cumsum", "repeat")


class FaultyNumPy:
    """NumPy whose n-th allocation fails."""

    def __init__(self, number):
        self.number, self.counter = number, itertools.count(1)

    def __getattr__(self, name):
        function = getattr(np, name)
        return self._counted(function) if name in ALLOCATING else function

    def _counted(self, function):
        def allocate(*arguments, **options):
            if next(self.counter) == self.number:
                raise MemoryError("injected")
            return function(*arguments, **options)

        return allocate


@pytest.mark.parametrize("algorithm", ["bfs", "sssp", "components", "pagerank"])
def test_every_allocation_that_fails(monkeypatch, algorithm):
    """One clear error, or the right result; and afterwards the same graph works."""
    run = ALGORITHMS[algorithm]
    expected = run(GRAPH)
    run(placed(3))
    messages = []
    for number in range(1, 51):
        graph, faulty = placed(3), FaultyNumPy(number)
        for module in (device, border, phase_run, binding, bsp, sessions):
            monkeypatch.setattr(module, "np", faulty)
        try:
            assert_same(run(graph), expected)
        except shoal.OutOfMemoryError as error:
            messages.append(str(error))
        finally:
            monkeypatch.undo()
        assert_same(run(graph), expected)
    assert len(messages) >= 40
    assert all(message.endswith("do not fit in memory (injected)") for message in messages)


def assert_same(found, expected):
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


# Ctrl-C

ENDLESS = """\
import json, threading
import numpy as np
import shoal
from shoal import Phase, Program, Vertex, add, advance, atomic, rule

class Endless(Program):
    turn = Vertex("int64", combine=add)

    def __init__(self, limit):
        self.limit = limit

    @rule
    def always(src, dst, turn):
        atomic.add(turn, dst, 1)
        return True

    def step(self, frontier):
        return advance(frontier, self.always)

    def phases(self):
        return [Phase(self.step, max_supersteps=self.limit)]

src, dst = np.random.default_rng(1).integers(0, 20000, (2, 200000))
graph = shoal.place(shoal.Graph.from_edges(src, dst, directed=True, num_vertices=20000), "cpu:4")
shoal.run(Endless(1), graph)
expected = shoal.bfs(graph, 0).distance
print("running")
try:
    shoal.run(Endless(None), graph)
except KeyboardInterrupt:
    print("interrupted")
is_right = bool((shoal.bfs(graph, 0).distance == expected).all())
print(json.dumps({"threads": [thread.name for thread in threading.enumerate()], "is_right": is_right}))
"""


def test_ctrl_c_reaches_all_devices(tmp_path):
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS)
    process = start_script(path)
    try:
        seconds = interrupt(process, after_seconds=0.5)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert seconds < SOON_SECONDS
    assert process.returncode == 0, errors
    assert json.loads(output) == {"threads": ["MainThread"], "is_right": True}


# Several callers


def test_callers_share_a_placed_graph():
    graph = placed(3)
    expected = {name: ALGORITHMS[name](graph) for name in ("bfs", "pagerank")}
    failures = []

    def call(name):
        try:
            for _ in range(10):
                assert_same(ALGORITHMS[name](graph), expected[name])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(name,)) for name in ("bfs", "pagerank") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Devices with little to do, or nothing

WEIGHTED = {"weights": np.ones(4, np.int32), "num_vertices": 5}
SMALL = {
    "more devices than vertices": (from_pairs([(0, 1), (1, 2), (2, 3), (3, 4)], **WEIGHTED), "cpu:7", "auto"),
    "one vertex": (from_pairs([], weights=np.empty(0, np.int32), num_vertices=1), "cpu:3", "auto"),
    "no edges": (from_pairs([], weights=np.empty(0, np.int32), num_vertices=9), "cpu:3", "auto"),
    "self-loops": (from_pairs([(0, 0), (1, 1), (1, 2), (2, 2)], **WEIGHTED), "cpu:3", "auto"),
    "devices that own nothing": (GRAPH, "cpu:4", np.zeros(60, np.int64)),
    "a first device that owns nothing": (GRAPH, "cpu:3", np.full(60, 2)),
}


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", SMALL)
def test_devices_with_little_to_do(name, algorithm, communication):
    graph, devices, partition = SMALL[name]
    if algorithm == "components" and communication == "selective":
        communication = "auto"  # its rules look at all vertices
    there = shoal.place(graph, devices, partition=partition)
    assert_same(ALGORITHMS[algorithm](there, communication=communication), ALGORITHMS[algorithm](graph))


@pytest.mark.parametrize("algorithm", ["components", "betweenness", "pagerank"])
def test_no_vertices(algorithm):
    graph = from_pairs([], num_vertices=0)
    assert ALGORITHMS[algorithm](shoal.place(graph, "cpu:3")).shape == (0,)


def test_a_failure_with_idle_devices():
    graph = shoal.place(path_graph(3), "cpu:7", partition=np.array([0, 0, 4]))
    with pytest.raises(shoal.ProgramError, match=r"rule 'push' .* failed on device cpu:4 "):
        shoal.run(Failing("push"), graph, bad=2)
