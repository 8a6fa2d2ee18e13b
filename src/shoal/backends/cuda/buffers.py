# SPDX-License-Identifier: Apache-2.0
"""How long the buffers of a run on a GPU are: one home for the run that makes them and the estimate made before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shoal.backends.cuda.device import PIECE, ROW, TILE, VERTEX_EDGES, num_words
from shoal.backends.cuda.generator import PhaseSource
from shoal.backends.cuda.launch import BLOCK_WARPS
from shoal.backends.loops.control import NUM_TRACE_COLUMNS
from shoal.backends.loops.flow import Flow
from shoal.program import Phase

TRACE_ROWS = 8192  # supersteps between two visits of Python
FEWEST_PIECES = 1 << 20  # so that the edges of few vertices can be dealt to all warps
NUM_BINS = 32  # of the frontier of a push, by degree; as in kernels/balance.cuh
NUM_KNOBS = 2
NUM_BITMAPS = NUM_PILES = 2  # they take turns
WORD_BYTES, INT64_BYTES = 4, 8


@dataclass(frozen=True)
class Kept:
    """What a phase finds of the frontiers that the one before it kept, in entries."""

    queue: int = 0
    end: int = 0  # where the frontiers in the queue end
    levels: int = 0


@dataclass(frozen=True)
class BufferSizes:
    """Numbers of elements, for one phase on one GPU; of 0 there is no array.  What a gather takes is not among them."""

    source: PhaseSource
    phase: Phase
    num_vertices: int
    vertex_bytes: int  # of an id
    num_blocks: int
    max_pieces: int  # that a push cuts the long lists of all vertices into
    kept: Kept = Kept()
    num_levels: int | None = None  # that there may be: as many as vertices, those of other devices too
    room: int | None = None  # entries of the queue that an output has; None: as many as there are vertices

    @property
    def flow(self) -> Flow:
        """Where the frontiers of the step lie."""
        return self.source.flow

    @cached_property
    def entries(self) -> int:
        """Entries of the queue that an output has."""
        return self.num_vertices if self.room is None else self.room

    @cached_property
    def frontiers(self) -> int:
        """Entries of the queue for the frontiers that go from superstep to superstep: all of them, or two in turn.

        By priority, or without supersteps, there are two that have room for every vertex, whatever an output has.
        """
        if self.flow.ordered is not None or self.source.is_asynchronous:
            return 2 * self.num_vertices
        if not self.flow.uses_frontier or self.phase.begin == "replay":
            return 0
        return self.entries * (2 if self.phase.joins is None else self.phase.joins)

    @cached_property
    def queue(self) -> int:
        """Entries of the queue: behind what is kept, frontiers, and outputs that do not leave the step."""
        regions = [] if self.source.is_asynchronous else self.flow.regions
        behind = self.frontiers + self.entries * len(regions)
        return max(self.kept.end + behind, self.kept.queue, 1)

    @cached_property
    def levels(self) -> int:
        """Room for the bounds of the frontiers that are kept."""
        if self.kept.levels:
            return self.kept.levels
        num_levels = self.num_vertices if self.num_levels is None else self.num_levels
        return (num_levels * (self.phase.joins or 1) if self.phase.keep else 0) + 2

    @cached_property
    def bitmap(self) -> int:
        """Words of each bitmap."""
        is_used = self.flow.uses_bitmaps or self.source.is_asynchronous
        return num_words(self.num_vertices) if is_used else 1

    @cached_property
    def remaining(self) -> int:
        """Words of the bitmap of the vertices that wait, or that a pull still asks."""
        return num_words(self.num_vertices) if self.flow.pulls or self.flow.ordered is not None else 1

    @cached_property
    def pieces(self) -> int:
        """Pieces of long lists that there is room for."""
        is_cut = pushes(self.flow) and self.source.load_balance == "auto"
        return max(self.max_pieces, FEWEST_PIECES) if is_cut and self.max_pieces else 0

    @cached_property
    def ledger(self) -> int:
        """Numbers of a push's ledger: one for each vertex of a frontier, then sums of blocks, or of bins twice."""
        return self.num_vertices + max(self.num_blocks, 2 * NUM_BINS) if self.source.uses_ledger else 0

    @cached_property
    def pile(self) -> int:
        """Entries of each pile of vertices whose priority is far."""
        return self.num_vertices if self.flow.ordered is not None else 1

    @cached_property
    def partials(self) -> int:
        """Bytes for what blocks sum up."""
        return max(self.source.partial_bytes * self.num_blocks, 1)

    @cached_property
    def num_bytes(self) -> int:
        """Bytes of all of them, with the control block and the trace."""
        ids = self.queue + NUM_PILES * self.pile + self.pieces
        words = NUM_BITMAPS * self.bitmap + self.remaining + self.pieces
        numbers = TRACE_ROWS * NUM_TRACE_COLUMNS + self.levels + self.source.control_length + NUM_KNOBS + self.ledger
        return self.vertex_bytes * ids + WORD_BYTES * words + INT64_BYTES * numbers + self.partials


def pushes(flow: Flow) -> bool:
    """Whether an advance of a step can push."""
    return any(op.kind == "advance" and op.options["direction"] != "pull" for op in flow.operators)


def gathers(flow: Flow) -> bool:
    """Whether a step gathers."""
    return any(op.kind == "gather" for op in flow.operators)


def most_pieces(num_edges: int, max_degree: int) -> int:
    """Return the most pieces that a push may cut: a list longer than PIECE has less than two for each PIECE edges."""
    return 2 * num_edges // PIECE if max_degree > PIECE else 0


def gather_bytes(num_vertices: int, num_edges: int, vertex_bytes: int, num_blocks: int) -> int:
    """Return the most that the tables of a gather take (`Shard.rows`, `Shard.tiles`), and the values of its pieces."""
    rows, pieces = num_edges // ROW, 2 * num_edges // ROW
    tiles = (num_edges + VERTEX_EDGES * num_vertices) // TILE + num_blocks * BLOCK_WARPS + 2
    ids = rows + 2 * pieces + tiles
    return ids * vertex_bytes + (rows + pieces + 2) * INT64_BYTES
