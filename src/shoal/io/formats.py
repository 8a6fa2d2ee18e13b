# SPDX-License-Identifier: Apache-2.0
"""The table of file formats, and which of them a file has: by its suffix, or by content that says so itself."""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import NamedTuple

from shoal.errors import ArgumentError, check_choice
from shoal.io.files import COMPRESSION_SUFFIXES, read_start

_START_BYTES = 4096


class Format(NamedTuple):
    """A module with ``matches(start)``, ``read(path, options)`` and ``write(graph, path, compression)``."""

    module: str
    suffixes: tuple[str, ...]
    is_text: bool  # may be compressed as a whole

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


FORMATS = {
    "edge-list": Format("shoal.io.edge_list", (".txt", ".el", ".wel", ".tsv", ".csv", ".edges"), True),
    "matrix-market": Format("shoal.io.matrix_market", (".mtx",), True),
    "dimacs": Format("shoal.io.dimacs", (".gr",), True),
    "metis": Format("shoal.io.metis", (".graph",), True),
    "gap": Format("shoal.io.gap", (".sg", ".wsg"), False),
    "parquet": Format("shoal.io.parquet", (".parquet", ".arrow", ".feather"), False),
    "npz": Format("shoal.io.npz", (".npz",), False),
    "shoal": Format("shoal.io.native", (".shoal",), False),
}


def split_suffix(path: str) -> tuple[str, str | None]:
    """Return the suffix that names the format, in lower case, and the compression that a last suffix names."""
    stem, suffix = os.path.splitext(path.lower())
    compression = COMPRESSION_SUFFIXES.get(suffix)
    if compression is not None:
        suffix = os.path.splitext(stem)[1]
    return suffix, compression


def format_to_read(path: str, name: str | None) -> str:
    """Return the name of the format of an existing file."""
    if name is not None:
        return check_choice("format", name, FORMATS)
    by_suffix = _by_suffix(path)
    if by_suffix not in (None, "edge-list"):
        return by_suffix
    start = read_start(path, _START_BYTES)
    by_content = next((name for name, format in FORMATS.items() if format.load().matches(start)), None)
    return by_content or by_suffix or _refuse_suffix(path)


def format_to_write(path: str, name: str | None) -> str:
    """Return the name of the format to write to a path."""
    if name is not None:
        return check_choice("format", name, FORMATS)
    return _by_suffix(path) or _refuse_suffix(path)


def _by_suffix(path: str) -> str | None:
    suffix, _ = split_suffix(path)
    return next((name for name, format in FORMATS.items() if suffix in format.suffixes), None)


def _refuse_suffix(path: str) -> str:
    suffixes = ", ".join(suffix for format in FORMATS.values() for suffix in format.suffixes)
    compressed = ", ".join(COMPRESSION_SUFFIXES)
    raise ArgumentError(
        f"path={path!r} has no known suffix; allowed: {suffixes} (text formats also with {compressed}), "
        f"or format= one of {', '.join(FORMATS)}"
    )
