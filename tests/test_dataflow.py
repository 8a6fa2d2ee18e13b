# SPDX-License-Identifier: Apache-2.0
"""Links, routers and policies: everything comes, once and in order, whatever the timing; nothing waits for ever."""

import random
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import assert_refused
from shoal.dataflow import (
    Context,
    DataflowError,
    Link,
    Router,
    broadcast,
    filter_array,
    first_available,
    reduction_tree,
    ring,
)
from shoal.errors import ArgumentError

pytestmark = pytest.mark.host_only("about threads of the host")

SOON_SECONDS = 5.0  # far more than any wait here takes


def contents(link):
    return [segment.data.tolist() for segment in link]


# Links


@given(st.lists(st.lists(st.integers(-9, 9), max_size=9), max_size=6), st.integers(1, 4), st.integers(1, 3))
def test_messages_come_in_packets_and_in_order(messages, packet_size, num_buffers):
    with Context() as context:
        link = Link(context.host, context.devices[0], packet_size, num_buffers)
        context.start(context.host, lambda: ([link.send(np.array(m, np.int64), m) for m in messages], link.shutdown()))
        found = [(segment.data.tolist(), segment.number, segment.metadata) for segment in link]
    expected = [(message[at : at + packet_size], number, message) for message in messages
                for number, at in enumerate(range(0, max(len(message), 1), packet_size))]  # fmt: skip
    assert found == expected


def test_only_so_many_packets_come_before_buffers_are_given_back():
    with Context() as context:
        link = Link(context.host, context.devices[0], packet_size=1, num_buffers=2)
        sent = link.send([5, 6, 7])
        asked = [link.receive() for _ in range(3)]
        first, second = (future.result(SOON_SECONDS) for future in asked[:2])
        assert not sent.is_done
        assert not asked[2].is_done
        assert second.wait().data.tolist() == [6]
        second.release()
        second.release()  # once is enough, twice is no harm
        assert asked[2].result(SOON_SECONDS).wait().data.tolist() == [7]
        assert sent.is_done
        assert first.wait().data.tolist() == [5]
        assert asked[0].result() is first


def test_an_array_may_change_when_it_has_been_sent():
    with Context() as context:
        link = Link(context.host, context.devices[0])
        items = np.arange(4)
        link.send(items).result(SOON_SECONDS)
        items[:] = 9
        link.shutdown()
        assert contents(link) == [[0, 1, 2, 3]]


def test_buffers_fit_whatever_type_is_sent():
    with Context() as context:
        link = Link(context.host, context.devices[0], num_buffers=1)
        context.start(context.host, lambda: (link.send([1]), link.send([0.5]), link.shutdown()))
        assert contents(link) == [[1], [0.5]]


# Routers


def devices_linked_to(context, router, source, **options):
    """A way from a source through a router to every device."""
    return Link(source, router, **options), [Link(router, device, **options) for device in context.devices]


def test_a_broadcast_reaches_everybody():
    with Context("cpu:3") as context:
        router = Router(context, 1, 3, broadcast)
        way, ends = devices_linked_to(context, router, context.host, packet_size=2)
        sent = way.send([1, 2, 3])
        way.shutdown()
        assert [contents(end) for end in ends] == [[[1, 2], [3]]] * 3
        assert sent.is_done


def test_the_first_that_has_room_gets_it():
    with Context("cpu:2") as context:
        router = Router(context, 1, 2, first_available)
        way, (one, other) = devices_linked_to(context, router, context.host, packet_size=1, num_buffers=1)
        way.send([1, 2, 3, 4])
        held = one.receive().result(SOON_SECONDS)
        way.shutdown()
        assert contents(other) == [[2], [3], [4]]  # nobody gives the other's buffer back
        assert held.wait().data.tolist() == [1]


def test_a_faster_device_gets_more():
    """Four times as fast, about four times as many: what a slow device has no room for waits for nobody."""
    counts = [0, 0]

    def work(place, link, seconds):
        for _ in link:
            time.sleep(seconds)
            counts[place] += 1

    with Context("cpu:2") as context:
        router = Router(context, 1, 2, first_available)
        way, ends = devices_linked_to(context, router, context.host, packet_size=1)
        for place, seconds in enumerate((0.02, 0.005)):
            context.start(context.devices[place], work, place, ends[place], seconds)
        way.send(np.arange(100))
        way.shutdown()
    assert sum(counts) == 100
    assert counts[1] >= 2 * counts[0]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_message_goes_round_a_ring(count):
    seen = []

    def hand_on(device, incoming, outgoing):
        for segment in incoming:
            seen.append((device.name, int(segment.data[0])))
            if segment.data[0] == 2 * count:
                break
            outgoing.send(segment.data + 1)
        for link in outgoing.dst.inputs:
            link.shutdown()

    with Context(f"cpu:{count + 1}") as context:
        devices = context.devices
        router = Router(context, count + 1, count + 1, ring(devices))
        into = [Link(device, router) for device in devices]
        out = [Link(router, device) for device in devices]
        for device, outgoing, incoming in zip(devices, into, out, strict=True):
            context.start(device, hand_on, device, incoming, outgoing)
        into[0].send([0])
    assert seen == [(f"cpu:{(place + 1) % (count + 1)}", place) for place in range(2 * count + 1)]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_tree_adds_up(count):
    def add(place, incoming, outgoing):
        total = place + 1
        for _ in range(sum(child < count for child in (2 * place + 1, 2 * place + 2))):
            pending = incoming.receive().result()
            total += int(pending.wait().data[0])
            pending.release()
        outgoing.send([total])
        outgoing.shutdown()

    with Context(f"cpu:{count}") as context:
        devices = context.devices
        router = Router(context, count, count + 1, reduction_tree(devices, context.host))
        into = [Link(device, router) for device in devices]
        out = [Link(router, device) for device in devices]
        end = Link(router, context.host)
        for place, device in enumerate(devices):
            context.start(device, add, place, out[place], into[place])
        assert contents(end) == [[count * (count + 1) // 2]]


@settings(max_examples=25)
@given(st.data())
def test_nothing_is_lost_or_doubled_whatever_the_timing(data):
    """Several sources, several destinations, and threads that sleep at random."""
    sources, sinks = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    to_all = data.draw(st.booleans())
    chooser = random.Random(data.draw(st.integers(0, 99)))
    pauses = [chooser.choice((0, 0, 0.0005)) for _ in range(64)]
    found = {}

    def produce(place, link):
        for number in range(20):
            time.sleep(pauses[(7 * place + number) % 64])
            link.send([100 * place + number])
        link.shutdown()

    def consume(place, link):
        found[place] = []
        for segment in link:
            time.sleep(pauses[(11 * place + len(found[place])) % 64])
            found[place] += segment.data.tolist()

    with Context(f"cpu:{sources + sinks}") as context:
        router = Router(context, sources, sinks, broadcast if to_all else first_available)
        ends = [Link(router, device, 1, 1) for device in context.devices[sources:]]
        ways = [Link(device, router, 1) for device in context.devices[:sources]]
        for place, end in enumerate(ends):
            context.start(end.dst, consume, place, end)
        for place, way in enumerate(ways):
            context.start(way.src, produce, place, way)
    expected = sorted(100 * place + number for place in range(sources) for number in range(20))
    if to_all:
        assert all(sorted(items) == expected for items in found.values())
    else:
        assert sorted(item for items in found.values() for item in items) == expected


# Failures


def raising(*_):
    raise RuntimeError("no more")


def run_with_a_waiting_worker(act):
    """Do something while a worker waits for what never comes."""
    with Context("cpu:2") as context:
        link = Link(context.host, context.devices[0])
        context.start(context.devices[0], contents, link)
        act(context, link)


def test_a_worker_that_fails_ends_everything_with_its_name():
    began = time.monotonic()
    with pytest.raises(DataflowError, match="at cpu:1: no more") as caught:
        run_with_a_waiting_worker(lambda context, link: context.start(context.devices[1], raising))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert time.monotonic() - began < 1.0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("shoal-cpu")]


def test_a_caller_that_fails_leaves_nobody_behind():
    with pytest.raises(KeyError, match="mine"):
        run_with_a_waiting_worker(lambda context, link: {}["mine"])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("shoal-cpu")]


def test_a_policy_that_fails_is_the_senders_error():
    with Context() as context:
        router = Router(context, 1, 1, raising)
        way, _ = devices_linked_to(context, router, context.host)
        with pytest.raises(RuntimeError, match="no more"):
            way.send([1])


def test_a_link_that_is_dropped():
    with pytest.raises(DataflowError, match=r"Link: host to cpu:0>: the cable was cut"):
        run_with_a_waiting_worker(lambda context, link: link.drop("the cable was cut"))


def test_a_wait_can_end_by_itself():
    with Context() as context:
        link = Link(context.host, context.devices[0])
        assert_refused(lambda: link.receive().result(0.01), "0.01 s", "host to cpu:0", error=DataflowError)
        link.shutdown()
        assert link.receive().result(SOON_SECONDS) is None


def link_all(context, router):
    return [Link(device, router) for device in context.devices]


REFUSED = {
    "an unknown device": (lambda context: Context("tpu"), ["devices='tpu'"]),
    "a link to itself": (lambda context: Link(context.host, context.host), ["host", "itself"]),
    "the same link again": (
        lambda context: [Link(context.host, context.devices[0]) for _ in range(2)],
        ["host", "cpu:0", "already"],
    ),
    "a link to elsewhere": (lambda context: Link(context.host, Context().host), ["contexts"]),
    "no packets": (lambda context: Link(context.host, context.devices[0], 0), ["packet_size=0", "at least 1"]),
    "no buffers": (lambda context: Link(context.host, context.devices[0], 1, 0), ["num_buffers=0", "at least 1"]),
    "two dimensions": (
        lambda context: Link(context.host, context.devices[0]).send([[1]]),
        ["2 dimensions"],
    ),
    "no policy": (lambda context: Router(context, 1, 1, "fast"), ["policy='fast'"]),
    "no inputs": (lambda context: Router(context, 0, 1, broadcast), ["num_inputs=0"]),
    "a router behind a router": (
        lambda context: Link(Router(context, 1, 1, broadcast, "a"), Router(context, 1, 1, broadcast, "b")),
        ["a and b", "routers"],
    ),
    "an input too many": (lambda context: link_all(context, Router(context, 1, 1, broadcast)), ["router", "1 inputs"]),
    "a number of dimensions": (lambda context: filter_array(3, np.isnan), ["0 dimensions"]),
    "empty segments": (lambda context: filter_array([1], np.isnan, segment_size=0), ["segment_size=0"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name):
    call, words = REFUSED[name]
    assert_refused(lambda: call(Context("cpu:2")), *words, error=ArgumentError)


MISUSED = {
    "after the end": (lambda link, router, context: (link.shutdown(), link.send([1])), ["shut down"]),
    "before it is linked": (lambda link, router, context: Link(context.host, router).send([1]), ["0 of 1 outputs"]),
    "nowhere": (
        lambda link, router, context: (
            setattr(router, "policy", {}),
            Link(router, context.devices[1]),
            Link(context.host, router).send([1]),
        ),
        ["nowhere", "host"],
    ),
    "elsewhere": (
        lambda link, router, context: (
            setattr(router, "policy", {context.host: [context.devices[0]]}),
            Link(router, context.devices[1]),
            Link(context.host, router).send([1]),
        ),
        ["cpu:0", "no link"],
    ),
}


@pytest.mark.parametrize("name", MISUSED)
def test_what_cannot_be_sent_is_said(name):
    call, words = MISUSED[name]
    context = Context("cpu:2")
    link, router = Link(context.host, context.devices[0]), Router(context, 1, 1, broadcast)
    assert_refused(lambda: call(link, router, context), *words, error=DataflowError)


# Filtering


@settings(max_examples=25)
@given(st.lists(st.integers(-50, 50), max_size=200), st.integers(1, 60), st.integers(1, 4))
def test_filtering_keeps_what_the_predicate_says(items, segment_size, num_devices):
    array = np.array(items, np.int32)
    found = filter_array(array, lambda part: part % 3 == 0, devices=f"cpu:{num_devices}", segment_size=segment_size)
    assert found.values.tolist() == [item for item in items if item % 3 == 0]
    assert found.values.dtype == np.int32
    assert sum(found.segments.values()) == -(-len(items) // segment_size)


@pytest.mark.parametrize(
    ("predicate", "words"),
    [(raising, "no more"), (lambda items: items, "int64"), (lambda items: np.array([True]), r"\(1,\) of bool")],
)
def test_a_predicate_that_is_none(predicate, words):
    began = time.monotonic()
    with pytest.raises(DataflowError, match=words):
        filter_array(np.arange(1000), predicate, devices="cpu:3", segment_size=10)
    assert time.monotonic() - began < SOON_SECONDS
