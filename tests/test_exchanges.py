# SPDX-License-Identifier: Apache-2.0
"""What devices tell one another is found from what rules touch: by program, and what is refused."""

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import random_graph
from shoal import (
    Phase,
    Program,
    Scalar,
    Vertex,
    add,
    advance,
    atomic,
    compute,
    everything,
    filter,
    first,
    gather,
    minimum,
    rule,
    swap,
    update,
)
from shoal.algorithms.betweenness import Betweenness
from shoal.algorithms.bfs import BFS, BatchBFS
from shoal.algorithms.components import Components
from shoal.algorithms.pagerank import PageRank
from shoal.algorithms.sssp import SSSP
from shoal.exchanges import Sharing
from shoal.operators import force_direction, record

pytestmark = pytest.mark.host_only("what devices tell one another is found before anything is run")

GRAPH = random_graph(60, 200, seed=1)


def sharing_of(program, phase=0, direction="auto"):
    chosen = program.phases()[phase]
    recording = record(program, chosen.step)
    force_direction(recording, direction)
    return Sharing(recording, chosen)


def exchanges_of(sharing):
    """Kinds and fields, operator by operator."""
    return [
        [(found.kind, found.fields) for found in sharing.exchanges(number)] for number in range(len(sharing.operators))
    ]


# The programs that come with shoal


def test_bfs():
    sharing = sharing_of(BFS())
    assert exchanges_of(sharing) == [[("collect", ("distance", "parent"))]]
    assert sharing.resets(0) == set()
    assert sharing.announced(0) == ()  # a pull asks only whether a source is in the frontier
    assert sharing.mirrored_at_begin() == ("parent",)
    assert sharing.reaches_all(0)
    assert sharing.pulls_from_frontier
    assert not sharing_of(BFS(), direction="push").pulls_from_frontier
    assert sharing.reason_for_all() is None


def test_bfs_with_targets_needs_all_vertices():
    sharing = sharing_of(BFS(has_targets=True))
    assert sharing.read_in_serial == {"parent"}
    assert sharing.reason_for_all() == "BFS.step: a rule that runs once a superstep looks at parent, at any vertex"


def test_batch_bfs():
    sharing = sharing_of(BatchBFS(4))
    settled, advanced = exchanges_of(sharing)
    assert settled == [("mirror", ("seen",))]
    assert advanced == [("collect", ("found", "distance", "parent"))]
    assert sharing.resets(1) == {"found"}  # settle empties it at its owner
    assert sharing.announced(1) == ("visit",)
    assert sharing.reason_for_all() is None


def test_sssp():
    sharing = sharing_of(SSSP(np.dtype("int32")))
    assert exchanges_of(sharing)[0] == [("collect", ("distance",))]
    assert sharing.resets(0) == set()
    assert sharing.reason_for_all() is None
    parents = sharing_of(SSSP(np.dtype("int32"), parents="any"), phase=1)
    assert parents.mirrored_at_begin() == ("distance",)
    assert [kind for found in exchanges_of(parents) for kind, _ in found] == []


def test_components():
    for number in (0, 1):
        sharing = sharing_of(Components(can_skip=True), phase=number)
        assert sharing.replicated == sharing.whole_fields == {"label"}
        assert sharing.reason_for_all().startswith("Components.")
        assert sharing.reason_for_all().endswith("a rule looks at label of vertices that are no neighbours")
        assert {kind for found in exchanges_of(sharing) for kind, _ in found} == {"replicate"}
    assert sharing_of(Components(can_skip=True)).runs_on_copies(0)  # everybody can tell everybody's own id


def test_betweenness():
    forward, backward = (sharing_of(Betweenness(4), phase=number) for number in (0, 1))
    assert forward.collected(2) == ("found", "paths")
    assert forward.resets(2) == {"found", "paths"}
    assert forward.announced(2) == ("visit", "paths")
    assert not forward.reaches_all(2)
    assert exchanges_of(backward)[1] == []  # its push writes at src
    assert ("mirror", ("level_mask",)) in exchanges_of(backward)[0]  # it becomes deeper_mask
    assert ("mirror", ("share",)) in exchanges_of(backward)[2]


def test_pagerank():
    sharing = sharing_of(PageRank("float64", 10, is_weighted=False, is_personal=False))
    assert exchanges_of(sharing)[0] == [("mirror", ("next_share",))]  # it becomes share
    assert sharing.exchanges(0)[0].over is everything
    assert sharing.mirrored_at_begin() == ("share",)
    assert sharing.reason_for_all() is None


# Programs made up for a question


class Base(Program):
    least = Vertex("int64", fill=1000, combine=minimum)
    count = Vertex("int64", combine=add)
    plain = Vertex("int64")
    result = Vertex("float64")
    total = Scalar("int64")

    @rule
    def lower(src, dst, least):
        return atomic.min(least, dst, src)

    @rule
    def add_one(dst, count):
        atomic.add(count, dst, 1)
        return True

    @rule
    def least_of(src, least):
        return least[src]

    @rule
    def count_of(src, count):
        return count[src]

    @rule
    def plain_of(src, plain):
        return plain[src]

    @rule
    def keep(vertex, value, result):
        result[vertex] += value

    @rule
    def note(vertex, count, plain):
        plain[vertex] = count[vertex]

    @rule
    def set_back(vertex, count):
        count[vertex] = 1

    @rule
    def yes(vertex):
        return True

    def start(self):
        self.count[:] = 5  # as an owner has it: copies begin with nothing to send
        self.plain[:] = np.arange(len(self.plain))

    def phases(self):
        return [Phase(self.step, max_supersteps=3)]


class Adding(Base):
    def step(self, frontier):
        advance(everything, self.add_one)


class AddingAnew(Base):
    def step(self, frontier):
        advance(everything, self.add_one)
        compute(everything, self.note)
        compute(everything, self.set_back)


class LowerThenGather(Base):
    """Copies of what a push wrote are read by another rule."""

    def step(self, frontier):
        advance(everything, self.lower)
        gather(everything, self.least_of, finish=self.keep)


class AddThenGather(Base):
    """A sum that is read across edges, by way of a second field."""

    def step(self, frontier):
        advance(everything, self.add_one)
        compute(everything, self.note)
        gather(everything, self.plain_of, finish=self.keep)


class AddInOrder(Base):
    """An advance's output, filtered by a sum."""

    @rule
    def is_odd(vertex, count):
        return count[vertex] % 2 == 1

    def step(self, frontier):
        return filter(advance(frontier, self.add_one), self.is_odd)


RUNNING = {
    Adding: [[("collect", ("count",))]],
    AddingAnew: [[("collect", ("count",))], [], []],
    LowerThenGather: [[("collect", ("least",)), ("mirror", ("least",))], []],
    AddThenGather: [[("collect", ("count",))], [("mirror", ("plain",))], []],
    AddInOrder: [[("collect", ("count",))], []],
}


@pytest.mark.parametrize("program", RUNNING, ids=lambda program: program.__name__)
def test_programs_that_run(program):
    assert exchanges_of(sharing_of(program())) == RUNNING[program]


@pytest.mark.parametrize("communication", ["selective", "broadcast", "butterfly", "ring"])
@pytest.mark.parametrize("program", RUNNING, ids=lambda program: program.__name__)
def test_they_give_what_one_device_gives(program, communication):
    found = shoal.run(program(), GRAPH, devices="cpu:3", communication=communication)
    expected = shoal.run(program(), GRAPH)
    for name in ("least", "count", "plain", "result"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name


@pytest.mark.parametrize("communication", ["selective", "broadcast"])
@pytest.mark.parametrize("num_devices", [2, 3])
def test_sums_that_a_pull_was_told_are_not_sent_again(num_devices, communication):
    """A push behind a pull: the copies that it adds to hold what was announced."""
    graph = random_graph(90, 220, seed=2)
    sources = np.random.default_rng(0).choice(90, 4, replace=False)
    how = {"do_a": 1e-9, "do_b": 1e9}
    result = shoal.betweenness_centrality(graph, sources, devices=f"cpu:{num_devices}", communication=communication,
                                          **how)  # fmt: skip
    directions = [superstep["direction"][0] for superstep in result.stats.to_dict()["supersteps"]]
    assert directions[1:3] == ["pull", "push"]
    np.testing.assert_allclose(result.centrality, shoal.betweenness_centrality(graph, sources).centrality, rtol=1e-9)


# What is refused


@rule
def keep_larger(vertex, value, ruled):
    if value > ruled[vertex]:
        ruled[vertex] = value
        return True
    return False


class Refused(Base):
    ruled = Vertex("int64", combine=keep_larger)
    count_two = Vertex("int64", combine=add)

    @rule
    def write_at_src(src, dst, least):
        least[src] = dst
        return False

    @rule
    def write_plain(src, dst, plain):
        plain[dst] = src

    @rule
    def write_far(vertex, plain):
        plain[plain[vertex]] = vertex

    @rule
    def last_one(dst, count):
        return atomic.add(count, dst, -1) == 1

    @rule
    def raise_ruled(src, dst, ruled):
        return atomic.max(ruled, dst, src)

    @rule
    def empty_ruled(vertex, ruled):
        ruled[vertex] = 0

    @rule
    def look(count):
        return count[0]

    def __init__(self, step):
        self.step = lambda frontier: step(self)


REFUSED = {
    "a pull that writes at src": (
        lambda self: advance(everything, self.write_at_src, where=self.yes, direction="pull"),
        ["rule 'write_at_src' (", "least on several devices: a pull writes at src, which another device may own"],
    ),
    "no combiner": (
        lambda self: advance(everything, self.write_plain),
        ["rule 'write_plain' (", "plain on several devices: several devices write it; it needs combine="],
    ),
    "no combiner, anywhere": (
        lambda self: compute(everything, self.write_far),
        ["rule 'write_far' (", "plain on several devices: several devices write it; it needs combine="],
    ),
    "a sum that decides": (
        lambda self: advance(everything, self.last_one),
        ["rule 'last_one' (", "count on several devices: the rule reads it at dst", "decide in a filter"],
    ),
    "a sum that is read across edges": (
        lambda self: (advance(everything, self.add_one), gather(everything, self.count_of, finish=self.keep)),
        ["rule 'add_one' (", "count on several devices: another rule of the step reads it across an edge",
         "keep it in a second field, set by a compute"],
    ),
    "a rule that combines what is set back": (
        lambda self: (advance(everything, self.raise_ruled), compute(everything, self.empty_ruled)),
        ["rule 'raise_ruled' (", "ruled on several devices: another rule of the step sets it at its vertex",
         "needs combine=minimum, maximum, add, bit_or or first"],
    ),
    "a sum that changes places": (
        lambda self: (advance(everything, self.add_one), swap(self.count, self.count_two)),
        ["Refused.<lambda>: swap: count on several devices: a push writes it at dst", "copy it in a compute"],
    ),
    "a sum that is read once a superstep": (
        lambda self: (advance(everything, self.add_one), update(self.total, self.look)),
        ["count on several devices: a rule that runs once a superstep reads it, at any vertex",
         "needs combine=minimum, maximum, bit_or or first"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    def step(self):
        REFUSED[name][0](self)

    assert_refused(lambda: sharing_of(Refused(step)), *REFUSED[name][1], error=shoal.ProgramError)


def test_fields_that_change_places_are_one():
    class Swapping(Base):
        plain_two = Vertex("int64")

        @rule
        def fill_two(vertex, plain_two):
            plain_two[vertex] = 2

        def step(self, frontier):
            gather(everything, self.plain_of, finish=self.keep)
            compute(everything, self.fill_two)
            swap(self.plain, self.plain_two)

    assert exchanges_of(sharing_of(Swapping())) == [[], [("mirror", ("plain_two",))], []]


def test_values_of_copies_that_are_empty():
    class Filled(Base):
        parent = Vertex("int32", fill=-1, combine=first)

        def step(self, frontier):
            advance(everything, self.lower)

    sharing = sharing_of(Filled())
    assert sharing.identity("count", np.dtype("int64")) == 0
    assert sharing.identity("least", np.dtype("int64")) == 2**63 - 1
    assert sharing.identity("parent", np.dtype("int32")) == -1
