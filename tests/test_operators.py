# SPDX-License-Identifier: Apache-2.0
"""Reduce, gather and parts of edges against NumPy; what a step may not do; names that fields may have."""

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import path_graph, random_graph
from placing import THREADS, edges_of, on_threads
from shoal import (
    Constant,
    Phase,
    Program,
    Scalar,
    Vertex,
    add,
    advance,
    atomic,
    compute,
    everything,
    gather,
    maximum,
    minimum,
    reduce,
    rule,
    swap,
    update,
)
from shoal import filter as keep_if
from shoal.errors import ProgramError, ShoalError
from shoal.operators import record


@pytest.fixture(scope="module")
def graph():
    return random_graph(3000, 12000, seed=6, directed=True, skew=1.5, weights="int32")


class Once(Program):
    """A program of one superstep."""

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


class FewEdges(Once):
    """Count edges at their destination: the first, those after, and an author's own values of some."""

    early = Vertex("int64")
    later = Vertex("int64")
    middle = Vertex("int64")
    edge_value = Constant("int64", is_array=True)

    def start(self, edge_value):
        self.edge_value = edge_value

    @rule
    def count_early(dst, early):
        atomic.add(early, dst, 1)

    @rule
    def count_later(dst, later):
        atomic.add(later, dst, 1)

    @rule
    def count_middle(dst, edge, middle, edge_value):
        atomic.add(middle, dst, edge_value[edge])

    def step(self, frontier):
        advance(everything, self.count_early, first_edges=2)
        advance(frontier, self.count_later, skip_edges=2)
        advance(everything, self.count_middle, skip_edges=1, first_edges=3)


@pytest.mark.parametrize("num_threads", THREADS)
def test_first_edges_and_skip_edges(graph, num_threads):
    values = np.arange(graph.num_edges) ** 2
    result = shoal.run(FewEdges(), on_threads(graph, num_threads), edge_value=values)
    src, dst = edges_of(graph)
    rank = np.arange(len(src)) - np.asarray(graph.indptr)[src]
    is_middle = (rank >= 1) & (rank < 4)
    count = graph.num_vertices
    np.testing.assert_array_equal(result.early, np.bincount(dst[rank < 2], minlength=count))
    np.testing.assert_array_equal(result.later, np.bincount(dst[rank >= 2], minlength=count))
    np.testing.assert_array_equal(result.middle, np.bincount(dst[is_middle], values[is_middle], count))


class Sums(Once):
    number = Vertex("float64")
    tag = Vertex("int64")
    sum_of_numbers = Scalar("float64")
    least = Scalar("float64", combine=minimum)
    most = Scalar("float64", combine=maximum)
    sum_of_some = Scalar("float64")
    sum_of_keys = Scalar("int64")
    least_key = Scalar("int64", combine=minimum)
    most_key = Scalar("int64", combine=maximum)
    least_of_none = Scalar("int32", combine=minimum)
    most_of_none = Scalar("float64", combine=maximum)
    sum_of_none = Scalar("int64", fill=7)
    is_any_negative = Scalar("int32", combine=maximum)
    doubled = Scalar("float64")

    def start(self, number, tag):
        self.number[:] = number
        self.tag[:] = tag

    @rule
    def three(vertex, number):
        return number[vertex], number[vertex], number[vertex]

    @rule
    def number_of(vertex, number):
        return number[vertex]

    @rule
    def three_keys(vertex, tag):
        return tag[vertex], tag[vertex], tag[vertex]

    @rule
    def key_number_key(vertex, number, tag):
        return tag[vertex], number[vertex], tag[vertex]

    @rule
    def is_negative(vertex, number):
        return number[vertex] < 0

    @rule
    def is_even(vertex):
        return vertex % 2 == 0

    @rule
    def is_third(vertex):
        return vertex % 3 == 0

    @rule
    def never(vertex):
        return False

    @rule
    def double(sum_of_numbers):
        return 2 * sum_of_numbers

    def step(self, frontier):
        reduce(everything, self.three, into=(self.sum_of_numbers, self.least, self.most))
        reduce(frontier, self.three_keys, into=[self.sum_of_keys, self.least_key, self.most_key])
        some = keep_if(keep_if(everything, self.is_even), self.is_third)
        reduce(some, self.number_of, into=self.sum_of_some)
        reduce(some, self.is_negative, into=self.is_any_negative)
        none = keep_if(some, self.never)
        reduce(none, self.key_number_key, into=(self.least_of_none, self.most_of_none, self.sum_of_none))
        update(self.doubled, self.double)


NUMBERS = np.random.default_rng(11).standard_normal(3000) * 10.0 ** np.random.default_rng(12).integers(-9, 9, 3000)
KEYS = np.random.default_rng(13).integers(2**54, 2**55, 3000) * 2 + 1  # odd, and beyond the reach of a double


@pytest.fixture(scope="module")
def sums(graph):
    return [shoal.run(Sums(), on_threads(graph, threads), number=NUMBERS, tag=KEYS) for threads in (1, 2, 5)]


def test_reduce_by_every_combiner(sums):
    for result in sums:
        assert result.sum_of_numbers == pytest.approx(NUMBERS.sum())
        assert (result.least, result.most) == (NUMBERS.min(), NUMBERS.max())
        assert result.sum_of_some == pytest.approx(NUMBERS[::6].sum())
        assert result.is_any_negative == 1
        assert result.doubled == 2 * result.sum_of_numbers


@pytest.mark.host_only("about the CPU's threads")
def test_a_reduction_does_not_depend_on_the_number_of_threads(sums):
    assert {result.stats.num_threads for result in sums} == {1, 2, 5}
    assert len({result.sum_of_numbers.tobytes() for result in sums}) == 1


def test_whole_numbers_are_reduced_exactly(sums):
    for result in sums:
        assert (result.least_key, result.most_key) == (KEYS.min(), KEYS.max())
        assert result.sum_of_keys == KEYS.sum()


def test_a_reduction_over_no_vertex_gives_what_changes_nothing(sums):
    for result in sums:
        assert result.sum_of_none == 0
        assert result.least_of_none == np.iinfo(np.int32).max
        assert result.most_of_none in (-np.inf, np.finfo(np.float64).min)


class Gathered(Once):
    incoming = Vertex("float64")
    least = Vertex("float64")
    most = Vertex("float64")
    part = Vertex("float64")
    least_key = Vertex("int64")
    all_weights = Scalar("float64")
    heaviest = Scalar("float64", combine=maximum)

    @rule
    def weight_of(weight):
        return weight

    @rule
    def product(src, dst, weight):
        return weight * (src - dst)

    @rule
    def store_incoming(vertex, value, incoming):
        incoming[vertex] = value
        return value, value

    @rule
    def store_least(vertex, value, least):
        least[vertex] = value

    @rule
    def store_most(vertex, value, most):
        most[vertex] = value

    @rule
    def store_part(vertex, value, part):
        part[vertex] = value

    @rule
    def is_odd(vertex):
        return vertex % 2 == 1

    @rule
    def large_key(src):
        return 2**60 + src

    @rule
    def store_key(vertex, value, least_key):
        least_key[vertex] = value

    def step(self, frontier):
        gather(everything, self.large_key, finish=self.store_key, combine=minimum, dtype="int64")
        gather(everything, self.weight_of, finish=self.store_incoming, into=(self.all_weights, self.heaviest))
        gather(frontier, self.product, finish=self.store_least, combine=minimum)
        gather(everything, self.product, finish=self.store_most, combine=maximum)
        gather(keep_if(everything, self.is_odd), self.product, finish=self.store_part, combine=add)


@pytest.fixture(scope="module", params=THREADS)
def gathered(request, graph):
    return shoal.run(Gathered(), on_threads(graph, request.param))


def test_gather_by_every_combiner(gathered, graph):
    src, dst = edges_of(graph)
    product = graph.weights * (src - dst).astype(np.float64)
    count = graph.num_vertices
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, dst, product)
    np.maximum.at(most, dst, product)
    incoming = np.bincount(dst, graph.weights, count)
    np.testing.assert_array_equal(gathered.least, least)
    np.testing.assert_array_equal(gathered.most, most)
    np.testing.assert_array_equal(gathered.incoming, incoming)
    np.testing.assert_array_equal(gathered.part, np.where(np.arange(count) % 2, np.bincount(dst, product, count), 0))
    assert gathered.all_weights == graph.weights.sum()
    assert gathered.heaviest == incoming.max()
    smallest = np.full(graph.num_vertices, np.iinfo(np.int64).max)
    np.minimum.at(smallest, dst, 2**60 + src)
    np.testing.assert_array_equal(gathered.least_key, smallest)


class Crowded(Once):
    """Fields under names that also mean something in compiled loops."""

    visited = Vertex("int64")
    pending = Vertex("int64")
    first = Vertex("int64")
    load = Vertex("int64")
    np = Vertex("int64")
    total = Scalar("int64", fill=3)
    total_value = Vertex("int64")

    @rule
    def see(src, dst, visited, pending, first, load, np):
        atomic.add(visited, dst, 1)
        atomic.add(pending, dst, 2)
        atomic.add(first, dst, 3)
        atomic.add(load, dst, 4)
        atomic.add(np, dst, 5)

    @rule
    def count(vertex, visited, total, total_value):
        total_value[vertex] = visited[vertex] + total
        return 1

    def step(self, frontier):
        advance(everything, self.see)
        reduce(everything, self.count, into=self.total)


def test_a_field_may_have_any_name(graph):
    result = shoal.run(Crowded(), graph)
    _, dst = edges_of(graph)
    in_degree = np.bincount(dst, minlength=graph.num_vertices)
    for factor, name in enumerate(["visited", "pending", "first", "load", "np"], 1):
        np.testing.assert_array_equal(getattr(result, name), factor * in_degree, err_msg=name)
    np.testing.assert_array_equal(result.total_value, in_degree + 3)
    assert result.total == graph.num_vertices


class Buffers(Once):
    """Fields named as the parameters of every loop."""

    queue = Vertex("int64")
    levels = Vertex("int64", fill=3)
    thread = Scalar("int64", fill=2)
    weights = Constant("float64", is_array=True)

    def start(self):
        self.weights = [0.5]

    @rule
    def merge(vertex, queue, levels, thread, weights):
        queue[vertex] = levels[vertex] * thread + 2 * weights[0]

    def step(self, frontier):
        compute(frontier, self.merge)


def test_a_field_may_be_named_as_a_buffer(graph):
    assert set(shoal.run(Buffers(), graph).queue) == {7}


class Proposals(Once):
    """One step of hops from everywhere: sources not yet reached propose a number that does not fit."""

    pushed = Vertex("int32", fill=2**31 - 1)
    pulled = Vertex("int32", fill=2**31 - 1)

    def start(self, source):
        self.pushed[source] = self.pulled[source] = 0

    @rule
    def push(src, dst, pushed):
        return atomic.min(pushed, dst, pushed[src] + 1)

    @rule
    def pull(src, dst, pulled):
        return atomic.min(pulled, dst, pulled[src] + 1)

    @rule
    def anywhere(vertex):
        return True

    def step(self, frontier):
        advance(everything, self.push)
        advance(everything, self.pull, where=self.anywhere, direction="pull")


def test_a_proposal_too_large_for_a_field_is_not_taken():
    """A rule means the same from both sides: with atomics in a push, without in a pull."""
    result = shoal.run(Proposals(), path_graph(6), source=5)
    assert result.pulled[4:].tolist() == [1, 0]
    assert result.pushed[4:].tolist() == [1, 0]


@rule
def on_edge(src, dst):
    return True


@rule
def on_numbered_edge(src, dst, edge):
    return edge > 0


@rule
def on_vertex(vertex):
    return True


@rule
def half(vertex):
    return 0.5


@rule
def half_an_edge(src):
    return 0.5


@rule
def all_over():
    return True


SHARED = Scalar("int64")
KEPT = {}  # frontiers of a step, for another step to take


def set_limit(program):
    program.limit = 1


def run_step(step):
    """Run a program of one step and a few fields."""
    members = {"level": Vertex("int64"), "total": Scalar("float64"), "count": Scalar("int64"), "step": step}
    members |= {"limit": Constant("int64"), "left": SHARED, "right": SHARED, "start": set_limit}
    return shoal.run(type("Small", (Once,), members)(), path_graph(3))


def keep_frontiers(frontier):
    KEPT["frontier"], KEPT["output"] = frontier, keep_if(frontier, on_vertex)
    return KEPT["output"]


STEPS = {
    "nothing recorded": (lambda self, frontier: None, ["Small", "no operator"]),
    "junk returned": (lambda self, frontier: compute(frontier, on_vertex) or 42, ["Small", "42", "frontier"]),
    "no rule": (lambda self, frontier: advance(frontier, len), ["advance", "rule", "@rule"]),
    "no frontier": (lambda self, frontier: advance([1, 2], on_edge), ["advance", "[1, 2]", "frontier"]),
    "a frontier from elsewhere": (
        lambda self, frontier: compute(type(frontier)("output"), on_vertex),
        ["compute", "frontier"],
    ),
    "unknown direction": (lambda self, frontier: advance(frontier, on_edge, direction="up"), ["direction", "'up'"]),
    "pull without where": (lambda self, frontier: advance(frontier, on_edge, direction="pull"), ["pull", "where"]),
    "auto without where": (lambda self, frontier: advance(frontier, on_edge, direction="auto"), ["where"]),
    "where of an edge": (lambda self, frontier: advance(frontier, on_edge, where=on_edge), ["on_edge", "'src'"]),
    "negative first_edges": (lambda self, frontier: advance(frontier, on_edge, first_edges=-1), ["first_edges", "-1"]),
    "fractional skip_edges": (lambda self, frontier: advance(frontier, on_edge, skip_edges=1.5), ["skip_edges"]),
    "part of the edges in a pull": (
        lambda self, frontier: advance(frontier, on_edge, where=on_vertex, direction="pull", first_edges=2),
        ["first_edges", "direction='push'"],
    ),
    "part of the edges by priority": (
        lambda self, frontier: advance(frontier, on_edge, priority=on_vertex, skip_edges=2),
        ["skip_edges", "priority"],
    ),
    "edge numbers in a pull": (
        lambda self, frontier: advance(frontier, on_numbered_edge, where=on_vertex, direction="auto"),
        ["on_numbered_edge", "'edge'", "pull"],
    ),
    "edge numbers in a gather": (
        lambda self, frontier: gather(frontier, on_numbered_edge, finish=on_vertex),
        ["on_numbered_edge", "'edge'", "gather"],
    ),
    "pull by priority": (
        lambda self, frontier: advance(frontier, on_edge, where=on_vertex, priority=on_vertex, direction="pull"),
        ["direction", "priority"],
    ),
    "advance after advance": (
        lambda self, frontier: advance(advance(frontier, on_edge), on_edge),
        ["on_edge", "filter"],
    ),
    "edge rule in a filter": (lambda self, frontier: keep_if(frontier, on_edge), ["on_edge", "'src'", "filter"]),
    "vertex rule in an advance": (lambda self, frontier: advance(frontier, on_vertex), ["on_vertex", "'vertex'"]),
    "vertex rule in an update": (lambda self, frontier: update(self.total, on_vertex), ["on_vertex", "'vertex'"]),
    "into no field": (
        lambda self, frontier: reduce(frontier, on_vertex, into=Scalar("float64", fill=3)),
        ["Scalar", "not a field", "Small"],
    ),
    "into a vertex field": (lambda self, frontier: reduce(frontier, on_vertex, into=self.level), ["level", "Scalar"]),
    "update of a vertex field": (lambda self, frontier: update(self.level, all_over), ["level", "Scalar"]),
    "swap of unlike fields": (lambda self, frontier: swap(self.level, self.total), ["level", "total", "types"]),
    "swap of a scalar and a vertex field": (
        lambda self, frontier: swap(self.level, self.count),
        ["level", "count", "types"],
    ),
    "swap of a constant": (lambda self, frontier: swap(self.limit, self.limit), ["limit", "Constant"]),
    "update of two": (lambda self, frontier: update((self.total, self.count), all_over), ["update", "one Scalar"]),
    "into a constant": (lambda self, frontier: reduce(frontier, on_vertex, into=self.limit), ["limit", "Constant"]),
    "into nothing": (lambda self, frontier: reduce(frontier, on_vertex, into=()), ["reduce", "into=()"]),
    "into one twice": (
        lambda self, frontier: reduce(frontier, on_vertex, into=(self.total, self.total)),
        ["reduce", "total", "twice"],
    ),
    "into one of two names": (lambda self, frontier: reduce(frontier, on_vertex, into=self.left), ["left and right"]),
    "a frontier of another step": (lambda self, frontier: compute(KEPT["frontier"], on_vertex), ["compute", "another"]),
    "another step's frontier returned": (
        lambda self, frontier: compute(frontier, on_vertex) or KEPT["output"],
        ["Small", "another"],
    ),
    "swap of no fields": (lambda self, frontier: swap(1, 2), ["not a field"]),
    "a fraction into a whole number": (
        lambda self, frontier: reduce(frontier, half, into=self.count),
        ["half", "whole number", "float64"],
    ),
    "a fraction gathered as a whole number": (
        lambda self, frontier: gather(frontier, half_an_edge, finish=on_vertex, dtype="int64"),
        ["half_an_edge", "whole number", "float64"],
    ),
    "unknown type of a gather": (
        lambda self, frontier: gather(frontier, on_edge, finish=on_vertex, dtype="float16"),
        ["dtype", "'float16'", "float64", "int64"],
    ),
    "a frontier in buckets read twice": (
        lambda self, frontier: compute(frontier, on_vertex) or advance(frontier, on_edge, priority=on_vertex),
        ["on_vertex", "priority", "compute"],
    ),
    "buckets not returned": (
        lambda self, frontier: advance(frontier, on_edge, priority=on_vertex) and None,
        ["on_vertex", "priority", "returns"],
    ),
    "every vertex by priority": (
        lambda self, frontier: advance(everything, on_edge, priority=on_vertex),
        ["on_vertex", "priority", "frontier"],
    ),
    "buckets beside a push": (
        lambda self, frontier: (
            compute(advance(everything, on_edge), on_vertex) or advance(frontier, on_edge, priority=on_vertex)
        ),
        ["on_vertex", "priority", "alone"],
    ),
    "unknown combiner": (
        lambda self, frontier: gather(frontier, on_edge, finish=on_vertex, combine="add"),
        ["combine", "'add'"],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_refused(name):
    record(Once(), keep_frontiers)
    step, words = STEPS[name]
    assert_refused(lambda: run_step(step), *words, error=ShoalError)


OUTSIDE = {
    "advance": lambda: advance(everything, on_edge),
    "gather": lambda: gather(everything, on_edge, finish=on_vertex),
    "filter": lambda: keep_if(everything, on_vertex),
    "compute": lambda: compute(everything, on_vertex),
    "reduce": lambda: reduce(everything, on_vertex, into=Sums.sum_of_some),
    "update": lambda: update(Sums.doubled, all_over),
    "swap": lambda: swap(Sums.least, Sums.most),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_operators_are_for_steps_only(name):
    assert_refused(OUTSIDE[name], f"{name}()", "step", error=ProgramError)


def test_a_failed_step_leaves_no_recording_behind():
    with pytest.raises(ZeroDivisionError):
        run_step(lambda self, frontier: 1 // 0)
    assert_refused(OUTSIDE["compute"], "compute()", error=ProgramError)
