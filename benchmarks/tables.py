# SPDX-License-Identifier: Apache-2.0
"""Tables and the lines under them, as Markdown."""

from __future__ import annotations

from typing import Any

from shoal.bench.table import NOISY_CORES


def markdown_table(header: list[str], rows: list[list[str]], right: set[int]) -> list[str]:
    """Return the lines of a table; columns whose number is in ``right`` are aligned there."""
    rule = ["--:" if column in right else "---" for column in range(len(header))]
    return [_line(cells) for cells in (header, rule, *rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def circumstances(result: dict[str, Any]) -> str:
    """Return when and where a result was measured, and whether the machine had other things to do."""
    environment = result["environment"]
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    cores = environment["cores_available"]
    return (
        f"{environment['cpu']}, {cores} core{'' if cores == 1 else 's'}, {environment['memory_bytes'] / 1e9:.0f} GB; "
        f"{environment['system']}; Python {environment['python']}; {versions}; {result['date']}."
        f"{noise(environment)}"
    )


def noise(environment: dict[str, Any]) -> str:
    """Return a sentence that says so if the machine had other things to do."""
    cores = environment["cores_of_others"]
    return f" Other processes kept {cores:.1f} cores busy: times are longer than alone." if cores > NOISY_CORES else ""
