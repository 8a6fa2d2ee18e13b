# SPDX-License-Identifier: Apache-2.0
"""The table of spoilt files: what `fuzz.py` counts, for a terminal and for a page."""

from __future__ import annotations

from typing import Any

from figures import Row, RowTable
from tables import circumstances, markdown_table

TABLE = RowTable(
    "Spoilt files",
    {
        "kind of file": "{target}",
        "inputs": "{executions}",
        "refused": "{refused}",
        "read": "{read}",
        "findings": "{findings}",
        "found before, and mended": "{mended}",
    },
    num_names=1,
)


def cells_of(rows: list[Row]) -> list[list[str]]:
    """Return rows as text; counts are whole numbers, so all their digits are shown."""
    return [
        TABLE.cells({key: str(value) if key == "target" else f"{value:,}" for key, value in row.items()})
        for row in rows
    ]


def fuzz_table(result: dict[str, Any]) -> list[str]:
    """Return the table with its circumstances."""
    table = markdown_table(TABLE.header, cells_of(result["rows"]), TABLE.right)
    setting = result["setting"]
    return [*table, "", f"{setting[:1].upper()}{setting[1:]}. {circumstances(result)}"]
