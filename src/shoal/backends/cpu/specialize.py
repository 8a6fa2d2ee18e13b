# SPDX-License-Identifier: Apache-2.0
"""Turn templates and rules into the source of a generated module (see `shoal.backends.cpu.hooks`)."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from shoal.rules import Rule

#: Names by which the intrinsics behind ``atomic.*`` go, when several threads may write and when only one does.
ATOMIC = {
    "min": ("atomic_min", "plain_min"),
    "max": ("atomic_max", "plain_max"),
    "add": ("atomic_add", "plain_add"),
    "bit_or": ("atomic_or", "plain_or"),
    "bit_and": ("atomic_and", "plain_and"),
    "exchange": ("exchange", "plain_exchange"),
    "compare_exchange": ("compare_exchange", "plain_compare_exchange"),
}


@dataclass(frozen=True)
class RuleCall:
    """A rule as it is called in generated code: the function's name and, per parameter, the argument's source."""

    function: str
    parameters: tuple[str, ...]
    arguments: dict[str, str]

    def to_ast(self, provided: dict[str, ast.expr]) -> ast.expr:
        """Return the call; ``provided`` are the expressions for src, dst, edge, vertex, value at this place."""
        arguments = []
        for name in self.parameters:
            if name in provided:
                arguments.append(copy.deepcopy(provided[name]))
            else:
                arguments.append(ast.parse(self.arguments[name], mode="eval").body)
        return ast.Call(ast.Name(self.function, ast.Load()), arguments, [])


@dataclass
class Specializer(ast.NodeTransformer):
    """Rewrites one template function."""

    hooks: dict[str, RuleCall | bool]
    names: dict[str, str]
    options: dict[str, Any]
    state: list[str]
    prologue: list[str] = field(default_factory=list)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self.names.get(node.name, node.name)
        node.args.args = list(self._expand(node.args.args, lambda name: ast.arg(name), lambda a: a.arg))
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        node.body = [*ast.parse("\n".join(self.prologue)).body, *node.body]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func.id if isinstance(node.func, ast.Name) else None
        if function in self.hooks:
            call = self.hooks[function]
            if isinstance(call, bool):
                return ast.Constant(call)
            provided = {k.arg: self.visit(k.value) for k in node.keywords if k.arg}
            if "edge" in provided and "weight" in call.parameters:
                edge = ast.unparse(provided["edge"])
                provided["weight"] = ast.parse(call.arguments["weight"].format(edge=edge), mode="eval").body
            return call.to_ast(provided)
        node.args = list(self._expand(node.args, lambda n: ast.Name(n, ast.Load()), lambda a: getattr(a, "id", None)))
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.options:
            return ast.Constant(self.options[node.id])
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def _expand(self, items: list, make: Callable[[str], Any], name_of: Callable[[Any], Any]) -> Iterable[Any]:
        for item in items:
            if name_of(item) == "STATE":
                yield from (make(name) for name in self.state)
            else:
                yield item


@functools.cache
def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def specialize(module: ModuleType, function: str, specializer: Specializer) -> str:
    """Return the source of one template function, rewritten."""
    tree = specializer.visit(copy.deepcopy(_functions(module)[function]))
    return ast.unparse(ast.fix_missing_locations(tree))


def _atomic_calls(rule: Rule) -> Iterable[ast.Call]:
    for node in ast.walk(rule.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.value
            if isinstance(name, ast.Name) and name.id == "atomic" and len(node.args) > 1:
                yield node


def _owned_arrays(rule: Rule, owned: str | None) -> set[str]:
    """Return the arrays that the rule updates only at ``owned``, a vertex that no other thread has."""
    places: dict[str, set[str]] = {}
    for node in ast.walk(rule.tree):
        if isinstance(node, ast.Name) and node.id == owned and isinstance(node.ctx, ast.Store):
            return set()  # the name comes to mean another vertex
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            places.setdefault(ast.unparse(node.value), set()).add(ast.unparse(first))
    for call in _atomic_calls(rule):
        index = call.args[1]
        first = index.elts[0] if isinstance(index, ast.Tuple) else index
        places.setdefault(ast.unparse(call.args[0]), set()).add(ast.unparse(first))
    return {array for array, indices in places.items() if indices == {owned}}


class _RuleRewriter(ast.NodeTransformer):
    """Rewrites a rule's body: constants become literals, atomics intrinsics, other rules their generated names."""

    def __init__(self, rule: Rule, names: dict[int, str], owned: str | None) -> None:
        self.rule = rule
        self.callees = {callee.name: names[id(callee)] for callee in rule.callees}
        self.owned_arrays = _owned_arrays(rule, owned)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "atomic"
        ):
            shared, plain = ATOMIC[function.attr]
            node.func = ast.Name(plain if ast.unparse(node.args[0]) in self.owned_arrays else shared, ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            if node.id in self.rule.constants:
                return ast.Constant(self.rule.constants[node.id])
            if node.id in self.rule.modules:
                return ast.Name("np" if self.rule.modules[node.id] == "numpy" else "math", node.ctx)
            if node.id in self.callees:
                return ast.Name(self.callees[node.id], node.ctx)
        return node


def write_rule(rule: Rule, name: str, names: dict[int, str], owned: str | None) -> str:
    """Return a rule's source under ``name``.

    ``owned`` is the vertex that one thread has for itself (the destination of a pull, the source of a push): arrays
    updated only there need no atomics.
    """
    tree = _RuleRewriter(rule, names, owned).visit(copy.deepcopy(rule.tree))
    tree.name = name
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree)):
        tree.body.append(ast.Return(ast.Constant(False)))
    return ast.unparse(ast.fix_missing_locations(tree))
