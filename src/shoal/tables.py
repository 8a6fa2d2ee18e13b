# SPDX-License-Identifier: Apache-2.0
"""Tables of columns as Arrow, pandas and Polars, and as files: Parquet, CSV or ``.npz`` by suffix.

A column is a NumPy array, or Arrow's for strings.  A file appears only when it is complete.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from shoal.errors import ArgumentError
from shoal.interop.libraries import import_library
from shoal.io.files import replacing

SUFFIXES = (".parquet", ".csv", ".npz")


def suffix_of(path: str, argument: str) -> str:
    """Return the suffix that says what a file is."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(f"{argument}={path!r} has no known suffix; allowed: {', '.join(SUFFIXES)}")
    return suffix


def to_arrow(columns: dict[str, Any]) -> Any:
    """Return a pyarrow table that shares the memory of the columns."""
    import pyarrow as pa

    return pa.table(columns)


def to_pandas(table: Any) -> Any:
    """Return an Arrow table as a DataFrame that shares the memory of its numbers."""
    import_library("pandas", "to_pandas()")
    return table.to_pandas(split_blocks=True)


def to_polars(table: Any) -> Any:
    """Return an Arrow table as Polars'."""
    return import_library("polars", "to_polars()").from_arrow(table)


def write_columns(columns: dict[str, Any], path: str, suffix: str) -> None:
    """Write a file of the kind that ``suffix`` names."""
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".npz": _write_npz}[suffix]
    with replacing(path) as temporary:
        write(columns, temporary)


def _write_parquet(columns: dict[str, Any], path: str) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(to_arrow(columns), path)


def _write_csv(columns: dict[str, Any], path: str) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(to_arrow(columns), path)


def _write_npz(columns: dict[str, Any], path: str) -> None:
    arrays: dict[str, Any] = {
        n: v if isinstance(v, np.ndarray) else np.array(v.fill_null(""), np.str_) for n, v in columns.items()
    }
    with open(path, "wb") as file:
        np.savez(file, **arrays)
