# SPDX-License-Identifier: Apache-2.0
"""Parse text with one vertex a line: numbers to skip, then neighbours, each perhaps with a weight.

Thread mapping: thread t parses the lines of ``cuts[t]:cuts[t + 1]``, counts the neighbours of each line from
``first_lines[t]`` on, and writes neighbours from ``cuts[t] // 2`` on: a number and the blank after it take two bytes at
least, so no two threads write the same place and none is atomic.  Lines without a neighbour to
count are `COMMENT` or `EMPTY`, since an empty line may be a vertex or the end of the file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.backends.cpu.compiler import compiled
from shoal.backends.cpu.intrinsics import nonnegative
from shoal.backends.cpu.kernels.text import (
    NEWLINE,
    QUOTE,
    UNREAD,
    WHOLE,
    byte_at,
    ends_field,
    field_end,
    inline,
    next_line,
    parse_digits,
    parse_number,
    skip_blanks,
)

# Why a thread stopped.
FINE, BAD_SKIPPED, BAD_ID, OUT_OF_RANGE, NO_WEIGHT, BAD_WEIGHT = range(6)
# Lengths of lines that are no ordinary vertex.
COMMENT, EMPTY = -1, -2
# Columns of a thread's report.
STATUS, POSITION, NUM_NEIGHBOURS, NUM_LINES, NUM_UNREAD, NUM_DECIMAL = range(6)


class LineLayout(NamedTuple):
    """What stands in a line; every field is an integer."""

    comment: int
    num_skipped: int  # sizes and weights of the vertex before its neighbours
    has_weights: int
    last_id: int


@compiled()
def parse_adjacency(thread, num_threads, text, cuts, first_lines, layout, lengths, neighbours, weights, bounds, report):
    """Parse one thread's lines; ids are from 1 in the text and from 0 in ``neighbours``.

    A weight that a library must read is NaN and has the (start, end) of its token in ``bounds``.
    """
    base = np.int64(text.ctypes.data)
    place, end = base + cuts[thread], base + cuts[thread + 1]
    line, out = nonnegative(first_lines[thread]), nonnegative(cuts[thread] // 2)
    first_out, status = out, FINE
    num_unread, num_decimal = 0, 0
    while place < end and status == FINE:
        place = skip_blanks(place, 0)
        if byte_at(place) == layout.comment or byte_at(place) == NEWLINE:
            lengths[line] = EMPTY if byte_at(place) == NEWLINE else COMMENT
            place = next_line(place)
            line += 1
            continue
        first_of_line = out
        place, status = skip_numbers(place, layout.num_skipped)
        while status == FINE and byte_at(place) != NEWLINE:
            neighbour, token_end = parse_digits(place)
            status = id_status(neighbour, place, token_end, layout.last_id)
            if status != FINE:
                break
            neighbours[out] = neighbour - 1
            place = skip_blanks(token_end, 0)
            if layout.has_weights != 0:
                if byte_at(place) == NEWLINE:
                    status = NO_WEIGHT
                    break
                if byte_at(place) == QUOTE:  # a field that ends elsewhere, or nowhere in the line
                    status = BAD_WEIGHT
                    break
                weight, token_end, kind = parse_number(place)
                num_decimal += kind != WHOLE
                if kind == UNREAD or not ends_field(byte_at(token_end), 0):
                    weight, token_end = float("nan"), field_end(place, 0)
                    bounds[out, 0], bounds[out, 1] = place - base, token_end - base
                    num_unread += 1
                weights[out] = weight
                place = skip_blanks(token_end, 0)
            out += 1
        if status == FINE:
            lengths[line] = out - first_of_line
            line += 1
            place += 1
    notes = (status, place - base, out - first_out, line - first_lines[thread], num_unread, num_decimal)
    for i in range(len(notes)):
        report[thread, i] = notes[i]


@inline
def skip_numbers(place, count):
    """Skip the numbers that belong to the vertex itself; return where its neighbours begin and a status."""
    for _ in range(count):
        _, end = parse_digits(place)
        if end == place or not ends_field(byte_at(end), 0):
            return place, BAD_SKIPPED
        place = skip_blanks(end, 0)
    return place, FINE


@inline
def id_status(neighbour, place, end, last_id):
    if end == place or neighbour < 0 or not ends_field(byte_at(end), 0):
        return BAD_ID
    return OUT_OF_RANGE if neighbour < 1 or neighbour > last_id else FINE
