# SPDX-License-Identifier: Apache-2.0
"""Discovery: what is measured becomes a topology; only copies drive the clock, and GPUs look like CuPy's."""

import contextlib
import doctest
import sys
import types

import numpy as np
import pytest

from shoal import ArgumentError, ShoalError
from shoal.model import discover, discovery, load_topology

pytestmark = pytest.mark.host_only("GPUs are replaced by objects of Python")


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class FakeClock:
    """Stands still unless something is copied."""

    seconds = 0.0

    def perf_counter(self):
        return self.seconds


class FakeArray:
    """An array with an address."""

    def __init__(self, pointer):
        self.data = types.SimpleNamespace(ptr=pointer)


class FakeRuntime:
    """GPUs with links of given bandwidths, where a zero is none, and 1 GB/s through the host."""

    CUDARuntimeError = CUDARuntimeError
    latency_seconds = 1e-6
    num_allocated = 0

    def __init__(self, clock, links):
        self.clock, self.links = clock, links
        self.current, self.is_open = 0, set()

    def getDeviceCount(self):  # noqa: N802
        return len(self.links)

    def getDeviceProperties(self, number):  # noqa: N802
        return {"name": b"Fake GPU"}

    def deviceCanAccessPeer(self, here, there):  # noqa: N802
        return int(self.links[here][there] > 0)

    def deviceEnablePeerAccess(self, there):  # noqa: N802
        if (self.current, there) in self.is_open:
            raise CUDARuntimeError("cudaErrorPeerAccessAlreadyEnabled: peer access is already enabled")
        self.is_open.add((self.current, there))

    def deviceSynchronize(self):  # noqa: N802
        pass

    def memcpyPeer(self, target, to_device, source, from_device, num_bytes):  # noqa: N802
        assert (target[0], source[0]) == (to_device, from_device)
        assert target != source
        bandwidth = self.links[from_device][to_device] or 1e9
        self.clock.seconds += self.latency_seconds + num_bytes / bandwidth


def fake_cupy(clock, links):
    runtime = FakeRuntime(clock, links)

    @contextlib.contextmanager
    def in_device(number):
        before, runtime.current = runtime.current, number
        yield
        runtime.current = before

    def zeros(count, dtype):
        assert (count, dtype) == (discovery._GPU_BYTES, np.uint8)
        runtime.num_allocated += 1
        return FakeArray((runtime.current, runtime.num_allocated))

    cuda = types.SimpleNamespace(runtime=runtime, Device=in_device)
    return types.SimpleNamespace(cuda=cuda, zeros=zeros)


@pytest.fixture
def clock(monkeypatch):
    made = FakeClock()
    monkeypatch.setattr(discovery, "time", made)
    return made


@pytest.fixture
def gpus(monkeypatch, clock):
    """Put GPUs with these links in place of this machine's."""

    def put(links):
        cupy = fake_cupy(clock, links)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cupy.cuda.runtime

    return put


@pytest.fixture
def no_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def test_gpus_with_unequal_links(gpus):
    gpus([[1e12, 50e9, 0], [50e9, 1e12, 25e9], [0, 25e9, 2e12]])
    found = discover()
    assert found.name == "Fake GPU"
    assert found.num_links == ((0, 1, 0), (1, 0, 1), (0, 1, 0))
    assert (found.path(0, 1), found.path(0, 2)) == ("direct", "host")
    assert found.bandwidth[0] == pytest.approx((2e12, 50e9, 1e9), rel=1e-2)  # read and written: twice
    assert found.bandwidth[2][1] == pytest.approx(25e9, rel=1e-2)
    assert found.compute_scale == pytest.approx(0.5, rel=1e-2)
    assert found.latency_seconds == pytest.approx(1e-6, rel=1e-2)
    assert found.barrier_seconds == pytest.approx((1e-6, 2e-6, 3e-6), rel=1e-2)
    assert not found.is_switched


def test_gpus_on_a_switch(gpus):
    gpus([[1e12 if i == j else 450e9 for j in range(4)] for i in range(4)])
    found = discover("cuda")
    assert found.is_switched
    assert found.seconds_per_byte == pytest.approx(1 / 450e9, rel=1e-2)


def test_access_that_is_open_already(gpus):
    runtime = gpus([[1e12, 50e9], [50e9, 1e12]])
    runtime.is_open.add((0, 1))
    assert discover().links(0, 1) == 1
    assert runtime.is_open == {(0, 1), (1, 0)}


def test_some_of_the_gpus(gpus):
    runtime = gpus([[1e12 if i == j else 450e9 for j in range(4)] for i in range(4)])
    assert discover(num_devices=2).num_devices == 2
    assert runtime.num_allocated == 4
    assert discover(num_devices=1).seconds_per_byte == 0
    with pytest.raises(ArgumentError, match=r"num_devices=5 .*from 1 to 4"):
        discover(num_devices=5)


def test_cpu_is_measured_by_copies(monkeypatch, clock):
    def copy(target, source):
        target[...] = source
        clock.seconds += 1e-6 + source.nbytes / 10e9

    monkeypatch.setattr(discovery.np, "copyto", copy)
    found = discover("cpu", num_devices=3)
    assert found.num_devices == 3
    assert found.bandwidth[0] == pytest.approx((20e9, 10e9, 10e9), rel=1e-2)
    assert found.latency_seconds == pytest.approx(1e-6, rel=1e-2)
    assert found.compute_scale == pytest.approx(20e9 / 4e12, rel=1e-2)
    assert found.seconds_per_byte == pytest.approx(1 / 10e9, rel=1e-2)
    assert found.barrier_seconds[0] < found.barrier_seconds[1] == found.barrier_seconds[2]


def test_this_machine(tmp_path, no_gpus):
    found = discover()
    assert found.num_devices >= 1
    assert all(width > 0 for row in found.bandwidth for width in row)
    assert set(found.source) >= {"bandwidth", "latency_seconds", "barrier_seconds", "compute_scale"}
    found.save(tmp_path / "here.toml")
    assert load_topology(tmp_path / "here.toml") == found


def test_a_clock_that_sees_nothing(clock):
    assert discover("cpu", num_devices=1).bandwidth[0][0] > 0


def test_gpus_asked_for_where_there_are_none(no_gpus):
    with pytest.raises(ShoalError, match="CuPy"):
        discover("cuda")
    with pytest.raises(ArgumentError, match=r"kind='tpu'.*auto, cpu, cuda"):
        discover("tpu")
    with pytest.raises(ArgumentError, match="num_devices=0"):
        discover("cpu", num_devices=0)


def test_examples():
    found = doctest.testmod(discovery)
    assert found.attempted
    assert found.failed == 0
