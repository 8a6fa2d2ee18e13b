# SPDX-License-Identifier: Apache-2.0
"""Edges: whether those of a run are in memory, or in a file that is mapped, and what follows from that.

Pages of a mapped file come from the disk as they are used, and go when there is no room.  So a graph may be larger than
memory as long as nothing copies its edges; parts of devices do, unless they are slices of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.graph import Graph
from shoal.machine import available_memory_bytes, format_bytes
from shoal.placement import Placed

MEMORY, MAPPED = "memory", "mapped"


def file_of(array: Any) -> str | None:
    """Return the file that an array is mapped from; None if it is in memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return str(array.filename)
        array = array.base
    return None


def reason_to_leave(placed: Placed) -> str:
    """Return in words why parts must not be copies of a graph's edges, nothing if they may.

    It is asked once of a graph: what is free changes all the time, and parts are made once.
    """
    graph = placed.graph
    if placed.kind != "cpu" or placed.num_devices == 1 or file_of(graph.indices) is None:
        return ""  # ranks of a job must all choose alike
    if "reason to leave" not in graph._cache:
        free = available_memory_bytes()
        is_too_much = _edge_bytes(graph) > free
        graph._cache["reason to leave"] = f"{_sizes(graph, free)}: none are copied" if is_too_much else ""
    return graph._cache["reason to leave"]


def describe_edges(graph: Graph, kind: str, arrays: list[Any]) -> tuple[str, str]:
    """Return where the edges are that a run looks at, and how one can tell.

    Parameters
    ----------
    arrays : the ends of the edges that each device of this process has
    """
    source = file_of(graph.indices)
    mapped = sorted({file for array in arrays if (file := file_of(array)) is not None})
    if kind == "cuda" or (source is None and not mapped):
        return MEMORY, ""
    if not mapped:
        return MEMORY, f"parts are copies of the edges, which are mapped from {source}"
    there = mapped[0] if len(mapped) == 1 else f"{len(mapped)} files such as {mapped[0]}"
    return MAPPED, f"the graph's arrays are mapped from {there}; {_sizes(graph, available_memory_bytes())}"


def ends_of(graph: Graph, shards: tuple[Any, ...]) -> list[Any]:
    """Return the ends of the edges of the shards that this process has."""
    parts = [shard.part for shard in shards]
    edges = [getattr(part, "out_edges", None) for part in parts if part is not None]
    return [graph.indices] * (None in parts) + [each.indices for each in edges if each is not None]


def _edge_bytes(graph: Graph) -> int:
    weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return graph.num_edges * (graph.vertex_dtype.itemsize + weight)


def _sizes(graph: Graph, free: int) -> str:
    return f"{format_bytes(_edge_bytes(graph))} of edges, {format_bytes(free)} of memory free"
