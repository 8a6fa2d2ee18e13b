# SPDX-License-Identifier: Apache-2.0
"""Memory: where an endpoint's arrays are, and how packets get from one memory into another.

On the host a copy is over when the call returns.  From and to a GPU it is left to a stream of the link: it begins when
the streams of the sender and of the buffer's last receiver have come to a `Mark`, and has a mark of its own at its end.
A receiver on a GPU lets its stream wait for that one, a receiver on the host asks for it until it is there (the event
futures of Groute, section 3).  All that a copy reads or writes must be kept until its end: nobody else does.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from shoal.errors import ArgumentError
from shoal.machine import import_cupy

if TYPE_CHECKING:
    from shoal.backends.cuda.device import CUDADevice
    from shoal.config import DeviceSpec


class Mark:
    """A place in the work of a stream: an event of a pool, which has it back when nobody asks for the mark any more.

    Streams that wait for it do so from then on, whatever becomes of the event.
    """

    def __init__(self, event: Any, pool: deque[Any]) -> None:
        self.event, self._pool = event, pool

    def __del__(self) -> None:
        self._pool.append(self.event)

    @property
    def is_done(self) -> bool:
        """Whether the stream has come so far; what went wrong on its way is raised."""
        from shoal.backends.cuda.events import has_come

        return has_come(self.event)


@dataclass
class Buffer:
    """A receiver's room for a packet, and the marks after which it may be written."""

    array: Any
    marks: list[Mark] = field(default_factory=list)


@dataclass
class Copy:
    """A copy that a stream has been given: the mark of its end, and the arrays that must be there until then."""

    mark: Mark
    kept: tuple[Any, ...]


class Lane:
    """A link's own streams, one on each GPU that copies for it, made when they are first needed."""

    def __init__(self) -> None:
        self._streams: dict[int, Any] = {}

    def on(self, gpu: GPUMemory) -> Any:
        """Return the stream on a GPU, beside all others there."""
        if gpu.number not in self._streams:
            with gpu.device.use():
                self._streams.setdefault(gpu.number, gpu.cupy.cuda.Stream(non_blocking=True))
        return self._streams[gpu.number]


class Memory(Protocol):
    """What links ask of an endpoint's memory; ``after`` are marks that a copy must wait for."""

    name: str

    def as_array(self, items: Any) -> Any:
        """Return items as an array here."""

    def without_gaps(self, array: Any) -> Any:
        """Return an array, or a copy, whose items are side by side."""

    def allocate(self, length: int, dtype: np.dtype) -> Buffer:
        """Return room for a packet."""

    def mark(self) -> Mark | None:
        """Mark all that the calling thread has begun so far; None where that is done."""

    def join(self, mark: Mark | None) -> bool:
        """Let the calling thread's work go on behind a mark; False if it cannot yet."""

    def working(self, finish: Callable[[Mark], None]) -> AbstractContextManager[None]:
        """Return a context for a worker's thread; at its end ``finish`` gets the mark of all that the worker began."""

    def fill(self, array: Any, source: Any, data: Any, after: Sequence[Mark], lane: Lane) -> Copy | None:
        """Copy data of another memory into an array here; None if that is done already."""

    def copy_to_host(self, data: Any, array: Any, after: Sequence[Mark], lane: Lane) -> Copy | None:
        """Copy data of this memory into an array of the host."""

    def copy_to_gpu(self, data: Any, gpu: GPUMemory, array: Any, after: Sequence[Mark], lane: Lane) -> Copy:
        """Copy data of this memory into an array of a GPU."""


class HostMemory:
    """The host's memory: copies are done at once, and there is nothing to wait for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def as_array(self, items: Any) -> np.ndarray:
        """Return items as a NumPy array."""
        if hasattr(items, "__cuda_array_interface__"):
            raise ArgumentError(f"items are on a GPU; {self.name} takes those of the host")
        return np.asarray(items)

    def without_gaps(self, array: np.ndarray) -> np.ndarray:
        """Return an array, or a copy, whose items are side by side."""
        return np.ascontiguousarray(array)

    def allocate(self, length: int, dtype: np.dtype) -> Buffer:
        """Return room for a packet."""
        return Buffer(np.empty(length, dtype))

    def mark(self) -> None:
        """Return None: what a thread of the host has begun, it has done."""

    def join(self, mark: Mark | None) -> bool:
        """Whether a copy has ended."""
        return mark is None or mark.is_done

    def working(self, finish: Callable[[Mark], None]) -> AbstractContextManager[None]:
        """Return a context that changes nothing."""
        return contextlib.nullcontext()

    def fill(self, array: Any, source: Memory, data: Any, after: Sequence[Mark], lane: Lane) -> Copy | None:
        """Copy data of another memory into an array of the host."""
        return source.copy_to_host(data, array, after, lane)

    def copy_to_host(self, data: Any, array: Any, after: Sequence[Mark], lane: Lane) -> None:
        """Copy at once."""
        np.copyto(array, data)

    def copy_to_gpu(self, data: Any, gpu: GPUMemory, array: Any, after: Sequence[Mark], lane: Lane) -> Copy:
        """Copy by the GPU's stream, from page-locked memory: what is elsewhere is put there first."""
        staged = data if gpu.is_pinned(data) else gpu.pinned(len(data), data.dtype)
        if staged is not data:
            np.copyto(staged, data)
        return gpu.take_in(staged.ctypes.data, array, after, lane, kept=(data, staged))


class PinnedMemory(HostMemory):
    """The host's memory beside GPUs: they copy into page-locked buffers without anybody's help."""

    def __init__(self, name: str, gpu: GPUMemory) -> None:
        super().__init__(name)
        self._gpu = gpu

    def allocate(self, length: int, dtype: np.dtype) -> Buffer:
        """Return room for a packet, page-locked."""
        return Buffer(self._gpu.pinned(length, dtype))


class GPUMemory:
    """The memory of a GPU, as one device sees it; ``events`` is the pool of all devices there."""

    def __init__(self, device: CUDADevice, events: deque[Any]) -> None:
        self.cupy = import_cupy()
        self.device, self.number, self.name, self._events = device, device.number, device.name, events

    def as_array(self, items: Any) -> Any:
        """Return items as a CuPy array; those of the host are copied."""
        with self.device.use():
            array = self.cupy.asarray(items)
        if array.device.id != self.number:
            raise ArgumentError(f"items are on the GPU of number {array.device.id}; {self.name} takes its own")
        return array

    def without_gaps(self, array: Any) -> Any:
        """Return an array, or a copy, whose items are side by side."""
        with self.device.use():
            return self.cupy.ascontiguousarray(array)

    def allocate(self, length: int, dtype: np.dtype) -> Buffer:
        """Return room for a packet, in memory that is free when the null stream says so: CuPy's pool goes by streams.

        Threads have streams of their own for as long as they live, and what is free on one is not given to another.
        """
        with self.device.use(), self.cupy.cuda.Stream.null:
            return Buffer(self.cupy.empty(length, dtype), [self.mark()])

    def pinned(self, length: int, dtype: np.dtype) -> np.ndarray:
        """Return an array in page-locked memory of the host."""
        with self.device.use():
            memory = self.cupy.cuda.alloc_pinned_memory(length * dtype.itemsize)
        return np.frombuffer(memory, dtype, length)

    def is_pinned(self, data: np.ndarray) -> bool:
        """Whether an array of the host is in page-locked memory."""
        runtime = self.cupy.cuda.runtime
        with self.device.use():
            return runtime.pointerGetAttributes(data.ctypes.data).type == runtime.memoryTypeHost

    def mark(self) -> Mark:
        """Mark all that the calling thread's stream has been given."""
        with self.device.use():
            return self._record(self.cupy.cuda.get_current_stream())

    def _record(self, stream: Any) -> Mark:
        try:
            event = self._events.pop()
        except IndexError:
            with self.device.use():
                event = self.cupy.cuda.Event(disable_timing=True)
        mark = Mark(event, self._events)
        event.record(stream)
        return mark

    def join(self, mark: Mark | None) -> bool:
        """Let the calling thread's stream wait for a mark; the thread does not."""
        if mark is not None:
            with self.device.use():
                self.cupy.cuda.get_current_stream().wait_event(mark.event)
        return True

    @contextlib.contextmanager
    def working(self, finish: Callable[[Mark], None]) -> Iterator[None]:
        """Make the GPU and a stream the calling thread's own; what it left the stream to do is waited for."""
        with self.device.use(), self.cupy.cuda.Stream(non_blocking=True):
            yield
            finish(self.mark())

    def fill(self, array: Any, source: Memory, data: Any, after: Sequence[Mark], lane: Lane) -> Copy | None:
        """Copy data of another memory into an array of this GPU."""
        return source.copy_to_gpu(data, self, array, after, lane)

    def copy_to_host(self, data: Any, array: Any, after: Sequence[Mark], lane: Lane) -> Copy:
        """Copy into page-locked memory."""
        kind = self.cupy.cuda.runtime.memcpyDeviceToHost
        stream = self._behind(after, lane)
        self.cupy.cuda.runtime.memcpyAsync(array.ctypes.data, data.data.ptr, data.nbytes, kind, stream.ptr)
        return Copy(self._record(stream), (data, array))

    def copy_to_gpu(self, data: Any, gpu: GPUMemory, array: Any, after: Sequence[Mark], lane: Lane) -> Copy:
        """Copy to the same GPU, to one within reach or, if there is no way from one to the other, through the host."""
        runtime = self.cupy.cuda.runtime
        if not self._reaches(gpu):
            staged = self.pinned(len(data), data.dtype)
            first = self.copy_to_host(data, staged, after, lane)
            return gpu.take_in(staged.ctypes.data, array, [first.mark], lane, kept=(data, staged))
        stream = gpu._behind(after, lane)
        if gpu.number == self.number:
            kind = runtime.memcpyDeviceToDevice
            runtime.memcpyAsync(array.data.ptr, data.data.ptr, data.nbytes, kind, stream.ptr)
        else:
            there, here = (array.data.ptr, gpu.number), (data.data.ptr, self.number)
            runtime.memcpyPeerAsync(*there, *here, data.nbytes, stream.ptr)
        return Copy(gpu._record(stream), (data, array))

    def take_in(self, address: int, array: Any, after: Sequence[Mark], lane: Lane, kept: tuple[Any, ...]) -> Copy:
        """Copy from page-locked memory of the host."""
        kind = self.cupy.cuda.runtime.memcpyHostToDevice
        stream = self._behind(after, lane)
        self.cupy.cuda.runtime.memcpyAsync(array.data.ptr, address, array.nbytes, kind, stream.ptr)
        return Copy(self._record(stream), (*kept, array))

    def _behind(self, after: Sequence[Mark], lane: Lane) -> Any:
        """Return a link's stream on this GPU, which will go on when other streams have come to their marks."""
        stream = lane.on(self)
        for mark in after:
            stream.wait_event(mark.event)
        return stream

    def _reaches(self, gpu: GPUMemory) -> bool:
        if gpu.number == self.number:
            return True
        from shoal.backends.cuda.border import can_reach

        return can_reach({self.number, gpu.number})


def make_memories(spec: DeviceSpec) -> tuple[Memory, list[Memory]]:
    """Return the host's memory, and that of each device."""
    if spec.kind == "cpu":
        return HostMemory("host"), [HostMemory(f"cpu:{number}") for number in range(spec.num_devices)]
    from shoal.backends.cuda.device import find_devices

    pools: dict[int, deque[Any]] = {number: deque() for number in spec.numbers}
    gpus = [GPUMemory(device, pools[device.number]) for device in find_devices(spec.numbers)]
    return PinnedMemory("host", gpus[0]), [*gpus]


def one_dimensional(name: str, items: Any, memory: Memory) -> Any:
    """Return items as an array without gaps."""
    array = memory.as_array(items)
    if array.ndim != 1:
        raise ArgumentError(f"{name}: an array of {array.ndim} dimensions; 1 is allowed")
    return memory.without_gaps(array)
