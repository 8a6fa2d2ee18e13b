# SPDX-License-Identifier: Apache-2.0
"""Partitions: every vertex gets a device, the same for the same seed, and devices as much as the strategy claims."""

import doctest
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
import shoal
from shoal.errors import ArgumentError
from shoal.strategies import partition
from shoal.strategies.partition import MAX_DEVICES, PARTITIONERS, partition_graph

pytestmark = pytest.mark.host_only("cuts graphs, and runs nothing on them")

NAMES = sorted(PARTITIONERS)


def loads(graph, devices, num_devices):
    """Vertices and edges of each device."""
    return np.bincount(devices, weights=1.0 + np.diff(graph.indptr), minlength=num_devices)


def cut(graph, devices):
    src = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    return np.mean(devices[src] != devices[graph.indices])


@pytest.mark.parametrize("name", NAMES)
@given(graph=graphs.graphs(min_vertices=0, any_width=True), num_devices=st.integers(1, 25), seed=st.integers(0, 9))
def test_every_vertex_has_a_device(name, graph, num_devices, seed):
    devices = partition_graph(graph, num_devices, name, seed)
    assert devices.dtype == np.uint16
    assert devices.shape == (graph.num_vertices,)
    assert (devices < num_devices).all()
    assert np.array_equal(devices, partition_graph(graph, num_devices, name, seed))


@pytest.mark.parametrize("name", NAMES)
def test_there_may_be_more_devices_than_vertices(name):
    for num_vertices in (0, 1, 3):
        graph = graphs.path_graph(num_vertices)
        assert (partition_graph(graph, MAX_DEVICES, name) < MAX_DEVICES).all()
        assert partition_graph(graph, 1, name).tolist() == [0] * num_vertices


@pytest.mark.parametrize("name", [name for name in NAMES if name != "random"])
@pytest.mark.parametrize("kind", sorted(graphs.LARGER))
def test_balance_and_locality(name, kind):
    graph = graphs.LARGER[kind]()
    slack = {"biased-random": 0.05, "segment": 0.0, "metis": 0.2}[name]
    for num_devices in (2, 5, 16):
        devices = partition_graph(graph, num_devices, name, seed=3)
        shares = loads(graph, devices, num_devices)
        assert shares.max() <= shares.mean() + max(slack * shares.mean(), 1 + graph.max_degree) + 1
        if not kind.startswith("star"):  # one device has the hub, and leaves must go elsewhere to keep the balance
            at_random = partition_graph(graph, num_devices, "random", seed=3)
            assert cut(graph, devices) <= cut(graph, at_random) + 0.02


def test_the_vertices_of_a_random_partition_are_spread_evenly():
    sizes = np.bincount(partition_graph(graphs.random_graph(50_000, 10), 8, "random", seed=1))
    assert sizes.size == 8
    assert abs(sizes / 6250 - 1).max() < 0.05


@pytest.mark.parametrize("num_devices", [2, 8])
def test_biased_random_stays_within_its_bound_and_cuts_less(num_devices):
    for graph in (shoal.generate.rmat(12), shoal.generate.grid(80, 90)):
        devices = partition_graph(graph, num_devices, "biased-random", seed=5)
        shares = loads(graph, devices, num_devices)
        assert shares.max() <= 1.05 * shares.mean()
        assert cut(graph, devices) < 0.99 * cut(graph, partition_graph(graph, num_devices, "random", seed=5))


def test_biased_random_keeps_hubs_apart():
    star = [(hub, 10 * hub + leaf + 4) for hub in range(4) for leaf in range(10)]
    devices = partition_graph(graphs.from_pairs(star), 4, "biased-random")
    assert sorted(devices[:4]) == [0, 1, 2, 3]


def test_segments_are_contiguous_and_cut_where_the_edges_are():
    graph = graphs.random_graph(2000, 30_000, seed=8)
    devices = partition_graph(graph, 7, "segment")
    assert (np.diff(devices.astype(int)) >= 0).all()
    assert sorted(set(devices.tolist())) == list(range(7))
    without_edges = partition_graph(graphs.from_pairs([], num_vertices=12), 4, "segment")
    assert without_edges.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    hub_last = graphs.from_pairs([(9, leaf) for leaf in range(9)], directed=True)
    assert (partition_graph(hub_last, 2, "segment")[:9] == 0).all()


@pytest.mark.parametrize("directed", [False, True])
def test_metis_finds_the_two_halves(directed):
    halves = [(u, v) for base in (0, 20) for u in range(base, base + 20) for v in range(u + 1, base + 20)]
    loops = [(v, v) for v in range(40)]
    graph = graphs.from_pairs([*halves, *halves, *loops, (0, 20)], directed=directed)
    devices = partition_graph(graph, 2, "metis", seed=2**63)
    assert len(set(devices[:20])) == len(set(devices[20:])) == 1
    assert devices[0] != devices[20]


def test_metis_does_not_look_at_weights():
    plain = graphs.random_graph(300, 2000, seed=3)
    weighted = graphs.random_graph(300, 2000, seed=3, weights="float64")
    assert np.array_equal(partition_graph(plain, 4, "metis"), partition_graph(weighted, 4, "metis"))


def test_metis_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ArgumentError, match=r"pymetis.*pip install 'shoal\[partition\]'"):
        partition_graph(graphs.path_graph(3), 2, "metis")


def test_metis_refuses_what_its_numbers_do_not_hold(monkeypatch):
    import pymetis

    monkeypatch.setattr(pymetis, "zero_copy_dtype", lambda: np.dtype(np.int8))
    with pytest.raises(ArgumentError, match=r"99 vertices and 196 edges.*up to 127"):
        partition_graph(graphs.path_graph(99), 2, "metis")


@pytest.mark.parametrize("name", ["random", "biased-random"])
def test_another_seed_gives_another_partition(name):
    graph = graphs.random_graph(500, 1000)
    assert not np.array_equal(partition_graph(graph, 4, name, 1), partition_graph(graph, 4, name, 2))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64"])
def test_a_user_s_array_is_copied(dtype):
    given_devices = np.array([0, 2, 1, 2], dtype)
    devices = partition_graph(graphs.path_graph(4), 3, given_devices)
    given_devices[:] = 0
    assert devices.dtype == np.uint16
    assert devices.tolist() == [0, 2, 1, 2]
    assert partition_graph(graphs.path_graph(4), 3, [0, 2, 1, 2]).tolist() == [0, 2, 1, 2]


def test_a_user_s_function_is_asked():
    asked = []

    def halves(graph, num_devices):
        asked.append((graph.num_vertices, num_devices))
        return np.arange(graph.num_vertices) * num_devices // graph.num_vertices

    assert partition_graph(graphs.path_graph(6), 3, halves).tolist() == [0, 0, 1, 1, 2, 2]
    assert asked == [(6, 3)]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([0, 1, 3, 9], r"partition\[2\]=3 .* 0 to 2"),
        ([0, -1, 3, 9], r"partition\[1\]=-1 .* 0 to 2"),
        (np.array([0, 0, 0, 2**63], np.uint64), r"partition\[3\]=9223372036854775808 .* 0 to 2"),
        ([0, 1, 2], "3 values for 4 vertices"),
        ([], "0 values for 4 vertices"),
        ([0.0, 1.0, 2.0, 0.5], "float64"),
        ([True, False, True, True], "bool"),
        ([[0, 1], [1, 0]], "2 dimensions"),
        (["a", "b", "c", "d"], "allowed: random"),
        (7, "partition is 7; allowed: random"),
        (None, "partition is None; allowed: random"),
        (lambda graph, num_devices: [0, 1, 2, 5], r"partition\[3\]=5 .* 0 to 2"),
        (lambda graph, num_devices: None, "partition is None"),
        ("sement", "partition='sement' .*did you mean 'segment'"),
    ],
)
def test_what_is_no_partition_is_refused(devices, words):
    with pytest.raises(ArgumentError, match=words):
        partition_graph(graphs.path_graph(4), 3, devices)


@pytest.mark.parametrize(("num_devices", "seed", "words"), [
    (0, 0, "num_devices=0"), (MAX_DEVICES + 1, 0, "num_devices=65537"), (2.0, 0, "num_devices=2.0"),
    (True, 0, "num_devices=True"), (2, -1, "seed=-1"), (2, "x", "seed='x'"),
])  # fmt: skip
def test_counts_and_seeds_are_checked(num_devices, seed, words):
    with pytest.raises(ArgumentError, match=words):
        partition_graph(graphs.path_graph(4), num_devices, "random", seed)


def test_examples():
    assert doctest.testmod(partition).failed == 0
