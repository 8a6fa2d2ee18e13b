# SPDX-License-Identifier: Apache-2.0
"""NumPy archives: arrays ``indptr``, ``indices``, ``directed`` and, where there are any, ``weights`` and ``labels``.

Pickled objects are never loaded.  Everything is checked as `Graph.from_csr` checks it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.assembly import graph_from_csr
from shoal.io.options import ReadOptions
from shoal.labels import labels_as_arrow

_NAMES = ("indptr", "indices", "directed", "weights", "labels")


def matches(start: bytes) -> bool:
    """Say whether a file begins as a ZIP archive with a NumPy array in it does."""
    return start[:4] == b"PK\x03\x04" and b".npy" in start[:100]


def read(path: str, options: ReadOptions) -> Graph:
    """Read the arrays that are there."""
    arrays = _load(path)
    for name in ("indptr", "indices"):
        if name not in arrays:
            raise FileFormatError(f"{path}: has no array {name!r}; it has: {', '.join(arrays) or 'none'}")
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
            shape = f"{arrays[name].ndim} dimensions and dtype {arrays[name].dtype}"
            raise FileFormatError(f"{path}, array {name!r}: has {shape}; it must have one dimension of integers")
    options.check_num_vertices(path, arrays["indptr"].size - 1)
    directed = arrays.get("directed", np.array(True))
    if directed.shape != () or directed.dtype != bool:
        raise FileFormatError(f"{path}, array 'directed': must be a single Boolean")
    wants_weights = options.wants_weights(path, "weights" in arrays)
    return graph_from_csr(
        path,
        arrays["indptr"],
        arrays["indices"],
        arrays["weights"] if wants_weights else None,
        options,
        directed=bool(directed),
        labels=arrays.get("labels"),
        keep_widths=True,
    )


def _load(path: str) -> dict[str, np.ndarray]:
    name = None
    try:
        archive = np.load(path, allow_pickle=False)
        if not hasattr(archive, "files"):
            raise ValueError("it is a single array")
        with archive:
            arrays = {}
            for name in archive.files:
                if name in _NAMES:
                    arrays[name] = archive[name]
            return arrays
    except Exception as error:  # zipfile and NumPy raise a dozen different ones for damaged files
        place = f"{path}, array {name!r}" if name else path
        raise FileFormatError(f"{place}: cannot be read as a NumPy archive: {error or type(error).__name__}") from error


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write the arrays uncompressed, since they hardly shrink."""
    from shoal.io.files import replacing

    arrays: dict[str, Any] = {"indptr": graph.indptr, "indices": graph.indices, "directed": np.array(graph.is_directed)}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    if graph.labels is not None:
        labels = labels_as_arrow(graph.labels)
        is_integer = np.asarray(graph.labels).dtype.kind in "iu"
        arrays["labels"] = labels.to_numpy() if is_integer else np.array(labels.to_pylist(), np.str_)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)
