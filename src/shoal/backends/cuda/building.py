# SPDX-License-Identifier: Apache-2.0
"""Build, reverse and order CSR arrays on the GPU: the same arrays, bit for bit, as ``backends/cpu/csr.py`` makes.

Ranges of rows are built one after another.  A range's edges are collected as 64-bit keys (row, index), sorted by
CuPy's radix sort, and written without copies; edges are read or drawn again for each range instead of being kept, since
on a GPU memory is scarcer than arithmetic.  Sorting a range takes about half of what the CSR takes, so the peak is when
the ranges are joined: twice the CSR, the caller's arrays not counted.  Only a single row (or 2**-16 of all rows) with
more edges than a range should have takes more.  Sorting all keys at once would take four times the CSR, and sorting
each row by itself needs a kernel for each length and another for hubs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal import arrays
from shoal.backends.cuda.modules import BLOCK, load_kernel
from shoal.backends.cuda.ranges import Buckets, Range, choose_capacity
from shoal.errors import Allocating, GraphError

#: Keys that a block of count_kept and write_kept looks at: ROUNDS of csr.cuh for each thread.
_TILE = BLOCK * 8
_C_TYPES = {"int32": "int", "int64": "long long"}
_WEIGHT_TYPES = ("int32", "float32", "float64")


class CSR(NamedTuple):
    """Rows of ascending (index, weight), or (rank of the index, weight), as CuPy arrays."""

    indptr: Any
    indices: Any
    weights: Any


@dataclass(frozen=True)
class Edges:
    """Edges that kernels ask for by number: ``count_<name>`` and ``collect_<name>`` of ``text``, given ``args``.

    ``weights`` has one for each edge; ``ids`` are the arrays that may hold wrong ids, by name.  Where edges have ranks
    in place of destinations, ``names`` are the vertices by rank.
    """

    text: str
    name: str
    num_edges: int
    args: tuple[Any, ...]
    weights: Any = None
    ids: Mapping[str, Any] = field(default_factory=dict)
    names: Any = None

    @property
    def weight_dtype(self) -> np.dtype | None:
        """Type of the weights, None if there are none."""
        return None if self.weights is None else self.weights.dtype


def kernel_text(header: str, vertex_dtype: Any, edge_dtype: Any) -> str:
    """Return the source of a header's kernels for these types of vertex ids and edge offsets."""
    vertex, offset = (_C_TYPES[np.dtype(dtype).name] for dtype in (vertex_dtype, edge_dtype))
    return f'#define SHOAL_VERTEX {vertex}\n#define SHOAL_OFFSET {offset}\n#include "{header}"\n'


def build_csr(
    src: Any,
    dst: Any,
    num_vertices: int,
    *,
    weights: Any = None,
    directed: bool = False,
    deduplicate: bool = False,
    drop_self_loops: bool = False,
    vertex_dtype: Any = None,
    edge_dtype: Any = None,
) -> CSR:
    """Sort edges in CuPy arrays into CSR, both directions of each unless ``directed``; of copies the lightest is kept.

    Ids are int32 or int64, weights int32, float32 or float64 and not NaN.  A weight of -0.0 counts as less than 0.0.
    """
    _check_edges(src, dst, weights)
    vertex_dtype = arrays.choose_vertex_dtype(vertex_dtype, edge_dtype, num_vertices)
    text = kernel_text("csr.cuh", vertex_dtype, vertex_dtype)
    ids = {"src": _contiguous(src), "dst": _contiguous(dst)}
    edges = Edges(text, f"given_{src.dtype.name}", src.size, tuple(ids.values()), _contiguous(weights), ids)
    return build(
        edges,
        num_vertices,
        vertex_dtype,
        edge_dtype,
        is_mirrored=not directed,
        deduplicate=deduplicate,
        keeps_loops=not drop_self_loops,
    )


def reverse_csr(indptr: Any, indices: Any, weights: Any, num_vertices: int, *, is_ranked: bool = False) -> CSR:
    """Turn every edge of a CSR round; rows of the result are ascending whatever the order in the given rows.

    ``is_ranked`` orders them by falling degree that the neighbour has in the given CSR, then by id.
    """
    edges = _stored_edges("reversed", indptr, indices, weights, num_vertices, is_ranked)
    return build(edges, num_vertices, indices.dtype, indptr.dtype)


def order_csr(indptr: Any, indices: Any, weights: Any) -> CSR:
    """Order every row by falling degree of the neighbour, then by id and weight; the offsets are the given ones."""
    num_vertices = indptr.size - 1
    edges = _stored_edges("ranked", indptr, indices, weights, num_vertices, is_ranked=True)
    return build(edges, num_vertices, indices.dtype, indptr.dtype)._replace(indptr=indptr)


def _stored_edges(name: str, indptr: Any, indices: Any, weights: Any, num_vertices: int, is_ranked: bool) -> Edges:
    """Return the edges of a CSR, with the rank of the neighbour in place of its id if ``is_ranked``."""
    text = kernel_text("csr.cuh", indices.dtype, indptr.dtype)
    names, rank = _rank(indptr, indices.dtype) if is_ranked and indices.size else (None, None)
    args = (_contiguous(indptr), _contiguous(indices), np.uint64(num_vertices), rank)
    return Edges(text, name, indices.size, args, _contiguous(weights), {"indices": indices}, names)


def _rank(indptr: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Return the rows by falling length, of equal length by number, and the place of each among them."""
    import cupy

    order = cupy.argsort(indptr[:-1] - indptr[1:])  # keeps the order of what is equal
    rank = cupy.empty(order.size, dtype)
    rank[order] = cupy.arange(order.size, dtype=dtype)
    return order.astype(dtype), rank


def build(
    edges: Edges,
    num_vertices: int,
    vertex_dtype: np.dtype,
    edge_dtype: Any = None,
    *,
    is_mirrored: bool = False,
    deduplicate: bool = False,
    keeps_loops: bool = True,
) -> CSR:
    """Build the CSR of edges; without ``edge_dtype``, the narrowest that holds all of them, copies too, is taken."""
    buckets = Buckets.of(num_vertices)
    counts = _count(edges, buckets, is_mirrored, keeps_loops)
    num_stored = int(counts.sum())
    edge_dtype = arrays.choose_edge_dtype(edge_dtype, vertex_dtype, num_stored)
    ranges = buckets.plan(counts, choose_capacity(num_stored, vertex_dtype, edges.weight_dtype))
    builder = _Builder(edges, buckets, vertex_dtype, edge_dtype, is_mirrored, deduplicate, keeps_loops)
    with Allocating("the arrays of a CSR of", f"{num_vertices} vertices and {num_stored} edges"):
        return builder.build(ranges)


def _check_edges(src: Any, dst: Any, weights: Any) -> None:
    for name, ids in (("src", src), ("dst", dst)):
        if ids.ndim != 1 or ids.dtype.name not in _C_TYPES:
            raise GraphError(
                f"{name} has dtype {ids.dtype} and {ids.ndim} dimensions; it must have int32 or int64 and one dimension"
            )
    if src.size != dst.size or src.dtype != dst.dtype:
        ends = f"src has {src.size} ids of {src.dtype} and dst {dst.size} of {dst.dtype}"
        raise GraphError(f"{ends}; there must be as many of both, of one type")
    if weights is not None and (weights.shape != src.shape or weights.dtype.name not in _WEIGHT_TYPES):
        found = f"weights has shape {weights.shape} and dtype {weights.dtype}"
        raise GraphError(f"{found}; there must be one for each of {src.size} edges, of {', '.join(_WEIGHT_TYPES)}")


def _contiguous(array: Any) -> Any:
    import cupy

    return None if array is None else cupy.ascontiguousarray(array)


def _count(edges: Edges, buckets: Buckets, is_mirrored: bool, keeps_loops: bool) -> np.ndarray:
    """Return the edges to store in each bucket of rows, on the host."""
    import cupy

    counts = cupy.zeros(buckets.num_buckets, np.uint64)
    first_wrong = cupy.full(1, edges.num_edges, np.uint64)
    load_kernel(edges.text, f"count_{edges.name}").over(
        edges.num_edges,
        np.uint64(buckets.num_vertices),
        np.bool_(is_mirrored),
        np.bool_(keeps_loops),
        np.int32(buckets.bits),
        counts,
        first_wrong,
        *edges.args,
    )
    _refuse_wrong_id(edges, int(first_wrong[0]), buckets.num_vertices)
    return counts.get().astype(np.int64)


def _refuse_wrong_id(edges: Edges, position: int, num_vertices: int) -> None:
    if position == edges.num_edges:
        return
    allowed = f"ids must be from 0 to {num_vertices - 1}" if num_vertices else "the graph has no vertices"
    for name, ids in edges.ids.items():
        if not 0 <= int(ids[position]) < num_vertices:
            raise GraphError(f"{name}[{position}]={int(ids[position])} is not a vertex id; {allowed}")
    raise GraphError(f"edge {position} has an end that is not a vertex id; {allowed}")


@dataclass
class _Builder:
    """Builds range after range and joins them."""

    edges: Edges
    buckets: Buckets
    vertex_dtype: np.dtype
    edge_dtype: np.dtype
    is_mirrored: bool
    deduplicate: bool
    keeps_loops: bool

    def build(self, ranges: list[Range]) -> CSR:
        import cupy

        # The length of a row stands one place later than the row: the sums are the offsets.
        degrees = cupy.zeros(self.buckets.num_vertices + 1, self.edge_dtype)
        indices, weights = self._build_ranges(ranges, degrees)
        indptr = cupy.cumsum(degrees, dtype=self.edge_dtype)
        del degrees
        return CSR(indptr, _join(indices, self.vertex_dtype), _join(weights, self.edges.weight_dtype))

    def _build_ranges(self, ranges: list[Range], degrees: Any) -> tuple[list[Any], list[Any]]:
        """Return the indices and the weights of each range; the arrays that all ranges share end with this call."""
        capacity = max((part.num_keys for part in ranges), default=0)
        all_keys, all_weights = _empty(capacity, np.uint64), _empty(capacity, self.edges.weight_dtype)
        pieces: tuple[list[Any], list[Any]] = ([], [])
        for part in ranges:
            keys, weights = (None if array is None else array[: part.num_keys] for array in (all_keys, all_weights))
            for piece, array in zip(pieces, self._build_range(part, keys, weights, degrees), strict=True):
                piece.append(array)
        return pieces

    def _build_range(self, part: Range, keys: Any, weights: Any, degrees: Any) -> tuple[Any, Any]:
        self._collect(part, keys, weights)
        keys, order = _sort(keys, weights)
        return self._write(keys, order, weights, degrees[part.first_row + 1 :])

    def _collect(self, part: Range, keys: Any, weights: Any) -> None:
        """Put the edges of a range, in no order, as keys into an array, and their weights into another."""
        import cupy

        load_kernel(self.edges.text, f"collect_{self.edges.name}").over(
            self.edges.num_edges,
            np.bool_(self.is_mirrored),
            np.bool_(self.keeps_loops),
            np.uint64(part.first_row),
            np.uint64(part.num_rows),
            np.int32(self.buckets.vertex_bits),
            cupy.zeros(1, np.uint64),
            keys,
            self.edges.weights,
            _weight_bytes(weights),
            weights,
            *self.edges.args,
        )

    def _write(self, keys: Any, order: Any, weights: Any, degrees: Any) -> tuple[Any, Any]:
        """Return indices and weights of a range from its sorted keys, and set the lengths of its rows."""
        import cupy

        text = kernel_text("csr.cuh", self.vertex_dtype, self.edge_dtype)
        num_tiles = -(-keys.size // _TILE)
        size, deduplicate = np.uint64(keys.size), np.bool_(self.deduplicate)
        tile_counts = cupy.empty(num_tiles, np.uint64)
        load_kernel(text, "count_kept")(num_tiles, BLOCK, size, keys, deduplicate, tile_counts)
        tile_ends = cupy.cumsum(tile_counts, dtype=np.uint64)
        num_kept = int(tile_ends[-1])
        indices, kept_weights = _empty(num_kept, self.vertex_dtype), _empty(num_kept, self.edges.weight_dtype)
        load_kernel(text, "write_kept")(
            num_tiles,
            BLOCK,
            size,
            keys,
            deduplicate,
            np.int32(self.buckets.vertex_bits),
            self.edges.names,
            tile_ends - tile_counts,
            indices,
            degrees,
            order,
            weights,
            _weight_bytes(weights),
            kept_weights,
        )
        return indices, kept_weights


def _sort(keys: Any, weights: Any) -> tuple[Any, Any]:
    """Return the sorted keys and, where they have weights, the place that each had before; the lightest copy is first.

    Both sorts keep the order of what is equal, so the first one, by weight, orders the copies of the second.
    """
    import cupy

    if weights is None:
        keys.sort()
        return keys, None
    order = cupy.argsort(_as_ordered_integers(weights))
    keys = keys[order]
    by_key = cupy.argsort(keys)
    return keys[by_key], order[by_key]


def _as_ordered_integers(weights: Any) -> Any:
    """Return integers in the order of the weights: a float's bits, turned over where it is negative."""
    if weights.dtype.kind == "i":
        return weights
    num_bits = 8 * weights.dtype.itemsize
    bits = weights.view(f"i{weights.dtype.itemsize}")
    return bits ^ ((bits >> (num_bits - 1)) & (2 ** (num_bits - 1) - 1))


def _weight_bytes(weights: Any) -> np.int32:
    return np.int32(0 if weights is None else weights.dtype.itemsize)


def _empty(size: int, dtype: Any) -> Any:
    """Return an array, or None where there is no type: of weights that are not there."""
    import cupy

    return None if dtype is None else cupy.empty(size, dtype)


def _join(pieces: list[Any], dtype: np.dtype | None) -> Any:
    """Join arrays and let go of them."""
    import cupy

    if dtype is None:
        return None
    joined = cupy.concatenate(pieces) if len(pieces) > 1 else pieces[0] if pieces else cupy.empty(0, dtype)
    pieces.clear()
    return joined
