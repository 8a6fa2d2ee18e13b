# SPDX-License-Identifier: Apache-2.0
"""A partitioned graph as a folder: a file with the arrays of each device, opened by a memory map, and a manifest.

``manifest.json`` says how the graph was cut and, for each file, its size, its CRC-32 and the type, first byte and
number of values of every array in it; ``checksum`` is the CRC-32 of the manifest without it.  A device's file begins
with magic (8), version (uint32), device (uint32) and the folder's ``id`` (16), padded to 64 bytes, so that files of two
folders cannot be mixed up; its arrays follow, little-endian, each at a multiple of 64 bytes.
Opening checks the manifest, sizes, beginnings and all arrays over vertices: a time that does not depend on the edges.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.arrays import read_only
from shoal.errors import FileFormatError
from shoal.graph import Graph
from shoal.io.files import making_folder
from shoal.io.shard_checks import check_edges, check_manifest, check_part, name_of
from shoal.io.trees import read_json
from shoal.strategies.subgraph import Edges, Subgraph

MANIFEST = "manifest.json"
MAGIC = b"\x89SHARD\r\n"  # not text, and changed by whatever changes line ends
VERSION = 1
_START = struct.Struct("<8sII16s")
#: Arrays begin at the start of a cache line.
_ALIGNMENT = 64
_PLAIN = ("owned", "global_ids", "owner", "address", "first_edges", "copy_indptr", "copy_here", "copy_there",
          "border_sizes")  # fmt: skip
_OPTIONAL = ("global_ids", "address")


@dataclass(frozen=True)
class ShardManifest:
    """What the parts in a folder are parts of, and how it was cut."""

    id: str
    partition: str
    duplication: str
    num_devices: int
    num_vertices: int
    num_edges: int
    is_directed: bool
    has_in_edges: bool
    files: list[dict[str, Any]]
    version: int = VERSION


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
    token = secrets.token_hex(8)
    with making_folder(os.fspath(path)) as folder:
        manifest = ShardManifest(
            token,
            partition_name,
            duplication,
            len(subgraphs),
            graph.num_vertices,
            graph.num_edges,
            graph.is_directed,
            any(part.in_edges is not None for part in subgraphs),
            [_write_part(folder, part, token) for part in subgraphs],
        )
        content = asdict(manifest)
        with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:
            json.dump(content | {"checksum": _checksum(content)}, file)


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _write_part(folder: str, part: Subgraph, token: str) -> dict[str, Any]:
    """Write the file of one device and return what the manifest says about it."""
    name = name_of(part.device)
    start = _start(part.device, token)
    table, position, checksum = {}, len(start), zlib.crc32(start)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(start)
        for key, array in _arrays_of(part).items():
            content = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            table[key] = [content.dtype.str, position, content.size]
            padding = bytes(-content.nbytes % _ALIGNMENT)
            for piece in (content.data.cast("B") if content.size else b"", padding):
                file.write(piece)
                checksum = zlib.crc32(piece, checksum)
            position += content.nbytes + len(padding)
    return {"name": name, "bytes": position, "crc32": checksum, "arrays": table}


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


def read_shards(path: str | os.PathLike[str], *, mmap: bool = True) -> tuple[ShardManifest, list[Subgraph]]:
    """Return what `write_shards` wrote: the manifest and the part of each device.

    Parameters
    ----------
    mmap
        Whether the arrays stay on disk and are read as they are used; otherwise all of them are read and their
        checksums compared.
    """
    folder = os.fspath(path)
    manifest = _read_manifest(os.path.join(folder, MANIFEST))
    parts = [_read_part(folder, manifest, device, mmap) for device in range(manifest.num_devices)]
    return manifest, parts


def _read_manifest(path: str) -> ShardManifest:
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


def _read_part(folder: str, manifest: ShardManifest, device: int, mmap: bool) -> Subgraph:
    entry = manifest.files[device]
    path = os.path.join(folder, name_of(device))
    content = _open(path, entry, mmap)
    if content[:_ALIGNMENT].tobytes() != _start(device, manifest.id):
        raise FileFormatError(f"{path}, byte 0: does not begin as the file of device {device} of this folder must")
    if not mmap and zlib.crc32(content.data) != entry["crc32"]:
        raise FileFormatError(f"{path}: is damaged (its checksum does not fit)")
    arrays = {name: _view(content, *place) for name, place in entry["arrays"].items()}
    part = _part_of(manifest, device, arrays)
    check_part(path, part, manifest.num_edges)
    if not mmap:
        check_edges(path, part)
    return part


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
