# SPDX-License-Identifier: Apache-2.0
"""Turn templates and rules into the source of a generated module (see `shoal.backends.cpu.hooks`)."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from shoal.accesses import owned_arrays
from shoal.rules import Rule, check_body

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


class _RuleRewriter(ast.NodeTransformer):
    """Rewrites a rule's body: constants become literals, atomics intrinsics, other rules their generated names."""

    def __init__(self, rule: Rule, names: dict[str, str], owned: str | None) -> None:
        self.rule = rule
        self.names = names
        self.owned_arrays = owned_arrays(rule, owned)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if self.rule.is_atomic(node.func):
            assert isinstance(node.func, ast.Attribute)
            shared, plain = ATOMIC[node.func.attr]
            array = node.args[0]
            is_owned = isinstance(array, ast.Name) and array.id in self.owned_arrays
            arguments = [self.visit(argument) for argument in node.args]
            return ast.Call(ast.Name(plain if is_owned else shared, ast.Load()), arguments, [])
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        if node.id in self.rule.outside:
            return ast.parse(_outside_text(self.rule.outside[node.id]), mode="eval").body
        return ast.Name(_local_name(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(_local_name(node.arg))


_WRITTEN = frozenset(("np", "math", *itertools.chain.from_iterable(ATOMIC.values())))


def _local_name(name: str) -> str:
    """Return a rule's own name, changed if rewriting writes it for something else."""
    return f"{name}_" if name in _WRITTEN else name


def _outside_text(value: Any) -> str:
    """Return the text of a module or a number; a number keeps its type."""
    if isinstance(value, ModuleType):
        return "np" if value is np else "math"
    if isinstance(value, (bool, np.bool_)):
        return repr(bool(value))
    if isinstance(value, float):
        return _float_text(float(value))
    if isinstance(value, np.floating):
        return f"np.{value.dtype.name}({_float_text(float(value))})"
    return f"np.{value.dtype.name}({int(value)})" if isinstance(value, np.integer) else repr(int(value))


def _float_text(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}np.{'nan' if value != value else 'inf'}"


def write_rule(rule: Rule, name: str, names: dict[str, str], owned: str | None) -> str:
    """Return a rule's source under ``name``, statement for statement; ``names`` are those of the rules it calls.

    ``owned`` is the vertex that one thread has for itself (the destination of a pull, the source of a push): arrays
    updated only there need no atomics.
    """
    check_body(rule)
    tree = _RuleRewriter(rule, names, owned).visit(copy.deepcopy(rule.tree))
    tree.name = name
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree)):
        tree.body.append(ast.Return(ast.Constant(False)))
    return ast.unparse(ast.fix_missing_locations(tree))
