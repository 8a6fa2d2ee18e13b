# SPDX-License-Identifier: Apache-2.0
"""NumPy archives: arrays ``indptr``, ``indices``, ``directed`` and, where there are any, ``weights`` and ``labels``.

Pickled objects are never loaded.  Everything is checked as `Graph.from_csr` checks it.
"""

from __future__ import annotations

import math
import zipfile
from typing import Any

import numpy as np

from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.assembly import graph_from_csr
from shoal.io.files import read_start
from shoal.io.options import ReadOptions
from shoal.labels import labels_as_arrow

#: More than deflate can make of a byte.
_DEFLATED = 1100
#: What is read at once: little beside an array, and much for one call.
_PIECE_BYTES = 2**20
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
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
        if read_start(path, len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            raise ValueError("it is a single array")
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            arrays = {}
            for name in _NAMES:
                if name in members:
                    arrays[name] = _load_array(archive, members[name])
            return arrays
    except Exception as error:  # zipfile and NumPy raise a dozen different ones for damaged files
        place = f"{path}, array {name!r}" if name else path
        reason = str(error) or type(error).__name__
        raise FileFormatError(f"{place}: cannot be read as a NumPy archive: {reason}") from error


def _load_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Read an array whose header says no more than there is, and which is compressed, if at all, as NumPy does it."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("it is compressed in a way that NumPy does not write")
    if info.file_size > _DEFLATED * info.compress_size:
        raise ValueError(f"{info.compress_size} bytes cannot become {info.file_size}")
    with archive.open(info) as file:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        num_bytes = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or dtype.itemsize == 0 or file.tell() + num_bytes != info.file_size:
            raise ValueError(f"its header says shape {shape} and dtype {dtype}, which the archive does not hold")
        array = np.empty(math.prod(shape), dtype)
        content = array.view(np.uint8)
        for start in range(0, num_bytes, _PIECE_BYTES):
            end = min(start + _PIECE_BYTES, num_bytes)
            content[start:end] = np.frombuffer(file.read(end - start), np.uint8)  # fails if there is less
        return array.reshape(shape)


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
