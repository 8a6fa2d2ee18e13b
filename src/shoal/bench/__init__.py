# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: shoal and the other graph libraries of Python on the same graphs, sources and cores.

``run_benchmark`` measures and returns a ``BenchmarkReport``; ``shoal bench`` does the same from a shell.
Samples are interleaved (for each repetition, each library in turn), so that a slow minute of the machine falls on all
of them.  The data flows ``graphs -> peers -> measure -> report -> table, JSON, plot``.
"""

from shoal.bench.report import BenchmarkReport
from shoal.bench.run import run_benchmark

__all__ = ["BenchmarkReport", "run_benchmark"]
