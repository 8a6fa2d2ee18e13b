# SPDX-License-Identifier: Apache-2.0
"""Searches on a GPU that is none: the loop of their kernel in Python, around the serial functions it would call.

These, the end of a superstep and what follows the count of a frontier's edges, are the text that a GPU gets, not
compiled.  What the kernel would write outside of its room is an error here.
"""

from __future__ import annotations

import functools
import sys
import time
import types

import numpy as np

import shoal
from cuda_fake import FakeGPU
from shoal import Phase, Program, Vertex, advance, atomic, compute, filter, rule
from shoal.backends.base import Reason
from shoal.backends.cuda import phase_run
from shoal.backends.cuda.generator.phase import PARAMETERS
from shoal.backends.loops import control as slot

_HEADER = "from shoal.backends.cuda.intrinsics import *\n"
PULL_COST, USUAL_KNOB = 0.25, 0.01  # as in kernels/pull.cuh


class Search(Program):
    """Hops from a source; the turn of a vertex is that of its frontier when kept ones are replayed."""

    level = Vertex("int64", fill=-1)
    turn = Vertex("int64", fill=-1)

    def __init__(self, direction, joins=None, is_kept=False, is_filtered=False):
        self.direction, self.joins, self.is_kept, self.is_filtered = direction, joins, is_kept, is_filtered

    def start(self, source):
        self.level[source] = 0
        return [source]

    @rule
    def unvisited(vertex, level):
        return level[vertex] < 0

    @rule
    def discover(src, dst, level, superstep):
        return atomic.compare_exchange(level, dst, -1, superstep + 1)

    @rule
    def always(vertex):
        return True

    @rule
    def note(vertex, turn, superstep):
        turn[vertex] = superstep

    def step(self, frontier):
        sources = filter(frontier, self.always) if self.is_filtered else frontier
        is_unique = self.joins is not None
        return advance(sources, self.discover, where=self.unvisited, direction=self.direction, unique=is_unique)

    def back(self, frontier):
        compute(frontier, self.note)

    def phases(self):
        search = Phase(self.step, joins=self.joins, keep=self.is_kept)
        return [search, Phase(self.back, begin="replay")] if self.is_kept else [search]


@functools.cache
def serial_functions(module: str) -> dict:
    """Return the functions of a generated module, as Python runs them."""
    assert _HEADER in module
    plain = {
        "np": np,
        "inner": lambda **options: lambda function: function,
        "load": lambda array, place: array[place],
        "store": lambda array, place, value: array.__setitem__(place, value),
        "nanoseconds": time.monotonic_ns,
    }
    exec(module.replace(_HEADER, ""), plain)
    return plain


class SearchKernel:
    """The kernel of a phase of `Search`; bitmaps are lists of vertices here."""

    def __init__(self, loaded):
        self.source, self.flow = loaded.source, loaded.source.flow
        self.serial = serial_functions(self.source.module)
        self.bits = np.empty(0, np.int64)
        self.num_launches = 0

    def __call__(self, num_blocks, num_threads, *arguments, is_cooperative):
        self.num_launches += 1
        given = types.SimpleNamespace(**dict(zip(PARAMETERS, arguments, strict=False)))
        self.control, self.queue, self.given = given.control, given.queue, given
        self.level, self.turn = arguments[len(PARAMETERS) :]
        while self.control[slot.REASON] == 0:
            self.superstep()

    def superstep(self):
        control, given = self.control, self.given
        if self.flow.phase.begin == "replay":
            self.turn[self.frontier()] = control[slot.SUPERSTEP]
        else:
            self.search()
        serial_finish = self.serial["serial_finish"]
        serial_finish(control, given.trace, given.levels, given.knobs, self.queue, given.indptr)
        if "serial_settle_room" not in self.serial:
            assert control[slot.REASON] != Reason.NEEDS_MEMORY
        elif control[slot.REASON] == Reason.NEEDS_MEMORY and control[slot.HAS_QUEUE] != 0:
            if self.source.text.count(" reconsider(control,") > 1:
                self.reconsider()
            self.serial["serial_settle_room"](control, given.trace, self.count_edges(self.frontier()))

    def search(self):
        control, direction = self.control, self.flow.advances[0].options["direction"]
        if direction == "auto":
            self.reconsider()
        if direction == "pull" or (direction == "auto" and control[slot.DIRECTION] == slot.PULL):
            self.bits = self.discover(self.bits if control[slot.HAS_BITMAP] != 0 else self.frontier())
            if self.flow.needs_queue:
                self.write(self.bits)
        else:
            if control[slot.HAS_QUEUE] == 0:
                self.write(self.bits)
                self.serial["serial_adopt_queue"](control)
            self.filter()
            self.bits = self.discover(self.frontier())
            assert len(self.bits) <= self.capacity()
            self.write(self.bits)
        control[slot.OUTPUT] = len(self.bits)

    def frontier(self):
        return np.array(self.queue[self.control[slot.BEGIN] : self.control[slot.END]], np.int64)

    def discover(self, frontier):
        """Return the vertices that join, each once."""
        indptr, indices = self.given.indptr, self.given.indices
        self.control[slot.EDGES] += self.count_edges(frontier)
        reached = [indices[indptr[vertex] : indptr[vertex + 1]] for vertex in frontier]
        joined = np.unique(np.concatenate([np.empty(0, np.int64), *reached]))
        joined = joined[self.level[joined] < 0]
        self.level[joined] = self.control[slot.SUPERSTEP] + 1
        return joined

    def count_edges(self, vertices):
        indptr = self.given.indptr
        return np.int64((indptr[vertices + 1] - indptr[vertices]).sum())

    def capacity(self):
        control = self.control
        if self.flow.is_sliding:
            return control[slot.QUEUE_END] - control[slot.OUT_BASE]
        return control[slot.CAPACITY]

    def write(self, vertices):
        """Put vertices where the next frontier goes: in the queue, and not where others are."""
        control, base = self.control, self.control[slot.OUT_BASE]
        end = base + len(vertices)
        assert end <= control[slot.INTERMEDIATE]
        assert self.flow.is_sliding or len(vertices) <= control[slot.ROOM]
        self.queue[base:end] = vertices

    def filter(self):
        """Fill the room of an output inside the step, as a filter does that keeps everything."""
        if self.flow.regions:
            control, frontier = self.control, self.frontier()
            begin = control[slot.INTERMEDIATE]
            assert len(frontier) <= control[slot.CAPACITY]
            assert begin + control[slot.ROOM] <= len(self.queue)
            self.queue[begin : begin + len(frontier)] = frontier

    def reconsider(self):
        control = self.control
        if control[slot.DIRECTION] != slot.PUSH or control[slot.HAS_PULLED] or not control[slot.HAS_QUEUE]:
            return
        unvisited = control[slot.NUM_VERTICES] - control[slot.NUM_VISITED]
        limit = PULL_COST * self.given.knobs[0] / USUAL_KNOB * unvisited * control[slot.NUM_EDGES]
        if float(self.count_edges(self.frontier())) ** 2 > limit:
            control[slot.DIRECTION], control[slot.HAS_PULLED] = slot.PULL, 1


def install(monkeypatch, *, keeps_runs=True, **options):
    """Let searches run on a GPU that is none; return it, and a list of the runs that are made, with their arrays."""
    gpu, runs, resume = FakeGPU(**options), [], phase_run.PhaseRun.resume
    gpu.install(monkeypatch)
    begin, grow = phase_run.PhaseRun.__init__, phase_run.PhaseRun.grow

    def begin_noted(run, *arguments):
        begin(run, *arguments)
        run.num_grown = 0
        if keeps_runs:
            runs.append(run)

    def grow_noted(run):
        before = run.queue
        grow(run)
        run.num_grown += run.queue is not before

    event = types.SimpleNamespace(ptr=0)
    sys.modules["cupy"].cuda.get_current_stream = lambda: types.SimpleNamespace(record=lambda: event)
    monkeypatch.setattr(phase_run.PhaseRun, "resume", resume)
    monkeypatch.setattr(phase_run.PhaseRun, "__init__", begin_noted)
    monkeypatch.setattr(phase_run.PhaseRun, "grow", grow_noted)
    monkeypatch.setattr(phase_run, "_load", lambda loaded, device: SearchKernel(loaded))
    return gpu, runs


def run_search(graph, program, source=0, **how):
    """Return the search's result on the GPU that is none."""
    return shoal.run(program, graph, source=source, devices="cuda", **how)
