# SPDX-License-Identifier: Apache-2.0
"""estimate_memory(): what a run will need, before it allocates.

A program's state follows from the fields it declares; a device's buffers from its phases, as `PhaseRun` lays them out.
An algorithm's function is a sequence of stages (a program, a pass for parents, the conversion of a result); each holds
arrays at the same time, and the largest counts.  Where the need depends on the data (vertices waiting at once in SSSP's
buckets, edges that add nothing to a path) the usual or the larger case is assumed, as said where it is.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal import algorithms
from shoal.algorithms import forest
from shoal.algorithms.arguments import is_batch, make_config
from shoal.algorithms.betweenness import Betweenness, batch_width
from shoal.algorithms.bfs import BFS, MAX_BATCH, AsynchronousBFS, BatchBFS, SmallestParents
from shoal.algorithms.components import Components
from shoal.algorithms.cores import CoreNumbers, KCore
from shoal.algorithms.eigenvector import Eigenvector
from shoal.algorithms.hits import Hits
from shoal.algorithms.katz import Katz
from shoal.algorithms.label_propagation import LabelPropagation
from shoal.algorithms.local_moves import LocalMoves
from shoal.algorithms.orientation import num_orienting_threads
from shoal.algorithms.pagerank import DTYPES, PageRank, ResidualPageRank
from shoal.algorithms.sssp import SSSP, FlatParents, PackedSSSP, TightParents, distance_dtype, flat_bits, takes_words
from shoal.algorithms.strong_components import Spread, Trim
from shoal.algorithms.triangles import Triangles
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
    algorithm : ``"bfs"``, ``"sssp"``, ``"cc"``, ``"bc"``, ``"pagerank"``, ``"triangles"``, ``"clustering"``,
        ``"transitivity"``, ``"lpa"``, ``"louvain"``, or a program of one's own
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
    if isinstance(graph_or_sizes, Graph) and (parse_devices(config.devices).kind == "cuda" or algorithm in _TALLYING):
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
                     weight, None, distance_dtype(given), may_be_flat, flat_bits(given))  # fmt: skip
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
    distance = weight if is_float and weight is not None else np.dtype(np.int32)
    return Sizes(num_vertices, num_edges, bool(directed), vertex_dtype, edge_dtype, weight, None, distance, is_float,
                 None if is_float else 0)  # fmt: skip


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
    if wants_parents and takes_words(
        dtype, sizes.vertex_dtype, sizes.flat_bits, has_targets=has_targets, is_deterministic=is_deterministic
    ):
        program = PackedSSSP(has_targets, is_deterministic, bool(sizes.flat_bits))
        first = device.stage(program, others=earlier, begins_everywhere=False)
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


def _edge_betweenness_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    # Undirected edges are listed once; of self-loops, stored once, one a vertex is assumed.
    listed = sizes.num_edges if sizes.is_directed else sizes.num_edges // 2 + sizes.num_vertices
    edges = listed * (2 * sizes.vertex_dtype.itemsize + INT64_BYTES) + INT64_BYTES * (sizes.num_vertices + 1)
    return [stage.beside(edges) for stage in _betweenness_stages(sizes, device, options)]


def _pagerank_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    is_weighted = _is_weighted(sizes, options)
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


def _triangles_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    """Every edge is there once more in the oriented graph, whose lists are no longer than the root of their number."""
    count, vertex = sizes.num_vertices, sizes.vertex_dtype.itemsize
    longest = min(math.isqrt(sizes.num_edges) + 1, max(count, 1))
    oriented = replace(
        sizes, num_edges=sizes.num_edges // 2, is_directed=True, weight_dtype=None, max_degree=longest
    )  # fmt: skip
    # Order and rank; while they are made, numbers of 64 bits; of each core a number for every vertex.
    ranks = 2 * count * vertex
    made = Stage(0, 0, oriented.csr_bytes + ranks + count * (INT64_BYTES + vertex * num_orienting_threads()), False)
    # Of the result: degrees, pairs and quotients of all vertices.
    others = oriented.csr_bytes + ranks + 5 * count * INT64_BYTES
    return [made, Footprint(oriented, device.config).stage(Triangles(), others=others)]


def _label_propagation_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    program = LabelPropagation(bool(options.get("weighted", False)) and sizes.weight_dtype is not None, 1)
    # Naming communities sorts the labels, and finds back where they were.
    return [device.stage(program, others=4 * sizes.num_vertices * INT64_BYTES)]


def _louvain_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    is_weighted = bool(options.get("weighted", False)) and sizes.weight_dtype is not None
    count = sizes.num_vertices
    kept = 6 * count * INT64_BYTES  # labels, degrees and loops of a level, and while labels are sorted
    # A graph of communities: two ends, a weight, and whether they are one, of every edge; sorted and added up.
    contracted = sizes.num_edges * (3 * INT64_BYTES + 2 * sizes.vertex_dtype.itemsize + 2 * INT64_BYTES)
    first = device.stage(LocalMoves(is_weighted, 1), others=kept)
    return [first, replace(first, state_bytes=0).beside(contracted)]


#: Algorithms whose threads need a table as long as the longest list.
_TALLYING = ("lpa", "louvain")


def _eigenvector_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    return [device.stage(Eigenvector(1, _is_weighted(sizes, options)))]


def _katz_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    has_betas = np.ndim(options.get("beta", 1.0)) == 1
    betas = sizes.num_vertices * INT64_BYTES if has_betas else 0
    return [device.stage(Katz(1, _is_weighted(sizes, options), has_betas), constants=betas)]


def _hits_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    return [device.stage(Hits(1, _is_weighted(sizes, options), sizes.is_directed))]


def _is_weighted(sizes: Sizes, options: dict[str, Any]) -> bool:
    return bool(options.get("weighted", False)) and sizes.weight_dtype is not None


def _strong_components_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    vertex, count = sizes.vertex_dtype.itemsize, sizes.num_vertices
    # Labels, groups and numbers are there throughout; beside a search what it begins with, its groups, and who begins.
    kept = count * 3 * vertex
    trimming = device.stage(Trim(), constants=count * vertex, others=kept + count * INT64_BYTES)
    spreading = device.stage(Spread(), constants=count * vertex, others=kept + count * (2 * vertex + INT64_BYTES))
    # Drawing the numbers: as int64 first.
    return [trimming, spreading, Stage(0, 0, kept + 2 * count * INT64_BYTES, False)]


def _forest_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    program = forest.Forest(forest.fits_words(sizes.weight_dtype, sizes.vertex_dtype))
    # The result while the state is there: which edges, in which order, both ends as int64 and as ids, weights twice.
    result = sizes.num_vertices * (6 * INT64_BYTES + 1 + 2 * sizes.vertex_dtype.itemsize)
    stage = device.stage(program)
    return [stage, replace(stage, buffer_bytes=0, workspace_bytes=0, other_bytes=result)]


def _core_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    return [_both_ways(sizes, device.stage(CoreNumbers(), others=sizes.num_vertices * sizes.edge_dtype.itemsize))]


def _k_core_stages(sizes: Sizes, device: Footprint, options: dict[str, Any]) -> list[Stage]:
    # Beside the state there are the degrees, and who begins: a mask and a list.
    others = sizes.num_vertices * (sizes.edge_dtype.itemsize + 1 + INT64_BYTES)
    return [_both_ways(sizes, device.stage(KCore(), others=others))]


def _both_ways(sizes: Sizes, stage: Stage) -> Stage:
    """Return a stage on the graph with both directions of every edge, which a directed one does not have yet."""
    return stage.beside(3 * sizes.csr_bytes) if sizes.is_directed else stage


_STAGES: dict[str, Callable[[Sizes, Footprint, dict[str, Any]], list[Stage]]] = {
    "bfs": _bfs_stages,
    "sssp": _sssp_stages,
    "cc": _components_stages,
    "bc": _betweenness_stages,
    "ebc": _edge_betweenness_stages,
    "pagerank": _pagerank_stages,
    "triangles": _triangles_stages,
    "clustering": _triangles_stages,
    "transitivity": _triangles_stages,
    "lpa": _label_propagation_stages,
    "louvain": _louvain_stages,
    "eigenvector": _eigenvector_stages,
    "katz": _katz_stages,
    "hits": _hits_stages,
    "scc": _strong_components_stages,
    "msf": _forest_stages,
    "core": _core_stages,
    "kcore": _k_core_stages,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bfs": algorithms.bfs,
    "sssp": algorithms.sssp,
    "cc": algorithms.connected_components,
    "bc": algorithms.betweenness_centrality,
    "ebc": algorithms.edge_betweenness_centrality,
    "pagerank": algorithms.pagerank,
    "triangles": algorithms.triangles,
    "clustering": algorithms.clustering,
    "transitivity": algorithms.transitivity,
    "lpa": algorithms.label_propagation,
    "louvain": algorithms.louvain_communities,
    "eigenvector": algorithms.eigenvector_centrality,
    "katz": algorithms.katz_centrality,
    "hits": algorithms.hits,
    "scc": algorithms.strongly_connected_components,
    "msf": algorithms.minimum_spanning_forest,
    "core": algorithms.core_number,
    "kcore": algorithms.k_core,
}


def _check_options(algorithm: str, options: dict[str, Any]) -> None:
    parameters = inspect.signature(_FUNCTIONS[algorithm]).parameters
    allowed = [name for name, p in parameters.items() if name != "graph" and p.kind is not p.VAR_KEYWORD]
    for name in options:
        if name not in allowed:
            raise ArgumentError(
                f"{name}={options[name]!r} is not an option of {algorithm}; allowed: {', '.join(allowed)}"
            )
