# SPDX-License-Identifier: Apache-2.0
"""What must hold for whatever a reader is given: a valid graph or one line that says what is wrong, and nothing else.

The checks of a graph share no code with shoal.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import numpy as np

import shoal
from shoal.errors import OutOfMemoryError, ShoalError

#: One line of a terminal or two: what is quoted from a file is cut short.
LONGEST_MESSAGE = 1000
#: Above, edges are only counted, not compared with their twins.
_FEW_EDGES = 5000
#: What must never happen while a file is read: events of `sys.audit`.
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect",
              "shutil.rmtree", "ctypes.dlopen")  # fmt: skip
#: What may happen to files in the folder that was opened, and to no others.
_ON_FILES = ("open", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.listdir", "os.truncate")


class BrokenError(AssertionError):
    """A property does not hold."""


class HeardError(BrokenError):
    """Something was done that no reader may do."""


def require(holds: Any, what: str) -> None:
    """Raise unless something holds."""
    if not holds:
        raise BrokenError(what)


def check_refusal(error: BaseException, folder: str) -> None:
    """Check that an error is one of shoal's own: a line that names the file, without memory having run out."""
    if not isinstance(error, ShoalError):
        raise error
    message = str(error)
    require(len(message.splitlines()) == 1, f"the message is not one line: {message!r:.300}")
    require(folder in message, f"the message does not name the file: {message!r:.300}")
    require(len(message) <= LONGEST_MESSAGE + len(folder), f"the message is too long: {message!r:.300}")
    require(message.isprintable(), f"the message is not printable: {message!r:.300}")
    is_late = isinstance(error, OutOfMemoryError) or "llocat" in message or "out of memory" in message
    require(not is_late, f"was refused only when memory ran out: {message!r:.300}")


def check_graph(graph: Any, *, is_mapped: bool = False) -> None:
    """Check the arrays of a graph; one that is mapped is believed that its edges have twins."""
    indptr, indices, weights = graph.indptr, graph.indices, graph.weights
    require(indptr.ndim == indices.ndim == 1, "arrays have one dimension")
    require({indptr.dtype, indices.dtype} <= {np.dtype("i4"), np.dtype("i8")}, "ids are int32 or int64")
    require(indptr[0] == 0 and indptr[-1] == len(indices), "offsets run from 0 to the number of edges")
    require(weights is None or len(weights) == len(indices), "every edge has a weight")
    require(graph.labels is None or len(graph.labels) == graph.num_vertices, "every vertex has a label")
    require(np.all(np.diff(indptr) >= 0), "offsets do not descend")
    require(len(indices) == 0 or 0 <= indices.min() <= indices.max() < graph.num_vertices, "neighbours are vertices")
    if weights is not None:
        require(weights.dtype in (np.int32, np.float32, np.float64), "weights are int32, float32 or float64")
        require(not np.isnan(weights).any(), "weights are numbers")
    if not graph.is_directed and len(indices) <= _FEW_EDGES and not is_mapped:
        _check_twins(indptr, indices, weights)
    if graph.labels is not None and graph.num_vertices:
        require(isinstance(graph.label_of(graph.num_vertices - 1), (str, int)), "labels are words or whole numbers")


def _check_twins(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None) -> None:
    """Check that every edge has one the other way round, with the same weight."""
    src = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    values = [0] * len(src) if weights is None else weights.tolist()
    edges = Counter(zip(src, indices.tolist(), values, strict=True))
    require(all(edges[v, u, w] == count for (u, v, w), count in edges.items()), "every edge has a twin")


class Watch:
    """Listens to `sys.audit`: nothing outside a folder is opened, no code from a file is run, nothing is removed."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.seen: list[str] = []
        self._trusted = (*map(os.path.realpath, (sys.prefix, sys.base_prefix, os.path.dirname(shoal.__file__))),)
        # Where Linux says how much memory is left.
        self._trusted += ("/proc/meminfo", os.path.realpath("/proc/self/cgroup"), "/sys/fs/cgroup/")
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _FORBIDDEN:
            self.seen.append(f"{event}{arguments!r:.100}")
        elif event in _ON_FILES and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(self.folder) and not self._is_trusted(path):
                self.seen.append(f"{event}{arguments!r:.100}")
        elif event == "exec" and getattr(arguments[0], "co_filename", "").startswith("<string>"):
            self.seen.append(f"exec{arguments!r:.100}")

    def _is_trusted(self, path: str) -> bool:
        """Say whether a file is part of shoal or of what it is made with, or tells of the machine's memory."""
        return path.startswith(tuple(filter(None, self._trusted)))

    def begin(self, folder: str) -> None:
        """Listen, until `end`."""
        self.seen, self.folder = [], os.path.realpath(folder)

    def end(self) -> None:
        """Stop listening, and raise if something was heard."""
        self.folder = None
        if self.seen:
            raise HeardError(f"did what no reader may: {self.seen[:3]}")
