# SPDX-License-Identifier: Apache-2.0
"""Programs: what an author states about an algorithm.

A `Program` declares its state (`Vertex`, `Scalar`, `Constant`), its rules, and its phases.  A phase's ``step`` is
called once, with a stand-in for the frontier, and records operators (`shoal.operators`); the recording is compiled and
runs without Python.  How state is split over devices, sent and merged follows from the declarations alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ProgramError
from shoal.rules import RESERVED, Rule


@dataclass(frozen=True)
class Combiner:
    """How two values of one element become one: by name, with the value that changes nothing."""

    name: str
    numpy_function: Any

    def identity(self, dtype: np.dtype) -> Any:
        """Return the element that combining leaves unchanged."""
        if self.name == "add":
            return dtype.type(0)
        limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        return dtype.type(limits.max if self.name == "minimum" else limits.min)


minimum = Combiner("minimum", np.minimum)
maximum = Combiner("maximum", np.maximum)
add = Combiner("add", np.add)

#: Stands for the width of the graph's vertex ids, where a field's dtype is asked for.
VERTEX_ID = "vertex"


@dataclass(frozen=True)
class Vertex:
    """State of every vertex.

    Parameters
    ----------
    dtype : element type, or ``"vertex"`` for vertex ids
    fill : value at the start
    combine : how a value computed elsewhere is merged; None for state that is never sent
    width : elements per vertex; with None the array has one dimension
    """

    dtype: str
    fill: float | int = 0
    combine: Combiner | None = None
    width: int | None = None


@dataclass(frozen=True)
class Scalar:
    """A value carried from superstep to superstep; devices' values are combined at the end of each."""

    dtype: str
    fill: float | int = 0
    combine: Combiner = add


@dataclass(frozen=True)
class Constant:
    """A number or an array that a run is given and that does not change (a cutoff, targets, a personalization)."""

    dtype: str
    is_array: bool = False


Field = Vertex | Scalar | Constant


@dataclass(frozen=True)
class Phase:
    """One loop of a program.

    Parameters
    ----------
    step : records the operators of a superstep and returns the next frontier (or None)
    until : a rule over scalars and constants; the phase ends when it is true, or when the frontier is empty
    begin : ``"start"`` (what `Program.start` returned), ``"all"`` (every vertex), or ``"replay"``: the frontiers kept
        by the phase before, last first
    keep : keep the frontiers of all supersteps, for a later phase's replay
    joins : how often one vertex can join a frontier during the phase, if that is bounded (BFS: 1); else None
    max_supersteps : end after so many
    """

    step: Callable[[Any], Any]
    until: Rule | None = None
    begin: str = "start"
    keep: bool = False
    joins: int | None = None
    max_supersteps: int | None = None

    def __post_init__(self) -> None:
        if self.begin not in ("start", "all", "replay"):
            raise ProgramError(f"Phase: begin={self.begin!r} is not known; allowed: start, all, replay")
        for name, low in (("joins", 1), ("max_supersteps", 0)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < low):
                raise ProgramError(
                    f"Phase: {name}={value!r} is not allowed; it must be a whole number of at least {low}"
                )
        if self.keep and self.joins is None:
            raise ProgramError("Phase: keep=True needs joins=, a bound on how often a vertex joins a frontier")


class Program:
    """Base of all programs; subclass it, declare fields and rules, and define ``step`` (or ``phases``).

    Examples
    --------
    >>> import shoal
    >>> from shoal import Program, Vertex, advance, atomic, minimum, rule
    >>> class Hops(Program):
    ...     level = Vertex("int32", fill=2**31 - 1, combine=minimum)
    ...
    ...     def start(self, source):
    ...         self.level[source] = 0
    ...         return [source]
    ...
    ...     @rule
    ...     def discover(src, dst, edge, level):
    ...         return atomic.min(level, dst, level[src] + 1)
    ...
    ...     def step(self, frontier):
    ...         return advance(frontier, self.discover)
    >>> g = shoal.Graph.from_edges([0, 1], [1, 2])
    >>> shoal.run(Hops(), g, source=0).level.tolist()
    [0, 1, 2]
    """

    def start(self, **arguments: Any) -> Iterable[int] | None:
        """Set initial values (fields are arrays here) and return the first frontier; None means every vertex."""
        if arguments:
            raise ProgramError(f"{type(self).__name__}.start takes no argument, but got {', '.join(arguments)}")
        return None

    def step(self, frontier: Any) -> Any:
        """Record one superstep."""
        raise ProgramError(f"{type(self).__name__} defines neither step nor phases")

    def phases(self) -> list[Phase]:
        """Return the phases, in order."""
        return [Phase(self.step)]

    def fields(self) -> dict[str, Field]:
        """Return the declared fields by name; an instance may redeclare one in its ``__init__``."""
        found: dict[str, Field] = {}
        for cls in reversed(type(self).__mro__):
            for name, value in vars(cls).items():
                if isinstance(value, (Vertex, Scalar, Constant)):
                    found[name] = value
        for name, value in vars(self).items():
            if isinstance(value, (Vertex, Scalar, Constant)):
                found[name] = value
        clash = found.keys() & set(RESERVED)
        if clash:
            raise ProgramError(f"{type(self).__name__}.{min(clash)}: the name is reserved; reserved: {RESERVED}")
        return found
