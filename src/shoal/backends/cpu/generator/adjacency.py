# SPDX-License-Identifier: Apache-2.0
"""Write the kernels of the operators that look at whole lists of neighbours: intersect and tally."""

from __future__ import annotations

from shoal.backends.cpu.generator.advance import Statements
from shoal.backends.cpu.generator.exchange import PUSH_SHARED, write_change_hooks
from shoal.backends.cpu.kernels import adjacency
from shoal.backends.loops.writer import PhaseWriter
from shoal.operators import Operator


def write_intersect(writer: PhaseWriter, operator: Operator) -> Statements:
    """Return the statements of an intersection; of several devices each reads the lists that it was sent."""
    rule = operator.rules["rule"]
    hooks = {"RULE": writer.call(rule, owned="src"), **write_change_hooks(writer, operator)}
    options = {"FROM_QUEUE": writer.flow.source(operator).is_queued, "HAS_BETWEEN": "between" in rule.parameters}
    state = writer.kernel(adjacency, "intersect", operator, hooks, options, [rule], shared=PUSH_SHARED)
    lists = "indptr, indices" if writer.sharing is None else "list_indptr, list_indices"
    return _statements(writer, operator, f"indptr, indices, weights, {lists}, marks, keys, outbox{state}")


def write_tally(writer: PhaseWriter, operator: Operator) -> Statements:
    """Return the statements of a tally."""
    writer.uses_in_edges = True
    rule, key, choose = (operator.rules[role] for role in ("rule", "key", "choose"))
    hooks = {
        "RULE": writer.call(rule, owned="dst"),
        "KEY": writer.call(key, owned="dst"),
        "CHOOSE": writer.call(choose, owned="vertex"),
    }
    options = {"FROM_QUEUE": writer.flow.source(operator).is_queued}
    state = writer.kernel(adjacency, "tally", operator, hooks, options, [rule, key, choose])
    return _statements(writer, operator, f"in_indptr, in_indices, in_weights, marks, keys, totals{state}")


def _statements(writer: PhaseWriter, operator: Operator, arguments: str) -> Statements:
    source, number = writer.flow.source(operator), writer.number(operator)
    call = (
        f"{operator.kind}_{number}(thread, num_threads, control, work, {number}, {source.begin}, {source.end}, "
        f"{source.array}, {arguments})"
    )
    return [call], [f"reset_work(work, {number}, num_threads)"]
