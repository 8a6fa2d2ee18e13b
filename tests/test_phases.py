# SPDX-License-Identifier: Apache-2.0
"""Phases: where they begin, when they end, frontiers kept and replayed, and fields that change places."""

import importlib

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import path_graph, random_graph
from placing import THREADS, levels_of, on_threads
from shoal import (
    Constant,
    Phase,
    Program,
    Scalar,
    Vertex,
    advance,
    atomic,
    compute,
    everything,
    reduce,
    rule,
    swap,
    update,
)
from shoal import filter as keep_if
from shoal.algorithms.bfs import BFS
from shoal.algorithms.sssp import SSSP
from shoal.errors import ProgramError, ShoalError

NUM_VERTICES = 700


@pytest.fixture(scope="module")
def graph():
    return random_graph(NUM_VERTICES, 1400, seed=5, directed=True, skew=1.0)


class Turns(Program):
    """Two arrays change places every superstep."""

    old = Vertex("int64")
    new = Vertex("int64")
    num_turns = Scalar("int64", fill=1)
    last_superstep = Scalar("int64", fill=-1)
    limit = Constant("int64")

    def __init__(self, max_supersteps=None):
        self.max_supersteps = max_supersteps

    def start(self, limit=2**40):
        self.limit = limit

    @rule
    def grow(vertex, old, new):
        new[vertex] = old[vertex] + 1

    @rule
    def one_more(num_turns):
        return num_turns + 1

    @rule
    def this_superstep(superstep):
        return superstep

    @rule
    def is_over(num_turns, limit):
        return num_turns >= limit

    def step(self, frontier):
        update(self.last_superstep, self.this_superstep)
        compute(everything, self.grow)
        swap(self.old, self.new)
        update(self.num_turns, self.one_more)

    def phases(self):
        return [Phase(self.step, until=self.is_over, max_supersteps=self.max_supersteps)]


# 256 and 4096 supersteps fill the trace of one thread and of several: the loop comes back to Python in between.
@pytest.mark.parametrize("count", [1, 2, 3, 256, 257, 4096, 4097])
@pytest.mark.parametrize("num_threads", THREADS)
def test_swapped_fields_end_in_their_places(graph, count, num_threads):
    result = shoal.run(Turns(count), on_threads(graph, num_threads))
    assert (set(result.old), set(result.new)) == ({count}, {count - 1})
    assert (result.num_turns, result.last_superstep) == (count + 1, count - 1)
    assert result.stats.num_supersteps == count


def test_until_ends_a_phase(graph):
    result = shoal.run(Turns(), graph, limit=6)
    assert result.num_turns == 6
    assert result.stats.num_supersteps == 5


class Stages(Program):
    """Hops, then the frontiers once more from the last to the first, then every vertex."""

    level = Vertex("int64", fill=-1)
    replayed = Vertex("int64", fill=-1)
    odd = Vertex("int64", fill=-1)
    reached = Scalar("int64")

    def __init__(self, replay="plain", joins=1, keep=True):
        self.replay, self.joins, self.keep = replay, joins, keep

    def start(self, sources):
        self.level[sources] = 0
        return sources

    @rule
    def discover(src, dst, level):
        return atomic.compare_exchange(level, dst, -1, level[src] + 1)

    @rule
    def stamp(vertex, superstep, replayed):
        replayed[vertex] = superstep

    @rule
    def stamp_odd(vertex, superstep, odd):
        odd[vertex] = superstep

    @rule
    def is_odd(vertex):
        return vertex % 2 == 1

    @rule
    def always(src, dst):
        return True

    @rule
    def is_reached(vertex, level):
        return level[vertex] >= 0

    def forward(self, frontier):
        return advance(frontier, self.discover, unique=True)

    def backward(self, frontier):
        compute(frontier, self.stamp)
        if self.replay == "filtered":
            compute(keep_if(frontier, self.is_odd), self.stamp_odd)
        return advance(frontier, self.always) if self.replay == "returning" else None

    def count(self, frontier):
        reduce(frontier, self.is_reached, into=self.reached)

    def phases(self):
        return [
            Phase(self.forward, keep=self.keep, joins=self.joins),
            Phase(self.backward, begin="replay"),
            Phase(self.count, begin="all", max_supersteps=1),
        ]


def check_stages(result, graph, source):
    level = levels_of(graph, source)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.replayed, np.where(level >= 0, level.max() - level, -1))
    assert result.reached == np.count_nonzero(level >= 0)


def check_or_refused(program, graph, word):
    """Assert that a program gives what it should or is refused: both are right, silence about neither is."""
    try:
        result = shoal.run(program, on_threads(graph, 1), sources=[3])
    except ProgramError as error:
        assert word in str(error)  # noqa: PT017
    else:
        check_stages(result, graph, 3)


@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("replay", ["plain", "filtered"])
def test_replay_goes_through_the_frontiers_backwards(graph, num_threads, replay):
    result = shoal.run(Stages(replay), on_threads(graph, num_threads), sources=[3])
    check_stages(result, graph, 3)
    if replay == "filtered":
        is_odd = np.arange(NUM_VERTICES) % 2 == 1
        np.testing.assert_array_equal(result.odd, np.where(is_odd, result.replayed, -1))


def test_a_replay_keeps_its_frontiers_whatever_its_step_returns(graph):
    check_or_refused(Stages("returning"), graph, "replay")


def test_keep_without_a_bound_on_joins(graph):
    """There is room for two frontiers only: what is replayed may not be what was overwritten."""
    check_or_refused(Stages(joins=None), graph, "joins")


def test_a_replay_needs_a_phase_that_keeps(graph):
    placed = on_threads(graph, 1)
    assert_refused(lambda: shoal.run(Stages(keep=False), placed, sources=[3]), "replay", "keep", error=ProgramError)


class Late(Stages):
    """Another phase comes between those that keep and replay: its frontiers lie where the kept ones lay."""

    def phases(self):
        forward, backward, count = super().phases()
        return [forward, count, backward]


def test_a_replay_comes_right_after_the_phase_that_keeps(graph):
    assert_refused(lambda: shoal.run(Late(), graph, sources=[3]), "Late", "replay", "keep", error=ProgramError)


def test_a_replay_of_no_frontier_does_nothing(graph):
    """Buffers go from run to run; frontiers do not."""
    placed = on_threads(graph, 1)
    shoal.run(Stages(), placed, sources=[3])
    result = shoal.run(Stages(), placed, sources=[])
    assert set(result.replayed) == {-1}
    assert result.reached == 0


class Endless(Program):
    seen = Vertex("int64")

    def __init__(self, **phase):
        self.phase = tuple(phase.items())

    @rule
    def see(vertex, seen):
        seen[vertex] += 1

    def step(self, frontier):
        compute(frontier, self.see)

    def phases(self):
        return [Phase(**{"step": self.step, **dict(self.phase)})]


@rule
def on_vertex(vertex):
    return True


PHASES = {
    "no end": ({}, ["Endless.step", "until=", "max_supersteps="]),
    "no end from everywhere": ({"begin": "all"}, ["Endless.step", "until=", "max_supersteps="]),
    "no step": ({"step": None, "max_supersteps": 1}, ["step=None"]),
    "unknown begin": ({"begin": "strat", "max_supersteps": 1}, ["begin", "'strat'", "start", "all", "replay"]),
    "negative limit": ({"max_supersteps": -1}, ["max_supersteps", "-1"]),
    "fractional limit": ({"max_supersteps": 1.5}, ["max_supersteps", "1.5"]),
    "no joins": ({"joins": 0, "max_supersteps": 1}, ["joins", "0"]),
    "until no rule": ({"until": len, "max_supersteps": 1}, ["until", "rule"]),
    "until of a vertex": ({"until": on_vertex, "max_supersteps": 1}, ["on_vertex", "'vertex'"]),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_is_refused(name):
    options, words = PHASES[name]
    assert_refused(lambda: shoal.run(Endless(**options), path_graph(3)), *words, error=ShoalError)


class Unending(Endless):
    def __init__(self, form):
        self.form = form

    def step(self, frontier):
        compute(frontier, self.see)
        return frontier if self.form == "the same" else everything

    def phases(self):
        return [Phase(self.step)]


@pytest.mark.parametrize("form", ["the same", "everything"])
def test_a_frontier_that_is_never_empty_needs_an_end(form):
    assert_refused(lambda: shoal.run(Unending(form), path_graph(3)), "Unending.step", "until=", error=ProgramError)


class Formless(Endless):
    def __init__(self, made):
        self.made = made

    def phases(self):
        return self.made


@pytest.mark.parametrize("made", [None, [], [1], ()])
def test_phases_must_be_phases(made):
    assert_refused(lambda: shoal.run(Formless(made), path_graph(3)), "Formless.phases", error=ProgramError)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_code_depends_on_the_weights_only_if_a_rule_asks_for_them(backend):
    load_phase = importlib.import_module(f"shoal.backends.{backend}.phases").load_phase
    whole, real = np.dtype("int32"), np.dtype("float64")
    kinds = [(whole, whole, weight) for weight in (None, whole, real)]

    def count_modules(program):
        return len({id(load_phase(program, program.phases()[0], types, "push")) for types in kinds})

    assert count_modules(BFS()) == 1
    assert count_modules(SSSP(real)) == 3
    graph = path_graph(4, weights=np.array([0.5, 2.0, 1.0]), directed=True)
    assert shoal.bfs(graph, 0, devices="cpu").distance.tolist() == [0, 1, 2, 3]
    assert shoal.sssp(graph, 0, devices="cpu").distance.tolist() == [0, 0.5, 2.5, 3.5]
