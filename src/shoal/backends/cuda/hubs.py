# SPDX-License-Identifier: Apache-2.0
"""Hub order: an optimized graph with its vertices by falling degree, for programs to which numbers of vertices are one.

A gather reads the values of all sources, those of hubs most often: side by side they stay in the caches.  Lists of an
optimized graph are ordered by falling degree, so in hub order they ascend.  Neighbours in hub order have about as many
edges: their lists, unless they are long, stand side by side, so that a warp that goes through 32 of them reads the
values of sources near one another.  The values of vertices change places on the GPU, before the first superstep and
after the last.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from shoal.accesses import find_accesses
from shoal.backends.cuda.device import Shard
from shoal.backends.cuda.phases import LoadedPhase
from shoal.graph import Graph
from shoal.machine import import_cupy
from shoal.operators import Operator
from shoal.program import Constant, Vertex
from shoal.rules import Rule

_OPERATORS = {"gather", "compute", "reduce", "update", "swap"}
_IDS = {"src", "dst", "vertex"}
_AT_ONCE = 1 << 25  # edges that are put in order at a time
_AT_ONCE_BYTES = 64  # for each of these: eight numbers, two of them of the sort
_LONGEST = 512  # edges of a list that stands beside others: a warp has 32 of them to go through, and waits for nobody


class HubOrder:
    """Where vertices stand in hub order, and the graph so numbered."""

    def __init__(self, shard: Shard) -> None:
        cupy = import_cupy()
        degree = cupy.diff(shard.edges(incoming=False)[0])
        vertex = shard.graph.indices.dtype
        #: The vertex at each place, and the place of each vertex.
        self.order = cupy.argsort(-degree.astype(cupy.int64), kind="stable").astype(vertex)
        self.place = cupy.empty_like(self.order)
        self.place[self.order] = cupy.arange(len(self.order), dtype=vertex)
        edges = _reorder(shard.edges(incoming=True), self.order, self.place)
        self.shard = HubShard(shard.graph, shard.device, shard.part, _edges={True: edges, False: edges})
        if not shard.graph.is_directed:
            self.shard.put_side_by_side()


def hub_bytes(graph: Graph) -> int:
    """Return what hub order takes, while it is made: the edges again, both tables, the degrees twice, some edges."""
    per_vertex = 2 * graph.vertex_dtype.itemsize + 16
    return graph.nbytes + graph.num_vertices * per_vertex + min(graph.num_edges, _AT_ONCE) * _AT_ONCE_BYTES


class HubShard(Shard):
    """A graph in hub order; it has incoming edges only."""

    _side_by_side: int | None = None

    @property
    def side_by_side(self) -> int:
        """The vertex from which on the lists of 32 neighbouring ones stand side by side."""
        return self.num_local if self._side_by_side is None else self._side_by_side

    def put_side_by_side(self) -> None:
        """Put the edges of every 32 vertices without long lists in another order: by their number in their list."""
        cupy = import_cupy()
        indptr, indices, weights = self.edges(incoming=True)
        num_long = len(cupy.flatnonzero(cupy.diff(indptr) > _LONGEST))  # they come first
        begin = self._side_by_side = min(-(-num_long // 32) * 32, self.num_local)
        ends = np.append(indptr[begin:-1:32].get().astype(np.int64), len(indices))  # of the groups of 32
        group, num_groups = 0, len(ends) - 1
        while group < num_groups:
            # As many groups as are put in order at a time.
            last = max(int(np.searchsorted(ends, ends[group] + _AT_ONCE, side="right")) - 1, group + 1)
            part = slice(int(ends[group]), int(ends[last]))
            rows = indptr[begin + 32 * group : begin + 32 * last + 1]
            number = cupy.arange(part.start, part.stop, dtype=cupy.int64)
            row = cupy.searchsorted(rows, number, side="right") - 1
            number -= rows[row]
            order = cupy.argsort((row // 32 * _LONGEST + number) * 32 + row % 32)
            indices[part] = indices[part][order]
            if weights is not None:
                weights[part] = weights[part][order]
            group = last

    def edges(self, *, incoming: bool) -> tuple[Any, ...]:
        """Return indptr, indices, weights of the incoming edges, on the GPU."""
        return self._edges[incoming]


def _reorder(edges: tuple[Any, ...], order: Any, place: Any) -> tuple[Any, ...]:
    """Return rows in another order, with the new numbers of their neighbours."""
    cupy = import_cupy()
    indptr, indices, weights = edges
    ends = cupy.zeros_like(indptr)
    cupy.cumsum(cupy.diff(indptr)[order], out=ends[1:])
    moved = cupy.empty_like(indices)
    heavy = None if weights is None else cupy.empty_like(weights)
    for begin in range(0, len(indices), _AT_ONCE):
        part = slice(begin, min(begin + _AT_ONCE, len(indices)))
        position = cupy.arange(part.start, part.stop, dtype=cupy.int64)
        row = cupy.searchsorted(ends, position, side="right") - 1
        position += (indptr[order[row]] - ends[row]).astype(cupy.int64)
        del row
        moved[part] = place[indices[position]]
        if heavy is not None:
            heavy[part] = weights[position]
    return ends, moved, heavy


@functools.cache
def moved_fields(phases: tuple[LoadedPhase, ...]) -> frozenset[str] | None:
    """Return the fields with a value for each vertex that take hub order; None if a program must keep the numbers.

    It must if it has a frontier, if a rule uses a number other than to find a vertex's values, or if it looks at values
    in another way.
    """
    fields = {name: declared for phase in phases for name, declared in phase.source.fields.items()}
    moved = {name for name, declared in fields.items() if isinstance(declared, Vertex)}
    for phase in phases:
        flow = phase.source.flow
        if flow.uses_frontier or not {operator.kind for operator in flow.operators} <= _OPERATORS:
            return None
        for rule in _rules(flow.operators):
            for access in find_accesses(rule):
                declared = fields.get(access.array)
                is_array = isinstance(declared, Vertex) or (isinstance(declared, Constant) and declared.is_array)
                if access.array in _IDS or (is_array and access.place not in _IDS):
                    return None
                if is_array:
                    moved.add(access.array)
    return frozenset(moved)


def _rules(operators: Iterable[Operator]) -> Iterator[Rule]:
    for operator in operators:
        yield from operator.rules.values()
