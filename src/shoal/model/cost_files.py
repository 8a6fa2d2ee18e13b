# SPDX-License-Identifier: Apache-2.0
"""Cost models by name and as files: TOML or JSON with the fields of `CostModel`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from shoal.errors import ArgumentError, FileFormatError, check_choice
from shoal.model.cost import CostModel
from shoal.model.tables import SUFFIXES, read_table, write_table

_FOLDER = Path(__file__).with_name("costs")
_FIELDS = tuple(entry.name for entry in fields(CostModel))
_NEEDED = tuple(entry.name for entry in fields(CostModel) if entry.default is entry.default_factory is MISSING)

#: Names of the cost models that come with shoal, one for each kind of device that was measured or assumed.
COSTS = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find_cost(cost: CostModel | str | os.PathLike[str]) -> CostModel:
    """Return a cost model by its name in `COSTS` or from a file; a `CostModel` is returned as it is.

    Examples
    --------
    >>> find_cost("cpu").degree
    4
    """
    if isinstance(cost, CostModel):
        return cost
    if isinstance(cost, os.PathLike) or (isinstance(cost, str) and cost.endswith(SUFFIXES)):
        return load_cost(cost)
    kinds = (*COSTS, f"a file ({', '.join(SUFFIXES)})")
    if not isinstance(cost, str) or cost not in COSTS:
        if not isinstance(cost, str):
            raise ArgumentError(f"cost={cost!r} is not allowed; it must be a CostModel or one of {', '.join(kinds)}")
        check_choice("cost", cost, kinds)
    return load_cost(_FOLDER / f"{cost}.toml")


def load_cost(path: str | os.PathLike[str]) -> CostModel:
    """Read a cost model from a TOML or JSON file."""
    values = read_table(path)
    try:
        return _make_cost(values)
    except ArgumentError as error:
        raise FileFormatError(f"{os.fspath(path)}: {error}") from error


def save_cost(cost: CostModel, path: str | os.PathLike[str]) -> None:
    """Write a file that `load_cost` reads: TOML or JSON by its suffix."""
    write_table(cost.to_dict(), path)


def _make_cost(values: Any) -> CostModel:
    if not isinstance(values, Mapping):
        raise ArgumentError(f"a cost model must be a table of fields, and is {values!r:.40}")
    for key in values:
        check_choice("field", key, _FIELDS)
    for name in _NEEDED:
        if name not in values:
            raise ArgumentError(f"there is no {name}; it must be given")
    return CostModel(**values)
