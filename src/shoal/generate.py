# SPDX-License-Identifier: Apache-2.0
"""Random graphs: R-MAT (Kronecker), uniform, and grids with dropped edges.

The same arguments and seed give the same graph on any number of threads: every random number is a function of the seed
and the number of what it is drawn for (see ``backends/cpu/kernels/generate.py``).  R-MAT: Chakrabarti, Zhan, Faloutsos,
*R-MAT: a recursive model for graph mining* (2004); with the default probabilities and shuffled ids it is the Kronecker
generator of Graph500.

All generators take ``weights``: ``(low, high)`` gives whole weights from low to high, both included, ``"float32"`` and
``"float64"`` fractions in [0, 1).  A weight is a function of the seed and the unordered pair of endpoints, so both
directions and all copies of an edge have the same, and removing copies cannot change it.

With ``device="cuda"`` a GPU draws the same graph and keeps a copy of it for the runs there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal import arrays
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.errors import ArgumentError, OutOfMemoryError, check_choice, check_integer, check_number
from shoal.graph import Graph
from shoal.machine import available_memory_bytes

MAX_SCALE = 40
#: Drawing so many edges takes about 0.7 ms, several times what starting a thread costs.
_EDGES_PER_THREAD = 1 << 15


def rmat(
    scale: int,
    edge_factor: int = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    seed: int = 1,
    directed: bool = False,
    weights: Any = None,
    shuffle: bool = True,
    deduplicate: bool = True,
    drop_self_loops: bool = True,
    vertex_dtype: Any = None,
    edge_dtype: Any = None,
    num_threads: int | None = None,
    device: str = "cpu",
) -> Graph:
    """Draw an R-MAT graph of 2**scale vertices and ``edge_factor`` edges for each.

    Parameters
    ----------
    edge_factor
        Edges drawn for each vertex, before copies and self-loops are removed and directions are added.
    a, b, c
        Probabilities of the upper left, upper right and lower left quadrant of the matrix; the rest is the lower right.
    weights
        None, ``(low, high)``, ``"float32"`` or ``"float64"``: see the module.
    shuffle
        Rename the vertices by a pseudo-random permutation, so that an id says nothing about the degree.

    Examples
    --------
    >>> graph = rmat(scale=10, edge_factor=16, seed=1)
    >>> graph.num_vertices, graph.num_edges
    (1024, 21084)
    """
    scale, num_edges, thresholds = _check_rmat(scale, edge_factor, a, b, c)
    options = _Options(
        1 << scale, seed, weights, vertex_dtype, edge_dtype, num_threads, device, directed, deduplicate, drop_self_loops
    )
    options.check_memory(f"scale={scale}, edge_factor={edge_factor}", num_edges)
    if options.is_on_gpu:
        return options.build_on_gpu("rmat_edges", scale, num_edges, thresholds, shuffle=bool(shuffle))
    return options.weigh(options.draw("draw_rmat", num_edges, scale, thresholds, bool(shuffle)))


def _check_rmat(scale: Any, edge_factor: Any, a: Any, b: Any, c: Any) -> tuple[int, int, tuple[np.uint64, ...]]:
    scale = check_integer("scale", scale, 0, MAX_SCALE)
    return scale, check_integer("edge_factor", edge_factor, 0) << scale, _quadrant_thresholds(a, b, c)


def rmat_pieces(
    scale: int, edge_factor: int = 16, *, a: float = 0.57, b: float = 0.19, c: float = 0.19, seed: int = 1,
    directed: bool = False, weights: Any = None, shuffle: bool = True, deduplicate: bool = True,
    drop_self_loops: bool = True,
) -> Pieces:  # fmt: skip
    """Return the edges of `rmat` as pieces to be drawn one by one, for a graph that is larger than memory."""
    scale, num_edges, thresholds = _check_rmat(scale, edge_factor, a, b, c)
    options = _Options(1 << scale, seed, weights, None, None, None, "cpu", directed, deduplicate, drop_self_loops)
    return Pieces(options, num_edges, "draw_rmat", (scale, thresholds, bool(shuffle)))


def uniform_pieces(
    scale: int | None = None, edge_factor: int | None = None, *, num_vertices: int | None = None,
    num_edges: int | None = None, seed: int = 1, directed: bool = False, weights: Any = None, deduplicate: bool = True,
    drop_self_loops: bool = True,
) -> Pieces:  # fmt: skip
    """Return the edges of `uniform` as pieces to be drawn one by one."""
    num_vertices = _count_vertices(scale, num_vertices)
    num_edges = _count_edges(edge_factor, num_edges, num_vertices)
    options = _Options(num_vertices, seed, weights, None, None, None, "cpu", directed, deduplicate, drop_self_loops)
    return Pieces(options, num_edges, "draw_uniform", (np.uint64(num_vertices),))


#: The name Graph500 gives to the same generator.
kronecker = rmat


def uniform(
    scale: int | None = None,
    edge_factor: int | None = None,
    *,
    num_vertices: int | None = None,
    num_edges: int | None = None,
    seed: int = 1,
    directed: bool = False,
    weights: Any = None,
    deduplicate: bool = True,
    drop_self_loops: bool = True,
    vertex_dtype: Any = None,
    edge_dtype: Any = None,
    num_threads: int | None = None,
    device: str = "cpu",
) -> Graph:
    """Draw a graph whose edges have both endpoints drawn uniformly and independently (Erdos-Renyi).

    Parameters
    ----------
    scale, num_vertices
        One of them: 2**scale vertices, or any number.
    edge_factor, num_edges
        At most one of them: edges drawn for each vertex (16), or in all, before copies and self-loops are removed.
    weights
        None, ``(low, high)``, ``"float32"`` or ``"float64"``: see the module.

    Examples
    --------
    >>> uniform(num_vertices=100, num_edges=500, seed=1).num_vertices
    100
    """
    num_vertices = _count_vertices(scale, num_vertices)
    num_edges = _count_edges(edge_factor, num_edges, num_vertices)
    options = _Options(
        num_vertices, seed, weights, vertex_dtype, edge_dtype, num_threads, device, directed, deduplicate,
        drop_self_loops,
    )  # fmt: skip
    options.check_memory(f"{num_vertices} vertices and {num_edges} edges", num_edges)
    if options.is_on_gpu:
        return options.build_on_gpu("uniform_edges", num_vertices, num_edges)
    return options.weigh(options.draw("draw_uniform", num_edges, np.uint64(num_vertices)))


def grid(
    rows: int,
    columns: int,
    *,
    drop: float = 0.0,
    seed: int = 1,
    weights: Any = None,
    vertex_dtype: Any = None,
    edge_dtype: Any = None,
    num_threads: int | None = None,
    device: str = "cpu",
) -> Graph:
    """Make an undirected grid of four neighbours, like a road network; vertex (r, c) has the id r * columns + c.

    Parameters
    ----------
    drop
        Probability with which each edge is left out.
    weights
        None, ``(low, high)``, ``"float32"`` or ``"float64"``: see the module.

    Examples
    --------
    >>> grid(2, 3).indices.tolist()
    [1, 3, 0, 2, 4, 1, 5, 0, 4, 1, 3, 5, 2, 4]
    """
    rows = check_integer("rows", rows, 1, 1 << MAX_SCALE)
    columns = check_integer("columns", columns, 1, 1 << MAX_SCALE)
    threshold = np.uint64(int(check_number("drop", drop, 0, 1, open_high=True) * 2**32))
    options = _Options(rows * columns, seed, weights, vertex_dtype, edge_dtype, num_threads, device)
    options.check_memory(f"rows={rows}, columns={columns}", 2 * rows * columns, is_drawn=False)
    if options.is_on_gpu:
        return options.fill_on_gpu(rows, columns, threshold)
    return options.weigh(_fill_grid(options, rows, columns, threshold))


def _fill_grid(options: _Options, rows: int, columns: int, threshold: np.uint64) -> Graph:
    """Count and then write the CSR; only after counting is the width of the edge offsets known."""
    size = rows * columns
    counts = options.run("count_grid", size, rows, columns, threshold)
    first_edges = np.cumsum([0, *counts], dtype=np.int64)
    num_edges = int(first_edges[-1])
    indptr = np.empty(size + 1, arrays.choose_edge_dtype(options.edge_dtype, options.vertex_dtype, num_edges))
    indices = np.empty(num_edges, options.vertex_dtype)
    options.run("fill_grid", size, indptr, indices, first_edges, rows, columns, threshold)
    indptr[size] = num_edges
    return options.from_csr(indptr, indices, None)


@dataclass(frozen=True)
class _Weights:
    """Weights low + unit * k with k drawn from 0 .. num_values - 1."""

    dtype: np.dtype
    low: float
    num_values: int
    unit: float

    @classmethod
    def check(cls, weights: Any) -> _Weights | None:
        if weights is None:
            return None
        if isinstance(weights, str) and weights in ("float32", "float64"):
            dtype = np.dtype(weights)
            num_bits = np.finfo(dtype).nmant + 1
            return cls(dtype, 0.0, 2**num_bits, 2.0**-num_bits)
        if not isinstance(weights, tuple | list) or len(weights) != 2:
            raise ArgumentError(f"weights={weights!r} is not allowed; allowed: None, (low, high), 'float32', 'float64'")
        low = check_integer("weights[0]", weights[0], -(2**31), 2**31 - 1)
        high = check_integer("weights[1]", weights[1], low, 2**31 - 1)
        return cls(np.dtype(np.int32), float(low), high - low + 1, 1.0)


@dataclass
class _Options:
    """What every generator is asked for, checked once, and the steps that all of them share."""

    num_vertices: int
    seed: Any
    weights: Any
    vertex_dtype: Any
    edge_dtype: Any
    num_threads: int | None
    device: str = "cpu"
    is_directed: bool = False
    deduplicate: bool = False
    drop_self_loops: bool = False

    def __post_init__(self) -> None:
        check_choice("device", self.device, ("cpu", "cuda"))
        if self.is_on_gpu:
            from shoal.machine import count_gpus

            count_gpus("device='cuda'")  # before anything is drawn
        self.seed = np.uint64(check_integer("seed", self.seed, 0, 2**64 - 1))
        self.weights = _Weights.check(self.weights)
        self.vertex_dtype = arrays.choose_vertex_dtype(self.vertex_dtype, self.edge_dtype, self.num_vertices)
        arrays.choose_edge_dtype(self.edge_dtype, self.vertex_dtype, 0)  # refuses a name before anything is drawn
        if self.num_threads is not None:
            self.num_threads = check_integer("num_threads", self.num_threads, 1)

    @property
    def is_on_gpu(self) -> bool:
        """Whether the GPU draws; the graph is the same."""
        return self.device == "cuda"

    def build_on_gpu(self, edges: str, *args: Any, **options: Any) -> Graph:
        """Let the GPU draw the edges, as often as it needs them, and make the graph of them."""
        from shoal.backends.cuda import building, drawing

        drawn = getattr(drawing, edges)(*args, seed=int(self.seed), vertex_dtype=self.vertex_dtype, **options)
        csr = building.build(
            drawn, self.num_vertices, self.vertex_dtype, self.edge_dtype, is_mirrored=not self.is_directed,
            deduplicate=self.deduplicate, keeps_loops=not self.drop_self_loops,
        )  # fmt: skip
        return self._from_gpu(csr)

    def fill_on_gpu(self, rows: int, columns: int, threshold: np.uint64) -> Graph:
        """Let the GPU write the CSR of a grid."""
        from shoal.backends.cuda import drawing

        types = {"vertex_dtype": self.vertex_dtype, "edge_dtype": self.edge_dtype}
        return self._from_gpu(drawing.fill_grid(rows, columns, int(threshold), seed=int(self.seed), **types))

    def _from_gpu(self, csr: Any) -> Graph:
        """Return the graph of arrays on the GPU, which keeps them for the runs there."""
        from shoal.backends.cuda import drawing
        from shoal.backends.cuda.device import keep_on_gpu

        if self.weights is not None:
            spread = self.weights
            csr = drawing.weigh(csr, seed=int(self.seed), dtype=spread.dtype, low=spread.low,
                                num_values=spread.num_values, unit=spread.unit)  # fmt: skip
        weights = None if csr.weights is None else csr.weights.get()
        graph = self.from_csr(csr.indptr.get(), csr.indices.get(), weights)
        keep_on_gpu(graph, csr)
        return graph

    def check_memory(self, request: str, num_edges: int, is_drawn: bool = True) -> None:
        """Refuse what cannot fit: rows, stored edges, and with them the drawn edges being sorted or the weights."""
        num_stored = num_edges if self.is_directed else 2 * num_edges
        id_bytes = self.vertex_dtype.itemsize
        draw_bytes = 2 * num_edges * id_bytes + num_stored if is_drawn else 0
        weight_bytes = num_stored * self.weights.dtype.itemsize if self.weights else 0
        needed = (self.num_vertices + 1) * 8 + num_stored * id_bytes + max(draw_bytes, weight_bytes)
        available = available_memory_bytes()
        if needed > available:
            raise OutOfMemoryError(
                f"{request} needs about {needed / 1e9:,.1f} GB of memory; {available / 1e9:,.1f} GB is available"
            )

    def run(self, kernel: str, size: int, *args: Any) -> list[Any]:
        """Run a kernel with the seed on as many threads as asked for, or as ``size`` edges or vertices are worth."""
        from shoal.backends.cpu.kernels import generate as kernels

        num_threads = self.num_threads or min(len(available_cores()), 1 + size // _EDGES_PER_THREAD)
        return run_threads(getattr(kernels, kernel), num_threads, self.seed, *args)

    def draw(self, kernel: str, num_edges: int, *args: Any) -> Graph:
        """Let a kernel fill the endpoints of the edges and make the graph of them."""
        src, dst = np.empty(num_edges, self.vertex_dtype), np.empty(num_edges, self.vertex_dtype)
        self.run(kernel, num_edges, src, dst, *args, 0)
        return Graph.from_edges(
            src,
            dst,
            num_vertices=self.num_vertices,
            directed=self.is_directed,
            deduplicate=self.deduplicate,
            drop_self_loops=self.drop_self_loops,
            vertex_dtype=self.vertex_dtype,
            edge_dtype=self.edge_dtype,
            num_threads=self.num_threads,
        )

    def draw_piece(self, kernel: str, begin: int, count: int, *args: Any) -> tuple[Any, Any, Any]:
        """Return some of the edges that `draw` makes a graph of, and their weights."""
        src, dst = np.empty((2, count), self.vertex_dtype)
        self.run(kernel, count, src, dst, *args, begin)
        if self.weights is None:
            return src, dst, None
        weights = np.empty(count, self.weights.dtype)
        spread = (self.weights.low, np.uint64(self.weights.num_values), self.weights.unit)
        self.run("weigh_edges", count, src, dst, weights, *spread)
        return src, dst, weights

    def weigh(self, graph: Graph) -> Graph:
        """Return the graph with its weights; they follow from its edges, so they need not be sorted with them."""
        if self.weights is None:
            return graph
        weights = np.empty(graph.num_edges, self.weights.dtype)
        spread = (self.weights.low, np.uint64(self.weights.num_values), self.weights.unit)
        self.run("weigh", graph.num_edges, graph.indptr, graph.indices, weights, *spread)
        return self.from_csr(graph.indptr, graph.indices, weights)

    def from_csr(self, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> Graph:
        return Graph.from_csr(
            indptr,
            indices,
            weights,
            directed=self.is_directed,
            vertex_dtype=indices.dtype,
            edge_dtype=indptr.dtype,
            check=False,
        )


#: Edges of a piece: small beside any graph that is drawn so.
PIECE_EDGES = 1 << 20


@dataclass(frozen=True)
class Pieces:
    """The edges of a random graph, drawn again each time that they are asked for, a piece at a time."""

    options: _Options
    num_edges: int
    kernel: str
    arguments: tuple[Any, ...]

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield sources, destinations and perhaps weights; first of no edges."""
        return self.share(0, 1)

    def share(self, rank: int, size: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield every ``size``-th piece from ``rank`` on; first one of no edges."""
        yield self.options.draw_piece(self.kernel, 0, 0, *self.arguments)
        for begin in range(rank * PIECE_EDGES, self.num_edges, size * PIECE_EDGES):
            count = min(PIECE_EDGES, self.num_edges - begin)
            yield self.options.draw_piece(self.kernel, begin, count, *self.arguments)


def _quadrant_thresholds(a: float, b: float, c: float) -> tuple[np.uint64, ...]:
    """Return the upper ends of the quadrants a, b and c in units of 2**-32."""
    quadrants = [check_number(name, value, 0, 1) for name, value in (("a", a), ("b", b), ("c", c))]
    sums = [sum(quadrants[:end]) for end in (1, 2, 3)]
    if sums[2] > 1 + 1e-9:  # 0.1 + 0.2 + 0.7 may be a little more than 1
        raise ArgumentError(f"a + b + c = {a} + {b} + {c} = {sums[2]:g} is out of range; it must be at most 1")
    return tuple(np.uint64(round(min(total, 1.0) * 2**32)) for total in sums)


def _count_vertices(scale: int | None, num_vertices: int | None) -> int:
    if (scale is None) == (num_vertices is None):
        raise ArgumentError(f"scale={scale}, num_vertices={num_vertices}: exactly one of them must be given")
    if scale is not None:
        return 1 << check_integer("scale", scale, 0, MAX_SCALE)
    return check_integer("num_vertices", num_vertices, 0, 1 << MAX_SCALE)


def _count_edges(edge_factor: int | None, num_edges: int | None, num_vertices: int) -> int:
    if num_edges is None:
        return num_vertices * check_integer("edge_factor", 16 if edge_factor is None else edge_factor, 0)
    if edge_factor is not None:
        raise ArgumentError(f"edge_factor={edge_factor}, num_edges={num_edges}: at most one of them may be given")
    if num_vertices == 0:
        return check_integer("num_edges (of a graph without vertices)", num_edges, 0, 0)
    return check_integer("num_edges", num_edges, 0)
