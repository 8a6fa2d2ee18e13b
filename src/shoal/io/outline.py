# SPDX-License-Identifier: Apache-2.0
"""Outline: a graph whose edges are elsewhere.

It has the sizes, the types, the degrees and the labels of the graph, and what algorithms ask of all weights.  In the
place of the arrays of edges are objects that know types and sizes, and say what is possible when anything asks for
more.  So an algorithm, or a program, that leaves the edges to the devices runs as on any graph.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from shoal.arrays import read_only
from shoal.errors import WholeGraphError
from shoal.graph import Graph
from shoal.strategies.memory import fingerprint

#: What a graph keeps under the same name, and the manifest of its shards, too.
_KEPT = ("max_degree", "min_weight", "max_weight", "sum of weights", "mean weight", "flat bits", "fingerprint")


class AbsentArray:
    """What stands for an array that is not in this process."""

    ndim = 1
    nbytes = 0

    def __init__(self, name: str, dtype: Any, size: int, place: str) -> None:
        self.name, self.dtype, self.size, self.place = name, np.dtype(dtype), size, place

    def __len__(self) -> int:
        return self.size

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise WholeGraphError(
            f"needs the {self.name} of the whole graph, and of {self.place} this process has parts only; allowed: "
            "algorithms that leave the edges to the devices, such as bfs, sssp, connected_components and pagerank "
            "without validate, or the graph itself in place of its shards"
        )

    __array__ = __getitem__ = __iter__ = __eq__ = __ne__ = __lt__ = __gt__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        """Refuse what only an array can do; protocols of Python and NumPy are asked for, and are not there."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


def place_of(graph: Graph) -> str | None:
    """Return where the edges of an outline are; None of a graph that has its edges."""
    indices: Any = graph.indices
    return indices.place if isinstance(indices, AbsentArray) else None


def facts_of(graph: Graph) -> dict[str, Any]:
    """Return what an outline of a graph says of its edges."""
    weights = graph.weights
    facts: dict[str, Any] = {"max_degree": graph.max_degree, "fingerprint": fingerprint(graph)}
    if weights is not None and weights.size:
        wide = np.int64 if weights.dtype.kind == "i" else np.float64
        num_zero = int(np.count_nonzero(weights == 0))
        facts |= facts_of_weights(graph.min_weight, graph.max_weight, weights.sum(dtype=wide).item(), num_zero,
                                  graph.num_edges)  # fmt: skip
    return facts


def facts_of_weights(least: Any, most: Any, total: Any, num_zero: int, count: int) -> dict[str, Any]:
    """Return what an outline says of weights."""
    return {
        "min_weight": least,
        "max_weight": most,
        "sum of weights": total,
        "mean weight": total / count,
        "flat bits": num_zero.bit_length(),
    }


def make_outline(
    place: str, types: list[str | None], num_edges: int, is_directed: bool, degree: np.ndarray, labels: Any,
    facts: dict[str, Any], offsets: np.ndarray | None = None,
) -> Graph:  # fmt: skip
    """Return the outline of a graph whose edges are at a place, and maybe its offsets, too."""
    vertex_dtype, edge_dtype, weight_dtype = types
    indptr = AbsentArray("offsets", edge_dtype, degree.size + 1, place) if offsets is None else offsets
    indices = AbsentArray("edges", vertex_dtype, num_edges, place)
    weights = None if weight_dtype is None else AbsentArray("weights", weight_dtype, num_edges, place)
    nothing = np.empty(0, np.int32)
    graph = Graph._make((nothing, nothing, None), is_directed, labels)
    for name, array in (("indptr", indptr), ("indices", indices), ("weights", weights)):
        object.__setattr__(graph, f"_{name}", array)
    graph._cache["degree"] = read_only(degree)
    graph._cache.update({name: facts[name] for name in _KEPT if facts.get(name) is not None})
    return graph
