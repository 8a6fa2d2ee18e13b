# SPDX-License-Identifier: Apache-2.0
"""Which steps need no supersteps: a device takes vertices from its worklist, whenever it has some.

Such a step is an advance from the step's frontier.  Rules over the vertex may come before it (`compute`: take what has
gathered there), and one behind it that decides which destinations are worth a visit (`filter`).  What is written at the
other ends of edges must combine in any order and, but for sums, any number of times: then a vertex that is visited too
early, or once too often, costs work and changes nothing.  A sum is right if its vertex takes it whole in a `compute`
before it passes it on, as residuals are taken: what comes later is a part of the next visit.

Groute (Ben-Nun et al., TOPC 2020), sections 4.3 to 4.6, has programs of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.accesses import find_accesses
from shoal.exchanges import Sharing
from shoal.operators import CALLBACKS, Operator, Recording
from shoal.program import Phase
from shoal.rules import Rule

IN_ANY_ORDER = ("minimum", "maximum", "bit_or")
#: What `on_send` and `on_receive` say of an item: it stays here, it goes on, both, or neither.
KEEP, PASS, DUPLICATE, REMOVE = 1, 2, 3, 0
_OF_SUPERSTEPS = ("superstep", "frontier_size")


@dataclass(frozen=True)
class Worklist:
    """A step without supersteps: rules over a vertex that is visited, the advance, and what its destinations pass."""

    computes: tuple[Operator, ...]
    advance: Operator
    filter: Operator | None

    @property
    def rules(self) -> list[Rule]:
        """All rules of the step but the priority."""
        operators = [*self.computes, self.advance, *([] if self.filter is None else [self.filter])]
        return [rule for op in operators for role, rule in op.rules.items() if role != "priority"]


def find_worklist(recording: Recording) -> Worklist:
    """Return the parts of a step that needs no supersteps; `why_not` has found nothing against it."""
    computes = tuple(op for op in recording.operators if op.kind == "compute")
    advance = next(op for op in recording.operators if op.kind == "advance")
    return Worklist(computes, advance, next((op for op in recording.operators if op.kind == "filter"), None))


def why_not(recording: Recording, phase: Phase) -> str | None:
    """Return why a step needs supersteps, or None if it does not."""
    where = f"{recording.title}.{getattr(phase.step, '__name__', 'step')}"
    reason = _phase_reason(phase) or _shape_reason(recording)
    if reason is None:
        reason = _rule_reason(find_worklist(recording), Sharing(recording, phase))
    return None if reason is None else f"{where} {reason}"


def _phase_reason(phase: Phase) -> str | None:
    if phase.until is not None:
        return "ends by until=, which is asked once a superstep"
    if phase.max_supersteps is not None:
        return f"has max_supersteps={phase.max_supersteps}"
    if phase.keep or phase.begin == "replay":
        return "keeps or replays the frontiers of supersteps"
    return None


def _shape_reason(recording: Recording) -> str | None:
    """Return what is wrong with the operators; right are computes, one advance, and at most one filter, in order."""
    kinds = [op.kind for op in recording.operators]
    num_computes = len(kinds) - len([kind for kind in kinds if kind != "compute"])
    expected = ["compute"] * num_computes
    if kinds not in ([*expected, "advance"], [*expected, "advance", "filter"]):
        return f"is {', '.join(kinds)}; without supersteps it can be computes, one advance and a filter of its output"
    advance = recording.operators[num_computes]
    if any(op.frontier is not recording.frontier for op in recording.operators[: num_computes + 1]):
        return "has an operator that does not begin with the step's frontier"
    if recording.result is not recording.operators[-1].output:
        return "does not return what its last operator puts out"
    if kinds[-1] == "filter" and recording.operators[-1].frontier is not advance.output:
        return "filters something else than the output of its advance"
    if advance.options["direction"] == "pull":
        return "pulls"
    if advance.options["first_edges"] is not None or advance.options["skip_edges"]:
        return "does not visit all edges of a vertex"
    return None


def _rule_reason(worklist: Worklist, sharing: Sharing) -> str | None:
    """Return what a rule asks for that only supersteps have, or which field combines in one order only."""
    for rule in (*worklist.rules, *filter(None, [worklist.advance.rules.get("priority")])):
        asked = [name for name in _OF_SUPERSTEPS if name in rule.parameters]
        if asked:
            return f"has a rule that asks for {asked[0]}: {rule.where()}"
    number = sharing.operators.index(worklist.advance)
    if any(role in worklist.advance.rules for role in CALLBACKS):
        return _callback_reason(worklist, sharing, sharing.collected(number))
    taken = {access.array for op in worklist.computes for access in find_accesses(op.rules["rule"]) if access.writes}
    for name in sharing.collected(number):
        combiner = sharing.combiner(name)
        if combiner == "add" and name not in taken:
            return f"adds to {name}, which no compute of the step takes before it is passed on"
        if combiner != "add" and combiner not in IN_ANY_ORDER:
            return f"writes {name} by combine={combiner}, whose result depends on what comes first"
    if worklist.filter is not None and any(a.writes for a in find_accesses(worklist.filter.rules["rule"])):
        return "has a filter that writes; it may be asked of a vertex any number of times"
    return _exchange_reason(sharing)


def _callback_reason(worklist: Worklist, sharing: Sharing, collected: tuple[str, ...]) -> str | None:
    """Return what callbacks cannot do with; that values combine in any order is their author's word."""
    if len(collected) != 1:
        names = ", ".join(collected) or "nothing"
        return f"has callbacks, which carry one value of a vertex; at destinations it writes {names}"
    if getattr(sharing.fields[collected[0]], "width", None) is not None:
        return f"has callbacks, which carry one value of a vertex; {collected[0]} has several"
    if "unpack" not in worklist.advance.rules and sharing.combiner(collected[0]) not in (*IN_ANY_ORDER, "add"):
        return f"has callbacks, and nothing that says how {collected[0]} combines: unpack, or combine="
    return _exchange_reason(sharing)


def _exchange_reason(sharing: Sharing) -> str | None:
    found = {exchange.kind for i in range(len(sharing.operators)) for exchange in sharing.exchanges(i)}
    if found - {"collect"}:
        return (
            "reads at the other end of an edge, or anywhere, what owners change; others hear of it in supersteps only"
        )
    return None
