# SPDX-License-Identifier: Apache-2.0
"""What tells recorded steps apart: programs are made anew for every call, their loops are not."""

from __future__ import annotations

from typing import Any

from shoal.backends.base import Types
from shoal.operators import Recording
from shoal.program import Phase


def recording_key(recording: Recording, phase: Phase) -> Any:
    """Return what tells two recordings apart: operators, rules, how frontiers flow between them, fields."""
    numbers = {id(op.output): i for i, op in enumerate(recording.operators) if op.output is not None}
    operators = tuple(
        (
            op.kind,
            None if op.frontier is None else numbers.get(id(op.frontier), op.frontier.kind),
            tuple((role, rule) for role, rule in op.rules.items()),
            op.into,
            op.combine,
            tuple(op.options.items()),
        )
        for op in recording.operators
    )
    result = None if recording.result is None else numbers.get(id(recording.result), recording.result.kind)
    return (
        operators, result, tuple(recording.fields.items()), phase.until, phase.begin, phase.keep, phase.joins is None
    )  # fmt: skip


def types_used(recording: Recording, types: Types) -> Types:
    """Return the types that a step's code depends on: not that of weights for which no rule asks."""
    return types if recording.uses_weights else (*types[:2], None)
