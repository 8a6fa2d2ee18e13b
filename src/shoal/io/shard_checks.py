# SPDX-License-Identifier: Apache-2.0
"""What must hold of a folder of shards before anything believes it: a checksum shows damage, and no bad intent.

Names of files are those that the device has, so nothing outside the folder is opened; sizes and types are those of a
part, so nothing is read beyond its file.  Arrays over vertices are checked when a folder is opened, edges where they
are used or read as a whole: `check_edges`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shoal.errors import FileFormatError
from shoal.strategies.subgraph import Edges, Subgraph

_IDS = ("<i4", "<i8")
_WEIGHTS = ("<i4", "<f4", "<f8")
#: The types that each array may have.
_TYPES = {
    "owned": _IDS, "global_ids": _IDS, "owner": ("<u2",), "address": _IDS, "first_edges": _IDS, "first_in_edges": _IDS,
    "copy_indptr": _IDS, "copy_here": _IDS, "copy_there": _IDS, "border_sizes": _IDS,
    **{f"{way}_{name}": types for way in ("out", "in")
       for name, types in (("indptr", _IDS), ("indices", _IDS), ("weights", _WEIGHTS))},
}  # fmt: skip
#: The file of all vertices, and its arrays.
VERTICES = "vertices.shard"
_TYPES_OF_VERTICES = {
    "degree": _IDS, "owner": ("<u2",), "labels": ("<i4", "<i8", "<u4", "<u8"), "label_offsets": ("<i8",),
    "label_bytes": ("|u1",),
}  # fmt: skip
_LABELS = ("labels", "label_offsets", "label_bytes")
_OPTIONAL = ("global_ids", "address", "first_in_edges", "out_weights", "in_indptr", "in_indices", "in_weights")
#: Owners are uint16.
_MOST_DEVICES = 2**16 - 1


def _is_count(value: Any, most: int = 2**63 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and len(value) == 16 and value.isascii(),
    "partition": _is_word,
    "duplication": _is_word,
    "num_devices": lambda value: _is_count(value, _MOST_DEVICES) and value > 0,
    "num_vertices": lambda value: _is_count(value, 2**40),
    "num_edges": _is_count,
    "is_directed": _is_flag,
    "has_in_edges": _is_flag,
    "types": lambda value: (
        isinstance(value, list)
        and len(value) == 3
        and value[0] in _IDS
        and value[1] in _IDS
        and (value[2] is None or value[2] in _WEIGHTS)
    ),
    "facts": lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
    "files": lambda value: isinstance(value, list),
    "vertices": lambda value: isinstance(value, dict),
    "version": _is_count,
}


def name_of(device: int) -> str:
    """Return the name of a device's file."""
    return f"device-{device}.shard"


def check_manifest(path: str, content: dict[str, Any], alignment: int) -> None:
    """Refuse a manifest that lacks something, has something else, or says what no folder has."""
    for name in sorted({*_FIELDS, *content}):
        if name not in _FIELDS or name not in content or not _FIELDS[name](content[name]):
            shown = repr(content[name])[:40] if name in content else "missing"
            raise FileFormatError(f"{path}: is not a manifest of shards: {name!r} is {shown}")
    if len(content["files"]) != content["num_devices"]:
        raise FileFormatError(f"{path}: has {len(content['files'])} files for {content['num_devices']} devices")
    reason = _what_is_wrong(content["vertices"], VERTICES, _TYPES_OF_VERTICES, _LABELS, alignment)
    if reason is not None:
        raise FileFormatError(f"{path}: the file of all vertices has {reason}")
    for device, entry in enumerate(content["files"]):
        plain = dict(entry) if isinstance(entry, dict) else {}
        num_local = plain.pop("num_local", None)
        reason = _what_is_wrong(plain, name_of(device), _TYPES, _OPTIONAL, alignment)
        if not _is_count(num_local, content["num_vertices"]):
            reason = f"{num_local!r} vertices; allowed: from 0 to {content['num_vertices']}"
        if reason is None and content["has_in_edges"] and content["is_directed"]:
            missing = [name for name in ("in_indptr", "in_indices", "first_in_edges") if name not in entry["arrays"]]
            reason = f"no array {missing[0]!r}" if missing else None
        if reason is not None:
            raise FileFormatError(f"{path}: file {device} has {reason}")


def _what_is_wrong(
    entry: Any, file: str, types: Mapping[str, tuple[str, ...]], optional: tuple[str, ...], alignment: int
) -> str | None:
    """Say what is wrong with what a manifest says about a file; None if nothing is."""
    if not isinstance(entry, dict) or entry.keys() != {"name", "bytes", "crc32", "arrays"}:
        return "not the entries name, bytes, crc32 and arrays"
    if entry["name"] != file:
        return f"the name {entry['name']!r}; it must be {file!r}"
    if not (
        _is_count(entry["bytes"])
        and entry["bytes"] >= alignment
        and _is_count(entry["crc32"], 2**32 - 1)
        and isinstance(entry["arrays"], dict)
    ):
        return "a size, a checksum or arrays that are none"
    missing = [name for name in types if name not in entry["arrays"] and name not in optional]
    if missing:
        return f"no array {missing[0]!r}"
    for name, place in entry["arrays"].items():
        if name not in types:
            return f"an array {name!r}, which no such file has"
        if not _lies_within(place, types[name], alignment, entry["bytes"]):
            return f"the array {name!r} at {place!r}, which is no place in {entry['bytes']} bytes"
    return None


def _lies_within(place: Any, types: tuple[str, ...], alignment: int, num_bytes: int) -> bool:
    if not (isinstance(place, list) and len(place) == 3 and isinstance(place[0], str) and place[0] in types):
        return False
    dtype, start, count = place
    if not (_is_count(start) and _is_count(count)) or start % alignment or start < alignment:
        return False
    return start + count * np.dtype(dtype).itemsize <= num_bytes


def check_vertices(path: str, arrays: dict[str, np.ndarray], num_vertices: int, num_devices: int) -> None:
    """Refuse arrays over all vertices that do not fit one another."""
    for name, most in (("degree", 2**63 - 1), ("owner", num_devices - 1)):
        _check_array(f"{path}, array {name!r}", arrays[name], num_vertices, most)
    if "labels" in arrays:
        _check_array(f"{path}, array 'labels'", arrays["labels"], num_vertices, 2**63 - 1)
    if "label_offsets" in arrays:
        num_bytes = arrays["label_bytes"].size if "label_bytes" in arrays else 0
        _check_offsets(f"{path}, array 'label_offsets'", arrays["label_offsets"], num_vertices, num_bytes)


def check_part(path: str, part: Subgraph, num_edges: int) -> None:
    """Refuse arrays over vertices that do not fit one another: a time that does not depend on the edges."""
    num_local, num_global = part.num_local, part.num_global
    for name, array, size, most in (
        ("owned", part.owned, None, num_local - 1),
        ("global_ids", part.global_ids, num_local, num_global - 1),
        ("owner", part.owner, num_local, part.num_devices - 1),
        ("address", part.address, num_local, num_global - 1),
        ("first_edges", part.first_edges, part.owned.size, num_edges),
        ("first_in_edges", part.first_in_edges, part.owned.size, num_edges),
        ("copy_here", part.copy_here, None, num_local - 1),
        ("copy_there", part.copy_there, part.copy_here.size, num_global - 1),
        ("border_sizes", part.border_sizes, part.num_devices, num_global),
    ):
        if array is not None:
            _check_array(f"{path}, array {name!r}", array, size, most)
    if part.global_ids is None and num_local != num_global:
        raise FileFormatError(
            f"{path}: has {num_local} vertices without names of their own, and the graph {num_global}"
        )
    if part.owned.size and (np.diff(part.owned) <= 0).any():
        raise FileFormatError(f"{path}, array 'owned': does not ascend")
    _check_offsets(f"{path}, array 'copy_indptr'", part.copy_indptr, part.num_devices, part.copy_here.size)
    for way, edges in (("out", part.out_edges), ("in", part.in_edges)):
        if edges is not None:
            place = f"{path}, array '{way}_indptr'"
            _check_offsets(place, edges.indptr, num_local, edges.indices.size)
            if (edges.indptr[1:][part.owned] - edges.indptr[part.owned]).sum() != edges.indices.size:
                raise FileFormatError(f"{place}: gives edges to vertices that the device does not own")
            if edges.weights is not None and edges.weights.size != edges.indices.size:
                raise FileFormatError(f"{path}, array '{way}_weights': has {edges.weights.size} values for "
                                      f"{edges.indices.size} edges")  # fmt: skip


def _check_array(place: str, array: np.ndarray, size: int | None, most: int) -> None:
    if size is not None and array.size != size:
        raise FileFormatError(f"{place}: has {array.size} values; it must have {size}")
    if array.size and not (array.min() >= 0 and array.max() <= most):
        wrong = int(np.argmax((array < 0) | (array > most)))
        allowed = f"from 0 to {most}" if most >= 0 else "none"
        raise FileFormatError(f"{place}: value {wrong} is {array[wrong]}; allowed: {allowed}")


def _check_offsets(place: str, offsets: np.ndarray, num_rows: int, num_values: int) -> None:
    if offsets.size != num_rows + 1 or offsets.size == 0:
        raise FileFormatError(f"{place}: has {offsets.size} values; it must have {num_rows + 1}")
    if offsets[0] != 0 or offsets[-1] != num_values:
        raise FileFormatError(f"{place}: runs from {offsets[0]} to {offsets[-1]}, not 0 to {num_values}")
    if (offsets[1:] < offsets[:-1]).any():
        raise FileFormatError(f"{place}: descends")


def check_edges(path: str, part: Subgraph) -> None:
    """Refuse edges to what is no vertex of the device, and weights that are no numbers: a look at every edge."""
    for way, edges in (("out", part.out_edges), ("in", part.in_edges)):
        if edges is not None and (way == "out" or edges is not part.out_edges):
            _check_array(f"{path}, array '{way}_indices'", edges.indices, None, part.num_local - 1)
            _check_weights(f"{path}, array '{way}_weights'", edges)


def _check_weights(place: str, edges: Edges) -> None:
    if edges.weights is not None and edges.weights.size and np.isnan(edges.weights.min()):
        raise FileFormatError(f"{place}: has values that are not numbers")
