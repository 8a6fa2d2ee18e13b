# SPDX-License-Identifier: Apache-2.0
"""The built-in algorithms: each a program like a user's own, and a function that checks arguments and runs it."""

from shoal.algorithms.betweenness import betweenness_centrality
from shoal.algorithms.bfs import bfs
from shoal.algorithms.components import connected_components
from shoal.algorithms.cores import core_number, k_core
from shoal.algorithms.edge_betweenness import edge_betweenness_centrality
from shoal.algorithms.eigenvector import eigenvector_centrality
from shoal.algorithms.forest import minimum_spanning_forest
from shoal.algorithms.hits import hits
from shoal.algorithms.katz import katz_centrality
from shoal.algorithms.label_propagation import label_propagation
from shoal.algorithms.louvain import louvain_communities
from shoal.algorithms.pagerank import pagerank
from shoal.algorithms.sssp import sssp
from shoal.algorithms.strong_components import strongly_connected_components
from shoal.algorithms.triangles import clustering, transitivity, triangles

__all__ = [
    "betweenness_centrality",
    "bfs",
    "clustering",
    "connected_components",
    "core_number",
    "edge_betweenness_centrality",
    "eigenvector_centrality",
    "hits",
    "k_core",
    "katz_centrality",
    "label_propagation",
    "louvain_communities",
    "minimum_spanning_forest",
    "pagerank",
    "sssp",
    "strongly_connected_components",
    "transitivity",
    "triangles",
]
