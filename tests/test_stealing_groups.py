# SPDX-License-Identifier: Apache-2.0
"""Groups: as many devices as pay for meeting them, chosen as if all were tried, and not changed to and fro."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ArgumentError
from shoal.strategies.stealing import (
    SynchronisationEstimate,
    choose_group,
    evict,
    share_frontier,
    should_regroup,
)

pytestmark = pytest.mark.host_only("decisions are arrays: nothing is run")

#: Who owns whom where 1, 2, 3 or 4 of four devices take part.
GROUPS = [[0, 0, 0, 0], [0, 0, 2, 2], [0, 1, 2, 2], [0, 1, 2, 3]]
COSTS = np.where(np.eye(4, dtype=bool), 1e-9, 4e-9)


def seconds_of_every_group(loads, costs, groups, seconds_per_member, least_theft):
    """What each group takes, all of them tried."""
    seconds = []
    for size, owners in enumerate(np.array(groups), 1):
        shares = share_frontier(loads, evict(costs, owners), owners, least_theft)
        finish = np.where(shares > 0, costs * shares, 0).sum(axis=0).max()
        seconds.append(finish + size * seconds_per_member)
    return seconds


@st.composite
def cases(draw):
    """Loads, costs and nested groups of up to six devices."""
    size = draw(st.integers(1, 6))
    loads = np.array(draw(st.lists(st.one_of(st.just(0), st.integers(0, 10**7)), min_size=size, max_size=size)))
    entries = draw(st.lists(st.floats(1e-10, 1e-8), min_size=size * size, max_size=size * size))
    order = draw(st.permutations(range(size)))
    groups = [[device if device in order[:m] else order[0] for device in range(size)] for m in range(1, size + 1)]
    return loads, np.array(entries).reshape(size, size), groups, draw(st.floats(0, 1e-2)), draw(st.integers(1, size))


@given(case=cases(), margin=st.sampled_from([0.0, 0.1, 0.5]), least_theft=st.sampled_from([1, 10**5, 10**8]))
def test_best_group_is_found_unless_the_present_one_is_nearly_as_good(case, margin, least_theft):
    loads, costs, groups, seconds_per_member, present = case
    tried = seconds_of_every_group(loads, costs, groups, seconds_per_member, least_theft)
    decision = choose_group(*case, margin=margin, least_theft=least_theft)
    size = len(decision.members)
    assert decision.seconds_before == pytest.approx(tried[present - 1], rel=1e-12)
    assert decision.seconds_after == pytest.approx(tried[size - 1], rel=1e-12)
    assert decision.owners.tolist() == groups[size - 1]
    assert decision.shares.sum(axis=1).tolist() == loads.tolist()
    is_better = min(tried) < (1 - margin) * tried[present - 1] * (1 - 1e-12)
    if is_better:
        assert decision.seconds_after == pytest.approx(min(tried), rel=1e-12)
    if size != present:
        assert decision.seconds_after <= (1 - margin) * decision.seconds_before * (1 + 1e-12)


def test_group_shrinks_where_meeting_is_all_and_grows_where_there_is_work():
    few, many = [10, 0, 3, 2], [10**7, 10**6, 10**7, 10**6]
    decision = choose_group(few, COSTS, GROUPS, 1e-5)
    assert decision.members == [0]
    assert decision.reason == "from 4 to 1 devices: meeting takes longer than the work of the others"
    assert decision.shares.tolist() == [[10, 0, 0, 0], [0, 0, 0, 0], [3, 0, 0, 0], [2, 0, 0, 0]]
    assert decision.thefts == []
    assert decision.seconds_before == pytest.approx(4e-5, rel=1e-2)
    assert decision.seconds_after == pytest.approx(1e-5, rel=1e-2)
    decision = choose_group(many, COSTS, GROUPS, 1e-5, num_members=1)
    assert decision.members == [0, 1, 2, 3]
    assert decision.reason == "from 1 to 4 devices: there is work for more"


def test_group_between_the_extremes_keeps_its_successors():
    loads = [10**6, 1000, 10**6, 1000]
    decision = choose_group(loads, COSTS, GROUPS, 1e-4, least_theft=10**6)
    assert decision.to_dict()["owners"] == GROUPS[1]
    assert decision.shares[1].tolist() == [1000, 0, 0, 0]
    assert decision.shares[3].tolist() == [0, 0, 1000, 0]


def test_meeting_at_no_cost_evicts_nobody():
    assert choose_group([10**6] * 4, COSTS, GROUPS, 0.0).members == [0, 1, 2, 3]


def sizes_of_wavering_supersteps(size, margin):
    """How many of two devices take part: one takes 3,000 ns, 200 more or less, and two take 3,000."""
    for superstep in range(20):
        loads = [1000, 300 if superstep % 2 else 200]
        decision = choose_group(loads, COSTS[:2, :2], [[0, 0], [0, 1]], 1e-6, size, margin=margin)
        size = len(decision.members)
        yield size, decision.reason


@pytest.mark.parametrize("present", [1, 2])
def test_group_does_not_flap_as_loads_waver(present):
    kept = (present, f"no other group is clearly faster than {present} of the devices")
    assert set(sizes_of_wavering_supersteps(present, margin=0.1)) == {kept}
    assert [size for size, _ in sizes_of_wavering_supersteps(present, margin=0.0)] == [1, 2] * 10


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (GROUPS[:3], r"groups has the shape \(3, 4\); it must be \(4, 4\)"),
        ([[0, 0, 0, 4], *GROUPS[1:]], "groups names 0 to 4; devices are from 0 to 3"),
        ([[0, 0, 0, -1], *GROUPS[1:]], "groups names -1 to 3"),
        ([GROUPS[0], GROUPS[2], *GROUPS[2:]], r"groups\[1\]=\[0, 1, 2, 2\]; 2 devices must own themselves"),
        ([GROUPS[0], [0, 3, 2, 2], *GROUPS[2:]], r"groups\[1\]=\[0, 3, 2, 2\]; 2 devices"),
    ],
)
def test_groups_that_are_none_are_refused(groups, message):
    with pytest.raises(ArgumentError, match=message):
        choose_group([1, 2, 3, 4], COSTS, groups, 1e-6)


@pytest.mark.parametrize(("name", "value"), [("num_members", 5), ("num_members", 0), ("seconds_per_member", -1e-6)])
def test_numbers_out_of_range_are_refused(name, value):
    with pytest.raises(ArgumentError, match=f"{name}="):
        choose_group([1, 2, 3, 4], COSTS, GROUPS, **({"seconds_per_member": 1e-6} | {name: value}))


def test_group_may_change_after_a_short_superstep_or_if_somebody_is_left_out():
    assert should_regroup(0.9e-3, 4, 4, longest_seconds=1e-3)
    assert not should_regroup(1e-3, 4, 4, longest_seconds=1e-3)
    assert should_regroup(1.0, 3, 4, longest_seconds=1e-3)


def test_estimate_is_the_time_beside_computing_by_member():
    estimate = SynchronisationEstimate()
    assert estimate.seconds_per_member == 0
    estimate.add(superstep_seconds=10e-6, compute_seconds=2e-6, num_members=4)
    assert estimate.seconds_per_member == pytest.approx(2e-6)
    estimate.add(superstep_seconds=1e-6, compute_seconds=2e-6, num_members=4)  # clocks differ: no time at all
    assert estimate.seconds_per_member == pytest.approx(1e-6)


def test_estimate_does_not_mind_interruptions_but_follows_a_change():
    estimate = SynchronisationEstimate()
    for superstep in range(30):
        estimate.add(1.0 if superstep % 3 == 0 else 5e-6, 1e-6, 2)
    assert estimate.seconds_per_member == pytest.approx(2e-6)
    for _ in range(15):
        estimate.add(21e-6, 1e-6, 2)
    assert estimate.seconds_per_member == pytest.approx(10e-6)


def test_estimate_refuses_a_group_of_nobody():
    with pytest.raises(ArgumentError, match="num_members=0"):
        SynchronisationEstimate().add(1.0, 0.5, 0)
