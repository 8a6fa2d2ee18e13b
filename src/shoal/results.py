# SPDX-License-Identifier: Apache-2.0
"""What the algorithms return: arrays over the vertices, and the run's statistics.

Arrays are NumPy's, or CuPy's after a run on a GPU with ``output="device"``; NumPy's functions take both and go where
their arguments are.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from shoal.arrays import is_on_gpu, on_host
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.labels import names_of
from shoal.stats import Stats

_VERTEX_COLUMN = re.compile(r"(vertex|label|src|dst|parent(_\d+)?)")


def holds_vertices(column: str) -> bool:
    """Whether the values of a column of this name are vertices."""
    return _VERTEX_COLUMN.fullmatch(column) is not None


def is_vertex(fact: str, value: Any) -> bool:
    """Whether what a summary says under this name is a vertex: the one at the top, where that is no score."""
    return fact.startswith("top_") and value is not None and not isinstance(value, float)


@dataclass(repr=False)
class Result:
    """Base of the results; ``columns`` names the arrays with one value per vertex."""

    graph: Graph
    stats: Stats
    columns: ClassVar[tuple[str, ...]] = ()

    def summary(self) -> dict[str, Any]:
        """Return the few numbers that say what came out."""
        raise TypeError("a subclass says what its summary is")

    def named_summary(self) -> dict[str, Any]:
        """Return the summary with vertices by the graph's labels."""
        label = self.graph.label_of
        return {name: label(value) if is_vertex(name, value) else value for name, value in self.summary().items()}

    @property
    def num_rows(self) -> int:
        """Rows of the table: one for each vertex."""
        return self.graph.num_vertices

    def _arrays(self) -> dict[str, Any]:
        """Return the columns that are there, wherever they are."""
        return {name: getattr(self, name) for name in self.columns if getattr(self, name) is not None}

    def table(self) -> dict[str, np.ndarray]:
        """Return the result as NumPy columns: ``vertex`` (the graph's labels where it has some), then the values."""
        labels = self.graph.labels
        vertex = np.arange(self.graph.num_vertices) if labels is None else np.asarray(labels)
        return {"vertex": vertex, **{name: on_host(array) for name, array in self._arrays().items()}}

    def named_columns(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Return the columns as users see them: all vertices, in ``parent`` and ``label`` too, by the graph's labels.

        They are NumPy arrays, or Arrow's where labels are strings.  "None" (an unreachable vertex's parent) is -1 among
        whole numbers and null among strings.
        """
        vertices = np.arange(*rows.indices(self.graph.num_vertices))
        columns = {"vertex": vertices, **{name: on_host(array[rows]) for name, array in self._arrays().items()}}
        labels = self.graph.labels
        return {name: names_of(labels, values) if holds_vertices(name) else values for name, values in columns.items()}

    def to_arrow(self) -> Any:
        """Return the columns of `named_columns` as a pyarrow table, which shares the memory of the values."""
        from shoal import tables

        return tables.to_arrow(self.named_columns())

    def to_pandas(self) -> Any:
        """Return the columns of `named_columns` as a pandas DataFrame, which shares the memory of the values."""
        from shoal import tables

        return tables.to_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the columns of `named_columns` as a Polars DataFrame, which shares the memory of the values."""
        from shoal import tables

        return tables.to_polars(self.to_arrow())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns of `named_columns` to a Parquet file, which appears only when it is complete."""
        from shoal import tables

        tables.write_columns(self.named_columns(), os.fspath(path), ".parquet")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Give the table to whatever takes Arrow's: pandas, Polars, DuckDB, pyarrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from shoal.notebook import result_as_html

        return result_as_html(self)

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

    def _arrays(self) -> dict[str, Any]:
        """Return the columns; of a batch one set per source, numbered."""
        arrays = super()._arrays()
        if self.distance.ndim == 1:
            return arrays
        return {f"{name}_{k}": row for name, rows in arrays.items() for k, row in enumerate(rows)}

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
class CommunitiesResult(Result):
    """Labels of communities: the smallest vertex id in each; ``count`` of them."""

    label: np.ndarray
    count: int
    columns: ClassVar[tuple[str, ...]] = ("label",)

    def summary(self) -> dict[str, Any]:
        """Return the number of communities and the size of the largest."""
        largest = int(np.bincount(self.label).max()) if len(self.label) else 0
        return {"communities": self.count, "largest": largest}


@dataclass(repr=False)
class LouvainResult(CommunitiesResult):
    """Communities, their modularity, and the number of communities and the modularity after each level."""

    modularity: float
    levels: tuple[tuple[int, float], ...]

    def summary(self) -> dict[str, Any]:
        """Return the number of communities, the size of the largest and the modularity."""
        return super().summary() | {"modularity": self.modularity}


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
class TrianglesResult(Result):
    """Number of triangles that every vertex is in."""

    triangles: np.ndarray
    columns: ClassVar[tuple[str, ...]] = ("triangles",)

    @property
    def total(self) -> int:
        """Number of triangles of the graph."""
        return int(self.triangles.sum()) // 3

    def summary(self) -> dict[str, Any]:
        """Return the number of triangles and the vertex that is in most."""
        return {"triangles": self.total, "top_vertex": _top(self.triangles)}


@dataclass(repr=False)
class ClusteringResult(Result):
    """Local clustering coefficient of every vertex, from 0 to 1."""

    clustering: np.ndarray
    columns: ClassVar[tuple[str, ...]] = ("clustering",)

    @property
    def average(self) -> float:
        """The mean over all vertices; 0 if there are none."""
        return float(self.clustering.mean()) if len(self.clustering) else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the mean."""
        return {"average": self.average}


@dataclass(repr=False)
class TransitivityResult(Result):
    """Of every vertex, the triangles that it is in, and its triads: pairs of different neighbours."""

    triangles: np.ndarray
    triads: np.ndarray
    columns: ClassVar[tuple[str, ...]] = ("triangles", "triads")

    @property
    def transitivity(self) -> float:
        """Which part of all triads are closed; 0 if there are none."""
        total = int(self.triads.sum())
        return int(self.triangles.sum()) / total if total else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the transitivity, and the numbers of triangles and triads."""
        numbers = {"triangles": int(self.triangles.sum()) // 3, "triads": int(self.triads.sum())}
        return {"transitivity": self.transitivity, **numbers}


def _top(values: np.ndarray) -> int | None:
    """Return the row of the highest value, a vertex or an edge, the first of several; None if there is none."""
    return int(values.argmax()) if len(values) else None


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


@dataclass(repr=False)
class CoreResult(Result):
    """Core number of every vertex."""

    core: np.ndarray
    columns: ClassVar[tuple[str, ...]] = ("core",)

    def summary(self) -> dict[str, Any]:
        """Return the largest core number, and how many vertices have it."""
        largest = int(self.core.max()) if len(self.core) else None
        return {"max_core": largest, "innermost": int(np.count_nonzero(self.core == largest)) if len(self.core) else 0}


@dataclass(repr=False)
class CoreMembersResult(Result):
    """Whether each vertex belongs to the k-core."""

    in_core: np.ndarray
    k: int
    columns: ClassVar[tuple[str, ...]] = ("in_core",)

    def summary(self) -> dict[str, Any]:
        """Return k and the number of vertices in the core."""
        return {"k": self.k, "in_core": int(np.count_nonzero(self.in_core))}


@dataclass(repr=False)
class IteratedCentralityResult(Result):
    """Eigenvector or Katz centrality of every vertex, and how the iteration ended."""

    centrality: np.ndarray
    iterations: int
    change: float
    columns: ClassVar[tuple[str, ...]] = ("centrality",)

    def summary(self) -> dict[str, Any]:
        """Return the number of iterations, the last change and the most central vertex."""
        top = int(self.centrality.argmax()) if len(self.centrality) else None
        return {"iterations": self.iterations, "change": self.change, "top_vertex": top}


@dataclass(repr=False)
class HitsResult(Result):
    """Hubs and authorities; each sum to one."""

    hub: np.ndarray
    authority: np.ndarray
    iterations: int
    change: float
    columns: ClassVar[tuple[str, ...]] = ("hub", "authority")

    def summary(self) -> dict[str, Any]:
        """Return the number of iterations, the last change, the best hub and the best authority."""
        tops = {f"top_{name}": int(getattr(self, name).argmax()) if len(self.hub) else None for name in self.columns}
        return {"iterations": self.iterations, "change": self.change, **tops}


@dataclass(repr=False)
class EdgesResult(Result):
    """Base of the results that have a row for each of some edges: ``src``, ``dst`` and values."""

    src: np.ndarray
    dst: np.ndarray

    @property
    def num_rows(self) -> int:
        """Rows of the table: one for each edge."""
        return len(self.src)

    def table(self) -> dict[str, np.ndarray]:
        """Return the edges as NumPy columns, their ends by the graph's labels where it has some."""
        table = self.edges()
        if self.graph.labels is not None:
            labels = np.asarray(self.graph.labels)
            table |= {"src": labels[table["src"]], "dst": labels[table["dst"]]}
        return table

    def named_columns(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Return the edges as users see them."""
        labels, columns = self.graph.labels, self.edges()
        return {n: names_of(labels, v[rows]) if holds_vertices(n) else v[rows] for n, v in columns.items()}

    def edges(self) -> dict[str, np.ndarray]:
        """Return the edges as NumPy columns, their ends by the graph's own numbers."""
        return {name: on_host(array) for name, array in self._arrays().items()}


@dataclass(repr=False)
class ForestResult(EdgesResult):
    """Edges of a minimum spanning forest, ascending; ``src`` is the smaller end, ``weight`` None without weights."""

    weight: np.ndarray | None
    total_weight: int | float
    columns: ClassVar[tuple[str, ...]] = ("src", "dst", "weight")

    def summary(self) -> dict[str, Any]:
        """Return the number of edges and of trees, and the weight of all."""
        trees = self.graph.num_vertices - len(self.src)
        return {"edges": len(self.src), "trees": trees, "total_weight": self.total_weight}


@dataclass(repr=False)
class EdgeCentralityResult(EdgesResult):
    """Betweenness centrality of every edge in the order of the rows, of an undirected one from its smaller end."""

    centrality: np.ndarray
    num_sources: int
    columns: ClassVar[tuple[str, ...]] = ("src", "dst", "centrality")

    def summary(self) -> dict[str, Any]:
        """Return the most central edge and its value."""
        top = _top(self.centrality)
        ends = {f"top_{name}": None if top is None else int(getattr(self, name)[top]) for name in ("src", "dst")}
        value = None if top is None else float(self.centrality[top])
        return {"sources": self.num_sources, **ends, "top_centrality": value}
