# SPDX-License-Identifier: Apache-2.0
"""Communities: label propagation by its property, Louvain beside igraph's, both on every kind of graph."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import oracles
import shoal
from checks import assert_refused
from graphs import cycle_graph, from_pairs, graphs, path_graph, random_graph, real_graph
from shoal.algorithms.contraction import contract, first_level
from shoal.algorithms.label_propagation import LabelPropagation, smallest_members
from shoal.algorithms.verify_communities import modularity_of, verify_label_propagation, verify_louvain
from shoal.errors import ArgumentError, ConvergenceError, ValidationError

pytestmark = pytest.mark.host_only("GPUs have no kernel that sums by keys")

CALLS = (shoal.label_propagation, shoal.louvain_communities)


def multigraph(graph, *, weighted=False):
    """Every edge once, in NetworkX."""
    src, dst = oracles.edge_arrays(graph)
    once = src <= dst
    values = graph.weights[once].tolist() if weighted else [1] * int(once.sum())
    result = nx.MultiGraph()
    result.add_nodes_from(range(graph.num_vertices))
    result.add_weighted_edges_from(zip(src[once].tolist(), dst[once].tolist(), values, strict=True))
    return result


def sets(label):
    return [set(np.flatnonzero(label == name).tolist()) for name in np.unique(label)]


def modularity(graph, label, *, resolution=1.0, weighted=False):
    return nx.community.modularity(multigraph(graph, weighted=weighted), sets(label), resolution=resolution)


def planted(num_groups, size, inside, between, seed):
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(num_groups), size)
    chance = np.where(group[:, None] == group, inside, between)
    src, dst = np.nonzero(np.triu(random.random(chance.shape) < chance, 1))
    return shoal.Graph.from_edges(src, dst, num_vertices=len(group)), group * size


SPECIAL = {
    "clique": from_pairs([(a, b) for a in range(9) for b in range(a)]),
    "star": from_pairs([(0, v) for v in range(1, 40)]),
    "path": path_graph(30),
    "two triangles": from_pairs([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]),
    "complete bipartite": from_pairs([(a, b) for a in range(6) for b in range(6, 13)]),
    "parallel edges": from_pairs([(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3)]),
    "loops": from_pairs([(0, 0), (0, 1), (1, 1), (2, 2), (1, 2)]),
    "loops only": from_pairs([(0, 0), (1, 1)]),
    "no edges": from_pairs([], num_vertices=4),
    "empty": from_pairs([], num_vertices=0),
}


class TestLabelPropagation:
    @given(graphs(directed=False, min_vertices=0, weights="int32"))
    def test_random_graphs(self, graph):
        for weighted in (False, True):
            found = shoal.label_propagation(graph, weighted=weighted, validate=True)
            assert found.count == len(np.unique(found.label))

    @pytest.mark.parametrize("name", SPECIAL)
    def test_special_graphs(self, name):
        found = shoal.label_propagation(SPECIAL[name], validate=True)
        assert found.count == {"clique": 1, "two triangles": 2, "no edges": 4, "empty": 0}.get(name, found.count)

    def test_communities_are_those_of_networkx_s_definition(self):
        graph = real_graph("facebook_combined.txt.gz")
        label = shoal.label_propagation(graph).label
        neighbours = nx.Graph(multigraph(graph))
        for vertex in range(0, graph.num_vertices, 7):
            counts = np.bincount(label[list(neighbours[vertex])])
            assert counts[label[vertex]] == counts.max()

    def test_planted_groups_are_found(self):
        graph, group = planted(8, 50, 0.3, 0.005, seed=0)
        np.testing.assert_array_equal(shoal.label_propagation(graph).label, group)

    def test_weights_decide(self):
        graph = from_pairs([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], weights=np.array([9, 9, 1, 9, 9], np.int32))
        assert shoal.label_propagation(graph, weighted=True, validate=True).count == 2

    def test_the_careful_phase_alone_ends_too(self):
        graph = random_graph(300, 1500, seed=1, directed=False)
        found = shoal.run(LabelPropagation(False, 10_000, num_hasty=0), graph)
        verify_label_propagation(graph, smallest_members(found.label)[0])
        assert found.num_due == 0

    def test_too_few_supersteps(self):
        graph = random_graph(300, 1500, seed=1, directed=False)
        assert_refused(
            lambda: shoal.label_propagation(graph, max_supersteps=2), "max_supersteps=2", error=ConvergenceError
        )

    def test_the_verifier_catches_wrong_labels(self):
        graph = SPECIAL["two triangles"]
        verify_label_propagation(graph, np.array([0, 0, 0, 3, 3, 3]))
        for label, words in (
            ([0, 0, 0, 0, 3, 3], "must be the smallest|in the community|another label has"),
            ([0, 0, 0, 3, 3, 5], "another label has 2"),
            ([1, 1, 1, 3, 3, 3], "smallest vertex"),
            ([0, 0, 1, 3, 3, 3], "is in the community of 0"),
        ):
            with pytest.raises(ValidationError, match=words):
                verify_label_propagation(graph, np.array(label))
        with pytest.raises(ValidationError, match="no neighbour"):
            verify_label_propagation(from_pairs([(0, 1)], num_vertices=3), np.array([0, 0, 0]))


KARATE = from_pairs(list(nx.karate_club_graph().edges()))
GRAPHS = {
    "karate club": lambda: KARATE,
    "facebook": lambda: real_graph("facebook_combined.txt.gz"),
    "R-MAT": lambda: shoal.generate.rmat(scale=12, edge_factor=16, seed=1),
    "planted": lambda: planted(20, 50, 0.2, 0.01, seed=0)[0],
    "hardly planted": lambda: planted(10, 100, 0.1, 0.02, seed=2)[0],
    "grid": lambda: shoal.generate.grid(30, 30),
}


class TestLouvain:
    @pytest.mark.parametrize("name", GRAPHS)
    def test_quality_is_that_of_igraph(self, name):
        graph = GRAPHS[name]()
        found = shoal.louvain_communities(graph, validate=True)
        assert found.modularity >= 0.98 * oracles.igraph_graph(graph).community_multilevel().modularity
        assert found.modularity == pytest.approx(modularity(graph, found.label), abs=1e-12)
        assert [value for _, value in found.levels] == sorted(value for _, value in found.levels)

    @given(graphs(directed=False, min_vertices=0, weights="float64"))
    def test_random_graphs_with_loops_parallel_edges_and_weights(self, graph):
        for weighted, resolution in ((True, 1.0), (False, 0.5)):
            found = shoal.louvain_communities(graph, weighted=weighted, resolution=resolution, validate=True)
            if graph.num_edges and (not weighted or graph.weights.any()):
                expected = modularity(graph, found.label, resolution=resolution, weighted=weighted)
                assert found.modularity == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("name", SPECIAL)
    def test_special_graphs(self, name):
        found = shoal.louvain_communities(SPECIAL[name], validate=True)
        counts = {"clique": 1, "two triangles": 2, "loops only": 2, "no edges": 4, "empty": 0}
        assert found.count == counts.get(name, found.count)
        assert found.summary()["modularity"] == found.modularity

    def test_planted_groups_are_found(self):
        graph, group = planted(8, 50, 0.3, 0.005, seed=0)
        np.testing.assert_array_equal(shoal.louvain_communities(graph).label, group)

    def test_resolution_and_networkx_s_communities(self):
        peer = nx.community.louvain_communities(nx.karate_club_graph(), weight=None, seed=1)
        best = nx.community.modularity(nx.karate_club_graph(), peer, weight=None)
        assert shoal.louvain_communities(KARATE).modularity >= 0.98 * best
        counts = [shoal.louvain_communities(KARATE, resolution=value).count for value in (0.1, 1.0, 5.0)]
        assert counts == sorted(counts)
        assert counts[0] < counts[-1]

    def test_devices_climb_the_same_levels(self):
        graph = random_graph(120, 500, seed=5, directed=False, weights="float64")
        one = shoal.louvain_communities(graph, weighted=True)
        many = shoal.louvain_communities(graph, weighted=True, devices="cpu:3", partition="random")
        np.testing.assert_array_equal(one.label, many.label)
        assert (one.modularity, one.levels) == (many.modularity, many.levels)

    def test_contraction_keeps_degrees_and_modularity(self):
        graph = random_graph(60, 300, seed=6, directed=False, weights="int32")
        level = first_level(graph, True)
        community = np.arange(60) // 7
        coarse = contract(level, community, 9)
        assert coarse.degree.tolist() == np.bincount(community, level.degree).tolist()
        matrix = coarse.graph.to_scipy().toarray()
        np.testing.assert_array_equal(matrix.sum(axis=1) + matrix.diagonal(), coarse.degree)
        names = np.arange(9) * 7
        before = modularity_of(graph, names[community], 1.0, True)
        assert modularity_of(coarse.graph, np.arange(9), 1.0, True) == pytest.approx(before, abs=1e-12)

    def test_the_verifier_catches_wrong_results(self):
        found = shoal.louvain_communities(KARATE)
        verify_louvain(KARATE, found.label, found.modularity)
        for label, value, words in (
            (found.label, found.modularity + 1e-6, "but that of the communities"),
            (np.zeros(34, int), found.modularity, "but that of the communities"),
            (found.label + 1, found.modularity, "smallest vertex"),
        ):
            with pytest.raises(ValidationError, match=words):
                verify_louvain(KARATE, label, value)
        # Communities of vertices that no edges join are worse than none.
        apart = from_pairs([(0, 1), (2, 3)])
        with pytest.raises(ValidationError, match="vertices by themselves"):
            verify_louvain(apart, np.array([0, 1, 0, 1]))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_what_is_refused(call):
    directed = shoal.Graph.from_edges([0, 1, 2], [1, 2, 0], directed=True)
    assert_refused(lambda: call(directed), "graph is directed", call.__name__, "symmetrized()", error=ArgumentError)
    negative = from_pairs([(0, 1)], weights=np.array([-1.0]))
    assert_refused(lambda: call(negative, weighted=True), "weighted=True", "-1", error=ArgumentError)
    assert call(negative).label.tolist() == [0, 0]
    assert_refused(lambda: call(KARATE, devices="cuda"), "devices='cuda'", "tally", "allowed: cpu", error=ArgumentError)
    assert_refused(lambda: call(KARATE, max_supersteps=-1), "max_supersteps=-1", error=ArgumentError)
    assert_refused(lambda: call(KARATE, devices="cpu:2", execution="async"), "execution='async'", error=ArgumentError)


def test_cycles_settle_in_a_few_supersteps():
    """Two-coloured graphs are where labels would change sides for ever."""
    assert shoal.label_propagation(cycle_graph(1000), validate=True).stats.num_supersteps < 60
