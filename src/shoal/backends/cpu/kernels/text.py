# SPDX-License-Identifier: Apache-2.0
"""Tokens of text files: blanks, whole numbers, decimal numbers, fields, as compiled code sees them.

A place in a text is an address, and a text ends with a newline, so no loop over a line needs to test for the end.
Addresses rather than an array and an index: an array that is handed on costs an atomic reference count a call.
``delimiter`` is the byte between two fields, or 0 when any run of blanks separates them.  Blanks around a field never
belong to it; a carriage return is a blank, so both kinds of line ends read alike.

A decimal number of at most 2**53 times a power of ten up to 10**22 is exact in one multiplication or division
(Clinger, "How to read floating point numbers accurately", 1990).  Other tokens are left to a library, as `UNREAD`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from shoal.backends.cpu.compiler import compiled, inner
from shoal.backends.cpu.intrinsics import nonnegative, trailing_zeros

NEWLINE, RETURN, TAB, SPACE, QUOTE = 10, 13, 9, 32, 34
MOST_DIGITS = 18  # as many as always fit 64 bits
LARGEST_EXACT = 2**53
POWERS_OF_TEN = tuple(10.0**power for power in range(23))

WHOLE, DECIMAL, UNREAD = 0, 1, 2  # what `parse_number` found

#: For small functions: put into their callers before types are inferred, which takes a quarter off compilation.
inline = inner(inline="always")


@intrinsic
def byte_at(typingctx, address):
    """Return the byte at an address as an int64."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def word_at(typingctx, address):
    """Return the eight bytes at an address, the first lowest."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), codegen


@inline
def is_blank(byte, delimiter):
    return (byte == SPACE or byte == TAB or byte == RETURN) and byte != delimiter  # noqa: SIM109


@inline
def ends_field(byte, delimiter):
    return byte <= SPACE or byte == delimiter


@inner
def skip_blanks(place, delimiter):
    while is_blank(byte_at(place), delimiter):
        place += 1
    return place


@inline
def next_line(place):
    while byte_at(place) != NEWLINE:
        place += 1
    return place + 1


@inner
def parse_digits(place):
    """Return the value of the digits from ``place`` on and where they end; -1 when they are too many."""
    start = place
    value, count = parse_word(place)
    place += count
    while count == 8:
        digit = byte_at(place) - 48
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        place += 1
    if place - start > MOST_DIGITS:
        value = -1
    return value, place


@inner
def parse_word(place):
    """Return the value and number of the digits from ``place`` on, eight at most, all eight bytes at once.

    A byte that is no digit has its top bit set in ``others``, unless one before it is none either.  Digits beside
    each other, then pairs, then fours are put together by one multiplication; what is no digit is shifted out.
    """
    word = word_at(place) ^ np.uint64(0x3030303030303030)
    others = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    count = 8 if others == 0 else np.int64(trailing_zeros(others) >> np.uint64(3))
    if count == 0:
        return 0, 0
    word <<= np.uint64(64 - 8 * count)
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return np.int64(word), count


@inner
def parse_number(place):
    """Return value, end and kind (`WHOLE`, `DECIMAL` or `UNREAD`) of the number that starts at ``place``."""
    sign = byte_at(place)
    if sign == 45 or sign == 43:  # - +
        place += 1
    mantissa, exponent, num_digits, end = parse_mantissa(place)
    kind = WHOLE if end - place == num_digits else DECIMAL
    if num_digits > 0 and (byte_at(end) | 32) == 101:  # e
        power, end = parse_exponent(end + 1)
        exponent += power
        kind = DECIMAL
    if num_digits == 0 or mantissa < 0 or mantissa > LARGEST_EXACT or abs(exponent) > 22:
        return 0.0, end, UNREAD
    power_of_ten = POWERS_OF_TEN[abs(exponent)]
    value = mantissa / power_of_ten if exponent < 0 else mantissa * power_of_ten
    return (-value if sign == 45 else value), end, kind


@inner
def parse_mantissa(place):
    """Return digits with or without a point as (value, exponent, number of digits, end); value -1: too many."""
    start = place
    value = 0
    point = -1
    while True:
        byte = byte_at(place)
        if byte == 46 and point < 0:  # .
            point = place
        elif byte >= 48 and byte <= 57:
            value = value * 10 + byte - 48
        else:
            break
        place += 1
    num_digits = place - start
    exponent = 0
    if point >= 0:
        num_digits -= 1
        exponent = point + 1 - place
    if num_digits > MOST_DIGITS:
        value = -1
    return value, exponent, num_digits, place


@inline
def parse_exponent(place):
    """Return the exponent and its end; an unreadable one is far out of the exact range."""
    sign = byte_at(place)
    if sign == 45 or sign == 43:
        place += 1
    power, end = parse_digits(place)
    if end == place or power < 0 or power > 400:
        power = 1000
    return (-power if sign == 45 else power), end


@inner
def field_end(place, delimiter):
    """Return where the field that starts at ``place`` ends, closing quote included; -1 if that is missing."""
    if byte_at(place) == QUOTE:
        return quoted_end(place)
    end = place
    while True:
        byte = byte_at(place)
        if byte == NEWLINE or byte == delimiter:  # noqa: SIM109
            return end
        place += 1
        if not is_blank(byte, delimiter):
            end = place
        elif delimiter == 0:
            return end


@inline
def quoted_end(place):
    """Return the end of a quoted field; a doubled quote inside stands for one."""
    place += 1
    while True:
        byte = byte_at(place)
        if byte == NEWLINE:
            return -1
        place += 1
        if byte == QUOTE:
            if byte_at(place) != QUOTE:
                return place
            place += 1


@compiled()
def count_lines(thread, num_threads, text, cuts, counts):
    """Count the newlines of each thread's part ``cuts[thread]:cuts[thread + 1]`` into ``counts[thread]``."""
    count = 0
    for position in range(cuts[thread], cuts[thread + 1]):
        count += text[nonnegative(position)] == NEWLINE
    counts[thread] = count


@compiled()
def copy_tokens(text, starts, ends, offsets, tokens):
    """Copy the bytes ``starts[i]:ends[i]`` of every token one after another; a quoted token without its quotes.

    Return the number of bytes written; ``offsets`` gets the start of each token and the end of the last.
    """
    size = 0
    for token in range(len(starts)):
        offsets[token] = size
        start, end = starts[token], ends[token]
        is_quoted = end > start and text[start] == QUOTE
        position = start + 1 if is_quoted else start
        end = end - 1 if is_quoted else end
        while position < end:
            byte = text[position]
            tokens[size] = byte
            size += 1
            position += 2 if is_quoted and byte == QUOTE else 1
    offsets[len(starts)] = size
    return size
