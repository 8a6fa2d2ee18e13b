# SPDX-License-Identifier: Apache-2.0
"""Subgraphs: put together again they are the graph, and what devices say about one another's vertices agrees.

The oracle works on lists of (src, dst, weight) in plain Python and shares no code with what it checks.
"""

import doctest
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
from shoal.errors import ArgumentError
from shoal.strategies import duplication
from shoal.strategies.duplication import DUPLICATIONS, build_subgraphs, describe_partition
from shoal.strategies.partition import PARTITIONERS, partition_graph

pytestmark = pytest.mark.host_only("cuts graphs, and runs nothing on them")


def edge_list(graph):
    """(src, dst, weight) of every stored edge, in the order of the graph."""
    src = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    weights = np.zeros(graph.num_edges) if graph.weights is None else graph.weights
    return list(zip(src.tolist(), graph.indices.tolist(), weights.tolist(), strict=True))


def to_global(part):
    return np.arange(part.num_local) if part.global_ids is None else part.global_ids


def part_edges(part, edges):
    """(row, other end, weight) of every edge of a part, in its order and with global ids."""
    ids = to_global(part)
    rows = np.repeat(np.arange(part.num_local), np.diff(edges.indptr))
    weights = np.zeros(edges.indices.size) if edges.weights is None else edges.weights
    return list(zip(ids[rows].tolist(), ids[edges.indices].tolist(), weights.tolist(), strict=True))


def mentioned(graph, owner, device, with_in_edges):
    """Vertices of other devices at the other end of a device's edges."""
    ends = {dst for src, dst, _ in edge_list(graph) if owner[src] == device}
    if with_in_edges:
        ends |= {src for src, dst, _ in edge_list(graph) if owner[dst] == device}
    return sorted(v for v in ends if owner[v] != device)


def check_vertices(part, graph, owner, duplication_name, with_in_edges):
    ids = to_global(part)
    own = [v for v in range(graph.num_vertices) if owner[v] == part.device]
    assert ids[part.owned].tolist() == own
    assert part.owner.dtype == np.uint16
    assert part.owner.tolist() == [owner[v] for v in ids]
    if duplication_name == "all":
        assert part.global_ids is None
        assert part.address is None
        assert part.num_local == graph.num_vertices
    else:
        assert ids.tolist() == own + mentioned(graph, owner, part.device, with_in_edges)
        assert part.owned.tolist() == list(range(len(own)))


def check_edges(part, graph, owner, with_in_edges):
    expected = [edge for edge in edge_list(graph) if owner[edge[0]] == part.device]
    assert part_edges(part, part.out_edges) == expected
    places = part.edge_ids().tolist()
    assert [edge_list(graph)[place] for place in places] == expected
    assert len(set(places)) == len(places) == part.num_edges
    if not with_in_edges:
        assert part.in_edges is None
        assert part.in_edge_ids() is None
        return
    if not graph.is_directed:
        assert part.in_edges is part.out_edges
        assert part.in_edge_ids().tolist() == places
        return
    reverse = sorted((dst, src, weight) for src, dst, weight in edge_list(graph))
    incoming = [edge for edge in reverse if owner[edge[0]] == part.device]
    assert part_edges(part, part.in_edges) == incoming
    in_places = part.in_edge_ids().tolist()
    assert [reverse[place] for place in in_places] == incoming
    assert len(set(in_places)) == len(in_places)


def check_types(part, graph):
    for edges in (part.out_edges, part.in_edges or part.out_edges):
        assert edges.indptr.dtype == graph.indptr.dtype
        assert edges.indptr.size == part.num_local + 1
        assert edges.indices.dtype == graph.indices.dtype
        assert (edges.weights is None) == (graph.weights is None)
        assert edges.weights is None or edges.weights.dtype == graph.weights.dtype
    for ids in (part.owned, part.global_ids, part.address, part.copy_here, part.copy_there):
        assert ids is None or ids.dtype == graph.indices.dtype
    assert part.copy_indptr.dtype == part.border_sizes.dtype == np.int64
    assert part.edge_ids().dtype == graph.indptr.dtype
    for value in (*vars(part).values(), *part.out_edges, *(part.in_edges or ())):
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


def check_peers(parts, graph, owner, with_in_edges):
    """Addresses lead to the vertex itself, copies to copies of it, and borders count the ends of outgoing edges."""
    for part in parts:
        ids = to_global(part)
        address = np.arange(part.num_local) if part.address is None else part.address
        for local in range(part.num_local):
            home = parts[part.owner[local]]
            assert to_global(home)[address[local]] == ids[local]
            assert address[local] in home.owned
        border = [owner[v] for v in mentioned(graph, owner, part.device, False)]
        assert part.border_sizes.tolist() == np.bincount(border, minlength=len(parts)).tolist()
        assert part.copy_indptr.size == len(parts) + 1
        for peer in parts:
            bounds = slice(*part.copy_indptr[peer.device : peer.device + 2])
            here, there = part.copy_here[bounds], part.copy_there[bounds]
            assert (np.diff(here) > 0).all()
            expected = [v for v in mentioned(graph, owner, peer.device, with_in_edges) if owner[v] == part.device]
            assert ids[here].tolist() == expected
            assert to_global(peer)[there].tolist() == expected


def check_all(parts, graph, owner, name, with_in_edges):
    assert [part.device for part in parts] == list(range(len(parts)))
    for part in parts:
        assert (part.num_devices, part.num_global) == (len(parts), graph.num_vertices)
        assert part.num_owned == part.owned.size
        check_vertices(part, graph, owner, name, with_in_edges)
        check_edges(part, graph, owner, with_in_edges)
        check_types(part, graph)
    check_peers(parts, graph, owner, with_in_edges)


@st.composite
def partitioned(draw, **options):
    graph = draw(graphs.graphs(min_vertices=0, **options))
    num_devices = draw(st.integers(1, 6))
    devices = st.integers(0, num_devices - 1)
    size = graph.num_vertices
    return graph, np.array(draw(st.lists(devices, min_size=size, max_size=size)), np.uint16), num_devices


@pytest.mark.parametrize("with_in_edges", [False, True])
@pytest.mark.parametrize("name", sorted(DUPLICATIONS))
@given(example=partitioned(any_width=True))
def test_parts_make_up_the_graph(name, with_in_edges, example):
    graph, owner, num_devices = example
    parts = build_subgraphs(graph, owner, num_devices, name, with_in_edges=with_in_edges)
    check_all(parts, graph, owner, name, with_in_edges)


@pytest.mark.parametrize("name", sorted(DUPLICATIONS))
@given(example=partitioned(weights="any"))
def test_parts_keep_weights(name, example):
    graph, owner, num_devices = example
    parts = build_subgraphs(graph, owner, num_devices, name, with_in_edges=True)
    check_all(parts, graph, owner, name, True)


@pytest.mark.parametrize("name", sorted(DUPLICATIONS))
@pytest.mark.parametrize("kind", sorted(graphs.SPECIAL))
def test_special_graphs(kind, name):
    graph = graphs.SPECIAL[kind]()
    owner = partition_graph(graph, 3, "random", seed=1)
    check_all(build_subgraphs(graph, owner, 3, name, with_in_edges=True), graph, owner, name, True)


@pytest.mark.parametrize("partition", sorted(PARTITIONERS))
@pytest.mark.parametrize("name", sorted(DUPLICATIONS))
def test_any_number_of_threads_gives_the_same(name, partition):
    graph = graphs.random_graph(900, 9000, seed=6, directed=True, weights="float32")
    owner = partition_graph(graph, 5, partition)
    first = build_subgraphs(graph, owner, 5, name, with_in_edges=True, num_threads=1)
    for num_threads in (2, 7):
        again = build_subgraphs(graph, owner, 5, name, with_in_edges=True, num_threads=num_threads)
        for left, right in zip(first, again, strict=True):
            for key, value in vars(left).items():
                pairs = zip(value, getattr(right, key), strict=True) if key.endswith("_edges") else ()
                assert all(np.array_equal(a, b) for a, b in pairs)
                assert key.endswith("_edges") or np.array_equal(value, getattr(right, key)), key


def test_both_duplications_copy_the_same_vertices():
    graph = graphs.random_graph(700, 3000, seed=9, directed=True)
    whole, hop = (build_subgraphs(graph, "random", 4, name, with_in_edges=True) for name in ("all", "one-hop"))
    for everywhere, nearby in zip(whole, hop, strict=True):
        assert np.array_equal(everywhere.copy_indptr, nearby.copy_indptr)
        assert np.array_equal(everywhere.copy_here, nearby.global_ids[nearby.copy_here])
        assert np.array_equal(everywhere.border_sizes, nearby.border_sizes)


def test_segments_share_the_graph_s_edges_where_ids_stay():
    graph = graphs.random_graph(500, 3000, weights="int32")
    for part in build_subgraphs(graph, "segment", 4, "all", with_in_edges=False):
        assert np.shares_memory(part.out_edges.indices, graph.indices)
        assert np.shares_memory(part.out_edges.weights, graph.weights)
    for part in build_subgraphs(graph, "random", 4, "all", with_in_edges=False):
        assert not np.shares_memory(part.out_edges.indices, graph.indices)


def test_devices_without_vertices():
    graph = graphs.path_graph(2)
    for name in DUPLICATIONS:
        parts = build_subgraphs(graph, [4, 1], 9, name, with_in_edges=True)
        check_all(parts, graph, [4, 1], name, True)


@pytest.mark.parametrize("name", sorted(DUPLICATIONS))
def test_memory_is_the_result_and_a_little_for_each_vertex(name):
    graph = graphs.random_graph(20_000, 400_000, weights="float64", skew=1.0)
    owner = partition_graph(graph, 4, "random")
    build_subgraphs(graph, owner, 4, name, with_in_edges=True)  # compiles
    tracemalloc.start()
    parts = build_subgraphs(graph, owner, 4, name, with_in_edges=True)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(parts) == 4
    copies = sum(part.copy_here.nbytes + part.copy_there.nbytes for part in parts)
    assert peak <= size + copies + 40 * graph.num_vertices


@given(example=partitioned(any_width=True))
def test_report(example):
    graph, owner, num_devices = example
    report = describe_partition(graph, owner, num_devices)
    edges = edge_list(graph)
    assert list(report.vertices) == [int((owner == d).sum()) for d in range(num_devices)]
    assert list(report.edges) == [sum(owner[src] == d for src, _, _ in edges) for d in range(num_devices)]
    assert list(report.borders) == [len(mentioned(graph, owner, d, False)) for d in range(num_devices)]
    assert report.cut_edges == sum(owner[src] != owner[dst] for src, dst, _ in edges)
    assert report.edge_balance == pytest.approx(max(report.edges) / np.mean(report.edges) if edges else 1)
    assert report.vertex_balance == pytest.approx(max(report.vertices) / np.mean(report.vertices) if len(owner) else 1)
    numbers = report.to_dict()
    assert numbers["border_total"] == sum(report.borders)
    assert numbers["cut_fraction"] == (report.cut_edges / len(edges) if edges else 0)


def test_border_sizes_are_those_of_the_report():
    graph = graphs.random_graph(900, 5000, directed=True)
    owner = partition_graph(graph, 6, "biased-random")
    parts = build_subgraphs(graph, owner, 6, "one-hop", with_in_edges=True)
    assert describe_partition(graph, owner, 6).borders == tuple(int(part.border_sizes.sum()) for part in parts)


@pytest.mark.parametrize(("arguments", "words"), [
    (([0, 1], 2, "one-hop"), "2 values for 3 vertices"),
    (([0, 1, 2], 2, "one-hop"), r"partition\[2\]=2"),
    (([0, 1, 1], 2, "two-hop"), "duplication='two-hop' .* all, one-hop .*'one-hop'"),
    (([0, 1, 1], 0, "all"), "num_devices=0"),
])  # fmt: skip
def test_what_makes_no_parts_is_refused(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        build_subgraphs(graphs.path_graph(3), *arguments, with_in_edges=False)


def test_the_number_of_threads_is_checked():
    with pytest.raises(ArgumentError, match="num_threads=0"):
        build_subgraphs(graphs.path_graph(3), [0, 0, 0], 1, "all", with_in_edges=False, num_threads=0)


def test_examples():
    assert doctest.testmod(duplication).failed == 0
