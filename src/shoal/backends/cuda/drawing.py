# SPDX-License-Identifier: Apache-2.0
"""Draw random graphs on the GPU: the same, bit for bit, as ``shoal.generate`` draws on the CPU.

Every edge is a function of the seed and its number (``kernels/generate.cuh``), so a CSR is built without storing the
edges first: ``build(rmat_edges(...), ...)``.  Arguments are as the generators check them: thresholds are fractions of
2**32, ids fit in ``vertex_dtype``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal import arrays
from shoal.backends.cuda.building import CSR, Edges, kernel_text
from shoal.backends.cuda.modules import load_kernel
from shoal.errors import Allocating

_HEADER = "generate.cuh"


def rmat_edges(
    scale: int, num_edges: int, thresholds: Any, *, seed: int, shuffle: bool, vertex_dtype: np.dtype
) -> Edges:
    """Return R-MAT edges among 2**scale vertices; ``thresholds`` are the upper ends of the quadrants a, b and c."""
    above = tuple(np.uint64(threshold) for threshold in thresholds)
    args = (np.uint64(seed), np.int32(scale), *above, np.bool_(shuffle))
    return Edges(kernel_text(_HEADER, vertex_dtype, vertex_dtype), "rmat", num_edges, args)


def uniform_edges(num_vertices: int, num_edges: int, *, seed: int, vertex_dtype: np.dtype) -> Edges:
    """Return edges with both ends drawn uniformly."""
    args = (np.uint64(seed), np.uint64(num_vertices))
    return Edges(kernel_text(_HEADER, vertex_dtype, vertex_dtype), "uniform", num_edges, args)


def draw_rmat(scale: int, num_edges: int, thresholds: Any, **options: Any) -> tuple[Any, Any]:
    """Return the ends of R-MAT edges, in the order of their numbers; arguments as for `rmat_edges`."""
    return _draw(rmat_edges(scale, num_edges, thresholds, **options), options["vertex_dtype"])


def draw_uniform(num_vertices: int, num_edges: int, **options: Any) -> tuple[Any, Any]:
    """Return the ends of uniform edges, in the order of their numbers; arguments as for `uniform_edges`."""
    return _draw(uniform_edges(num_vertices, num_edges, **options), options["vertex_dtype"])


def _draw(edges: Edges, vertex_dtype: np.dtype) -> tuple[Any, Any]:
    import cupy

    with Allocating("the ends of", f"{edges.num_edges} edges"):
        src, dst = (cupy.empty(edges.num_edges, vertex_dtype) for _ in range(2))
    load_kernel(edges.text, f"draw_{edges.name}").over(edges.num_edges, src, dst, *edges.args)
    return src, dst


def fill_grid(
    rows: int, columns: int, threshold: int, *, seed: int, vertex_dtype: np.dtype, edge_dtype: Any = None
) -> CSR:
    """Make a grid of four neighbours that lacks the edges whose 32-bit word is below ``threshold``."""
    import cupy

    num_vertices = rows * columns
    args = tuple(np.uint64(value) for value in (seed, rows, columns, threshold))
    with Allocating("the arrays of", f"a grid of {rows} x {columns}"):
        degrees = cupy.zeros(num_vertices + 1, np.uint8)
        counting = kernel_text(_HEADER, vertex_dtype, vertex_dtype)
        load_kernel(counting, "count_grid").over(num_vertices, *args, degrees[1:])
        num_edges = int(degrees.sum(dtype=np.int64))
        edge_dtype = arrays.choose_edge_dtype(edge_dtype, vertex_dtype, num_edges)
        indptr = cupy.cumsum(degrees, dtype=edge_dtype)
        indices = cupy.empty(num_edges, vertex_dtype)
        filling = kernel_text(_HEADER, vertex_dtype, edge_dtype)
        load_kernel(filling, "fill_grid").over(num_vertices, *args, indptr, indices)
    return CSR(indptr, indices, None)


def weigh(csr: CSR, *, seed: int, dtype: Any, low: float, num_values: int, unit: float) -> CSR:
    """Return the CSR with random weights ``low + unit * k``, k below ``num_values``; edges of a pair have the same."""
    import cupy

    num_edges, num_rows, dtype = csr.indices.size, csr.indptr.size - 1, np.dtype(dtype)
    with Allocating("the weights of", f"{num_edges} edges"):
        weights = cupy.empty(num_edges, dtype)
    text = kernel_text(_HEADER, csr.indices.dtype, csr.indptr.dtype)
    load_kernel(text, f"weigh_{dtype.name}").over(
        num_edges, np.uint64(seed), csr.indptr, csr.indices, np.uint64(num_rows), weights, np.float64(low),
        np.uint64(num_values), np.float64(unit),
    )  # fmt: skip
    return csr._replace(weights=weights)
