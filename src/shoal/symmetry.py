# SPDX-License-Identifier: Apache-2.0
"""Say whether a CSR can be an undirected graph, that is its own transpose, and if not, name an edge without a twin.

And whether it has self-loops.
"""

from __future__ import annotations

import itertools
from typing import Protocol

import numpy as np

from shoal.errors import GraphError

EDGES_AT_ONCE = 1 << 16  # about half a megabyte of temporary arrays


class CSRArrays(Protocol):
    """Anything with the three arrays of a CSR."""

    @property
    def indptr(self) -> np.ndarray: ...
    @property
    def indices(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray | None: ...


def is_same_csr(left: CSRArrays, right: CSRArrays) -> bool:
    """Return whether two CSRs have the same edges in the same places."""
    if not (np.array_equal(left.indptr, right.indptr) and np.array_equal(left.indices, right.indices)):
        return False
    return left.weights is None or np.array_equal(left.weights, right.weights)  # type: ignore[arg-type]


def has_self_loops(csr: CSRArrays) -> bool:
    """Return whether a row holds its own number."""
    wanted = np.arange(0, len(csr.indices), EDGES_AT_ONCE)
    firsts = np.unique([*np.searchsorted(csr.indptr, wanted, side="right") - 1, len(csr.indptr) - 1])
    for first, last in itertools.pairwise(firsts.tolist()):
        bounds = csr.indptr[first : last + 1]
        rows = np.repeat(np.arange(first, last, dtype=csr.indices.dtype), np.diff(bounds))
        if np.any(rows == csr.indices[bounds[0] : bounds[-1]]):
            return True
    return False


def describe_asymmetry(csr: CSRArrays, transposed: CSRArrays) -> str:
    """Say which edge has no twin, given a CSR with rows in order and its transpose.

    Both are ascending lists of as many pairs (u, v): at their first difference the smaller one is missing in the other.
    """
    position = _first_difference(csr, transposed)
    here, there = _edge_at(csr, position), _edge_at(transposed, position)
    if here == there and csr.weights is not None and transposed.weights is not None:
        u, v = here
        weights = f"{csr.weights[position]} but {v} -> {u} weight {transposed.weights[position]}"
        return f"edge {u} -> {v} has weight {weights}"
    u, v = here if here < there else there[::-1]
    return f"edge {u} -> {v} has no edge {v} -> {u} to match"


def check_symmetric(csr: CSRArrays, transposed: CSRArrays) -> None:
    """Refuse a CSR, rows in order, that differs from its transpose."""
    if not is_same_csr(csr, transposed):
        rule = "directed=False needs both directions of every edge, with the same weight"
        raise GraphError(f"{describe_asymmetry(csr, transposed)}; {rule}")


def _first_difference(left: CSRArrays, right: CSRArrays) -> int:
    row = np.flatnonzero(left.indptr != right.indptr)[:1]
    candidates = [min(left.indptr[row], right.indptr[row]) for row in row]
    candidates.extend(np.flatnonzero(left.indices != right.indices)[:1])
    if not candidates and left.weights is not None and right.weights is not None:
        candidates.extend(np.flatnonzero(left.weights != right.weights)[:1])
    return int(min(candidates))


def _edge_at(csr: CSRArrays, position: int) -> tuple[int, int]:
    row = int(np.searchsorted(csr.indptr, position, side="right")) - 1
    return row, int(csr.indices[position])
