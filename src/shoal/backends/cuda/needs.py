# SPDX-License-Identifier: Apache-2.0
"""What a program needs on a GPU: the graph, its state, the buffers of its phases, and what is there for a while.

The graph comes first, and its reverse if a phase asks for it; then the state, then phase after phase.  What is needed
at the peak is the most of three moments: while edges are turned round, while the graph's tables are made, and in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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
from shoal.backends.cuda.launch import BLOCKS_OF_ONE_STEP
from shoal.backends.loops.rooms import Rooms
from shoal.program import Phase

if TYPE_CHECKING:
    from shoal.strategies.memory import Scheme

MAX_BLOCKS = 256 * BLOCKS_OF_ONE_STEP  # more multiprocessors than any GPU has; each takes a few hundred bytes
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


def need_of(
    graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]], scheme: Scheme | None = None, *,
    at_first: bool = False,
) -> Need:  # fmt: skip
    """Return what a program of these phases needs whose fields and constants take ``state_bytes``.

    A scheme that lets outputs grow is assumed to do so as far as it may or, ``at_first``, not yet.  Without a scheme
    they have room for every vertex.
    """
    count, csr = graph.num_vertices, graph.csr_bytes
    is_reversed = graph.is_directed and any(source.uses_in_edges for _, source in phases)
    graph_bytes = csr * (2 if is_reversed else 1)
    buffers, moved = _buffer_bytes(graph, phases, scheme, at_first)
    tables = WORD_BYTES * num_words(count) if any(source.flow.pulls for _, source in phases) else 0
    if any(gathers(source.flow) for _, source in phases):
        tables += gather_bytes(count, graph.num_edges, graph.vertex_dtype.itemsize, MAX_BLOCKS)
    moved = max(moved, count * graph.vertex_dtype.itemsize)  # a first frontier, or a queue that is copied
    moments = (
        graph_bytes + (csr if is_reversed else 0),  # the reverse is there in ranges, too: see `building`
        graph_bytes + state_bytes + tables + count * (graph.edge_dtype.itemsize + _TABLE_BYTES),
        graph_bytes + state_bytes + tables + buffers + moved,
    )
    return Need(graph_bytes, state_bytes, buffers, max(moments) - graph_bytes - state_bytes - buffers)


def _buffer_bytes(
    graph: GraphSizes, phases: Sequence[tuple[Phase, PhaseSource]], scheme: Scheme | None, at_first: bool
) -> tuple[int, int]:
    """Return what the buffers of the phase with most of them take, with the frontiers that earlier ones kept.

    The second number is that of a queue that is copied into a longer one: as a rule it has room for the vertices, or
    less.
    """
    count, vertex = graph.num_vertices, graph.vertex_dtype.itemsize
    max_degree = graph.num_edges if graph.max_degree is None else graph.max_degree
    num_pieces = most_pieces(graph.num_edges, max_degree)
    kept, most, moved = Kept(), 0, 0
    for phase, source in phases:
        is_replay = phase.begin == "replay"
        first, last = _rooms(graph, phase, source, scheme)
        sizes = BufferSizes(source, phase, count, vertex, MAX_BLOCKS, num_pieces,
                            kept if is_replay else Kept(), room=first if at_first else last)  # fmt: skip
        # What is kept is beside the phase's own buffers, or is the queue of a replay, unless that one must be longer.
        is_beside = not is_replay or sizes.queue > kept.queue
        beside = vertex * kept.queue + (0 if is_replay else INT64_BYTES * kept.levels) if is_beside else 0
        most = max(most, sizes.num_bytes + beside)
        if first < last and not at_first:
            moved = max(moved, vertex * replace(sizes, room=min(last, count)).queue)
        if phase.keep:
            kept = Kept(sizes.queue, min(count * (phase.joins or 1), sizes.frontiers), sizes.levels)
    return most, moved


def _rooms(graph: GraphSizes, phase: Phase, source: PhaseSource, scheme: Scheme | None) -> tuple[int, int]:
    """Return the entries that outputs of a phase have at least before the run, and at most later."""
    if scheme is None or source.flow.ordered is not None:
        return graph.num_vertices, graph.num_vertices
    count, num_edges = graph.num_vertices, graph.num_edges
    rooms = Rooms(source.flow, phase, count, num_edges, scheme)
    first = rooms.first_room(0.0)
    if not source.flow.grows:
        return first, first
    # Behind all frontiers that there may be, an output of all edges.
    return first, max(first, rooms.room_behind((phase.joins or 0) * count, max(num_edges, count), rooms.ceiling))


def need_of_part(
    graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]], num_gpus: int,
    scheme: Scheme | None = None,
) -> Need:  # fmt: skip
    """Return what each of several GPUs would need that have all vertices each, and divide the edges evenly.

    For what they exchange as much is counted as several devices of a CPU take at most: who owns a vertex and who has
    copies, an item for every vertex with all its values, what was sent before, and three bitmaps.
    """
    part = replace(graph, num_edges=-(-graph.num_edges // num_gpus))
    return with_exchanges(need_of(part, state_bytes, phases, scheme), part)


def with_exchanges(need: Need, part: GraphSizes) -> Need:
    """Return a need with what devices have to exchange values: at most as much as several devices of a CPU."""
    count, vertex = part.num_vertices, part.vertex_dtype.itemsize
    shared = count * (_OWNER_BYTES + 2 * INT64_BYTES + 6 * vertex) + 2 * need.state_bytes
    return replace(need, other_bytes=need.other_bytes + shared + 3 * WORD_BYTES * num_words(count))


def count_gpus_for(
    graph: GraphSizes, state_bytes: int, phases: Sequence[tuple[Phase, PhaseSource]], available: int,
    scheme: Scheme | None = None,
) -> int | None:  # fmt: skip
    """Return the fewest GPUs of so many available bytes that hold a divided graph, None if no number does."""
    counts = range(2, MAX_GPUS + 1)
    fitting = (count for count in counts
               if need_of_part(graph, state_bytes, phases, count, scheme).total_bytes <= available)  # fmt: skip
    return next(fitting, None)
