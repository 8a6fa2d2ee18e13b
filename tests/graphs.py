# SPDX-License-Identifier: Apache-2.0
"""Graphs to test with: hypothesis strategies, small special graphs by name, larger random ones, and real ones."""

import os
from functools import cache, partial
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import shoal

WIDTHS = [("int32", "int32"), ("int32", "int64"), ("int64", "int64")]

# Few distinct values: ties between paths, and zero-weight cycles, are what algorithms get wrong.
WEIGHTS = {
    "int32": st.sampled_from([0, 0, 1, 1, 2, 3, 7, 1000]),
    "float32": st.sampled_from([0.0, 0.5, 1.0, 1.25, 3.0]) | st.floats(0, 100, width=32, allow_subnormal=False),
    "float64": st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0]) | st.floats(0, 100, allow_subnormal=False),
}


@st.composite
def graphs(draw, *, weights=None, directed=None, min_vertices=1, max_vertices=20, max_edges=60, any_width=False):
    """Small graphs with self-loops, parallel edges, isolated vertices, and rows that may be unsorted.

    Every width compiles kernels of its own, so only the tests that ask for ``any_width`` draw 64-bit graphs, and where
    weights may be of any kind, too, each kind has one width.
    """
    num_vertices = draw(st.integers(min_vertices, max_vertices))
    vertices = st.integers(0, max(num_vertices - 1, 0))
    pairs = draw(st.lists(st.tuples(vertices, vertices), max_size=max_edges if num_vertices else 0))
    values = None
    if weights is not None:
        kind = draw(st.sampled_from(sorted(WEIGHTS))) if weights == "any" else weights
        values = draw(st.lists(WEIGHTS[kind], min_size=len(pairs), max_size=len(pairs)))
        values = np.array(values, dtype=kind)
    is_directed = draw(st.booleans()) if directed is None else directed
    if any_width and weights == "any":
        vertex_dtype, edge_dtype = WIDTHS[sorted(WEIGHTS).index(kind) % len(WIDTHS)]
    else:
        vertex_dtype, edge_dtype = draw(st.sampled_from(WIDTHS if any_width else WIDTHS[:1]))
    build = _from_unsorted_rows if is_directed and draw(st.booleans()) else _from_pairs
    return build(pairs, values, num_vertices, is_directed, vertex_dtype=vertex_dtype, edge_dtype=edge_dtype)


def _from_pairs(pairs, values, num_vertices, directed, **widths):
    src, dst = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return shoal.Graph.from_edges(src, dst, values, num_vertices=num_vertices, directed=directed, **widths)


def _from_unsorted_rows(pairs, values, num_vertices, directed, *, vertex_dtype, edge_dtype):
    """A directed graph whose rows keep the order in which the pairs were given."""
    src, dst = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    order = np.argsort(src, kind="stable")
    indptr = np.searchsorted(src[order], np.arange(num_vertices + 1))
    return shoal.Graph.from_csr(
        indptr.astype(edge_dtype),
        dst[order].astype(vertex_dtype),
        None if values is None else values[order],
        directed=directed,
        vertex_dtype=vertex_dtype,
        edge_dtype=edge_dtype,
    )


def from_pairs(pairs, *, weights=None, num_vertices=None, directed=False, **widths):
    """A graph from a list of (src, dst)."""
    values = None if weights is None else np.asarray(weights)
    count = num_vertices if num_vertices is not None else max((max(pair) for pair in pairs), default=-1) + 1
    return _from_pairs(pairs, values, count, directed, **widths)


def path_graph(length, **options):
    return from_pairs([(v, v + 1) for v in range(length - 1)], num_vertices=length, **options)


def cycle_graph(length, **options):
    return from_pairs([(v, (v + 1) % length) for v in range(length)], **options)


def star_graph(num_leaves, **options):
    return from_pairs([(0, leaf) for leaf in range(1, num_leaves + 1)], **options)


def complete_graph(size, **options):
    return from_pairs([(u, v) for u in range(size) for v in range(u + 1, size)], **options)


def diamond_chain(num_diamonds, **options):
    """Diamonds in a row: the number of shortest paths doubles with each of them."""
    pairs = []
    for top in range(0, 3 * num_diamonds, 3):
        pairs += [(top, top + 1), (top, top + 2), (top + 1, top + 3), (top + 2, top + 3)]
    return from_pairs(pairs, **options)


def grid_graph(height, width, **options):
    vertex = np.arange(height * width).reshape(height, width)
    across = np.column_stack([vertex[:, :-1].ravel(), vertex[:, 1:].ravel()])
    down = np.column_stack([vertex[:-1].ravel(), vertex[1:].ravel()])
    return from_pairs(np.vstack([across, down]).tolist(), num_vertices=height * width, **options)


# Every algorithm runs on each of these; weighted ones have weights that SSSP accepts.
SPECIAL = {
    "one vertex": partial(from_pairs, [], num_vertices=1),
    "one vertex with a loop": partial(from_pairs, [(0, 0)]),
    "one vertex with three loops, directed": partial(from_pairs, [(0, 0)] * 3, directed=True),
    "no edges": partial(from_pairs, [], num_vertices=7),
    "one edge": partial(from_pairs, [(0, 1)]),
    "one edge, away from vertex 0": partial(from_pairs, [(0, 1)], directed=True),
    "one edge, towards vertex 0": partial(from_pairs, [(1, 0)], directed=True),
    "parallel edges": partial(from_pairs, [(0, 1), (0, 1), (1, 0), (1, 2), (1, 2), (2, 3)]),
    "parallel edges, directed": partial(from_pairs, [(0, 1), (0, 1), (0, 2), (1, 3), (2, 3)], directed=True),
    "loops everywhere": partial(from_pairs, [(v, v) for v in range(5)] + [(0, 1), (1, 2), (3, 4)]),
    "two components": partial(from_pairs, [(0, 2), (2, 4), (1, 3), (3, 5)]),
    "isolated vertices around": partial(from_pairs, [(3, 4), (4, 5)], num_vertices=9),
    "path": partial(path_graph, 50),
    "path, directed": partial(path_graph, 50, directed=True),
    "path, ids falling": partial(from_pairs, [(v + 1, v) for v in range(49)], directed=True),
    "cycle of even length": partial(cycle_graph, 12),
    "cycle of odd length, directed": partial(cycle_graph, 13, directed=True),
    "star": partial(star_graph, 70),
    "star, directed": partial(star_graph, 70, directed=True),
    "complete": partial(complete_graph, 17),
    "complete, directed": partial(complete_graph, 17, directed=True),
    "binary tree": partial(from_pairs, [((v - 1) // 2, v) for v in range(1, 127)]),
    "grid": partial(grid_graph, 9, 11),
    "diamonds": partial(diamond_chain, 20),
    "64 vertices": partial(cycle_graph, 64),
    "65 vertices": partial(cycle_graph, 65),
    "64-bit ids": partial(grid_graph, 5, 6, vertex_dtype="int64", edge_dtype="int64"),
    "64-bit offsets": partial(grid_graph, 5, 6, vertex_dtype="int32", edge_dtype="int64"),
    "zero-weight cycle": partial(cycle_graph, 6, weights=[0] * 6),
    "zero-weight cycle, directed": partial(
        from_pairs, [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)], weights=[5, 0, 0, 0, 2], directed=True
    ),
    "shortcut over many edges": partial(
        from_pairs, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], weights=[0.25] * 4 + [1.5]
    ),
    "parallel edges of different weight": partial(from_pairs, [(0, 1), (0, 1), (1, 2)], weights=[9, 4, 1]),
}


def random_graph(
    num_vertices=3000, num_edges=20000, *, seed=0, directed=False, weights=None, skew=3.0, **widths
) -> shoal.Graph:
    """A larger graph with hubs, loops, parallel edges and isolated vertices; its ids are shuffled.

    ``skew`` above 1 draws the ends of edges from the low ranks, which makes hubs; 1 is uniform.
    """
    generator = np.random.default_rng(seed)
    rank = (num_vertices * generator.random((2, num_edges)) ** skew).astype(np.int64)
    src, dst = generator.permutation(num_vertices)[rank]
    values = None
    if weights is not None:
        top = 256 if weights == "int32" else 1.0
        values = (generator.random(num_edges) * top).astype(weights)
    return shoal.Graph.from_edges(src, dst, values, num_vertices=num_vertices, directed=directed, **widths)


LARGER = {
    "hubs": partial(random_graph),
    "hubs, directed": partial(random_graph, seed=1, directed=True),
    "uniform": partial(random_graph, seed=2, skew=1.0),
    "uniform, directed, sparse": partial(random_graph, 5000, 8000, seed=3, skew=1.0, directed=True),
    "64-bit": partial(random_graph, seed=4, vertex_dtype="int64", edge_dtype="int64"),
    "grid of 60 x 50": partial(grid_graph, 60, 50),
    "star of 40000 leaves": partial(star_graph, 40000),
}


def real_files():
    """The real graphs in tests/data, then those in $SHOAL_DATA (default: shared/data beside the checkout)."""
    tests = Path(__file__).resolve().parent
    folders = [tests / "data", Path(os.environ.get("SHOAL_DATA", tests.parents[1] / "shared" / "data"))]
    found = {}
    for folder in folders:
        for suffix in ("mtx", "graph", "txt", "gr", "tsv"):
            for path in sorted(folder.glob(f"*.{suffix}.gz")):
                found.setdefault(path.name, path)
    return list(found.values())


@cache
def read_real(path):
    return shoal.read(path)


def real_graph(name):
    """One of the graphs in tests/data."""
    return read_real(Path(__file__).resolve().parent / "data" / name)
