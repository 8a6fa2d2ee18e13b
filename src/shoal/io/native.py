# SPDX-License-Identifier: Apache-2.0
"""shoal's own format: the arrays of a graph as they are in memory, in one file that is opened by a memory map.

Little-endian.  A header of 512 bytes:
magic (8), version (uint32), flags (uint32; 1: directed, 2: optimized, 4: the reverse of an optimized graph), vertices,
edges, bytes of the file (uint64 each), number of arrays (uint32), CRC-32 of the header with this field 0 (uint32), then
for each array its name (16), its NumPy type (8), its first byte and its number of bytes (uint64 each).  The arrays
follow, each at a multiple of 64 bytes: ``indptr``, ``indices``, ``weights``, and ``labels`` or, for strings,
``label_offsets`` (int64) and ``label_bytes`` (UTF-8).  Opening checks the header, the sizes and both ends of
``indptr``: a time that does not depend on the size of the graph.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import FileFormatError, GraphError
from shoal.graph import Graph
from shoal.interop.vertex_ids import EdgeRows
from shoal.io.assembly import graph_from_csr
from shoal.io.edge_batches import edge_batches
from shoal.io.edge_stream import EdgeStream
from shoal.io.options import ReadOptions
from shoal.labels import check_labels, labels_as_arrow

MAGIC = b"\x89SHOAL\r\n"  # not text, and changed by whatever changes line ends
VERSION = 1
_HEADER_BYTES = 512
_ALIGNMENT = 64
_FIXED = struct.Struct("<8sIIQQQII")
_ENTRY = struct.Struct("<16s8sQQ")
_CRC_AT = _FIXED.size - 4
_MOST_ARRAYS = (_HEADER_BYTES - _FIXED.size) // _ENTRY.size
_DIRECTED = 1
#: By which degrees lists are ordered, as `Graph._ranked_by` has it.
_RANKED_BY = {None: 0, "out": 2, "in": 4}
_TYPES = {
    "indptr": ("<i4", "<i8"),
    "indices": ("<i4", "<i8"),
    "weights": ("<i4", "<f4", "<f8"),
    "labels": ("<i8",),
    "label_offsets": ("<i8",),
    "label_bytes": ("|u1",),
}


class _Header(NamedTuple):
    is_directed: bool
    ranked_by: str | None
    num_vertices: int
    num_edges: int
    arrays: dict[str, tuple[str, int, int]]  # type, first byte, number of bytes


def matches(start: bytes) -> bool:
    """Say whether a file begins with the magic bytes."""
    return start.startswith(MAGIC)


def read(path: str, options: ReadOptions) -> Graph:
    """Map the arrays of a file, or with ``mmap=False`` read and check all of them."""
    header = _read_header(path)
    options.check_num_vertices(path, header.num_vertices)
    wants_weights = options.wants_weights(path, "weights" in header.arrays)
    content = np.memmap(path, np.uint8, "r") if options.mmap else np.fromfile(path, np.uint8)
    arrays = {name: content[start : start + size].view(dtype) for name, (dtype, start, size) in header.arrays.items()}
    indptr = arrays["indptr"]
    if indptr[0] != 0 or indptr[-1] != header.num_edges:
        raise FileFormatError(
            f"{path}, array 'indptr': runs from {indptr[0]} to {indptr[-1]}, not 0 to {header.num_edges}"
        )
    is_as_it_is = not (options.deduplicate or options.drop_self_loops) and options.directed in (
        None,
        header.is_directed,
    )
    is_checked_later = options.mmap and is_as_it_is
    graph = graph_from_csr(
        path,
        indptr,
        arrays["indices"],
        arrays["weights"] if wants_weights else None,
        options,
        directed=header.is_directed,
        labels=labels_of(path, arrays, header.num_vertices),
        check=not is_checked_later,
        keep_widths=True,
    )
    if not is_checked_later:
        _check_labels(path, graph)
    is_as_written = (graph.is_directed, graph.num_edges) == (header.is_directed, header.num_edges)
    graph = graph._with_order(header.ranked_by) if header.ranked_by and is_as_written else graph
    return graph._check_when_used(path) if is_checked_later else graph


def stream(path: str, options: ReadOptions) -> EdgeStream:
    """Read the edges row by row; labels stay behind, so there must be none."""
    graph = read(path, ReadOptions(weighted=options.weighted, num_vertices=options.num_vertices))
    if graph.labels is not None:
        raise FileFormatError(f"{path}: has labels, which edges a batch at a time cannot have; read it as a whole")

    is_directed = graph.is_directed if options.directed is None else options.directed

    def batches() -> Iterator[EdgeRows]:
        nothing = graph.indices[:0]
        yield EdgeRows(nothing, nothing, None if graph.weights is None else graph.weights[:0], -1)
        for src, dst, weights in edge_batches(graph, both_directions=is_directed):
            largest = max(int(src.max(initial=-1)), int(dst.max(initial=-1)))
            yield EdgeRows(src, dst, weights, largest, num_rows=src.size, may_be_overwritten=False)

    return EdgeStream(path, is_directed, graph.num_vertices, True, batches)


def _read_header(path: str) -> _Header:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(_HEADER_BYTES)
    if not start.startswith(MAGIC):
        raise FileFormatError(f"{path}, byte 0: does not begin as a shoal file must")
    if len(start) < _HEADER_BYTES:
        raise FileFormatError(f"{path}, byte {size}: truncated within the header of {_HEADER_BYTES} bytes")
    _, version, flags, num_vertices, num_edges, num_bytes, num_arrays, checksum = _FIXED.unpack_from(start)
    if version != VERSION:
        raise FileFormatError(f"{path}, byte {len(MAGIC)}: is of version {version}; this shoal reads version {VERSION}")
    if checksum != _checksum(start):
        raise FileFormatError(f"{path}, byte {_CRC_AT}: the header is damaged (its checksum does not fit)")
    if num_bytes != size:
        verb = "truncated" if size < num_bytes else "too long"
        raise FileFormatError(
            f"{path}, byte {size}: {verb}: the file has {size} bytes, and its header says {num_bytes}"
        )
    if num_arrays > _MOST_ARRAYS:
        raise FileFormatError(f"{path}: its header says {num_arrays} arrays, and has room for {_MOST_ARRAYS}")
    entries = [_ENTRY.unpack_from(start, _FIXED.size + i * _ENTRY.size) for i in range(num_arrays)]
    arrays = {_word(name): (_word(dtype), first, length) for name, dtype, first, length in entries}
    ranked_by = next((name for name, flag in _RANKED_BY.items() if flags & ~_DIRECTED == flag), None)
    header = _Header(bool(flags & _DIRECTED), ranked_by, num_vertices, num_edges, arrays)
    _check_arrays(path, header, size)
    return header


def _word(field: bytes) -> str:
    return field.rstrip(b"\0").decode("ascii", "backslashreplace")


def _checksum(start: bytes) -> int:
    return zlib.crc32(start[:_CRC_AT] + bytes(4) + start[_FIXED.size :])


def _check_arrays(path: str, header: _Header, file_bytes: int) -> None:
    """Check that the arrays are those of a graph of the declared size and lie within the file."""
    counts = {
        "indptr": header.num_vertices + 1,
        "indices": header.num_edges,
        "weights": header.num_edges,
        "labels": header.num_vertices,
        "label_offsets": header.num_vertices + 1,
    }
    for name in ("indptr", "indices"):
        if name not in header.arrays:
            raise FileFormatError(f"{path}: its header has no array {name!r}")
    for name, (dtype, start, size) in header.arrays.items():
        if dtype not in _TYPES.get(name, ()):
            raise FileFormatError(f"{path}, array {name!r}: type {dtype!r} is not allowed")
        expected = counts[name] * np.dtype(dtype).itemsize if name in counts else size
        if size != expected or start % _ALIGNMENT or start + size > file_bytes:
            raise FileFormatError(
                f"{path}, array {name!r}: {size} bytes from byte {start} on cannot be {expected} bytes"
            )


def labels_of(path: str, arrays: dict[str, np.ndarray], num_vertices: int) -> Any:
    """Return the labels that `label_arrays` made arrays of, None if there are none."""
    if "label_offsets" not in arrays:
        return arrays.get("labels")
    import pyarrow as pa

    offsets, content = arrays["label_offsets"], arrays.get("label_bytes", np.empty(0, np.uint8))
    if offsets[0] != 0 or offsets[-1] != content.size:
        raise FileFormatError(
            f"{path}, array 'label_offsets': runs from {offsets[0]} to {offsets[-1]}, not 0 to {content.size}"
        )
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_string(), num_vertices, buffers)


def _check_labels(path: str, graph: Graph) -> None:
    try:
        check_labels(graph.labels)
    except GraphError as error:
        raise FileFormatError(f"{path}: {error}") from error


def write(graph: Graph, path: str, compression: str | None) -> None:
    """Write the header and the arrays."""
    from shoal.io.files import replacing

    arrays = _arrays_of(graph)
    entries, position = [], _HEADER_BYTES
    for name, array in arrays.items():
        entries.append(_ENTRY.pack(name.encode(), array.dtype.str.encode(), position, array.nbytes))
        position += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    flags = (_DIRECTED if graph.is_directed else 0) | _RANKED_BY[graph._ranked_by]
    sizes = (graph.num_vertices, graph.num_edges, position, len(arrays))
    header = (_FIXED.pack(MAGIC, VERSION, flags, *sizes, 0) + b"".join(entries)).ljust(_HEADER_BYTES, b"\0")
    header = header[:_CRC_AT] + struct.pack("<I", _checksum(header)) + header[_FIXED.size :]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(header)
        for array in arrays.values():
            file.write(array.data.cast("B") if array.size else b"")
            file.write(bytes(-array.nbytes % _ALIGNMENT))


def _arrays_of(graph: Graph) -> dict[str, np.ndarray]:
    arrays = {"indptr": graph.indptr, "indices": graph.indices}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    arrays |= label_arrays(graph.labels)
    return {name: np.ascontiguousarray(array, _little(array.dtype)) for name, array in arrays.items()}


def _little(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<")


def label_arrays(labels: Any) -> dict[str, np.ndarray]:
    """Return labels as arrays; none if there are none."""
    if labels is None:
        return {}
    import pyarrow as pa

    strings = labels_as_arrow(labels)
    if pa.types.is_integer(strings.type):
        return {"labels": strings.to_numpy()}
    _, offsets, content = strings.buffers()
    begin = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    content = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return {"label_offsets": begin - begin[0], "label_bytes": content[begin[0] : begin[-1]]}
