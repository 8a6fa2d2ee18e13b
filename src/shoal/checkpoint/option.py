# SPDX-License-Identifier: Apache-2.0
"""``checkpoint=``, ``checkpoint_every=`` and ``resume=`` of every algorithm and of `shoal.run`.

With ``checkpoint="folder"`` a call keeps there what it has done, every so many supersteps (``checkpoint_every=10``)
or every so often (``"30s"``, ``"5min"``; ``"60s"`` if nothing is said).  A call that ends removes the folder's files.
If it does not end, because the machine stopped or it was interrupted, the same call with ``resume=True`` goes on from
the last checkpoint, on other devices, too, and gives the same result.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from shoal.checkpoint.call import Call
from shoal.checkpoint.pace import DEFAULT, Pace
from shoal.checkpoint.record import Record, recording
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.placement import Placed

NAMES = ("checkpoint", "checkpoint_every", "resume")

#: The command that makes a call, and the folder in which it was given, so that it can be made again.
command: ContextVar[dict[str, Any] | None] = ContextVar("shoal_command", default=None)


def keeping(
    call: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> AbstractContextManager[Record | None]:
    """Take the three arguments out of a call's options, and return the context in which its runs are kept."""
    given = {name: options.pop(name) for name in NAMES if name in options}
    path, resumes = given.get("checkpoint"), given.get("resume", False)
    if not isinstance(resumes, bool):
        raise ArgumentError(f"resume={resumes!r} is not allowed; it must be True or False")
    if path is None:
        for name in given.keys() - {"checkpoint"}:
            if given[name] not in (None, False):
                raise ArgumentError(f"{name}={given[name]!r} needs checkpoint=, the folder")
        return nullcontext()
    every = given.get("checkpoint_every")
    pace = Pace(DEFAULT if every is None else every)
    try:
        folder = os.fspath(path)
    except TypeError:
        raise ArgumentError(f"checkpoint={path!r} is not allowed; it must be the path of a folder") from None
    return recording(Record(str(folder), pace, _call(call, arguments, options), resumes=resumes))


def _call(call: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """Return what is called, with its arguments by name; which graph it is becomes known later."""
    bound = inspect.signature(call).bind(*arguments, **options)
    bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if inspect.signature(call).parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named |= value
        elif not isinstance(value, (Graph, Placed)):
            named[name] = value
    return Call(call.__name__, named, command.get())
