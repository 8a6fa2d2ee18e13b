# SPDX-License-Identifier: Apache-2.0
"""Write the measured tables into the documentation, so that no number there is typed by hand.

    python benchmarks/document.py                      # the pages, from benchmarks/results/*.json
    python benchmarks/document.py local/bench.json     # keep a new comparison first (what `shoal bench --output` wrote)

A page says where a table goes, and which: everything from ``<!-- table: begin NAME -->`` to ``<!-- table: end -->`` is
replaced.  ``comparison`` and ``summary`` are made of comparison.json, the others of the JSON file of their name; where
that is not there yet, the page says so.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from asynchronous import TABLES as ASYNCHRONOUS_TABLES
from comparison import comparison_table, summarize, summary_table
from devices import TABLES as DEVICES_TABLES
from figures import HEADER, Figure, RowTable
from fuzz_table import fuzz_table
from model_tables import PLANNING, VALIDATION
from ownership import TABLES as OWNERSHIP_TABLES
from shoal.bench.report import write_whole
from tables import circumstances, markdown_table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (
    *(ROOT / "docs" / f"{name}.md" for name in ("performance", "model", "planning", "reliability")),
    ROOT / "README.md",
)
#: What a page may ask for.
TABLES = (
    "comparison", "summary", "user_program", "devices", "ownership", "asynchronous", "gpu", "gpu_user_program",
    "gpu_many", "gpu_asynchronous", "memory", "startup", "cost_training", "cost_inference", "model_stealing",
    "model_validation", "planning", "fuzz", "faults", "partitioning",
)  # fmt: skip
NOT_MEASURED = ["Not measured yet: see `benchmarks/README.md`."]
_BLOCK = re.compile(r"(<!-- table: begin (\w+) -->\n).*?(<!-- table: end -->)", re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    """Write the pages and return the exit status: 0, or 1 if a file is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", nargs="?", type=Path, help="a comparison to keep: what shoal bench --output wrote")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the kept results")
    parser.add_argument("--pages", type=Path, nargs="+", default=PAGES, help="files to write")
    given = parser.parse_args(arguments)
    try:
        if given.report is not None:
            keep_comparison(given.report, given.results)
        write_pages(given.pages, load_results(given.results))
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def keep_comparison(report: Path, folder: Path) -> None:
    """Write what the tables need of a benchmark's JSON into the folder of results."""
    summary = summarize(json.loads(report.read_text(encoding="utf-8")))
    write_whole(folder / "comparison.json", json.dumps(summary, indent=1) + "\n")


def load_results(folder: Path) -> dict[str, Any]:
    """Return the kept results by the name of their file."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def write_pages(pages: list[Path], results: dict[str, Any]) -> None:
    """Rewrite the tables of the pages."""
    for page in pages:
        write_whole(page, with_tables(page.read_text(encoding="utf-8"), results))


def with_tables(text: str, results: dict[str, Any]) -> str:
    """Return a page with its tables made anew."""
    tables = make_tables(results)

    def replace(block: re.Match[str]) -> str:
        begin, name, end = block.groups()
        if name not in TABLES:
            raise ValueError(f"table {name!r} is not known; allowed: {', '.join(TABLES)}")
        return begin + "\n".join(["", *tables.get(name, NOT_MEASURED), "", end])

    return _BLOCK.sub(replace, text)


def make_tables(results: dict[str, Any]) -> dict[str, list[str]]:
    """Return the lines of every table by its name."""
    makers = {"comparison": comparison_table, "figures": figures_table, "devices": devices_table, "fuzz": fuzz_table}
    tables = {name: makers[result["kind"]](result) for name, result in results.items()}
    if "comparison" in results:
        tables["summary"] = summary_table(results["comparison"])
    return tables


def figures_table(result: dict[str, Any]) -> list[str]:
    """Return the table of a script's figures."""
    rows = [Figure(**figure).cells() for figure in result["figures"]]
    return [*markdown_table(HEADER, rows, right={1, 2}), "", f"{result['setting']}. {circumstances(result)}"]


def devices_table(result: dict[str, Any]) -> list[str]:
    """Return the tables of rows that were measured on several devices, and that of the figures behind them."""
    known = {**DEVICES_TABLES, **OWNERSHIP_TABLES, **ASYNCHRONOUS_TABLES, **VALIDATION, **PLANNING}
    tables = [line for name, kept in result["tables"].items() for line in rows_table(known[name], kept)]
    return [*tables, *figures_table(result)]


def rows_table(table: RowTable, kept: dict[str, Any]) -> list[str]:
    """Return a table of rows between its title and what is to be said of it."""
    rows = [table.cells(row) for row in kept["rows"]]
    return [f"**{table.title}**", "", *markdown_table(table.header, rows, table.right), "", kept["note"], ""]


if __name__ == "__main__":
    sys.exit(main())
