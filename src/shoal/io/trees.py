# SPDX-License-Identifier: Apache-2.0
"""Trees of plain values as files: JSON and TOML, without what either parser leaves to those who come after it.

Refused are names that are there twice in an object, whole numbers beyond 64 bits, which cannot even be shown once they
are long, and values nested deeper than Python calls functions.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from typing import Any

from shoal.errors import FileFormatError

#: From the smallest int64 to the largest uint64.
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
#: Digits and sign of these; longer ones are not even converted.
_LONGEST_NUMBER = 20


def read_json(path: str | os.PathLike[str], what: str = "JSON") -> Any:
    """Return what a JSON file has; ``what`` is what it should be, for the error."""
    return _read(path, what, _parse_json)


def read_toml(path: str | os.PathLike[str], what: str = "TOML") -> Any:
    """Return what a TOML file has; ``what`` is what it should be, for the error."""
    return _read(path, what, _parse_toml)


def _read(path: str | os.PathLike[str], what: str, parse: Callable[[str], Any]) -> Any:
    with open(path, encoding="utf-8") as file:
        try:
            return parse(file.read())
        except RecursionError:
            reason = "its values are nested too deep"
        except ValueError as error:  # of the parser, or of text that is not UTF-8
            reason = str(error)
    raise FileFormatError(f"{os.fspath(path)}: is not {what}: {reason}")


def _parse_json(text: str) -> Any:
    return json.loads(text, parse_int=_as_number, object_pairs_hook=_as_object)


def _as_number(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"{digits[:_LONGEST_NUMBER]}... does not fit 64 bits")
    return _checked(int(digits))


def _checked(number: int) -> int:
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError(f"a whole number of {number.bit_length()} bits does not fit 64 bits")
    return number


def _as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} is there twice")
    return values


def _parse_toml(text: str) -> Any:
    tree = tomllib.loads(text)
    _check_numbers(tree)
    return tree


def _check_numbers(tree: Any) -> None:
    """Refuse whole numbers that do not fit; TOML has hexadecimal ones of any length."""
    if isinstance(tree, int):
        _checked(tree)
    elif isinstance(tree, (dict, list)):
        for value in tree.values() if isinstance(tree, dict) else tree:
            _check_numbers(value)
