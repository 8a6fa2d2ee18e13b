# SPDX-License-Identifier: Apache-2.0
"""Single lines of a text file, for headers and for error messages: the compiled parsers say where, this says why."""

from __future__ import annotations

import re

from shoal.backends.cpu.kernels import text_rows
from shoal.backends.cpu.kernels.text_rows import Layout

_LONGEST_QUOTED = 40
#: As many as always fit 64 bits.
_MOST_DIGITS = 18


def split_fields(line: bytes, delimiter: int) -> list[bytes]:
    """Return the fields of a line as they stand, quotes included; ``delimiter`` 0 stands for blanks."""
    if delimiter == 0:
        return re.findall(rb'"(?:[^"]|"")*"(?=\s|$)|\S+', line)
    mark = re.escape(bytes([delimiter]))
    fields = re.findall(rb"(?:^|" + mark + rb')\s*("(?:[^"]|"")*"|[^' + mark + rb"]*)", line)
    return [field.strip() for field in fields]


def unquote(field: bytes) -> str:
    """Return the text of a field, without the quotes around it."""
    text = field.decode("utf-8", "replace")
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"')
    return text


def show(field: bytes) -> str:
    """Return a field for an error message: quoted, printable, never long."""
    text = field.decode("utf-8", "replace")
    return repr(text if len(text) <= _LONGEST_QUOTED else text[: _LONGEST_QUOTED - 3] + "...")


def is_whole_number(field: bytes) -> bool:
    """Say whether a field is a vertex id written as a number."""
    return field.isdigit()


def is_count(field: bytes) -> bool:
    """Say whether a field is a number of vertices or edges; no file has so many that it takes more digits."""
    return field.isdigit() and len(field) <= _MOST_DIGITS


def explain(status: int, line: bytes, layout: Layout) -> str:
    """Say in words why a compiled parser stopped at a line."""
    if status == text_rows.BAD_TAG:
        columns = "src dst weight" if layout.num_columns > 2 else "src dst"
        return f"{show(line)} is not '{chr(layout.tag)} {columns}'"
    fields = split_fields(line, layout.delimiter)[1 if layout.tag else 0 :]
    if status == text_rows.BAD_COLUMNS or len(fields) < layout.num_columns:
        return _explain_columns(fields, line, layout)
    for column in (layout.src_column, layout.dst_column):
        reason = _explain_id(fields[column], layout)
        if reason:
            return reason
    return f"{show(line)} cannot be read"


def _explain_columns(fields: list[bytes], line: bytes, layout: Layout) -> str:
    if len(fields) == layout.num_columns:
        return f"{show(line)} has an empty column or a quote that is not closed"
    found = f"{len(fields)} column" + ("s" if len(fields) != 1 else "")
    return f"{show(line)} has {found}, not {layout.num_columns}"


def _explain_id(field: bytes, layout: Layout) -> str | None:
    if not field:
        return "a vertex id is empty"
    if not is_whole_number(field):
        if layout.is_text and field[:1] == b'"':
            return None
        is_negative = re.fullmatch(rb"-\d+", field) is not None
        return f"{show(field)} is not a vertex id" + ("; ids must not be negative" if is_negative else "")
    if len(field) > _MOST_DIGITS:
        return f"vertex id {show(field)} is out of range; ids have at most {_MOST_DIGITS} digits"
    if layout.first_id <= int(field) <= layout.last_id:
        return None
    allowed = f"{layout.first_id} to {layout.last_id}" if layout.last_id >= layout.first_id else "none"
    return f"vertex id {field.decode()} is out of range; allowed: {allowed}"
