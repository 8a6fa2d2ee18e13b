# SPDX-License-Identifier: Apache-2.0
"""What devices tell one another in a superstep, found from what the rules of a step touch.

A device owns some vertices and has their edges; of the vertices at the other ends it holds *copies*.  An operator's
rule works at a vertex that its device owns (the source of a push, the destination of a pull) and may look at, or write
to, a copy at the other end of an edge.  Three exchanges keep that right, each behind the operator that asks for it:

collect    what a push wrote at copies goes to the owners and is combined there, by the field's combiner
mirror     what owners wrote goes to the copies that another operator will read
replicate  fields that a rule reads or writes anywhere (``label[label[vertex]]``): every device has them whole, and what
           changed on one is combined on all

A fourth one precedes a phase: where an operator looks at the lists of neighbours of both ends of an edge (`intersect`)
owners send the *lists* of their vertices to whoever has copies.  As a graph never changes, that is done once.

A copy that was collected keeps its value if the combiner may meet it twice (`minimum`): it then says what has been sent
already.  A copy that adds up, or that its owner sets back, is emptied instead.  Gluon (Dathathri et al., PLDI 2018)
finds its exchanges from the same distinctions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from shoal.accesses import ANYWHERE, find_accesses
from shoal.errors import ProgramError
from shoal.operators import CALLBACKS, Frontier, Operator, Recording, everything
from shoal.program import Combiner, Phase, Vertex
from shoal.rules import Rule

_OWN, _OTHER = "own", "other"
#: Operators beside advance whose rules are at both ends of an edge.
VISITS_EDGES = ("gather", "tally", "intersect")
#: At which side of the edge a rule's vertices are, by operator, role and direction.
_SIDES: dict[tuple[str, str, str], dict[str, str]] = {
    ("advance", "rule", "push"): {"src": _OWN, "dst": _OTHER},
    ("advance", "rule", "pull"): {"src": _OTHER, "dst": _OWN},
    ("advance", "where", "push"): {"vertex": _OTHER},
    ("advance", "where", "pull"): {"vertex": _OWN},
    ("gather", "rule", "pull"): {"src": _OTHER, "dst": _OWN},
    ("tally", "rule", "pull"): {"src": _OTHER, "dst": _OWN},
    ("tally", "key", "pull"): {"src": _OTHER, "dst": _OWN},
    ("intersect", "rule", "push"): {"src": _OWN, "dst": _OTHER},
}
_AT_OWN = {"vertex": _OWN}


@dataclass(frozen=True)
class Exchange:
    """One exchange: its kind, the fields it carries, and for a mirror the vertices it is about."""

    kind: str  # "collect", "mirror" or "replicate"
    fields: tuple[str, ...]
    over: Frontier | None = None


@dataclass
class _Touched:
    """Fields that one operator touches, by side."""

    own_writes: set[str] = field(default_factory=set)
    other_writes: set[str] = field(default_factory=set)
    other_reads: set[str] = field(default_factory=set)  # by a push
    pulled_reads: set[str] = field(default_factory=set)  # by a pull or gather
    anywhere: set[str] = field(default_factory=set)
    anywhere_writes: set[str] = field(default_factory=set)


class Sharing:
    """The exchanges of one recorded step, and what it needs of a device's copies."""

    def __init__(self, recording: Recording, phase: Phase) -> None:
        self.recording, self.phase = recording, phase
        self.operators, self.fields = recording.operators, recording.fields
        self.touched = [self._touch(operator) for operator in self.operators]
        self.replicated = {name for touched in self.touched for name in touched.anywhere}
        self._check_writes()

    # What an operator touches

    def _touch(self, operator: Operator) -> _Touched:
        touched = _Touched()
        if operator.kind == "update":
            return touched  # see `read_in_serial`
        for direction in _directions(operator):
            for role, rule in operator.rules.items():
                if role in CALLBACKS:
                    continue  # what they do, they do on every device for itself
                sides = _SIDES.get((operator.kind, role, direction), _AT_OWN)
                for access in find_accesses(rule):
                    if isinstance(self.fields.get(access.array), Vertex):
                        side = sides.get(access.place, ANYWHERE)
                        _note(touched, direction, side, access.array, access.reads, access.writes)
        return touched

    @cached_property
    def read_in_serial(self) -> set[str]:
        """Vertex fields that `update` and ``until`` look at: one thread of every device does, at any vertex."""
        rules = [op.rules["rule"] for op in self.operators if op.kind == "update"]
        rules += [self.phase.until] if self.phase.until is not None else []
        names = {access.array for rule in rules for access in find_accesses(rule)}
        return {name for name in names if isinstance(self.fields.get(name), Vertex)}

    @cached_property
    def whole_fields(self) -> set[str]:
        """Fields of which every device must know every vertex."""
        return self.replicated | self.read_in_serial

    # What is exchanged

    def collected(self, number: int) -> tuple[str, ...]:
        """Return the fields that an operator writes at copies."""
        return self._ordered(self.touched[number].other_writes - self.replicated)

    def resets(self, number: int) -> set[str]:
        """Return those of them whose copies are emptied when they have been sent."""
        if "unpack" in self.operators[number].rules:
            return set()  # what is sent is the author's own, and so is what stays
        others = [touched.own_writes for i, touched in enumerate(self.touched) if i != number]
        set_back = set().union(*others)
        return {name for name in self.collected(number) if self.combiner(name) == "add" or name in set_back}

    def read_at_copies(self, number: int) -> tuple[str, ...]:
        """Return those of the fields an operator collects that a rule reads at copies, or may read anywhere."""
        read = set().union(*(touched.other_reads | touched.pulled_reads for touched in self.touched))
        return self._ordered(set(self.collected(number)) & (read | self.whole_fields))

    def asks_frontier(self, number: int) -> bool:
        """Whether an operator, where it pulls, asks of sources if they are in its frontier."""
        operator = self.operators[number]
        return operator.kind == "advance" and operator.frontier is not everything

    def announced(self, number: int) -> tuple[str, ...]:
        """Return the fields that a pull reads at the sources in its frontier."""
        is_limited = self.asks_frontier(number)
        return self._ordered(self.touched[number].pulled_reads - self.replicated) if is_limited else ()

    def pulled_resets(self, number: int) -> tuple[str, ...]:
        """Return the fields whose copies hold what a pull was told, and that a push needs empty again."""
        resets = self.resets(number)
        return tuple(name for name in self.announced(number) if name in resets)

    def is_announced_by_push(self, number: int) -> bool:
        """Whether devices that are told of everything know of a pull's frontier, and its values, from the push."""
        return self.reaches_all(number) and set(self.announced(number)) <= set(self.collected(number))

    def exchanges(self, number: int) -> list[Exchange]:
        """Return the exchanges behind an operator, in order."""
        found = []
        collected = self.collected(number)
        if collected or self._joins_at_copies(number):
            found.append(Exchange("collect", collected))
        touched, operator = self.touched[number], self.operators[number]
        combined = {n for n in collected if n not in self.resets(number) and self._is_read_elsewhere(n)}
        written = {n for n in touched.own_writes - self.replicated if self._is_read_elsewhere(n)}
        if combined or written:  # where values were combined is not known: what changed need not have joined
            over = everything if combined else self._written_vertices(operator)
            found.append(Exchange("mirror", self._ordered(combined | written), over))
        replicated = touched.anywhere_writes | (touched.other_writes & self.replicated)
        if operator.frontier is not everything or operator.kind in ("advance", *VISITS_EDGES):
            replicated = replicated | (touched.own_writes & self.replicated)
        if replicated:
            found.append(Exchange("replicate", self._ordered(replicated)))
        return found

    def _joins_at_copies(self, number: int) -> bool:
        """Whether a push may let copies join a frontier that anybody uses: their owners must hear of it."""
        operator = self.operators[number]
        used = [self.recording.result, *(other.frontier for other in self.operators)]
        pushes = operator.kind == "advance" and "push" in _directions(operator)
        return pushes and any(operator.output is frontier for frontier in used)

    def is_dealt(self, number: int) -> bool:
        """Whether other devices may visit the edges of vertices in an operator's frontier in the place of their owner.

        They may where a push reads at the other ends of edges only what it writes there itself, and so may be behind
        the owner, and what every device has whole; and where it writes nothing at the vertex whose edges it visits.
        """
        operator, touched = self.operators[number], self.touched[number]
        if operator.kind != "advance" or "push" not in _directions(operator):
            return False
        if operator.frontier is not self.recording.frontier:
            return False
        if touched.other_reads - touched.other_writes - self.replicated:
            return False
        if self.resets(number) & set(self.read_at_sources(number)):
            return False  # a copy that is emptied when it is sent cannot hold what its owner has
        return not any(access.place == "src" and access.writes for access in find_accesses(operator.rules["rule"]))

    @property
    def reason_to_keep(self) -> str | None:
        """Return why every device keeps its part throughout the phase; None if others may have it for some supersteps.

        What a superstep does must come from its frontier, which goes along with the part; and nobody may have to look
        up who has copies of a vertex, as the tables of that are the partition's.
        """
        phase, operators = self.phase, self.operators
        if phase.keep or phase.begin == "replay":
            return f"{self._title}: frontiers that are gone through again stay where they were"
        over = [self.recording.result, *(op.frontier for op in operators if op.kind != "update")]
        is_over_all = any(frontier is not None and frontier.kind == "all" for frontier in over)
        if is_over_all or any(op.kind in (*VISITS_EDGES, "swap") for op in operators):
            return f"{self._title}: what is done for every vertex is the same in each superstep, and shared out evenly"
        if not any(op.kind == "advance" for op in operators):
            return f"{self._title}: no edges are visited"
        for number, operator in enumerate(operators):
            told = self.announced(number) if "pull" in _directions(operator) else ()
            if told or any(exchange.kind == "mirror" for exchange in self.exchanges(number)):
                return f"{self._title}: owners tell of their vertices whoever has copies, as the partition has it"
        return None

    def read_at_sources(self, number: int) -> tuple[str, ...]:
        """Return the fields that a push reads at the vertex whose edges it visits, and not every device has whole."""
        accesses = find_accesses(self.operators[number].rules["rule"])
        names = {access.array for access in accesses if access.place == "src" and access.reads}
        vertices = {name for name in names if isinstance(self.fields.get(name), Vertex)}
        return self._ordered(vertices - self.replicated)

    def is_certain(self, number: int) -> bool:
        """Whether a push's rule says True whatever it finds at a copy in the fields that it writes there."""
        touched = self.touched[number]
        return not touched.other_reads & touched.other_writes and not touched.anywhere

    def runs_on_copies(self, number: int) -> bool:
        """Whether an operator over every vertex is done for copies too, as it writes what every device has whole."""
        operator, touched = self.operators[number], self.touched[number]
        return operator.kind == "compute" and operator.frontier is everything and bool(
            touched.own_writes & self.replicated
        )  # fmt: skip

    def mirrored_at_begin(self) -> tuple[str, ...]:
        """Return the fields whose copies must be right when the phase begins."""
        read = set().union(*(touched.other_reads | touched.pulled_reads for touched in self.touched))
        return self._ordered(read - self.whole_fields)

    def combiner(self, name: str) -> str:
        """Return the name of a field's combiner; ``"rule"`` if it is one of the author's own."""
        declared = self.fields[name]
        assert isinstance(declared, Vertex)
        if declared.combine is None:
            return "none"
        return declared.combine.name if isinstance(declared.combine, Combiner) else "rule"

    def identity(self, name: str, dtype: np.dtype) -> Any:
        """Return the value of a copy that has been emptied: the one that the field's combiner leaves unchanged."""
        declared = self.fields[name]
        assert isinstance(declared, Vertex)
        assert isinstance(declared.combine, Combiner)
        return declared.combine.identity(dtype, declared.fill)

    def reaches_all(self, number: int) -> bool:
        """Whether what a push collects may be combined at every copy, not only at the owner."""
        resets = self.resets(number)
        return all(self.combiner(n) != "add" and n not in resets for n in self.collected(number))

    @property
    def is_steered(self) -> bool:
        """Whether rules say where items go: from device to device, until one keeps them."""
        return any(role in operator.rules for operator in self.operators for role in ("on_send", "on_receive"))

    @property
    def pulls_from_frontier(self) -> bool:
        """Whether an advance may ask of sources that other devices own if they are in its frontier."""
        return any(self.asks_frontier(n) and "pull" in _directions(op) for n, op in enumerate(self.operators))

    @property
    def asks_lists(self) -> bool:
        """Whether devices need the lists of neighbours of the vertices at the other ends of their edges."""
        return any(operator.kind == "intersect" for operator in self.operators)

    # Why not

    def reason_for_all(self) -> str | None:
        """Return why every device needs all vertices, or None if neighbours are enough."""
        if self.replicated:
            names = ", ".join(sorted(self.replicated))
            return f"{self._title}: a rule looks at {names} of vertices that are no neighbours"
        if self.read_in_serial:
            names = ", ".join(sorted(self.read_in_serial))
            return f"{self._title}: a rule that runs once a superstep looks at {names}, at any vertex"
        return None

    @property
    def _title(self) -> str:
        return f"{self.recording.title}.{getattr(self.phase.step, '__name__', 'step')}"

    def _check_writes(self) -> None:
        for number, operator in enumerate(self.operators):
            where = operator.rules["rule"].where() if operator.rules else ""
            touched = self.touched[number]
            if _directions(operator) == ["pull"]:
                self._refuse(where, touched.other_writes, "a pull writes at src, which another device may own")
            for name in touched.other_writes | touched.anywhere_writes:
                if self.combiner(name) == "none" and "unpack" not in operator.rules:
                    self._refuse(where, {name}, "several devices write it; it needs combine=")
            added = {n for n in touched.other_reads & touched.other_writes if self.combiner(n) == "add"}
            self._refuse(where, added, "the rule reads it at dst, where a copy holds only this device's part of the "
                                       "sum; add only, and decide in a filter of the advance's output")  # fmt: skip
            self._check_resets(where, self.resets(number))
        self._check_swaps()
        for name in self.read_in_serial - self.replicated:
            if self.combiner(name) in ("none", "add"):
                self._refuse(self._title, {name}, "a rule that runs once a superstep reads it, at any vertex; that "
                                                  "needs combine=minimum, maximum, bit_or or first")  # fmt: skip

    def _check_swaps(self) -> None:
        """Refuse to swap what a push collects: copies of the two hold different things."""
        collected = {name for number in range(len(self.operators)) for name in self.collected(number)}
        for operator in self.operators:
            if operator.kind == "swap":
                swapped = collected & set(operator.into)
                self._refuse(f"{self._title}: swap", swapped, "a push writes it at dst, and what its copies hold must "
                                                              "not change places; copy it in a compute")  # fmt: skip

    def _check_resets(self, where: str, resets: set[str]) -> None:
        """Refuse fields whose copies cannot be emptied, or are not to be empty."""
        ruled = {name for name in resets if self.combiner(name) == "rule"}
        self._refuse(where, ruled, "another rule of the step sets it at its vertex, so copies begin anew; that needs "
                                   "combine=minimum, maximum, add, bit_or or first")  # fmt: skip
        far = {name for name in resets if self._is_read_elsewhere(name)}
        self._refuse(where, far, "another rule of the step reads it across an edge, where a copy holds only what is "
                                 "not sent yet; keep it in a second field, set by a compute; read that")  # fmt: skip

    def _refuse(self, where: str, names: set[str], reason: str) -> None:
        if names:
            raise ProgramError(f"{where}: {', '.join(sorted(names))} on several devices: {reason}")

    # Names

    def _ordered(self, names: set[str]) -> tuple[str, ...]:
        return tuple(name for name in self.fields if name in names)

    def _is_read_elsewhere(self, name: str) -> bool:
        """Whether a copy's value counts for any operator of the step; fields that change places are one."""
        alike = self._alike(name)
        return any(alike & (self._stale_reads(number)) for number in range(len(self.operators)))

    def _stale_reads(self, number: int) -> set[str]:
        """Fields that an operator reads at copies and that must be the owner's."""
        touched = self.touched[number]
        pulled = touched.pulled_reads - set(self.announced(number))
        return (touched.other_reads - touched.other_writes) | pulled

    def _alike(self, name: str) -> set[str]:
        found = {name}
        for operator in self.operators:
            if operator.kind == "swap" and found & set(operator.into):
                found |= set(operator.into)
        return found

    def _written_vertices(self, operator: Operator) -> Frontier:
        """Return the vertices at which an operator writes as their owner."""
        if operator.kind == "advance" and operator.options["direction"] != "push":
            is_used = operator.output is self.recording.result
            return operator.output if is_used and operator.output is not None else everything
        assert operator.frontier is not None
        return operator.frontier


def _directions(operator: Operator) -> list[str]:
    if operator.kind in ("gather", "tally"):
        return ["pull"]
    direction = operator.options.get("direction", "push")
    return ["push", "pull"] if direction == "auto" else [direction]


def _note(touched: _Touched, direction: str, side: str, name: str, reads: bool, writes: bool) -> None:
    if side == ANYWHERE:
        touched.anywhere.add(name)
        if writes:
            touched.anywhere_writes.add(name)
    elif side == _OWN:
        if writes:
            touched.own_writes.add(name)
    else:
        if writes:
            touched.other_writes.add(name)
        if reads:
            (touched.other_reads if direction == "push" else touched.pulled_reads).add(name)


def combining_rule(declared: Vertex) -> Rule | None:
    """Return the rule by which a field is combined, if it is one of the author's own."""
    return declared.combine if isinstance(declared.combine, Rule) else None
