# SPDX-License-Identifier: Apache-2.0
"""Bytes from each device to each, and the time for packing and combining.

What senders counted is what receivers took, and it only went where a schedule says.
"""

import numpy as np
import pytest

import shoal
from cuda_emulated import EmulatedGPU
from cuda_on_host import COMPILER
from graphs import random_graph

pytestmark = pytest.mark.host_only("about several devices of the CPU, and emulated ones")

GRAPH = random_graph(300, 2400, seed=5, skew=2.0)
SMALL = random_graph(60, 240, seed=5)
NUM_DEVICES = 4
HOPS = np.subtract.outer(range(NUM_DEVICES), range(NUM_DEVICES))
PARTNERS = np.bitwise_xor.outer(range(NUM_DEVICES), range(NUM_DEVICES))
#: Communications, with the pairs that may send.
COMMUNICATIONS = {
    "selective": ({"communication": "selective", "direction": "push"}, HOPS != 0),
    "broadcast": ({"communication": "broadcast"}, HOPS != 0),
    "butterfly": (
        {"communication": "butterfly", "fanout": 2},
        np.isin(np.bitwise_xor.outer(range(4), range(4)), (1, 2)),
    ),
    "ring": ({"communication": "ring"}, HOPS % NUM_DEVICES == NUM_DEVICES - 1),
    "asynchronous": ({"execution": "async"}, HOPS != 0),
}


def summed(counts, key):
    return np.sum([row[key] for row in counts["supersteps"]], axis=0)


@pytest.mark.parametrize("name", COMMUNICATIONS)
def test_pairs_add_up_to_what_devices_sent(name):
    how, may_send = COMMUNICATIONS[name]
    counts = shoal.bfs(GRAPH, 0, devices="cpu:4x1", partition="random", **how).stats.to_dict()
    pairs = np.array(counts["bytes_by_pair"])
    assert pairs.sum(axis=1).tolist() == summed(counts, "bytes_sent").tolist()
    assert pairs.sum() == counts["bytes_sent"] > 0
    assert (pairs[may_send] > 0).any()
    assert not pairs[~may_send].any()


@pytest.mark.parametrize("name", ["selective", "asynchronous"])
def test_receivers_took_what_was_sent_to_them(name):
    """Every item that is sent to one device only is combined there."""
    counts = shoal.bfs(GRAPH, 0, devices="cpu:4x1", partition="random", **COMMUNICATIONS[name][0]).stats.to_dict()
    item_bytes = counts["bytes_sent"] // counts["items_sent"]
    received = np.array(counts["bytes_by_pair"]).sum(axis=0)
    assert received.tolist() == (summed(counts, "items_combined") * item_bytes).tolist()


def test_pairs_of_many_phases_and_runs_are_added():
    batch = shoal.sssp(random_graph(60, 200, seed=3, weights="int32"), [0, 7, 9], devices="cpu:3x1")
    for stats in (batch.stats, shoal.betweenness_centrality(GRAPH, [0, 7, 9], devices="cpu:3x1").stats):
        counts = stats.to_dict()
        assert np.array(counts["bytes_by_pair"]).sum(axis=1).tolist() == summed(counts, "bytes_sent").tolist()
    assert len(batch.stats.traffic) == 1


def test_one_device_has_no_pairs():
    counts = shoal.bfs(GRAPH, 0).stats.to_dict()
    assert "bytes_by_pair" not in counts
    assert counts["pack_seconds"] == counts["combine_seconds"] == 0


def test_pairs_are_there_without_rows():
    counts = shoal.bfs(GRAPH, 0, devices="cpu:4x1", stats="totals").stats.to_dict()
    assert np.array(counts["bytes_by_pair"]).sum() == counts["bytes_sent"]


@pytest.mark.parametrize("name", COMMUNICATIONS)
def test_packing_and_combining_are_parts_of_a_superstep(name):
    counts = shoal.bfs(GRAPH, 0, devices="cpu:4x1", **COMMUNICATIONS[name][0]).stats.to_dict()
    is_measured = name != "asynchronous"
    for key in ("pack_seconds", "combine_seconds"):
        assert (counts[key] > 0) == is_measured
        assert counts[key] == pytest.approx(summed(counts, key).sum())
    parts = [np.array([row[key] for row in counts["supersteps"]]) for key in
             ("pack_seconds", "combine_seconds", "idle_seconds", "seconds")]  # fmt: skip
    assert (np.sum(parts[:3], axis=0) <= parts[3] + 1e-9).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.skipif(COMPILER is None, reason="needs g++ or clang++")
@pytest.mark.parametrize("name", ["selective", "butterfly"])
def test_pairs_of_a_gpu_s_devices_are_those_of_a_cpu_s(name, folder, monkeypatch):
    EmulatedGPU(folder).install(monkeypatch)
    how = COMMUNICATIONS[name][0]
    found, expected = (
        shoal.bfs(SMALL, 0, devices=devices, **how).stats.to_dict() for devices in ("cuda:0*3", "cpu:3x1")
    )
    assert found["bytes_by_pair"] == expected["bytes_by_pair"]
    assert found["bytes_sent"] > 0
