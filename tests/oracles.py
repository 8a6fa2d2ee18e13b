# SPDX-License-Identifier: Apache-2.0
"""Independent answers to compare with: SciPy, NetworkX and igraph, each given the stored edges of a graph.

Parallel edges and loops reach every oracle as they are stored.  Nothing here calls an algorithm of shoal.  igraph is
imported where it is asked, so that a machine without it (one with a GPU, say) still runs all that others answer.
"""

import random

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra


def edge_arrays(graph):
    """(src, dst) of every stored edge."""
    return np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)), np.asarray(graph.indices)


def scipy_matrix(graph, *, weighted=True):
    """The graph's own arrays as a float64 matrix: zeros stay edges, parallel edges stay apart."""
    values = graph.weights if weighted and graph.weights is not None else np.ones(graph.num_edges)
    shape = (graph.num_vertices, graph.num_vertices)
    return csr_array((np.asarray(values, dtype=np.float64), graph.indices, graph.indptr), shape=shape)


def networkx_graph(graph):
    """Every stored edge in a MultiDiGraph; weight 1 where the graph has none."""
    src, dst = edge_arrays(graph)
    values = np.ones(len(src)) if graph.weights is None else graph.weights
    result = nx.MultiDiGraph()
    result.add_nodes_from(range(graph.num_vertices))
    result.add_weighted_edges_from(zip(src.tolist(), dst.tolist(), values.tolist(), strict=True))
    return result


def igraph_graph(graph):
    """A directed igraph of the stored edges; an undirected one (each edge once) of an undirected graph."""
    import igraph

    src, dst = edge_arrays(graph)
    keep = np.ones(len(src), dtype=bool) if graph.is_directed else src <= dst
    pairs = np.column_stack([src[keep], dst[keep]])
    result = igraph.Graph(n=graph.num_vertices, edges=pairs, directed=graph.is_directed)
    if graph.weights is not None:
        result.es["weight"] = graph.weights[keep].tolist()
    return result


def bfs_distance(graph, source):
    """Levels from one source, or a row for each of a list."""
    distance = dijkstra(scipy_matrix(graph, weighted=False), indices=source, unweighted=True)
    return np.where(np.isinf(distance), -1, distance).astype(np.int32)


def bfs_distance_networkx(graph, source):
    found = nx.single_source_shortest_path_length(networkx_graph(graph), source)
    return np.array([found.get(v, -1) for v in range(graph.num_vertices)], dtype=np.int32)


def sssp_distance(graph, source):
    """float64 distances from one source, or a row for each of a list."""
    return dijkstra(scipy_matrix(graph), indices=source)


def sssp_distance_networkx(graph, source):
    found = nx.single_source_dijkstra_path_length(networkx_graph(graph), source)
    return np.array([found.get(v, np.inf) for v in range(graph.num_vertices)])


def shortest_path_parents(graph, source):
    """Parents of some tree of shortest paths, -1 where unreachable, the source its own."""
    _, parent = dijkstra(scipy_matrix(graph), indices=source, return_predecessors=True)
    parent = np.where(parent < 0, -1, parent).astype(np.int64)
    parent[source] = source
    return parent


def breadth_first_parents(graph, source):
    """Parents of some breadth-first tree."""
    _, parent = dijkstra(scipy_matrix(graph, weighted=False), indices=source, unweighted=True, return_predecessors=True)
    parent = np.where(parent < 0, -1, parent).astype(np.int64)
    parent[source] = source
    return parent


def component_labels(graph):
    """The smallest vertex id of each vertex's (weak) component."""
    if graph.num_vertices == 0:
        return np.empty(0, dtype=np.int64)
    _, component = connected_components(scipy_matrix(graph, weighted=False), directed=False)
    _, smallest = np.unique(component, return_index=True)
    return smallest[component]


def strong_labels(graph):
    """The smallest vertex id of each vertex's strongly connected component (SciPy loses its way on parallel edges)."""
    component = np.array(igraph_graph(graph).connected_components(mode="strong").membership, dtype=np.int64)
    _, smallest = np.unique(component, return_index=True)
    return smallest[component]


def betweenness(graph, sources=None, *, normalized=True, endpoints=False):
    """igraph's sums of dependencies, scaled as NetworkX 3.6 does."""
    chosen = list(range(graph.num_vertices)) if sources is None else [int(source) for source in sources]
    total = np.array(igraph_graph(graph).betweenness(sources=chosen), dtype=np.float64)
    total *= 1 if graph.is_directed else 2
    if endpoints:
        total += _endpoint_counts(graph, chosen)
    return total * _betweenness_scale(graph, sources, normalized, endpoints)


def _endpoint_counts(graph, sources):
    counts = np.zeros(graph.num_vertices)
    for source in sources:
        is_reached = bfs_distance(graph, source) > 0
        counts += is_reached
        counts[source] += is_reached.sum()
    return counts


def _betweenness_scale(graph, sources, normalized, endpoints):
    """NetworkX's factor for each vertex: listed sources count one source fewer for themselves."""
    n = graph.num_vertices
    others = n if endpoints else n - 1
    if others < 2:
        return np.ones(n)
    num_sources = np.full(n, float(others if sources is None else len(sources)))
    if sources is not None and not endpoints:
        num_sources[list(sources)] -= 1
    factor = 1 / (others - 1) if normalized else others / (1 if graph.is_directed else 2)
    # 0/0 for the only source, as in NetworkX.
    return np.array([factor / number if number else np.nan for number in num_sources])


class _ChosenSample(random.Random):
    """Makes NetworkX "sample" the sources it is given."""

    def __init__(self, sources):
        super().__init__(0)
        self._sources = list(sources)

    def sample(self, population, k):
        assert k == len(self._sources)
        return self._sources


def betweenness_networkx(graph, sources=None, *, normalized=True, endpoints=False):
    """NetworkX's own values; for graphs without parallel edges, which it counts as one."""
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(networkx_graph(graph))
    sample = {} if sources is None else {"k": len(sources), "seed": _ChosenSample(sources)}
    found = nx.betweenness_centrality(simple, normalized=normalized, endpoints=endpoints, **sample)
    return np.array([found[v] for v in range(graph.num_vertices)])


def edge_betweenness(graph, sources=None, *, normalized=True):
    """igraph's sums of the edges' shares, scaled as NetworkX 3.6 does; undirected edges once, from the smaller end."""
    chosen = list(range(graph.num_vertices)) if sources is None else [int(source) for source in sources]
    if not chosen:
        return np.empty(0)
    total = np.array(igraph_graph(graph).edge_betweenness(sources=chosen), dtype=np.float64)
    total *= 1 if graph.is_directed else 2
    if graph.num_vertices < 2:
        return total
    pairs = len(chosen) * (graph.num_vertices - 1)
    return total / pairs if normalized else total * graph.num_vertices / len(chosen) / (2 - graph.is_directed)


def edge_betweenness_networkx(graph, sources=None, *, normalized=True):
    """NetworkX's own values by the ends of edges, the smaller one first where they have no direction."""
    simple = (nx.DiGraph if graph.is_directed else nx.Graph)(networkx_graph(graph))
    sample = {} if sources is None else {"k": len(sources), "seed": _ChosenSample(sources)}
    found = nx.edge_betweenness_centrality(simple, normalized=normalized, **sample)
    return {edge if graph.is_directed else tuple(sorted(edge)): value for edge, value in found.items()}


def pagerank(graph, *, damping=0.85, personalization=None, weighted=False):
    """igraph's ranks, from a linear solver: the limit that the power iteration tends to."""
    import igraph

    pairs = np.column_stack(edge_arrays(graph))
    whole = igraph.Graph(n=graph.num_vertices, edges=pairs, directed=True)
    weights = graph.weights.tolist() if weighted and graph.weights is not None else None
    if personalization is None:
        return np.array(whole.pagerank(damping=damping, weights=weights))
    return np.array(whole.personalized_pagerank(damping=damping, weights=weights, reset=list(personalization)))


def pagerank_networkx(graph, *, damping=0.85, tolerance=1e-6, personalization=None, weighted=False, max_iterations=100):
    """NetworkX's ranks, stopped by the L1 change alone (NetworkX multiplies its tolerance by the vertex count)."""
    found = nx.pagerank(
        networkx_graph(graph),
        alpha=damping,
        tol=tolerance / graph.num_vertices,
        max_iter=max_iterations,
        personalization=None if personalization is None else dict(enumerate(personalization)),
        weight="weight" if weighted else None,
    )
    return np.array([found[v] for v in range(graph.num_vertices)])


def pagerank_iterated(graph, iterations, *, damping=0.85):
    """The ranks after so many steps of the power iteration from the uniform start."""
    matrix = scipy_matrix(graph, weighted=False)
    degree = np.diff(graph.indptr)
    rank = np.full(graph.num_vertices, 1 / graph.num_vertices)
    for _ in range(iterations):
        flow = matrix.T @ np.divide(rank, degree, out=np.zeros_like(rank), where=degree > 0)
        rank = damping * (flow + rank[degree == 0].sum() / graph.num_vertices) + (1 - damping) / graph.num_vertices
    return rank


def core_numbers(graph):
    """igraph's core numbers, edges counted in both directions."""
    return np.array(igraph_graph(graph).coreness(mode="all"), dtype=np.int32).reshape(-1)
