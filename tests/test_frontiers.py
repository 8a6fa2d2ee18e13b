# SPDX-License-Identifier: Apache-2.0
"""Frontiers through every combination of operators, against sets of vertices in NumPy.

A form of a step is written once: `Recorded` records it with operators, `Simulated` carries it out on sets.
"""

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import cycle_graph, from_pairs
from placing import THREADS, edges_of, levels_of, on_threads
from shoal import Phase, Program, Vertex, advance, atomic, compute, everything, rule
from shoal import filter as keep_if
from shoal.errors import ArgumentError, ProgramError

SUPERSTEPS = 12
FIRST = [64, 1984, 2048, 6336]


@pytest.fixture(scope="module")
def graph():
    """Two edges from each of a hundred vertices to others of them.

    Every one has a word of a bitmap to itself, so a mark left behind is not wiped out by a neighbour in the word.
    """
    src, dst = 64 * np.random.default_rng(5).integers(0, 100, (2, 200))
    return shoal.Graph.from_edges(src, dst, num_vertices=6400, directed=True)


class Walk(Program):
    """Follow some of the edges of a frontier and note in which supersteps every vertex was in it."""

    history = Vertex("int64")
    touched = Vertex("int64")
    arrived = Vertex("int64")

    def __init__(self, form, is_tallied=True, **phase):
        self.form, self.is_tallied = form, is_tallied
        self.phase = tuple(phase.items())

    def start(self, first):
        return first

    @rule
    def tally(vertex, superstep, history):
        history[vertex] += 1 << superstep

    @rule
    def touch(vertex, superstep, touched):
        touched[vertex] += 1 << superstep

    @rule
    def follow(src, dst, superstep, arrived):
        if (3 * src + 5 * dst + 64 * superstep) // 64 % 4 == 0:
            return False
        atomic.bit_or(arrived, dst, 1 << superstep)
        return True

    @rule
    def cross(src, dst, superstep, arrived):
        if (src + dst + superstep) % 3 == 0:
            return False
        atomic.bit_or(arrived, dst, 1 << superstep)
        return True

    @rule
    def is_kept(vertex, superstep):
        return (vertex + superstep) % 3 != 0

    @rule
    def is_low(vertex):
        return vertex % 5 != 0

    @rule
    def is_third(vertex):
        return vertex % 3 == 0

    def step(self, frontier):
        if self.is_tallied:
            compute(frontier, self.tally)
        return FORMS[self.form](Recorded(self), frontier)

    def phases(self):
        return [Phase(self.step, **{"max_supersteps": SUPERSTEPS, **dict(self.phase)})]


class Recorded:
    """The forms' words as operators of a program."""

    everything = everything

    def __init__(self, program):
        self.program = program

    def advance(self, frontier):
        return advance(frontier, self.program.follow)

    def into_low(self, frontier, **options):
        return advance(frontier, self.program.follow, where=self.program.is_low, **options)

    def pull_into_third(self, frontier):
        return advance(frontier, self.program.follow, where=self.program.is_third, direction="pull")

    def cross(self, frontier):
        return advance(frontier, self.program.cross)

    def kept(self, frontier):
        return keep_if(frontier, self.program.is_kept)

    def low(self, frontier):
        return keep_if(frontier, self.program.is_low)

    def touch(self, frontier):
        compute(frontier, self.program.touch)


class Simulated:
    """The forms' words on sets: a frontier is an array of booleans."""

    def __init__(self, graph):
        self.vertices = np.arange(graph.num_vertices)
        self.src, self.dst = edges_of(graph)
        self.everything = np.ones(graph.num_vertices, bool)
        self.touched = np.zeros(graph.num_vertices, np.int64)
        self.arrived = np.zeros(graph.num_vertices, np.int64)
        self.superstep = 0

    def advance(self, frontier, wanted=True):
        return self._joined(frontier, wanted & ((3 * self.src + 5 * self.dst + 64 * self.superstep) // 64 % 4 != 0))

    def into_low(self, frontier, **options):
        return self.advance(frontier, self.dst % 5 != 0)

    def pull_into_third(self, frontier):
        return self.advance(frontier, self.dst % 3 == 0)

    def cross(self, frontier):
        return self._joined(frontier, (self.src + self.dst + self.superstep) % 3 != 0)

    def kept(self, frontier):
        return frontier & ((self.vertices + self.superstep) % 3 != 0)

    def low(self, frontier):
        return frontier & (self.vertices % 5 != 0)

    def touch(self, frontier):
        self.touched += frontier.astype(np.int64) << self.superstep

    def _joined(self, frontier, accepts):
        joined = np.zeros(len(self.vertices), bool)
        joined[self.dst[frontier[self.src] & accepts]] = True
        self.arrived |= joined.astype(np.int64) << self.superstep
        return joined

    def run(self, form, first):
        frontier = np.zeros(len(self.vertices), bool)
        frontier[first] = True
        history = np.zeros(len(self.vertices), np.int64)
        while frontier.any() and self.superstep < SUPERSTEPS:
            history += frontier.astype(np.int64) << self.superstep
            frontier = form(self, frontier)
            self.superstep += 1
        return history


def _touched_then_returned(ops, frontier):
    output = ops.advance(frontier)
    ops.touch(output)
    return output


def _touched_only(ops, frontier):
    ops.touch(ops.advance(frontier))
    return frontier


def _everything_returned(ops, frontier):
    ops.touch(frontier)
    return ops.everything


def _side_by_side(ops, frontier):
    ops.touch(ops.advance(frontier))
    return ops.cross(frontier)


def _two_pulls(ops, frontier):
    ops.into_low(frontier, direction="pull")
    return ops.pull_into_third(frontier)


FORMS = {
    "advance": lambda ops, frontier: ops.advance(frontier),
    "where, push": lambda ops, frontier: ops.into_low(frontier, direction="push"),
    "where, auto": lambda ops, frontier: ops.into_low(frontier, direction="auto"),
    "filter after advance": lambda ops, frontier: ops.kept(ops.advance(frontier)),
    "two filters after advance": lambda ops, frontier: ops.kept(ops.low(ops.advance(frontier))),
    "filter before advance": lambda ops, frontier: ops.advance(ops.kept(frontier)),
    "filter after pull": lambda ops, frontier: ops.kept(ops.into_low(frontier, direction="pull")),
    "advance, filter, advance": lambda ops, frontier: ops.cross(ops.kept(ops.advance(frontier))),
    "advance from every vertex": lambda ops, frontier: ops.advance(ops.everything),
    "pull from every vertex": lambda ops, frontier: ops.into_low(ops.everything, direction="pull"),
    "an output touched, then returned": _touched_then_returned,
    "an output touched, the input returned": _touched_only,
    "two advances side by side": _side_by_side,
    "two pulls": _two_pulls,
    "every vertex returned": _everything_returned,
}


# Forms that may be refused, as a pull has no queue to read from; all others must work.
REFUSABLE = {"filter after pull", "two pulls", "advance, filter, advance", "two advances side by side"}


@pytest.mark.parametrize("is_tallied", [True, False])
@pytest.mark.parametrize("name", FORMS)
def test_many_supersteps(name, graph, is_tallied):
    """Nothing is lost and nothing is there twice, superstep after superstep, whether the frontier is read or not."""
    simulated = Simulated(graph)
    expected = simulated.run(FORMS[name], FIRST)
    for num_threads in THREADS:
        try:
            result = shoal.run(Walk(name, is_tallied), on_threads(graph, num_threads), first=FIRST)
        except ProgramError:
            assert name in REFUSABLE
            return
        np.testing.assert_array_equal(result.history, expected * is_tallied, err_msg=f"{num_threads} threads")
        np.testing.assert_array_equal(result.arrived, simulated.arrived, err_msg=f"{num_threads} threads")
        np.testing.assert_array_equal(result.touched, simulated.touched, err_msg=f"{num_threads} threads")


def test_the_first_frontier_is_a_set(graph):
    once = shoal.run(Walk("advance"), graph, first=[64, 1984])
    again = shoal.run(Walk("advance"), graph, first=np.array([1984, 64, 64, 1984]))
    np.testing.assert_array_equal(once.history, again.history)


def test_no_first_frontier_means_every_vertex(graph):
    every = shoal.run(Walk("advance"), graph, first=range(graph.num_vertices))
    none = shoal.run(Walk("advance"), graph, first=None)
    np.testing.assert_array_equal(every.history, none.history)


def test_an_empty_first_frontier_ends_at_once(graph):
    result = shoal.run(Walk("advance"), graph, first=[])
    assert result.stats.num_supersteps == 0
    assert not result.history.any()


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_max_supersteps(graph, limit):
    result = shoal.run(Walk("advance", max_supersteps=limit), graph, first=FIRST)
    assert result.stats.num_supersteps == limit
    assert result.history.max(initial=0) < 1 << limit


def test_more_joins_than_declared_are_an_error():
    """On a cycle every vertex joins again and again; there is room for one frontier membership of each."""
    ring = cycle_graph(50, directed=True)
    program = Walk("advance", max_supersteps=10**6, joins=1)
    for _ in range(2):
        assert_refused(lambda: shoal.run(program, ring, first=range(50)), "Walk", "joins=1", error=ProgramError)


class Twice(Program):
    @rule
    def always(src, dst):
        return True

    def step(self, frontier):
        return advance(frontier, self.always, unique=True)


def test_an_author_who_says_unique_must_be_right():
    """Twelve edges to one vertex, and the rule accepts each of them."""
    many = from_pairs([(0, 1)] * 12, directed=True)
    assert_refused(lambda: shoal.run(Twice(), many), "Twice", "unique", error=ProgramError)


class Claim(Program):
    """Hops; ``offers`` counts the calls of the rule at every vertex."""

    level = Vertex("int64", fill=-1)
    offers = Vertex("int64")

    def __init__(self, early_exit):
        self.early_exit = early_exit

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def is_free(vertex, level):
        return level[vertex] < 0

    @rule
    def offer(src, dst, superstep, level, offers):
        atomic.add(offers, dst, 1)
        return atomic.compare_exchange(level, dst, -1, superstep + 1)

    def step(self, frontier):
        options = {"direction": "pull", "early_exit": self.early_exit, "unique": True}
        return advance(frontier, self.offer, where=self.is_free, **options)


def offers_of(graph, level):
    """Edges from one level to the next, by destination."""
    src, dst = edges_of(graph)
    is_offered = (level[src] >= 0) & (level[dst] == level[src] + 1)
    return np.bincount(dst[is_offered], minlength=graph.num_vertices)


@pytest.mark.parametrize("num_threads", THREADS)
def test_a_pull_leaves_early(graph, num_threads):
    result = shoal.run(Claim(True), on_threads(graph, num_threads), source=64)
    level = levels_of(graph, 64)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.offers, level > 0)


@pytest.mark.parametrize("num_threads", THREADS)
def test_a_pull_without_early_exit_asks_every_source(graph, num_threads):
    result = shoal.run(Claim(False), on_threads(graph, num_threads), source=64)
    level = levels_of(graph, 64)
    np.testing.assert_array_equal(result.level, level)
    np.testing.assert_array_equal(result.offers, offers_of(graph, level))


def test_the_trace_tells_the_direction(graph):
    pulled = shoal.run(Claim(True), graph, source=64).stats.to_dict()["supersteps"]
    pushed = shoal.run(Walk("advance"), graph, first=FIRST).stats.to_dict()["supersteps"]
    assert {row["direction"][0] for row in pulled} == {"pull"}
    assert {row["direction"][0] for row in pushed} == {"push"}


def test_a_direction_is_refused_where_there_is_none(graph):
    """A strategy that a program cannot follow is an error, not a wish."""
    pulled, pushed = Walk("advance"), Claim(True)
    assert_refused(lambda: shoal.run(pulled, graph, first=[0], direction="pull"), "'pull'", "Walk", error=ArgumentError)
    assert_refused(lambda: shoal.run(pushed, graph, source=0, direction="push"), "'push'", "Claim", error=ArgumentError)
