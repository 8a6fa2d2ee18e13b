# SPDX-License-Identifier: Apache-2.0
"""Fleet: the processes of an MPI job, and how they wait for one another: never for ever.

All requests are non-blocking, and `wait` completes them while it listens for *news*: messages of their own that a rank
is alive, or has failed and why.  Whoever waits for long, for others or for its own devices, says so now and then; who
has not been heard of for `timeout_seconds` is given up, and named.  Only the thread that called shoal speaks
(MPI_THREAD_FUNNELED), and all ranks must make the same calls in the same order, as in any MPI program.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, ShoalError
from shoal.machine import JOB_TIMEOUT, import_mpi, tell_job

#: Unless SHOAL_RANK_TIMEOUT says otherwise.
TIMEOUT_SECONDS = 30.0
#: What ranks do between runs, such as reading a graph, takes as long as it takes, and nobody speaks meanwhile.
OPENING_SECONDS = 600.0
#: A rank that waits speaks so many times before it would be given up, so that no single message matters.
_WORDS_PER_TIMEOUT = 6
#: A wait of less is spent looking, though nobody else is kept from the core: who is waited for may need just that one.
_LOOKING_SECONDS = 1e-3
#: Behind it who waits sleeps, for a part of the time that it has waited: so no wait is much longer for it.
_SLEEP_PART = 1 / 16
_SLEEP_SECONDS = 5e-5, 5e-4  # at least and at most
_WORKING_SECONDS = 0.1
_NEWS_BYTES = 4096
GIVEN_UP = 3  # the exit status of a job that a silent rank has ended
_ALIVE, _FAILED = b"A", b"F"
_NEWS, _DATA = 1, 2  # tags


class RankError(ShoalError):
    """Another process of the MPI job failed, or was not heard of for too long: the message names it."""


class Fleet:
    """All ranks of the job, as one of them sees them."""

    def __init__(self) -> None:
        self.mpi = import_mpi()
        self.comm = self.mpi.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        node = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        self.ranks_here = node.size  # that share this machine's cores
        node.Free()
        self.failure: str | None = None  # why nothing more can be told
        self.is_given_up = False  # a rank is silent: it will not come to the end of MPI either
        self.hosts: list[str] = self.comm.allgather(socket.gethostname())
        self._inbox = np.zeros(_NEWS_BYTES, np.uint8)
        self._coming = self._listen()
        self._said: list[tuple[Any, bytes]] = []  # on their way
        self.in_use: list[Any] = []  # whose arrays MPI may write to at any time, also when a run has failed
        now = time.monotonic()
        self._heard = [now] * self.size
        self._spoke = now
        tell_job(f"rank-{self.rank}", self.hosts[self.rank])
        atexit.register(self._close)  # before MPI's own end, which was registered before

    def _close(self) -> None:
        """Listen no more; where a rank is silent, end the job, which at its end would wait for it."""
        if self.is_given_up:
            sys.stdout.flush()
            sys.stderr.flush()
            self.mpi.COMM_WORLD.Abort(GIVEN_UP)
        self._coming.Cancel()
        self._coming.Wait()

    @property
    def timeout_seconds(self) -> float:
        """After how long a silent rank is given up."""
        text = os.environ.get(JOB_TIMEOUT) or str(TIMEOUT_SECONDS)
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise ArgumentError(f"{JOB_TIMEOUT}={text!r} is not allowed; it must be a number of seconds above 0")
        return seconds

    def name_of(self, rank: int) -> str:
        """Return a rank in words."""
        return f"rank {rank} on {self.hosts[rank]}"

    # Waiting

    def wait(self, requests: list[Any], timeout_seconds: float | None = None) -> None:
        """Complete requests, or say who failed or is silent."""
        testall = self.mpi.Request.Testall
        if testall(requests):
            return
        began = time.monotonic()
        limit = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        while not testall(requests):
            self.look(began, limit)
            rest(time.monotonic() - began)

    def look(self, began: float | None = None, limit: float = 0.0) -> None:
        """Hear news and speak if it is time; with ``began`` give up who has been silent since then for too long."""
        self._hear()
        now = time.monotonic()
        if now - self._spoke > self.timeout_seconds / _WORDS_PER_TIMEOUT:
            self._say(_ALIVE)
        if began is None or now - began <= limit:
            return
        silent = [r for r in range(self.size) if r != self.rank and now - max(self._heard[r], began) > limit]
        if silent:
            names = ", ".join(map(self.name_of, silent))
            self.failure = f"{names} was not heard of for {limit:g} seconds"
            self.is_given_up = True
            raise RankError(f"the run ended: {self.failure}")

    def _listen(self) -> Any:
        return self.comm.Irecv([self._inbox, self.mpi.BYTE], self.mpi.ANY_SOURCE, _NEWS)

    def _hear(self) -> None:
        status = self.mpi.Status()
        while self._coming.Test(status):
            source, text = status.Get_source(), self._inbox[: status.Get_count(self.mpi.BYTE)].tobytes()
            self._heard[source] = time.monotonic()
            self._coming = self._listen()
            if text[:1] == _FAILED:
                self.failure = f"{self.name_of(source)} failed: {text[1:].decode(errors='replace')}"
                raise RankError(self.failure)

    def _say(self, kind: bytes, text: str = "") -> None:
        message = (kind + text.encode())[:_NEWS_BYTES]
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._said = [(request, sent) for request, sent in self._said if not request.Test()]
        self._said += [(self.comm.Isend([message, self.mpi.BYTE], rank, _NEWS), message) for rank in others]
        self._spoke = time.monotonic()

    # Failing

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Tell the other ranks if what is done in this context fails, so that nobody waits for this one."""
        if self.failure is not None:
            raise RankError(f"the MPI job cannot go on since {self.failure}")
        try:
            yield
        except RankError:
            raise
        except BaseException as error:
            self.failure = str(error) or type(error).__name__
            self._say(_FAILED, self.failure)
            raise

    # Telling all ranks

    def gather(self, array: np.ndarray, timeout_seconds: float | None = None) -> list[np.ndarray]:
        """Return the arrays of all ranks, of one type and any length, by rank."""
        array = np.ascontiguousarray(array)
        sizes = np.zeros(self.size, np.int64)
        mine = np.array([array.nbytes], np.int64)
        self.wait([self.comm.Iallgather(mine, sizes)], timeout_seconds)
        ends = np.cumsum(sizes)
        everything = np.empty(int(ends[-1]), np.uint8)
        counts, displacements = sizes.tolist(), (ends - sizes).tolist()
        there = [everything, counts, displacements, self.mpi.BYTE]
        self.wait([self.comm.Iallgatherv([array, array.nbytes, self.mpi.BYTE], there)])
        pieces = [everything[begin : begin + size] for begin, size in zip(displacements, counts, strict=True)]
        return [piece.view(array.dtype).reshape(-1, *array.shape[1:]) for piece in pieces]

    def gather_text(self, text: str, *, is_opening: bool = False) -> list[str]:
        """Return the texts of all ranks; at an opening they may have been doing something else for long."""
        content = np.frombuffer(text.encode(), np.uint8)
        found = self.gather(content, OPENING_SECONDS if is_opening else None)
        return [piece.tobytes().decode() for piece in found]

    def do(self, work: Callable[[], Any]) -> Any:
        """Do what takes long on a thread of its own, and say meanwhile that this rank is alive."""
        with ThreadPoolExecutor(1, "shoal-work") as threads:
            doing = threads.submit(work)
            while True:
                with contextlib.suppress(TimeoutError):
                    return doing.result(_WORKING_SECONDS)
                if doing.done():  # by a TimeoutError of its own
                    return doing.result()
                self.look()

    def share_in_place(self, array: np.ndarray, counts: Sequence[int]) -> None:
        """Fill an array of which each rank has so many rows, one rank's behind the other's, with those of all."""
        row = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        sizes = [count * row for count in counts]
        displacements = (np.cumsum(sizes) - sizes).tolist()
        there = [array, sizes, displacements, self.mpi.BYTE]
        self.wait([self.comm.Iallgatherv(self.mpi.IN_PLACE, there)])

    def exchange(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Send an array of bytes to each rank, and return those that they have for this one."""
        sizes = np.array([array.nbytes for array in arrays], np.int64)
        coming = np.zeros(self.size, np.int64)
        self.wait([self.comm.Ialltoall(sizes, coming)])
        received = [np.empty(int(size), np.uint8) for size in coming]
        received[self.rank] = np.ascontiguousarray(arrays[self.rank]).view(np.uint8).reshape(-1)
        others = [rank for rank in range(self.size) if rank != self.rank]
        requests = [self.receive(received[rank], rank) for rank in others if coming[rank]]
        requests += [self.send(arrays[rank], rank) for rank in others if sizes[rank]]
        self.wait(requests)
        return received

    def send(self, array: np.ndarray, rank: int) -> Any:
        """Begin to send a contiguous array."""
        return self.comm.Isend([array, array.nbytes, self.mpi.BYTE], rank, _DATA)

    def receive(self, array: np.ndarray, rank: int) -> Any:
        """Begin to receive into a contiguous array."""
        return self.comm.Irecv([array, array.nbytes, self.mpi.BYTE], rank, _DATA)

    def prepare_sending(self, array: np.ndarray, rank: int) -> Any:
        """Return a request that sends an array as often as it is started."""
        return self.comm.Send_init([array, array.nbytes, self.mpi.BYTE], rank, _DATA)

    def prepare_receiving(self, array: np.ndarray, rank: int) -> Any:
        """Return a request that receives into an array as often as it is started."""
        return self.comm.Recv_init([array, array.nbytes, self.mpi.BYTE], rank, _DATA)


def rest(seconds: float) -> None:
    """Let others have the core, in a wait that has taken so long."""
    if seconds > _LOOKING_SECONDS:
        shortest, longest = _SLEEP_SECONDS
        time.sleep(min(max(seconds * _SLEEP_PART, shortest), longest))
    else:
        os.sched_yield()


@functools.cache
def find_fleet() -> Fleet:
    """Return the ranks of this process's job, once and for all."""
    return Fleet()
