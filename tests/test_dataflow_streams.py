# SPDX-License-Identifier: Apache-2.0
"""Dataflow between devices of GPUs, on a machine that has none: whatever streams do when, everything comes as sent."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuda_on_host
import oracles
import shoal
from checks import assert_context_fails, assert_refused
from cuda_streams import StreamGPUs
from graphs import graphs
from shoal.backends.cuda import trees
from shoal.backends.cuda.device import find_device
from shoal.dataflow import Context, DataflowError, Link, Router, broadcast, filter_array, first_available
from shoal.errors import ArgumentError, ShoalError

pytestmark = [
    pytest.mark.host_only("for machines without a GPU"),
    pytest.mark.usefixtures("way_out"),
]

SOON_SECONDS = 5.0


@pytest.fixture(autouse=True)
def no_gpu_is_left():
    yield
    find_device.cache_clear()


@pytest.fixture
def without_peers(monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.border.can_reach", lambda numbers: False)


@pytest.fixture
def with_peers(monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.border.can_reach", lambda numbers: True)


def hand_on(machine, cupy, incoming, outgoing, change):
    """Let a late kernel change every segment, and send what will have become of it."""
    for segment in incoming:
        result = cupy.empty(len(segment), segment.data.dtype)

        def kernel(result=result, data=segment.data):
            result[...] = change(data)

        machine.launch(kernel)
        outgoing.send(result, metadata=segment.metadata)
    outgoing.shutdown()


def run_pipeline(monkeypatch, devices, messages, packet_size, num_buffers, seed):
    """Send messages from the host over two devices, whose kernels double and add one, back to the host."""
    machine = StreamGPUs(2, seed)
    cupy = machine.install(monkeypatch)
    with Context(devices) as context:
        host, (one, other) = context.host, context.devices
        ways = [Link(*ends, packet_size, num_buffers) for ends in ((host, one), (one, other), (other, host))]
        context.start(one, hand_on, machine, cupy, ways[0], ways[1], lambda data: data * 2)
        context.start(other, hand_on, machine, cupy, ways[1], ways[2], lambda data: data + 1)

        def send():
            for number, message in enumerate(messages):
                items = np.array(message, np.int64)
                ways[0].send(items, metadata=number).result(SOON_SECONDS)
                items[:] = -99  # it has been copied
            ways[0].shutdown()

        context.start(host, send)
        found = [(segment.metadata, segment.data.tolist()) for segment in ways[2]]
    return machine, found


PATHS = ["cuda:0*2", "cuda:0,1", "cuda:1,0"]


@pytest.mark.parametrize("is_reachable", [True, False])
@pytest.mark.parametrize("devices", PATHS)
def test_kernels_and_copies_wait_for_what_they_need(devices, is_reachable, monkeypatch):
    monkeypatch.setattr("shoal.backends.cuda.border.can_reach", lambda numbers: is_reachable)

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(st.lists(st.integers(-9, 9), max_size=7), max_size=6), st.integers(1, 4), st.integers(1, 3),
        st.integers(0, 999),
    )  # fmt: skip
    def check(messages, packet_size, num_buffers, seed):
        _, found = run_pipeline(monkeypatch, devices, messages, packet_size, num_buffers, seed)
        expected = [
            (number, [2 * item + 1 for item in message[at : at + packet_size]])
            for number, message in enumerate(messages)
            for at in range(0, max(len(message), 1), packet_size)
        ]
        assert found == expected

    check()


def kinds_of_copies(monkeypatch, devices):
    machine, _ = run_pipeline(monkeypatch, devices, [[1, 2]], 2, 2, seed=1)
    return machine.copies


def test_one_gpu_copies_by_itself(monkeypatch):
    assert kinds_of_copies(monkeypatch, "cuda:0*2") == ["host to device", "device to device", "device to host"]


def test_gpus_within_reach_copy_directly(monkeypatch, with_peers):
    assert kinds_of_copies(monkeypatch, "cuda:0,1") == ["host to device", "peer", "device to host"]


def test_gpus_out_of_reach_copy_through_the_host(monkeypatch, without_peers):
    there_and_back = ["host to device", "device to host"]
    assert kinds_of_copies(monkeypatch, "cuda:0,1") == there_and_back * 2


def test_what_is_page_locked_is_not_copied_first(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)
    with Context("cuda") as context:
        there = Link(context.host, context.devices[0])
        items = context.devices[0].memory.pinned(3, np.dtype(np.int64))
        items[:] = (1, 2, 3)
        num_locked = len(machine.pinned)
        there.send(items)
        assert len(machine.pinned) == num_locked
        there.send(np.arange(3))
        assert len(machine.pinned) == num_locked + 1


def test_where_buffers_are(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)
    with Context("cuda:0*2") as context:
        there, back = Link(context.host, context.devices[0]), Link(context.devices[0], context.host)
        there.send([1, 2])
        segment = there.receive().result(SOON_SECONDS).wait()
        assert hasattr(segment.data, "__cuda_array_interface__")
        back.send(segment.data)
        arrived = back.receive().result(SOON_SECONDS).wait(SOON_SECONDS)
        assert type(arrived.data) is np.ndarray
        assert context.devices[0].memory.is_pinned(arrived.data)
        assert arrived.data.tolist() == [1, 2]


def test_events_go_back_to_the_pool(monkeypatch):
    num_messages = 300
    machine, found = run_pipeline(monkeypatch, "cuda:0*2", [[1]] * num_messages, 1, 2, seed=3)
    assert len(found) == num_messages
    # Each message records nine.  How many are out at once, about 25, depends on the turns of threads.
    assert machine.num_events < num_messages


def test_routers_take_devices_of_gpus(monkeypatch, with_peers):
    machine = StreamGPUs(2, seed=5)
    cupy = machine.install(monkeypatch)
    for policy, times in ((broadcast, 3), (first_available, 1)):
        with Context("cuda:0*2,1") as context:
            scatter, collect = (
                Router(context, 1, 3, policy, "scatter"),
                Router(context, 3, 1, first_available, "collect"),
            )
            into, back = Link(context.host, scatter, 2), Link(collect, context.host, 2)
            for device in context.devices:
                ways = Link(scatter, device, 2), Link(device, collect, 2)
                context.start(device, hand_on, machine, cupy, *ways, lambda data: data + 1)
            into.send(np.arange(9))
            into.shutdown()
            found = sorted(item for segment in back for item in segment.data.tolist())
        assert found == sorted(list(range(1, 10)) * times)


# Failures


assert_fails = functools.partial(assert_context_fails, seconds=SOON_SECONDS)


def test_a_kernel_that_fails_ends_everything(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)

    def act(context):
        context.start(context.devices[1], machine.launch, lambda: 1 // 0)

    assert_fails(r"at cuda:0\.1: the GPU failed: cudaErrorIllegalAddress", "cuda:0*2", act)


def test_a_copy_that_fails_is_the_links_error(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)

    def act(context):
        machine.launch(lambda: 1 // 0)
        Link(context.devices[0], context.host).send([1, 2]).result(SOON_SECONDS)

    assert_fails(r"cuda:0 to host>: the GPU failed: cudaErrorIllegalAddress", "cuda", act)


def test_a_worker_that_fails_ends_everything(monkeypatch):
    StreamGPUs().install(monkeypatch)
    assert_fails(
        "at cuda:0.1: invalid literal", "cuda:0*2", lambda context: context.start(context.devices[1], int, "no number")
    )


def test_a_worker_that_fails_does_not_wait_for_its_stream(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)

    def work():
        machine.add(machine.current_stream(), lambda: False)
        raise RuntimeError("no more")

    assert_fails("at cuda:0: no more", "cuda", lambda context: context.start(context.devices[0], work))


def test_a_link_that_is_dropped(monkeypatch):
    StreamGPUs().install(monkeypatch)
    assert_fails(
        "host to cuda:0>: the cable was cut", "cuda", lambda context: context.host.outputs[0].drop("the cable was cut")
    )


def test_a_kernel_without_end_does_not_keep_a_failing_caller(monkeypatch):
    machine = StreamGPUs()
    machine.install(monkeypatch)

    def act(context):
        machine.add(machine.current_stream(), lambda: False)
        Link(context.devices[0], context.host).send([1])
        {}["mine"]

    assert_fails("mine", "cuda", act, error=KeyError)


def test_a_wait_for_a_stream_can_end_by_itself(monkeypatch):
    machine, is_over = StreamGPUs(), threading.Event()
    machine.install(monkeypatch)
    with Context("cuda") as context:
        link = Link(context.devices[0], context.host)
        machine.add(machine.current_stream(), is_over.is_set)  # a kernel that takes long
        sent = link.send([1, 2])
        pending = link.receive().result(SOON_SECONDS)
        assert not sent.is_done
        assert_refused(lambda: pending.wait(0.01), "0.01 s", "cuda:0 to host", error=DataflowError)
        is_over.set()
        assert pending.wait(SOON_SECONDS).data.tolist() == [1, 2]
        sent.result(SOON_SECONDS)


def test_items_of_another_gpu_are_refused(monkeypatch):
    machine = StreamGPUs(2)
    cupy = machine.install(monkeypatch)
    with cupy.cuda.Device(1):
        items = cupy.asarray(np.arange(3))
    with Context("cuda:0") as context:
        link = Link(context.devices[0], context.host)
        assert_refused(lambda: link.send(items), "number 1", "cuda:0", error=ArgumentError)
        there = Link(context.host, context.devices[0])
        assert_refused(lambda: there.send(items), "on a GPU", "host", error=ArgumentError)


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert_refused(lambda: Context("cuda"), "CuPy", "shoal[cuda]", error=ShoalError)
    StreamGPUs(2).install(monkeypatch)
    assert_refused(lambda: Context("cuda:2"), "cuda:2", "2 GPUs", error=ArgumentError)


def test_import_is_light():
    code = (
        "import sys, shoal.dataflow; Context = shoal.dataflow.Context; Context('cpu:2'); print('cupy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# Filtering and components


@pytest.mark.parametrize("devices", ["cuda", "cuda:0*3", "cuda:0,1"])
@pytest.mark.parametrize("segment_size", [1, 7, 1000])
def test_filtering_keeps_what_the_predicate_says(devices, segment_size, monkeypatch):
    StreamGPUs(2, is_eager=True).install(monkeypatch)
    items = np.random.default_rng(1).integers(-50, 50, 60).astype(np.int32)
    found = filter_array(items, lambda part: part % 3 == 0, devices=devices, segment_size=segment_size)
    np.testing.assert_array_equal(found.values, items[items % 3 == 0])
    assert found.values.dtype == np.int32
    assert sum(found.segments.values()) == -(-60 // segment_size)


class LateKernel:
    """A kernel that its stream runs when it comes to it."""

    def __init__(self, machine, kernel):
        self.machine, self.kernel = machine, kernel

    def over(self, num_items, *args):
        self.machine.launch(lambda: self.kernel.over(num_items, *args))


@pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ or clang++")
@pytest.mark.parametrize("devices", ["cuda", "cuda:0*2", "cuda:0*5", "cuda:0,1*2"])
def test_components_are_those_of_scipy(devices, monkeypatch, tmp_path_factory, without_peers):
    load = cuda_on_host.make_loader(tmp_path_factory.mktemp("kernels"))
    monkeypatch.setattr(trees.CUDATrees, "portion_edges", 5)
    monkeypatch.setattr(trees.CUDATrees, "packet_labels", 3)

    @settings(max_examples=20, deadline=None)
    @given(graphs(min_vertices=0, max_vertices=20, any_width=True), st.integers(0, 999))
    def check(graph, seed):
        machine = StreamGPUs(2, seed)
        machine.install(monkeypatch)
        monkeypatch.setattr(trees, "load_kernel", lambda text, name: LateKernel(machine, load(text, name)))
        result = shoal.connected_components(graph, execution="async", devices=devices, validate=True)
        np.testing.assert_array_equal(result.label, oracles.component_labels(graph))
        assert result.label.dtype == graph.vertex_dtype

    check()


@pytest.mark.skipif(cuda_on_host.COMPILER is None, reason="needs g++ or clang++")
def test_edges_are_on_a_gpu_once_and_labels_may_stay(monkeypatch, tmp_path):
    machine, load = StreamGPUs(is_eager=True), cuda_on_host.make_loader(tmp_path)
    machine.install(monkeypatch)
    monkeypatch.setattr(trees, "load_kernel", load)
    graph = shoal.generate.rmat(8, seed=1)
    how = {"execution": "async", "devices": "cuda:0*3"}
    result = shoal.connected_components(graph, output="device", **how)
    assert hasattr(result.label, "__cuda_array_interface__")
    np.testing.assert_array_equal(result.to_host().label, oracles.component_labels(graph))
    assert list(machine.memory.values()).count(graph.indices.nbytes) == 1
    kept = find_device(0).place_whole(graph).edges(incoming=False)
    assert find_device(0).place(graph).edges(incoming=False) is kept
