# SPDX-License-Identifier: Apache-2.0
"""Where the frontiers of a step lie, what a step may not do with them, and which bitmaps it leaves to be cleared.

The step's frontier is ``queue[BEGIN:END]``, its result is written at ``OUT_BASE``, and an output that only the same
step uses has a region of the queue behind these.  A push that de-duplicates *marks* its output in the bitmap ``back``,
a pull writes its output there; the bitmaps change places every superstep.  So ``back`` must be clear when a push begins
to mark: a push that reads the very frontier that ``front`` has the marks of clears them on its way, in every other case
the step ends with clearing what it cannot vouch for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shoal.backends.loops.control import LINE, OUTPUTS
from shoal.errors import ProgramError
from shoal.exchanges import Sharing
from shoal.operators import Frontier, Operator, Recording
from shoal.program import Phase


@dataclass(frozen=True)
class Source:
    """The vertices of an operator: ``array[begin:end]``, or the numbers from begin to end themselves."""

    begin: str
    end: str
    is_queued: bool
    array: str = "queue"


class Flow:
    """The frontiers of one recorded step of a phase."""

    def __init__(
        self, recording: Recording, phase: Phase, sharing: Sharing | None = None, is_renumbered: bool = False
    ) -> None:
        self.operators, self.result, self.phase = recording.operators, recording.result, phase
        self.sharing, self.is_renumbered = sharing, is_renumbered
        self.program_name = type(recording.program).__name__
        self.ordered = next((op for op in self.operators if "priority" in op.rules), None)
        self.advances = [op for op in self.operators if op.kind == "advance" and op is not self.ordered]
        self.regions = [op for op in self.operators if self.is_taken(op) and not self.is_result(op)]
        for operator in self.advances:
            self._check_advance(operator)
        self._check_marks()
        self._check_ordered()
        if phase.begin == "replay" and self.result is not None:
            raise ProgramError(f"{self.program_name}.{phase.step.__name__}: the step of a replay must return None, not "
                               "a frontier: its frontiers are those that were kept")  # fmt: skip

    def is_result(self, operator: Operator) -> bool:
        """Whether the step returns the operator's output."""
        return operator.output is not None and operator.output is self.result

    def is_taken(self, operator: Operator) -> bool:
        """Whether another operator of the step takes the operator's output."""
        return operator.output is not None and any(op.frontier is operator.output for op in self.operators)

    def has_output(self, operator: Operator) -> bool:
        """Whether anybody uses the operator's output."""
        return self.is_result(operator) or self.is_taken(operator)

    def producer(self, frontier: Frontier | None) -> Operator | None:
        """Return the operator that makes ``frontier``, if one of the step does."""
        return next((op for op in self.operators if op.output is not None and op.output is frontier), None)

    # Places

    def source(self, operator: Operator) -> Source:
        """Return where the operator's vertices are."""
        assert operator.frontier is not None
        if self.sharing is not None and self.sharing.runs_on_copies(self.operators.index(operator)):
            return Source("0", "control[NUM_LOCAL]", is_queued=False)
        return self.place(operator.frontier)

    def place(self, frontier: Frontier) -> Source:
        """Return where the vertices of a frontier are; with several devices, those that this one owns."""
        if frontier.kind == "all":
            if self.sharing is not None:
                return Source("0", "control[NUM_OWNED]", is_queued=True, array="owned")
            return Source("0", "control[NUM_VERTICES]", is_queued=False)
        if frontier.kind == "input":
            return Source("control[BEGIN]", "control[END]", is_queued=True)
        if frontier is self.result:
            return Source("control[OUT_BASE]", "control[OUT_BASE] + control[OUTPUT]", is_queued=True)
        producer = self.producer(frontier)
        assert producer is not None
        base = self._region(producer)
        return Source(base, f"{base} + control[{self.output_counter(producer)}]", is_queued=True)

    def target(self, operator: Operator) -> str:
        """Return ``base, counter, capacity`` of the operator's output."""
        if self.is_result(operator):
            capacity = "control[QUEUE_END] - control[OUT_BASE]" if self.is_sliding else "control[CAPACITY]"
            return f"control[OUT_BASE], OUTPUT, {capacity}"
        if self.is_taken(operator):
            return f"{self._region(operator)}, {self.output_counter(operator)}, control[CAPACITY]"
        return "0, OUTPUT, 0"

    def output_counter(self, operator: Operator) -> int:
        """Return the control slot that counts an output which does not leave the step."""
        return OUTPUTS + LINE * self.operators.index(operator)

    def _region(self, operator: Operator) -> str:
        return f"(control[INTERMEDIATE] + {self.regions.index(operator)} * control[ROOM])"

    # Representations

    @cached_property
    def grows(self) -> bool:
        """Whether what the operators put out depends on the frontier they begin with, and so may need little room."""
        is_made = self.result is not None and self.result.kind == "output"
        return self.ordered is None and is_made and all(map(self._is_bounded, filter(self.has_output, self.operators)))

    @cached_property
    def has_queue(self) -> bool:
        """Whether any frontier is a list."""
        return self.uses_frontier or bool(self.regions)

    @cached_property
    def intersects(self) -> bool:
        """Whether an operator looks at the lists of neighbours of both ends of an edge."""
        return any(op.kind == "intersect" for op in self.operators)

    @cached_property
    def tallies(self) -> bool:
        """Whether an operator sums by keys."""
        return any(op.kind == "tally" for op in self.operators)

    @cached_property
    def is_open(self) -> bool:
        """Whether only the run shows how much room the step needs."""
        return self.grows or self.ordered is not None

    @cached_property
    def pushes_out(self) -> bool:
        """Whether an advance of the step puts out vertices."""
        return self.ordered is not None or any(map(self.has_output, self.advances))

    def _is_bounded(self, operator: Operator) -> bool:
        """Whether an output comes from the step's frontier, over one edge at most."""
        num_advances = 0
        maker: Operator | None = operator
        while maker is not None:
            num_advances += maker.kind == "advance"
            frontier = maker.frontier
            maker = self.producer(frontier)
        return frontier is not None and frontier.kind == "input" and num_advances <= 1

    @cached_property
    def is_sliding(self) -> bool:
        """Whether all frontiers of the phase lie one behind the other in the queue."""
        return self.phase.joins is not None

    @cached_property
    def uses_frontier(self) -> bool:
        """Whether the step has to do with a queue of its own: it reads its frontier or makes the next."""
        reads = any(op.frontier is not None and op.frontier.kind == "input" for op in self.operators)
        return self.ordered is None and (reads or (self.result is not None and self.result.kind != "input"))

    @cached_property
    def uses_bitmaps(self) -> bool:
        """Whether the step marks, pulls or goes by priority."""
        return self.ordered is not None or self.pulls or bool(self._marking)

    @cached_property
    def pulls(self) -> bool:
        """Whether an advance of the step can pull."""
        return any(op.options["direction"] != "push" for op in self.advances)

    @cached_property
    def shares_own(self) -> bool:
        """Whether devices that are told of everything are to hear of each other's own vertices that join, too."""
        sharing = self.sharing
        if sharing is None or not all(sharing.reaches_all(number) for number in range(len(self.operators))):
            return False
        return bool(sharing.read_in_serial)

    @cached_property
    def needs_queue(self) -> bool:
        """Whether a pull's output is wanted as a queue too: kept for replay, read by another operator, or sent."""
        readers = [op for op in self.operators if op.frontier is not None and op.frontier.kind == "input"]
        is_read = any(op.options.get("direction", "push") == "push" for op in readers)
        return self.phase.keep or is_read or any(self.sends_ids(op) for op in self.advances)

    def sends_ids(self, operator: Operator) -> bool:
        """Whether devices send one another a pull's frontier as a list; where they number alike, bits may do."""
        if self.sharing is None:
            return False
        has_fields = bool(self.sharing.announced(self.operators.index(operator)))
        return self.is_renumbered or has_fields or bool(self.sharing.read_in_serial)

    # Marks

    @cached_property
    def _marking(self) -> list[Operator]:
        """Advances that de-duplicate what they push."""
        return [op for op in self.advances if not op.options["unique"] and op.options["direction"] != "pull"
                and self.has_output(op)]  # fmt: skip

    def is_marked(self, frontier: Frontier | None) -> bool:
        """Whether the vertices of a frontier made in this step, and only they, are marked in ``back``."""
        producer = self.producer(frontier)
        if producer is None:
            return False
        return producer in self._marking if producer.kind == "advance" else self.is_marked(producer.frontier)

    def clears_as_it_reads(self, operator: Operator) -> bool:
        """Whether a push may clear the marks of the vertices it reads, and nothing else is left to clear then."""
        return (
            operator in self._marking
            and not (self.sharing is not None and self.pulls)  # marks of copies are no vertices it reads
            and operator.frontier is not None
            and operator.frontier.kind == "input"
            and self.is_marked(self.result)
            and not any(op.options["direction"] != "push" for op in self.advances if op is not operator)
        )

    def bitmaps_to_clear(self) -> list[str]:
        """Return the bitmaps that the step's end must clear."""
        if not self._marking or self.clears_as_it_reads(self._marking[0]):
            return []
        return ["front"] if self.is_marked(self.result) else ["front", "back"]

    # Checks

    def _check_advance(self, operator: Operator) -> None:
        where = operator.rules["rule"].where()
        producer = self.producer(operator.frontier)
        if producer is not None and self.is_marked(operator.frontier):
            raise ProgramError(f"{where}: advance cannot take the output of another advance in the same step, nor "
                               "what a filter left of it; make it the next superstep's frontier or unique")  # fmt: skip
        if operator.options["direction"] == "push":
            return
        if producer is not None:
            raise ProgramError(f"{where}: a pull cannot start from the output of another operator of the same step; "
                               "give it the step's frontier or everything")  # fmt: skip
        if self.is_taken(operator):
            raise ProgramError(f"{where}: the output of an advance that may pull can only be what the step returns; "
                               "let the next superstep go on with it")  # fmt: skip
        if not self.is_result(operator) and self.result is not None and self.result.kind == "output":
            raise ProgramError(f"{where}: an advance may pull beside another operator's result only from a step of its "
                               "own; make it a phase, or push")  # fmt: skip

    def _check_marks(self) -> None:
        if len(self._marking) > 1:
            names = ", ".join(op.rules["rule"].name for op in self._marking)
            raise ProgramError(f"{self.program_name}: one step cannot de-duplicate the outputs of several advances "
                               f"({names}); make all but one of them unique")  # fmt: skip

    def _check_ordered(self) -> None:
        if self.ordered is None:
            return
        where = self.ordered.rules["priority"].where()
        for operator in self.operators:
            frontier = operator.frontier
            if operator is not self.ordered and frontier is not None and frontier.kind == "input":
                raise ProgramError(f"{where}: a step that advances by priority has its frontier in buckets; only that "
                                   f"advance can read it, not {operator.kind}")  # fmt: skip
        if self.is_taken(self.ordered) or not self.is_result(self.ordered):
            raise ProgramError(f"{where}: the output of an advance by priority must be what the step returns, and "
                               "nothing else")  # fmt: skip
        if self.ordered.frontier is None or self.ordered.frontier.kind != "input":
            raise ProgramError(f"{where}: an advance by priority must start from the step's frontier")
        if self._marking or self.pulls:
            raise ProgramError(f"{where}: an advance by priority stands alone; make other advances unique or a phase "
                               "of their own")  # fmt: skip
