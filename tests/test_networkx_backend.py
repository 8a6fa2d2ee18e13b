# SPDX-License-Identifier: Apache-2.0
"""shoal as a backend of NetworkX: the same answers, in the same order, of the same types, and the same errors.

NetworkX itself is the oracle, with the graph it was given; its own suite is another target (`make test-networkx`).
"""

import math
import random
import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from networkx_calls import CLASSES, GRAPHS, assert_near, assert_same, close, ends_of, make_graph, outcome
from shoal_networkx.graph import ConvertedGraph
from shoal_networkx.info import FUNCTIONS
from shoal_networkx.interface import backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")

BREADTH_FIRST = {
    "generic_bfs_edges": [{}, {"depth_limit": 2}],
    "bfs_edges": [{}, {"reverse": True}, {"depth_limit": 1}, {"depth_limit": 0}, {"depth_limit": 1.5}],
    "bfs_tree": [{}, {"reverse": True, "depth_limit": 2}],
    "bfs_predecessors": [{}, {"depth_limit": 2}],
    "bfs_successors": [{}, {"depth_limit": 2}, {"depth_limit": 0}],
    "descendants": [{}],
    "ancestors": [{}],
    "single_source_shortest_path_length": [{}, {"cutoff": 2}, {"cutoff": -1}, {"cutoff": math.inf}],
    "single_source_shortest_path": [{}, {"cutoff": 1}],
    "predecessor": [{}, {"cutoff": 2}, {"return_seen": True}, {"cutoff": -3}],
    "shortest_path": [{}, {"weight": "weight"}],
    "shortest_path_length": [{}, {"weight": "weight"}],
    "single_source_dijkstra": [{}, {"cutoff": 1}, {"weight": None}, {"cutoff": -1}],
    "single_source_dijkstra_path": [{}, {"cutoff": 0.5}],
    "single_source_dijkstra_path_length": [{}, {"cutoff": 2}],
}
TO_TARGET = {
    "single_target_shortest_path_length": [{}, {"cutoff": 2}],
    "single_target_shortest_path": [{}, {"cutoff": 2}],
    "shortest_path": [{}, {"weight": "weight"}],
    "shortest_path_length": [{}, {"weight": "weight"}],
}
PAIRS = {
    "has_path": [{}],
    "shortest_path_length": [{}, {"weight": "weight"}, {"weight": "weight", "method": "bellman-ford"}],
    "dijkstra_path": [{}],
    "dijkstra_path_length": [{}, {"weight": None}],
    "single_source_dijkstra": [{}, {"cutoff": 1}],
    "bellman_ford_path_length": [{}],
    "predecessor": [{}, {"return_seen": True}],
}
WHOLE = {
    "all_pairs_shortest_path_length": [{}, {"cutoff": 1}],
    "all_pairs_shortest_path": [{}],
    "all_pairs_dijkstra": [{}],
    "all_pairs_dijkstra_path": [{"cutoff": 1}],
    "all_pairs_dijkstra_path_length": [{}],
    "average_shortest_path_length": [{}],
    "shortest_path": [{}, {"weight": "weight"}],
    "shortest_path_length": [{}, {"weight": "weight"}],
    "degree_centrality": [{}],
    "connected_components": [{}],
    "number_connected_components": [{}],
    "is_connected": [{}],
    "weakly_connected_components": [{}],
    "number_weakly_connected_components": [{}],
    "is_weakly_connected": [{}],
    "in_degree_centrality": [{}],
    "out_degree_centrality": [{}],
    "strongly_connected_components": [{}],
    "number_strongly_connected_components": [{}],
    "is_strongly_connected": [{}],
    "core_number": [{}],
    "triangles": [{}],
}
ITERATED = {
    "eigenvector_centrality": [{}, {"max_iter": 5000, "tol": 1e-9, "weight": "weight"}],
    "katz_centrality": [{}, {"alpha": 0.05, "weight": "weight"}, {"alpha": -0.1, "beta": 2, "normalized": False}],
}
SIMPLE = {name: graph for name, graph in GRAPHS.items() if not graph.is_multigraph()}
UNDIRECTED = {name: graph for name, graph in GRAPHS.items() if not graph.is_directed()}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_searches_from_a_source(graph):
    for name, variants in BREADTH_FIRST.items():
        for arguments in variants:
            assert_same(name, graph, source=ends_of(graph)[0], **arguments)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_searches_to_a_target(graph):
    for name, variants in TO_TARGET.items():
        for arguments in variants:
            assert_same(name, graph, target=ends_of(graph)[1], **arguments)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_pairs(graph):
    source, target = ends_of(graph)
    for name, variants in PAIRS.items():
        for arguments in variants:
            for ends in ((source, target), (source, source), (source, next(iter(graph))), (source, "nobody")):
                assert_same(name, graph, source=ends[0], target=ends[1], **arguments)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_whole_graphs(graph):
    for name, variants in WHOLE.items():
        for arguments in variants:
            assert_same(name, graph, **arguments)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_several_sources(graph):
    some = list(graph)[2:9:3]
    for name in ("multi_source_dijkstra", "multi_source_dijkstra_path", "multi_source_dijkstra_path_length"):
        for sources in (some, {some[0]}, [], [*some, some[0]], ["nobody"]):
            assert_same(name, graph, sources=sources)
            assert_same(name, graph, sources=sources, cutoff=1)
    assert_same("multi_source_dijkstra", graph, sources=some, target=list(graph)[5])
    for sources in (some, some[0], [], ["nobody"], "nobody"):
        assert_same("bfs_layers", graph, sources=sources)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_around_a_node(graph):
    node = ends_of(graph)[0]
    for distance in (0, 1, 2, 1.5, -1, 50, math.inf):
        assert_same("descendants_at_distance", graph, source=node, distance=distance)
    for arguments in ({}, {"radius": 2}, {"radius": 1, "center": False}, {"radius": 2, "undirected": True}):
        found, expected = (nx.ego_graph(graph, node, **arguments, backend=by) for by in ("shoal", "networkx"))
        assert nx.utils.graphs_equal(found, expected)
        assert found.graph == expected.graph
    if not graph.is_directed():
        assert_same("node_connected_component", graph, n=node)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_centralities(graph):
    for arguments in (
        {},
        {"k": 5, "seed": 3},
        {"normalized": False},
        {"endpoints": True},
        {"k": len(graph)},
        {"k": 1, "seed": 1},
    ):
        found, expected = (nx.betweenness_centrality(graph, **arguments, backend=by) for by in ("shoal", "networkx"))
        assert close(found, expected), arguments
    if not graph.is_multigraph():
        for arguments in ({}, {"k": 5, "seed": 3}, {"normalized": False}, {"k": 1, "seed": 1, "normalized": False}):
            both = (nx.edge_betweenness_centrality(graph, **arguments, backend=by) for by in ("shoal", "networkx"))
            assert close(*both), arguments
    nodes = list(graph)
    for arguments in (
        {},
        {"alpha": 0.5},
        {"tol": 1e-9},
        {"weight": None},
        {"personalization": {nodes[3]: 2, nodes[5]: 1}},
    ):
        found, expected = (nx.pagerank(graph, **arguments, backend=by) for by in ("shoal", "networkx"))
        assert close(found, expected), arguments


@pytest.mark.parametrize("graph", SIMPLE.values(), ids=SIMPLE)
def test_cores(graph):
    without_loops = graph.copy()
    without_loops.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert_same("core_number", without_loops)
    for arguments in ({}, {"k": 2}, {"k": 1.5}, {"k": -1}, {"k": 50}):
        assert_same("k_core", without_loops, **arguments)
        assert_same("k_core", graph, **arguments)


@pytest.mark.parametrize("graph", UNDIRECTED.values(), ids=UNDIRECTED)
def test_triangles(graph):
    nodes = list(graph)
    for name in ("triangles", "clustering", "average_clustering"):
        for chosen in (None, nodes[4], nodes[7:2:-1], [*nodes[:3], "nobody", nodes[0]], [], "nobody", 3.5, [[]]):
            if name != "average_clustering" or chosen not in graph:
                assert_same(name, graph, nodes=chosen)
    assert_same("average_clustering", graph, count_zeros=False)
    assert_same("transitivity", graph)


@pytest.mark.parametrize("graph", SIMPLE.values(), ids=SIMPLE)
def test_iterated_centralities(graph):
    for name, variants in ITERATED.items():
        for arguments in variants:
            assert_near(name, graph, **arguments)
    betas = {node: 0.5 + place for place, node in enumerate(reversed(list(graph)))}
    assert_near("katz_centrality", graph, alpha=0.05, beta=betas)
    assert_same("katz_centrality", graph, beta={next(iter(graph)): 1})


@pytest.mark.parametrize("name", ["eigenvector_centrality", "katz_centrality"])
def test_iterations_stop_where_networkx_does(name):
    for graph in (make_graph(nx.DiGraph, "none", 5, 60, 200), nx.cycle_graph(9), nx.empty_graph(1), nx.empty_graph(3)):
        for arguments in (*({"max_iter": limit, "tol": 1e-3} for limit in range(25)), {"tol": 5.0}, {"tol": -1}):
            assert_near(name, graph, **arguments)


@pytest.mark.parametrize("kind", CLASSES)
def test_hits(kind):
    for weights, least in (("none", None), ("float", 0.1)):
        graph = make_graph(kind, weights, 3, 30, 150)
        for *_, data in graph.edges(data=True) if least else ():
            data["weight"] += least
        found, expected = (nx.hits(graph, backend=by) for by in ("shoal", "networkx"))
        for ours, theirs in zip(found, expected, strict=True):
            assert list(ours) == list(theirs)
            assert ours == pytest.approx(theirs, abs=1e-9)
            assert set(map(type, ours.values())) == {float}


HITS_LEFT = {
    "bipartite": (nx.path_graph(5), "any of them"),
    "equal parts": (nx.DiGraph([(0, 1), (2, 3)]), "any of them"),
    "slow": (nx.path_graph(400).subgraph(range(399)).copy(), "converge"),
    "no edges": (nx.empty_graph(3), "edges"),
    "one node": (nx.Graph([(0, 0)]), "one node"),
    "no weight": (nx.Graph([(0, 1, {"weight": 0}), (1, 2, {"weight": 1})]), "not above 0"),
}


@pytest.mark.parametrize(("graph", "reason"), HITS_LEFT.values(), ids=HITS_LEFT)
def test_hits_of_which_there_are_several_are_left_to_networkx(graph, reason):
    with pytest.raises(NotImplementedError, match=reason):
        backend.hits(backend.convert_from_nx(graph, edge_attrs={"weight": 1}))


@pytest.mark.parametrize("graph", SIMPLE.values(), ids=SIMPLE)
def test_spanning_trees(graph):
    """Among few different weights: of as many edges of one weight those must be taken that Kruskal takes."""
    for name in ("minimum_spanning", "maximum_spanning"):
        for weight in ("weight", "no such"):
            for data in (True, False):
                assert_same(f"{name}_edges", graph, weight=weight, data=data)
            assert_same(f"{name}_tree", graph, weight=weight)


def test_spanning_trees_of_weights_of_any_sign():
    graph = make_graph(nx.Graph, "none", 7, 40, 160)
    draw = random.Random(7)
    for *_, data in graph.edges(data=True):
        data["weight"] = draw.choice([-2, -0.5, 0, 1, 1.0, 2**40, 1e-300])
    assert_same("minimum_spanning_edges", graph)
    assert_same("maximum_spanning_edges", graph)
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    found = backend.minimum_spanning_tree(converted)
    assert sorted(map(sorted, found.edges)) == sorted(map(sorted, nx.minimum_spanning_tree(graph).edges))
    graph.add_edge(*list(graph)[:2], weight=math.nan)
    with pytest.raises(NotImplementedError, match="not finite"):
        backend.minimum_spanning_edges(backend.convert_from_nx(graph, edge_attrs={"weight": 1}))


def test_triangles_are_counted_once(monkeypatch):
    converted = backend.convert_from_nx(nx.complete_graph(5))
    assert nx.triangles(converted, 3) == 6
    monkeypatch.delattr("shoal.transitivity")
    assert [nx.clustering(converted, node) for node in converted] == [1.0] * 5
    assert nx.transitivity(converted) == 1.0


def test_eigenvector_centrality_refuses_weights_that_it_cannot_square():
    for weight, shown in ((-1, "-1"), (1e200, "1e\\+200")):
        graph = nx.Graph([(0, 1, {"weight": weight})])
        with pytest.raises(NotImplementedError, match=shown):
            backend.eigenvector_centrality(backend.convert_from_nx(graph, edge_attrs={"weight": 1}), weight="weight")


def test_pagerank_stops_where_networkx_does():
    graph = make_graph(nx.DiGraph, "none", 5, 60, 200)
    for limit in range(1, 12):
        assert_convergence(graph, max_iter=limit, tol=1e-4)
    assert_convergence(graph, max_iter=0)
    assert_convergence(graph, tol=10.0)
    assert_same("pagerank", graph, personalization={"nobody": 1})
    assert_same("pagerank", nx.DiGraph())


def assert_convergence(graph, **arguments):
    found, expected = (outcome("pagerank", graph, arguments, backend=by) for by in ("shoal", "networkx"))
    assert found[0] == expected[0]
    if found[0] == "raised":
        assert found == expected


@pytest.mark.parametrize("kind", CLASSES)
def test_wrong_nodes_and_empty_graphs(kind):
    for graph in (kind(), kind([(1, 2)])):
        for name, variants in BREADTH_FIRST.items():
            assert_same(name, graph, source="nobody", **variants[0])
        for name, variants in TO_TARGET.items():
            assert_same(name, graph, target="nobody", **variants[0])
        for name, variants in WHOLE.items():
            assert_same(name, graph, **variants[0])
        assert_same("descendants_at_distance", graph, source="nobody", distance=1)
        assert_same("ego_graph", graph, n="nobody")
        for name in (*ITERATED, "k_core", "minimum_spanning_tree", "maximum_spanning_edges", "transitivity"):
            if backend.can_run(name, (graph,), {}) is True:
                assert_same(name, graph)
        assert nx.hits(nx.empty_graph(0, kind), backend="shoal") == ({}, {})
        assert_same("betweenness_centrality", graph)
        if not graph.is_multigraph():
            assert_same("edge_betweenness_centrality", graph)
            assert_same("edge_betweenness_centrality", graph, k=5, seed=1)
        assert_same("has_path", graph, source="nobody", target="no one")
        assert_same("shortest_path_length", graph, method="no such")
        assert_same("bfs_edges", graph, source=[])


@given(st.data())
@settings(max_examples=60)
def test_any_graph(data):
    kind = data.draw(st.sampled_from(CLASSES))
    graph = kind()
    graph.add_nodes_from(data.draw(st.permutations(range(8))))
    weights = st.sampled_from(data.draw(st.sampled_from([[0, 1, 2], [0.0, 0.1, 0.3, 0.5]])))
    for u, v, w in data.draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), weights), max_size=24)):
        graph.add_edge(u, v, weight=w)
    source = data.draw(st.integers(0, 7))
    assert_same("bfs_edges", graph, source=source, reverse=data.draw(st.booleans()))
    assert_same("single_source_dijkstra", graph, source=source)
    assert_same("predecessor", graph, source=source)
    assert_same("shortest_path", graph, target=source, weight="weight")
    assert_same("strongly_connected_components", graph)
    assert_same("core_number", graph)
    assert_same("triangles", graph)
    if not graph.is_multigraph():
        assert_same("minimum_spanning_edges", graph)


LEFT_TO_NETWORKX = [
    ("bfs_edges", {"source": 0, "sort_neighbors": sorted}, "sort_neighbors"),
    ("generic_bfs_edges", {"source": 0, "neighbors": iter}, "neighbors"),
    ("dijkstra_path", {"source": 0, "target": 1, "weight": lambda u, v, data: 1}, "function"),
    ("shortest_path", {"source": 0, "target": 1}, "several shortest paths"),
    ("louvain_communities", {"seed": 3}, "seed"),
    ("louvain_communities", {"seed": random.Random(3)}, "seed"),
    ("louvain_communities", {"max_level": 2}, "max_level"),
    ("louvain_communities", {"resolution": -1}, "resolution"),
    ("louvain_communities", {"threshold": None}, "threshold"),
    ("louvain_communities", {"weight": len}, "function"),
    ("bellman_ford_path", {"source": 0, "target": 1, "weight": len}, "function"),
    ("betweenness_centrality", {"weight": "weight"}, "weight"),
    ("betweenness_centrality", {"k": 0}, "k=0"),
    ("edge_betweenness_centrality", {"weight": "weight"}, "weight"),
    ("edge_betweenness_centrality", {"k": 0}, "k=0"),
    ("pagerank", {"nstart": {0: 1}}, "nstart"),
    ("pagerank", {"dangling": {0: 1}}, "dangling"),
    ("pagerank", {"personalization": {0: -1}}, "personalization"),
    ("pagerank", {"alpha": 2}, "alpha"),
    ("pagerank", {"alpha": None}, "alpha"),
    ("pagerank", {"max_iter": "many"}, "max_iter"),
    ("bfs_tree", {"source": 0, "depth_limit": "deep"}, "depth_limit"),
    ("ego_graph", {"n": 0, "radius": math.nan}, "radius"),
    ("has_path", {"source": None, "target": 1}, "None"),
    ("multi_source_dijkstra", {"sources": iter([1])}, "iterator"),
    ("average_shortest_path_length", {"weight": "weight"}, "weight"),
    ("bfs_edges", {}, "source"),
    ("bfs_edges", {"source": 0, "no_such": 1}, "no_such"),
    ("eccentricity", {}, "eccentricity"),
    ("k_core", {"core_number": {}}, "core_number"),
    ("k_core", {"k": "two"}, "k='two'"),
    ("clustering", {"weight": "weight"}, "weight"),
    ("average_clustering", {"weight": "weight"}, "weight"),
    ("average_clustering", {"nodes": 1}, "one node"),
    ("eigenvector_centrality", {"nstart": {0: 1}}, "nstart"),
    ("eigenvector_centrality", {"max_iter": 1.5}, "max_iter"),
    ("eigenvector_centrality", {"tol": None}, "tol"),
    ("katz_centrality", {"nstart": {0: 1}}, "nstart"),
    ("katz_centrality", {"alpha": 1}, "alpha=1"),
    ("katz_centrality", {"beta": "much"}, "beta"),
    ("katz_centrality", {"beta": {0: 1j}}, "beta"),
    ("katz_centrality", {"beta": math.nan}, "beta"),
    ("katz_centrality", {"beta": 10**400}, "beta"),
    ("hits", {"nstart": {0: 1}}, "nstart"),
    ("hits", {"normalized": False}, "normalized"),
    ("hits", {"max_iter": 1}, "max_iter=1"),
    ("hits", {"tol": -1}, "tol=-1"),
    ("minimum_spanning_edges", {"algorithm": "prim"}, "prim"),
    ("minimum_spanning_tree", {"algorithm": "boruvka"}, "boruvka"),
    ("maximum_spanning_edges", {"data": "weight"}, "data"),
    ("maximum_spanning_tree", {"weight": len}, "function"),
]


@pytest.mark.parametrize(("name", "arguments", "reason"), LEFT_TO_NETWORKX)
def test_what_is_left_to_networkx_has_a_reason(name, arguments, reason):
    assert reason in backend.can_run(name, (nx.path_graph(3),), arguments)


def test_kinds_of_graphs_left_to_networkx():
    for name in ("clustering", "average_clustering", "transitivity", "louvain_communities"):
        assert "directed" in backend.can_run(name, (nx.DiGraph([(0, 1)]),), {})
    assert "keys" in backend.can_run("minimum_spanning_tree", (nx.MultiGraph([(0, 1)]),), {})


def test_graphs_with_rows_of_their_own_are_left_to_networkx():
    class Everyone(nx.Graph):
        def __getitem__(self, node):
            return {other: {} for other in self}

    assert "Everyone" in backend.can_run("pagerank", (Everyone([(0, 1)]),), {})
    assert "int" in backend.can_run("pagerank", (3,), {})
    assert "keys" in backend.can_run("edge_betweenness_centrality", (nx.MultiGraph([(0, 1)]),), {})
    assert backend.can_run("pagerank", (nx.path_graph(3),), {}) is True


WEIGHTS_LEFT = {
    "negative": ([-1, 2], "negative"),
    "ints and floats": ([1, 2.5], "ints and floats"),
    "strings": (["1", "2"], "str"),
    "none": ([None, 1], "NoneType"),
    "not finite": ([math.inf, 1.0], "not finite"),
    "nan": ([math.nan, 1.0], "not finite"),
    "huge": ([2**60, 1], "2\\*\\*53"),
    "long paths": ([2**52, 1], "too long"),
}


@pytest.mark.parametrize(("weights", "reason"), WEIGHTS_LEFT.values(), ids=WEIGHTS_LEFT)
def test_weights_left_to_networkx(weights, reason):
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, weights[0]), (1, 2, weights[1])])
    for name in ("single_source_dijkstra", "single_source_dijkstra_path_length"):
        converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
        with pytest.raises(NotImplementedError, match=reason):
            getattr(backend, name)(converted, 0)
    with pytest.raises(NotImplementedError, match=reason):
        backend.all_pairs_dijkstra(converted)
    assert nx.utils.graphs_equal(backend.convert_to_nx(converted), graph) or reason == "not finite"


def test_networkx_takes_over_what_shoal_leaves():
    graph = nx.path_graph(5_000)
    graph.add_weighted_edges_from([(0, 1, 2.5), (3, 4, 7)])
    with nx.config.backend_priority(algos=["shoal"]):
        assert nx.single_source_dijkstra_path_length(graph, 0)[5] == 2.5 + 2 + 7 + 1
    assert graph.__networkx_cache__["backends"]["shoal"]  # it was tried


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_conversion_there_and_back(graph):
    for options in ({"edge_attrs": {"weight": 1}}, {}, {"preserve_edge_attrs": True, "preserve_node_attrs": True}):
        converted = backend.convert_from_nx(graph, preserve_graph_attrs=True, **options)
        assert (len(converted), list(converted)) == (len(graph), list(graph))
        back = backend.convert_to_nx(converted)
        assert type(back) is type(graph)
        assert back.graph == graph.graph
        assert [(u, list(row)) for u, row in back.adjacency()] == [(u, list(row)) for u, row in graph.adjacency()]
        if graph.is_directed():
            assert [list(row) for row in back._pred.values()] == [list(row) for row in graph._pred.values()]
        if "edge_attrs" in options:
            values = [d["weight"] for *_, d in back.edges(data=True)]
            assert values == [d.get("weight", 1) for *_, d in graph.edges(data=True)]
        if "preserve_edge_attrs" in options:
            assert nx.utils.graphs_equal(back, graph)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_views(graph):
    """Parts of graphs that look into them, where rows are no dicts."""
    nodes = list(graph)
    kept = nx.subgraph_view(graph, filter_node=lambda node: node != nodes[5])
    some = graph.edge_subgraph(list(graph.edges)[::2])
    turned = graph.reverse(copy=False) if graph.is_directed() else graph.subgraph(nodes[:9])
    for view in (kept, some, turned):
        source = list(view)[2]
        assert_same("bfs_edges", view, source=source)
        assert_same("single_source_dijkstra", view, source=source)
        assert_same("shortest_path_length", view, target=source, weight="weight")
        assert_same("degree_centrality", view)
        found, expected = (nx.ego_graph(view, source, backend=by) for by in ("shoal", "networkx"))
        assert nx.utils.graphs_equal(found, expected)


def test_conversion_is_kept_until_the_graph_changes():
    graph = nx.gnm_random_graph(1_000, 6_000, seed=1)
    assert backend.should_run("bfs_edges", (graph, 0), {}) is not True
    nx.pagerank(graph, backend="shoal")
    (kept,) = graph.__networkx_cache__["backends"]["shoal"].values()
    assert isinstance(kept, ConvertedGraph)
    assert repr(kept) == "ConvertedGraph(undirected, 1000 nodes, 12000 neighbours, attributes: ['weight'])"
    nx.descendants(graph, 0, backend="shoal")
    assert list(graph.__networkx_cache__["backends"]["shoal"].values()) == [kept]
    assert backend.should_run("bfs_edges", (graph, 0), {}) is True
    assert backend.should_run("bfs_edges", (kept, 0), {}) is True
    graph.add_edge(0, 999)
    assert backend.should_run("bfs_edges", (), {"G": graph, "source": 0}) is not True
    assert nx.has_path(graph, 0, 999, backend="shoal")


def test_small_graphs_stay_with_networkx():
    small = nx.path_graph(40)
    for name in FUNCTIONS:
        assert isinstance(backend.should_run(name, (small,), {}), str), name
    large = nx.path_graph(100_000)
    assert backend.should_run("pagerank", (large,), {}) is True
    assert "few edges" in backend.should_run("has_path", (large, 0, 1), {})
    assert "conversion" in backend.should_run("connected_components", (large,), {})
    assert backend.should_run("clustering", (large,), {}) is True
    assert "conversion" in backend.should_run("clustering", (large, 5), {})
    assert backend.should_run("clustering", (backend.convert_from_nx(large), 5), {}) is True


def test_devices_are_a_setting_of_networkx():
    graph = GRAPHS["DiGraph-none-1"]
    source = ends_of(graph)[0]
    with nx.config.backends.shoal(devices="cpu:2"):
        assert_same("single_source_shortest_path", graph, source=source)
    with nx.config.backends.shoal(devices="no such"), pytest.raises(ValueError, match="no such"):
        nx.single_source_shortest_path(graph, source, backend="shoal")


def test_every_function_is_networkx_own():
    for name in FUNCTIONS:
        assert name in nx.utils.backends._registered_algorithms
        assert callable(getattr(backend, name))
        assert name in dir(backend)
    with pytest.raises(AttributeError, match="eccentricity"):
        backend.eccentricity  # noqa: B018


def test_importing_networkx_stays_light():
    code = "import sys, networkx as nx; assert 'shoal' in nx.utils.backends.backends; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    assert "shoal_networkx.info" in loaded
    assert loaded & {"shoal", "numba", "numpy", "scipy", "pyarrow", "shoal_networkx.interface"} == set()
