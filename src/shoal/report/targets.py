# SPDX-License-Identifier: Apache-2.0
"""What may become of a trace, by the name of the file: a page, the trace itself, or a timeline for Perfetto."""

from __future__ import annotations

import os

from shoal.errors import ArgumentError
from shoal.io.files import check_writable, replacing
from shoal.report.trace import RunTrace

_PAGE, _PERFETTO, _TRACE = ".html", ".perfetto.json", ".json"
ALLOWED = ".html (a page), .perfetto.json (for ui.perfetto.dev), .json (the trace itself)"


def check_target(argument: str, path: object) -> None:
    """Refuse, before anything is run, a file that could not be written in the end."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{argument}={path!r} is not allowed; it must be the path of a file: {ALLOWED}")
    name = os.fspath(path)
    suffix = _suffix_of(argument, name)
    check_writable(name, argument)
    if suffix == _PAGE:
        from shoal.report.page import check_plotly

        check_plotly(argument, name)


def _suffix_of(argument: str, path: str) -> str:
    for suffix in (_PAGE, _PERFETTO, _TRACE):
        if path.lower().endswith(suffix):
            return suffix
    raise ArgumentError(f"{argument}={path!r} has no known suffix; allowed: {ALLOWED}")


def write_target(trace: RunTrace, argument: str, target: str | os.PathLike[str]) -> None:
    """Write what the name of a file asks for, whole or not at all."""
    path = os.fspath(target)
    suffix = _suffix_of(argument, path)
    if suffix == _TRACE:
        trace.write(path)
    elif suffix == _PERFETTO:
        from shoal.report.perfetto import write_perfetto

        write_perfetto(trace, path)
    else:
        from shoal.report.page import make_page

        write_page(make_page(trace), path)


def write_page(text: str, path: str) -> None:
    """Write a page, whole or not at all."""
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
