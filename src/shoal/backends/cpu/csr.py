# SPDX-License-Identifier: Apache-2.0
"""Build, transpose and order CSR arrays on the CPU: allocate the arrays, run the kernels.

Beyond the result, memory goes only into a buffer for each thread of the size of a bucket (a thousandth of the edges, or
the longest row if that is more), and where rows are ordered by degree into a few arrays over vertices; above 2**28
vertices of 32 bits, edges take 64 bits while they are sorted.
All ids must be in range: callers check them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shoal.arrays import read_only
from shoal.backends.cpu.kernels import csr as kernels
from shoal.backends.cpu.kernels import twins
from shoal.backends.cpu.threads import available_cores, run_threads
from shoal.progress import WorkReporter

#: Below this, starting threads costs more than they save.
_MIN_EDGES_FOR_THREADS = 2**16
#: Buckets of fewer than 2**3 vertices would need counters as large as the graph.
_MIN_SPARE_BITS = 3
#: NumPy sorts 16 bits by their digits, and more by comparisons.
_RANK_DIGIT_BITS = 16
#: NumPy copies a chunk aside where source and target overlap.
_CHUNK = 2**20


class CSR(NamedTuple):
    """Rows of ascending (index, weight), or (rank of the index, weight)."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


def build_csr(
    src: np.ndarray,
    dst: np.ndarray,
    weights: np.ndarray | None,
    num_vertices: int,
    vertex_dtype: np.dtype,
    edge_dtype_for: Callable[[int], np.dtype],
    *,
    is_mirrored: bool = False,
    deduplicate: bool = False,
    drop_self_loops: bool = False,
    num_threads: int | None = None,
) -> CSR:
    """Sort edges into CSR; ``is_mirrored`` stores each in both directions, ``deduplicate`` keeps the lightest.

    ``edge_dtype_for`` is called with the number of stored edges, which only the first pass knows.
    """
    layout = choose_layout(num_vertices, vertex_dtype)
    num_threads = _choose_threads(num_threads, src.size, layout.num_buckets)
    work = WorkReporter("built", 3 * src.size, "edges")  # three passes: count, scatter, sort
    cursors, starts = _count(layout, num_threads, src, dst, is_mirrored, not drop_self_loops)
    work.report(src.size)
    csr = _allocate(int(starts[-1]), num_vertices, layout.key_dtype, edge_dtype_for(int(starts[-1])), weights)
    run_threads(
        kernels.scatter_edges,
        num_threads,
        src,
        dst,
        weights,
        is_mirrored,
        not drop_self_loops,
        layout.bucket_bits,
        layout.vertex_bits,
        cursors,
        csr.indices,
        csr.weights,
    )
    work.report(2 * src.size)
    _sort(csr, layout, starts, 0, deduplicate, num_threads)
    return _narrowed(_without_gaps(csr, layout, starts) if deduplicate else csr, vertex_dtype)


def transpose_csr(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, num_threads: int | None = None
) -> CSR:
    """Transpose a square CSR; rows of the result are ascending whatever the order in the given rows."""
    num_vertices = indptr.size - 1
    layout = choose_layout(num_vertices, indices.dtype)
    num_threads = _choose_threads(num_threads, indices.size, layout.num_buckets)
    cursors, starts = _count(layout, num_threads, indices, indices, False, True)
    csr = _allocate(indices.size, num_vertices, layout.key_dtype, indptr.dtype, weights)
    run_threads(
        kernels.scatter_reversed,
        num_threads,
        _first_rows(indptr, num_threads),
        indptr,
        indices,
        weights,
        layout.bucket_bits,
        layout.vertex_bits,
        cursors,
        csr.indices,
        csr.weights,
    )
    _sort(csr, layout, starts, layout.vertex_bits, False, num_threads)
    return _narrowed(csr, indices.dtype)


def is_symmetric(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, num_threads: int | None = None
) -> bool:
    """Say whether every edge of a CSR has its twin, with the same whole weight: see `kernels.twins`."""
    num_threads = _choose_threads(num_threads, indices.size, 1)
    sums = np.zeros(num_threads, np.uint64)
    key = np.uint64(secrets.randbits(64))
    first_rows = _first_rows(indptr, num_threads)
    run_threads(twins.sum_differences, num_threads, first_rows, indptr, indices, weights, key, sums)
    return int(sums.sum()) == 0  # modulo 2**64, as the sums are


def order_csr(csr: CSR, degree: np.ndarray, *, overwrite: bool = False, num_threads: int | None = None) -> CSR:
    """Order every row by falling ``degree`` of the neighbour, then by id and weight.

    ``overwrite`` lets the result take the place of the given indices and weights; the offsets are the given ones.
    """
    layout = choose_layout(csr.indptr.size - 1, csr.indices.dtype)
    num_threads = _choose_threads(num_threads, csr.indices.size, layout.num_buckets)
    names, rank = _rank(degree, csr.indices.dtype)
    can_stay = overwrite and layout.key_dtype == csr.indices.dtype
    keys = csr.indices if can_stay else np.empty(csr.indices.size, layout.key_dtype)
    run_threads(
        kernels.rank_rows,
        num_threads,
        _first_rows(csr.indptr, num_threads),
        read_only(csr.indptr),
        read_only(csr.indices),
        rank,
        layout.bucket_bits,
        layout.vertex_bits,
        keys,
    )
    weights = csr.weights if csr.weights is None or overwrite else csr.weights.copy()
    ordered = CSR(np.zeros_like(csr.indptr), keys, weights)
    _sort(ordered, layout, _bucket_starts(layout, csr.indptr), 0, False, num_threads, names)
    return _narrowed(ordered._replace(indptr=csr.indptr), csr.indices.dtype)


def _rank(degree: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices by falling degree, of equal degree by id, and the place of each among them."""
    missing = degree.max(initial=0) - degree  # ascending where the degree falls
    order = np.arange(degree.size, dtype=dtype)
    for low in range(0, int(missing.max(initial=0)).bit_length(), _RANK_DIGIT_BITS):
        digit = (missing[order] >> low).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    rank = np.empty_like(order)
    rank[order] = np.arange(degree.size, dtype=dtype)
    return order, rank


def _first_rows(indptr: np.ndarray, num_threads: int) -> np.ndarray:
    """Return the row of the first edge of each thread."""
    first_edges = int(indptr[-1]) * np.arange(num_threads) // num_threads
    return np.searchsorted(indptr, first_edges, side="right") - 1


def _bucket_starts(layout: Layout, indptr: np.ndarray) -> np.ndarray:
    """Return where the buckets of a CSR begin, and the end of the last."""
    rows = np.arange(layout.num_buckets + 1) << layout.bucket_bits
    return indptr[np.minimum(rows, indptr.size - 1)].astype(np.int64)


class Layout(NamedTuple):
    """How edges are numbers, and which of them make a bucket."""

    vertex_bits: int
    bucket_bits: int
    num_buckets: int
    key_dtype: np.dtype


def choose_layout(
    num_vertices: int, vertex_dtype: np.dtype, *, min_spare_bits: int = _MIN_SPARE_BITS, index_bits: int = 10
) -> Layout:
    """Choose 2**index_bits buckets, or as many as leave room in a vertex id for the position in a bucket.

    Measured at 2**20 vertices and 31 million edges: 2**8 to 2**12 buckets differ by a tenth, one for each vertex takes
    four times as long.
    """
    vertex_bits = max(1, (num_vertices - 1).bit_length())
    key_dtype = vertex_dtype
    if _spare_bits(vertex_bits, key_dtype) < min_spare_bits:
        key_dtype = np.dtype(np.int64)
    bucket_bits = max(0, min(_spare_bits(vertex_bits, key_dtype), vertex_bits - index_bits))
    return Layout(vertex_bits, bucket_bits, max(1, -(-num_vertices >> bucket_bits)), key_dtype)


def scatter_keys(
    layout: Layout, src: np.ndarray, dst: np.ndarray, weights: np.ndarray | None, room: np.ndarray,
    weight_room: np.ndarray | None, *, is_mirrored: bool, drop_self_loops: bool,
) -> np.ndarray:  # fmt: skip
    """Put edges as keys into a room, bucket by bucket, and return where each bucket begins and the last one ends."""
    num_threads = _choose_threads(None, src.size, layout.num_buckets)
    stored = (is_mirrored, not drop_self_loops, layout.bucket_bits)
    cursors, starts = _count(layout, num_threads, src, dst, *stored[:2])
    run_threads(kernels.scatter_edges, num_threads, src, dst, weights, *stored, layout.vertex_bits, cursors, room,
                weight_room)  # fmt: skip
    return starts


def sort_keys(
    layout: Layout, starts: np.ndarray, keys: np.ndarray, weights: np.ndarray | None, *, deduplicate: bool
) -> CSR:
    """Sort the keys of consecutive buckets, which are in place, into the rows of these; the rows lie where keys lay."""
    num_buckets = starts.size - 1
    csr = CSR(np.zeros((num_buckets << layout.bucket_bits) + 1, np.int64), keys, weights)
    _sort(csr, layout, starts, 0, deduplicate, _choose_threads(None, keys.size, 1))
    if not deduplicate:
        return csr
    new_starts = csr.indptr[:: 1 << layout.bucket_bits].copy()
    kernels.close_gaps(starts, new_starts, keys, weights)
    return CSR(csr.indptr, keys[: new_starts[-1]], None if weights is None else weights[: new_starts[-1]])


def _spare_bits(vertex_bits: int, key_dtype: np.dtype) -> int:
    return 8 * key_dtype.itemsize - 1 - vertex_bits


def _choose_threads(num_threads: int | None, num_edges: int, num_buckets: int) -> int:
    """Use all cores by default, but never so many that their counters outgrow an eighth of the edges."""
    if num_edges < _MIN_EDGES_FOR_THREADS:
        return 1
    wanted = num_threads or len(available_cores())
    return max(1, min(wanted, num_edges // (16 * num_buckets)))


def _count(layout: Layout, num_threads: int, *edges: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return each thread's first place in each bucket, and the starts of the buckets."""
    counts = np.zeros((num_threads, layout.num_buckets), np.int64)
    run_threads(kernels.count_edges, num_threads, *edges, layout.bucket_bits, counts)
    starts = np.zeros(layout.num_buckets + 1, np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    return np.cumsum(counts, axis=0) - counts + starts[:-1], starts


def _allocate(
    num_edges: int, num_vertices: int, key_dtype: np.dtype, edge_dtype: np.dtype, weights: np.ndarray | None
) -> CSR:
    indptr = np.zeros(num_vertices + 1, edge_dtype)
    out_weights = None if weights is None else np.empty(num_edges, weights.dtype)
    return CSR(indptr, np.empty(num_edges, key_dtype), out_weights)


def _sort(
    csr: CSR,
    layout: Layout,
    starts: np.ndarray,
    lowest_bit: int,
    deduplicate: bool,
    num_threads: int,
    names: np.ndarray | None = None,
) -> None:
    capacity = num_threads * int(np.diff(starts).max())
    run_threads(
        kernels.sort_buckets,
        num_threads,
        np.zeros(1, np.int64),
        starts,
        layout.bucket_bits,
        layout.vertex_bits,
        lowest_bit,
        deduplicate,
        names,
        csr.indices,
        csr.weights,
        np.empty(capacity, csr.indices.dtype),
        None if csr.weights is None else np.empty(capacity, csr.weights.dtype),
        csr.indptr,
    )
    np.cumsum(csr.indptr, out=csr.indptr)


def _without_gaps(csr: CSR, layout: Layout, starts: np.ndarray) -> CSR:
    new_starts = np.append(csr.indptr[: -1 : 1 << layout.bucket_bits], csr.indptr[-1]).astype(np.int64)
    kernels.close_gaps(starts, new_starts, csr.indices, csr.weights)
    for array in (csr.indices, csr.weights):
        if array is not None:
            array.resize(int(new_starts[-1]), refcheck=False)  # gives memory back without a copy
    return csr


def _narrowed(csr: CSR, vertex_dtype: np.dtype) -> CSR:
    """Squeeze wide ``indices`` together in their own memory: what is written has always been read before."""
    wide = csr.indices
    if wide.dtype == vertex_dtype:
        return csr
    size, narrow = wide.size, wide.view(vertex_dtype)
    for start in range(0, size, _CHUNK):
        narrow[start : min(start + _CHUNK, size)] = wide[start : start + _CHUNK]
    del narrow
    wide.resize((size + 1) // 2, refcheck=False)
    return csr._replace(indices=wide.view(vertex_dtype)[:size])
