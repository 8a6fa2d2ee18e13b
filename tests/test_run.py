# SPDX-License-Identifier: Apache-2.0
"""shoal.run: its arguments, where a run begins, what comes back, plans, and many calls at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oracles
import shoal
from checks import assert_counted, assert_refused
from graphs import from_pairs, path_graph, random_graph
from placing import levels_of, on_threads
from samples import FAR, SIX, Hops, Totals, everyone, seen_by
from shoal import Phase, Program, Vertex, atomic, rule
from shoal.algorithms.bfs import BFS
from shoal.errors import ArgumentError, ProgramError, ShoalError
from shoal.execution import plans

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
    "rows of vertices": (lambda: seen_by(lambda self: [[0], [2, 3]]), ["start", "[[0], [2, 3]]"]),
    "an array of one number": (lambda: seen_by(lambda self: np.array(3)), ["start", "3"]),
    "whole floats for vertices": (lambda: seen_by(lambda self: np.array([1.0, 2.0])), ["start", "float64"]),
    "words for vertices": (lambda: seen_by(lambda self: {"a", "b"}), ["start", "whole numbers"]),
    "a vertex beyond all types": (lambda: seen_by(lambda self: [2**70]), ["start", str(2**70)]),
    "the largest number for a vertex": (
        lambda: seen_by(lambda self: np.array([2**64 - 1], np.uint64)),
        [str(2**64 - 1)],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_is_refused(name):
    call, words = WRONG[name]
    assert_refused(call, *words, error=ShoalError)


def test_a_placed_graph_runs_where_it_lies():
    placed = shoal.place(SIX, devices="cpu:1x1")
    assert shoal.run(Hops(), placed, source=0).level[5] == 5
    refused = lambda: shoal.run(Hops(), placed, source=0, devices="cpu")  # noqa: E731
    assert_refused(refused, "'cpu'", "'cpu:1x1'", error=ArgumentError)


# The first frontier


@pytest.mark.parametrize(
    "first",
    [
        [1, 4],
        (4, 1),
        {1, 4},
        range(1, 5, 3),
        np.array([1, 4], np.uint8),
        np.array([4, 1], np.uint64),
        {1: "a", 4: "b"},
        [1, 4, 1],
    ],
)
def test_a_first_frontier_is_any_collection(first):
    assert seen_by(lambda self: first) == [1, 4]


def test_a_first_frontier_may_be_made_as_it_goes():
    assert seen_by(lambda self: (vertex for vertex in (1, 4))) == [1, 4]


def test_an_error_inside_start_is_the_authors():
    with pytest.raises(TypeError, match="unsupported operand") as caught:
        shoal.run(Totals(lambda self: [] - 1), SIX)
    assert not isinstance(caught.value, ShoalError)


def test_start_does_not_change_the_program():
    program = Totals(lambda self: [1])
    shoal.run(program, SIX)
    assert isinstance(program.seen, Vertex)
    assert set(vars(program)) == {"begin"}


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


def test_statistics_of_several_runs():
    runs = [shoal.run(Hops(), SIX, source=source).stats for source in range(3)]
    rows = [row for run in runs for row in run.to_dict()["supersteps"]]
    totals = assert_counted(runs[0].including(runs[1]).including(runs[2]))
    begins = [row.pop("begin_seconds")[0] for row in totals["supersteps"]]
    assert begins == sorted(begins)
    assert begins[0] == 0
    assert totals["supersteps"] == [{key: row[key] for key in row if key != "begin_seconds"} for row in rows]
    assert totals["supersteps_dropped"] == 0
    assert totals["edges_visited"] == 3 * SIX.num_edges


@pytest.mark.parametrize("stats", ["full", "totals"])
def test_a_long_run_keeps_as_many_rows_as_there_is_room_for(monkeypatch, stats):
    """The counts are exact, and what is left out is said."""
    monkeypatch.setattr(shoal.stats, "MAX_ROWS", 300)
    long = path_graph(1000)
    result = shoal.run(Hops(), long, source=0, stats=stats).stats
    result.including(shoal.run(Hops(), long, source=0, stats=stats).stats)
    totals = result.to_dict()
    assert (totals["num_supersteps"], totals["edges_visited"]) == (2000, 2 * long.num_edges)
    assert result.traces[0].num_rows == (300 if stats == "full" else 0)
    if stats == "full":
        assert (len(totals["supersteps"]), totals["supersteps_dropped"]) == (300, 1700)


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


class Wordy(Hops):
    def __init__(self, attribute):
        self.attribute = attribute

    def phases(self):
        return [Phase(self.step, max_supersteps=self.attribute)]


def test_equal_attributes_of_different_types_are_not_the_same():
    assert shoal.run(Wordy(1), SIX, source=0).stats.num_supersteps == 1
    assert_refused(lambda: shoal.run(Wordy(True), SIX, source=0), "True", error=ProgramError)
    assert_refused(lambda: shoal.run(Wordy(1.0), SIX, source=0), "1.0", error=ProgramError)


def test_plans_are_few_and_keep_no_data(monkeypatch):
    monkeypatch.setattr(plans, "_plans", {})
    monkeypatch.setattr(plans, "MAX_PLANS", 8)
    for limit in range(20):
        shoal.run(Wordy(limit), SIX, source=0)
    assert [key[1][1][1] for key in plans._plans] == list(range(12, 20))  # the latest
    for data in (np.zeros(9), frozenset(range(9)), "x" * 1000, (1,) * 1000, object()):
        program = Hops()
        program.data = data
        assert shoal.run(program, SIX, source=0).level[5] == 5
    assert len(plans._plans) == 8


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


def test_callers_with_ever_new_plans(monkeypatch):
    monkeypatch.setattr(plans, "_plans", {})
    monkeypatch.setattr(plans, "MAX_PLANS", 2)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda i: shoal.run(Wordy(i % 5), SIX, source=0).stats.num_supersteps, range(400)))
    assert counts == [i % 5 for i in range(400)]
    assert len(plans._plans) <= 2


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


#: Directions that the search of each algorithm can take; a pass that only looks at edges goes its own way.
ALLOWED = {
    "bfs": (lambda graph, **options: shoal.bfs(graph, 0, **options).distance, {"push", "pull"}),
    "sssp": (lambda graph, **options: shoal.sssp(graph, 0, **options).distance, {"push"}),
    "sssp without parents": (
        lambda graph, **options: shoal.sssp(graph, 0, parents=False, **options).distance,
        {"push"},
    ),
    "sssp to targets": (lambda graph, **options: shoal.sssp(graph, 0, targets=[19], **options).distance, {"push"}),
    "cc": (lambda graph, **options: shoal.connected_components(graph, **options).label, {"push"}),
    "bc": (lambda graph, **options: shoal.betweenness_centrality(graph, **options).centrality, {"push", "pull"}),
    "pagerank": (lambda graph, **options: shoal.pagerank(graph, **options).rank, {"push", "pull"}),
}


@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("name", ALLOWED)
def test_a_direction_is_taken_or_refused(name, direction):
    call, allowed = ALLOWED[name]
    graph = shoal.generate.grid(4, 5, weights=(1, 9))
    if direction in allowed:
        np.testing.assert_allclose(call(graph, direction=direction), call(graph), rtol=1e-12)
    else:
        assert_refused(
            lambda: call(graph, direction=direction), f"direction={direction!r}", "push", error=ArgumentError
        )
