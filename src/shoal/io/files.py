# SPDX-License-Identifier: Apache-2.0
"""Open files for reading, compressed or not, and write files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import Any, NoReturn

from shoal.errors import ArgumentError, FileFormatError

COMPRESSION_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
#: How compressed files begin; bzip2 with a letter more than text might: its first block, or the end of an empty file.
_COMPRESSION_STARTS = {
    rb"\x1f\x8b": "gzip",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": "bz2",
}


def check_readable(path: str) -> None:
    """Refuse a path that is no readable file."""
    if os.path.isdir(path):
        raise ArgumentError(f"path={path!r} is a directory; it must be a file")
    try:
        with open(path, "rb") as file:
            is_empty = not file.read(1)
    except OSError as error:
        refuse_path(path, "read", error)
    if is_empty:
        raise FileFormatError(f"{path}: the file is empty")


def check_writable(path: str, argument: str = "path") -> None:
    """Refuse, before anything is computed, a file that could not be written in the end."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise ArgumentError(f"{argument}={path!r} is a directory; it must be a file")
    if not os.path.isdir(folder):
        raise ArgumentError(f"{argument}={path!r} is in a folder that does not exist; make it first")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{argument}={path!r} is in a folder that may not be written to; choose another")


def refuse_path(path: str, verb: str, error: OSError) -> NoReturn:
    """Say that a path cannot be read or written, and why."""
    raise ArgumentError(f"path={path!r} cannot be {verb}: {error.strerror or error}") from error


def compression_of(path: str) -> str | None:
    """Return the compression of a file by its first bytes, whatever its name."""
    with open(path, "rb") as file:
        start = file.read(10)
    return next((name for pattern, name in _COMPRESSION_STARTS.items() if re.match(pattern, start)), None)


def open_compressed(path: str, compression: str | None) -> Any:
    """Open a file to read its decompressed bytes with ``readinto``."""
    if compression is None:
        return open(path, "rb", buffering=0)
    import pyarrow

    return pyarrow.input_stream(path, compression=compression)


def read_start(path: str, num_bytes: int) -> bytes:
    """Return the first bytes of a file, decompressed."""
    try:
        with open_compressed(path, compression_of(path)) as stream:
            return bytes(stream.read(num_bytes))
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be decompressed: {error}") from error


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give the name of a new file in the same folder; it takes the place of ``path`` only if all goes well."""
    check_writable(path)
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        refuse_path(path, "written", error)
    finally:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(temporary)


def check_new_folder(name: str, path: str) -> None:
    """Refuse a path where no new folder can be made: something is there, and it is not an empty folder."""
    if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise ArgumentError(f"{name}={path!r} is there already; it must be a new or an empty folder")
    parent = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(parent):
        raise ArgumentError(f"{name}={path!r} cannot be written: there is no folder {parent}")


@contextlib.contextmanager
def making_folder(path: str) -> Iterator[str]:
    """Give the name of a new folder beside ``path``; it becomes ``path`` only if all goes well."""
    check_new_folder("path", path)
    parent, name = os.path.split(os.path.realpath(path))
    temporary = os.path.join(parent, f".{name}.{secrets.token_hex(4)}.partial")
    try:
        os.mkdir(temporary)
        yield temporary
        os.rename(temporary, os.path.join(parent, name))
    except OSError as error:
        refuse_path(path, "written", error)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def replacing_stream(path: str, compression: str | None = None) -> Iterator[Any]:
    """Give a stream of bytes to write; what it holds at the end takes the place of ``path``."""
    import pyarrow

    with replacing(path) as temporary, pyarrow.output_stream(temporary, compression=compression) as stream:
        yield stream
