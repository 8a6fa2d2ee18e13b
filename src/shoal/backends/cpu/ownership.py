# SPDX-License-Identifier: Apache-2.0
"""Which arrays of a rule need no atomics: those it writes only at a vertex that one thread has for itself.

Every place counts where an array may be written: an assignment, an atomic, a rule that is called with it, a function
that may store into its argument; under the array's own name, another one, or that of a row of it.  In doubt a place is
not the vertex.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from shoal.rules import BUILTINS, Rule


def owned_arrays(rule: Rule, owned: str | None) -> set[str]:
    """Return the parameters that the rule updates only at ``owned``, a vertex that no other thread has."""
    body = _Body(rule)
    if owned is None or owned in body.aliases:  # the name comes to mean another vertex
        return set()
    here: set[str] = set()
    elsewhere: set[str] = set()
    for array, index in body.writes():
        is_own = index is not None and _is_name(_indices(index)[0], owned)
        if is_own and isinstance(array, ast.Name) and array.id not in body.aliases:
            here.add(array.id)
        else:
            elsewhere |= body.origins(array)
    return here - elsewhere


@dataclass
class _Body:
    """What the statements of one rule do to arrays."""

    rule: Rule
    ranks: dict[str, int] = field(init=False)  # dimensions of the arrays that atomics update
    aliases: dict[str, set[str]] = field(init=False)  # names that are assigned, and the arrays they may stand for

    def __post_init__(self) -> None:
        self.ranks = {}
        for call in self._calls():
            if self.rule.is_atomic(call.func) and isinstance(call.args[0], ast.Name):
                name = call.args[0].id
                self.ranks[name] = max(len(_indices(call.args[1])), self.ranks.get(name, 1))
        self.aliases = {}
        for target, value in _assignments(self.rule.tree):
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self.aliases.setdefault(node.id, set()).update(self._sources(value))

    def origins(self, expression: ast.expr) -> set[str]:
        """Return the names of the arrays that ``expression`` may be, or be a part of."""
        found: set[str] = set()
        waiting = self._sources(expression)
        while waiting:
            found |= waiting
            waiting = set().union(*(self.aliases.get(name, ()) for name in waiting)) - found
        return found

    def writes(self) -> Iterator[tuple[ast.expr, ast.expr | None]]:
        """Yield the arrays that may be written, each with its index, or None where that is not known."""
        for node in ast.walk(self.rule.tree):
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                yield node.value, node.slice
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                yield node.target, None  # adds in place where the name is a row's
        for call in self._calls():
            if self.rule.is_atomic(call.func):
                yield call.args[0], call.args[1]
            else:
                yield from ((array, None) for array in self._written_arguments(call))

    def _calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.rule.tree) if isinstance(node, ast.Call))

    def _written_arguments(self, call: ast.Call) -> Iterable[ast.expr]:
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        if isinstance(call.func, ast.Name):
            callee = self.rule.outside.get(call.func.id)
            if isinstance(callee, Rule) and not any(isinstance(argument, ast.Starred) for argument in call.args):
                given = [*zip(callee.parameters, call.args, strict=False), *named.items()]
                written = _written_parameters(callee)
                return [argument for name, argument in given if name in written]
            is_builtin = call.func.id in BUILTINS and call.func.id not in self.aliases
            return [] if is_builtin else _arguments(call)
        function = self._module_function(call.func)
        if isinstance(function, type):
            return []  # a conversion
        if isinstance(function, np.ufunc):
            return [*call.args[function.nin :], *named.values()]  # what it is to store into
        return [*_arguments(call), *_receiver(call)]

    def _module_function(self, function: ast.expr) -> object:
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            module = self.rule.outside.get(function.value.id)
            return getattr(module, function.attr, None) if isinstance(module, ModuleType) else None
        return None

    def _sources(self, expression: ast.expr) -> set[str]:
        """Return the names that ``expression`` may be a view of; an element that is a number is none."""
        if isinstance(expression, ast.Name):
            return {expression.id}
        if isinstance(expression, ast.Subscript) and self._is_element(expression):
            return set()
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
            return set() if expression.func.id in BUILTINS else self._all_sources(_arguments(expression))
        if isinstance(expression, ast.Call):
            return self._all_sources([*_arguments(expression), *_receiver(expression)])
        return self._all_sources(_parts(expression))

    def _all_sources(self, expressions: Iterable[ast.expr]) -> set[str]:
        return set().union(*map(self._sources, expressions))

    def _is_element(self, subscript: ast.Subscript) -> bool:
        name = subscript.value.id if isinstance(subscript.value, ast.Name) else ""
        indices = _indices(subscript.slice)
        has_slice = any(isinstance(index, ast.Slice) for index in indices)
        return not has_slice and len(indices) >= self.ranks.get(name, len(indices) + 1)


def _written_parameters(rule: Rule) -> set[str]:
    body = _Body(rule)
    return set().union(*(body.origins(array) for array, _ in body.writes())) & set(rule.parameters)


def _assignments(tree: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield every target that is assigned to, with what it may become."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For):
            yield node.target, node.iter


def _parts(expression: ast.expr) -> list[ast.expr]:
    """Return the expressions that may be the value of ``expression`` or hold it; arithmetic makes new values."""
    if isinstance(expression, (ast.Subscript, ast.Attribute, ast.Starred, ast.NamedExpr)):
        return [expression.value]
    if isinstance(expression, ast.IfExp):
        return [expression.body, expression.orelse]
    if isinstance(expression, ast.BoolOp):
        return expression.values
    return expression.elts if isinstance(expression, ast.Tuple) else []


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _receiver(call: ast.Call) -> list[ast.expr]:
    return [call.func.value] if isinstance(call.func, ast.Attribute) else []


def _indices(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) and index.elts else [index]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
