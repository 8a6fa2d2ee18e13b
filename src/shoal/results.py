# SPDX-License-Identifier: Apache-2.0
"""What the algorithms return: arrays over the vertices, and the run's statistics.

Arrays are NumPy's, or CuPy's after a run on a GPU with ``output="device"``; NumPy's functions take both and go where
their arguments are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from shoal.arrays import is_on_gpu, on_host
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.stats import Stats


@dataclass(repr=False)
class Result:
    """Base of the results; ``columns`` names the arrays with one value per vertex."""

    graph: Graph
    stats: Stats
    columns: ClassVar[tuple[str, ...]] = ()

    def summary(self) -> dict[str, Any]:
        """Return the few numbers that say what came out."""
        raise TypeError("a subclass says what its summary is")

    def table(self) -> dict[str, np.ndarray]:
        """Return the result as NumPy columns: ``vertex`` (the graph's labels where it has some), then the values."""
        labels = self.graph.labels
        vertex = np.arange(self.graph.num_vertices) if labels is None else np.asarray(labels)
        present = {name: on_host(getattr(self, name)) for name in self.columns if getattr(self, name) is not None}
        return {"vertex": vertex, **present}

    def to_host(self) -> Self:
        """Return the same result with all arrays as NumPy's; those that are so already are not copied."""
        return replace(self, **{f.name: on_host(getattr(self, f.name)) for f in fields(self)})

    def __repr__(self) -> str:
        summary = ", ".join(f"{name}={value}" for name, value in self.summary().items())
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        shown = ", ".join(name for name, value in values.items() if isinstance(value, np.ndarray) or is_on_gpu(value))
        where = " on the GPU" if any(map(is_on_gpu, values.values())) else ""
        return f"{type(self).__name__}({summary}; arrays{where}: {shown}; {self.stats.seconds * 1e3:.3f} ms)"


@dataclass(repr=False)
class TraversalResult(Result):
    """Distances from a source (or one row per source) and a tree of shortest paths.

    Parameters
    ----------
    distance : unreachable vertices have -1 (hops) or inf (weights)
    parent : the vertex before, -1 for unreachable ones, the source for itself; None if not asked for
    """

    source: Any
    distance: np.ndarray
    parent: np.ndarray | None
    columns: ClassVar[tuple[str, ...]] = ("distance", "parent")

    @property
    def reached(self) -> np.ndarray:
        """Whether each vertex was reached."""
        return self.distance >= 0 if self.distance.dtype.kind == "i" else np.isfinite(self.distance)

    def path(self, vertex: int, source: int = 0) -> np.ndarray:
        """Return the vertices of a shortest path to ``vertex``; of a batch, from source number ``source``.

        It is a NumPy array; parents on a GPU are copied to the host at every call, of a batch those of one source.

        Examples
        --------
        >>> import shoal
        >>> shoal.bfs(shoal.Graph.from_edges([0, 1], [1, 2]), 0).path(2).tolist()
        [0, 1, 2]
        """
        if self.parent is None:
            raise ArgumentError("parents=False: there is no path without parents; run with parents=True")
        vertex = check_integer("vertex", vertex, 0, self.graph.num_vertices - 1)
        rows = np.atleast_2d(self.parent)
        parent = on_host(rows[check_integer("source", source, 0, len(rows) - 1)])
        if parent[vertex] < 0:
            raise ArgumentError(f"vertex={vertex} is not reachable from the source; there is no path to it")
        path = [vertex]
        while parent[path[-1]] != path[-1]:
            path.append(int(parent[path[-1]]))
        return np.array(path[::-1], parent.dtype)

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns; of a batch one set per source, numbered."""
        columns = super().table()
        if self.distance.ndim == 1:
            return columns
        table = {"vertex": columns.pop("vertex")}
        for name, rows in columns.items():
            table.update({f"{name}_{k}": row for k, row in enumerate(rows)})
        return table

    def summary(self) -> dict[str, Any]:
        """Return the number of vertices reached and the largest distance."""
        reached = self.reached
        count = int(np.count_nonzero(reached))
        farthest = self.distance[reached].max().item() if count else None
        return {"reached": count, "max_distance": farthest}


@dataclass(repr=False)
class ComponentsResult(Result):
    """Labels of components: the smallest vertex id in each; ``count`` of them."""

    label: np.ndarray
    count: int
    columns: ClassVar[tuple[str, ...]] = ("label",)

    def summary(self) -> dict[str, Any]:
        """Return the number of components and the size of the largest."""
        largest = int(np.bincount(self.label).max()) if len(self.label) else 0
        return {"components": self.count, "largest": largest}


@dataclass(repr=False)
class CentralityResult(Result):
    """Betweenness centrality of every vertex."""

    centrality: np.ndarray
    num_sources: int
    columns: ClassVar[tuple[str, ...]] = ("centrality",)

    def summary(self) -> dict[str, Any]:
        """Return the most central vertex and its value."""
        if not len(self.centrality):
            return {"sources": 0, "top_vertex": None, "top_centrality": None}
        top = int(self.centrality.argmax())
        return {"sources": self.num_sources, "top_vertex": top, "top_centrality": float(self.centrality[top])}


@dataclass(repr=False)
class RankResult(Result):
    """PageRank of every vertex; ranks sum to one."""

    rank: np.ndarray
    iterations: int
    error: float
    columns: ClassVar[tuple[str, ...]] = ("rank",)

    def summary(self) -> dict[str, Any]:
        """Return the number of iterations, the last change and the vertex with the highest rank."""
        top = int(self.rank.argmax()) if len(self.rank) else None
        return {"iterations": self.iterations, "error": self.error, "top_vertex": top}
