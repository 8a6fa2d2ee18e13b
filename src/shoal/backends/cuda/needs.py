# SPDX-License-Identifier: Apache-2.0
"""What a program needs on a GPU: the graph, its state, the buffers of its phases, and what is there for a while.

The graph comes first, and its reverse if a phase asks for it; then the state, then phase after phase.  What is needed
at the peak is the most of three moments: while edges are turned round, while the graph's tables are made, and in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shoal.arrays import GraphSizes
from shoal.backends.cuda.buffers import (
    INT64_BYTES,
    WORD_BYTES,
    BufferSizes,
    Kept,
    gather_bytes,
    gathers,
    most_pieces,
)
from shoal.backends.cuda.device import num_words
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.cuda.launch import BLOCKS_PER_PROCESSOR
from shoal.program import Phase

MAX_PROCESSORS = 256  # more than any GPU has; each takes a few hundred bytes
MAX_GPUS = 1024  # that a graph is divided among, in thought
# For a vertex, while tables are made: a flag, and its place among those that are taken; or its work, and the sum of it.
_TABLE_BYTES = 1 + 2 * INT64_BYTES
_OWNER_BYTES = 2


@dataclass(frozen=True)
class Need:
    """Bytes of a GPU's memory: the graph in the directions that are used, the state, buffers, and all else."""

    graph_bytes: int
    state_bytes: int
    buffer_bytes: int
    other_bytes: int  # tables that are kept with the graph, and what is there for a while

    @property
    def lasting_bytes(self) -> int:
        """What is there as long as the run is."""
        return self.graph_bytes + self.state_bytes + self.buffer_bytes

    @property
    def total_bytes(self) -> int:
        """What is there at the peak."""
        return self.lasting_bytes + self.other_bytes


def need_of(graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]]) -> Need:
    """Return what a program of these phases needs whose fields and constants take ``state_bytes``."""
    count, csr = graph.num_vertices, graph.csr_bytes
    is_reversed = graph.is_directed and any(source.uses_in_edges for _, source in phases)
    graph_bytes = csr * (2 if is_reversed else 1)
    buffers = _buffer_bytes(graph, phases)
    tables = WORD_BYTES * num_words(count) if any(source.flow.pulls for _, source in phases) else 0
    if any(gathers(source.flow) for _, source in phases):
        num_blocks = BLOCKS_PER_PROCESSOR * MAX_PROCESSORS
        tables += gather_bytes(count, graph.num_edges, graph.vertex_dtype.itemsize, num_blocks)
    moments = (
        graph_bytes + (csr if is_reversed else 0),  # the reverse is there in ranges, too: see `building`
        graph_bytes + state_bytes + tables + count * (graph.edge_dtype.itemsize + _TABLE_BYTES),
        graph_bytes + state_bytes + tables + buffers + count * graph.vertex_dtype.itemsize,  # a first frontier
    )
    return Need(graph_bytes, state_bytes, buffers, max(moments) - graph_bytes - state_bytes - buffers)


def _buffer_bytes(graph: GraphSizes, phases: Sequence[tuple[Phase, PhaseSource]]) -> int:
    """Return what the buffers of the phase with most of them take, with the frontiers that earlier ones kept."""
    count, vertex = graph.num_vertices, graph.vertex_dtype.itemsize
    max_degree = graph.num_edges if graph.max_degree is None else graph.max_degree
    num_pieces = most_pieces(graph.num_edges, max_degree)
    kept, most = Kept(), 0
    for phase, source in phases:
        is_replay = phase.begin == "replay"
        sizes = BufferSizes(source, phase, count, vertex, BLOCKS_PER_PROCESSOR * MAX_PROCESSORS, num_pieces,
                            kept if is_replay else Kept())  # fmt: skip
        # What is kept is beside the phase's own buffers, or is the queue of a replay, unless that one must be longer.
        is_beside = not is_replay or sizes.queue > kept.queue
        beside = vertex * kept.queue + (0 if is_replay else INT64_BYTES * kept.levels) if is_beside else 0
        most = max(most, sizes.num_bytes + beside)
        if phase.keep:
            kept = Kept(sizes.queue, count * (phase.joins or 1), sizes.levels)
    return most


def need_of_part(
    graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]], num_gpus: int
) -> Need:
    """Return what each of several GPUs would need that have all vertices each, and divide the edges evenly.

    For what they exchange as much is counted as several devices of a CPU take at most: who owns a vertex and who has
    copies, an item for every vertex with all its values, what was sent before, and three bitmaps.
    """
    part = replace(graph, num_edges=-(-graph.num_edges // num_gpus))
    return with_exchanges(need_of(part, state_bytes, phases), part)


def with_exchanges(need: Need, part: GraphSizes) -> Need:
    """Return a need with what devices have to exchange values: at most as much as several devices of a CPU."""
    count, vertex = part.num_vertices, part.vertex_dtype.itemsize
    shared = count * (_OWNER_BYTES + 2 * INT64_BYTES + 6 * vertex) + 2 * need.state_bytes
    return replace(need, other_bytes=need.other_bytes + shared + 3 * WORD_BYTES * num_words(count))


def count_gpus_for(
    graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]], available: int
) -> int | None:
    """Return the fewest GPUs of so many available bytes that hold a divided graph, None if no number does."""
    counts = range(2, MAX_GPUS + 1)
    fitting = (count for count in counts
               if need_of_part(graph, state_bytes, phases, count).total_bytes <= available)  # fmt: skip
    return next(fitting, None)
