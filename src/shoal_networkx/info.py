# SPDX-License-Identifier: Apache-2.0
"""The functions of NetworkX that shoal serves, and what NetworkX is told of them when it is imported.

To serve one more, write it in its family's module and give it a line here.  Nothing may be imported here.
"""

from __future__ import annotations

#: Sizes, nodes and edges together, from which shoal is quicker than NetworkX: with a conversion for this one call, and
#: on a graph that is converted; None: never.  Rounded from `benchmarks/networkx_crossover.py` on two cores of an AMD
#: EPYC, random graphs with five edges a node.  One search takes NetworkX less than a conversion does; from one node to
#: another it mostly needs to look at a few edges only.
Sizes = tuple["int | None", "int | None"]
SEARCH: Sizes = (None, 6_000)
PAIR: Sizes = (None, None)
COUNT: Sizes = (None, 1_000)
WEIGHTED_SEARCH: Sizes = (6_000, 1_000)
WEIGHTED_PAIR: Sizes = (None, 1_000)
RANKS: Sizes = (25_000, 1_000)
ALL_SEARCHES: Sizes = (3_000, 3_000)
ALL_WEIGHTED: Sizes = (1_000, 1_000)
ALL_PATHS: Sizes = (100, 100)
STRONG: Sizes = (None, 3_000)
CORES: Sizes = (None, 1_000)
COEFFICIENTS: Sizes = (6_000, 1_000)
ITERATIONS: Sizes = (1_000, 1_000)
COMMUNITIES: Sizes = (1_000, 1_000)
HUBS: Sizes = (6_000, 1_000)
#: Without the edges' attributes a conversion would pay as well, but mostly they are asked for.
TREES: Sizes = (None, 1_000)

_SUMS = "Sums are of floats and agree with NetworkX's to their last digits, not bit by bit."
_NO_SORT = "``sort_neighbors`` is left to NetworkX."
_TRIANGLES = "Of undirected graphs, without weights."
_LOUVAIN = "Where no ``seed`` is given: a partition of its own, of as high a modularity.  Of undirected graphs."
_KRUSKAL = "By Kruskal's algorithm, and not of multigraphs."
_WEIGHTS = "Weights are whole numbers, or all floats, at least 0; weight functions are left to NetworkX."
_SIGNED = "Weights are whole numbers, or all floats, of any sign; weight functions are left to NetworkX."

#: Name: the module, from which sizes it pays, a sentence for NetworkX's own pages.
FUNCTIONS: dict[str, tuple[str, Sizes, str]] = {
    "generic_bfs_edges": ("breadth_first", SEARCH, "``neighbors`` is left to NetworkX."),
    "bfs_edges": ("breadth_first", SEARCH, _NO_SORT),
    "bfs_tree": ("breadth_first", SEARCH, _NO_SORT),
    "bfs_predecessors": ("breadth_first", SEARCH, _NO_SORT),
    "bfs_successors": ("breadth_first", SEARCH, _NO_SORT),
    "bfs_layers": ("breadth_first", SEARCH, ""),
    "descendants_at_distance": ("breadth_first", SEARCH, ""),
    "descendants": ("breadth_first", SEARCH, ""),
    "ancestors": ("breadth_first", SEARCH, ""),
    "ego_graph": ("breadth_first", SEARCH, "``distance`` is left to NetworkX."),
    "has_path": ("hops", PAIR, ""),
    "single_source_shortest_path_length": ("hops", SEARCH, ""),
    "single_target_shortest_path_length": ("hops", SEARCH, ""),
    "single_source_shortest_path": ("hops", SEARCH, ""),
    "single_target_shortest_path": ("hops", SEARCH, ""),
    "predecessor": ("hops", SEARCH, ""),
    "all_pairs_shortest_path_length": ("hops", ALL_SEARCHES, ""),
    "all_pairs_shortest_path": ("hops", ALL_SEARCHES, ""),
    "average_shortest_path_length": ("hops", ALL_SEARCHES, "Without weights."),
    "shortest_path": ("paths", SEARCH, "From one source, to one target or of all pairs, not of one pair."),
    "shortest_path_length": ("paths", SEARCH, _WEIGHTS),
    "dijkstra_path": ("weighted", WEIGHTED_PAIR, _WEIGHTS),
    "dijkstra_path_length": ("weighted", WEIGHTED_PAIR, _WEIGHTS),
    "single_source_dijkstra": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "single_source_dijkstra_path": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "single_source_dijkstra_path_length": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "multi_source_dijkstra": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "multi_source_dijkstra_path": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "multi_source_dijkstra_path_length": ("weighted", WEIGHTED_SEARCH, _WEIGHTS),
    "all_pairs_dijkstra": ("weighted", ALL_WEIGHTED, _WEIGHTS),
    "all_pairs_dijkstra_path": ("weighted", ALL_WEIGHTED, _WEIGHTS),
    "all_pairs_dijkstra_path_length": ("weighted", ALL_WEIGHTED, _WEIGHTS),
    "bellman_ford_path": ("bellman_ford", WEIGHTED_SEARCH, _SIGNED),
    "bellman_ford_path_length": ("bellman_ford", WEIGHTED_SEARCH, _SIGNED),
    "single_source_bellman_ford": ("bellman_ford", WEIGHTED_SEARCH, _SIGNED),
    "single_source_bellman_ford_path": ("bellman_ford", WEIGHTED_SEARCH, _SIGNED),
    "single_source_bellman_ford_path_length": ("bellman_ford", WEIGHTED_SEARCH, _SIGNED),
    "all_pairs_bellman_ford_path": ("bellman_ford", ALL_WEIGHTED, _SIGNED),
    "all_pairs_bellman_ford_path_length": ("bellman_ford", ALL_WEIGHTED, _SIGNED),
    "connected_components": ("components", SEARCH, ""),
    "number_connected_components": ("components", SEARCH, ""),
    "is_connected": ("components", SEARCH, ""),
    "node_connected_component": ("components", SEARCH, ""),
    "weakly_connected_components": ("components", SEARCH, ""),
    "number_weakly_connected_components": ("components", SEARCH, ""),
    "is_weakly_connected": ("components", SEARCH, ""),
    "strongly_connected_components": ("components", STRONG, ""),
    "number_strongly_connected_components": ("components", STRONG, ""),
    "is_strongly_connected": ("components", STRONG, ""),
    "core_number": ("cores", CORES, ""),
    "k_core": ("cores", CORES, "``core_number`` is left to NetworkX."),
    "triangles": ("clusters", CORES, ""),
    "clustering": ("clusters", COEFFICIENTS, _TRIANGLES),
    "average_clustering": ("clusters", COEFFICIENTS, _TRIANGLES),
    "transitivity": ("clusters", COEFFICIENTS, "Of undirected graphs."),
    "label_propagation_communities": ("communities", COMMUNITIES, ""),
    "louvain_communities": ("communities", COMMUNITIES, _LOUVAIN),
    "minimum_spanning_edges": ("spanning_trees", TREES, _KRUSKAL),
    "maximum_spanning_edges": ("spanning_trees", TREES, _KRUSKAL),
    "minimum_spanning_tree": ("spanning_trees", TREES, _KRUSKAL),
    "maximum_spanning_tree": ("spanning_trees", TREES, _KRUSKAL),
    "betweenness_centrality": ("centrality", ALL_PATHS, f"Without weights. {_SUMS}"),
    "edge_betweenness_centrality": ("centrality", ALL_PATHS, f"Without weights, not of multigraphs. {_SUMS}"),
    "degree_centrality": ("centrality", COUNT, ""),
    "in_degree_centrality": ("centrality", COUNT, ""),
    "out_degree_centrality": ("centrality", COUNT, ""),
    "eigenvector_centrality": ("iterated", ITERATIONS, f"``nstart`` is left to NetworkX. {_SUMS}"),
    "katz_centrality": ("iterated", ITERATIONS, f"``nstart`` is left to NetworkX. {_SUMS}"),
    "hits": ("hubs", HUBS, f"``nstart`` and graphs of which there are several answers are left to NetworkX. {_SUMS}"),
    "pagerank": ("link_analysis", RANKS, f"``nstart`` and ``dangling`` are left to NetworkX. {_SUMS}"),
}


def get_info() -> dict[str, object]:
    """Return what NetworkX wants to know of a backend when it is imported."""
    return {
        "backend_name": "shoal",
        "project": "shoal",
        "package": "shoal_networkx",
        "short_summary": "Compiled, on all cores or a GPU.",
        "default_config": {"devices": "auto"},
        "functions": {name: {"additional_docs": note} for name, (_, _, note) in FUNCTIONS.items()},
    }
