# SPDX-License-Identifier: Apache-2.0
"""Parse text with one edge a line: ids as numbers or as tokens, and a weight.

Thread mapping: thread t parses the lines of ``cuts[t]:cuts[t + 1]`` and writes the rows from ``first_rows[t]`` on.
``first_rows`` counts lines, so no two threads write the same row and none is atomic.  Comments and empty lines leave
unused rows at the end of a thread's part, which the caller closes up.  A thread stops at its first bad line and reports
why and where; the caller says it in words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative
from shoal.backends.cpu.kernels.text import (
    LARGEST_EXACT,
    NEWLINE,
    UNREAD,
    WHOLE,
    byte_at,
    ends_field,
    field_end,
    inline,
    is_blank,
    next_line,
    parse_digits,
    parse_number,
    skip_blanks,
)

# Why a thread stopped.
FINE, BAD_TAG, BAD_COLUMNS, BAD_ID, OUT_OF_RANGE = range(5)
# Columns of a thread's report.
STATUS, POSITION, NUM_ROWS, LARGEST_ID, NUM_UNREAD, NUM_DECIMAL = range(6)


class Layout(NamedTuple):
    """What stands where in a line; every field is an integer."""

    comment: int  # byte that starts a comment line
    other_comment: int
    tag: int  # byte that starts every row, or 0
    delimiter: int  # byte between fields, or 0 for blanks
    num_columns: int
    src_column: int
    dst_column: int
    weight_column: int  # -1: no weight wanted
    first_id: int  # 0 or 1
    last_id: int  # the largest id allowed in the file
    is_text: int  # ids are tokens, not numbers


@compiled()
def parse_rows(thread, num_threads, text, cuts, first_rows, layout, src, dst, weights, bounds, report):
    """Parse one thread's lines.

    ``src`` and ``dst`` get ids from 0 on; with ``layout.is_text``, ``bounds[0]`` and ``bounds[1]`` get (start, end) of
    their tokens instead.  A weight that a library must read is NaN and has its token in ``bounds[2]``.
    """
    base = np.int64(text.ctypes.data)
    delimiter = layout.delimiter
    place, end = base + cuts[thread], base + cuts[thread + 1]
    row = nonnegative(first_rows[thread])
    start, status = place, FINE
    is_plain = is_plain_layout(layout)
    largest_id, num_unread, num_decimal = -1, 0, 0
    while place < end and status == FINE:
        place = skip_blanks(place, delimiter)
        start = place
        if not is_row(byte_at(place), layout):
            place = next_line(place)
            continue
        if is_plain:
            next_place, first_id, second_id, whole = parse_plain_row(place, layout)
            if next_place > 0:
                src[row], dst[row] = first_id, second_id
                largest_id = max(largest_id, first_id, second_id)
                if layout.weight_column > 0:
                    weights[row] = whole
                row += 1
                place = next_place
                continue
            is_plain = False  # nor will the lines that follow be, most likely
        place, status = skip_tag(place, layout)
        column = 0
        while status == FINE and column < layout.num_columns:
            if column == layout.src_column or column == layout.dst_column:
                side = 0 if column == layout.src_column else 1
                first = place
                place, status, vertex = parse_id(place, layout)
                if layout.is_text != 0:
                    bounds[side, row, 0], bounds[side, row, 1] = first - base, place - base
                elif side == 0:
                    src[row] = vertex
                else:
                    dst[row] = vertex
                largest_id = max(largest_id, vertex)
            elif column == layout.weight_column:
                first = place
                place, kind, weight = parse_weight(place, delimiter)
                weights[row] = weight
                num_decimal += kind != WHOLE
                if kind == UNREAD:
                    bounds[2, row, 0], bounds[2, row, 1] = first - base, place - base
                    num_unread += 1
            else:
                place = field_end(place, delimiter)
            column += 1
            if status == FINE:
                place, status = leave_field(place, delimiter, column == layout.num_columns)
        row += status == FINE
    notes = (status, start - base, row - first_rows[thread], largest_id, num_unread, num_decimal)
    for i in range(len(notes)):
        report[thread, i] = notes[i]


@inline
def is_plain_layout(layout):
    """Say whether the columns are a source, a destination and perhaps a weight, with blanks between."""
    is_in_order = layout.src_column == 0 and layout.dst_column == 1 and layout.num_columns <= 3
    return is_in_order and layout.tag == 0 and layout.delimiter == 0 and layout.is_text == 0


@inner
def parse_plain_row(place, layout):
    """Parse "1 2" or "1 2 3" and a newline, as nearly all rows are, in half the time; an end of -1: it is not so."""
    src, end = parse_digits(place)
    dst, row_end = parse_digits(end + 1)
    is_bad = end == place or row_end == end + 1 or not is_blank(byte_at(end), 0)
    is_bad |= min(src, dst) < layout.first_id or max(src, dst) > layout.last_id
    weight = 0
    if layout.num_columns == 3 and not is_bad:
        end = row_end + 1
        weight, row_end = parse_digits(end)
        is_bad = row_end == end or not is_blank(byte_at(end - 1), 0) or weight < 0 or weight > LARGEST_EXACT
    is_bad |= byte_at(row_end) != NEWLINE
    return -1 if is_bad else row_end + 1, src - layout.first_id, dst - layout.first_id, weight


@inline
def is_row(byte, layout):
    return byte != NEWLINE and byte != layout.comment and byte != layout.other_comment


@inline
def skip_tag(place, layout):
    """Return the start of the first field and a status."""
    if layout.tag == 0:
        return place, FINE
    if byte_at(place) != layout.tag or not ends_field(byte_at(place + 1), 0):
        return place, BAD_TAG
    place = skip_blanks(place + 1, layout.delimiter)
    return place, BAD_COLUMNS if byte_at(place) == NEWLINE else FINE


@inline
def leave_field(place, delimiter, is_last):
    """Return the start of the next field, or of the next line after the last field, and a status."""
    if place < 0:  # a quote that nothing closes
        return place, BAD_COLUMNS
    place = skip_blanks(place, delimiter)
    is_end = byte_at(place) == NEWLINE
    if is_last:
        return place + 1, FINE if is_end else BAD_COLUMNS
    if delimiter != 0 and not is_end:
        is_end = byte_at(place) != delimiter
        place = skip_blanks(place + 1, delimiter)
        is_end |= byte_at(place) == NEWLINE
    return place, BAD_COLUMNS if is_end else FINE


@inner
def parse_id(place, layout):
    """Return the end of an id, a status and, when ids are numbers, its value from 0 on."""
    if layout.is_text != 0:
        end = field_end(place, layout.delimiter)
        return end, BAD_ID if is_bad_label(place, end) else FINE, 0
    value, end = parse_digits(place)
    if end == place or value < 0 or not ends_field(byte_at(end), layout.delimiter):
        return place, BAD_ID, 0
    if value < layout.first_id or value > layout.last_id:
        return place, OUT_OF_RANGE, 0
    return end, FINE, value - layout.first_id


@inline
def is_bad_label(place, end):
    """Say whether a token is empty, or a number with a minus sign or a point: a slip far more often than a name."""
    is_negative = byte_at(place) == 45
    num_digits, num_points = 0, 0
    for i in range(place + is_negative, end):
        byte = byte_at(i)
        num_digits += byte >= 48 and byte <= 57
        num_points += byte == 46
    is_number = num_digits > 0 and num_digits + num_points + is_negative == end - place and num_points <= 1
    return end == place or (is_number and (is_negative or num_points == 1))


@inner
def parse_weight(place, delimiter):
    """Return the end of a weight, its kind and its value, which is NaN if it could not be read."""
    value, end, kind = parse_number(place)
    if kind == UNREAD or not ends_field(byte_at(end), delimiter):
        return field_end(place, delimiter), UNREAD, np.nan
    return end, kind, value
