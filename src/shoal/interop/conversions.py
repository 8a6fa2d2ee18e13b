# SPDX-License-Identifier: Apache-2.0
"""The methods of `Graph` that take graphs and tables of other libraries and make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.errors import GraphError
from shoal.interop.libraries import CONSTRUCTORS, constructor_for

if TYPE_CHECKING:
    from shoal.graph import Graph
    from shoal.interop.edge_index import EdgeIndex
    from shoal.interop.edges import EdgeArrays


def make_graph(cls: Any, edges: EdgeArrays) -> Graph:
    """Make a graph of what a reader gives."""
    return cls.from_edges(
        edges.src,
        edges.dst,
        edges.weights,
        num_vertices=edges.num_vertices,
        directed=edges.is_directed,
        labels=edges.labels,
    )


class Conversions:
    """Base of `Graph`: constructors named after what a graph comes from, and the way back."""

    __slots__ = ()

    @classmethod
    def from_any(cls: Any, source: Any, **options: Any) -> Graph:
        """Make a graph of what NetworkX, igraph, NetworKit, SciPy, PyTorch Geometric, pandas, Polars or pyarrow made.

        The type of ``source`` says which of the other constructors is called, with these options.

        Examples
        --------
        >>> import networkx as nx
        >>> import shoal
        >>> shoal.Graph.from_any(nx.path_graph(4)).num_vertices
        4
        """
        if isinstance(source, cls):
            return source
        constructor = constructor_for(source)
        if constructor is None:
            raise GraphError(
                f"source is a {type(source).__name__}; it must be a graph or table of {', '.join(CONSTRUCTORS)}, or "
                "give Arrow's C stream; for arrays there are Graph.from_edges, from_csr and from_edge_index"
            )
        return getattr(cls, constructor)(source, **options)

    @classmethod
    def from_scipy(cls: Any, matrix: Any, *, directed: bool = True) -> Graph:
        """Make a graph from a square sparse array or matrix whose entry (u, v) is the weight of the edge u -> v.

        A matrix of Booleans makes a graph without weights.  Stored zeros are edges of weight 0.  Arrays of a CSR are
        shared where their types fit.

        Examples
        --------
        >>> import scipy.sparse
        >>> import shoal
        >>> matrix = scipy.sparse.csr_array([[0, 2, 0], [0, 0, 3], [0, 0, 0]])
        >>> g = shoal.Graph.from_scipy(matrix)
        >>> (matrix @ shoal.sssp(g, 0).distance).tolist()  # [0, 2, 5]
        [4.0, 15.0, 0.0]
        >>> g.to_scipy().toarray().tolist()
        [[0, 2, 0], [0, 0, 3], [0, 0, 0]]
        """
        if getattr(matrix, "ndim", None) != 2 or not hasattr(matrix, "tocsr"):
            raise GraphError(f"matrix is a {type(matrix).__name__}; it must be a two-dimensional SciPy sparse array")
        if matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"matrix has the shape {matrix.shape}; it must be square")
        csr = matrix.tocsr()
        weights = None if csr.dtype == bool else csr.data
        return cls.from_csr(csr.indptr, csr.indices, weights, directed=directed)

    def to_scipy(self: Any) -> Any:
        """Return the adjacency matrix as a SciPy CSR array that shares memory; without weights every entry is 1.

        Rows and columns are the ids; parallel edges are entries of their own, which SciPy adds up when it calculates.
        """
        import numpy as np
        from scipy.sparse import csr_array

        data = np.ones(self.num_edges, np.int32) if self.weights is None else self.weights
        return csr_array((data, self.indices, self.indptr), shape=(self.num_vertices, self.num_vertices))

    @classmethod
    def from_table(
        cls,
        table: Any,
        src: Any = "src",
        dst: Any = "dst",
        weight: Any = None,
        *,
        directed: bool | None = None,
        num_vertices: int | None = None,
    ) -> Graph:
        """Make a graph of a table with a row for each edge: of pandas, Polars or pyarrow, or a dict of columns.

        Anything that gives Arrow's C stream will do.  Ids are whole numbers or strings.  Unless they are 0 to n - 1,
        the distinct ones in ascending order become the labels.

        Parameters
        ----------
        src, dst, weight
            Names of columns; without ``weight`` the graph has no weights.
        directed
            What `to_arrow` or `to_pandas` wrote beside the table if not given; undirected if nothing is there.
        num_vertices
            Says that ids are 0 to ``num_vertices`` - 1, whether all of them have edges or not.

        Examples
        --------
        >>> import pandas as pd
        >>> import shoal
        >>> roads = pd.DataFrame({"from": ["Ulm", "Bern"], "to": ["Bern", "Genf"], "km": [266, 160]})
        >>> g = shoal.Graph.from_table(roads, "from", "to", "km")
        >>> shoal.sssp(g, g.vertex("Ulm")).to_pandas()
          vertex  distance parent
        0   Bern     266.0    Ulm
        1   Genf     426.0   Bern
        2    Ulm       0.0    Ulm

        >>> import polars as pl
        >>> g = shoal.Graph.from_table(pl.DataFrame({"src": [0, 1], "dst": [1, 2]}))
        >>> pl.DataFrame(shoal.bfs(g, 0)).row(2)
        (2, 2, 1)

        >>> import pyarrow as pa
        >>> g = shoal.Graph.from_table(pa.table({"src": [5, 5], "dst": [7, 9]}))
        >>> shoal.pagerank(g).to_arrow()["vertex"].to_pylist(), g.to_arrow().num_rows
        ([5, 7, 9], 2)
        """
        from shoal.interop import edge_table

        return make_graph(cls, edge_table.read(table, src, dst, weight, directed, num_vertices))

    def to_arrow(self: Any) -> Any:
        """Return a pyarrow table with a row for each edge, an undirected one once.

        The columns are ``src``, ``dst`` and, with weights, ``weight``.  Labels take the place of ids; vertices without
        edges are lost with them, and a warning says so.  Direction and, without labels, the number of vertices are in
        the metadata.
        """
        from shoal.interop import edge_table

        return edge_table.to_arrow(self)

    def to_pandas(self: Any) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame, with the metadata in its ``attrs``."""
        from shoal.interop import edge_table

        return edge_table.to_pandas(self)

    @classmethod
    def from_edge_index(
        cls: Any, edge_index: Any, edge_weight: Any = None, *, num_nodes: int | None = None, directed: bool = True
    ) -> Graph:
        """Make a graph of PyTorch Geometric's ``edge_index``, an array of 2 x E, or of a ``Data`` that has one.

        Of a ``Data``, ``edge_weight`` and ``num_nodes`` are taken, too.

        Parameters
        ----------
        directed
            If false, both directions of every edge must be there with the same weight, as they are in a ``Data`` that
            is undirected.

        Examples
        --------
        >>> import numpy as np
        >>> import shoal
        >>> edge_index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])  # or a tensor
        >>> g = shoal.Graph.from_edge_index(edge_index, num_nodes=3, directed=False)
        >>> shoal.bfs(g, 0).distance.tolist()
        [0, 1, 2]
        >>> g.to_edge_index().edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
        """
        from shoal.interop import edge_index as reader

        graph = make_graph(cls, reader.read(edge_index, edge_weight, num_nodes))
        return graph if directed else cls.from_csr(graph.indptr, graph.indices, graph.weights, directed=False)

    def to_edge_index(self: Any) -> EdgeIndex:
        """Return ``edge_index`` (int64, 2 x E, all stored edges) and ``edge_weight`` (None without weights).

        They are NumPy arrays that nothing else uses, so `torch.from_numpy` takes them as they are.
        """
        from shoal.interop import edge_index

        return edge_index.write(self)

    @classmethod
    def from_igraph(
        cls, graph: Any, *, weight: str | None = "weight", names: str | None = "name", default: float | None = None
    ) -> Graph:
        """Make a graph of an igraph Graph; other attributes than these two are not taken.

        Parameters
        ----------
        weight
            The attribute of edges that is the weight.  If no edge has one called "weight", the graph has no weights.
        names
            The attribute of vertices whose values, all whole numbers or all strings, are the labels, if there is one.
        default
            The weight of an edge that has none.  Without a default, all edges must have one, or none.

        Examples
        --------
        >>> import igraph
        >>> import shoal
        >>> ring = igraph.Graph.Ring(5)
        >>> g = shoal.Graph.from_igraph(ring)
        >>> ring.vs["hops"] = shoal.bfs(g, 0).distance.tolist()
        >>> ring.vs.find(hops=2).index
        2
        >>> g.to_igraph().get_edgelist()
        [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]
        """
        from shoal.interop import igraph_graph

        return make_graph(cls, igraph_graph.read(graph, weight, names, default))

    def to_igraph(self: Any, *, weight: str = "weight", names: str = "name") -> Any:
        """Return the graph as an igraph Graph; weights and labels are the attributes ``weight`` and ``names``."""
        from shoal.interop import igraph_graph

        return igraph_graph.write(self, weight, names)

    @classmethod
    def from_networkit(cls, graph: Any) -> Graph:
        """Make a graph of a NetworKit Graph.

        Labels are the node attribute "label" if there is one, or the numbers of the nodes where some were removed.

        Examples
        --------
        >>> import networkit as nk
        >>> import shoal
        >>> theirs = nk.Graph(3, weighted=True)
        >>> theirs.addEdge(0, 1, 2.5), theirs.addEdge(1, 2, 0.5)
        (True, True)
        >>> g = shoal.Graph.from_networkit(theirs)
        >>> shoal.sssp(g, 0).distance.tolist()
        [0.0, 2.5, 3.0]
        >>> g.to_networkit().totalEdgeWeight()
        3.0
        """
        from shoal.interop import networkit_graph

        return make_graph(cls, networkit_graph.read(graph))

    def to_networkit(self: Any) -> Any:
        """Return the graph as a NetworKit Graph; labels are the node attribute "label", weights become doubles.

        Labels that are whole numbers must have 32 bits there.
        """
        from shoal.interop import networkit_graph

        return networkit_graph.write(self)

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str | None = "weight", default: float | None = None) -> Graph:
        """Make a graph of a NetworkX graph of any class; other attributes than the weight are not taken.

        Nodes that are 0 to n - 1 keep their numbers.  Others are numbered in the graph's order and become the labels,
        which must be all whole numbers or all strings.

        Parameters
        ----------
        weight
            The attribute of edges that is the weight.  If no edge has one called "weight", the graph has no weights.
        default
            The weight of an edge that has none.  Without a default, all edges must have one, or none.

        Examples
        --------
        >>> import networkx as nx
        >>> import shoal
        >>> G = nx.Graph([("ann", "bob"), ("bob", "cleo")])
        >>> g = shoal.Graph.from_networkx(G)
        >>> result = shoal.bfs(g, g.vertex("ann"))
        >>> nx.set_node_attributes(G, dict(zip(G, result.distance.tolist())), "hops")
        >>> G.nodes["cleo"]
        {'hops': 2}
        >>> sorted(g.to_networkx().edges)
        [('ann', 'bob'), ('bob', 'cleo')]
        """
        from shoal.interop import networkx_graph

        return make_graph(cls, networkx_graph.read(graph, weight, default))

    def to_networkx(self: Any, *, weight: str = "weight") -> Any:
        """Return the graph as a NetworkX graph, directed or not, a multigraph if it has parallel edges.

        Nodes are the labels, or else the ids; weights are the attribute ``weight``.
        """
        from shoal.interop import networkx_graph

        return networkx_graph.write(self, weight)
