# SPDX-License-Identifier: Apache-2.0
"""python-graphblas (SuiteSparse:GraphBLAS): graph kernels as sparse linear algebra, after the methods of LAGraph.

It offers operations, not graph algorithms, so these are our own short ones: direction-optimizing breadth-first search,
delta-stepping, FastSV components, batched betweenness and power iteration.  The adjacency matrix is symmetric, so
``vector @ matrix`` (push) and ``matrix @ vector`` (pull) give the same result and the cheaper one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.bench import answers
from shoal.bench.kernels import DAMPING, NUM_ITERATIONS
from shoal.bench.peers import Reader
from shoal.graph import Graph

#: Breadth-first search pulls while more than this share of the vertices is in the frontier: on kron20 a third of the
#: time of pushing only, and no slower than with 1/128 or 1/8.
_BFS_PULL_SHARE = 1 / 32
#: Betweenness pulls above this density of the frontier: kron20 takes up to twice as long from 10 % on, and two to three
#: times as long when it only pushes.
_BC_PULL_SHARE = 0.02
_INFINITY = np.iinfo(np.int32).max


@dataclass
class _Native:
    pattern: Any
    weights: Any
    delta: float
    degree: np.ndarray


class GraphblasPeer:
    """Ids and whole distances are 32 bits wide where the graph allows it."""

    uses_openmp: ClassVar[bool] = True
    notes: ClassVar[dict[str, str]] = {"bfs": "parents", "pagerank": "float64", "sssp": "delta-stepping"}

    def __init__(self, num_threads: int) -> None:
        import graphblas

        # Blocking would force every operation to finish on its own; results are waited for inside the timed call.
        if not graphblas.backend:
            graphblas.init("suitesparse", blocking=False)
        graphblas.ss.config["nthreads"] = num_threads
        self.gb = graphblas

    def prepare(self, graph: Graph, kernels: list[str]) -> _Native:
        weights = None if graph.weights is None else self._matrix(graph, graph.weights)
        return _Native(self._matrix(graph, None), weights, _choose_delta(graph), graph.degree.astype(np.float64))

    def _matrix(self, graph: Graph, values: np.ndarray | None) -> Any:
        # GraphBLAS takes the arrays over, so each matrix gets copies.
        matrix = self.gb.Matrix.ss.import_csr(
            nrows=graph.num_vertices,
            ncols=graph.num_vertices,
            indptr=graph.indptr.astype(np.uint64),
            col_indices=graph.indices.astype(np.uint64),
            values=np.array([True]) if values is None else values.copy(),
            is_iso=values is None,
            sorted_cols=not graph.is_optimized,
        )
        matrix.wait()
        return matrix

    def bfs(self, native: _Native, source: int) -> Reader:
        size = native.pattern.nrows
        parent_of = self.gb.semiring.ss.any_secondi["INT32" if size < _INFINITY else "INT64"]
        frontier = self.gb.Vector(parent_of.return_type, size)
        frontier[source] = source
        parent = frontier.dup()
        while num_found := frontier.nvals:
            is_push = num_found <= _BFS_PULL_SHARE * size
            product = frontier @ native.pattern if is_push else native.pattern @ frontier
            frontier(~parent.S, replace=True) << parent_of(product)
            parent(frontier.S) << frontier
        parent.wait()
        return lambda: answers.from_parents(parent.to_dense(fill_value=-1), source)

    def sssp(self, native: _Native, source: int) -> Reader:
        gb, dtype = self.gb, native.weights.dtype
        infinity = _INFINITY if dtype == "INT32" else np.inf
        distance = gb.Vector.from_scalar(infinity, native.pattern.nrows, dtype=dtype)
        pending = gb.Vector(dtype, native.pattern.nrows)  # improved since it was last relaxed
        distance[source] = pending[source] = 0
        while pending.nvals:
            lowest = pending.reduce(gb.monoid.min).value
            limit = (lowest // native.delta + 1) * native.delta
            while (frontier := gb.select.valuelt(pending, limit).new()).nvals:
                pending(~frontier.S, replace=True) << pending
                reached = gb.semiring.min_plus(frontier @ native.weights).new(dtype)
                is_shorter = gb.binary.lt(reached & distance).new()
                improved = reached.dup(mask=is_shorter.V)
                distance(improved.S) << improved
                pending(improved.S) << improved
        distance.wait()
        return lambda: _read_distances(distance.to_dense(), infinity)

    def pagerank(self, native: _Native) -> Reader:
        gb, size = self.gb, native.degree.size
        is_dangling = native.degree == 0
        per_edge = gb.Vector.from_dense(DAMPING / np.where(is_dangling, 1.0, native.degree))
        dangling = gb.Vector.from_coo(np.flatnonzero(is_dangling), 1.0, size=size, dtype="FP64")
        rank = gb.Vector.from_scalar(1 / size, size, dtype="FP64")
        for _ in range(NUM_ITERATIONS):
            lost = gb.semiring.plus_times(dangling @ rank).value or 0.0
            share = gb.binary.times(rank & per_edge).new()
            rank = gb.Vector.from_scalar((1 - DAMPING + DAMPING * lost) / size, size, dtype="FP64")
            rank(gb.binary.plus) << gb.semiring.plus_second(native.pattern @ share)
        rank.wait()
        return lambda: answers.from_scores(rank.to_dense())

    def cc(self, native: _Native) -> Reader:
        """FastSV: hook every tree under the smallest grandparent among its neighbours', then jump pointers."""
        gb = self.gb
        parent: Any = np.arange(native.degree.size, dtype=np.int32 if native.degree.size < _INFINITY else np.int64)
        grandparent, before = parent.copy(), None
        while before is None or not np.array_equal(grandparent, before):
            before = grandparent
            lowest = gb.Vector.from_dense(before)
            lowest(gb.binary.min) << gb.semiring.min_second(native.pattern @ gb.Vector.from_dense(before))
            lowest = lowest.to_dense()
            np.minimum.at(parent, parent.copy(), lowest)
            np.minimum(parent, lowest, out=parent)
            grandparent = parent[parent]
        return lambda: answers.from_labels(parent)

    def bc(self, native: _Native, sources: list[int]) -> Reader:
        gb, shape = self.gb, (len(sources), native.pattern.nrows)
        frontier = gb.Matrix.from_coo(range(shape[0]), sources, 1.0, nrows=shape[0], ncols=shape[1], dtype="FP64")
        num_paths = frontier.dup()
        num_paths.ss.config["sparsity_control"] = "bitmap"
        levels = []
        while frontier.nvals:
            levels.append(frontier)
            frontier = self._spread(native, frontier, ~num_paths.S)
            num_paths(gb.binary.plus) << frontier
        # Starts at 1 and not 0: 1 plus the dependency is what a vertex passes on.
        passed = gb.Matrix.from_scalar(1.0, *shape, dtype="FP64")
        # Down to level 1: a source is an end of its paths and not between others.
        for above, level in zip(levels[-2:0:-1], levels[:1:-1], strict=True):
            share = gb.binary.truediv(passed & num_paths).new(mask=level.S)
            received = self._spread(native, share, above.S)
            passed(gb.binary.plus) << gb.binary.times(received & num_paths)
        return _read_dependencies(passed, sources)

    def _spread(self, native: _Native, values: Any, mask: Any) -> Any:
        """Add every vertex's value to its neighbours within the mask."""
        if values.nvals > _BC_PULL_SHARE * values.nrows * values.ncols:
            values.ss.config["sparsity_control"] = "bitmap"  # a pull looks every neighbour up
            product = values @ native.pattern.T
        else:
            product = values @ native.pattern
        return self.gb.semiring.plus_first(product).new(mask=mask)


def _choose_delta(graph: Graph) -> float:
    """Return the width of a bucket: wide where few edges leave a vertex, and so a bucket fills slowly.

    Measured with weights of 1 to 255: a quarter of the mean is best on kron20 of {1/4, 1/2, 1, 2}, eight times the mean
    on grid2000 of {4, 8, 16, 32}.
    """
    if graph.weights is None or graph.num_edges == 0:
        return 1
    mean = float(graph.weights.mean())
    delta = mean / 4 if graph.num_edges > 8 * graph.num_vertices else mean * 8
    return max(1, round(delta)) if graph.weights.dtype == np.int32 else delta


def _read_distances(distance: np.ndarray, infinity: float) -> answers.Answer:
    return answers.from_distances(distance, distance < infinity)


def _read_dependencies(passed: Any, sources: list[int]) -> Reader:
    total = passed.reduce_columnwise("plus").new()
    total.wait()

    def read() -> answers.Answer:
        centrality = total.to_dense() - len(sources)
        return answers.from_scores(centrality)

    return read
