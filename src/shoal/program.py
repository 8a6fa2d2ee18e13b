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
from shoal.values import as_dtype, as_number, shown


@dataclass(frozen=True)
class Combiner:
    """How two values of one element become one: by name, with the value that changes nothing.

    `first` keeps what is there, and takes another value only where there is none: where the field is as it was filled.
    """

    name: str

    def identity(self, dtype: np.dtype, fill: Any = 0) -> Any:
        """Return the element that combining leaves unchanged; `first` has none but the field's ``fill``."""
        if self.name in ("add", "bit_or"):
            return dtype.type(0)
        if self.name == "first":
            return dtype.type(fill)
        if dtype.kind == "f":
            return dtype.type(np.inf if self.name == "minimum" else -np.inf)
        return dtype.type(np.iinfo(dtype).max if self.name == "minimum" else np.iinfo(dtype).min)


minimum = Combiner("minimum")
maximum = Combiner("maximum")
add = Combiner("add")
bit_or = Combiner("bit_or")
first = Combiner("first")
_COMBINERS = (minimum, maximum, add, bit_or, first)

#: Stands for the width of the graph's vertex ids, where a field's dtype is asked for.
VERTEX_ID = "vertex"


@dataclass(frozen=True)
class Vertex:
    """State of every vertex.

    Parameters
    ----------
    dtype : element type, or ``"vertex"`` for vertex ids
    fill : value at the start
    combine : how values that several devices computed for one vertex become one: `minimum`, `maximum`, `add`, `bit_or`,
        `first`, or a rule over ``vertex`` and ``value`` that merges the value and says whether that changed anything;
        needed only for what a push writes at ``dst``, or a rule anywhere
    width : elements per vertex; with None the array has one dimension
    """

    dtype: str
    fill: float | int = 0
    combine: Combiner | Rule | None = None
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
        if not callable(self.step):
            raise ProgramError(f"Phase: step={self.step!r} is not allowed; it must be a method that records operators")
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
        """Return the declared fields by name, checked; an instance may redeclare one in its ``__init__``."""
        found: dict[str, Field] = {}
        for owner in (*reversed(type(self).__mro__), self):
            for name, value in vars(owner).items():
                if isinstance(value, (Vertex, Scalar, Constant)):
                    found[name] = value
        for name, declared in found.items():
            place = f"{type(self).__name__}.{name}"
            _check_name(place, name)
            _check_declaration(place, declared)
            if not isinstance(declared, Constant) and getattr(self, name) is not declared:
                raise ProgramError(f"{place} is declared as a {type(declared).__name__} and then replaced by "
                                   f"{shown(getattr(self, name))}; start() is where it gets its values")  # fmt: skip
        return found


def _check_name(place: str, name: str) -> None:
    if name in RESERVED:
        raise ProgramError(f"{place}: the name is reserved; reserved: {', '.join(RESERVED)}")
    if name == "stats" or hasattr(Program, name):
        owner = "the result's statistics" if name == "stats" else "every program"
        raise ProgramError(f"{place}: the name belongs to {owner}; give the field another")


def _check_declaration(place: str, declared: Field) -> None:
    """Refuse a field of no number's type, or whose fill, width or combiner cannot be."""
    # Ids have 32 or 64 bits; whether a fill fits is asked again when it is known (`check_vertex_fills`).
    dtype = np.dtype(np.int64) if declared.dtype == VERTEX_ID else as_dtype(place, declared.dtype)
    if isinstance(declared, Constant):
        return
    as_number(f"{place}: fill", declared.fill, dtype)
    _check_combiner(place, declared, dtype)
    width = getattr(declared, "width", None)
    if width is not None and (not isinstance(width, int) or isinstance(width, bool) or width < 1):
        raise ProgramError(f"{place}: width={width!r} is not allowed; it must be a whole number of at least 1, or None")


def _check_combiner(place: str, declared: Vertex | Scalar, dtype: np.dtype) -> None:
    combine = declared.combine
    if isinstance(declared, Scalar):
        if combine not in (minimum, maximum, add):
            raise ProgramError(f"{place}: combine={combine!r} is not known; allowed: add, minimum, maximum")
        return
    if combine is not None and combine not in _COMBINERS and not isinstance(combine, Rule):
        names = ", ".join(combiner.name for combiner in _COMBINERS)
        raise ProgramError(f"{place}: combine={combine!r} is not known; allowed: {names}, or a rule")
    if combine is bit_or and dtype.kind not in "iu":
        raise ProgramError(f"{place}: combine=bit_or needs whole numbers, not {dtype}")
    if isinstance(combine, Rule) and declared.width is not None:
        raise ProgramError(f"{place}: combine is a rule; a field of width={declared.width} needs one of the combiners")


def check_vertex_fills(program: Program, fields: dict[str, Field], vertex_dtype: np.dtype) -> None:
    """Refuse fills of ``"vertex"`` fields that the ids of a graph cannot hold."""
    for name, declared in fields.items():
        if not isinstance(declared, Constant) and declared.dtype == VERTEX_ID:
            as_number(f"{type(program).__name__}.{name}: fill", declared.fill, vertex_dtype)


def field_dtype(declared: Field, vertex_dtype: np.dtype) -> np.dtype:
    """Return the element type of a field for a graph with ids of ``vertex_dtype``."""
    return np.dtype(vertex_dtype if declared.dtype == VERTEX_ID else declared.dtype)
