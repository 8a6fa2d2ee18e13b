# SPDX-License-Identifier: Apache-2.0
"""shoal: graph analytics for Python, algorithms and programs of your own, compiled and run on all cores."""

from shoal import generate
from shoal.algorithms import (
    betweenness_centrality,
    bfs,
    connected_components,
    pagerank,
    sssp,
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
from shoal.operators import advance, compute, everything, filter, gather, reduce, swap, update
from shoal.placement import Placed, place
from shoal.program import Constant, Phase, Program, Scalar, Vertex, add, maximum, minimum
from shoal.progress import Progress, observe
from shoal.rules import atomic, rule
from shoal.run import run

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
    "compute",
    "connected_components",
    "estimate_memory",
    "everything",
    "filter",
    "gather",
    "generate",
    "maximum",
    "minimum",
    "observe",
    "pagerank",
    "place",
    "read",
    "reduce",
    "rule",
    "run",
    "sssp",
    "swap",
    "update",
    "write",
]
