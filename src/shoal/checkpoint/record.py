# SPDX-License-Identifier: Apache-2.0
"""Record: what a call with ``checkpoint=`` keeps of its runs, and finds again when it is resumed.

A call makes one run of a program, or several, always in the same order.  The record counts them.  What a run leaves
is kept when it has ended; of the run under way there are snapshots.  When the call is made again, runs that have ended
give what they left, and the one that was under way goes on from its last whole snapshot; if that is damaged, from the
one before it, and without any from its begin.

Processes of a job must agree on what they read: one of them decides, and tells.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends.base import Capture, Position, Ranks
from shoal.checkpoint.call import Call
from shoal.checkpoint.folder import (
    CALL,
    NUM_KEPT,
    Arrays,
    CheckpointFolder,
    Content,
    how_to_go_on,
    read_json,
    write_json,
)
from shoal.checkpoint.pace import Pace
from shoal.errors import ArgumentError, FileFormatError, ShoalError
from shoal.machine import tell_job

logger = logging.getLogger("shoal")

_LOCK = "lock"
_FIELD, _SCALAR, _KEPT = "field ", "scalar ", "kept "  # before the names of arrays


class EndedEarlyError(ShoalError):
    """A run was asked to end and has left a checkpoint: the message says how to go on."""


@dataclass
class Begin:
    """Where a run of a call begins: with the fields an earlier process left, all of it over or a phase under way."""

    fields: Arrays
    phase: int | None = None  # None: the run has ended
    position: Position | None = None
    seconds: float = 0.0  # that it has taken before


class Record:
    """The runs of one call, one after the other."""

    def __init__(self, path: str, pace: Pace, call: Call, *, resumes: bool) -> None:
        self.path, self.pace, self.call, self.resumes = path, pace, call, resumes
        self.run = -1  # number of the run under way
        self.seconds = 0.0  # that writing has taken
        self.num_written = 0
        self.is_ending = False  # somebody asked the call to end as soon as there is a snapshot
        self._under_way: Any = None
        self._folder: CheckpointFolder | None = None
        self._lock: int | None = None
        self._last_whole: int | None = None  # the snapshot to go on from

    # Beginning

    def begin_run(self, program: str, graph: Any, ranks: Ranks) -> Begin | None:
        """Count a run, and return where it begins if that is not its begin."""
        self.run += 1
        if self._folder is None:
            self._open(graph, ranks)
        assert self._folder is not None
        self.pace.begin_run()
        if not self.resumes:
            return None
        if self.run in self._folder.entries("run"):
            content = self._read_if_whole("run", self.run)
            if content is not None:
                self._check_program(content, program)
                return Begin(_fields(content, graph.num_vertices), seconds=content.facts["seconds"])
        self.resumes = False  # what follows was not begun before, but for this run's own snapshots
        begin = self._find_snapshot(program, graph.num_vertices)
        self._drop_what_follows()
        return begin

    def _open(self, graph: Any, ranks: Ranks) -> None:
        """Take the folder, when the first run says which graph and processes there are."""
        folder = self._folder = CheckpointFolder(self.path, ranks)
        self.call.add_graph(graph)
        problem = ""
        if ranks.rank == 0:
            try:
                self._take(folder)
            except ShoalError as error:
                problem = str(error)
        problem = ranks.gather_text(problem, is_opening=True)[0]
        if problem:
            raise ArgumentError(problem)

    def _take(self, folder: CheckpointFolder) -> None:
        import fcntl  # not on every system, and asked for by few

        path, place = folder.path, os.path.join(folder.path, CALL)
        if self.resumes and not os.path.exists(place):
            raise ArgumentError(f"checkpoint={self.path!r} has nothing to resume: no call was begun there, or it ended")
        try:
            os.makedirs(path, exist_ok=True)
            self._lock = os.open(os.path.join(path, _LOCK), os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise ArgumentError(f"checkpoint={self.path!r} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it goes with the process, however that ends
        except OSError:
            raise ArgumentError(f"checkpoint={self.path!r} is used by another call at this moment") from None
        if self.resumes:
            self.call.check_same(path, read_json(place))
        elif os.path.exists(place):
            raise ArgumentError(f"checkpoint={self.path!r} has the checkpoint of a call that did not end; resume it, "
                                "or name another folder")  # fmt: skip
        else:
            write_json(place, self.call.to_dict())
        tell_job("checkpoint", path)

    def _read_if_whole(self, kind: str, number: int) -> Content | None:
        """Return what is in a folder; None, and say so, if any process finds that it is damaged."""
        assert self._folder is not None
        content, problem = None, ""
        try:
            content = self._folder.read(kind, number)
        except FileFormatError as error:
            problem = str(error)
        problems = [text for text in self._folder.ranks.gather_text(problem) if text]
        if problems:
            logger.warning("%s; it is not used", problems[0])
            return None
        return content

    def _find_snapshot(self, program: str, num_vertices: int) -> Begin | None:
        """Return where the run goes on: from its last snapshot that is whole."""
        assert self._folder is not None
        entries = json.loads(self._folder.ranks.gather_text(json.dumps(self._folder.entries("snapshot")))[0])
        for number in reversed(entries):
            content = self._read_if_whole("snapshot", number)
            if content is None or content.facts["run"] != self.run:
                continue
            self._check_program(content, program)
            facts = content.facts
            self._last_whole = number
            logger.info("%s goes on from superstep %d", program, facts["position"]["superstep"])
            return Begin(
                _fields(content, num_vertices), facts["phase"], _position(content, num_vertices), facts["seconds"]
            )
        return None

    def _check_program(self, content: Content, program: str) -> None:
        if content.facts["program"] != program:
            raise ArgumentError(f"checkpoint={self.path!r} is of another program: run {self.run} of the call was "
                                f"{content.facts['program']}, and now is {program}")  # fmt: skip

    def _drop_what_follows(self) -> None:
        """Remove what cannot be used any more, so that it is not taken for something else later."""
        assert self._folder is not None
        self._folder.remove("run", [n for n in self._folder.entries("run") if n >= self.run])
        stale = [n for n in self._folder.entries("snapshot") if n != self._last_whole]
        self._folder.remove("snapshot", stale)
        self._folder.ranks.gather_text("")

    # Keeping

    def span(self, run: Any) -> tuple[int, int | None]:
        """Return after how many supersteps, and at which clock, a run is to come back; it may be asked to end, too."""
        self._under_way = run
        rows, clock = self.pace.span()
        return rows, 0 if self.is_ending else clock

    def end_soon(self) -> None:
        """Let the run under way write a snapshot after this superstep, and end; called by a signal's handler."""
        self.is_ending = True
        if self._under_way is not None:
            self._under_way.come_back_now()

    def save(self, program: str, phase: int, capture: Capture, seconds: float) -> None:
        """Write a snapshot of the run under way; whoever asked the call to end has their way now."""
        assert self._folder is not None
        began = time.monotonic()
        number = max(self._folder.entries("snapshot"), default=-1) + 1
        number = int(self._folder.ranks.gather_text(str(number))[0])
        facts = {"run": self.run, "program": program, "phase": phase, "seconds": seconds,
                 "position": _facts(capture.position)}  # fmt: skip
        self._folder.write("snapshot", number, facts, _arrays(capture))
        self._folder.remove("snapshot", self._folder.entries("snapshot")[:-NUM_KEPT])
        self.num_written += 1
        self.seconds += time.monotonic() - began
        self.pace.saved()
        if self.is_ending:
            raise EndedEarlyError(f"ended as asked; {how_to_go_on(self._folder.path)}")

    def end_run(self, program: str, fields: Arrays, scalars: Arrays, seconds: float) -> None:
        """Keep what a run has left, and drop its snapshots."""
        assert self._folder is not None
        began = time.monotonic()
        is_writer = self._folder.ranks.rank == 0  # all processes have the same
        own = _named(fields.items(), scalars) if is_writer else ()
        facts = {"program": program, "seconds": seconds}
        self._folder.write("run", self.run, facts, own)
        self._folder.remove("snapshot", self._folder.entries("snapshot"))
        self.seconds += time.monotonic() - began

    def close(self, *, has_ended: bool) -> None:
        """Let the folder go; of a call that has ended nothing stays."""
        if self._folder is not None and has_ended:
            if self._folder.ranks.rank == 0 and os.path.isdir(self._folder.path):
                os.unlink(os.path.join(self._folder.path, _LOCK))
            self._folder.remove_all()
        elif self._folder is not None and self._folder.entries("snapshot") and not self.is_ending:
            logger.warning("the call did not end; %s", how_to_go_on(self._folder.path))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _facts(position: Position) -> dict[str, Any]:
    return {
        "superstep": position.superstep,
        "num_visited": position.num_visited,
        "direction": position.direction,
        "has_pulled": position.has_pulled,
        "num_kept": len(position.kept),
        "is_everything": position.frontier is None,
    }


def _arrays(capture: Capture) -> Iterator[tuple[str, np.ndarray]]:
    """Give the arrays of a snapshot one by one, so that there is never more than one copy of a field."""
    position = capture.position
    if capture.ids is not None:
        yield "ids", capture.ids
    if position.frontier is not None:
        yield "frontier", position.frontier
    for number, kept in enumerate(position.kept):
        yield f"{_KEPT}{number}", kept
    yield from _named(capture.fields, capture.scalars)


def _named(fields: Iterable[tuple[str, np.ndarray]], scalars: Arrays) -> Iterator[tuple[str, np.ndarray]]:
    for name, array in scalars.items():
        yield _SCALAR + name, array
    for name, array in fields:
        yield _FIELD + name, array


def _fields(content: Content, num_vertices: int) -> Arrays:
    """Return the fields of all vertices, of which each process has written its own."""
    found: Arrays = {}
    for piece in content.pieces:
        ids = piece.get("ids")
        for key, array in piece.items():
            if key.startswith(_SCALAR) or (key.startswith(_FIELD) and ids is None):
                found[key.partition(" ")[2]] = array
            elif key.startswith(_FIELD):
                empty = np.empty((num_vertices, *array.shape[1:]), array.dtype)
                found.setdefault(key.removeprefix(_FIELD), empty)[ids] = array
    return found


def _position(content: Content, num_vertices: int) -> Position:
    """Return where the run stands, on all processes together."""
    facts = content.facts["position"]
    frontier = None if facts["is_everything"] else _merged(content, "frontier")
    kept = [_merged(content, f"{_KEPT}{number}") for number in range(facts["num_kept"])]
    return Position(facts["superstep"], facts["num_visited"], facts["direction"], facts["has_pulled"], frontier, kept)


def _merged(content: Content, key: str) -> np.ndarray:
    return np.sort(np.concatenate([piece[key] for piece in content.pieces]))


_record: ContextVar[Record | None] = ContextVar("shoal_checkpoint", default=None)


def current_record() -> Record | None:
    """Return what keeps the runs of the call under way, if anything does."""
    return _record.get()


@contextmanager
def recording(record: Record) -> Iterator[Record]:
    """Keep the runs of one call."""
    if _record.get() is not None:
        raise ArgumentError(f"checkpoint={record.path!r}: the call around this one keeps checkpoints already")
    token = _record.set(record)
    has_ended = False
    try:
        yield record
        has_ended = True
    finally:
        _record.reset(token)
        record.close(has_ended=has_ended)
