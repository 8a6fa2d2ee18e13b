# SPDX-License-Identifier: Apache-2.0
"""Take samples of every library's kernels on one graph, interleaved, within a limit of time.

For each kernel and repetition every library has its turn with the same arguments.  The first sample of a library says
how often it is repeated; its answer is compared with shoal's, or with the first library's if shoal is not measured.
The limits are such that all libraries on kron20, kron22, urand20 and grid2000 take some 25 minutes on 2 cores.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from shoal.bench.answers import Answer, agree
from shoal.bench.environment import Cores, seconds_of_others
from shoal.bench.graphs import BenchmarkGraph, tiny_like
from shoal.bench.kernels import KERNELS, Kernel, choose_sources
from shoal.bench.peers import Peer, Reader
from shoal.bench.report import Cell

#: So long may the samples of one library, kernel and graph take; fewer repetitions are made of slow ones, ...
SECONDS_PER_CELL = 10.0
#: ... but no fewer than these, which a median needs, ...
LEAST_REPETITIONS = 3
#: ... unless the first sample took longer than this: then it is the only one.
SECONDS_PER_SAMPLE = 10.0
#: A graph that has taken so long, preparations included, gets no further repetitions: of every library one sample.
SECONDS_PER_GRAPH = 420.0
#: After a parallel region OpenMP's threads wait in a loop for the next; by then they have gone to sleep.
PAUSE_SECONDS = 0.02

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is to be measured, checked."""

    graphs: tuple[str, ...]
    kernels: tuple[str, ...]
    libraries: tuple[str, ...]
    repetitions: int
    num_sources: int

    def settings(self) -> dict[str, Any]:
        """Return plain values for the report."""
        return asdict(self)


@dataclass
class _Series:
    """The samples of one library, kernel and graph as they are taken."""

    library: str
    peer: Peer
    native: Any
    kernel: Kernel
    limit: int
    seconds: list[float] = field(default_factory=list)
    seconds_of_others: list[float] = field(default_factory=list)
    answer: Answer = field(default_factory=dict)
    failure: str = ""

    @property
    def is_finished(self) -> bool:
        return bool(self.failure) or len(self.seconds) >= self.limit

    def take(self, arguments: tuple, cores: Cores) -> None:
        """Take one sample; a library that fails is not asked again."""
        try:
            seconds, others, read = _time_call(self.peer, self.kernel.name, self.native, arguments, cores)
            if not self.seconds:
                self.answer = read()
                self.limit = min(self.limit, _affordable(seconds))
        except Exception as error:  # whatever another library raises must not end the run
            self.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            self.seconds.append(seconds)
            self.seconds_of_others.append(others)

    def to_cell(self, graph: str, reference: Answer) -> Cell:
        return Cell(
            graph=graph,
            kernel=self.kernel.name,
            library=self.library,
            seconds=tuple(self.seconds),
            seconds_of_others=tuple(self.seconds_of_others),
            answer=self.answer,
            agrees=agree(self.answer, reference, self.kernel.tolerance) if self.answer else None,
            note=self.peer.notes.get(self.kernel.name, ""),
            failure=self.failure,
        )


def measure_graph(
    subject: BenchmarkGraph, peers: dict[str, Peer], plan: Plan, sources: list[int], cores: Cores, say: Say
) -> list[Cell]:
    """Return a cell for every kernel and library."""
    deadline = time.perf_counter() + SECONDS_PER_GRAPH
    fit = [name for name in plan.kernels if not subject.reason_against(name)]
    natives = _prepare(subject, peers, fit, cores, say)
    cells = []
    for name in plan.kernels:
        kernel = KERNELS[name]
        able = [library for library in peers if name in fit and hasattr(peers[library], name)]
        series = [_Series(library, peers[library], natives[library], kernel, plan.repetitions) for library in able]
        if series:
            say(f"{subject.name}: measuring {kernel.title}")
        _interleave(series, kernel, sources, plan.repetitions, cores, deadline)
        cells += _finish(subject, name, series, list(peers))
    return cells


def _prepare(
    subject: BenchmarkGraph, peers: dict[str, Peer], kernels: list[str], cores: Cores, say: Say
) -> dict[str, Any]:
    natives = {}
    for library, peer in peers.items():
        say(f"{subject.name}: preparing {library}")
        _enter(peer, cores)
        _warm_up(peer, subject, kernels, cores)
        natives[library] = peer.prepare(subject.graph, kernels)
    return natives


def _warm_up(peer: Peer, subject: BenchmarkGraph, kernels: list[str], cores: Cores) -> None:
    """Let the library compile and start its threads on a tiny graph of the same types."""
    tiny = tiny_like(subject.graph)
    native = peer.prepare(tiny, kernels)
    sources = choose_sources(tiny, 16)
    for name in kernels:
        if hasattr(peer, name):
            with suppress(Exception):  # the first sample will raise it again, and it is reported there
                _time_call(peer, name, native, KERNELS[name].arguments(sources, 0), cores)


def _interleave(
    series: list[_Series], kernel: Kernel, sources: list[int], repetitions: int, cores: Cores, deadline: float
) -> None:
    for repetition in range(repetitions):
        if repetition > 0 and time.perf_counter() > deadline:
            return
        for one in series:
            if not one.is_finished:
                one.take(kernel.arguments(sources, repetition), cores)


def _time_call(peer: Peer, kernel: str, native: Any, arguments: tuple, cores: Cores) -> tuple[float, float, Reader]:
    """Return the time a call took, the processor time others used meanwhile, and the reader of its answer."""
    call = getattr(peer, kernel)
    _enter(peer, cores)
    time.sleep(PAUSE_SECONDS)
    was_collecting = gc.isenabled()
    gc.disable()  # a collection would fall on whichever library is running
    try:
        others, start = seconds_of_others(), time.perf_counter()
        read = call(native, *arguments)
        seconds = time.perf_counter() - start
        return seconds, max(0.0, seconds_of_others() - others), read
    finally:
        if was_collecting:
            gc.enable()


def _enter(peer: Peer, cores: Cores) -> None:
    if peer.uses_openmp:
        cores.pin()
    else:
        cores.release()


def _affordable(first_seconds: float) -> int:
    if first_seconds > SECONDS_PER_SAMPLE:
        return 1
    return max(LEAST_REPETITIONS, int(SECONDS_PER_CELL / max(first_seconds, 1e-9)))


def _finish(subject: BenchmarkGraph, kernel: str, series: list[_Series], libraries: list[str]) -> list[Cell]:
    """Compare the answers and make cells, with blank ones for libraries that lack the kernel."""
    reference = next((one.answer for one in series if one.answer), {})
    cells = {one.library: one.to_cell(subject.name, reference) for one in series}
    reason = subject.reason_against(kernel) or "the library has no such kernel"
    return [cells.get(library) or Cell(subject.name, kernel, library, note=reason) for library in libraries]
