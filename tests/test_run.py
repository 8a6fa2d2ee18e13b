# SPDX-License-Identifier: Apache-2.0
"""shoal.run: its arguments, what start() may do, what comes back, and many calls at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import from_pairs, path_graph, random_graph
from placing import levels_of, on_threads
from shoal import Constant, Phase, Program, Scalar, Vertex, advance, atomic, compute, minimum, reduce, rule
from shoal.algorithms.bfs import BFS
from shoal.errors import ArgumentError, ProgramError

FAR = 2**31 - 1


class Hops(Program):
    level = Vertex("int32", fill=FAR, combine=minimum)

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def discover(src, dst, level):
        return atomic.min(level, dst, level[src] + 1)

    def step(self, frontier):
        return advance(frontier, self.discover)


class Totals(Program):
    """Sum ``weight_of`` over the first frontier, and say who was in it."""

    seen = Vertex("int64")
    own = Vertex("vertex", fill=-1)
    amount = Scalar("float64", fill=0.5)
    extra = Scalar("float64")
    factor = Constant("int32")
    weight_of = Constant("int32", is_array=True)

    def __init__(self, begin):
        self.begin = begin

    def start(self, factor=2, weight_of=(1,) * 6):
        self.factor = factor
        self.weight_of = weight_of
        return self.begin(self)

    @rule
    def see(vertex, seen, own, amount):
        seen[vertex] += 1 + 10 * amount
        own[vertex] = vertex

    @rule
    def weigh(vertex, factor, weight_of):
        return factor * weight_of[vertex]

    def step(self, frontier):
        compute(frontier, self.see)
        reduce(frontier, self.weigh, into=self.extra)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


SIX = path_graph(6)


def seen_by(begin, **options):
    """Vertices in the first frontier, where ``start`` returns ``begin(self)``."""
    return np.flatnonzero(shoal.run(Totals(begin), SIX, **options).seen).tolist()


# Arguments


def test_the_documented_program():
    result = shoal.run(Hops(), SIX, source=2)
    assert result.level.tolist() == [2, 1, 0, 1, 2, 3]
    assert result.level.dtype == np.int32


def test_options_are_split_between_the_run_and_the_program():
    result = shoal.run(Hops(), SIX, source=2, devices="cpu:1x1", stats="totals", deterministic=True)
    config = result.stats.to_dict()["config"]
    assert (config["devices"], config["stats"], config["deterministic"]) == ("cpu:1x1", "totals", True)


WRONG = {
    "a class": (lambda: shoal.run(Hops, SIX, source=0), ["program", "object"]),
    "no program": (lambda: shoal.run(None, SIX), ["program=None", "Program"]),
    "no graph": (lambda: shoal.run(Hops(), [[0, 1]], source=0), ["graph", "shoal.Graph"]),
    "no source": (lambda: shoal.run(Hops(), SIX), ["Hops", "source"]),
    "an unknown option": (lambda: shoal.run(Hops(), SIX, source=0, sauce=1), ["Hops", "sauce"]),
    "an option of a program without start": (lambda: shoal.run(Program(), SIX, source=0), ["Program", "step"]),
    "unknown devices": (lambda: shoal.run(Hops(), SIX, source=0, devices="tpu"), ["devices", "'tpu'", "cpu"]),
    "no threads": (lambda: shoal.run(Hops(), SIX, source=0, devices="cpu:1x0"), ["devices", "0 threads"]),
    "unknown stats": (lambda: shoal.run(Hops(), SIX, source=0, stats="ful"), ["stats", "'ful'", "full"]),
    "negative do_a": (lambda: shoal.run(Hops(), SIX, source=0, do_a=-1), ["do_a", "-1"]),
    "a vertex too far": (lambda: seen_by(lambda self: [6]), ["6", "0 to 5"]),
    "a negative vertex": (lambda: seen_by(lambda self: [2, -1]), ["-1", "0 to 5"]),
    "half a vertex": (lambda: seen_by(lambda self: [0, 1.5]), ["start", "1.5"]),
    "flags for vertices": (lambda: seen_by(lambda self: np.array([True] * 6)), ["start", "bool"]),
    "a word for vertices": (lambda: seen_by(lambda self: "all"), ["start", "'all'"]),
    "one number for vertices": (lambda: seen_by(lambda self: 3), ["start", "3"]),
    "a table of vertices": (lambda: seen_by(lambda self: [[0, 1], [2, 3]]), ["start"]),
}


def test_a_placed_graph_runs_where_it_lies():
    placed = shoal.place(SIX, devices="cpu:1x1")
    assert shoal.run(Hops(), placed, source=0).level[5] == 5
    refused = lambda: shoal.run(Hops(), placed, source=0, devices="cpu")  # noqa: E731
    assert_refused(refused, "'cpu'", "'cpu:1x1'", error=ArgumentError)


# What start() may do


def test_values_set_in_start_are_the_first_values():
    def begin(self):
        self.amount[0] = 2
        self.seen[3] = 100

    assert shoal.run(Totals(begin), SIX).seen.tolist() == [21, 21, 21, 121, 21, 21]


def _replace_a_vertex_field(self):
    self.seen = np.arange(6)


def _replace_a_scalar(self):
    self.amount = 2.0


def test_start_does_not_change_the_program():
    program = Totals(lambda self: [1])
    shoal.run(program, SIX)
    assert isinstance(program.seen, Vertex)
    assert set(vars(program)) == {"begin"}


# Constants


def everyone(self):
    return None


CONSTANTS = {
    "a fraction": ({"factor": 2.5}, ["factor", "2.5", "int32"]),
    "too large": ({"factor": 2**40}, ["factor", str(2**40), "int32"]),
    "a word": ({"factor": "two"}, ["factor", "'two'"]),
    "nothing": ({"factor": None}, ["factor", "None"]),
    "an array for a number": ({"factor": [1, 2]}, ["factor", "number"]),
    "fractions in an array": ({"weight_of": [0.5] * 6}, ["weight_of", "int32"]),
    "a table for an array": ({"weight_of": [[1, 2, 3], [4, 5, 6]]}, ["weight_of", "dimension"]),
    "a number for an array": ({"weight_of": 7}, ["weight_of", "array"]),
}


class Forgetful(Totals):
    def start(self):
        self.factor = 1


def test_a_constant_that_start_does_not_set():
    assert_refused(lambda: shoal.run(Forgetful(everyone), SIX), "Forgetful", "weight_of", error=ProgramError)


# Fields

FIELDS = {
    "unknown type": ({"level": Vertex("int33")}, ["level", "int33"]),
    "type of no number": ({"level": Vertex("str")}, ["level", "str"]),
    "fill too large": ({"level": Vertex("int8", fill=1000)}, ["level", "1000", "int8"]),
    "fill of another kind": ({"level": Vertex("int32", fill="x")}, ["level", "'x'"]),
    "no width": ({"level": Vertex("int32", width=0)}, ["level", "width"]),
    "reserved": ({"src": Vertex("int32")}, ["src", "reserved"]),
    "taken by the result": ({"stats": Vertex("int32")}, ["stats"]),
}


def test_a_program_needs_a_step():
    class Idle(Program):
        level = Vertex("int32")

    assert_refused(lambda: shoal.run(Idle(), SIX), "Idle", "step", error=ProgramError)


# Results


def test_a_result_has_fields_scalars_and_statistics():
    result = shoal.run(Totals(lambda self: [2, 3]), SIX, factor=3, weight_of=[1, 2, 3, 4, 5, 6])
    assert result.seen.tolist() == [0, 0, 6, 6, 0, 0]
    assert result.own.dtype == SIX.vertex_dtype
    assert (result.amount, result.extra) == (0.5, 21)
    assert {"seen", "own", "amount", "extra"} <= set(vars(result))
    assert "seen" in repr(result)


def test_every_run_has_arrays_of_its_own():
    first = shoal.run(Hops(), SIX, source=0)
    shoal.run(Hops(), SIX, source=5)
    assert first.level.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_built_in_program_runs_as_any_other():
    result = shoal.run(BFS(), SIX, source=1)
    assert result.distance.tolist() == [1, 0, 1, 2, 3, 4]


def test_statistics():
    totals = assert_counted(shoal.run(Hops(), SIX, source=0).stats)
    assert totals["algorithm"] == "Hops"
    assert totals["num_supersteps"] == 6
    assert totals["edges_visited"] == SIX.num_edges == sum(row["edges_visited"][0] for row in totals["supersteps"])
    assert [row["frontier_size"] for row in totals["supersteps"]] == [[1]] * 6
    assert totals["peak_memory_bytes"] >= 6 * 4
    assert sum(row["seconds"][0] for row in totals["supersteps"]) <= totals["seconds"]


def test_statistics_without_supersteps():
    totals = shoal.run(Hops(), SIX, source=0, stats="totals").stats.to_dict()
    assert "supersteps" not in totals
    assert (totals["num_supersteps"], totals["edges_visited"]) == (6, SIX.num_edges)


def test_graphs_without_edges_or_vertices():
    assert shoal.run(Hops(), from_pairs([], num_vertices=3), source=1).level.tolist() == [FAR, 0, FAR]
    empty = shoal.run(Totals(everyone), from_pairs([], num_vertices=0))
    assert empty.seen.shape == (0,)
    assert empty.stats.num_supersteps == 0


def test_wide_ids():
    wide = path_graph(6, vertex_dtype="int64", edge_dtype="int64")
    assert shoal.run(Hops(), wide, source=2).level.tolist() == [2, 1, 0, 1, 2, 3]


# One class, many objects


class Limited(Hops):
    def __init__(self, limit):
        self.limit = limit

    def phases(self):
        return [Phase(self.step, max_supersteps=self.limit[0])]


def test_objects_of_one_class_have_plans_of_their_own():
    limit = [2]
    program = Limited(limit)
    assert shoal.run(program, SIX, source=0).stats.num_supersteps == 2
    limit[0] = 4
    assert shoal.run(program, SIX, source=0).stats.num_supersteps == 4
    assert shoal.run(Limited((3,)), SIX, source=0).stats.num_supersteps == 3


# Many calls at once


@pytest.fixture(scope="module")
def larger():
    return random_graph(2000, 12000, seed=3)


def hops_of(graph, source):
    level = levels_of(graph, source)
    return np.where(level < 0, FAR, level)


def test_eight_callers_on_one_graph(larger):
    """Each has buffers of its own, also when every run has two threads."""
    placed = on_threads(larger, 2)

    def check(source):
        np.testing.assert_array_equal(shoal.run(Hops(), placed, source=source).level, hops_of(larger, source))
        return shoal.bfs(placed, source).distance

    with ThreadPoolExecutor(8) as pool:
        distances = list(pool.map(check, range(40)))
    for source, distance in enumerate(distances):
        np.testing.assert_array_equal(distance, oracles.bfs_distance(larger, source))
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("shoal")]


class Unheard(Hops):
    """Compiled by nobody before."""

    mark = Vertex("uint16")

    @rule
    def discover(src, dst, level, mark):
        mark[dst] = 3
        return atomic.min(level, dst, level[src] + 1)


def test_a_run_while_another_thread_compiles(larger):
    with ThreadPoolExecutor(3) as pool:
        compiling = [pool.submit(shoal.run, Unheard(), larger, source=0) for _ in range(2)]
        while not all(future.done() for future in compiling):
            np.testing.assert_array_equal(shoal.run(Hops(), larger, source=7).level, hops_of(larger, 7))
    for future in compiling:
        np.testing.assert_array_equal(future.result().level, hops_of(larger, 0))
