# SPDX-License-Identifier: Apache-2.0
"""The folder of a call's checkpoints: snapshots of the run under way, and what the runs before it have left.

    call.json               what was called, with which arguments
    run-0, run-1, …         fields of the runs of the call that have ended
    snapshot-12             the run under way between two supersteps; the last `NUM_KEPT` of them are there

Each of the folders has ``manifest.json``, with a checksum of its own, and a file of arrays for each process that
wrote it.  A folder is written under another name, all of it to the disk, and renamed: it is there whole or not at all,
whenever a machine stops.  Nothing is read by names that a file contains.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shoal.backends.base import Ranks
from shoal.errors import FileFormatError, ShoalError
from shoal.io import trees
from shoal.io.array_files import read_arrays, write_arrays

VERSION = 1
NUM_KEPT = 2  # snapshots: if the last one turns out to be damaged there is one before it
MANIFEST = "manifest.json"
_ENTRY = re.compile(r"(run|snapshot)-(\d+)")
_PARTIAL = ".partial"

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Content:
    """What a folder of one snapshot or run has: facts, and the arrays of each process that wrote it."""

    facts: dict[str, Any]
    pieces: list[Arrays]


class CheckpointFolder:
    """The files of one call, as the processes of a job write and read them together."""

    def __init__(self, path: str, ranks: Ranks) -> None:
        self.path, self.ranks = os.path.abspath(path), ranks

    def entries(self, kind: str) -> list[int]:
        """Return the numbers of the snapshots, or runs, that are there, ascending."""
        names = os.listdir(self.path) if os.path.isdir(self.path) else []
        matches = filter(None, map(_ENTRY.fullmatch, names))
        return sorted(int(match[2]) for match in matches if match[1] == kind)

    def name_of(self, kind: str, number: int) -> str:
        """Return the path of a snapshot or run."""
        return os.path.join(self.path, f"{kind}-{number}")

    def write(self, kind: str, number: int, facts: dict[str, Any], arrays: Iterable[tuple[str, np.ndarray]]) -> None:
        """Write a snapshot or run: every process its own arrays, one of them what all have in common."""
        ranks, target = self.ranks, self.name_of(kind, number)
        unfinished = target + _PARTIAL
        try:
            token = ""
            if ranks.rank == 0:
                shutil.rmtree(unfinished, ignore_errors=True)
                os.mkdir(unfinished)
                token = secrets.token_hex(8)
            token = ranks.gather_text(token)[0]
            entry = ranks.do(lambda: write_arrays(_piece(unfinished, ranks.rank), token, ranks.rank, arrays))
            entries = [json.loads(text) for text in ranks.gather_text(json.dumps(entry))]
            if ranks.rank == 0:
                write_json(os.path.join(unfinished, MANIFEST), {"token": token, "pieces": entries, "facts": facts})
                sync_folder(unfinished)
                shutil.rmtree(target, ignore_errors=True)
                os.rename(unfinished, target)
                sync_folder(self.path)
            ranks.gather_text("")  # nobody goes on before it is there
        except OSError as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise ShoalError(
                f"checkpoint={self.path!r} cannot be written: {error.strerror or error}; what was there is as it was"
            ) from error

    def read(self, kind: str, number: int) -> Content:
        """Return a snapshot or run, or say what is wrong with it."""
        path = self.name_of(kind, number)
        manifest = read_json(os.path.join(path, MANIFEST))
        try:
            token, facts, entries = manifest["token"], manifest["facts"], manifest["pieces"]
            pieces = [
                self.ranks.do(partial(read_arrays, _piece(path, rank), token, rank, entry))
                for rank, entry in enumerate(entries)
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise FileFormatError(f"{path}: the manifest is not that of a checkpoint: {error}") from None
        return Content(facts, pieces)

    def remove(self, kind: str, numbers: Iterable[int]) -> None:
        """Remove snapshots or runs, and what was left of those that were never whole."""
        if self.ranks.rank == 0:
            for number in numbers:
                shutil.rmtree(self.name_of(kind, number), ignore_errors=True)

    def remove_all(self) -> None:
        """Remove all that a call has left: it has ended."""
        if self.ranks.rank != 0 or not os.path.isdir(self.path):
            return
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            if _ENTRY.fullmatch(name.removesuffix(_PARTIAL)):
                shutil.rmtree(path, ignore_errors=True)
            elif name == CALL:
                os.unlink(path)
        with contextlib.suppress(OSError):  # there is something of the user's
            os.rmdir(self.path)


CALL = "call.json"


def how_to_go_on(path: str, command: str = "shoal resume") -> str:
    """Return in words how the call of a folder is resumed."""
    try:
        is_command = read_json(os.path.join(path, CALL)).get("command") is not None
    except FileFormatError as error:
        return str(error)
    if is_command:
        return f"go on from its last checkpoint with: {command} {path}"
    return f"go on by making the same call again, with checkpoint={path!r} and resume=True"


def _piece(folder: str, rank: int) -> str:
    return os.path.join(folder, f"rank-{rank}.arrays")


def write_json(path: str, content: dict[str, Any]) -> None:
    """Write a file that says by its checksum whether it is whole, and to the disk itself."""
    content = {"version": VERSION, **content}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content | {"checksum": _checksum(content)}, file)
        file.flush()
        os.fsync(file.fileno())


def read_json(path: str) -> dict[str, Any]:
    """Return what `write_json` wrote, or say what is wrong with it."""
    try:
        content = trees.read_json(path, "a part of a checkpoint")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(content, dict) or "checksum" not in content:
        raise FileFormatError(f"{path}: is not a part of a checkpoint")
    if content.get("version") != VERSION:
        raise FileFormatError(f"{path}: is of version {content.get('version')}; this shoal reads version {VERSION}")
    if content.pop("checksum") != _checksum(content):
        raise FileFormatError(f"{path}: is damaged (its checksum does not fit)")
    return content


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def sync_folder(path: str) -> None:
    """Let the names in a folder reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
