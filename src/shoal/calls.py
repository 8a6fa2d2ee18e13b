# SPDX-License-Identifier: Apache-2.0
"""What every public function of a graph takes beside its own arguments: ``report=`` and ``checkpoint=``.

What a file or folder would need is asked for before the run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from shoal.checkpoint.option import keeping
from shoal.errors import WholeGraphError
from shoal.report.option import check_report, write_report

_Call = TypeVar("_Call", bound=Callable[..., Any])


def public_call(call: _Call) -> _Call:
    """Give a function of a graph, whose result has ``stats``, the arguments that all of them have."""

    @functools.wraps(call)
    def run(*arguments: Any, **options: Any) -> Any:
        report = options.pop("report", None)
        check_report(report, options.get("stats", "full"))
        try:
            with keeping(call, arguments, options):
                result = call(*arguments, **options)
        except WholeGraphError as error:
            raise WholeGraphError(f"{call.__name__} {error}") from None
        if report is not None:
            write_report(report, call, arguments, options, result)
        return result

    run.is_public_call = True  # type: ignore[attr-defined]
    return cast(_Call, run)
