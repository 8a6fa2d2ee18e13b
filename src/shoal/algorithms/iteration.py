# SPDX-License-Identifier: Apache-2.0
"""What centralities that are found by iterating share: their limits, which weights they take, when they have failed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.errors import ArgumentError, ConvergenceError, check_integer, check_number
from shoal.graph import Graph


class Limits(NamedTuple):
    """When an iteration ends: well, as the change falls below ``tolerance``, or in failure."""

    tolerance: float
    max_iterations: int


def check_limits(tolerance: Any, max_iterations: Any) -> Limits:
    """Return the limits of an iteration as numbers."""
    return Limits(check_number("tolerance", tolerance, 0), check_integer("max_iterations", max_iterations, 0))


def uses_weights(graph: Graph, weighted: bool) -> bool:
    """Whether edges count by weights; these must be finite and not negative."""
    if not weighted or not graph.is_weighted:
        return False
    for weight in (graph.min_weight, graph.max_weight):
        if weight is not None and not 0 <= weight < np.inf:
            raise ArgumentError(f"weighted=True needs finite weights of at least 0; the graph has weight {weight}")
    return True


def check_converged(name: str, graph: Graph, change: float, limits: Limits, hint: str) -> None:
    """Raise ConvergenceError unless the last change is below the tolerance; ``hint`` says what may help."""
    if graph.num_vertices and not change < limits.tolerance:
        raise ConvergenceError(
            f"{name} did not converge: after max_iterations={limits.max_iterations} the change is {change:g}, "
            f"not below tolerance={limits.tolerance:g}; {hint}"
        )
