# SPDX-License-Identifier: Apache-2.0
"""Trace a failure to compile a generated module back to the rule and the line that its author wrote."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shoal.rules import Rule

#: Where a rule's text lies in the generated module: first and last line.
RuleLines = list[tuple[int, int, Rule]]


def explain(error: Exception, text: str, rule_lines: RuleLines) -> str:
    """Return one line that names the rule at fault: the deepest place in Numba's message that lies inside one."""
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    places = [int(line) for line in re.findall(r"_[0-9a-f]{24}\.py[^0-9]+(\d+)", message)]
    for place in places:  # Numba begins with the innermost
        for first, last, rule in rule_lines:
            if first <= place <= last:
                line = _written_line(text, first, last, place, rule)
                return f"{rule.where(line)} cannot be compiled: {_reason(error, message)}"
    called = _called_rule(text, rule_lines, places)
    if called is not None:
        return f"what {called.where()} returns does not fit where it is used: {_reason(error, message)}"
    return f"the program cannot be compiled: {_reason(error, message)}"


def _written_line(text: str, first: int, last: int, place: int, rule: Rule) -> int:
    """Return the line of the author's file from which line ``place`` of the generated module comes."""
    generated = ast.parse("\n".join(text.splitlines()[first - 1 : last])).body[0]
    written_line = rule.tree.lineno
    for written, copied in zip(_statements(rule.tree), _statements(generated), strict=False):
        if first + copied.lineno - 1 <= place:
            written_line = written.lineno
    return written_line


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements below ``node`` from first to last; a rule's copy has the same, and maybe one more."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def _called_rule(text: str, rule_lines: RuleLines, places: list[int]) -> Rule | None:
    """Return the rule that the kernel at fault calls, where the fault is in none."""
    lines = text.splitlines()
    names = {re.split(r"[ (]", lines[first - 1])[1]: rule for first, _, rule in rule_lines}
    for place in places:
        for name in re.findall(r"\w+(?=\()", lines[place - 1]) if place <= len(lines) else ():
            if name in names and not lines[place - 1].startswith("def "):
                return names[name]
    return None


def _reason(error: Exception, message: str) -> str:
    """Return the part of Numba's message that says what is wrong: shoal's own words where it raised the error."""
    own = re.search(r"Error: (.+)\n\s+raised from \S*shoal/backends", message)
    if own:
        return own[1]
    signature = re.search(r"^\s*>>> (.+)", message, re.MULTILINE)
    if signature:
        return f"there is no {signature[1]}"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    skip = ("Failed in", "During:", "File ", "def ", "<source")
    telling = next((line for line in lines if not line.startswith(skip)), type(error).__name__)
    return re.sub(r",? defined at \S+ \(\d+\)", "", telling)
