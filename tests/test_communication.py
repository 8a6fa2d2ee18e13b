# SPDX-License-Identifier: Apache-2.0
"""Schedules of every communication strategy: everything arrives everywhere, and exactly once."""

from collections import Counter

import numpy as np
import pytest

from shoal import ArgumentError
from shoal.strategies.communication import COMMUNICATIONS, make_schedule

pytestmark = pytest.mark.host_only("schedules are tables: nothing is run")

MOST_DEVICES = 40
PLAIN = [name for name in COMMUNICATIONS if name != "butterfly"]
FORWARDS = {"selective": "own", "broadcast": "own", "butterfly": "all", "ring": "last"}


def every_schedule(num_devices):
    """Every strategy, with every fanout where that means something."""
    yield from (make_schedule(name, num_devices) for name in PLAIN)
    yield from (make_schedule("butterfly", num_devices, fanout) for fanout in range(1, num_devices + 1))


def exchange(schedule, contributions):
    """Follow a schedule; yield after each round what the devices hold, and what each peer sent to each device.

    Contributions are multisets; what is received is added, so nothing that comes twice is hidden.
    """
    devices = range(schedule.num_devices)
    held = [Counter(own) for own in contributions]
    last = [Counter(own) for own in contributions]
    for r in range(schedule.num_rounds):
        sent = {"own": contributions, "all": held, "last": last}[schedule.forwards]
        received = [[Counter(sent[peer]) for peer in schedule.peers(r, device)] for device in devices]
        last = [sum(messages, Counter()) for messages in received]
        held = [held[device] + last[device] for device in devices]
        yield held, received


@pytest.mark.parametrize("num_devices", range(1, MOST_DEVICES + 1))
def test_every_contribution_arrives_exactly_once(num_devices):
    contributions = [Counter({device: 1}) for device in range(num_devices)]
    complete = Counter(range(num_devices))
    for schedule in every_schedule(num_devices):
        held = contributions
        for held, _ in exchange(schedule, contributions):
            assert all(set(devices.values()) == {1} for devices in held), schedule.name
        assert all(devices == complete for devices in held), schedule.name


@pytest.mark.parametrize("num_devices", range(1, MOST_DEVICES + 1))
def test_table_is_well_formed(num_devices):
    for schedule in every_schedule(num_devices):
        indptr, peers = schedule.receive_indptr, schedule.receive_peers
        assert indptr.dtype == peers.dtype == np.int64
        assert len(indptr) == schedule.num_rounds * num_devices + 1
        assert indptr[0] == 0
        assert indptr[-1] == len(peers) == schedule.num_messages
        for row in range(len(indptr) - 1):
            found = peers[indptr[row] : indptr[row + 1]].tolist()
            assert found == sorted(set(found) - {row % num_devices})
            assert set(found) <= set(range(num_devices))
            assert len(found) <= schedule.max_peers


@pytest.mark.parametrize("num_devices", range(2, MOST_DEVICES + 1))
def test_butterfly_takes_as_many_rounds_as_its_radix_needs(num_devices):
    for fanout in range(1, num_devices + 1):
        schedule = make_schedule("butterfly", num_devices, fanout)
        radix = max(fanout, 2)
        assert radix ** (schedule.num_rounds - 1) < num_devices <= radix**schedule.num_rounds
        assert schedule.max_peers == radix - 1


@pytest.mark.parametrize(("radix", "num_rounds"), [(2, 1), (2, 5), (3, 3), (4, 2), (5, 2), (6, 2), (40, 1)])
def test_butterfly_over_a_power_of_its_radix_changes_one_digit_a_round(radix, num_rounds):
    num_devices = radix**num_rounds
    schedule = make_schedule("butterfly", num_devices, radix)
    assert schedule.num_rounds == num_rounds
    assert schedule.num_messages == num_devices * num_rounds * (radix - 1)
    for r in range(num_rounds):
        for device in range(num_devices):
            digit = device // radix**r % radix
            expected = [device + (other - digit) * radix**r for other in range(radix) if other != digit]
            assert schedule.peers(r, device).tolist() == expected


def test_butterfly_asks_the_last_member_of_a_block_that_ends_early():
    schedule = make_schedule("butterfly", 9)
    assert [schedule.peers(r, 8).tolist() for r in range(4)] == [[], [], [], [0]]
    assert [schedule.peers(3, device).tolist() for device in range(8)] == [[8]] * 8


@pytest.mark.parametrize(
    ("communication", "num_devices", "fanout", "num_rounds", "num_messages"),
    [
        ("butterfly", 16, 1, 4, 64),
        ("butterfly", 16, 2, 4, 64),
        ("butterfly", 16, 4, 2, 96),
        ("butterfly", 16, 16, 1, 240),
        ("butterfly", 9, 1, 4, 33),
        ("butterfly", 13, 1, 4, 50),
        ("broadcast", 16, 1, 1, 240),
        ("selective", 16, 1, 1, 240),
        ("ring", 16, 1, 15, 240),
    ],
)
def test_rounds_and_messages(communication, num_devices, fanout, num_rounds, num_messages):
    schedule = make_schedule(communication, num_devices, fanout)
    assert (schedule.num_rounds, schedule.num_messages) == (num_rounds, num_messages)


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_strategy_says_what_it_sends(communication):
    schedule = make_schedule(communication, 5)
    assert schedule.name == communication
    assert schedule.num_devices == 5
    assert schedule.forwards == FORWARDS[communication]
    assert schedule.is_routed == (communication == "selective")


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_one_device_has_nothing_to_exchange(communication):
    schedule = make_schedule(communication, 1)
    assert (schedule.num_rounds, schedule.num_messages, schedule.max_peers) == (0, 0, 0)
    assert schedule.receive_bound(1000) == 0
    assert schedule.receive_indptr.tolist() == [0]


@pytest.mark.parametrize("communication", COMMUNICATIONS)
def test_table_cannot_be_written(communication):
    schedule = make_schedule(communication, 4)
    for array in (schedule.receive_indptr, schedule.receive_peers):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def most_items_received(schedule, frontiers):
    """The most items a device receives in a round, where a message names each vertex once."""
    most = 0
    for _, received in exchange(schedule, frontiers):
        most = max(most, *(sum(len(message) for message in messages) for messages in received))
    return most


@pytest.mark.parametrize("num_devices", [2, 3, 5, 8, 9, 13, 16])
def test_receive_bound_holds_and_is_reached(num_devices):
    num_vertices = 30
    random = np.random.default_rng(num_devices)
    overlapping = [Counter(random.choice(num_vertices, 20, replace=False).tolist()) for _ in range(num_devices)]
    everything = [Counter(range(num_vertices))] * num_devices
    for schedule in every_schedule(num_devices):
        bound = schedule.receive_bound(num_vertices)
        assert most_items_received(schedule, overlapping) <= bound
        assert most_items_received(schedule, everything) == bound
        if schedule.name == "butterfly":
            assert bound == schedule.max_peers * num_vertices <= (num_devices - 1) * num_vertices


def test_receive_bound_of_a_butterfly_is_its_radix_less_one():
    assert make_schedule("butterfly", 16, 1).receive_bound(1000) == 1000
    assert make_schedule("butterfly", 16, 4).receive_bound(1000) == 3000
    assert make_schedule("ring", 16).receive_bound(1000) == 1000
    assert make_schedule("broadcast", 16).receive_bound(1000) == 15000


@pytest.mark.parametrize("communication", COMMUNICATIONS)
@pytest.mark.parametrize("fanout", [0, -1, 5, 1.5, "2", True, None])
def test_fanout_out_of_range(communication, fanout):
    with pytest.raises(ArgumentError, match=r"fanout=.*a whole number from 1 to 4"):
        make_schedule(communication, 4, fanout)


def test_unknown_communication():
    with pytest.raises(ArgumentError, match=r"communication='buterfly'.*did you mean 'butterfly'") as caught:
        make_schedule("buterfly", 4)
    assert all(name in str(caught.value) for name in COMMUNICATIONS)


@pytest.mark.parametrize("num_devices", [0, -3, 2.0, None])
def test_number_of_devices_out_of_range(num_devices):
    with pytest.raises(ArgumentError, match=r"num_devices=.*a whole number of at least 1"):
        make_schedule("ring", num_devices)


def test_number_of_vertices_out_of_range():
    with pytest.raises(ArgumentError, match=r"num_vertices=-1"):
        make_schedule("ring", 4).receive_bound(-1)
