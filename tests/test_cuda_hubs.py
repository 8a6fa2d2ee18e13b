# SPDX-License-Identifier: Apache-2.0
"""Which programs take hub order on a GPU: those to which a vertex's number is but a way to its values."""

import numpy as np
import pytest

import shoal
from cuda_fake import FakeGPU
from graphs import random_graph
from shoal import Constant, Phase, Program, Scalar, Vertex, add, compute, everything, gather, rule
from shoal.algorithms.components import Components
from shoal.algorithms.pagerank import PageRank

pytestmark = pytest.mark.host_only("for machines without a GPU")

hubs = pytest.importorskip("shoal.backends.cuda.hubs")
phases = pytest.importorskip("shoal.backends.cuda.phases")

TYPES = (np.dtype(np.int32), np.dtype(np.int64), None)


class Gathers(Program):
    """Adds up something of the sources."""

    held = Vertex("float64")
    table = Constant("float64", is_array=True)
    total = Scalar("float64", combine=add)

    def __init__(self, of_source, finish):
        self.of_source, self.of_vertex = of_source, finish

    def step(self, frontier):
        gather(everything, self.of_source, finish=self.of_vertex)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


@rule
def value_of(src, held):
    return held[src]


@rule
def own_number(src):
    return float(src)


@rule
def of_first(src, held):
    return held[src] + held[0]


@rule
def keep(vertex, held, table):
    held[vertex] = table[vertex]


@rule
def keep_number(vertex, held):
    held[vertex] = vertex


@rule
def keep_nothing(vertex, held):
    pass


def moved(program):
    return hubs.moved_fields(tuple(phases.load_phase(program, phase, TYPES, "auto") for phase in program.phases()))


def test_ranks_take_hub_order():
    fields = {"share", "next_share", "inverse_weight"}
    assert moved(PageRank("float32", 20, False, False)) == fields
    assert moved(PageRank("float32", 20, False, True)) == fields | {"personalization"}


def test_components_keep_their_numbers():
    assert moved(Components(True)) is None


@pytest.mark.parametrize(
    ("of_source", "finish", "expected"),
    [
        (value_of, keep_nothing, {"held"}),
        (value_of, keep, {"held", "table"}),
        (own_number, keep_nothing, None),
        (of_first, keep_nothing, None),
        (value_of, keep_number, None),
    ],
)
def test_a_number_that_is_used_otherwise_is_kept(of_source, finish, expected):
    assert moved(Gathers(of_source, finish)) == expected


def test_a_compute_that_stores_numbers_keeps_them():
    class Stores(Program):
        held = Vertex("int64")

        def step(self, frontier):
            compute(everything, keep_number)

        def phases(self):
            return [Phase(self.step, max_supersteps=1)]

    assert moved(Stores()) is None


def places_of(indptr, side_by_side):
    """Return where the edges of every row stand: those of 32 rows by their number in the row, then by the row's."""
    degree = np.diff(indptr)
    places = [list(range(*indptr[row : row + 2])) for row in range(len(degree))]
    for first in range(side_by_side, len(degree), 32):
        group = range(first, min(first + 32, len(degree)))
        edges = sorted((number, row) for row in group for number in range(degree[row]))
        for row in group:
            places[row] = [int(indptr[first]) + at for at, edge in enumerate(edges) if edge[1] == row]
    return places


@pytest.mark.parametrize("is_directed", [False, True])
def test_edges_in_hub_order(is_directed, monkeypatch):
    """Row i has the sources of the vertex with the i-th most edges, by the places of these."""
    FakeGPU().install(monkeypatch)
    monkeypatch.setattr(hubs, "_AT_ONCE", 100)
    monkeypatch.setattr(hubs, "_LONGEST", 100)  # so that some lists stand by themselves
    graph = random_graph(200, 1500, seed=1, directed=is_directed, weights="int32", skew=3.0).optimized()
    shard = shoal.place(graph, "cuda").shards[0]
    shard._edges[True] = tuple(getattr(graph.reverse(), name) for name in ("indptr", "indices", "weights"))
    found = hubs.HubOrder(shard)
    order = np.asarray(found.order)
    assert (np.diff(graph.degree[order]) <= 0).all()
    assert (np.asarray(found.place)[order] == np.arange(200)).all()
    indptr, indices, weights = (np.asarray(array) for array in found.shard.edges(incoming=True))
    assert found.shard.side_by_side == (200 if is_directed else 32)
    places = places_of(indptr, found.shard.side_by_side)
    for row, vertex in enumerate(order):
        edges = slice(*graph.reverse().indptr[vertex : vertex + 2])
        mine = places[row]
        assert order[indices[mine]].tolist() == graph.reverse().indices[edges].tolist()
        assert weights[mine].tolist() == graph.reverse().weights[edges].tolist()
        assert (np.diff(indices[mine]) >= 0).all()


def test_values_come_back_to_their_vertices(monkeypatch):
    """On a GPU whose kernels do nothing a rank stays what it was: one in so many for each vertex."""
    FakeGPU().install(monkeypatch)
    graph = random_graph(200, 1500, seed=1, skew=3.0).optimized()
    placed = shoal.place(graph, "cuda")
    found = shoal.pagerank(placed, iterations=3)
    assert placed.shards[0].hubs is not None
    np.testing.assert_allclose(found.rank, 1 / 200)
