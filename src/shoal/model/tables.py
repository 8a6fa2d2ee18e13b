# SPDX-License-Identifier: Apache-2.0
"""Tables of plain values as files: TOML or JSON by suffix."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import ArgumentError
from shoal.io.files import check_readable, replacing
from shoal.io.trees import read_json, read_toml

SUFFIXES = (".toml", ".json")


def read_table(path: str | os.PathLike[str]) -> Any:
    """Return what a file has."""
    name = os.fspath(path)
    read = read_toml if _suffix(name) == ".toml" else read_json
    check_readable(name)
    return read(name)


def write_table(values: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a file that `read_table` reads; it appears only when it is complete."""
    name = os.fspath(path)
    text = _to_toml(values) if _suffix(name) == ".toml" else json.dumps(values, indent=1)
    with replacing(name) as temporary:
        Path(temporary).write_text(text + "\n", encoding="utf-8")


def _suffix(path: str) -> str:
    suffix = os.path.splitext(path)[1]
    if suffix not in SUFFIXES:
        raise ArgumentError(f"path={path!r} is not allowed; it must end in {' or '.join(SUFFIXES)}")
    return suffix


def _to_toml(values: Mapping[str, Any]) -> str:
    """Return values, then tables in the table; numbers, lists and strings are written as in JSON."""
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [_assign(key, value) for key, value in values.items() if key not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(_assign(key, value) for key, value in table.items())]
    return "\n".join(lines)


def _assign(key: str, value: Any) -> str:
    name = key if re.fullmatch(r"[\w-]+", key, re.ASCII) else json.dumps(key, ensure_ascii=False)
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"
