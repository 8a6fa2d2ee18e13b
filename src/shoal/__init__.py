# SPDX-License-Identifier: Apache-2.0
"""shoal: graph analytics for Python, algorithms and programs of your own, compiled and run on all cores."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal import generate
from shoal.algorithms import (
    betweenness_centrality,
    bfs,
    clustering,
    connected_components,
    core_number,
    edge_betweenness_centrality,
    eigenvector_centrality,
    hits,
    k_core,
    katz_centrality,
    label_propagation,
    louvain_communities,
    minimum_spanning_forest,
    pagerank,
    sssp,
    strongly_connected_components,
    transitivity,
    triangles,
)
from shoal.config import RunConfig
from shoal.errors import (
    ArgumentError,
    ConvergenceError,
    FileFormatError,
    GraphError,
    OutOfMemoryError,
    ProgramError,
    ShoalError,
    ValidationError,
)
from shoal.graph import Graph
from shoal.io import read, write
from shoal.memory import estimate_memory
from shoal.operators import advance, compute, everything, filter, gather, intersect, reduce, swap, tally, update
from shoal.placement import Placed, open_shards, place
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add, bit_or, first, maximum, minimum
from shoal.progress import Progress, observe
from shoal.rules import atomic, rule
from shoal.run import run
from shoal.sharding.partition_files import partition_files

if TYPE_CHECKING:
    from shoal import model

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Constant",
    "ConvergenceError",
    "FileFormatError",
    "Graph",
    "GraphError",
    "OutOfMemoryError",
    "Phase",
    "Placed",
    "Program",
    "ProgramError",
    "Progress",
    "RunConfig",
    "Scalar",
    "ShoalError",
    "ValidationError",
    "Vertex",
    "add",
    "advance",
    "atomic",
    "betweenness_centrality",
    "bfs",
    "bit_or",
    "clustering",
    "compute",
    "connected_components",
    "core_number",
    "edge_betweenness_centrality",
    "eigenvector_centrality",
    "estimate_memory",
    "everything",
    "filter",
    "first",
    "gather",
    "generate",
    "hits",
    "intersect",
    "k_core",
    "katz_centrality",
    "label_propagation",
    "louvain_communities",
    "maximum",
    "minimum",
    "minimum_spanning_forest",
    "model",
    "observe",
    "open_shards",
    "pagerank",
    "partition_files",
    "place",
    "read",
    "reduce",
    "rule",
    "run",
    "sssp",
    "strongly_connected_components",
    "swap",
    "tally",
    "transitivity",
    "triangles",
    "update",
    "write",
]


def __getattr__(name: str) -> Any:
    # Runs have no use for the model, so it is imported when it is first asked for.
    if name == "model":
        return import_module("shoal.model")
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")
