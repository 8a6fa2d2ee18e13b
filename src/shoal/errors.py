# SPDX-License-Identifier: Apache-2.0
"""The exceptions shoal raises, and the checks that raise them.

Every message names the argument, the value it had and what is allowed.  The command line prints such a message as one
line and exits with status 2; anything else that escapes is a defect of shoal.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable
from typing import Any

#: A few lines of a terminal.  What is quoted from a file may be anything, and as long as the file.
LONGEST_MESSAGE = 1000


class ShoalError(Exception):
    """Base of everything shoal raises on purpose; its message is one printable line, cut in the middle if very long."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_as_line(str(message)))


def _as_line(text: str) -> str:
    """Return a text whose line breaks are blanks and whose other unprintable characters are escaped."""
    if not text.isprintable():
        spaced = re.sub(r"[\t\r\n]+", " ", text.strip())
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in spaced)
    if len(text) <= LONGEST_MESSAGE:
        return text
    end = LONGEST_MESSAGE // 4
    return f"{text[: LONGEST_MESSAGE - end - 5]} ... {text[-end:]}"


class ArgumentError(ShoalError, ValueError):
    """An argument has a value that is not allowed."""


class WholeGraphError(ArgumentError):
    """An algorithm needs all edges of a graph of which there are parts only."""


class GraphError(ShoalError, ValueError):
    """Arrays or options do not make a graph."""


class FileFormatError(ShoalError, ValueError):
    """A file is not what its format says: the message names the file, the line and the reason."""


class ProgramError(ShoalError, TypeError):
    """A user's program or rule cannot be compiled, or failed in a run: the message names the rule and the line."""

    def __init__(self, message: str = "") -> None:
        Exception.__init__(self, message)  # shows lines of the program


class OutOfMemoryError(ShoalError, MemoryError):
    """A run needs more memory than it may use: the message says how much."""


class Allocating:
    """Say what did not fit, where memory runs out: ``with Allocating("the fields of", "BFS"):``."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def __enter__(self) -> None:
        """Begin to watch."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        """Turn a bare MemoryError into one that says what was allocated."""
        if isinstance(error, MemoryError) and not isinstance(error, ShoalError):
            detail = f" ({error})" if str(error) else ""
            raise OutOfMemoryError(f"{' '.join(self.words)} do not fit in memory{detail}") from error


class ConvergenceError(ShoalError, ArithmeticError):
    """An iteration ended without reaching its tolerance, or a count left the range of its type."""


class ValidationError(ShoalError, AssertionError):
    """A result does not have the properties it must have."""


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    choices = list(allowed)
    if isinstance(value, str) and value in choices:
        return value
    message = f"{name}={value!r} is not known; allowed: {', '.join(choices)}"
    close = difflib.get_close_matches(str(value), choices, n=1)
    if close:
        message += f" (did you mean {close[0]!r}?)"
    raise ArgumentError(message)


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number from ``low`` to ``high`` (both allowed)."""
    limits = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    if isinstance(value, bool):
        raise ArgumentError(f"{name}={value!r} is not allowed; it must be {limits}")
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name}={value!r} is not allowed; it must be {limits}") from None
    if number < low or (high is not None and number > high):
        raise ArgumentError(f"{name}={number} is out of range; it must be {limits}")
    return number


def check_number(
    name: str, value: Any, low: float, high: float = float("inf"), *, open_low: bool = False, open_high: bool = False
) -> float:
    """Return ``value`` as a float if it lies between ``low`` and ``high``; NaN never does."""
    edges = ("above" if open_low else "at least") + f" {low:g}"
    if high != float("inf"):
        edges += (" and below" if open_high else " and at most") + f" {high:g}"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name}={value!r} is not allowed; it must be a number {edges}") from None
    is_low = number > low if open_low else number >= low
    is_high = number < high if open_high else number <= high
    if not (is_low and is_high):
        raise ArgumentError(f"{name}={value!r} is out of range; it must be a number {edges}")
    return number
