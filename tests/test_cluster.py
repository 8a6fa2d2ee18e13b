# SPDX-License-Identifier: Apache-2.0
"""Clusters of machines: two levels of links and two ports; and what is expected of R-MAT graphs of any scale."""

import doctest
import itertools
import math

import numpy as np
import pytest

import rmat_laws
import shoal
from shoal import ArgumentError
from shoal.model import Counts, cluster, find_topology, make_cluster, make_topology, scaling
from shoal.model.transfers import transfer_seconds
from shoal.strategies.communication import make_schedule

pytestmark = pytest.mark.host_only("about topologies and expected counts: nothing runs on a device")

MACHINE = make_topology(
    {"name": "pair", "num_devices": 2, "num_links": 1, "link_bandwidth": 10e9, "local_bandwidth": 1e12,
     "latency_seconds": 1e-6}
)  # fmt: skip


def pairs(num_machines, **changed):
    """Machines of two devices on a network of 1 GB/s."""
    given = {"network_bandwidth": 1e9, "network_latency_seconds": 1e-4, "barrier_seconds": 1e-3} | changed
    return make_cluster(MACHINE, num_machines, **given)


def test_pairs_inside_are_linked_and_others_are_on_the_network():
    made = pairs(3)
    assert made.num_devices == 6
    for i, j in itertools.product(range(6), repeat=2):
        inside = i // 2 == j // 2
        assert made.path(i, j) == ("local" if i == j else "direct" if inside else "network")
        assert made.bandwidth[i][j] == (1e12 if i == j else 10e9 if inside else 1e9)
    assert made.latency_seconds == 1e-4
    assert made.barrier_seconds == (1e-3,) * 6
    assert pairs(1).latency_seconds == 1e-6


def test_both_ports_send_at_once():
    # 3 GB to three peers: 1 GB inside over 10 GB/s, 2 GB by a port of 1 GB/s.
    sent = np.array([[3e9, 0, 0, 0]])
    own, whole = transfer_seconds(sent, make_schedule("selective", 4), pairs(2))
    assert own[0, 0] == pytest.approx(2.0)
    assert whole[0] == pytest.approx(2.0)
    slow_inside = pairs(2, network_bandwidth=1e12)
    own, _ = transfer_seconds(sent, make_schedule("selective", 4), slow_inside)
    assert own[0, 0] == pytest.approx(0.1)


def test_butterfly_across_machines_brings_each_contribution_over_the_network_once():
    nothing = np.zeros((1, 4), np.int64)
    counts = Counts(nothing, nothing, nothing, np.full((1, 4), 3_000_000_000))
    made = pairs(2)
    inside_first, across_first = (
        scaling(counts, topology, "h200-assumed", communication="butterfly", fanout=2).communication[0, 0]
        for topology in (made, made.subset([0, 2, 1, 3]))
    )
    # 1 GB in the first round, 2 GB in the second; the network takes a second for each, a link a tenth.
    assert inside_first == pytest.approx(0.1 + 2.0 + 1e-4)
    assert across_first == pytest.approx(1.0 + 0.2 + 1e-4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"network_bandwidth": 0}, "network_bandwidth=0 is out of range"),
        ({"network_latency_seconds": -1}, "network_latency_seconds=-1 is out of range"),
        ({"barrier_seconds": [1e-3] * 5}, "barrier_seconds"),
    ],
)
def test_networks_that_are_none_are_refused(changed, message):
    with pytest.raises(ArgumentError, match=message):
        pairs(2, **changed)
    with pytest.raises(ArgumentError, match="num_machines=0 is out of range"):
        pairs(0)


def test_cluster_of_shipped_machines_prices_a_run():
    made = make_cluster(find_topology("dgx-h100"), 2, network_bandwidth=50e9, network_latency_seconds=5e-6,
                        barrier_seconds=[1e-6, 3e-6, 5e-6], source="test")  # fmt: skip
    assert made.source["network"] == "test"
    counts = Counts(*(np.full((2, 16), 10**6) for _ in range(4)))
    assert scaling(counts, made, "h200-assumed").seconds > 2 * made.seconds_per_superstep()


@pytest.mark.parametrize(("scale", "factor"), [(14, 16), (12, 64)])
def test_expected_graphs_are_those_that_are_drawn(scale, factor):
    graph = shoal.generate.rmat(scale, factor, seed=3)
    degree = graph.degree[graph.degree > 0]
    assert rmat_laws.linked_part(scale, factor) == pytest.approx(len(degree) / graph.num_vertices, rel=0.01)
    stored = graph.num_edges / (2 * factor * graph.num_vertices)
    assert rmat_laws.stored_part(scale, factor) == pytest.approx(stored, rel=0.01)
    owner = np.random.default_rng(0).integers(0, 8, graph.num_vertices)
    rows = np.repeat(np.arange(graph.num_vertices), graph.degree)
    different = len(np.unique(owner[rows].astype(np.int64) * graph.num_vertices + graph.indices))
    assert rmat_laws.border_part(scale, factor, 8) == pytest.approx(different / graph.num_edges, rel=0.03)


def test_expected_graph_of_scale_27_is_gap_kron():
    # Its published size: 4,223.2 million stored edges.
    assert rmat_laws.stored_part(27, 16) * 32 * 2**27 == pytest.approx(4.2232e9, rel=1e-4)
    assert math.isclose(
        rmat_laws.border_part(20, 16, 1), rmat_laws.linked_part(20, 16) / 32 / rmat_laws.stored_part(20, 16)
    )


def test_docstring_example():
    assert doctest.testmod(cluster).failed == 0
