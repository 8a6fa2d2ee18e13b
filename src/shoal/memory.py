# SPDX-License-Identifier: Apache-2.0
"""estimate_memory(): what a run will need, before it allocates.

A program's state follows from the fields it declares; a device's buffers from its phases, as `PhaseRun` lays them out.
An algorithm's function is a sequence of stages (a program, a pass for parents, the conversion of a result); each holds
arrays at the same time, and the largest counts.  Where the need depends on the data (vertices waiting at once in SSSP's
buckets, edges that add nothing to a path) the usual or the larger case is assumed, as said where it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal import algorithms
from shoal.algorithms.arguments import is_batch, make_config
from shoal.algorithms.betweenness import Betweenness, batch_width
from shoal.algorithms.bfs import BFS, MAX_BATCH, AsynchronousBFS, BatchBFS, SmallestParents
from shoal.algorithms.components import Components
from shoal.algorithms.pagerank import DTYPES, PageRank, ResidualPageRank
from shoal.algorithms.sssp import SSSP, FlatParents, PackedSSSP, TightParents, distance_dtype, fits_words
from shoal.arrays import choose_edge_dtype, choose_vertex_dtype
from shoal.config import CONFIG_NAMES, parse_devices
from shoal.dataflow.link import NUM_BUFFERS
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.footprint import INT64_BYTES, OBJECT_BYTES, Footprint, Sizes, Stage, one_after_the_other
from shoal.graph import Graph
from shoal.program import Program


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes a run needs at its peak: the graph (both directions where it needs them), a program's state, a device's
    buffers, and what the algorithm's function holds beside them (temporary arrays, a converted result).

    Of a run on a GPU these are the host's bytes, and ``gpu`` has the same for the GPU's own memory; of several GPU
    devices, for that of each, with all vertices on each and the edges divided evenly.  Components without supersteps
    have all edges on each GPU: there it is that of the GPU with most devices.
    """

    graph_bytes: int
    state_bytes: int
    buffer_bytes: int
    other_bytes: int
    gpu: MemoryEstimate | None = None

    @property
    def total_bytes(self) -> int:
        """All together."""
        return self.graph_bytes + self.state_bytes + self.buffer_bytes + self.other_bytes


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
    >>> estimate_memory((1_000_000, 32_000_000), "bfs", devices="cuda").gpu.graph_bytes
    132000004
    """
    sizes = sizes_of(graph_or_sizes, directed)
    strategies = {name: options.pop(name) for name in list(options) if name in CONFIG_NAMES}
    config = make_config(strategies)
    if isinstance(graph_or_sizes, Graph) and parse_devices(config.devices).kind == "cuda":
        sizes = replace(sizes, max_degree=graph_or_sizes.max_degree)
    device = Footprint(sizes, config)
    if isinstance(algorithm, Program):
        stages = [device.stage(algorithm)]
    else:
        check_choice("algorithm", algorithm, _STAGES)
        _check_options(algorithm, options)
        stages = one_after_the_other(_STAGES[algorithm](sizes, device, options))
    largest = max(stages, key=lambda stage: stage.state_bytes + stage.buffer_bytes)
    peak = max(stage.state_bytes + stage.buffer_bytes + stage.other_bytes for stage in stages)
    needs_reverse = sizes.is_directed and any(stage.uses_in_edges for stage in stages)
    graph_bytes = sizes.csr_bytes * (2 if needs_reverse else 1)
    # Sorting the edges by destination takes an eighth of them more while it lasts (measured at scale 16).
    sorting = sizes.csr_bytes // 8 if needs_reverse else 0
    others = peak - largest.state_bytes - largest.buffer_bytes
    return MemoryEstimate(graph_bytes, largest.state_bytes, largest.buffer_bytes, others + sorting, _on_gpu(stages))


def _on_gpu(stages: list[Stage]) -> MemoryEstimate | None:
    """Return what the stages need on a GPU, which keeps the graph from one to the next; None if they run on none."""
    needs = [stage.gpu for stage in stages if stage.gpu is not None]
    if not needs:
        return None
    largest = max(needs, key=lambda need: need.state_bytes + need.buffer_bytes)
    peak = max(need.total_bytes - need.graph_bytes for need in needs)
    graph_bytes = max(need.graph_bytes for need in needs)
    others = peak - largest.state_bytes - largest.buffer_bytes
    return MemoryEstimate(graph_bytes, largest.state_bytes, largest.buffer_bytes, others)


def sizes_of(given: Graph | tuple, directed: bool | None = None) -> Sizes:
    """Return the sizes and types of a graph, or of one that is given by its numbers."""
    if isinstance(given, Graph):
        if directed is not None:
            raise ArgumentError(f"directed={directed!r} is not allowed with a graph; it is for sizes")
        weight = None if given.weights is None else given.weights.dtype
        may_be_flat = weight is not None and (weight.kind == "f" or given.min_weight == 0)
        return Sizes(given.num_vertices, given.num_edges, given.is_directed, given.vertex_dtype, given.edge_dtype,
                     weight, None, distance_dtype(given), may_be_flat)  # fmt: skip
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
    return Sizes(num_vertices, num_edges, bool(directed), vertex_dtype, edge_dtype, weight, None,
                 weight if is_float and weight is not None else np.dtype(np.int32), is_float)  # fmt: skip


def _weight_dtype(weights: Any) -> np.dtype | None:
    if weights is False or weights is None:
        return None
    name = "int32" if weights is True else np.dtype(weights).name
    return np.dtype(check_choice("weights", name, ("int32", "float32", "float64")))


def _bfs_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    width = _batch_width(options.get("source"))
    vertex, count = sizes.vertex_dtype.itemsize, sizes.num_vertices
    is_async = device.config.execution == "async"
    if is_async and width is None:
        first = device.stage(AsynchronousBFS(device.config.deterministic), begins_everywhere=False)
        # Words are taken apart: hops, a mask of the unreached, parents as halves of words and as ids.
        return [first, replace(first, other_bytes=count * (4 + 1 + 4 + vertex))]
    if width is None:
        first = device.stage(BFS(), begins_everywhere=False)
        kept = count * (4 + vertex)
    else:
        # Columns of a batch become rows: a copy, while the columns are still there.
        rows = count * width * (4 + vertex)
        first = device.stage(BatchBFS(min(width, MAX_BATCH)), others=rows, begins_everywhere=False)
        if width > MAX_BATCH:
            # The buffers of the batch before are kept, and larger ones made beside them.
            first = first.beside(2 * first.buffer_bytes)
        kept = rows + first.state_bytes
    if not device.config.deterministic or is_async:
        return [first]
    return [first, device.stage(SmallestParents(), others=kept + count * vertex * (width or 0))]


def _batch_width(source: Any) -> int | None:
    return len(source) if source is not None and is_batch(source) else None


def _sssp_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    dtype, vertex, count = sizes.distance_dtype, sizes.vertex_dtype.itemsize, sizes.num_vertices
    wants_parents = options.get("parents", True)
    width = _batch_width(options.get("source")) or 0
    # An int32 distance becomes a float64 one, beside a mask of the unreachable; of a batch all are stacked at the end.
    result = count * ((INT64_BYTES if dtype.kind == "i" else dtype.itemsize) + (vertex if wants_parents else 0))
    conversion = count * (INT64_BYTES + 1) if dtype.kind == "i" else 0
    earlier = result * max(width - 1, 0)
    is_deterministic, has_targets = device.config.deterministic, options.get("targets") is not None
    if wants_parents and fits_words(dtype, sizes.vertex_dtype, sizes.may_be_flat):
        first = device.stage(PackedSSSP(has_targets, is_deterministic), others=earlier, begins_everywhere=False)
        return [first, replace(first, other_bytes=count * vertex + conversion + max(earlier, result * width * 2))]
    joined = ("smallest" if is_deterministic else "any") if wants_parents and not has_targets else "none"
    stages = [device.stage(SSSP(dtype, has_targets, joined), others=earlier, begins_everywhere=False)]
    later: list[Program] = [TightParents(dtype, is_deterministic)] if wants_parents and has_targets else []
    if wants_parents and sizes.may_be_flat:
        later.append(FlatParents(dtype))
    stages += [device.stage(program, constants=count * dtype.itemsize, others=earlier) for program in later]
    last = replace(stages[-1], other_bytes=conversion + max(earlier, result * width * 2))
    return [*stages, last]


def _components_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    if device.config.execution == "async":
        return [_merged_stage(sizes, device)]
    return [device.stage(Components(can_skip=not sizes.is_directed))]


def _merged_stage(sizes: Sizes, device: Footprint) -> Stage:
    """Return what components without supersteps take: a label for every vertex on each device, and in the result."""
    from shoal.algorithms.merged_components import packet_labels
    from shoal.backends.cpu.trees import CPUTrees
    from shoal.backends.cuda.needs import Need
    from shoal.backends.cuda.trees import CUDATrees

    vertex, num_devices = sizes.vertex_dtype.itemsize, device.num_devices
    labels = sizes.num_vertices * vertex
    kind = CUDATrees if device.kind == "cuda" else CPUTrees
    room = NUM_BUFFERS * packet_labels(kind, sizes.num_vertices) * vertex  # of a link
    counting = sizes.num_vertices * (INT64_BYTES + 1) + OBJECT_BYTES  # roots: all ids, and which are labels
    if device.kind == "cpu":  # of two devices one receives from others, and so does the host
        return Stage(labels * (num_devices + 1), room * (num_devices // 2 + 1), counting, uses_in_edges=False)
    numbers = parse_devices(device.config.devices).numbers
    most = max(map(numbers.count, numbers))
    need = Need(sizes.csr_bytes, labels * most, room * most, 0)
    return Stage(labels, room, counting, uses_in_edges=False, gpu=need)


def _betweenness_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    sources = options.get("sources")
    count = sizes.num_vertices if sources is None else len(sources) if is_batch(sources) else 1
    count = options["samples"] if options.get("samples") is not None else count
    width = batch_width(sizes.num_vertices, count)
    others = INT64_BYTES * (2 * sizes.num_vertices + count)
    # Beside a batch there are the sum over the batches, its scale and the sources.
    return [device.stage(Betweenness(width), others=others, begins_everywhere=False)]


def _pagerank_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    is_weighted = bool(options.get("weighted", False)) and sizes.weight_dtype is not None
    is_personal = options.get("personalization") is not None
    count = sizes.num_vertices
    out_weight = count * (INT64_BYTES if is_weighted else sizes.edge_dtype.itemsize)
    dtype = check_choice("dtype", options.get("dtype", "float64"), DTYPES)
    program: Program = PageRank(dtype, 1, is_weighted, is_personal)
    if device.config.execution == "async":
        program = ResidualPageRank(dtype, is_weighted)
    personalization = count * INT64_BYTES if is_personal else 0
    stages = [device.stage(program, constants=personalization, others=out_weight)]
    if is_weighted:
        # SciPy sums a copy of the matrix in float64.
        copied = sizes.num_edges * (INT64_BYTES + sizes.vertex_dtype.itemsize) + count * sizes.edge_dtype.itemsize
        stages.append(Stage(0, 0, copied + 4 * out_weight + OBJECT_BYTES, False))
    return stages


_STAGES: dict[str, Callable[[Sizes, Footprint, dict[str, Any]], list[Stage]]] = {
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
            raise ArgumentError(
                f"{name}={options[name]!r} is not an option of {algorithm}; allowed: {', '.join(allowed)}"
            )
