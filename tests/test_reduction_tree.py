# SPDX-License-Identifier: Apache-2.0
"""The order in which devices leave: what is left has the best links, and every part has an owner that is left."""

import doctest
import itertools

import pytest

from shoal.model import TOPOLOGIES, Topology, reduction_order, reduction_tree

pytestmark = pytest.mark.host_only("about machines that are not here")

MESH = TOPOLOGIES["dgx1-v100"]


def direct_bandwidth(topology, devices):
    pairs = itertools.permutations(devices, 2)
    return sum(topology.bandwidth[i][j] for i, j in pairs if topology.links(i, j))


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_devices_leave_one_by_one(name):
    order = reduction_order(TOPOLOGIES[name])
    count = TOPOLOGIES[name].num_devices
    assert [reduction.num_devices for reduction in order] == list(range(count, 0, -1))
    assert order[0].owner == tuple(range(count))
    for before, after in itertools.pairwise(order):
        assert set(after.kept) < set(before.kept)
    assert order[-1].kept == (0,)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_part_has_an_owner_that_is_left(name):
    for reduction in reduction_order(TOPOLOGIES[name]):
        assert set(reduction.owner) == set(reduction.kept)
        assert all(reduction.owner[device] == device for device in reduction.kept)


@pytest.mark.parametrize("name", ["dgx1-v100", "m60-octo"])
def test_no_other_devices_have_more_bandwidth(name):
    """Leaving one by one is as good as choosing anew, on these."""
    topology = TOPOLOGIES[name]
    for reduction in reduction_order(topology):
        choices = itertools.combinations(range(topology.num_devices), reduction.num_devices)
        best = max(direct_bandwidth(topology, devices) for devices in choices)
        assert direct_bandwidth(topology, reduction.kept) == best


def test_two_of_the_mesh_have_two_links():
    two = reduction_order(MESH)[-2]
    assert MESH.links(*two.kept) == 2


def test_four_of_the_mesh_take_over_their_neighbours():
    four = reduction_order(MESH)[4]
    assert four.kept == (0, 1, 2, 3)
    assert four.owner == (0, 1, 2, 3, 0, 1, 2, 3)
    assert all(MESH.links(device, owner) for device, owner in enumerate(four.owner) if device != owner)


def test_a_direct_link_comes_before_a_wider_path():
    assert MESH.bandwidth[7][0] > MESH.bandwidth[7][3]
    assert reduction_order(MESH)[4].owner[7] == 3


def test_parts_are_shared_where_links_are_equal():
    two = reduction_order(TOPOLOGIES["dgx-h100"])[-2]
    assert two.kept == (0, 1)
    assert sorted(two.owner) == [0] * 4 + [1] * 4


def test_quadruplets_are_left_together():
    assert reduction_order(TOPOLOGIES["m60-octo"])[4].kept == (0, 1, 2, 3)


def test_slow_device_leaves_first():
    rows = [[100, 1, 9], [1, 100, 1], [9, 1, 100]]
    order = reduction_order(Topology("triangle", 3, rows))
    assert [reduction.kept for reduction in order] == [(0, 1, 2), (0, 2), (0,)]


def test_one_device():
    assert [reduction.kept for reduction in reduction_order(MESH.resized(1))] == [(0,)]


def test_examples():
    found = doctest.testmod(reduction_tree)
    assert found.attempted
    assert found.failed == 0
