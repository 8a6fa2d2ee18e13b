# SPDX-License-Identifier: Apache-2.0
"""Verify core numbers.

Every vertex must have as many neighbours of its own core number or a higher one as that number says: so it belongs to
that core.  And it must not belong to a higher one: the vertices of each number must unravel, wave by wave, when those
go that have no more neighbours than the number says among vertices of higher numbers and those of their own that are
still there.  All numbers unravel at once, which no peeling does.  (The first to go of a core that is higher than its
number would need more neighbours than it has.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.algorithms.verification import check_all, check_array, edge_chunks
from shoal.errors import ValidationError

if TYPE_CHECKING:
    from shoal.graph import Graph


def verify_cores(graph: Graph, core: np.ndarray) -> None:
    """Raise ValidationError unless ``core`` holds the core numbers of ``graph``, edges counted in both directions."""
    core = check_array("core", core, graph.num_vertices, "i")
    check_all(core >= 0, lambda v: f"core[{v}]={core[v]} is negative")
    both = graph.symmetrized(deduplicate=False) if graph.is_directed else graph
    fellows = _count_fellows(both, core)
    check_all(
        fellows >= core,
        lambda v: f"core[{v}]={core[v]}, but only {fellows[v]} neighbours of vertex {v} have core numbers as high",
    )
    is_left = _unravel(both, core, fellows)
    check_all(~is_left, lambda v: f"core[{v}]={core[v]}, but vertex {v} belongs to a core of at least {core[v] + 1}")


def verify_k_core(graph: Graph, in_core: np.ndarray, k: int) -> None:
    """Raise ValidationError unless ``in_core`` says of every vertex whether it belongs to the k-core of ``graph``."""
    in_core = np.asarray(in_core)
    if in_core.shape != (graph.num_vertices,) or in_core.dtype != np.bool_:
        raise ValidationError(f"in_core has shape {in_core.shape} and dtype {in_core.dtype}; it must have one bool for "
                              f"each of {graph.num_vertices} vertices")  # fmt: skip
    both = graph.symmetrized(deduplicate=False) if graph.is_directed else graph
    # Those outside are one class, whoever is inside the higher one: k - 1 neighbours do not hold anybody.
    level = np.where(in_core, k, k - 1)
    fellows = _count_fellows(both, level)
    check_all(
        ~in_core | (fellows >= k),
        lambda v: f"in_core[{v}] is True, but only {fellows[v]} neighbours of vertex {v} are in the {k}-core",
    )
    is_left = _unravel(both, level, fellows, ~in_core)
    check_all(~is_left, lambda v: f"in_core[{v}] is False, but vertex {v} belongs to the {k}-core")


def _count_fellows(graph: Graph, core: np.ndarray) -> np.ndarray:
    """Return how many edges lead from each vertex to one with a core number as high as its own."""
    count = np.zeros(graph.num_vertices, np.int64)
    for chunk in edge_chunks(graph):
        is_fellow = core[chunk.dst] >= core[chunk.src]
        count += np.bincount(chunk.src[is_fellow], minlength=graph.num_vertices)
    return count


def _unravel(graph: Graph, core: np.ndarray, count: np.ndarray, is_left: np.ndarray | None = None) -> np.ndarray:
    """Take away whoever is not held, wave by wave, and return who is left."""
    is_left = np.ones(graph.num_vertices, bool) if is_left is None else is_left.copy()
    count = count.copy()
    wave = np.flatnonzero(is_left & (count <= core))
    while len(wave):
        is_left[wave] = False
        starts, degree = graph.indptr[wave].astype(np.int64), graph.degree[wave]
        src = np.repeat(wave, degree)
        edge = np.arange(len(src)) + np.repeat(starts - (np.cumsum(degree) - degree), degree)
        dst = graph.indices[edge]
        loses = is_left[dst] & (core[dst] == core[src])
        touched, losses = np.unique(dst[loses], return_counts=True)
        count[touched] -= losses
        wave = touched[count[touched] <= core[touched]]
    return is_left
