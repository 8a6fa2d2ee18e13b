# SPDX-License-Identifier: Apache-2.0
"""shoal.edge_betweenness_centrality against igraph and NetworkX: any graph, any sources, any devices."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import shoal
from checks import assert_counted, assert_refused
from command_line import run
from corruption import both, cast, corruptions, put
from graphs import (
    SPECIAL,
    complete_graph,
    cycle_graph,
    diamond_chain,
    from_pairs,
    graphs,
    path_graph,
    random_graph,
    star_graph,
)
from shoal.algorithms.verify_edge_betweenness import verify_edge_betweenness
from shoal.errors import ArgumentError, ConvergenceError, ValidationError

CLOSE = {"rtol": 1e-9, "atol": 1e-12}


def check(graph, sources=None, **options):
    """Run and compare with igraph, edge by edge; verify."""
    result = shoal.edge_betweenness_centrality(graph, sources, **options)
    src, dst = oracles.edge_arrays(graph)
    is_listed = np.full(len(src), True) if graph.is_directed else src <= dst
    np.testing.assert_array_equal(result.src, src[is_listed])
    np.testing.assert_array_equal(result.dst, dst[is_listed])
    normalized = options.get("normalized", True)
    expected = oracles.edge_betweenness(graph, sources, normalized=normalized)
    np.testing.assert_allclose(result.centrality, expected, **CLOSE)
    verify_edge_betweenness(graph, result.src, result.dst, result.centrality, sources=sources, normalized=normalized)
    return result


@given(graphs(min_vertices=0, max_vertices=12), st.booleans())
@settings(max_examples=60)
def test_random_graphs(graph, normalized):
    check(graph, normalized=normalized)


@given(graphs(max_vertices=30), st.booleans(), st.data())
@settings(max_examples=40)
def test_listed_sources(graph, normalized, data):
    vertices = st.integers(0, graph.num_vertices - 1)
    check(graph, data.draw(st.lists(vertices, min_size=1, max_size=4, unique=True)), normalized=normalized)


@given(graphs(max_vertices=12), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_simple_graphs_equal_networkx(graph, normalized, is_sampled):
    simple = graph.deduplicated()
    sources = [0] if is_sampled else None
    result = shoal.edge_betweenness_centrality(simple, sources, normalized=normalized)
    expected = oracles.edge_betweenness_networkx(simple, sources, normalized=normalized)
    found = dict(zip(zip(result.src.tolist(), result.dst.tolist(), strict=True), result.centrality, strict=True))
    assert found.keys() == expected.keys()
    assert all(value == pytest.approx(expected[edge], rel=1e-9, abs=1e-12) for edge, value in found.items())


@pytest.mark.parametrize("name", [name for name in SPECIAL if "64-bit" not in name])
def test_special_graphs(name):
    check(SPECIAL[name]())


@pytest.mark.parametrize("directed", [False, True])
def test_larger_graphs_on_every_core(directed):
    graph = random_graph(3000, 20000, seed=13, directed=directed)
    check(graph, [0, 5, 17, 2999])
    check(random_graph(300, 1500, seed=14, directed=directed))


@pytest.mark.parametrize("directed", [False, True])
def test_several_devices_find_what_one_does(directed):
    graph = random_graph(300, 1500, seed=15, directed=directed)
    one, several = (
        shoal.edge_betweenness_centrality(graph, [0, 3, 250, 299], devices=devices, validate=True)
        for devices in ("cpu", "cpu:3")
    )
    np.testing.assert_allclose(several.centrality, one.centrality, rtol=1e-9)
    np.testing.assert_array_equal(several.dst, one.dst)


def test_known_values():
    def values(graph, **options):
        return shoal.edge_betweenness_centrality(graph, **options).centrality.tolist()

    assert values(path_graph(4), normalized=False) == [3, 4, 3]
    assert values(path_graph(4)) == pytest.approx([1 / 2, 2 / 3, 1 / 2])
    assert values(path_graph(4, directed=True), normalized=False) == [3, 4, 3]
    assert values(path_graph(4, directed=True)) == pytest.approx([1 / 4, 1 / 3, 1 / 4])
    assert values(star_graph(9), normalized=False) == [9] * 9
    assert values(cycle_graph(5), normalized=False) == [3] * 5
    assert values(complete_graph(4), normalized=False) == [1] * 6


def test_parallel_edges_have_equal_shares_and_loops_none():
    graph = from_pairs([(0, 1), (0, 1), (1, 2), (2, 2)])
    assert shoal.edge_betweenness_centrality(graph, normalized=False).centrality.tolist() == [1, 1, 2, 0]


def test_samples_are_a_choice_of_sources():
    graph = random_graph(400, 3000, seed=16)
    call = shoal.edge_betweenness_centrality
    first, again, other = (call(graph, samples=8, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.centrality, again.centrality)
    assert not np.array_equal(first.centrality, other.centrality)
    chosen = np.random.default_rng(1).choice(400, 8, replace=False)
    np.testing.assert_allclose(first.centrality, oracles.edge_betweenness(graph, chosen), **CLOSE)


def test_vertices_are_as_central_as_their_edges():
    """All paths at a vertex, less those that end there, pass through it: they come and go."""
    graph = random_graph(200, 900, seed=17)
    edges = shoal.edge_betweenness_centrality(graph, normalized=False)
    passing = sum(np.bincount(ends, edges.centrality, 200) for ends in (edges.src, edges.dst))
    size = np.bincount(oracles.component_labels(graph), minlength=200)[oracles.component_labels(graph)]
    inner = shoal.betweenness_centrality(graph, normalized=False).centrality
    np.testing.assert_allclose(passing, 2 * inner + size - 1, rtol=1e-9)


def test_path_counts_beyond_the_range_of_a_double():
    call = shoal.edge_betweenness_centrality
    words = ("edge_betweenness_centrality", "paths")
    assert_refused(lambda: call(diamond_chain(1100, directed=True), [0]), *words, error=ConvergenceError)


def test_stats_types_and_labels():
    result = shoal.edge_betweenness_centrality(random_graph(300, 1500), [0, 1])
    assert assert_counted(result.stats)["edges_visited"] >= result.graph.num_edges
    assert (result.src.dtype, result.dst.dtype, result.centrality.dtype) == (np.int32, np.int32, np.float64)
    labelled = shoal.Graph.from_edges([0, 1, 2], [1, 2, 3], labels=["a", "b", "c", "d"])
    result = shoal.edge_betweenness_centrality(labelled, normalized=False)
    assert list(result.table()) == ["src", "dst", "centrality"]
    assert result.to_pandas()["dst"].tolist() == ["b", "c", "d"]
    named = {"sources": 4, "top_src": "b", "top_dst": "c", "top_centrality": 4.0}
    assert result.named_summary() == named
    assert "<td>b</td>" in result._repr_html_()


def test_no_edges():
    for count in (0, 1, 3):
        result = shoal.edge_betweenness_centrality(from_pairs([], num_vertices=count), validate=True)
        assert (len(result.src), len(result.centrality)) == (0, 0)
        assert result.summary() == {"sources": count, "top_src": None, "top_dst": None, "top_centrality": None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sources": [5]}, ["sources", "5"]),
        ({"sources": []}, ["sources"]),
        ({"samples": 6}, ["samples", "6", "5"]),
        ({"samples": 2, "sources": [0]}, ["samples", "sources"]),
        ({"weight": "w"}, ["weight", "no such argument"]),
        ({"output": "device"}, ["output='device'", "host"]),
        ({"execution": "async"}, ["execution='async'", "Betweenness"]),
    ],
    ids=repr,
)
def test_bad_options(options, words):
    assert_refused(lambda: shoal.edge_betweenness_centrality(cycle_graph(5), **options), *words, error=ArgumentError)


def test_bad_graph():
    assert_refused(lambda: shoal.edge_betweenness_centrality("graph.gr"), "graph", error=ArgumentError)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_the_command_writes_edges_by_the_file_s_ids(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "named.txt").write_text("7 alice\nalice bob\nbob dora\ndora eve\n")
    printed = json.loads(run(f"ebc named.txt --no-normalized --validate --json --output edges.{suffix}", capsys))
    ends = {"top_src": "alice", "top_dst": "bob", "top_centrality": 6.0}
    assert printed["result"] == {"sources": 5, **ends}
    assert "valid result" in run(f"validate named.txt edges.{suffix} --algorithm ebc --no-normalized", capsys)
    assert "highest centrality" in run("ebc named.txt --source alice", capsys)
    with pytest.raises(AssertionError, match="sum to"):
        run(f"validate named.txt edges.{suffix} --algorithm ebc", capsys)


PATH = from_pairs([(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (2, 4), (5, 5), (6, 7), (6, 7)], num_vertices=8)


@corruptions(
    ("negative", put("centrality", 0, -0.1), "finite and not negative"),
    ("not a number", put("centrality", 3, np.nan), "finite and not negative"),
    ("one value off", put("centrality", 3, 0.2), "sum to"),
    ("all values off", cast("centrality", lambda a: a * 1.001), "sum to"),
    ("a loop on a path", put("centrality", 6, 0.1), "self-loop"),
    ("parallel edges unlike", both(put("centrality", 7, 1 / 28), put("centrality", 8, 0)), "parallel edges"),
    (
        "paths of one edge at another",
        cast("centrality", lambda a: a + np.eye(9)[1] * 0.01 - np.eye(9)[3] * 0.01),
        "recomputed",
    ),
    ("two edges swapped", cast("centrality", lambda a: a[[2, 1, 0, *range(3, 9)]]), "end or begin"),
    ("another edge", put("dst", 1, 3), "must be one for"),
    ("a row less", cast("src", lambda a: a[1:]), "shape"),
    ("dtype", cast("centrality", lambda a: a.astype(int)), "dtype"),
)
def test_the_verifier_catches(corrupt, words):
    src, dst = oracles.edge_arrays(PATH)
    found = {"src": src[src <= dst], "dst": dst[src <= dst], "centrality": oracles.edge_betweenness(PATH)}
    verify_edge_betweenness(PATH, **found)
    corrupt(found)
    with pytest.raises(ValidationError) as caught:
        verify_edge_betweenness(PATH, **found)
    assert words in str(caught.value)


@pytest.mark.parametrize("directed", [False, True])
def test_the_verifier_catches_what_it_does_not_recompute(directed):
    """A value moved from one edge to another: paths are lost on the way, or begin where there is no source."""
    graph = path_graph(600, directed=directed)
    src, dst = oracles.edge_arrays(graph)
    src, dst = src[src <= dst], dst[src <= dst]
    centrality = oracles.edge_betweenness(graph, [0, 300])
    verify_edge_betweenness(graph, src, dst, centrality, sources=[0, 300])
    moved = centrality[598] / 2
    centrality[598] -= moved
    centrality[0] += moved
    with pytest.raises(ValidationError, match=r"vertex \d+"):
        verify_edge_betweenness(graph, src, dst, centrality, sources=[0, 300])


def test_the_verifier_takes_rows_in_any_order():
    graph = nx.karate_club_graph()
    whole = shoal.Graph.from_edges(*np.array(graph.edges).T)
    result = shoal.edge_betweenness_centrality(whole)
    turned = [column[::-1] for column in (result.src, result.dst, result.centrality)]
    verify_edge_betweenness(whole, *turned)
