# SPDX-License-Identifier: Apache-2.0
"""Triangles, clustering coefficients and transitivity against NetworkX and igraph, and what their verifiers catch."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import oracles
import shoal
from checks import assert_refused
from graphs import cycle_graph, from_pairs, graphs, path_graph, random_graph, real_graph
from shoal.algorithms.orientation import orient
from shoal.algorithms.verify_triangles import verify_clustering, verify_transitivity, verify_triangles
from shoal.backends.cpu.threads import available_cores
from shoal.errors import ArgumentError, ValidationError

pytestmark = pytest.mark.host_only("GPUs have no kernel that looks at lists of neighbours")

CALLS = (shoal.triangles, shoal.clustering, shoal.transitivity)


def simple(graph):
    """The graph as NetworkX sees it without loops; parallel edges are one there."""
    result = nx.Graph(oracles.networkx_graph(graph))
    result.remove_edges_from(list(nx.selfloop_edges(result)))
    return result


def check(graph, **how):
    expected = simple(graph)
    found = shoal.triangles(graph, validate=True, **how)
    assert found.triangles.tolist() == [nx.triangles(expected)[v] for v in range(graph.num_vertices)]
    assert found.total * 3 == found.triangles.sum()
    coefficient = shoal.clustering(graph, validate=True, **how)
    expected_coefficient = [nx.clustering(expected)[v] for v in range(graph.num_vertices)]
    np.testing.assert_allclose(coefficient.clustering, expected_coefficient, rtol=1e-15)
    closed = shoal.transitivity(graph, validate=True, **how)
    assert closed.transitivity == pytest.approx(nx.transitivity(expected), rel=1e-15)
    np.testing.assert_array_equal(closed.triangles, found.triangles)
    return found


@given(graphs(directed=False, min_vertices=0))
def test_random_graphs_with_loops_and_parallel_edges(graph):
    check(graph)


@pytest.mark.parametrize(
    ("graph", "total"),
    [
        (from_pairs([(a, b) for a in range(9) for b in range(a)]), 84),
        (from_pairs([(0, v) for v in range(1, 40)]), 0),
        (path_graph(30), 0),
        (cycle_graph(3), 1),
        (from_pairs([(0, 1), (0, 1), (1, 2), (2, 0), (2, 0)]), 1),
        (from_pairs([(0, 0), (1, 1), (0, 1), (1, 2), (2, 0)]), 1),
        (from_pairs([(0, 0), (0, 0)]), 0),
        (from_pairs([], num_vertices=0), 0),
        (from_pairs([], num_vertices=4), 0),
    ],
    ids=["clique", "star", "path", "triangle", "parallel edges", "loops", "loops only", "empty", "no edges"],
)
def test_special_graphs(graph, total):
    assert check(graph).total == total


def test_a_large_graph_on_all_cores_agrees_with_igraph():
    graph = shoal.generate.rmat(scale=14, edge_factor=16, seed=5)
    found = shoal.transitivity(graph)
    assert found.stats.num_threads == len(available_cores())
    assert found.transitivity == pytest.approx(oracles.igraph_graph(graph).transitivity_undirected(), rel=1e-12)


def test_a_real_graph():
    assert shoal.triangles(real_graph("facebook_combined.txt.gz"), validate=True).total == 1_612_010  # as SNAP states


def test_rows_in_any_order_and_labels():
    graph = random_graph(50, 300, seed=3, directed=False)
    found = shoal.triangles(graph).triangles
    np.testing.assert_array_equal(shoal.triangles(graph.optimized()).triangles, found)
    named = shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], labels=["a", "b", "c", "d"])
    assert shoal.triangles(named).table()["vertex"].tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("dtypes", [("int32", "int64"), ("int64", "int64")], ids=str)
def test_wide_ids(dtypes):
    graph = random_graph(40, 200, seed=1, directed=False)
    wide = shoal.Graph.from_csr(
        graph.indptr, graph.indices, directed=False, vertex_dtype=dtypes[0], edge_dtype=dtypes[1]
    )
    np.testing.assert_array_equal(orient(wide).graph.indices, orient(graph).graph.indices)


def test_oriented_lists_are_short_and_lead_upwards():
    graph = shoal.generate.rmat(scale=10, edge_factor=8, seed=2)
    oriented = orient(graph)
    src, dst = oracles.edge_arrays(oriented.graph)
    assert (src < dst).all()
    expected = simple(graph)
    assert oriented.graph.num_edges == expected.number_of_edges()
    assert oriented.graph.max_degree <= np.sqrt(graph.num_edges)
    assert oriented.degree.tolist() == [expected.degree(v) for v in range(graph.num_vertices)]
    assert orient(graph) is oriented


def test_placed_graphs_and_own_partitions():
    graph = random_graph(60, 400, seed=2, directed=False)
    expected = shoal.triangles(graph).triangles
    owner = np.arange(60) % 3
    placed = shoal.place(graph, "cpu:3", partition=owner)
    for given_graph, how in ((placed, {}), (graph, {"devices": "cpu:3", "partition": owner})):
        np.testing.assert_array_equal(shoal.triangles(given_graph, **how).triangles, expected)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_directed_graphs_are_refused(call):
    graph = shoal.Graph.from_edges([0, 1, 2], [1, 2, 0], directed=True)
    assert_refused(lambda: call(graph), "graph is directed", call.__name__, "symmetrized()", error=ArgumentError)
    assert call(graph.symmetrized(), validate=True).summary()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_gpus_are_refused_with_the_reason(call):
    assert_refused(
        lambda: call(cycle_graph(3), devices="cuda"), "devices='cuda'", "intersect", "allowed: cpu", error=ArgumentError
    )


def test_summaries_of_graphs_without_vertices():
    graph = from_pairs([], num_vertices=0)
    assert shoal.triangles(graph).summary() == {"triangles": 0, "top_vertex": None}
    assert shoal.clustering(graph).summary() == {"average": 0.0}
    assert shoal.transitivity(graph).summary() == {"transitivity": 0.0, "triangles": 0, "triads": 0}


class TestVerifiers:
    graph = random_graph(30, 120, seed=4, directed=False)
    triangles = np.array(list(nx.triangles(simple(graph)).values()))
    coefficient = np.array(list(nx.clustering(simple(graph)).values()))
    triads = np.array([d * (d - 1) // 2 for _, d in simple(graph).degree()])

    def test_they_accept_what_networkx_computes(self):
        verify_triangles(self.graph, self.triangles)
        verify_clustering(self.graph, self.coefficient)
        verify_transitivity(self.graph, self.triangles, self.triads)

    @pytest.mark.parametrize("vertex", [0, 7, 29])
    def test_they_catch_one_wrong_value(self, vertex):
        wrong = np.arange(30) == vertex
        for verify, arrays in (
            (verify_triangles, (self.triangles + wrong,)),
            (verify_clustering, (self.coefficient + 1e-9 * wrong,)),
            (verify_transitivity, (self.triangles - wrong, self.triads)),
            (verify_transitivity, (self.triangles, self.triads + wrong)),
        ):
            with pytest.raises(ValidationError, match=rf"\[{vertex}\]="):
                verify(self.graph, *arrays)

    def test_they_work_in_blocks_of_rows(self, monkeypatch):
        monkeypatch.setattr("shoal.algorithms.verify_triangles.ROWS_WORK", 50)
        verify_triangles(self.graph, self.triangles)
        with pytest.raises(ValidationError):
            verify_triangles(self.graph, self.triangles + 1)
