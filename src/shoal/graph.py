# SPDX-License-Identifier: Apache-2.0
"""Graph: an immutable CSR with optional weights and labels, checked once when it is made.

Row v holds the neighbours of v: ``indices[indptr[v]:indptr[v + 1]]``, ascending when the graph came from edges, by
falling degree when it is `Graph.optimized`, in any order when it came from a CSR.  An undirected edge is stored in both
rows, a self-loop once.  Vertex ids and edge offsets have widths of their own (32/32, 32/64 or 64/64 bits), the
narrowest that fit unless they are given.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from shoal import arrays
from shoal.errors import Allocating, FileFormatError, GraphError, OutOfMemoryError, check_choice, check_integer
from shoal.interop.conversions import Conversions
from shoal.labels import as_labels, check_labels, find_label, label_at
from shoal.symmetry import CSRArrays, check_symmetric, has_self_loops, is_same_csr

#: Offsets of more take eight terabytes; beyond, an id would leave no room for what is packed beside it while sorting.
_MAX_VERTICES = 2**40
#: By whose degrees the rows of a reverse are ordered, given those of the graph; see `Graph._ranked_by`.
_TURNED = {None: None, "out": "in", "in": "out"}


class Graph(Conversions):
    """A graph that never changes; make one with `from_edges`, `from_csr`, another ``from_`` or a reader of files.

    Examples
    --------
    >>> g = Graph.from_edges([0, 0, 1], [1, 2, 2])
    >>> g.num_vertices, g.num_edges
    (3, 6)
    >>> g.indices[g.indptr[1] : g.indptr[2]].tolist()
    [0, 2]
    """

    __slots__ = (
        "__weakref__",
        "_cache",
        "_indices",
        "_indptr",
        "_labels",
        "_lock",
        "_ranked_by",
        "_unchecked",
        "_weights",
        "is_directed",
    )

    _indptr: np.ndarray
    _indices: np.ndarray
    _weights: np.ndarray | None
    _labels: Any
    is_directed: bool
    #: The file whose arrays are mapped and were not looked at yet, None if they were checked.
    _unchecked: str | None
    #: By which degrees of the neighbours rows are ordered: "out", of the edges that leave them, in an optimized graph;
    #: "in" in its reverse, where these edges enter them; None: by none.
    _ranked_by: str | None
    #: What can be made again: the reverse, degrees, what the engine has placed.  Reads need no lock, writes do.
    _cache: dict[Any, Any]
    _lock: threading.RLock

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("Graph cannot be made by calling it; use Graph.from_edges, Graph.from_csr or Graph.from_scipy")

    @classmethod
    def _make(
        cls,
        csr: tuple[np.ndarray, np.ndarray, np.ndarray | None],
        is_directed: bool,
        labels: Any,
        ranked_by: str | None = None,
    ) -> Graph:
        graph = object.__new__(cls)
        for name, array in zip(("_indptr", "_indices", "_weights"), csr, strict=True):
            object.__setattr__(graph, name, None if array is None else arrays.read_only(array))
        others = {"is_directed": is_directed, "_labels": labels, "_ranked_by": ranked_by, "_unchecked": None}
        others |= {"_cache": {}, "_lock": threading.RLock()}
        for name, value in others.items():
            object.__setattr__(graph, name, value)
        return graph

    @classmethod
    def from_edges(
        cls,
        src: Any,
        dst: Any,
        weights: Any = None,
        *,
        num_vertices: int | None = None,
        directed: bool = False,
        deduplicate: bool = False,
        drop_self_loops: bool = False,
        labels: Any = None,
        vertex_dtype: Any = None,
        edge_dtype: Any = None,
        num_threads: int | None = None,
    ) -> Graph:
        """Make a graph from two arrays of vertex ids.

        Parameters
        ----------
        num_vertices
            One more than the largest id if not given; more leaves isolated vertices.
        directed
            If false, both directions of every edge are stored.
        deduplicate
            Keep one of several edges between the same vertices: the one with the smallest weight.
        labels
            The user's own name of each vertex, in the order of the ids.
        """
        src, dst = arrays.as_edge_ids(src, dst)
        labels = as_labels(labels, num_vertices)
        size = _count_vertices(src, dst, num_vertices if labels is None else len(labels))
        csr = _build(
            src,
            dst,
            arrays.as_weights(weights, src.size),
            size,
            vertex_dtype,
            edge_dtype,
            is_mirrored=not directed,
            deduplicate=bool(deduplicate),
            drop_self_loops=bool(drop_self_loops),
            num_threads=None if num_threads is None else check_integer("num_threads", num_threads, 1),
        )
        return cls._make(csr, bool(directed), labels)

    @classmethod
    def from_csr(
        cls,
        indptr: Any,
        indices: Any,
        weights: Any = None,
        *,
        directed: bool = True,
        labels: Any = None,
        vertex_dtype: Any = None,
        edge_dtype: Any = None,
        check: bool = True,
    ) -> Graph:
        """Make a graph from the arrays of a CSR, without a copy where their types fit.

        Parameters
        ----------
        directed
            If false, the CSR must hold both directions of every edge with the same weight.
        check
            If false, the arrays are trusted: wrong ones can crash the process.
        """
        indptr, indices = arrays.as_ids("indptr", indptr), arrays.as_ids("indices", indices)
        if indptr.size == 0:
            raise GraphError("indptr is empty; it must have one value more than there are vertices")
        num_vertices = indptr.size - 1
        vertex_dtype = arrays.choose_vertex_dtype(vertex_dtype, edge_dtype, num_vertices)
        edge_dtype = arrays.choose_edge_dtype(edge_dtype, vertex_dtype, indices.size)
        if check:
            arrays.check_indptr(indptr, indices.size)
            arrays.check_ids("indices", indices, num_vertices)
        csr = (
            indptr.astype(edge_dtype, copy=False),
            indices.astype(vertex_dtype, copy=False),
            arrays.as_weights(weights, indices.size, check),
        )
        graph = cls._make(csr, bool(directed), as_labels(labels, num_vertices))
        if check and not directed:
            graph._check_symmetric()
        return graph

    @property
    def indptr(self) -> np.ndarray:
        """Where the row of each vertex begins in ``indices``, and the end of the last."""
        if self._unchecked is not None:
            self._check_mapped()
        return self._indptr

    @property
    def indices(self) -> np.ndarray:
        """The neighbours of all vertices, row after row."""
        if self._unchecked is not None:
            self._check_mapped()
        return self._indices

    @property
    def weights(self) -> np.ndarray | None:
        """The weights of the edges, in the order of ``indices``; None if they have none."""
        if self._unchecked is not None:
            self._check_mapped()
        return self._weights

    @property
    def labels(self) -> Any:
        """The user's own name of each vertex; None if they have none."""
        if self._unchecked is not None:
            self._check_mapped()
        return self._labels

    def _check_when_used(self, path: str) -> Graph:
        """Leave the arrays of a mapped file for the first use to check, since that reads them anyway."""
        object.__setattr__(self, "_unchecked", path)
        return self

    def _check_mapped(self) -> None:
        """Check what compiled code relies on: an id or an offset out of range would end the process."""
        with self._lock:
            path = self._unchecked
            if path is None:
                return
            try:
                arrays.check_indptr(self._indptr, self._indices.size)
                arrays.check_ids("indices", self._indices, self.num_vertices)
                arrays.as_weights(self._weights, self.num_edges)
                check_labels(self._labels)
            except GraphError as error:
                raise FileFormatError(f"{path}: {error}") from error
            object.__setattr__(self, "_unchecked", None)

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones too."""
        return self._indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Number of stored edges: an undirected edge counts twice, a self-loop once."""
        return self._indices.size

    @property
    def is_weighted(self) -> bool:
        """Whether edges have weights."""
        return self._weights is not None

    @property
    def is_optimized(self) -> bool:
        """Whether neighbours stand in the order of `optimized`."""
        return self._ranked_by is not None

    @property
    def vertex_dtype(self) -> np.dtype:
        """Type of vertex ids: int32 or int64."""
        return self._indices.dtype

    @property
    def edge_dtype(self) -> np.dtype:
        """Type of edge offsets: int32 or int64."""
        return self._indptr.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays of the CSR."""
        return self._indptr.nbytes + self._indices.nbytes + (0 if self._weights is None else self._weights.nbytes)

    @property
    def degree(self) -> np.ndarray:
        """Number of edges stored in each row (out-degree)."""
        return self._cached("degree", lambda: arrays.read_only(np.diff(self.indptr)))

    @property
    def max_degree(self) -> int:
        """Largest number of edges in a row, 0 if there is none."""
        return self._cached("max_degree", lambda: int(self.degree.max(initial=0)))

    @property
    def min_weight(self) -> int | float | None:
        """Smallest weight, None if there is none."""
        return self._cached("min_weight", lambda: _extreme(np.min, self.weights))

    @property
    def max_weight(self) -> int | float | None:
        """Largest weight, None if there is none."""
        return self._cached("max_weight", lambda: _extreme(np.max, self.weights))

    @property
    def has_self_loops(self) -> bool:
        """Whether an edge leads from a vertex to itself."""
        return self._cached("has_self_loops", lambda: has_self_loops(self))

    def reverse(self) -> Graph:
        """Return the graph with every edge turned round; an undirected graph is its own reverse."""
        if not self.is_directed:
            return self
        origin = self._cache.get("origin", lambda: None)()
        return self._cached("reverse", self._transposed) if origin is None else origin

    def _transposed(self) -> Graph:
        csr = _transpose(self)
        if self.is_optimized:
            degree = self.degree if self._ranked_by == "out" else np.diff(csr.indptr)
            csr = _order(csr, degree, overwrite=True)
        graph = self._make(csr, self.is_directed, self.labels, _TURNED[self._ranked_by])
        graph._cache["origin"] = weakref.ref(self)  # weak: a cycle would keep the arrays until a garbage collection
        return graph

    def optimized(self, *, device: str | None = None) -> Graph:
        """Return the same graph with the neighbours of every vertex by falling degree, of equal degree by id.

        A pull then meets a source of the frontier sooner, since hubs are in it early: preparation that pays where many
        searches follow.  Vertices, labels, edges and weights stay what they are.  The degree is the number of edges
        that leave a vertex, in the lists of the reverse too.

        Parameters
        ----------
        device
            Who orders the lists: "cpu", or "cuda", which keeps a copy for the runs there; by default a GPU that has the
            graph already, or else the CPU.  The result is the same.

        Examples
        --------
        >>> g = Graph.from_edges([0, 0, 1, 2, 2], [1, 2, 2, 3, 4])
        >>> g.indices[: g.degree[0]].tolist(), g.optimized().indices[: g.degree[0]].tolist()
        ([1, 2], [2, 1])
        """
        gpu = self._choose_gpu(device)
        if self.is_optimized:
            return self
        if gpu is not None:
            return self._optimized_on_gpu(gpu)
        return self._make(_order(self, self.degree), self.is_directed, self.labels, "out")

    def _with_order(self, ranked_by: str | None) -> Graph:
        """Return the graph with the order that its lists are known to have."""
        return self._make((self.indptr, self.indices, self.weights), self.is_directed, self.labels, ranked_by)

    def _choose_gpu(self, device: str | None) -> int | None:
        """Return the number of the GPU that is asked for or has the graph already, None for the CPU."""
        from shoal.backends.cuda.device import current_gpu, find_resident

        if device is None:
            return find_resident(self)
        return None if check_choice("device", device, ("cpu", "cuda")) == "cpu" else current_gpu("device='cuda'")

    def _optimized_on_gpu(self, number: int) -> Graph:
        from shoal.backends.cuda.building import order_csr
        from shoal.backends.cuda.device import find_device, keep_on_gpu

        device = find_device(number)
        with device.use():
            csr = order_csr(*device.place(self).edges(incoming=False))
            weights = None if csr.weights is None else csr.weights.get()
            graph = self._make((self.indptr, csr.indices.get(), weights), self.is_directed, self.labels, "out")
            keep_on_gpu(graph, csr)
        return graph

    def symmetrized(self, deduplicate: bool = True) -> Graph:
        """Return the undirected graph that has both directions of every edge of this one."""
        if self.is_directed:
            return self._make(self._sorted(is_mirrored=True, deduplicate=bool(deduplicate)), False, self.labels)
        return self.deduplicated() if deduplicate else self

    def deduplicated(self) -> Graph:
        """Return the graph with one of several edges between the same vertices: the one of the smallest weight."""
        return self._unless_same(self._sorted(deduplicate=True))

    def without_self_loops(self) -> Graph:
        """Return the graph without edges from a vertex to itself."""
        return self._unless_same(self._sorted(drop_self_loops=True))

    def _unless_same(self, csr: Any) -> Graph:
        return self if csr.indices.size == self.num_edges else self._make(csr, self.is_directed, self.labels)

    def _sorted(self, **options: Any) -> Any:
        """Build the CSR again from its edges; wide offsets stay wide."""
        src = np.repeat(np.arange(self.num_vertices, dtype=self.vertex_dtype), self.degree)
        edge_dtype = np.int64 if self.edge_dtype == np.int64 else None
        widths = (self.vertex_dtype, edge_dtype)
        return _build(arrays.read_only(src), self.indices, self.weights, self.num_vertices, *widths, **options)

    def _check_symmetric(self) -> None:
        if not is_same_csr(self, _transpose(self)):  # it may be that only the order within rows differs
            csr = self._sorted()
            check_symmetric(csr, _transpose(csr))

    def vertex(self, label: Any) -> int:
        """Return the id of the vertex with this label (without labels: the id itself, if there is such a vertex)."""
        if self.labels is None:
            return check_integer("label", label, 0, self.num_vertices - 1)
        return find_label(self.labels, label)

    def label_of(self, vertex: int) -> Any:
        """Return the label of a vertex: an int or a string."""
        vertex = check_integer("vertex", vertex, 0, self.num_vertices - 1)
        return vertex if self.labels is None else label_at(self.labels, vertex)

    def _cached(self, key: Any, make: Callable[[], Any]) -> Any:
        value = self._cache.get(key)
        if value is None:
            with self._lock:
                value = self._cache.get(key)
                if value is None:
                    value = self._cache[key] = make()
        return value

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a Graph never changes: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Graph never changes: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        csr = (self.indptr, self.indices, self.weights)
        return self._make, (csr, self.is_directed, self.labels, self._ranked_by)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        names = ("is_directed", "indptr", "indices", "weights", "labels")
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash((self.num_vertices, self.num_edges, self.is_directed, self.is_weighted))

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        parts = [f"{self.num_vertices:,} vertices", f"{self.num_edges:,} stored edges", kind]
        if self._weights is not None:
            parts.append(f"{self._weights.dtype} weights")
        if self._labels is not None:
            parts.append("labels")
        if self.is_optimized:
            parts.append("optimized")
        parts.append(f"{self.vertex_dtype}/{self.edge_dtype}")
        return f"<Graph: {', '.join(parts)}>"


def _count_vertices(src: np.ndarray, dst: np.ndarray, num_vertices: int | None) -> int:
    if num_vertices is None:
        return 1 + max(arrays.largest_id("src", src), arrays.largest_id("dst", dst))
    num_vertices = check_integer("num_vertices", num_vertices, 0)
    arrays.check_ids("src", src, num_vertices)
    arrays.check_ids("dst", dst, num_vertices)
    return num_vertices


def _build(
    src: np.ndarray,
    dst: np.ndarray,
    weights: np.ndarray | None,
    num_vertices: int,
    vertex_dtype: Any,
    edge_dtype: Any,
    **options: Any,
) -> Any:
    from shoal.backends.cpu.csr import build_csr

    vertex_dtype = arrays.choose_vertex_dtype(vertex_dtype, edge_dtype, num_vertices)
    edge_dtype_for = functools.partial(arrays.choose_edge_dtype, edge_dtype, vertex_dtype)
    try:
        if num_vertices > _MAX_VERTICES:
            raise MemoryError
        return build_csr(src, dst, weights, num_vertices, vertex_dtype, edge_dtype_for, **options)
    except MemoryError:
        raise OutOfMemoryError(f"{num_vertices} vertices and {src.size} edges do not fit in memory") from None


def _transpose(csr: CSRArrays) -> Any:
    from shoal.backends.cpu.csr import transpose_csr

    return transpose_csr(csr.indptr, csr.indices, csr.weights)


def _order(csr: CSRArrays, degree: np.ndarray, *, overwrite: bool = False) -> Any:
    from shoal.backends.cpu.csr import CSR, order_csr

    with Allocating("the ordered lists of", f"{csr.indptr.size - 1} vertices and {csr.indices.size} edges"):
        return order_csr(CSR(csr.indptr, csr.indices, csr.weights), degree, overwrite=overwrite)


def _extreme(choose: Callable[[np.ndarray], Any], weights: np.ndarray | None) -> int | float | None:
    return None if weights is None or weights.size == 0 else choose(weights).item()


def _is_same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(np.asarray(left), np.asarray(right))
