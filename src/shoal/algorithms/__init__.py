# SPDX-License-Identifier: Apache-2.0
"""The built-in algorithms: each a program like a user's own, and a function that checks arguments and runs it."""

from shoal.algorithms.betweenness import betweenness_centrality
from shoal.algorithms.bfs import bfs
from shoal.algorithms.components import connected_components
from shoal.algorithms.pagerank import pagerank
from shoal.algorithms.sssp import sssp

__all__ = ["betweenness_centrality", "bfs", "connected_components", "pagerank", "sssp"]
