# SPDX-License-Identifier: Apache-2.0
"""Dataflow between devices of a GPU: what is sent arrives, filters and components are the CPU's, failures end all."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import oracles
import shoal
from checks import assert_context_fails
from graphs import SPECIAL, random_graph
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

pytestmark = pytest.mark.usefixtures("way_out")

SOON_SECONDS = 20.0  # a first kernel of CuPy's is compiled
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "complex64",
          "complex128")  # fmt: skip


def items_of(length, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, length).astype(dtype)


def hand_on(incoming, outgoing, change=lambda data: data.copy()):
    for segment in incoming:
        outgoing.send(change(segment.data), metadata=segment.metadata)
    outgoing.shutdown()


def send_round(devices, messages, packet_size=1 << 16, num_buffers=2, change=lambda data: data.copy()):
    """Send messages from the host over every device and back."""
    found = {}
    with Context(devices) as context:
        stops = [context.host, *context.devices, context.host]
        ways = [Link(src, dst, packet_size, num_buffers) for src, dst in itertools.pairwise(stops)]
        for device, incoming, outgoing in zip(context.devices, ways[:-1], ways[1:], strict=True):
            context.start(device, hand_on, incoming, outgoing, change)

        def send():
            for number, message in enumerate(messages):
                ways[0].send(message, metadata=number)
            ways[0].shutdown()

        context.start(context.host, send)
        for segment in ways[-1]:
            found.setdefault(segment.metadata, []).append(segment.data.copy())
    return [np.concatenate(found[number]) for number in range(len(messages))]


# Links


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_comes_back(dtype):
    messages = [items_of(length, dtype, length) for length in (0, 1, 2, 1000, 65536, 65537, 300_000)]
    for found, sent in zip(send_round("cuda:0*2", messages), messages, strict=True):
        assert found.dtype == sent.dtype
        np.testing.assert_array_equal(found, sent)


@pytest.mark.parametrize("num_buffers", [1, 2, 3])
@pytest.mark.parametrize("packet_size", [1, 100, 1 << 20])
@pytest.mark.parametrize("devices", ["cuda", "cuda:0*2", "cuda:0*5"])
def test_buffers_are_not_mixed_up(devices, packet_size, num_buffers):
    """Every device works longer on a segment than copying it takes."""
    length = 300 if packet_size == 1 else 50_000 if packet_size == 100 else 5_000_000

    def change(data):
        for _ in range(20):
            data = data + 1
        return data

    message = np.arange(length)
    (found,) = send_round(devices, [message], packet_size, num_buffers, change)
    count = shoal.config.parse_devices(devices).num_devices
    np.testing.assert_array_equal(found, message + 20 * count)


def test_types_may_change_from_message_to_message():
    messages = [items_of(5000, dtype, seed) for seed, dtype in enumerate(DTYPES * 3)]
    for found, sent in zip(send_round("cuda:0*3", messages, 700, 1), messages, strict=True):
        assert found.dtype == sent.dtype
        np.testing.assert_array_equal(found, sent)


def test_copies_wait_for_kernels_that_still_write():
    import cupy

    with Context("cuda:0*2") as context:
        one, other = context.devices
        link, back = Link(one, other, 1 << 22), Link(other, context.host, 1 << 22)

        def produce():
            for number in range(20):
                items = cupy.zeros(1 << 22, cupy.int64)
                for _ in range(50):
                    items += number
                link.send(items)  # which nobody keeps
            link.shutdown()

        context.start(one, produce)
        context.start(other, hand_on, link, back)
        found = [(int(segment.data.min()), int(segment.data.max())) for segment in back]
    assert found == [(50 * number,) * 2 for number in range(20)]


def test_an_array_may_change_when_it_has_been_sent():
    import cupy

    with Context("cuda") as context:
        (device,) = context.devices
        link, back = Link(context.host, device, 1 << 20), Link(device, context.host, 1 << 20)
        items = np.arange(1 << 20)
        link.send(items).result(SOON_SECONDS)
        items[:] = -1
        pending = link.receive().result(SOON_SECONDS)
        segment = pending.wait()
        assert isinstance(segment.data, cupy.ndarray)
        sent = cupy.array(segment.data)
        back.send(sent).result(SOON_SECONDS)
        sent[:] = -1
        arrived = back.receive().result(SOON_SECONDS).wait(SOON_SECONDS)
        assert type(arrived.data) is np.ndarray
        np.testing.assert_array_equal(arrived.data, np.arange(1 << 20))


def test_lists_and_arrays_of_the_host_may_be_sent_from_a_device():
    with Context("cuda") as context:
        link = Link(context.devices[0], context.host)
        link.send([1, 2])
        link.send(np.array([0.5]))
        link.shutdown()
        assert [segment.data.tolist() for segment in link] == [[1, 2], [0.5]]


def test_memory_that_cannot_be_reached_is_staged(monkeypatch):
    from shoal.dataflow.memory import GPUMemory

    staged, pinned = [], GPUMemory.pinned
    monkeypatch.setattr(GPUMemory, "_reaches", lambda self, gpu: False)
    monkeypatch.setattr(GPUMemory, "pinned", lambda *given: staged.append(given) or pinned(*given))
    message = np.arange(200_000)
    (found,) = send_round("cuda:0*3", [message], 5000)
    np.testing.assert_array_equal(found, message)
    assert len(staged) >= 3 * 40  # from the host, and from one device to the next, twice


# Routers


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("policy", [broadcast, first_available])
def test_policies(policy, count):
    message = np.arange(100_000)
    with Context(f"cuda:0*{count}") as context:
        scatter = Router(context, 1, count, policy, "scatter")
        collect = Router(context, count, 1, first_available, "collect")
        into, back = Link(context.host, scatter, 1000), Link(collect, context.host, 1000)
        for device in context.devices:
            ways = Link(scatter, device, 1000), Link(device, collect, 1000)
            context.start(device, hand_on, *ways, lambda data: data * 3)
        context.start(context.host, lambda: (into.send(message), into.shutdown()))
        found = np.sort(np.concatenate([segment.data.copy() for segment in back]))
    times = count if policy is broadcast else 1
    np.testing.assert_array_equal(found, np.repeat(message * 3, times))


def test_a_ring_and_a_tree():
    import cupy

    def pass_on(incoming, outgoing, num_rounds):
        for segment in incoming:
            if int(segment.data[0]) >= num_rounds:
                break
            outgoing.send(segment.data + 1)
        for link in outgoing.dst.inputs:
            link.shutdown()

    with Context("cuda:0*3") as context:
        router = Router(context, 3, 3, ring(context.devices))
        into = [Link(device, router) for device in context.devices]
        out = [Link(router, device) for device in context.devices]
        for device, outgoing, incoming in zip(context.devices, into, out, strict=True):
            context.start(device, pass_on, incoming, outgoing, 30)
        into[0].send([0])

    def add(place, incoming, outgoing):
        total = cupy.asarray([place + 1])
        for _ in range(sum(child < 5 for child in (2 * place + 1, 2 * place + 2))):
            pending = incoming.receive().result()
            total = total + pending.wait().data
            pending.release()
        outgoing.send(total)
        outgoing.shutdown()

    with Context("cuda:0*5") as context:
        router = Router(context, 5, 6, reduction_tree(context.devices, context.host))
        ends = [(Link(router, device), Link(device, router)) for device in context.devices]
        end = Link(router, context.host)
        for place, device in enumerate(context.devices):
            context.start(device, add, place, *ends[place])
        assert [segment.data.tolist() for segment in end] == [[15]]


# Failures


assert_fails = functools.partial(assert_context_fails, devices="cuda:0*2", seconds=SOON_SECONDS)


def test_a_worker_that_fails():
    assert_fails(r"at cuda:0\.1: invalid literal", act=lambda context: context.start(context.devices[1], int, "none"))


def test_memory_that_runs_out():
    import cupy

    def act(context):
        context.start(context.devices[1], lambda: cupy.empty(1 << 50, cupy.uint8))

    assert_fails(r"at cuda:0\.1: .*[Mm]emory", act=act)


def test_a_link_that_is_dropped():
    assert_fails("the cable was cut", act=lambda context: context.host.outputs[0].drop("the cable was cut"))


def test_a_caller_that_fails():
    def act(context):
        Link(context.devices[1], context.host).send(np.arange(100_000))
        raise KeyError("mine")

    assert_fails("mine", act=act, error=KeyError)


def test_a_wait_can_end_by_itself():
    with Context("cuda") as context:
        link = Link(context.devices[0], context.host)
        with pytest.raises(DataflowError, match=r"0\.01 s"):
            link.receive().result(0.01)


def test_gpus_that_are_not_there():
    with pytest.raises(shoal.ArgumentError, match="is not there"):
        Context("cuda:99")
    with pytest.raises(shoal.ArgumentError, match="multiprocessors"):
        Context("cuda:0*1000")


# Filtering


@pytest.mark.parametrize("devices", ["cuda", "cuda:0*2", "cuda:0*4"])
@pytest.mark.parametrize(("length", "segment_size"), [(0, 10), (1, 10), (1000, 7), (1_000_000, 1 << 16), (300, 1000)])
def test_filtering_keeps_what_the_predicate_says(devices, length, segment_size):
    for dtype in ("int32", "float64"):
        items = items_of(length, dtype, 3)
        found = filter_array(items, lambda part: part % 3 == 0, devices=devices, segment_size=segment_size)
        np.testing.assert_array_equal(found.values, items[items % 3 == 0])
        assert found.values.dtype == items.dtype
        assert sum(found.segments.values()) == -(-length // segment_size)


def test_a_predicate_that_is_none():
    with pytest.raises(DataflowError, match="int64"):
        filter_array(np.arange(1000), lambda items: items, devices="cuda:0*3", segment_size=10)


# Components


def check_components(graph, devices):
    result = shoal.connected_components(graph, execution="async", devices=devices)
    expected = oracles.component_labels(graph)  # SciPy's
    np.testing.assert_array_equal(result.label, expected)
    assert result.count == len(np.unique(expected))
    assert result.label.dtype == graph.vertex_dtype
    return result


@pytest.mark.parametrize("count", range(1, 9))
def test_random_graphs(count):
    for seed in range(4):
        graph = random_graph(20_000, 5000 * 4**seed, seed=seed, directed=bool(seed % 2), skew=3.0)
        check_components(graph, f"cuda:0*{count}")


@pytest.mark.parametrize("name", SPECIAL)
def test_special_graphs(name):
    check_components(SPECIAL[name](), "cuda:0*2")


@pytest.mark.parametrize("portion_edges", [1000, 1 << 22])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_many_portions_and_packets(count, portion_edges, monkeypatch):
    from shoal.backends.cuda.trees import CUDATrees

    monkeypatch.setattr(CUDATrees, "portion_edges", portion_edges)
    monkeypatch.setattr(CUDATrees, "packet_labels", portion_edges)
    check_components(shoal.generate.rmat(15, 8, seed=count), f"cuda:0*{count}")
    order = np.random.default_rng(count).permutation(50_000)
    check_components(shoal.Graph.from_edges(order[:-1], order[1:], directed=True), f"cuda:0*{count}")


def test_larger_graphs():
    for graph in (shoal.generate.rmat(20, 16, seed=1, device="cuda"), shoal.generate.grid(1000, 1000, drop=0.4)):
        for devices in ("cuda", "cuda:0*4"):
            result = shoal.connected_components(graph, execution="async", devices=devices, validate=True)
            np.testing.assert_array_equal(result.label, shoal.connected_components(graph, devices="cpu").label)


def test_labels_may_stay_on_the_gpu():
    import cupy

    graph = random_graph(20_000, 15_000, seed=5)
    result = shoal.connected_components(graph, execution="async", devices="cuda:0*3", output="device", validate=True)
    assert isinstance(result.label, cupy.ndarray)
    np.testing.assert_array_equal(result.to_host().label, oracles.component_labels(graph))


def test_edges_are_on_the_gpu_once():
    import cupy

    graph = shoal.generate.rmat(16, 16, seed=2)
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        shoal.connected_components(graph, execution="async", devices="cuda:0*4")
    labels = graph.num_vertices * graph.vertex_dtype.itemsize
    assert pool.total_bytes() < 1.2 * graph.nbytes + 4 * labels  # workers' buffers are the default pool's


def test_what_a_device_did_is_counted():
    graph = random_graph(20_000, 40_000, seed=6)
    counts = shoal.connected_components(graph, execution="async", devices="cuda:0*3").stats.to_dict()
    assert counts["edges_visited"] == graph.num_edges
    assert counts["items_sent"] == 3 * graph.num_vertices
