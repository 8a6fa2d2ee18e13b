# SPDX-License-Identifier: Apache-2.0
"""GPUs that are none, with streams: what is given to one is done late, in any order that its events allow.

Whoever asks whether an event is done lets the machine go on by a few steps, of streams chosen at random.  So what does
not wait for what it needs finds something else there, sooner or later.  Copies look that the memory they read and write
is still somebody's, and that the host's part is page-locked.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import sys
import threading
import types
import weakref
from collections import deque

import numpy as np

from cuda_fake import FakeArray, FakeGPU
from shoal.backends.cuda.device import find_device

KINDS = {1: "host to device", 2: "device to host", 3: "device to device"}
_ILLEGAL_ADDRESS = 700  # as CUDA counts its errors


class StreamArray(FakeArray):
    """An array with an address on a GPU of some number."""

    number = 0

    def __array_finalize__(self, other):
        self.number = getattr(other, "number", 0)

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self):
        return types.SimpleNamespace(id=self.number)


class PinnedBytes(bytearray):
    """Page-locked memory of the host."""


class Stream:
    """What is to be done, in order."""

    def __init__(self, machine, number):
        self.machine, self.device_id, self.tasks = machine, number, deque()
        self.ptr = machine.name(self)

    def record(self, event=None):
        event = event or Event(self.machine)
        event.record(self)
        return event

    def wait_event(self, event):
        wanted = event.num_recorded
        self.machine.add(self, lambda: wanted in event.reached)

    def synchronize(self):
        self.machine.run_until(lambda: not self.tasks)

    def __enter__(self):
        self.machine.current_streams().append(self)
        return self

    def __exit__(self, *_):
        self.machine.current_streams().pop()


class Event:
    """Counts how often it was recorded, and keeps which of these records its streams have come to."""

    def __init__(self, machine):
        self.machine, self.num_recorded, self.reached = machine, 0, {0}
        self.ptr = machine.name(self)
        self.device_id = machine.current_number()
        machine.num_events += 1

    def record(self, stream):
        assert stream.device_id == self.device_id, "an event is recorded on its own GPU"
        self.num_recorded = number = self.num_recorded + 1

        def reach():
            self.reached.add(number)
            return True

        self.machine.add(stream, reach)

    def synchronize(self):
        wanted = self.num_recorded
        self.machine.run_until(lambda: wanted in self.reached)


class StreamGPUs(FakeGPU):
    """GPUs whose streams are late.

    An ``is_eager`` machine does all at once, for code that computes with arrays itself; what NumPy makes is nobody's.
    """

    def __init__(self, num_gpus=1, seed=0, is_eager=False):
        super().__init__()
        self.num_gpus, self.is_eager = num_gpus, is_eager
        self.random, self.lock, self.local = random.Random(seed), threading.RLock(), threading.local()
        self.things, self.numbers = weakref.WeakValueDictionary(), itertools.count(1)
        self.memory = {}  # the size of what is somebody's, by address
        self.pinned = {}  # and of the part of it that is page-locked
        self.copies = []  # the kind of each
        self.num_events, self.error = 0, None
        self.streams = []
        self.null_streams = [self._add_stream(number) for number in range(num_gpus)]

    # Streams and what they do

    def name(self, thing):
        """Return a number by which the runtime knows a stream or an event."""
        number = next(self.numbers)
        self.things[number] = thing
        return number

    def _add_stream(self, number):
        stream = Stream(self, number)
        self.streams.append(stream)
        return stream

    def add(self, stream, task):
        """Give a stream something to do: a function that is called until it returns something true."""
        with self.lock:
            stream.tasks.append(task)
            if self.is_eager:
                self.run_until(lambda: not stream.tasks)

    def launch(self, kernel):
        """Give the current stream a kernel, a function of nothing."""
        self.add(self.current_stream(), lambda: kernel() or True)

    def step(self):
        """Let a stream do what it has to do next; return whether one could."""
        with self.lock:
            for stream in self.random.sample(self.streams, len(self.streams)):
                if stream.tasks and self.error is None and self._try(stream.tasks[0]):
                    stream.tasks.popleft()
                    return True
            return False

    def _try(self, task):
        try:
            return task()
        except Exception as error:
            self.error = error  # from now on nothing is done, as after CUDA's sticky errors
            return False

    def run_until(self, is_over):
        with self.lock:
            while not is_over():
                moved = self.step()
                if self.error is not None:
                    raise RuntimeError(f"cudaErrorIllegalAddress: {self.error}")
                assert moved, "streams wait for one another"

    def query(self, number):
        with self.lock:
            for _ in range(self.random.randrange(4)):
                self.step()
            event = self.things[number]
            if self.error is not None:
                return _ILLEGAL_ADDRESS
            return 0 if event.num_recorded in event.reached else 600

    # The current device and stream of a thread

    def current_numbers(self):
        if not hasattr(self.local, "numbers"):
            self.local.numbers = [0]
        return self.local.numbers

    def current_number(self):
        return self.current_numbers()[-1]

    def current_streams(self):
        if not hasattr(self.local, "streams"):
            self.local.streams = [[stream] for stream in self.null_streams]
        return self.local.streams[self.current_number()]

    def current_stream(self):
        return self.current_streams()[-1]

    # Memory

    def take(self, array):
        owner = np.array(array)
        self.hold(owner, owner.ctypes.data, owner.nbytes, self.memory)
        made = owner.view(StreamArray)
        made.number = self.current_number()
        return made

    def hold(self, owner, address, size, where):
        where[address] = size
        weakref.finalize(owner, where.pop, address, None)

    def alloc_pinned_memory(self, size):
        memory = PinnedBytes(size)
        address = ctypes.addressof((ctypes.c_char * size).from_buffer(memory))
        self.hold(memory, address, size, self.pinned)
        return memory

    def is_within(self, where, address, size):
        if self.is_eager and where is self.memory:
            return True
        return any(begin <= address and address + size <= begin + held for begin, held in tuple(where.items()))

    def copy(self, dst, src, size, kind, stream):
        dst_in, src_in = self.memory if kind != 2 else self.pinned, self.memory if kind != 1 else self.pinned
        assert self.is_within(src_in, src, size), f"{KINDS[kind]}: from where it must not be"

        def move():
            assert self.is_within(dst_in, dst, size), f"{KINDS[kind]}: to what nobody has any more"
            assert self.is_within(src_in, src, size), f"{KINDS[kind]}: of what nobody has any more"
            ctypes.memmove(dst, src, size)
            return True

        self.copies.append(KINDS[kind])
        self.add(self.things[stream], move)

    def copy_to_peer(self, dst, dst_number, src, src_number, size, stream):
        self.copy(dst, src, size, 3, stream)
        self.copies[-1] = "peer"

    # CuPy

    def cupy(self):
        cupy = super().cupy()
        machine = self

        class Device:
            def __init__(self, number=None):
                self.id = machine.current_number() if number is None else number

            def __enter__(self):
                machine.current_numbers().append(self.id)

            def __exit__(self, *_):
                machine.current_numbers().pop()

        class NullStream:
            def __enter__(self):
                machine.null_streams[machine.current_number()].__enter__()

            def __exit__(self, *_):
                machine.current_streams().pop()

        class NewStream:
            null = NullStream()

            def __new__(cls, non_blocking=False):
                assert non_blocking, "or else all would wait for the null stream"
                return machine._add_stream(machine.current_number())

        def as_array(items):
            return items if isinstance(items, StreamArray) else self.take(items)

        def new_event(disable_timing=False):
            assert disable_timing
            return Event(machine)

        def without_gaps(array):
            return array if array.flags.c_contiguous else self.take(array)

        cupy.asarray, cupy.ascontiguousarray = as_array, without_gaps
        cupy.empty = lambda length, dtype: self.take(
            np.full(length * np.dtype(dtype).itemsize, 0xAB, np.uint8).view(dtype)
        )
        cuda, runtime = cupy.cuda, cupy.cuda.runtime
        cuda.Device, cuda.Stream, cuda.Event = Device, NewStream, new_event
        cuda.get_current_stream, cuda.alloc_pinned_memory = self.current_stream, self.alloc_pinned_memory
        runtime.getDeviceCount = lambda: self.num_gpus
        runtime.eventQuery, runtime.memcpyAsync, runtime.memcpyPeerAsync = self.query, self.copy, self.copy_to_peer
        runtime.memoryTypeHost = 1
        runtime.memcpyHostToDevice, runtime.memcpyDeviceToHost, runtime.memcpyDeviceToDevice = 1, 2, 3
        runtime.pointerGetAttributes = lambda address: types.SimpleNamespace(
            type=int(self.is_within(self.pinned, address, 1))
        )
        return cupy

    def install(self, monkeypatch):
        """Let shoal find these GPUs; return what stands for CuPy."""
        cupy = self.cupy()
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        find_device.cache_clear()
        return cupy
