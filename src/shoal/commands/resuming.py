# SPDX-License-Identifier: Apache-2.0
"""``shoal resume``: make a command again that did not end, from its last checkpoint; and what ends one early.

A command with ``--checkpoint`` that is asked to end (SIGTERM) writes a checkpoint first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from shoal.checkpoint.folder import CALL, read_json
from shoal.checkpoint.option import command
from shoal.checkpoint.record import EndedEarlyError, current_record
from shoal.commands.options import expanded
from shoal.errors import ArgumentError, FileFormatError

__all__ = ["TERMINATED", "EndedEarlyError", "MadeAgain", "ending_early", "made_by", "resume"]

TERMINATED = 143  # what a shell reports for a process that SIGTERM ended


class MadeAgain(Exception):  # noqa: N818  # no error: what is to be done next
    """A command is to be made again, with these words."""

    def __init__(self, words: list[str]) -> None:
        self.words = words


@expanded
def resume(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What --checkpoint named.")],
    devices: Annotated[str | None, typer.Option(help="Other devices than the command had.")] = None,
) -> None:
    """Go on with a command from its last checkpoint."""
    path = os.path.abspath(folder)
    if not os.path.exists(os.path.join(path, CALL)):
        raise ArgumentError(f"DIR={folder!r} has nothing to resume: no command was begun there, or it ended")
    made = read_json(os.path.join(path, CALL)).get("command")
    if made is None:
        raise ArgumentError(f"DIR={folder!r} is not of a command but of a call in Python: make the same call again, "
                            f"with checkpoint={folder!r} and resume=True")  # fmt: skip
    try:
        words, place = [str(word) for word in made["words"]], str(made["folder"])
        os.chdir(place)  # the command's paths are as seen from there
    except (KeyError, TypeError) as error:
        raise FileFormatError(f"{os.path.join(path, CALL)}: has no command: {error}") from None
    except OSError as error:
        raise ArgumentError(f"DIR={folder!r}: the folder {place} of the command cannot be entered: "
                            f"{error.strerror}") from None  # fmt: skip
    raise MadeAgain([*words, "--checkpoint", path, "--resume", *([] if devices is None else ["--devices", devices])])


@contextlib.contextmanager
def made_by(words: list[str]) -> Iterator[None]:
    """Let a call know by which command it is made, so that this can be made again."""
    token = command.set({"words": words, "folder": os.getcwd()})
    try:
        yield
    finally:
        command.reset(token)


@contextlib.contextmanager
def ending_early() -> Iterator[None]:
    """Take SIGTERM as a wish to end: behind a checkpoint, if any are kept, and else at once, as after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: Any) -> None:
    record = current_record()
    if record is None or record.is_ending:
        raise SystemExit(TERMINATED)
    record.end_soon()
