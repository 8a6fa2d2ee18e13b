# SPDX-License-Identifier: Apache-2.0
"""The graphs that are measured: names that generate one, or the path of a file.

All are undirected, without copies of edges and self-loops; what is read from a file is made so, because not every
library follows directions in every kernel, and the report says that it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, check_choice
from shoal.graph import Graph

#: Whole weights from 1 to 255, as in the GAP benchmark.
WEIGHTS = (1, 255)


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph with the name it has in the table, and what was done to it."""

    name: str
    graph: Graph
    note: str = ""

    def reason_against(self, kernel: str) -> str:
        """Return why a kernel cannot be measured on this graph; an empty string if it can."""
        if kernel == "sssp" and not self.graph.is_weighted:
            return "the graph has no weights"
        if kernel == "bc" and self.name.startswith("grid") and self.graph.num_vertices > 500**2:
            return "the number of shortest paths of a large grid overflows double precision"
        return ""


def _kronecker(scale: int) -> Graph:
    from shoal import generate

    return generate.rmat(scale, 16, weights=WEIGHTS)


def _uniform(scale: int) -> Graph:
    from shoal import generate

    return generate.uniform(scale, 16, weights=WEIGHTS)


def _grid(side: int) -> Graph:
    from shoal import generate

    return generate.grid(side, side, drop=0.1, weights=WEIGHTS)


_GENERATORS: dict[str, Callable[[int], Graph]] = {"kron": _kronecker, "urand": _uniform, "grid": _grid}

#: kron and urand: the scale, 16 edges a vertex; grid: the side, 10 % of the edges dropped.
GRAPHS = ("kron10", "kron12", "kron16", "kron20", "kron22", "urand12", "urand20", "grid50", "grid200", "grid2000")


def check_graph(name: str) -> str:
    """Return ``name`` if it is a generated graph or an existing file."""
    if isinstance(name, str) and (name in GRAPHS or os.path.isfile(name)):
        return name
    try:
        return check_choice("graph", name, GRAPHS)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; or the path of a graph file") from None


def load_graph(name: str) -> BenchmarkGraph:
    """Generate the graph of this name, or read it from the file of this path."""
    check_graph(name)
    if name in GRAPHS:
        kind, size = re.fullmatch(r"([a-z]+)(\d+)", name).groups()  # type: ignore[union-attr]
        return BenchmarkGraph(name, _GENERATORS[kind](int(size)))
    return _read_graph(name)


def _read_graph(path: str) -> BenchmarkGraph:
    import shoal

    given = shoal.read(path)
    if given.num_edges == 0:
        raise ArgumentError(f"graph={path!r} has no edges; a benchmark needs some")
    simple = (given.symmetrized() if given.is_directed else given.deduplicated()).without_self_loops()
    is_same = given == simple
    return BenchmarkGraph(path, simple, "" if is_same else "made undirected and simple")


def tiny_like(graph: Graph) -> Graph:
    """Return a graph of the same types that is small enough to warm up with."""
    from shoal import generate

    weights: Any = None
    if graph.weights is not None:
        weights = WEIGHTS if graph.weights.dtype == np.int32 else graph.weights.dtype.name
    return generate.rmat(8, 16, weights=weights, vertex_dtype=graph.vertex_dtype, edge_dtype=graph.edge_dtype)
