# SPDX-License-Identifier: Apache-2.0
"""``report=`` of every algorithm and of `shoal.run`: what a call did, as a file that is there when it returns.

What a file would need is asked for before the run; it is written when the call has its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from shoal.errors import ArgumentError, WholeGraphError

_Call = TypeVar("_Call", bound=Callable[..., Any])


def reported(call: _Call) -> _Call:
    """Give a function of a graph, whose result has ``stats``, the argument ``report=``."""

    @functools.wraps(call)
    def run(*arguments: Any, **options: Any) -> Any:
        report = options.pop("report", None)
        try:
            if report is None:
                return call(*arguments, **options)
            check_report(report, options.get("stats", "full"))
            result = call(*arguments, **options)
        except WholeGraphError as error:
            raise WholeGraphError(f"{call.__name__} {error}") from None
        from shoal.report.targets import write_target

        write_target(_record(call, arguments, options, result), "report", report)
        return result

    run.has_report = True  # type: ignore[attr-defined]
    return cast(_Call, run)


def check_report(report: Any, stats: str) -> None:
    """Refuse, before a run, a report that could not be written after it."""
    if report is None:
        return
    from shoal.report.targets import check_target

    if stats != "full":
        raise ArgumentError(f"report={str(report)!r} does not go with stats={stats!r}: it shows every superstep; "
                            "allowed: full")  # fmt: skip
    check_target("report", report)


def _record(call: Any, arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> Any:
    """Return the trace of a call that has ended; the graph is among its arguments."""
    from shoal.graph import Graph
    from shoal.placement import Placed
    from shoal.report.trace import record_run

    given = (*arguments, *options.values())
    graph = next(value for value in given if isinstance(value, (Graph, Placed)))
    plain = graph.graph if isinstance(graph, Placed) else graph
    name = call.__name__ if call.__name__ != "run" else result.stats.algorithm
    return record_run(name, plain, result.stats)
