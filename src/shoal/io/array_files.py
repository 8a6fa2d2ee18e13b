# SPDX-License-Identifier: Apache-2.0
"""Arrays of numbers one behind the other in a file, with a table kept elsewhere that says where each one is.

A file begins with magic (8), version (uint32), number (uint32) and a token (16 bytes) that it shares with the files it
belongs to, padded to 64 bytes; its arrays follow, little-endian, each at a multiple of 64 bytes.  The table has the
file's size and CRC-32, so that what is damaged, cut off or of another folder is noticed before it is used.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from shoal.errors import FileFormatError

MAGIC = b"\x89ARRAY\r\n"  # not text, and changed by whatever changes line ends
VERSION = 1
_START = struct.Struct("<8sII16s")
_ALIGNMENT = 64  # arrays begin at the start of a cache line


def write_arrays(path: str, token: str, number: int, arrays: Iterable[tuple[str, np.ndarray]]) -> dict[str, Any]:
    """Write arrays as they come, and the file to the disk itself; return the table."""
    start = _start(token, number)
    table, position, checksum = {}, len(start), zlib.crc32(start)
    with open(path, "wb") as file:
        file.write(start)
        for name, array in arrays:
            content = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            table[name] = [content.dtype.str, position, list(content.shape)]
            padding = bytes(-content.nbytes % _ALIGNMENT)
            for piece in (content.reshape(-1).view(np.uint8).data if content.size else b"", padding):
                file.write(piece)
                checksum = zlib.crc32(piece, checksum)
            position += content.nbytes + len(padding)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": position, "crc32": checksum, "arrays": table}


def read_arrays(path: str, token: str, number: int, entry: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a file that is what its table says."""
    try:
        size = os.path.getsize(path)
        if size != entry["bytes"]:
            verb = "truncated" if size < entry["bytes"] else "too long"
            raise FileFormatError(f"{path}: {verb}: has {size} bytes, and its table says {entry['bytes']}")
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from None
    if content[:_ALIGNMENT].tobytes() != _start(token, number):
        raise FileFormatError(f"{path}, byte 0: does not begin as file {number} of this folder must")
    if zlib.crc32(content.data) != entry["crc32"]:
        raise FileFormatError(f"{path}: is damaged (its checksum does not fit)")
    return {name: _view(path, name, content, *place) for name, place in entry["arrays"].items()}


def _start(token: str, number: int) -> bytes:
    return _START.pack(MAGIC, VERSION, number, token.encode()).ljust(_ALIGNMENT, b"\0")


def _view(path: str, name: str, content: np.ndarray, dtype: str, begin: int, shape: list[int]) -> np.ndarray:
    """Return one array; a table that was made up must not lead out of the file, nor to anything but numbers."""
    kind = np.dtype(dtype)
    end = begin + kind.itemsize * int(np.prod(shape, dtype=np.int64))
    if kind.kind not in "biuf" or not 0 <= begin <= end <= len(content):
        raise FileFormatError(f"{path}, array {name!r}: {dtype} {shape} at byte {begin} is not in the file")
    return content[begin:end].view(kind).reshape(shape)
