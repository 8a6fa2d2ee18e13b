# SPDX-License-Identifier: Apache-2.0
"""The generators' graphs, built by the CUDA backend from the same arguments, and what tells them from the CPU's."""

from __future__ import annotations

import numpy as np

from shoal import arrays, generate
from shoal.backends.cuda import building, drawing

TYPES = ((None, None), ("int32", "int32"), ("int32", "int64"), ("int64", "int64"))


def rmat(scale, edge_factor, *, a=0.57, b=0.19, c=0.19, seed=1, weights=None, shuffle=True, **options):
    vertex_dtype = choose_vertex_dtype(1 << scale, options)
    thresholds = generate._quadrant_thresholds(a, b, c)
    edges = drawing.rmat_edges(
        scale, edge_factor << scale, thresholds, seed=seed, shuffle=shuffle, vertex_dtype=vertex_dtype
    )
    return weighed(build(edges, 1 << scale, **options), weights, seed)


def uniform(num_vertices, num_edges, *, seed=1, weights=None, **options):
    vertex_dtype = choose_vertex_dtype(num_vertices, options)
    edges = drawing.uniform_edges(num_vertices, num_edges, seed=seed, vertex_dtype=vertex_dtype)
    return weighed(build(edges, num_vertices, **options), weights, seed)


def grid(rows, columns, *, drop=0.0, seed=1, weights=None, **options):
    vertex_dtype = choose_vertex_dtype(rows * columns, options)
    edge_dtype = options.get("edge_dtype")
    threshold = int(drop * 2**32)
    csr = drawing.fill_grid(rows, columns, threshold, seed=seed, vertex_dtype=vertex_dtype, edge_dtype=edge_dtype)
    return weighed(csr, weights, seed)


def build(edges, num_vertices, *, directed=False, deduplicate=True, drop_self_loops=True, **types):
    return building.build(
        edges,
        num_vertices,
        choose_vertex_dtype(num_vertices, types),
        types.get("edge_dtype"),
        is_mirrored=not directed,
        deduplicate=deduplicate,
        keeps_loops=not drop_self_loops,
    )


def weighed(csr, weights, seed):
    spread = generate._Weights.check(weights)
    if spread is None:
        return csr
    return drawing.weigh(
        csr, seed=seed, dtype=spread.dtype, low=spread.low, num_values=spread.num_values, unit=spread.unit
    )


def choose_vertex_dtype(num_vertices, types):
    return arrays.choose_vertex_dtype(types.get("vertex_dtype"), types.get("edge_dtype"), num_vertices)


def random_options(random):
    """Options of R-MAT drawn from a NumPy generator, every kind of each now and then."""
    vertex_dtype, edge_dtype = TYPES[random.integers(len(TYPES))]
    return {
        "seed": int(random.integers(2**63)),
        "weights": [None, (1, 64), (-7, 7), "float32", "float64"][random.integers(5)],
        "vertex_dtype": vertex_dtype,
        "edge_dtype": edge_dtype,
        **{name: bool(random.integers(2)) for name in ("directed", "shuffle", "deduplicate", "drop_self_loops")},
    }


def random_edges(random, max_vertices, max_edges):
    """A number of vertices, ends and weights of edges, many of which are copies or start at one vertex."""
    num_vertices, num_edges = int(random.integers(1, max_vertices)), int(random.integers(max_edges))
    id_dtype = [np.int32, np.int64][random.integers(2)]
    src, dst = (random.integers(0, num_vertices, num_edges).astype(id_dtype) for _ in range(2))
    if random.integers(3) == 0:
        src[:] = src[:1]
    special = np.array([-np.inf, -2.5, -1.0, 0.0, 1e-40, 3.0, np.inf], np.float32)
    weights = [
        None,
        random.integers(-5, 5, num_edges).astype(np.int32),
        random.choice(special, num_edges),
        random.normal(size=num_edges).round(1) + 0.0,  # no -0.0, whose order the CPU leaves open
    ]
    return num_vertices, src, dst, weights[random.integers(4)]


def assert_same(csr, graph):
    """Compare the arrays of a CSR with a graph's, type and bits."""
    for name in ("indptr", "indices", "weights"):
        found, expected = getattr(csr, name), getattr(graph, name)
        assert (found is None) == (expected is None), name
        if found is not None:
            found = found.get()
            assert found.dtype == expected.dtype, name
            assert np.array_equal(found.view(np.uint8), expected.view(np.uint8)), name
