# SPDX-License-Identifier: Apache-2.0
"""What a function leaves to NetworkX, as far as its arguments tell: said beside the function, asked by `can_run`.

A refusal takes the arguments by name and returns a reason, or None.  What only the weights of all edges tell is found
when a graph is converted: then the function raises NotImplementedError, at which NetworkX takes over as well.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Sized
from typing import Any

Refusal = Callable[[dict[str, Any]], str | None]


def refusing(*refusals: Refusal) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Attach refusals to a function."""

    def attach(function: Callable[..., Any]) -> Callable[..., Any]:
        function.refusals = refusals  # type: ignore[attr-defined]
        return function

    return attach


def only_default(name: str, default: Any = None) -> Refusal:
    """Refuse every value of an argument but one."""

    def refuse(given: dict[str, Any]) -> str | None:
        value = given[name]
        return None if value is default else f"{name}={reprlib.repr(value)}: shoal has it only with {name}={default!r}"

    return refuse


def number(name: str) -> Refusal:
    """Refuse what is no number, and NaN."""

    def refuse(given: dict[str, Any]) -> str | None:
        value = given[name]
        if value is None or (isinstance(value, (int, float)) and not math.isnan(value)):
            return None
        return f"{name}={reprlib.repr(value)} is not a number of Python"

    return refuse


def weight_is_named(given: dict[str, Any]) -> str | None:
    """Refuse weight functions."""
    return "weight is a function, which compiled code cannot call" if callable(given["weight"]) else None


def iterations_are_counted(given: dict[str, Any]) -> str | None:
    """Refuse limits of iterations that are no whole numbers of at least 0, and no tolerance."""
    limit, tol = given["max_iter"], given["tol"]
    if isinstance(limit, int) and limit >= 0 and tol is not None:
        return None
    return f"max_iter={limit!r}, tol={tol!r}: shoal needs a whole number of at least 0, and a number"


def sources_are_counted(given: dict[str, Any]) -> str | None:
    """Refuse iterators, which can be read once only."""
    return None if isinstance(given["sources"], Sized) else "sources is an iterator"


def both_ends(given: dict[str, Any]) -> str | None:
    """Refuse searches without a source or without a target."""
    return "source or target is None" if given["source"] is None or given["target"] is None else None
