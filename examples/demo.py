# SPDX-License-Identifier: Apache-2.0
"""What ``make demo`` shows: a graph is generated, and every algorithm runs on it from the command line, checked."""

import json
import subprocess
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("demo")  # in ROOT
GRAPH = FOLDER / "graph.shoal"
GENERATE = ["generate", "rmat", str(GRAPH), "--scale", "16", "--weights", "1:255", "--seed", "1"]
SOURCE = "51324"  # the vertex with the most edges
RUNS = {
    "bfs": ["--source", SOURCE],
    "sssp": ["--source", SOURCE],
    "cc": [],
    "bc": ["--samples", "8", "--seed", "1"],
    "pagerank": [],
}


def shoal(*arguments):
    """Run the command line, shown as a user would type it, and return what its JSON says."""
    print("$ shoal", *arguments, flush=True)
    command = [sys.executable, "-m", "shoal.cli", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def main():
    (ROOT / FOLDER).mkdir(exist_ok=True)
    made = shoal(*GENERATE)
    table = Table(title=f"{made['vertices']:,} vertices, {made['stored_edges']:,} stored edges", box=box.SIMPLE_HEAD)
    for column in ("algorithm", "result", "ms", "edges", "check"):
        table.add_column(column, justify="right" if column in ("ms", "edges") else "left")
    for algorithm, options in RUNS.items():
        output = FOLDER / f"{algorithm}.parquet"
        answer = shoal(algorithm, str(GRAPH), *options, "--validate", "--output", str(output))
        stats = answer["stats"]
        facts = [(name, value) for name, value in answer["result"].items() if name != "top_vertex"]
        result = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in facts)
        table.add_row(algorithm, result, f"{stats['seconds'] * 1e3:,.1f}", f"{stats['edges_visited']:,}", "valid")
    print()
    Console().print(table)
    print(f"The results are in {FOLDER}/, one table each; `shoal --help` says what else there is.")


def _short(value):
    return f"{value:.3g}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"


if __name__ == "__main__":
    main()
