# SPDX-License-Identifier: Apache-2.0
"""Modelled scaling: prices by hand, sums that must hold, and stealing that loses no edge and gains where it should."""

import doctest
from dataclasses import replace

import numpy as np
import pytest

import shoal
from checks import assert_refused
from shoal import ArgumentError
from shoal.model import Counts, find_cost, find_topology, make_topology, pricing, replay, scaling
from shoal.model.pricing import PARTS
from shoal.model.replay import STEALING, Replay, frontier_decision_seconds
from shoal.model.transfers import message_weights, transfer_seconds
from shoal.strategies.communication import make_schedule

pytestmark = pytest.mark.host_only("counts are priced: what is run is run on the CPU")

#: Four devices on a switch of 1 GB/s; a superstep of n devices costs n ms, a message 0.1 ms.
SWITCHED = make_topology(
    {
        "name": "switched",
        "num_devices": 4,
        "num_links": 1,
        "link_bandwidth": 1e9,
        "local_bandwidth": 1e12,
        "latency_seconds": 1e-4,
        "barrier_seconds": [1e-3, 2e-3, 3e-3, 4e-3],
        "compute_scale": 1.0,
    }
)
#: 1 us an edge, 2 us an item, whatever the frontier.
COST = replace(find_cost("h200-assumed"), coefficients=(1e3,), nanoseconds_low=1e3, nanoseconds_high=1e3,
               nanoseconds_per_item=2e3)  # fmt: skip
DGX = find_topology("dgx1-v100")


def counts(edges, items=None, sent=None):
    edges = np.array(edges)
    nothing = np.zeros_like(edges)
    return Counts(
        edges, nothing if items is None else np.array(items), nothing, nothing if sent is None else np.array(sent)
    )


def random_counts(num_supersteps=12, num_devices=8, seed=0, most=7):
    generator = np.random.default_rng(seed)
    edges = (10 ** generator.uniform(0, most, (num_supersteps, num_devices))).astype(np.int64)
    return Counts(edges, edges // 9, edges // 11, edges // 3)


def test_parts_by_hand():
    run = scaling(counts([[1000, 3000, 0, 0]], [[10, 0, 0, 0]], [[3_000_000, 0, 0, 0]]), SWITCHED, COST)
    assert run.compute.tolist() == [pytest.approx([1e-3, 3e-3, 0, 0])]
    assert run.serialization.tolist() == [pytest.approx([20e-6, 0, 0, 0])]
    # 3 MB leave by one port of 1 GB/s, 1 MB to each of the others.
    assert run.communication.tolist() == [pytest.approx([3e-3, 1e-3, 1e-3, 1e-3])]
    assert run.overhead.tolist() == [[4e-3] * 4]
    assert run.seconds == pytest.approx(3e-3 + 3e-3 + 4e-3)
    assert run.idle[0] == pytest.approx([3e-3 - 1.02e-3, 2e-3, 3e-3 + 2e-3, 3e-3 + 2e-3])
    assert run.idle_fraction(0) == 1.0


@pytest.mark.parametrize("stealing", STEALING)
@pytest.mark.parametrize(
    ("communication", "fanout"), [("selective", 1), ("broadcast", 1), ("butterfly", 4), ("ring", 1)]
)
def test_parts_sum_to_the_same_on_every_device(communication, fanout, stealing):
    run = scaling(random_counts(), DGX, "h200-assumed", communication=communication, fanout=fanout, stealing=stealing)
    spent = sum(getattr(run, name) for name in PARTS)
    assert np.ptp(spent, axis=1) == pytest.approx(np.zeros(12), abs=1e-15)
    assert min(getattr(run, name).min() for name in PARTS) >= -1e-15
    totals = run.to_dict()
    assert sum(totals[f"{name}_seconds"] for name in PARTS) == pytest.approx(run.seconds)
    assert totals["timing"] == "modelled"


@pytest.mark.parametrize("stealing", STEALING)
def test_every_edge_is_processed_once(stealing):
    given = random_counts(30, most=8)
    run = scaling(given, DGX, "h200-assumed", stealing=stealing)
    for loads, step in zip(given.edges_visited, run.steps, strict=True):
        assert step.shares.sum(axis=1).tolist() == loads.tolist()
        assert set(np.flatnonzero(step.shares.sum(axis=0))) <= set(step.owners.tolist())


def test_messages_of_a_butterfly_are_those_of_the_paper():
    weights = message_weights(make_schedule("butterfly", 16, 4))
    assert (weights > 0).sum() == 96
    assert weights[0].max() == 1
    assert weights[1].max() == 4
    # Whatever the schedule, a device ends up with the contributions of all others.
    for name, size, fanout in (("butterfly", 13, 1), ("butterfly", 9, 4), ("ring", 5, 1), ("broadcast", 6, 1)):
        assert message_weights(make_schedule(name, size, fanout)).sum(axis=(0, 1)) == pytest.approx(
            np.full(size, size - 1)
        )


def test_bits_are_packed_by_words():
    run = scaling(counts([[0] * 4], [[1000, 0, 0, 0]], [[80, 0, 0, 0]]), SWITCHED, COST)
    assert run.serialization[0].tolist() == pytest.approx([10 * 2e-6, 0, 0, 0])


def test_rounds_add_up_with_a_message_between():
    # Fanout 1, four devices: to one with a contribution, then to one with two; 3 MB are 1 MB and 2 MB.
    sent = np.full((1, 4), 3_000_000)
    _, exchange = transfer_seconds(sent, make_schedule("butterfly", 4, 1), SWITCHED)
    assert exchange == pytest.approx([1e-3 + 2e-3 + 1e-4])
    _, nothing = transfer_seconds(0 * sent, make_schedule("butterfly", 4, 1), SWITCHED)
    assert nothing == pytest.approx([0])


def test_direct_links_send_side_by_side_and_the_host_after_one_another():
    sent = np.zeros((1, 8))
    sent[0, 0] = 7e9
    own, _ = transfer_seconds(sent, make_schedule("selective", 8), DGX)
    # 1 GB to each: over one link at 25 GB/s, over none one after the other.
    others = sum(1 / DGX.bandwidth[0][j] for j in range(1, 8) if not DGX.num_links[0][j]) * 1e9
    assert own[0, 0] == pytest.approx(max(1 / 25, others))


def test_faster_machines_take_less():
    run = scaling(counts([[10**6] * 4]), SWITCHED, COST)
    twice = scaling(counts([[10**6] * 4]), replace(SWITCHED, compute_scale=2.0), COST)
    assert run.compute.sum() == pytest.approx(2 * twice.compute.sum())


def test_frontier_stealing_evens_out_and_is_charged():
    given = counts([[40_000_000, 0, 0, 0, 0, 0, 0, 0]] * 2)
    none, stolen = (scaling(given, DGX, "h200-assumed", stealing=kind) for kind in ("none", "frontier"))
    assert none.idle_fraction(0) == 1.0
    assert stolen.idle_fraction(0) < 0.1
    assert stolen.overhead[0, 0] - none.overhead[0, 0] == pytest.approx(frontier_decision_seconds(8))
    assert 1.3 < none.seconds / stolen.seconds < 8


def test_even_and_small_frontiers_are_not_decided():
    for edges in ([10**8] * 8, [10_000] + [0] * 7):
        none, stolen = (scaling(counts([edges]), DGX, "h200-assumed", stealing=s) for s in ("none", "frontier"))
        assert stolen.seconds == none.seconds


def test_devices_leave_where_there_is_little_to_do_and_come_back():
    tail = [[50, 20, 0, 0, 10, 0, 0, 0]] * 500
    heavy = [[10**8] * 8]
    run = scaling(counts(tail + heavy + tail[:10]), DGX, "h200-assumed", stealing="ownership")
    assert run.group_sizes[0] == 8
    assert run.group_sizes[499] == 1
    assert run.group_sizes[500] == 8
    assert run.steps[499].owners.tolist() == [0] * 8
    assert run.steps[499].stolen_edges == 0


def test_decisions_about_groups_keep_to_their_budget():
    # Supersteps in which leaving never pays, by little: they are asked about, but not too often.
    given = random_counts(2000, most=4)
    none, asked = (scaling(given, SWITCHED.resized(8), "h200-assumed", stealing=s) for s in ("none", "ownership"))
    assert asked.seconds <= 1.05 * none.seconds + 1e-3


def test_messages_within_a_group_are_not_sent():
    given = random_counts(1, 4)
    priced = pricing._Pricing(given, SWITCHED, np.ones((4, 4)), 1.0, "selective", 1)
    kept = priced._kept(np.array([0, 0, 2, 2]), np.array([0, 2]), np.ones(2))
    assert kept.tolist() == pytest.approx([2 / 3] * 4)
    own, exchange, items = priced._exchange(np.zeros(4, np.int64))
    assert not exchange.any()
    assert not items.any()
    assert not own.any()


def test_counts_are_those_of_a_run():
    graph = shoal.generate.grid(9, 9)
    stats = shoal.pagerank(graph, iterations=3, devices="cpu:2").stats.to_dict()
    found = Counts.of(stats)
    assert found.edges_visited.sum() == stats["edges_visited"]
    assert found.bytes_sent.sum() == stats["bytes_sent"]
    assert (found.num_supersteps, found.num_devices) == (3, 2)
    assert found.scaled(3.0).items_sent.sum() == 3 * stats["items_sent"]


def search(graph, num_devices=8, **options):
    hub = int(graph.degree.argmax())
    return Counts.of(shoal.bfs(graph, hub, devices=f"cpu:{num_devices}x1", direction="push", **options).stats.to_dict())


def test_skewed_partition_gains_by_sharing_frontiers():
    graph = shoal.generate.rmat(16, seed=1, shuffle=False)
    blocks = np.arange(graph.num_vertices) * 8 // graph.num_vertices
    given = search(graph, partition=blocks).scaled(500e6 / graph.num_edges)
    none, stolen = (scaling(given, DGX, "h200-assumed", stealing=kind) for kind in ("none", "frontier"))
    for heavy in np.argsort(-none.superstep_seconds)[:2]:
        assert none.idle_fraction(heavy) > 0.6
        assert stolen.idle_fraction(heavy) < 0.1
        assert none.superstep_seconds[heavy] / stolen.superstep_seconds[heavy] > 1.3
    assert 1.2 < none.seconds / stolen.seconds < 2.3


def test_long_searches_gain_by_leaving_devices_out_and_short_ones_lose_nothing():
    for graph, factor, least in ((shoal.generate.grid(6, 2000), 1.0, 3.0), (shoal.generate.rmat(12), 1e4, 0.98)):
        given = search(graph).scaled(factor)
        none, both = (scaling(given, DGX, "h200-assumed", stealing=kind) for kind in ("none", "both"))
        assert none.seconds / both.seconds > least


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Counts.of({"supersteps": []}), ("supersteps", "full")),
        (lambda: Counts.of({"supersteps": [{}], "supersteps_dropped": 4}), ("supersteps",)),
        (lambda: counts([[1], [2]], [[1, 2]]), ("shapes",)),
        (lambda: scaling(counts([[1] * 9]), DGX, COST), ("num_devices=9", "dgx1-v100")),
        (lambda: scaling(counts([[1]]), DGX, "cpu"), ("features=None", "cost cpu")),
        (lambda: scaling(counts([[1, 2]]), DGX, "cpu", features=[[1] * 6]), ("features", "(1, 6)", "(2, 6)")),
        (lambda: scaling(counts([[1]]), DGX, COST, stealing="some"), ("stealing='some'", "frontier")),
        (lambda: scaling(counts([[1]]), DGX, COST, communication="mail"), ("communication='mail'", "selective")),
        (lambda: scaling(counts([[1]]), DGX, COST, bytes_per_edge=-1), ("bytes_per_edge=-1",)),
    ],
)
def test_bad_requests_are_refused(call, words):
    assert_refused(call, *words, error=ArgumentError)


def test_a_device_alone_decides_nothing():
    alone = Replay("both", DGX.resized(1), np.ones((1, 1)))
    step = alone.step(np.array([10**9]))
    assert (step.decision_seconds, step.num_members, step.shares.tolist()) == (0.0, 1, [[10**9]])


@pytest.mark.parametrize("module", [pricing, replay, __import__("shoal.model.counts", fromlist=["counts"])])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_items_grow_with_vertices_and_edges_by_themselves():
    given = random_counts()
    grown = given.scaled(10, items=3)
    assert grown.edges_visited.tolist() == (10 * given.edges_visited).tolist()
    for name in ("items_sent", "items_combined", "bytes_sent"):
        assert getattr(grown, name).tolist() == (3 * getattr(given, name)).tolist()
    assert given.scaled(2).bytes_sent.tolist() == (2 * given.bytes_sent).tolist()
    with pytest.raises(ArgumentError, match="items=0 is out of range"):
        given.scaled(2, items=0)


def test_bytes_follow_from_what_an_item_has():
    given = random_counts()
    ids = given.with_item_bytes(4)
    assert ids.bytes_sent.tolist() == (4 * given.items_sent).tolist()
    assert ids.items_sent is given.items_sent


def test_supersteps_that_only_meet_are_added_at_the_end():
    given = random_counts(5)
    padded = given.padded(8)
    assert padded.num_supersteps == 8
    assert padded.edges_visited[:5].tolist() == given.edges_visited.tolist()
    assert not padded.edges_visited[5:].any()
    assert given.padded(3).num_supersteps == 5
    runs = [scaling(counts, DGX, "h200-assumed").seconds for counts in (given, padded)]
    assert runs[1] - runs[0] == pytest.approx(3 * DGX.seconds_per_superstep())
