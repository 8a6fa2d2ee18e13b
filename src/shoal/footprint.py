# SPDX-License-Identifier: Apache-2.0
"""What one run of a program takes: its state, from the fields it declares, and the device's buffers, from its phases.

The buffers' lengths are those of `shoal.backends.cpu.buffers`; a test holds the sum against what a run measures.  Of a
run on a GPU the host has the state, too; what the GPU has is what `shoal.backends.cuda.needs` says.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.arrays import GraphSizes
from shoal.config import RESOLVED, RunConfig, parse_devices
from shoal.program import Phase, Program, field_dtype
from shoal.strategies.memory import FIRST_FACTOR, SCHEMES

INT64_BYTES = 8
NUM_BITMAPS = 3  # of a workspace: see `shoal.backends.cpu.device`
OWNER_BYTES = 2  # a device's number
OBJECT_BYTES = 1 << 16  # what Python needs for its own objects, so that an estimate holds for small graphs too


@dataclass(frozen=True)
class Sizes(GraphSizes):
    """What the estimates depend on."""

    distance_dtype: np.dtype
    may_be_flat: bool  # some edge may add nothing to a path's length
    flat_bits: int | None  # that count such edges on a path; None if they cannot be counted


@dataclass(frozen=True)
class Stage:
    """Arrays that are there at the same time."""

    state_bytes: int
    buffer_bytes: int
    other_bytes: int
    uses_in_edges: bool
    workspace_bytes: int = 0  # the part of the buffers that is there still when the next stage runs
    gpu: Any = None  # a `shoal.backends.cuda.needs.Need`, where the run is on a GPU

    def beside(self, num_bytes: int) -> Stage:
        """Return the stage with other arrays of so many bytes beside it."""
        return replace(self, other_bytes=self.other_bytes + num_bytes)


def one_after_the_other(stages: list[Stage]) -> list[Stage]:
    """Return the stages of one call, each beside the workspace that those before it left."""
    found: list[Stage] = []
    kept = 0
    for stage in stages:
        found.append(replace(stage, buffer_bytes=stage.buffer_bytes + max(kept - stage.workspace_bytes, 0)))
        kept = max(kept, stage.workspace_bytes)
    return found


class Footprint:
    """State and buffers of programs on a graph of given sizes, on all devices of a configuration.

    With ``duplication`` it is that of one of several devices, and the sizes are those of its part.
    """

    def __init__(self, sizes: Sizes, config: RunConfig, duplication: str | None = None) -> None:
        from shoal.backends.cpu.device import SMALL_EDGES, make_devices

        self.sizes, self.config, self.duplication = sizes, config, duplication
        self._sources: dict[Any, tuple[Any, ...]] = {}  # with what the key names by id, so that no other gets it
        spec = parse_devices(config.devices)
        self.num_devices, self.kind = spec.num_devices, spec.kind
        config.check_kind(spec.kind)
        threads = make_devices(spec.num_devices, spec.threads_per_device)[0].num_threads
        self.num_threads = 1 if sizes.num_edges < SMALL_EDGES else threads
        self.scheme = SCHEMES["fused" if config.memory == "auto" else config.memory]

    def stage(self, program: Program, *, constants: int = 0, others: int = 0, begins_everywhere: bool = True) -> Stage:
        """Return what a run of ``program`` takes.

        Parameters
        ----------
        constants, others : bytes of the arrays it is given, and of those that are there beside it
        begins_everywhere : whether its first frontier is every vertex, of which a list is then made
        """
        if self.kind == "cuda":
            return self._stage_on_gpu(program, constants, others, begins_everywhere)
        if self.num_devices == 1 or self.duplication is not None:
            return self._stage_of_one(program, constants, others, begins_everywhere)
        return self._stage_of_many(program, constants, others, begins_everywhere)

    def _stage_on_gpu(self, program: Program, constants: int, others: int, begins_everywhere: bool) -> Stage:
        """Return what the host has, and what the GPU: the host's state is copied there, and the edges are, too."""
        from shoal.backends.cuda.buffers import TRACE_ROWS
        from shoal.backends.cuda.needs import need_of, need_of_part
        from shoal.backends.cuda.phases import load_phase
        from shoal.backends.loops.control import NUM_TRACE_COLUMNS
        from shoal.execution.binding import state_bytes
        from shoal.execution.plans import priority_of

        sizes, count, vertex = self.sizes, self.sizes.num_vertices, self.sizes.vertex_dtype.itemsize
        types, phases = (sizes.vertex_dtype, sizes.edge_dtype, sizes.weight_dtype), []
        for phase in program.phases():
            how = (self.config.direction, None, self.config.load_balance, priority_of(program, phase, self.config))
            phases.append((phase, load_phase(program, phase, types, *how).source))
        state = state_bytes(program.fields(), count, sizes.vertex_dtype) + constants
        # Vertices that wait by priority are flags first, and a list.
        is_ordered = any(source.flow.ordered is not None for _, source in phases)
        waiting = count * (2 + (INT64_BYTES + vertex if begins_everywhere else 0)) if is_ordered else 0
        trace = TRACE_ROWS * NUM_TRACE_COLUMNS * INT64_BYTES
        others += waiting + trace + OBJECT_BYTES
        if self.num_devices == 1:
            need = need_of(sizes, state, phases, self.scheme)
        else:  # each device's; of several, outputs have room for every vertex, whatever the scheme
            need = need_of_part(sizes, state, phases, self.num_devices)
        return Stage(state, 0, others, uses_in_edges=False, gpu=need)

    def _stage_of_many(self, program: Program, constants: int, others: int, begins_everywhere: bool) -> Stage:
        """Return the same for all devices: each has copies of all vertices, or at most of one for each of its edges."""
        from shoal.execution.choices import choose
        from shoal.execution.plans import sharing_of

        sizes, count = self.sizes, self.num_devices
        sharings = [sharing_of(program, phase, self.config.direction) for phase in program.phases()]
        duplication = choose(sharings, self.config, "cpu", count).duplication
        is_renumbered = duplication == "one-hop"
        num_local = sizes.num_vertices
        if is_renumbered:
            num_local = min(num_local, -(-(sizes.num_vertices + sizes.num_edges) // count))
        part = copy.copy(self)
        part.duplication, part._sources = duplication, {}
        part = part.resized(num_local)
        one = part._stage_of_one(program, 0, 0, begins_everywhere)
        # Beside the devices' values the result's, where ids differ; edges, unless the part is a slice of the graph's.
        beside = one.state_bytes * sizes.num_vertices // max(num_local, 1) if is_renumbered else 0
        is_sliced = not is_renumbered and self.config.resolved()["partition"] == RESOLVED["partition"]
        edges = 0 if is_sliced else sizes.csr_bytes * (2 if one.uses_in_edges and sizes.is_directed else 1)
        # The tables of a part: owners, who has copies and under which ids; one more while they are sorted.
        tables = count * num_local * (OWNER_BYTES + 2 * INT64_BYTES + 4 * sizes.vertex_dtype.itemsize)
        if any(sharing.asks_lists for sharing in sharings):  # they are sent one after the other, with their places
            tables += sizes.num_edges * (sizes.vertex_dtype.itemsize + 2 * INT64_BYTES)
        exchange = max(part._exchange_bytes(program, phase) for phase in program.phases())
        return Stage(
            count * one.state_bytes + beside + constants, count * (one.buffer_bytes + exchange),
            count * one.other_bytes + others + edges + tables, one.uses_in_edges, count * one.workspace_bytes,
        )  # fmt: skip

    def _exchange_bytes(self, program: Program, phase: Phase) -> int:
        """Return the bytes of border and mail on one of several devices, with an item for every vertex it has."""
        source, num_vertices = self.source(program, phase), self.sizes.num_vertices
        sent = self.bytes_per_vertex(program, source.mailed) + self.bytes_per_vertex(program, source.remembered)
        bitmaps = NUM_BITMAPS * INT64_BYTES * ((num_vertices + 63) // 64)
        if source.flow.intersects:  # at most the lists of all vertices
            bitmaps += (num_vertices + 1) * INT64_BYTES + self.sizes.num_edges * self.sizes.vertex_dtype.itemsize
        item = self.sizes.vertex_dtype.itemsize + sent
        num_items = num_vertices * (2 if source.deals else 1)  # and one for every vertex that it may give away
        return num_vertices * self.sizes.vertex_dtype.itemsize + num_items * item + bitmaps + OBJECT_BYTES

    def bytes_per_vertex(self, program: Program, names: Sequence[str]) -> int:
        """Return the bytes that the values of some fields take for one vertex."""
        from shoal.execution.binding import state_bytes

        fields = program.fields()
        return state_bytes({name: fields[name] for name in names}, 1, self.sizes.vertex_dtype)

    def _stage_of_one(self, program: Program, constants: int, others: int, begins_everywhere: bool) -> Stage:
        from shoal.backends.cpu.buffers import BufferSizes
        from shoal.execution.binding import state_bytes

        buffers = temporary = queue = kept = 0
        levels = 2
        uses_in_edges = False
        vertex = self.sizes.vertex_dtype.itemsize
        for phase in program.phases():
            source = self.source(program, phase)
            uses_in_edges |= source.uses_in_edges
            lengths = BufferSizes(
                source.flow, phase, self.sizes.num_vertices, self.sizes.num_edges, self.scheme, self.num_threads
            )
            room = max(lengths.first_room(FIRST_FACTOR), self.sizes.num_vertices)  # a smaller one may have to grow
            fixed = self._fixed_bytes(source, lengths)
            before, queue = queue, max(queue, vertex * (lengths.queue(room) + kept))
            kept = lengths.queue_end if phase.keep else 0
            levels = max(levels, lengths.levels)
            has_blocks = source.flow.ordered is not None or self.config.execution == "async"
            blocks = self._block_bytes(lengths.blocks(room)) if has_blocks else 0
            is_listed = phase.begin == "all" or (phase.begin == "start" and begins_everywhere)
            listed = vertex * self.sizes.num_vertices if is_listed and source.flow.uses_frontier else 0
            # The queue before is still there when a longer one is made.
            temporary = max(temporary, listed + (before if queue > before else 0))
            bitmaps = NUM_BITMAPS * INT64_BYTES * ((self.sizes.num_vertices + 63) // 64)
            buffers = max(buffers, queue + INT64_BYTES * levels + bitmaps + blocks + fixed)
        state = state_bytes(program.fields(), self.sizes.num_vertices, self.sizes.vertex_dtype) + constants
        workspace = queue + INT64_BYTES * levels
        return Stage(state, buffers, others + temporary + OBJECT_BYTES, uses_in_edges, workspace)

    def resized(self, num_vertices: int) -> Footprint:
        """Return the same for a part of so many vertices."""
        other = copy.copy(self)
        other.sizes = replace(self.sizes, num_vertices=num_vertices)
        return other

    def source(self, program: Program, phase: Phase) -> Any:
        """Return the generated text of a phase, with what a run of it needs; it is not compiled."""
        function = getattr(phase.step, "__func__", phase.step)
        key = (id(program), id(function))
        if key not in self._sources:
            self._sources[key] = program, function, self._write(program, phase)
        return self._sources[key][-1]

    def _write(self, program: Program, phase: Phase) -> Any:
        from shoal.backends.cpu.generator import write_phase
        from shoal.operators import force_direction, mark_outputs, record

        recording = record(program, phase.step)
        force_direction(recording, self.config.direction)
        if self.duplication is not None:
            mark_outputs(recording)
        is_weighted = self.sizes.weight_dtype is not None
        dtypes = {n: field_dtype(f, self.sizes.vertex_dtype) for n, f in recording.fields.items()}
        how: dict[str, Any] = {"is_weighted": is_weighted, "title": type(program).__name__}
        stealing = "none" if self.duplication is None else self.config.stealing
        return write_phase(recording, phase, dtypes, duplication=self.duplication, stealing=stealing, **how)

    def _block_bytes(self, num_blocks: int) -> int:
        """Return the bytes of the buckets' blocks while they are doubled: that graphs with hubs need it is usual."""
        from shoal.backends.cpu.kernels.ordered import BINS_ROW, ENTRIES

        block = ENTRIES * self.sizes.vertex_dtype.itemsize + 3 * INT64_BYTES  # with its link and two places
        return 3 * num_blocks * block + self.num_threads * BINS_ROW * INT64_BYTES

    def _fixed_bytes(self, source: Any, lengths: Any) -> int:
        """Control block, trace, outboxes, partial values per block of vertices."""
        from shoal.backends.cpu.buffers import OUTBOX
        from shoal.backends.cpu.kernels.vertices import BLOCK
        from shoal.backends.loops.control import NUM_TRACE_COLUMNS, control_size

        words = control_size(len(source.flow.operators)) + lengths.work + lengths.trace_rows * NUM_TRACE_COLUMNS
        sizes = [dtype.itemsize // INT64_BYTES for dtype in source.partials.values()]
        words += -(-self.sizes.num_vertices // BLOCK) * sum(sizes)
        outboxes = self.num_threads * (1 if self.duplication is None else 2)
        scratch = self.num_threads * self._scratch_sizes(source).nbytes
        return INT64_BYTES * words + outboxes * OUTBOX * self.sizes.vertex_dtype.itemsize + scratch

    def _scratch_sizes(self, source: Any) -> Any:
        """Return what a thread notes about lists; where the longest is not known it is taken to be of all vertices."""
        from shoal.backends.cpu.scratch import scratch_sizes

        longest = self.sizes.num_vertices if self.sizes.max_degree is None else self.sizes.max_degree
        return scratch_sizes(source.flow, self.sizes.num_vertices, longest, longest)
