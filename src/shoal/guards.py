# SPDX-License-Identifier: Apache-2.0
"""Guards: the test at the head of a rule by which it lets most edges go, as a rule of its own.

A rule that begins with ``if proposal >= distance[dst]: return False`` has changed nothing when it comes to that.  So a
loop may ask this of many edges first, without a branch for each, and call the rule for those that pass: which edges
improve something is what a processor cannot foretell.  The rule itself asks again.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import replace

from shoal.rules import Rule


def find_guard(rule: Rule) -> Rule | None:
    """Return a rule over the same edge that says whether ``rule`` goes on behind its first test; None without one.

    Examples
    --------
    >>> from shoal import atomic, rule
    >>> @rule
    ... def relax(src, dst, weight, distance):
    ...     proposal = distance[src] + weight
    ...     if proposal >= distance[dst]:
    ...         return False
    ...     return atomic.min(distance, dst, proposal)
    >>> print(find_guard(relax).source)
    def relax(src, dst, weight, distance):
        proposal = distance[src] + weight
        return not proposal >= distance[dst]
    """
    head: list[ast.stmt] = []
    for statement in rule.tree.body:
        if not _is_pure(rule, statement):
            return None
        if isinstance(statement, ast.If) and _only_refuses(statement):
            return _make_guard(rule, head, statement.test)
        if not _assigns_a_name(statement):
            return None
        head.append(statement)
    return None


def _make_guard(rule: Rule, head: list[ast.stmt], test: ast.expr) -> Rule:
    answer = ast.Return(ast.UnaryOp(ast.Not(), _without_branches(copy.deepcopy(test))))
    body = [*copy.deepcopy(head), ast.copy_location(answer, test)]
    tree = ast.FunctionDef(rule.tree.name, copy.deepcopy(rule.tree.args), body, [], lineno=rule.tree.lineno)
    ast.fix_missing_locations(tree)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    outside = {name: value for name, value in rule.outside.items() if name in named}
    return replace(rule, tree=tree, outside=outside, source=ast.unparse(tree))


def _is_pure(rule: Rule, statement: ast.stmt) -> bool:
    """Whether a statement changes nothing: it has no atomic, calls no other rule and stores into no array."""
    for node in ast.walk(statement):
        if isinstance(node, ast.expr) and rule.is_atomic(node):
            return False
        if isinstance(node, ast.Name) and isinstance(rule.outside.get(node.id), Rule):
            return False
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            return False
    return True


def _only_refuses(statement: ast.If) -> bool:
    """Whether an ``if`` does nothing but ``return False``."""
    if statement.orelse or len(statement.body) != 1 or not isinstance(statement.body[0], ast.Return):
        return False
    value = statement.body[0].value
    return isinstance(value, ast.Constant) and value.value is False


def _assigns_a_name(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)


def _without_branches(test: ast.expr) -> ast.expr:
    """Return a test that asks all its parts, where each is a comparison that may be made whatever the others say."""
    if not isinstance(test, ast.BoolOp) or not all(isinstance(part, ast.Compare) for part in test.values):
        return test
    later = [node for part in test.values[1:] for node in ast.walk(part)]
    if any(isinstance(node, (ast.Subscript, ast.Call, ast.BinOp)) for node in later):
        return test  # an index, say, that is only good if the first part is
    operator = ast.BitOr() if isinstance(test.op, ast.Or) else ast.BitAnd()
    found = test.values[0]
    for part in test.values[1:]:
        found = ast.BinOp(found, operator, part)
    return found
