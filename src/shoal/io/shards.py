# SPDX-License-Identifier: Apache-2.0
"""A partitioned graph as a folder: a file with the arrays of each device, opened by a memory map, and a manifest.

``manifest.json`` says how the graph was cut and, for each file, its size, its CRC-32 and the type, first byte and
number of values of every array in it; ``checksum`` is the CRC-32 of the manifest without it.  A device's file begins
with magic (8), version (uint32), device (uint32) and the folder's ``id`` (16), padded to 64 bytes, so that files of two
folders cannot be mixed up; its arrays follow, little-endian, each at a multiple of 64 bytes.  One more file has what is
known of all vertices: their degrees, their devices, and labels if there are any.  With what the manifest says of the
edges as a whole this is an outline of the graph, with which whoever has one part can do without the others.
Opening checks the manifest, sizes, beginnings and all arrays over vertices: a time that does not depend on the edges.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.arrays import read_only
from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.files import making_folder
from shoal.io.native import label_arrays
from shoal.io.outline import facts_of
from shoal.io.shard_checks import VERTICES, check_edges, check_manifest, check_part, check_vertices, name_of
from shoal.io.trees import read_json
from shoal.io.write_behind import WriteBehind
from shoal.strategies.subgraph import Edges, Subgraph

MANIFEST = "manifest.json"
MAGIC = b"\x89SHARD\r\n"  # not text, and changed by whatever changes line ends
VERSION = 2
_START = struct.Struct("<8sII16s")
#: Arrays begin at the start of a cache line.
_ALIGNMENT = 64
_PLAIN = ("owned", "global_ids", "owner", "address", "first_edges", "copy_indptr", "copy_here", "copy_there",
          "border_sizes")  # fmt: skip
_OPTIONAL = ("global_ids", "address")
#: In the place of a device's number, in the file of all vertices.
_OF_VERTICES = 2**32 - 1


@dataclass(frozen=True)
class ShardManifest:
    """What the parts in a folder are parts of, and how it was cut.

    Parameters
    ----------
    types : of vertex ids, edge offsets and weights (None without), as NumPy writes them
    facts : what algorithms ask of all edges, by the names that the graph keeps them under
    files, vertices : the file of each device, and that of all vertices
    """

    id: str
    partition: str
    duplication: str
    num_devices: int
    num_vertices: int
    num_edges: int
    is_directed: bool
    has_in_edges: bool
    types: list[str | None]
    facts: dict[str, Any]
    files: list[dict[str, Any]]
    vertices: dict[str, Any]
    version: int = VERSION


class ShardFile:
    """A file of arrays that is being written; between arrays it is closed, so that there may be any number of them."""

    def __init__(self, folder: str, device: int | None, token: str) -> None:
        self.folder, self.name = folder, VERTICES if device is None else name_of(device)
        self.facts: dict[str, Any] = {}  # what the manifest says of the file beside what it must
        self._table: dict[str, list[Any]] = {}
        self._position = self._checksum = 0
        self._append([_start(_OF_VERTICES if device is None else device, token)])

    def add(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        self.add_pieces(name, array.dtype, [array])

    def add_pieces(self, name: str, dtype: Any, pieces: Iterable[np.ndarray]) -> None:
        """Write an array that comes in pieces, each while the next one is made."""
        little = np.dtype(dtype).newbyteorder("<")
        begin = self._position
        with WriteBehind() as writer:
            for piece in pieces:
                if piece.size:
                    writer.submit(self._append, [np.ascontiguousarray(piece, little).view(np.uint8).data])
        self._table[name] = [little.str, begin, (self._position - begin) // little.itemsize]
        self._append([bytes(-self._position % _ALIGNMENT)])

    def _append(self, pieces: Iterable[Any]) -> None:
        with open(os.path.join(self.folder, self.name), "ab") as file:
            for piece in pieces:
                file.write(piece)
                self._checksum = zlib.crc32(piece, self._checksum)
                self._position += len(piece)

    def entry(self) -> dict[str, Any]:
        """Return what the manifest says about the file."""
        return {"name": self.name, "bytes": self._position, "crc32": self._checksum, "arrays": self._table} | self.facts


def write_shards(
    path: str | os.PathLike[str], graph: Graph, subgraphs: Sequence[Subgraph], partition_name: str, duplication: str
) -> None:
    """Write the parts of a graph into a new folder, which appears only when it is complete.

    Parameters
    ----------
    path
        A folder that is not there yet, or empty.
    partition_name, duplication
        How the parts were made, for those who read them.
    """
    token = new_token()
    with making_folder(os.fspath(path)) as folder:
        files = [_write_part(folder, part, token) for part in subgraphs]
        owner = np.empty(graph.num_vertices, np.uint16)
        for part in subgraphs:
            owner[part.owned_ids] = part.device
        manifest = ShardManifest(
            token,
            partition_name,
            duplication,
            len(subgraphs),
            graph.num_vertices,
            graph.num_edges,
            graph.is_directed,
            any(part.in_edges is not None for part in subgraphs),
            types_of(graph.vertex_dtype, graph.edge_dtype, None if graph.weights is None else graph.weights.dtype),
            facts_of(graph),
            files,
            write_vertices(folder, token, graph.degree, owner, graph.labels),
        )
        write_manifest(folder, manifest)


def new_token() -> str:
    """Return what tells the files of one folder from those of another."""
    return secrets.token_hex(8)


def types_of(vertex: np.dtype, edge: np.dtype, weight: np.dtype | None) -> list[str | None]:
    """Return the types of a graph as a manifest has them."""
    return [vertex.str, edge.str, None if weight is None else weight.str]


def write_vertices(folder: str, token: str, degree: np.ndarray, owner: np.ndarray, labels: Any) -> dict[str, Any]:
    """Write the file of all vertices and return what the manifest says about it."""
    file = ShardFile(folder, None, token)
    for name, array in ({"degree": degree, "owner": owner} | label_arrays(labels)).items():
        file.add(name, array)
    return file.entry()


def write_manifest(folder: str, manifest: ShardManifest) -> None:
    """Write what makes the files of a folder shards."""
    content = asdict(manifest)
    with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(content | {"checksum": _checksum(content)}, file)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _write_part(folder: str, part: Subgraph, token: str) -> dict[str, Any]:
    """Write the file of one device and return what the manifest says about it."""
    file = ShardFile(folder, part.device, token)
    for name, array in _arrays_of(part).items():
        file.add(name, array)
    file.facts["num_local"] = part.num_local
    return file.entry()


def _start(device: int, token: str) -> bytes:
    return _START.pack(MAGIC, VERSION, device, token.encode()).ljust(_ALIGNMENT, b"\0")


def _arrays_of(part: Subgraph) -> dict[str, np.ndarray]:
    """Return the arrays by name; incoming edges that are the outgoing ones are not written twice."""
    arrays = {name: getattr(part, name) for name in _PLAIN}
    arrays |= {f"out_{name}": array for name, array in part.out_edges._asdict().items()}
    if part.in_edges is not None and part.in_edges is not part.out_edges:
        arrays |= {f"in_{name}": array for name, array in part.in_edges._asdict().items()}
        arrays["first_in_edges"] = part.first_in_edges
    return {name: array for name, array in arrays.items() if array is not None}


def is_shards(path: str | os.PathLike[str]) -> bool:
    """Say whether a path is a folder of shards."""
    return os.path.isfile(os.path.join(os.fspath(path), MANIFEST))


def read_shards(path: str | os.PathLike[str], *, mmap: bool = True) -> tuple[ShardManifest, list[Subgraph]]:
    """Return what `write_shards` wrote: the manifest and the part of each device.

    Parameters
    ----------
    mmap
        Whether the arrays stay on disk and are read as they are used; otherwise all of them are read and their
        checksums compared.
    """
    manifest = read_manifest(path)
    return manifest, [read_part(path, manifest, device, mmap=mmap) for device in range(manifest.num_devices)]


def read_manifest(folder: str | os.PathLike[str]) -> ShardManifest:
    """Return what a folder says of itself."""
    path = os.path.join(os.fspath(folder), MANIFEST)
    try:
        content = read_json(path, "a manifest of shards")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(content, dict) or "checksum" not in content:
        raise FileFormatError(f"{path}: is not a manifest of shards")
    if content.get("version") != VERSION:
        raise FileFormatError(f"{path}: is of version {content.get('version')}; this shoal reads version {VERSION}")
    if content.pop("checksum") != _checksum(content):
        raise FileFormatError(f"{path}: the manifest is damaged (its checksum does not fit)")
    check_manifest(path, content, _ALIGNMENT)
    return ShardManifest(**content)


def read_part(folder: str | os.PathLike[str], manifest: ShardManifest, device: int, *, mmap: bool = True) -> Subgraph:
    """Return the part of one device; no other file is opened."""
    entry = manifest.files[device]
    path = os.path.join(os.fspath(folder), name_of(device))
    part = _part_of(manifest, device, _read_arrays(path, entry, manifest.id, device, mmap))
    check_part(path, part, manifest.num_edges)
    if not mmap:
        check_edges(path, part)
    return part


def read_vertices(
    folder: str | os.PathLike[str], manifest: ShardManifest, *, mmap: bool = True
) -> dict[str, np.ndarray]:
    """Return what is known of all vertices: ``degree``, ``owner``, and what `shoal.io.native` calls labels."""
    path = os.path.join(os.fspath(folder), VERTICES)
    arrays = _read_arrays(path, manifest.vertices, manifest.id, _OF_VERTICES, mmap)
    check_vertices(path, arrays, manifest.num_vertices, manifest.num_devices)
    return arrays


def _read_arrays(path: str, entry: dict[str, Any], token: str, device: int, mmap: bool) -> dict[str, np.ndarray]:
    content = _open(path, entry, mmap)
    if content[:_ALIGNMENT].tobytes() != _start(device, token):
        whose = "of all vertices" if device == _OF_VERTICES else f"of device {device}"
        raise FileFormatError(f"{path}, byte 0: does not begin as the file {whose} of this folder must")
    if not mmap and zlib.crc32(content.data) != entry["crc32"]:
        raise FileFormatError(f"{path}: is damaged (its checksum does not fit)")
    return {name: _view(content, *place) for name, place in entry["arrays"].items()}


def _open(path: str, entry: dict[str, Any], mmap: bool) -> np.ndarray:
    try:
        size = os.path.getsize(path)
        if size != entry["bytes"]:
            verb = "truncated" if size < entry["bytes"] else "too long"
            raise FileFormatError(f"{path}: {verb}: has {size} bytes, and the manifest says {entry['bytes']}")
        return np.memmap(path, np.uint8, "r") if mmap else np.fromfile(path, np.uint8)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from None


def _view(content: np.ndarray, dtype: str, start: int, count: int) -> np.ndarray:
    return read_only(content[start : start + count * np.dtype(dtype).itemsize].view(dtype))


def _part_of(manifest: ShardManifest, device: int, arrays: dict[str, np.ndarray]) -> Subgraph:
    out_edges = _edges_of("out", arrays)
    in_edges, first_in_edges = None, None
    if manifest.has_in_edges:
        is_same = not manifest.is_directed
        in_edges = out_edges if is_same else _edges_of("in", arrays)
        first_in_edges = arrays["first_edges" if is_same else "first_in_edges"]
    plain: dict[str, Any] = {name: arrays.get(name) if name in _OPTIONAL else arrays[name] for name in _PLAIN}
    return Subgraph(
        device=device,
        num_devices=manifest.num_devices,
        num_global=manifest.num_vertices,
        num_local=out_edges.indptr.size - 1,
        out_edges=out_edges,
        in_edges=in_edges,
        first_in_edges=first_in_edges,
        **plain,
    )


def _edges_of(direction: str, arrays: dict[str, np.ndarray]) -> Edges:
    indptr, indices = arrays[f"{direction}_indptr"], arrays[f"{direction}_indices"]
    return Edges(indptr, indices, arrays.get(f"{direction}_weights"))
