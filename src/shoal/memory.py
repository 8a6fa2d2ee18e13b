# SPDX-License-Identifier: Apache-2.0
"""estimate_memory(): what a run will need, before it allocates.

A program's state follows from the fields it declares; a device's buffers from its phases, as `PhaseRun` lays them out.
An algorithm's function is a sequence of stages (a program, a pass for parents, the conversion of a result); each holds
arrays at the same time, and the largest counts.  Where the need depends on the data (vertices waiting at once in SSSP's
buckets, edges that add nothing to a path) the usual or the larger case is assumed, as said where it is.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal import algorithms
from shoal.algorithms.arguments import is_batch, make_config
from shoal.algorithms.betweenness import WIDTHS, Betweenness
from shoal.algorithms.bfs import BFS, BatchBFS, SmallestParents
from shoal.algorithms.components import Components
from shoal.algorithms.pagerank import PageRank
from shoal.algorithms.sssp import SSSP, FlatParents, TightParents, distance_dtype
from shoal.arrays import choose_edge_dtype, choose_vertex_dtype
from shoal.config import CONFIG_NAMES, RunConfig, parse_devices
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.graph import Graph
from shoal.program import Phase, Program, Scalar, Vertex

_INT64 = 8
_OBJECTS = 1 << 16  # what Python needs for its own objects, so that the estimate holds for small graphs too


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes a run needs at its peak: the graph (both directions where it needs them), a program's state, a device's
    buffers, and what the algorithm's function holds beside them (temporary arrays, a converted result)."""

    graph_bytes: int
    state_bytes: int
    buffer_bytes: int
    other_bytes: int

    @property
    def total_bytes(self) -> int:
        """All together."""
        return self.graph_bytes + self.state_bytes + self.buffer_bytes + self.other_bytes


@dataclass(frozen=True)
class _Sizes:
    """What the estimates depend on."""

    num_vertices: int
    num_edges: int
    is_directed: bool
    vertex_dtype: np.dtype
    edge_dtype: np.dtype
    weight_dtype: np.dtype | None
    distance_dtype: np.dtype
    may_be_flat: bool  # some edge may add nothing to a path's length

    @property
    def csr_bytes(self) -> int:
        weight = 0 if self.weight_dtype is None else self.weight_dtype.itemsize
        rows = (self.num_vertices + 1) * self.edge_dtype.itemsize
        return rows + self.num_edges * (self.vertex_dtype.itemsize + weight)


@dataclass(frozen=True)
class _Stage:
    """Arrays that are there at the same time."""

    state_bytes: int
    buffer_bytes: int
    other_bytes: int
    uses_in_edges: bool


def estimate_memory(
    graph_or_sizes: Graph | tuple, algorithm: str | Program, *, directed: bool | None = None, **options: Any
) -> MemoryEstimate:
    """Estimate what an algorithm needs, without running it.

    Parameters
    ----------
    graph_or_sizes : a graph, or (vertices, stored edges) or (vertices, stored edges, weights): True for whole numbers,
        or the weights' dtype
    algorithm : ``"bfs"``, ``"sssp"``, ``"cc"``, ``"bc"``, ``"pagerank"``, or a program of one's own
    directed : whether a graph given by its sizes is; False if not given
    **options : as the algorithm's function takes them, strategies too

    Examples
    --------
    >>> import shoal
    >>> from shoal.memory import estimate_memory
    >>> need = estimate_memory((1_000_000, 32_000_000), "bfs")
    >>> need.graph_bytes
    132000004
    >>> need.total_bytes - need.graph_bytes < 24 * 1_000_000
    True
    """
    sizes = _sizes_of(graph_or_sizes, directed)
    strategies = {name: options.pop(name) for name in list(options) if name in CONFIG_NAMES}
    device = _Device(sizes, make_config(strategies))
    if isinstance(algorithm, Program):
        stages = [device.stage(algorithm)]
    else:
        check_choice("algorithm", algorithm, _STAGES)
        _check_options(algorithm, options)
        stages = _STAGES[algorithm](sizes, device, options)
    largest = max(stages, key=lambda stage: stage.state_bytes + stage.buffer_bytes + stage.other_bytes)
    needs_reverse = sizes.is_directed and any(stage.uses_in_edges for stage in stages)
    graph_bytes = sizes.csr_bytes * (2 if needs_reverse else 1)
    return MemoryEstimate(graph_bytes, largest.state_bytes, largest.buffer_bytes, largest.other_bytes)


def available_memory_bytes() -> int:
    """Return what the machine has to give: Linux counts memory that caches would hand back, elsewhere all of it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _sizes_of(given: Graph | tuple, directed: bool | None) -> _Sizes:
    if isinstance(given, Graph):
        if directed is not None:
            raise ArgumentError(f"directed={directed!r} is not allowed with a graph; it is for sizes")
        weight = None if given.weights is None else given.weights.dtype
        may_be_flat = weight is not None and (weight.kind == "f" or given.min_weight == 0)
        return _Sizes(given.num_vertices, given.num_edges, given.is_directed, given.vertex_dtype, given.edge_dtype,
                      weight, distance_dtype(given), may_be_flat)  # fmt: skip
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise ArgumentError(f"graph_or_sizes={given!r} is not allowed; it must be a Graph, (vertices, stored edges) or "
                            "(vertices, stored edges, weights)")  # fmt: skip
    num_vertices = check_integer("number of vertices", given[0], 0)
    num_edges = check_integer("number of stored edges", given[1], 0)
    weight = _weight_dtype(given[2] if len(given) == 3 else False)
    vertex_dtype = choose_vertex_dtype(None, None, num_vertices)
    edge_dtype = choose_edge_dtype(None, vertex_dtype, num_edges)
    is_float = weight is not None and weight.kind == "f"
    # Of whole weights int32 distances are assumed: with their conversion to float64 they need the most.
    return _Sizes(num_vertices, num_edges, bool(directed), vertex_dtype, edge_dtype, weight,
                  weight if is_float and weight is not None else np.dtype(np.int32), is_float)  # fmt: skip


def _weight_dtype(weights: Any) -> np.dtype | None:
    if weights is False or weights is None:
        return None
    name = "int32" if weights is True else np.dtype(weights).name
    return np.dtype(check_choice("weights", name, ("int32", "float32", "float64")))


class _Device:
    """The device's share: state and buffers of programs on a graph of given sizes."""

    def __init__(self, sizes: _Sizes, config: RunConfig) -> None:
        from shoal.backends.cpu.backend import SMALL_EDGES, CPUDevice

        self.sizes, self.config = sizes, config
        threads = CPUDevice(parse_devices(config.devices).threads_per_device).num_threads
        self.num_threads = 1 if sizes.num_edges < SMALL_EDGES else threads

    def stage(self, program: Program, *, constants: int = 0, others: int = 0) -> _Stage:
        """Return a run of ``program``: ``constants`` are bytes of arrays it is given, ``others`` of those beside it."""
        buffers = temporary = queue = levels = earlier = 0
        uses_in_edges = False
        for phase in program.phases():
            source = self._source(program, phase)
            uses_in_edges |= source.uses_in_edges
            fixed, blocks = self._fixed_bytes(source), 0
            if source.is_ordered:
                queue, blocks = self._bucket_bytes()
                temporary = max(temporary, (queue + blocks) // 2)  # what was there before the blocks were doubled
            else:
                # The phase before is still there when a queue longer than its own is made.
                before, queue = queue, max(queue, self._queue_bytes(phase, source))
                levels = max(levels, self._level_bytes(phase))
                everywhere = _INT64 * self.sizes.num_vertices if _begins_everywhere(program, phase) else 0
                temporary = max(temporary, everywhere + earlier + (before if queue > before else 0))
            bitmaps = 2 * _INT64 * ((self.sizes.num_vertices + 63) // 64)
            buffers = max(buffers, queue + levels + bitmaps + blocks + fixed)
            earlier = fixed
        state = self._state_bytes(program) + constants
        return _Stage(state, buffers, others + temporary + _OBJECTS, uses_in_edges)

    def _source(self, program: Program, phase: Phase) -> Any:
        from shoal.backends.cpu.generator import write_phase
        from shoal.operators import record

        recording = record(program, phase.step)
        for operator in recording.operators:
            if operator.options.get("direction") == "auto":
                operator.options["direction"] = self.config.direction
        is_weighted = self.sizes.weight_dtype is not None
        return write_phase(recording, phase, is_weighted=is_weighted, title=type(program).__name__)

    def _state_bytes(self, program: Program) -> int:
        from shoal.backends.cpu.backend import field_dtype

        total = 0
        for declared in program.fields().values():
            if isinstance(declared, (Vertex, Scalar)):
                length = self.sizes.num_vertices * (declared.width or 1) if isinstance(declared, Vertex) else 1
                total += length * field_dtype(declared, self.sizes.vertex_dtype).itemsize
        return total

    def _queue_bytes(self, phase: Phase, source: Any) -> int:
        if phase.begin == "replay":
            return 0
        joins = phase.joins if source.is_sliding else 2
        return self.sizes.num_vertices * ((joins or 1) + source.num_regions) * self.sizes.vertex_dtype.itemsize

    def _level_bytes(self, phase: Phase) -> int:
        if not phase.keep:
            return 0
        return _INT64 * (self.sizes.num_vertices * (2 if phase.joins is None else phase.joins or 1) + 2)

    def _bucket_bytes(self) -> tuple[int, int]:
        """Return the queue's bytes and those of the blocks, doubled once as the many short distances of a hub need."""
        from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES, NUM_NEAR

        vertex = self.sizes.vertex_dtype.itemsize
        num_blocks = 2 * (1 + NUM_NEAR * self.num_threads + self.sizes.num_vertices // (4 * ENTRIES))
        blocks = num_blocks * (ENTRIES * vertex + 2 * _INT64)
        return 2 * num_blocks * vertex, blocks + self.num_threads * BINS_ROW * _INT64

    def _fixed_bytes(self, source: Any) -> int:
        """Control block, trace, outboxes, sums per block of vertices."""
        from shoal.backends.cpu.control import NUM_TRACE_COLUMNS, control_size
        from shoal.backends.cpu.kernels.vertices import BLOCK
        from shoal.backends.cpu.phase_run import OUTBOX, SMALL_TRACE_ROWS, TRACE_ROWS

        rows = TRACE_ROWS if self.num_threads > 1 else SMALL_TRACE_ROWS
        sums = -(-self.sizes.num_vertices // BLOCK) * source.num_partials
        outboxes = self.num_threads * OUTBOX * self.sizes.vertex_dtype.itemsize
        return _INT64 * (control_size(source.num_operators) + rows * NUM_TRACE_COLUMNS + sums) + outboxes


def _begins_everywhere(program: Program, phase: Phase) -> bool:
    """Whether the phase begins with every vertex: a list of them is made to fill the queue with."""
    return phase.begin == "all" or (phase.begin == "start" and not _returns_frontier(program))


def _returns_frontier(program: Program) -> bool:
    return "source" in " ".join(inspect.signature(program.start).parameters) or isinstance(program, FlatParents)


def _bfs_stages(sizes: _Sizes, device: _Device, options: dict[str, Any]) -> list[_Stage]:
    width = _batch_width(options.get("source"))
    vertex, count = sizes.vertex_dtype.itemsize, sizes.num_vertices
    if width is None:
        first = device.stage(BFS())
        kept = count * (4 + vertex)
    else:
        # Columns of a batch become rows: a copy, while the columns are still there.
        kept = count * width * (4 + vertex)
        first = device.stage(BatchBFS(width), others=kept)
        kept += first.state_bytes
    if not device.config.deterministic:
        return [first]
    return [first, device.stage(SmallestParents(), others=kept + count * vertex * (width or 0))]


def _batch_width(source: Any) -> int | None:
    return len(source) if source is not None and is_batch(source) else None


def _sssp_stages(sizes: _Sizes, device: _Device, options: dict[str, Any]) -> list[_Stage]:
    dtype, vertex, count = sizes.distance_dtype, sizes.vertex_dtype.itemsize, sizes.num_vertices
    wants_parents = options.get("parents", True)
    width = _batch_width(options.get("source")) or 0
    # An int32 distance becomes a float64 one, beside a mask of the unreachable; of a batch all are stacked at the end.
    result = count * ((_INT64 if dtype.kind == "i" else dtype.itemsize) + (vertex if wants_parents else 0))
    conversion = count * (_INT64 + 1) if dtype.kind == "i" else 0
    earlier = result * max(width - 1, 0)
    stages = [device.stage(SSSP(dtype), others=earlier)]
    if wants_parents:
        distance = count * dtype.itemsize
        programs: list[Program] = [TightParents(dtype, device.config.deterministic)]
        if sizes.may_be_flat:
            programs.append(FlatParents(dtype))
        stages += [device.stage(program, constants=distance, others=earlier) for program in programs]
    last = stages[-1]
    stages.append(_Stage(last.state_bytes, last.buffer_bytes, conversion + max(earlier, result * width * 2), False))
    return stages


def _components_stages(sizes: _Sizes, device: _Device, options: dict[str, Any]) -> list[_Stage]:
    return [device.stage(Components(can_skip=not sizes.is_directed))]


def _betweenness_stages(sizes: _Sizes, device: _Device, options: dict[str, Any]) -> list[_Stage]:
    sources = options.get("sources")
    count = sizes.num_vertices if sources is None else len(sources) if is_batch(sources) else 1
    count = options["samples"] if options.get("samples") is not None else count
    width = next((w for w in reversed(WIDTHS) if w <= count), WIDTHS[0])
    only = device.stage(Betweenness(width), others=_INT64 * (sizes.num_vertices + count))
    # Beside a batch there are the sum over the batches, the list of the sources, and the state of the batch before.
    before = only.state_bytes if count > width else 0
    return [_Stage(only.state_bytes, only.buffer_bytes, only.other_bytes + before, only.uses_in_edges)]


def _pagerank_stages(sizes: _Sizes, device: _Device, options: dict[str, Any]) -> list[_Stage]:
    is_weighted = bool(options.get("weighted", False)) and sizes.weight_dtype is not None
    is_personal = options.get("personalization") is not None
    count = sizes.num_vertices
    out_weight = count * (_INT64 if is_weighted else sizes.edge_dtype.itemsize)
    program = PageRank(options.get("dtype", "float64"), 1, is_weighted, is_personal)
    personalization = count * _INT64 if is_personal else 0
    stages = [device.stage(program, constants=personalization, others=out_weight)]
    if is_weighted and sizes.weight_dtype is not None and sizes.weight_dtype.kind == "i":
        # SciPy sums whole weights as 64-bit ones.
        stages.append(_Stage(0, 0, _INT64 * sizes.num_edges + 3 * out_weight + _OBJECTS, False))
    return stages


_STAGES: dict[str, Callable[[_Sizes, _Device, dict[str, Any]], list[_Stage]]] = {
    "bfs": _bfs_stages,
    "sssp": _sssp_stages,
    "cc": _components_stages,
    "bc": _betweenness_stages,
    "pagerank": _pagerank_stages,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bfs": algorithms.bfs,
    "sssp": algorithms.sssp,
    "cc": algorithms.connected_components,
    "bc": algorithms.betweenness_centrality,
    "pagerank": algorithms.pagerank,
}


def _check_options(algorithm: str, options: dict[str, Any]) -> None:
    parameters = inspect.signature(_FUNCTIONS[algorithm]).parameters
    allowed = [name for name, p in parameters.items() if name != "graph" and p.kind is not p.VAR_KEYWORD]
    for name in options:
        if name not in allowed:
            raise ArgumentError(f"{name}={options[name]!r} is not an option of {algorithm}; allowed: {', '.join(allowed)}")
