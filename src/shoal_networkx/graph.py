# SPDX-License-Identifier: Apache-2.0
"""ConvertedGraph: a graph of NetworkX as shoal has it, with the names of its nodes and the numbers of its edges.

Vertex i is node number i.  Rows keep NetworkX's order, which decides what its searches visit first, and have a
neighbour once: of parallel edges a path takes the lightest, a random surfer any, and a degree counts all.  A directed
graph's rows of predecessors are kept too, since their order does not follow from that of the successors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal import Graph
from shoal_networkx.values import EdgeValues


@dataclass(frozen=True)
class Rows:
    """Neighbours of every node: ``indices[indptr[v]:indptr[v + 1]]``."""

    indptr: np.ndarray
    indices: np.ndarray


@dataclass(eq=False, repr=False)
class ConvertedGraph:
    """What `convert_from_nx` returns and shoal's functions take.

    Parameters
    ----------
    names : the nodes, in NetworkX's order
    index : the number of each node
    parallels : in a multigraph the number of edges to each neighbour
    values : the attributes of edges that were asked for
    whole : a copy of the graph, where all attributes were asked for
    """

    __networkx_backend__ = "shoal"

    names: list[Any]
    index: dict[Any, int]
    directed: bool
    successors: Rows
    predecessors: Rows | None = None
    parallels: np.ndarray | None = None
    values: dict[Any, EdgeValues] = field(default_factory=dict)
    attributes: dict[Any, Any] = field(default_factory=dict)
    whole: Any = None
    read_values: Callable[[Any], EdgeValues] | None = None
    _made: dict[Any, Any] = field(default_factory=dict)
    _has_plain_names: bool | None = None

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether there may be parallel edges."""
        return self.parallels is not None

    def __repr__(self) -> str:
        kind = f"{'directed' if self.directed else 'undirected'}{' multigraph' if self.is_multigraph() else ''}"
        return (
            f"ConvertedGraph({kind}, {len(self)} nodes, {self.num_neighbours} neighbours, attributes: {[*self.values]})"
        )

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.index
        except TypeError:  # not hashable
            return False

    @property
    def num_neighbours(self) -> int:
        """Number of neighbours in all rows."""
        return self.successors.indices.size

    def names_of(self, vertices: np.ndarray) -> list[Any]:
        """Return the nodes behind vertices."""
        numbers = vertices.tolist()
        if self._has_plain_names is None:
            self._has_plain_names = set(map(type, self.names)) == {int} and self.names == list(range(len(self)))
        return numbers if self._has_plain_names else list(map(self.names.__getitem__, numbers))

    def by_name(self, values: Iterable[Any]) -> dict[Any, Any]:
        """Return a value for every node, by its name."""
        return dict(zip(self.names, values, strict=True))

    def hops(self, turned: bool = False) -> Graph:
        """Return the graph without weights, or its edges turned round."""
        turned = turned and self.directed
        return self.kept(("hops", turned), lambda: self._graph(turned, None))

    def lengths(self, weight: Any, turned: bool = False, any_sign: bool = False) -> Graph:
        """Return the graph with the least weight of parallel edges, in which paths have NetworkX's lengths.

        Negative weights are refused without ``any_sign``.
        """
        if weight is None:
            return self.hops(turned)
        turned = turned and self.directed
        values = self.values_of(weight)
        return self.kept(
            (weight, "least", turned, any_sign),
            lambda: self._graph(turned, values.as_lengths(len(self), any_sign).least(self.parallels)),
        )

    def totals(self, weight: Any) -> Graph:
        """Return the graph with the sum of the weights of parallel edges."""
        if weight is None and self.parallels is None:
            return self.hops()
        numbers = None if weight is None else self.values_of(weight).as_numbers()
        if numbers is None:
            total = np.asarray(self.parallels, np.float64)
        else:
            total = numbers.total(self.parallels).astype(np.float64)
        if np.all(total == 1):
            return self.hops()
        return self.kept((weight, "sum"), lambda: self._graph(False, total))

    def values_of(self, weight: Any) -> EdgeValues:
        """Return an attribute of the edges, which must have been asked for when the graph was converted."""
        if weight not in self.values:
            if self.read_values is None:
                raise NotImplementedError(f"weight={weight!r}: the graph was converted without this attribute of edges")
            self.values[weight] = self.read_values(weight)
        return self.values[weight]

    def degrees(self, rows: Rows) -> np.ndarray:
        """Return how many edges, or neighbours where rows are those of predecessors, each row has."""
        if self.parallels is None or rows is not self.successors:
            return np.diff(rows.indptr)
        return np.diff(np.concatenate([[0], np.cumsum(self.parallels)])[rows.indptr])

    def degrees_with_loops_twice(self) -> np.ndarray:
        """Return the degrees of an undirected graph, as NetworkX counts them."""
        rows = self.successors
        loops = np.repeat(np.arange(len(self)), np.diff(rows.indptr)) == rows.indices
        counts = None if self.parallels is None else self.parallels[loops]
        return self.degrees(rows) + np.bincount(rows.indices[loops], counts, minlength=len(self)).astype(np.int64)

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made of this graph under a key, which is made once."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _graph(self, turned: bool, weights: np.ndarray | None) -> Graph:
        rows = self.successors
        if turned:
            assert self.predecessors is not None
            rows, weights = self.predecessors, None if weights is None else self._turned_values(weights)
        return Graph.from_csr(rows.indptr, rows.indices, weights, directed=self.directed, check=False)

    def _turned_values(self, weights: np.ndarray) -> np.ndarray:
        """Return values of successors in the order of the rows of predecessors."""
        assert self.predecessors is not None
        ahead, behind = self.successors, self.predecessors
        vertices = np.arange(len(self))
        src = np.repeat(vertices, np.diff(ahead.indptr))
        dst = np.repeat(vertices, np.diff(behind.indptr))
        result = np.empty_like(weights)
        result[np.lexsort((behind.indices, dst))] = weights[np.lexsort((src, ahead.indices))]
        return result
