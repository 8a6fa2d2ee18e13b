# SPDX-License-Identifier: Apache-2.0
"""From the vertices of another library to ids and labels.

Vertices that are exactly 0 to n - 1, in any order, keep their numbers.  All others are numbered in the order in which
they come, and are the labels, which must be all whole numbers or all strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import GraphError

if TYPE_CHECKING:
    from shoal.graph import Graph


class NamedVertices(NamedTuple):
    """The id of each vertex, in the order in which they came, and the labels in the order of the ids."""

    ids: np.ndarray
    labels: Any


def name_vertices(names: list[Any], remedy: str) -> NamedVertices:
    """Give vertices ids and labels; ``remedy`` says what the user can do about names that are no labels."""
    if all(isinstance(name, str) for name in names) and names:
        return NamedVertices(np.arange(len(names)), np.array(names, np.dtypes.StringDType()))
    numbers = _as_integers(names, remedy)
    if is_permutation(numbers):
        return NamedVertices(numbers, None)
    return NamedVertices(np.arange(len(names)), numbers)


def is_permutation(ids: np.ndarray) -> bool:
    """Whether whole numbers are exactly 0 to n - 1, in any order."""
    if not ids.size or (ids.min() == 0 and ids.max() == ids.size - 1):
        return bool((np.bincount(ids, minlength=1)[: ids.size] == 1).all())
    return False


def _as_integers(names: list[Any], remedy: str) -> np.ndarray:
    wrong = next((name for name in names if not isinstance(name, (int, np.integer)) or isinstance(name, bool)), None)
    try:
        if wrong is None:
            return np.array(names, np.int64)
    except OverflowError:
        wrong = max(names, key=abs)
    raise GraphError(
        f"vertex {wrong!r} is a {type(wrong).__name__}; vertices must be all whole numbers of 64 bits or all strings, "
        f"since they become labels; {remedy}"
    )


def vertex_names(graph: Graph) -> list[Any]:
    """Return the labels as Python's own ints or strings, or the ids without labels."""
    if graph.labels is None:
        return list(range(graph.num_vertices))
    return graph.labels.tolist() if hasattr(graph.labels, "tolist") else list(graph.labels)
