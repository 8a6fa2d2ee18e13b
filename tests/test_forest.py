# SPDX-License-Identifier: Apache-2.0
"""shoal.minimum_spanning_forest against Kruskal's algorithm, NetworkX and igraph."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import oracles
import shoal
from checks import assert_counted, assert_refused
from command_line import run
from corruption import both, cast, corruptions, put
from graphs import LARGER, SPECIAL, from_pairs, graphs, grid_graph, path_graph, random_graph, real_graph
from shoal.algorithms.verify_forest import verify_forest
from shoal.errors import ArgumentError, ValidationError


def kruskal(graph):
    """The edges taken when they come by weight and then by their ends, as (smaller, larger, weight)."""
    src, dst = oracles.edge_arrays(graph)
    weight = np.ones(len(src)) if graph.weights is None else graph.weights
    parent = list(range(graph.num_vertices))

    def root(vertex):
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    taken = []
    for w, low, high in sorted((w, u, v) for u, v, w in zip(src, dst, weight, strict=True) if u < v):
        if root(low) != root(high):
            parent[root(low)] = root(high)
            taken.append((low, high, w))
    return sorted(taken)


def check(graph, **options):
    """Run and compare with Kruskal's forest, edge by edge; verify."""
    graph = graph.symmetrized(deduplicate=False)
    result = shoal.minimum_spanning_forest(graph, **options)
    weight = np.ones(len(result.src)) if result.weight is None else result.weight
    assert list(zip(result.src, result.dst, weight, strict=True)) == kruskal(graph)
    verify_forest(graph, result.src, result.dst, result.weight)
    return result


@given(graphs(min_vertices=0, weights="int32") | graphs(weights="float32"))
def test_random_graphs(graph):
    result = check(graph)
    simple = nx.Graph()  # of parallel edges the lightest, which is the last that is added
    src, dst = oracles.edge_arrays(result.graph)
    edges = zip(result.graph.weights.tolist(), src.tolist(), dst.tolist(), strict=True)
    for weight, u, v in sorted(edges, reverse=True):
        simple.add_edge(u, v, weight=weight)
    expected = nx.minimum_spanning_tree(simple).size(weight="weight")
    assert result.total_weight == pytest.approx(expected, rel=1e-5)


@given(graphs(max_vertices=50, max_edges=100))
def test_without_weights_it_is_any_forest_the_smallest_ends_first(graph):
    result = check(graph)
    assert result.weight is None
    assert result.total_weight == len(result.src)


@pytest.mark.parametrize("name", [name for name in SPECIAL if name != "64-bit offsets"])
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("name", ["hubs", "uniform", "grid of 60 x 50"])
def test_larger_graphs_on_every_core(name):
    check(LARGER[name]())


@pytest.mark.parametrize("weights", ["int32", "float32"])
def test_larger_weighted_graphs_are_igraph_s(weights):
    graph = random_graph(3000, 20000, seed=7, weights=weights)
    whole = oracles.igraph_graph(graph)
    tree = whole.spanning_tree(weights="weight")
    assert check(graph).total_weight == pytest.approx(sum(tree.es["weight"]), rel=1e-5)


def test_long_chains_in_random_order():
    order = np.random.default_rng(1).permutation(5000)
    weights = np.random.default_rng(2).integers(1, 100, 4999).astype(np.int32)
    check(shoal.Graph.from_edges(order[:-1], order[1:], weights, num_vertices=5000))


def test_real_graph_with_lengths():
    result = check(real_graph("bremen_dist.gr.gz"))
    assert result.summary()["trees"] == shoal.connected_components(result.graph).count


def test_negative_weights_are_weights():
    graph = from_pairs([(0, 1), (1, 2), (0, 2)], weights=np.array([-5, 3, -7], np.int32))
    assert check(graph).total_weight == -12


def test_stats_and_types():
    result = shoal.minimum_spanning_forest(path_graph(100, weights=np.full(99, 0.5, np.float32)))
    assert assert_counted(result.stats)["edges_visited"] > 0
    assert (result.src.dtype, result.weight.dtype, result.total_weight) == (np.int32, np.float32, 49.5)
    assert list(result.table()) == ["src", "dst", "weight"]
    labelled = shoal.Graph.from_edges([0, 1], [1, 2], labels=["a", "b", "c"])
    assert shoal.minimum_spanning_forest(labelled).table()["dst"].tolist() == ["b", "c"]


def test_what_is_refused():
    call = shoal.minimum_spanning_forest
    assert_refused(lambda: call(path_graph(3, directed=True)), "directed", "symmetrized()", error=ArgumentError)
    assert_refused(lambda: call(path_graph(3), execution="async"), "execution='async'", "Forest", error=ArgumentError)
    assert_refused(lambda: call(path_graph(3), devices="cpu:2", duplication="one-hop"), "duplication='one-hop'")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_the_command_writes_edges_by_the_file_s_ids(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named.txt").write_text("7 alice 1\nalice bob 4\nbob 7 9\ncarol dora 2\n")
    printed = json.loads(run(f"msf named.txt --validate --json --output tree.{suffix}", capsys))
    assert printed["result"] == {"edges": 3, "trees": 2, "total_weight": 7}
    assert "valid result" in run(f"validate named.txt tree.{suffix} --algorithm msf", capsys)
    assert "alice" in run("msf named.txt", capsys)
    if suffix == "csv":
        lines = (tmp_path / "tree.csv").read_text().split()[1:]
        rows = {tuple(sorted(line.replace('"', "").split(","))) for line in lines}
        assert rows == {("1", "7", "alice"), ("4", "alice", "bob"), ("2", "carol", "dora")}


@corruptions(
    ("another edge", put("src", 2, 1), "no edge of the graph"),
    ("a heavier edge", both(put("src", 0, 2), put("dst", 0, 3), put("weight", 0, 3)), "is lighter than"),
    ("an edge twice", cast("src", lambda a: a[[0, 0, 2]]), "no edge of the graph"),
    ("no vertex", put("dst", 2, 9), "dst[2]=9 is no vertex"),
    ("one edge less", cast("src", lambda a: a[:2]), "as many"),
    ("another weight", put("weight", 1, 4), "has weight 2.0 in the graph, not 4"),
)
def test_the_verifier_catches(corrupt, words):
    graph = from_pairs([(0, 1), (1, 2), (2, 3), (0, 3)], weights=np.array([1, 2, 3, 3], np.int32))
    found = {"src": np.array([0, 1, 0]), "dst": np.array([1, 2, 3]), "weight": np.array([1, 2, 3])}
    verify_forest(graph, **found)
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        verify_forest(graph, **found)
    assert words in str(caught.value)


@given(graphs(weights="int32", max_vertices=10, max_edges=30))
def test_the_verifier_knows_every_forest_that_is_too_heavy(graph):
    """Whatever edge is put in place of one of the forest's: a forest as light is right, any other is not."""
    graph = graph.symmetrized(deduplicate=True).without_self_loops()
    taken = kruskal(graph)
    src, dst = oracles.edge_arrays(graph)
    for place in range(len(taken)):
        for u, v, w in zip(src.tolist(), dst.tolist(), graph.weights.tolist(), strict=True):
            others = [*taken[:place], (u, v, w), *taken[place + 1 :]]
            tree = nx.Graph([(a, b) for a, b, _ in others])
            is_forest = len(tree.edges) == len(taken) and nx.is_forest(tree)
            joins = nx.number_connected_components(tree) + graph.num_vertices - len(tree)
            is_right = is_forest and joins == graph.num_vertices - len(taken) and w == taken[place][2]
            columns = [np.array(column) for column in zip(*others, strict=True)]
            if is_right:
                verify_forest(graph, *columns)
            else:
                with pytest.raises(ValidationError):
                    verify_forest(graph, *columns)


def test_grids_have_a_tree():
    assert check(grid_graph(30, 40)).summary() == {"edges": 1199, "trees": 1, "total_weight": 1199}
