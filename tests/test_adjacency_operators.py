# SPDX-License-Identifier: Apache-2.0
"""`intersect` and `tally` in programs of one's own, against plain Python; and the exchange of lists, counted."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

import shoal
from checks import assert_refused
from graphs import graphs, random_graph
from oracles import edge_arrays
from shoal import Phase, Program, Vertex, add, atomic, everything, filter, intersect, rule, tally
from shoal.algorithms.triangles import Triangles
from shoal.backends.loops.lists import exchange_lists
from shoal.errors import ProgramError
from shoal.strategies.communication import make_schedule
from shoal.strategies.duplication import build_subgraphs

pytestmark = pytest.mark.host_only("GPUs have no kernel for these operators")

DEVICES = ({}, {"devices": "cpu:3"}, {"devices": "cpu:3", "duplication": "all", "communication": "ring"})


class Meetings(Program):
    """Of every edge of even vertices, what its ends have in common, as sums that tell edges apart."""

    shared_total = Vertex("int64")
    between_total = Vertex("int64", combine=add)

    @rule
    def is_even(vertex):
        return vertex % 2 == 0

    @rule
    def meet(src, dst, edge, shared, between, shared_total, between_total):
        shared_total[src] += shared * (edge + 1)
        atomic.add(between_total, dst, between * (src + 1))

    def step(self, frontier):
        intersect(filter(everything, self.is_even), self.meet)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.mark.parametrize("how", DEVICES, ids=str)
def test_intersect_counts_edges_between_neighbours(how):
    @given(graphs(any_width=False))
    def check(graph):
        rows = [graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist() for v in range(graph.num_vertices)]
        shared_total, between_total = np.zeros((2, graph.num_vertices), int)
        for src in range(0, graph.num_vertices, 2):
            for edge, dst in enumerate(rows[src], int(graph.indptr[src])):
                shared_total[src] += (edge + 1) * sum(third in rows[src] for third in rows[dst])
                between_total[dst] += (src + 1) * sum(rows[other].count(dst) for other in rows[src])
        found = shoal.run(Meetings(), graph, **how)
        np.testing.assert_array_equal(found.shared_total, shared_total)
        np.testing.assert_array_equal(found.between_total, between_total)

    check()


class Colours(Program):
    """The colour that weighs most among those who point at a vertex, where colours are any numbers."""

    colour = Vertex("int64")
    heaviest = Vertex("int64", fill=-1)
    weight_of = Vertex("float64")
    num_colours = Vertex("int32")
    order = Vertex("int64")

    def start(self, colour):
        self.colour = colour

    @rule
    def weigh(src, dst, weight):
        return weight * 0.1

    @rule
    def colour_of(src, colour):
        return colour[src]

    @rule
    def choose(vertex, key, value, heaviest, weight_of, num_colours, order):
        num_colours[vertex] += 1
        order[vertex] = order[vertex] * 31 + key
        if value > weight_of[vertex]:
            weight_of[vertex] = value
            heaviest[vertex] = key

    def step(self, frontier):
        tally(everything, self.weigh, key=self.colour_of, choose=self.choose)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@pytest.mark.parametrize("how", DEVICES, ids=str)
def test_tally_sums_by_key_in_the_order_of_the_edges(how):
    @given(graphs(weights="int32", directed=True))
    def check(graph):
        colour = np.array([(-1) ** v * (v % 3) * 10**12 for v in range(graph.num_vertices)])
        found = shoal.run(Colours(), graph, colour=colour, **how)
        backward = graph.reverse()
        for vertex in range(graph.num_vertices):
            sums = defaultdict(float)
            for edge in range(backward.indptr[vertex], backward.indptr[vertex + 1]):
                sums[int(colour[backward.indices[edge]])] += backward.weights[edge] * 0.1
            order = np.int64(0)
            with np.errstate(over="ignore"):
                for key in sums:
                    order = order * np.int64(31) + np.int64(key)
            assert found.num_colours[vertex] == len(sums)
            assert found.order[vertex] == order
            assert found.weight_of[vertex] == max(sums.values(), default=0.0)

    check()


def test_a_hub_has_more_keys_than_a_cache():
    """As many keys as edges, on threads of their own."""
    graph = shoal.Graph.from_edges(
        np.arange(1, 200_000), np.zeros(199_999, int), directed=True, weights=np.ones(199_999, np.int32)
    )
    colour = np.random.default_rng(0).integers(-(2**62), 2**62, 200_000)
    found = shoal.run(Colours(), graph, colour=colour)
    assert found.num_colours[0] == len(np.unique(colour[1:]))
    assert not found.num_colours[1:].any()


class Fractions(Colours):
    @rule
    def colour_of(src, colour):
        return colour[src] * 0.5

    def step(self, frontier):
        tally(everything, self.weigh, key=self.colour_of, choose=self.choose)


def test_what_is_refused():
    graph = shoal.Graph.from_edges([0], [1])
    assert_refused(lambda: shoal.run(Fractions(), graph, colour=np.zeros(2, int)), "whole number", error=ProgramError)

    class Wrong(Meetings):
        @rule
        def meet(src, dst, value, shared_total):
            shared_total[src] += value

        def step(self, frontier):
            intersect(everything, self.meet)

    assert_refused(lambda: shoal.run(Wrong(), graph), "'value'", "shared", "between", error=ProgramError)

    class Uncombined(Meetings):
        between_total = Vertex("int64")

    assert_refused(
        lambda: shoal.run(Uncombined(), graph, devices="cpu:2"), "between_total", "combine=", error=ProgramError
    )


# The exchange of lists


@pytest.mark.parametrize("duplication", ["one-hop", "all"])
@pytest.mark.parametrize("num_devices", [2, 5])
def test_lists_are_those_of_the_graph(num_devices, duplication):
    graph = random_graph(40, 160, seed=1, directed=True)
    owner = np.arange(40) * 7 % num_devices
    parts = build_subgraphs(graph, owner.astype(np.uint16), num_devices, duplication, with_in_edges=False)
    for part, lists in zip(parts, exchange_lists(parts, make_schedule("selective", num_devices)), strict=True):
        names = np.arange(40) if part.global_ids is None else part.global_ids
        own = [v for v in range(40) if owner[v] == part.device]
        mentioned = {int(v) for u in own for v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]]}
        for local, name in enumerate(names):
            row = graph.indices[graph.indptr[name] : graph.indptr[name + 1]]
            known = [int(v) for v in row if v in names] if name in mentioned or name in own else []
            assert names[lists.indices[lists.indptr[local] : lists.indptr[local + 1]]].tolist() == known


@pytest.mark.parametrize(
    ("communication", "messages", "is_all"),
    [("selective", 12, False), ("broadcast", 12, True), ("ring", 12, True), ("butterfly", 8, True)],
)
def test_lists_are_counted_as_sent(communication, messages, is_all):
    """Each list goes to who mentions the vertex, or those of all that anybody mentions to everybody."""
    graph = random_graph(40, 160, seed=2, directed=True)
    owner = np.arange(40) % 4
    src, dst = edge_arrays(graph)
    away = owner[src] != owner[dst]
    wanted = {(int(owner[u]), int(v)) for u, v in zip(src[away], dst[away], strict=True)}
    mentioned = sorted({v for _, v in wanted})
    carried = [v for v in mentioned for _ in range(3)] if is_all else [v for _, v in wanted]
    num_bytes = sum(4 + 8 + 4 * int(graph.degree[v]) for v in carried)
    parts = build_subgraphs(graph, owner.astype(np.uint16), 4, "all", with_in_edges=False)
    traffic = [lists.traffic for lists in exchange_lists(parts, make_schedule(communication, 4))]
    found = np.array(traffic).sum(axis=0)
    assert found.tolist() == [messages, len(carried), num_bytes, len(wanted)]


def test_a_run_counts_its_lists_in_the_first_superstep():
    graph = random_graph(60, 300, seed=3, directed=True)
    stats = shoal.run(Triangles(), graph, devices="cpu:2").stats.to_dict()
    (superstep,) = stats["supersteps"]
    # One message each way for the lists, and one for the sums.
    assert sum(superstep["messages"]) == stats["messages"] == 4
    placed = shoal.place(graph, "cpu:2")
    parts = build_subgraphs(graph, placed.owner, 2, "one-hop", with_in_edges=False)
    lists = exchange_lists(parts, make_schedule("selective", 2))
    for device, sent in enumerate(superstep["items_sent"]):
        assert lists[device].traffic.items <= sent <= 2 * sum(part.copy_here.size for part in parts)
        assert superstep["bytes_sent"][device] >= lists[device].traffic.num_bytes
