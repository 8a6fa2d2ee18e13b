# SPDX-License-Identifier: Apache-2.0
"""The CPU as a device: compiles a program's phases with Numba and runs their loops on threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.backends.cpu.generator import PhaseSource, numba_signature, write_phase
from shoal.backends.cpu.modules import load_loop
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.graph import Graph
from shoal.operators import Recording, check_phase, record
from shoal.program import VERTEX_ID, Field, Phase, Program

# Starting two threads costs about 0.15 ms, as much as visiting a hundred thousand edges.
SMALL_EDGES = 1 << 17

_phases: dict[Any, LoadedPhase] = {}
_phases_lock = threading.Lock()


@dataclass(frozen=True)
class LoadedPhase:
    """A compiled phase."""

    loop: Callable
    source: PhaseSource


@dataclass
class Workspace:
    """Buffers of one run on one device; kept by the shard for the next run."""

    queue: np.ndarray
    bitmap_a: np.ndarray
    bitmap_b: np.ndarray
    remaining: np.ndarray
    levels: np.ndarray
    num_levels: int = 0

    @property
    def nbytes(self) -> int:
        return self.queue.nbytes + 3 * self.bitmap_a.nbytes + self.levels.nbytes

    def reserve_queue(self, length: int, *, num_kept: int) -> None:
        """Make the queue long enough; its first ``num_kept`` entries stay."""
        if len(self.queue) < length:
            kept, self.queue = self.queue[:num_kept], np.empty(length, self.queue.dtype)
            self.queue[:num_kept] = kept


@dataclass
class Shard:
    """A device's part of a graph: its edges by source, its incoming edges on demand, and buffers kept between runs."""

    graph: Graph
    device: CPUDevice
    workspaces: list[Workspace] = field(default_factory=list)
    _edges: dict[bool, tuple[np.ndarray, ...]] = field(default_factory=dict)

    @property
    def types(self) -> tuple[np.dtype, np.dtype, np.dtype | None]:
        """Element types of vertex ids, edge offsets and weights."""
        weights = self.graph.weights
        return self.graph.indices.dtype, self.graph.indptr.dtype, None if weights is None else weights.dtype

    def acquire_workspace(self) -> Workspace:
        """Return buffers nobody else uses, from an earlier run if there are any."""
        try:
            return self.workspaces.pop()
        except IndexError:
            words = (self.graph.num_vertices + 63) // 64
            queue = np.empty(0, self.graph.indices.dtype)
            first, second, remaining = np.empty((3, words), np.uint64)
            return Workspace(queue, first, second, remaining, np.empty(2, np.int64))

    def release_workspace(self, workspace: Workspace) -> None:
        """Keep the buffers for the next run."""
        self.workspaces.append(workspace)

    def edges(self, incoming: bool) -> tuple[np.ndarray, ...]:
        """Return indptr, indices, weights of the outgoing or incoming edges, as read-only plain arrays."""
        if incoming not in self._edges:
            graph = self.graph.reverse() if incoming else self.graph
            weights = graph.weights if graph.weights is not None else np.zeros(1, np.int32)
            arrays = [np.asarray(array).view(np.ndarray)[:] for array in (graph.indptr, graph.indices, weights)]
            for array in arrays:
                array.flags.writeable = False
            self._edges[incoming] = tuple(arrays)
        return self._edges[incoming]


class CPUDevice:
    """All or some cores of this machine as one device."""

    kind = "cpu"

    def __init__(self, num_threads: int | None = None) -> None:
        self.num_threads = num_threads or len(available_cores())

    def place(self, graph: Graph) -> Shard:
        """Return the graph as this device's shard; on a CPU nothing is copied."""
        return Shard(graph, self)

    def is_small(self, graph: Graph) -> bool:
        """Whether a superstep is too short to start threads for."""
        return graph.num_edges < SMALL_EDGES

    def threads_for(self, graph: Graph) -> int:
        """Return the number of threads that pays for this graph."""
        return 1 if self.is_small(graph) else self.num_threads

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype, fill: Any) -> np.ndarray:
        """Return a new array filled with one value, its pages touched by the device's threads."""
        array = np.empty(shape, dtype)
        if array.nbytes < 1 << 22 or self.num_threads == 1:
            array.fill(fill)
            return array
        from shoal.backends.cpu.kernels.fill import fill_part

        run_threads(fill_part, self.num_threads, array.reshape(-1), array.dtype.type(fill))
        return array

    def load(self, program: Program, phase: Phase, shard: Shard, direction: str = "auto") -> LoadedPhase:
        """Compile a phase for the types of a shard, or find it compiled."""
        recording = record(program, phase.step)
        if direction != "auto":
            _force_direction(recording, direction)
        check_phase(recording, phase)
        key = (_recording_key(recording, phase), shard.types)
        loaded = _phases.get(key)
        if loaded is None:
            loaded = _compile(program, recording, phase, *shard.types)
            with _phases_lock:
                _phases[key] = loaded
        return loaded


def _force_direction(recording: Recording, direction: str) -> None:
    """Make the advances that can go both ways go one."""
    for operator in recording.operators:
        if operator.options.get("direction") == "auto":
            operator.options["direction"] = direction


def field_dtype(declared: Field, vertex_dtype: np.dtype) -> np.dtype:
    """Return the element type of a field for a graph with ids of ``vertex_dtype``."""
    return np.dtype(vertex_dtype if declared.dtype == VERTEX_ID else declared.dtype)


def _recording_key(recording: Recording, phase: Phase) -> Any:
    """Return what tells two recordings apart: operators, rules, how frontiers flow between them, fields."""
    numbers = {id(op.output): i for i, op in enumerate(recording.operators) if op.output is not None}
    operators = tuple(
        (
            op.kind,
            None if op.frontier is None else numbers.get(id(op.frontier), op.frontier.kind),
            tuple((role, rule) for role, rule in op.rules.items()),
            op.into,
            op.combine,
            tuple(op.options.items()),
        )
        for op in recording.operators
    )
    result = None if recording.result is None else numbers.get(id(recording.result), recording.result.kind)
    return (
        operators, result, tuple(recording.fields.items()), phase.until, phase.begin, phase.keep, phase.joins is None
    )  # fmt: skip


def _compile(
    program: Program, recording: Recording, phase: Phase, vertex: np.dtype, edge: np.dtype, weight: np.dtype | None
) -> LoadedPhase:
    title = type(program).__name__
    dtypes = {name: field_dtype(declared, vertex) for name, declared in recording.fields.items()}
    source = write_phase(recording, phase, dtypes, is_weighted=weight is not None, title=title)
    signature = numba_signature(recording.fields, dtypes, source.partials, vertex, edge, weight)
    return LoadedPhase(load_loop(source, signature, title), source)
