# SPDX-License-Identifier: Apache-2.0
"""The BSP model: its formula by hand, its units, and the counts it takes from a run."""

import doctest
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import ArgumentError, model
from shoal.model import Breakdown, bsp, bsp_seconds, make_topology, predict

pytestmark = pytest.mark.host_only("a formula for several devices of the CPU")

#: Three devices that send 1 GB/s each; a superstep costs 0.1 ms.
LINKS = make_topology(
    {
        "name": "links",
        "num_devices": 3,
        "num_links": 1,
        "link_bandwidth": 1e9,
        "local_bandwidth": 1e10,
        "barrier_seconds": 1e-4,
    }
)
AMOUNTS = st.floats(0, 1e9)


def superstep(edges, items, sent):
    return {"edges_visited": edges, "items_combined": items, "bytes_sent": sent}


def stats(supersteps, **changes):
    """What `Stats.to_dict` says of a run, with totals over all devices."""
    totals = {
        key: sum(sum(row[key]) for row in supersteps) for key in ("edges_visited", "items_combined", "bytes_sent")
    }
    num_devices = len(supersteps[0]["edges_visited"])
    made = {**totals, "num_supersteps": len(supersteps), "num_devices": num_devices, "supersteps": supersteps}
    return {**made, **changes}


TWO_DEVICES = stats([superstep([100, 300], [10, 0], [4000, 1000]), superstep([500, 200], [0, 20], [0, 8000])])


def without(entries, key):
    return {name: value for name, value in entries.items() if name != key}


def test_formula_by_hand():
    # 2 s + 0.5 s + 3e9 bytes at 1 GB/s + 20 supersteps of 0.1 ms
    assert bsp_seconds(2.0, 0.5, 3e9, 20, LINKS) == pytest.approx(2.0 + 0.5 + 3.0 + 0.002)


def test_four_k40_by_hand():
    # 20 GB/s: 2 GB take 0.1 s; 1000 supersteps of 188 us take 0.188 s.
    assert bsp_seconds(0, 0, 2e9, 1000, "pcie-k40-quad") == pytest.approx(0.288)


@pytest.mark.parametrize(("num_devices", "latency"), [(1, 66.8e-6), (2, 124e-6), (3, 142e-6), (4, 188e-6), (6, 252e-6)])
def test_superstep_costs_by_the_number_of_devices(num_devices, latency):
    assert bsp_seconds(0, 0, 0, 1000, "pcie-k40-quad", num_devices) == pytest.approx(1000 * latency)


def test_fewer_devices_have_fewer_links_to_send_by():
    # Devices 0 and 1 of the mesh share one link of 25 GB/s, of the six that each has.
    assert bsp_seconds(0, 0, 25e9, 0, "dgx1-v100", num_devices=2) == pytest.approx(1.0)
    assert bsp_seconds(0, 0, 25e9, 0, "dgx1-v100") == pytest.approx(25 / 150)


def test_more_devices_than_a_machine_has():
    with pytest.raises(ArgumentError, match=r"num_devices=9.*dgx1-v100 has 8 devices"):
        bsp_seconds(0, 0, 0, 1, "dgx1-v100", num_devices=9)
    with pytest.raises(ArgumentError, match=r"num_devices=9.*dgx1-v100 has 8 devices"):
        predict({**TWO_DEVICES, "num_devices": 9}, "dgx1-v100", 1e-9, 1e-9)


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 10**6), st.integers(0, 3), st.floats(0, 1e6))
def test_more_of_anything_is_never_faster(work, combine, sent, num_supersteps, which, more):
    amounts = [work, combine, sent, num_supersteps]
    raised = list(amounts)
    raised[which] += int(more) if which == 3 else more
    assert bsp_seconds(*raised, LINKS) >= bsp_seconds(*amounts, LINKS)


@pytest.mark.parametrize(
    "change",
    [{"bandwidth": [[1e10 if i == j else 5e8 for j in range(3)] for i in range(3)]}, {"barrier_seconds": 2e-4}],
)
def test_worse_links_are_slower(change):
    slower = replace(LINKS, **change)
    assert bsp_seconds(1, 1, 1e6, 10, slower) > bsp_seconds(1, 1, 1e6, 10, LINKS)


def test_prediction_takes_the_slowest_device_of_each_superstep():
    found = predict(TWO_DEVICES, LINKS, seconds_per_edge=1e-3, seconds_per_item=1e-2)
    assert found.work == pytest.approx((300 + 500) * 1e-3)
    assert found.combine == pytest.approx((10 + 20) * 1e-2)
    assert found.transfer == pytest.approx((4000 + 8000) * 1e-9)
    assert found.synchronise == pytest.approx(2 * 1e-4)
    assert found.total == pytest.approx(found.work + found.combine + found.transfer + found.synchronise)
    assert found.total == bsp_seconds(found.work, found.combine, 12000, 2, LINKS)


def test_prediction_from_totals_shares_them_equally():
    found = predict(without(TWO_DEVICES, "supersteps"), LINKS, 1e-3, 1e-2)
    assert found.work == pytest.approx(1100 / 2 * 1e-3)
    assert found.combine == pytest.approx(30 / 2 * 1e-2)
    assert found.transfer == pytest.approx(13000 / 2 * 1e-9)
    assert found.synchronise == pytest.approx(2e-4)


def test_supersteps_that_were_dropped_are_shared_equally():
    found = predict({**TWO_DEVICES, "supersteps": TWO_DEVICES["supersteps"][:1]}, LINKS, 1e-3, 1e-2)
    assert found.work == pytest.approx((300 + 700 / 2) * 1e-3)
    assert found.synchronise == pytest.approx(2e-4)


@given(st.lists(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_totals_give_a_lower_bound(edges):
    run = stats([superstep(row, [0] * 3, row) for row in edges])
    full = predict(run, LINKS, 1e-9, 1e-9)
    least = predict(without(run, "supersteps"), LINKS, 1e-9, 1e-9)
    assert least.total <= full.total * (1 + 1e-12)


def test_unit_costs_are_in_seconds():
    cheap = predict(TWO_DEVICES, LINKS, 1e-3, 1e-2)
    dear = predict(TWO_DEVICES, LINKS, 2e-3, 3e-2)
    assert dear.work == pytest.approx(2 * cheap.work)
    assert dear.combine == pytest.approx(3 * cheap.combine)
    assert (dear.transfer, dear.synchronise) == (cheap.transfer, cheap.synchronise)


def test_empty_run_takes_no_time():
    nothing = {"edges_visited": 0, "items_combined": 0, "bytes_sent": 0, "num_supersteps": 0, "supersteps": []}
    assert predict(nothing, "pcie-k40-quad", 1e-9, 1e-9) == Breakdown(0, 0, 0, 0)


@pytest.mark.parametrize("kept", ["full", "totals"])
def test_prediction_of_a_real_run(kept):
    counts = shoal.bfs(shoal.generate.grid(8, 8), 0, stats=kept).stats.to_dict()
    found = predict(json.loads(json.dumps(counts)), "pcie-k40-quad", 1e-9, 1e-9)
    assert found.work == pytest.approx(counts["edges_visited"] * 1e-9)
    assert found.synchronise == pytest.approx(counts["num_supersteps"] * 66.8e-6)
    assert found.combine == found.transfer == 0


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "many", None])
def test_impossible_amounts(position, value):
    names = ["work_seconds", "items_combined_seconds", "bytes_sent", "num_supersteps"]
    amounts = [1, 1, 1, 1]
    amounts[position] = value
    with pytest.raises(ArgumentError, match=names[position]):
        bsp_seconds(*amounts, LINKS)


@pytest.mark.parametrize("name", ["seconds_per_edge", "seconds_per_item"])
def test_impossible_unit_costs(name):
    with pytest.raises(ArgumentError, match=name):
        predict(TWO_DEVICES, LINKS, **{"seconds_per_edge": 1e-9, "seconds_per_item": 1e-9, name: -1})


@pytest.mark.parametrize("key", ["edges_visited", "items_combined", "bytes_sent", "num_supersteps"])
def test_missing_count(key):
    with pytest.raises(ArgumentError, match=f"no '{key}'"):
        predict(without(TWO_DEVICES, key), LINKS, 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges_visited": 5}, r"edges_visited=5 .*1100"),
        ({"bytes_sent": -1}, "bytes_sent=-1"),
        ({"num_devices": 0}, "num_devices=0"),
        ({"num_supersteps": 1.5}, r"num_supersteps=1\.5"),
        ({"supersteps": [{"edges_visited": 3}]}, "edges_visited=3.*a list over the devices"),
        ({"supersteps": [7]}, "a list over the devices"),
    ],
)
def test_counts_that_cannot_be(changes, message):
    with pytest.raises(ArgumentError, match=message):
        predict({**TWO_DEVICES, **changes}, LINKS, 1e-9, 1e-9)


def test_stats_that_are_no_dict():
    with pytest.raises(ArgumentError, match=r"stats_dict=.*to_dict"):
        predict([1, 2], LINKS, 1e-9, 1e-9)


def test_examples():
    found = doctest.testmod(bsp)
    assert found.attempted
    assert found.failed == 0


def test_model_is_public():
    assert shoal.model is model
    with pytest.raises(AttributeError, match="'modle'"):
        _ = shoal.modle


def test_model_is_there_without_being_imported():
    code = "import shoal; print(shoal.model.find_topology('dgx2-v100').name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dgx2-v100"]
