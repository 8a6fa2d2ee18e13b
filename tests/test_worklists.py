# SPDX-License-Identifier: Apache-2.0
"""Worklists with callbacks of their own: what travels, what stays, what goes on, on any number of devices."""

import time

import numpy as np
import pytest

import oracles
import shoal
from checks import assert_refused
from graphs import path_graph, random_graph
from shoal import Program, Vertex, advance, atomic, compute, maximum, minimum, rule
from shoal.dataflow import DUPLICATE, KEEP, PASS, REMOVE, DistributedWorklist
from shoal.dataflow.examples import FAR, Distances, filter_on_uneven_devices

pytestmark = [
    pytest.mark.host_only("runs without supersteps are for CPU devices"),
    pytest.mark.usefixtures("way_out", "no_thread_is_left"),
]

DEVICES = ["cpu:1", "cpu:2x1", "cpu:3x1", "cpu:4x1"]


def weighted_graph(seed=1, **options):
    return random_graph(300, 1200, seed=seed, weights="int32", **options)


def run(program, graph, devices="cpu:3x1", **options):
    return shoal.run(program, graph, execution="async", devices=devices, **options)


@pytest.mark.parametrize("partition", ["random", "segment"])
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("directed", [False, True])
def test_every_callback_written_out(directed, devices, partition):
    graph = weighted_graph(directed=directed)
    for source in (0, 7):
        found = run(Distances(), graph, devices, source=source, partition=partition).distance
        expected = oracles.sssp_distance(graph, source)
        np.testing.assert_array_equal(found, np.where(np.isinf(expected), FAR, expected))


class Loudest(DistributedWorklist):
    """The largest number that leads to each vertex; who goes where is said by one number."""

    heard = Vertex("int64", fill=-1, combine=maximum)

    def __init__(self, sent=None, received=None):
        if sent is not None:
            self.on_send = sent
        if received is not None:
            self.on_receive = received

    def start(self, numbers):
        self.heard[:] = numbers

    @rule
    def visit(src, dst, heard):
        return atomic.max(heard, dst, heard[src])


@rule
def to_all(vertex):
    return DUPLICATE


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("received", [None, to_all])
@pytest.mark.parametrize("sent", [None, to_all])
def test_what_goes_to_everybody_changes_no_result(sent, received, devices):
    graph = random_graph(300, 500, seed=2)
    numbers = np.random.default_rng(1).permutation(300)
    found = run(Loudest(sent, received), graph, devices, numbers=numbers)
    label = shoal.connected_components(graph).label
    expected = np.full(300, -1)
    np.maximum.at(expected, label, numbers)
    np.testing.assert_array_equal(found.heard, expected[label])


def test_a_duplicate_is_sent_round():
    graph = random_graph(300, 500, seed=2)
    numbers = np.arange(300)
    few, many = (run(Loudest(sent, to_all if sent else None), graph, numbers=numbers, partition="segment")
                 for sent in (None, to_all))  # fmt: skip
    assert many.stats.to_dict()["items_sent"] > few.stats.to_dict()["items_sent"] > 0


class Around(DistributedWorklist):
    """Hops on ways that end at some vertices: there nothing goes on."""

    hops = Vertex("int64", fill=FAR, combine=minimum)

    def start(self, source):
        self.hops[source] = 0
        return [source]

    @rule
    def visit(src, dst, hops):
        return atomic.min(hops, dst, hops[src] + 1)

    @rule
    def on_send(vertex, is_owned):
        if vertex % 5 == 3:
            return REMOVE
        return KEEP if is_owned else PASS


@pytest.mark.parametrize("devices", DEVICES)
def test_what_is_removed_is_not_visited(devices):
    graph = random_graph(300, 900, seed=3)
    src = np.repeat(np.arange(300), graph.degree)
    is_open = src % 5 != 3
    ways = shoal.Graph.from_edges(src[is_open], graph.indices[is_open], num_vertices=300, directed=True)
    expected = shoal.bfs(ways, 0).distance.astype(np.int64)
    found = run(Around(), graph, devices, source=0).hops
    others = np.arange(300) % 5 != 3  # of those at which a way ends nobody need know
    np.testing.assert_array_equal(found[others], np.where(expected < 0, FAR, expected)[others])


class Paths(DistributedWorklist):
    """Counts the ways from a source in a graph without cycles: what is packed is gone, so nothing counts twice."""

    fresh = Vertex("int64")
    passed = Vertex("int64")
    total = Vertex("int64")

    def start(self, source):
        self.fresh[source] = 1
        return [source]

    @rule
    def take(vertex, fresh, passed, total):
        passed[vertex] = fresh[vertex]
        total[vertex] += fresh[vertex]
        fresh[vertex] = 0

    @rule
    def visit(src, dst, fresh, passed):
        atomic.add(fresh, dst, passed[src])
        return True

    @rule
    def pack(vertex, fresh):
        value = fresh[vertex]
        fresh[vertex] = 0
        return value

    @rule
    def unpack(vertex, value, fresh):
        fresh[vertex] += value
        return True

    def step(self, frontier):
        compute(frontier, self.take)
        return advance(frontier, self.visit, callbacks=self.callbacks())


@pytest.mark.parametrize("communication", ["selective", "ring"])
@pytest.mark.parametrize("devices", DEVICES)
def test_sums_that_are_taken_when_they_are_packed(devices, communication):
    random = np.random.default_rng(4)
    src, dst = np.sort(random.integers(0, 100, (400, 2)), axis=1).T
    is_way = src < dst
    graph = shoal.Graph.from_edges(src[is_way], dst[is_way], num_vertices=100, directed=True)
    expected = np.zeros(100, np.int64)
    expected[0] = 1
    for vertex in range(100):
        np.add.at(expected, graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]], expected[vertex])
    found = run(Paths(), graph, devices, source=0, communication=communication)
    np.testing.assert_array_equal(found.total, expected)


class FailsWhenReceived(Loudest):
    """Fails when a number arrives."""

    @rule
    def on_receive(vertex, value, is_owned):
        assert value != 250
        return KEEP if is_owned else PASS


def test_a_callback_that_fails_ends_the_run():
    graph, numbers = path_graph(300), np.arange(300)
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(shoal.ProgramError, match=r"rule 'on_receive' .* failed.*: AssertionError"):
            run(FailsWhenReceived(), graph, numbers=numbers, partition="random")
    assert time.monotonic() - began < 1  # the first time with compiling


class Two(DistributedWorklist):
    """Writes two fields at destinations."""

    one = Vertex("int64", combine=minimum)
    other = Vertex("int64", combine=minimum)

    @rule
    def visit(src, dst, one, other):
        atomic.min(other, dst, other[src])
        return atomic.min(one, dst, one[src])

    @rule
    def on_send(vertex):
        return KEEP


class Wide(DistributedWorklist):
    """Writes a row at destinations."""

    rows = Vertex("int64", combine=maximum, width=2)

    @rule
    def visit(src, dst, rows):
        return atomic.max(rows, (dst, 0), rows[src, 0])

    @rule
    def on_send(vertex):
        return KEEP


class Unsaid(DistributedWorklist):
    """Says nothing of how values combine."""

    held = Vertex("int64", combine=shoal.first)

    @rule
    def visit(src, dst, held):
        return atomic.max(held, dst, held[src])

    @rule
    def on_send(vertex):
        return KEEP


class NoVisit(DistributedWorklist):
    """Has no rule over edges."""


@rule
def knows_the_source(src):
    return KEEP


class Unknown(Program):
    """A callback that there is not."""

    held = Vertex("int64", combine=maximum)

    @rule
    def visit(src, dst, held):
        return atomic.max(held, dst, held[src])

    def __init__(self, callbacks):
        self.given = callbacks

    def step(self, frontier):
        return advance(frontier, self.visit, callbacks=self.given)


@pytest.mark.parametrize(
    ("program", "options", "reason"),
    [
        (Two(), {}, "writes one, other"),
        (Wide(), {}, "rows has several"),
        (Unsaid(), {}, "how held combines"),
        (NoVisit(), {}, "NoVisit defines no visit"),
        (Unknown({"on_sent": to_all}), {}, "on_sent"),
        (Unknown({"on_send": 3}), {}, "on_send=3 is not a rule"),
        (Unknown({"on_send": knows_the_source}), {}, "'src' is not known"),
        (Loudest(to_all), {"communication": "selective"}, "communication='selective'"),
        (Loudest(to_all), {"duplication": "one-hop"}, "duplication='one-hop'"),
        (Loudest(to_all), {"execution": "bsp"}, "execution='bsp'"),
        (Loudest(to_all), {"execution": "auto"}, "execution='auto'"),
    ],
)
def test_what_callbacks_cannot_do_is_refused(program, options, reason):
    options = {"execution": "async", "devices": "cpu:2", **options}
    if isinstance(program, Loudest):
        options["numbers"] = range(5)
    assert_refused(lambda: shoal.run(program, path_graph(5), **options), reason)


def test_a_filter_on_devices_of_different_speed():
    found = filter_on_uneven_devices(num_segments=60, segment_seconds=0.001)
    np.testing.assert_array_equal(found.values, np.arange(0, 6000, 2))
    assert sum(found.segments.values()) == 60
    assert found.segments["cpu:0"] > found.segments["cpu:1"]
