# SPDX-License-Identifier: Apache-2.0
"""``python -m shoal.bench``: measure, print the table, write JSON and a plot.

Exit status: 0, or 1 if a library's answer differed or it failed, or 2 with one line if an argument is not allowed.
"""

from __future__ import annotations

import argparse
import sys

from shoal.bench.graphs import GRAPHS
from shoal.bench.kernels import KERNELS
from shoal.bench.peers import LIBRARIES
from shoal.bench.run import run_benchmark
from shoal.bench.table import print_report
from shoal.errors import ShoalError


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    given = _parser().parse_args(arguments)
    try:
        report = run_benchmark(
            given.graphs,
            given.kernels,
            given.libraries,
            repetitions=given.repetitions,
            num_threads=given.threads,
            num_sources=given.sources,
            json_path=given.json,
            plot_path=given.plot,
            say=lambda message: print(message, file=sys.stderr, flush=True),
        )
    except ShoalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_report(report)
    return 1 if report.disagreements or report.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m shoal.bench", description="Compare shoal with the other graph libraries of Python."
    )
    graphs = f"{', '.join(GRAPHS)}, or paths of graph files"
    parser.add_argument("--graphs", type=_names, default=["kron20"], metavar="NAMES", help=graphs)
    parser.add_argument("--kernels", type=_names, metavar="NAMES", help=f"all, or some of: {', '.join(KERNELS)}")
    installed = "all that are installed, or some of: " + ", ".join(LIBRARIES)
    parser.add_argument("--libraries", type=_names, metavar="NAMES", help=installed)
    parser.add_argument("--repetitions", type=int, default=16, help="samples of each, fewer where they take over 20 s")
    parser.add_argument("--threads", type=int, help="cores that every library may use (all)")
    parser.add_argument("--sources", type=int, default=16, help="vertices that searches start from")
    parser.add_argument("--json", metavar="FILE", help="write all samples to this file")
    parser.add_argument("--plot", metavar="FILE", help="write a plot to this HTML file (needs plotly)")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    sys.exit(main())
