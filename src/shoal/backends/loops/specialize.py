# SPDX-License-Identifier: Apache-2.0
"""Turn templates and rules into the source of a generated module (see `shoal.backends.loops.hooks`)."""

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

from shoal.accesses import assigned_names, contended_arrays, owned_arrays
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
    "add_row": ("atomic_add_row", "plain_add_row"),
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
    shared: tuple[str, ...] = ()  # parameters that a kernel has only where there are several devices

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
            if "edge" in provided and "edge" in call.arguments:
                edge = ast.unparse(provided["edge"])
                provided["edge"] = ast.parse(call.arguments["edge"].format(edge=edge), mode="eval").body
            return call.to_ast(provided)
        node.args = list(self._expand(node.args, lambda n: ast.Name(n, ast.Load()), lambda a: getattr(a, "id", None)))
        self.generic_visit(node)
        return node

    def visit_If(self, node: ast.If) -> Any:
        """Leave out what an option switches off: it may name what is not there."""
        node.test = self.visit(node.test)
        if not isinstance(node.test, ast.Constant):
            self.generic_visit(node)
            node.body = node.body or [ast.Pass()]
            return node
        taken = node.body if node.test.value else node.orelse
        return [part for statement in taken for part in _as_list(self.visit(statement))]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            return node
        return node.body if node.test.value else node.orelse

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Leave out what decides nothing, and what comes behind that which decides."""
        self.generic_visit(node)
        is_and, values = isinstance(node.op, ast.And), []
        for value in node.values:
            if not isinstance(value, ast.Constant):
                values.append(value)
            elif bool(value.value) != is_and:
                is_pure = all(isinstance(before, ast.Name) for before in values)
                values = [value] if is_pure else [*values, value]
                break
        if len(values) > 1:
            node.values = values
            return node
        return values[0] if values else ast.Constant(is_and)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.options:
            return ast.Constant(self.options[node.id])
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def _expand(self, items: list, make: Callable[[str], Any], name_of: Callable[[Any], Any]) -> Iterable[Any]:
        for item in items:
            if name_of(item) == "STATE":
                yield from (make(name) for name in self.state)
            elif name_of(item) == "SHARED":
                yield from (make(name) for name in self.shared)
            else:
                yield item


def _as_list(visited: Any) -> list:
    return visited if isinstance(visited, list) else [visited]


@functools.cache
def _functions(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def specialize(module: ModuleType, function: str, specializer: Specializer) -> str:
    """Return the source of one template function, rewritten."""
    tree = specializer.visit(copy.deepcopy(_functions(module)[function]))
    return ast.unparse(ast.fix_missing_locations(tree))


@dataclass(frozen=True)
class Renumbering:
    """How a rule tells a device's ids from the graph's: it indexes by the one, and compares and stores the other.

    Parameters
    ----------
    places : parameters that are a device's ids of vertices
    arrays : parameters that are indexed by these: fields of the vertices
    write : writes another rule for given places and arrays and returns its name
    """

    places: frozenset[str]
    arrays: frozenset[str]
    write: Callable[[Rule, frozenset[str], frozenset[str]], str]


class _RuleRewriter(ast.NodeTransformer):
    """Rewrites a rule's body: constants become literals, atomics intrinsics, other rules their generated names."""

    def __init__(
        self, rule: Rule, names: dict[str, str], owned: str | None, renumbering: Renumbering | None = None,
        is_fresh: bool = False,
    ) -> None:  # fmt: skip
        self.rule = rule
        self.fresh = contended_arrays(rule) if is_fresh else frozenset()
        self.names = names
        self.owned_arrays = owned_arrays(rule, owned)
        self.renumbering = renumbering
        self.places = frozenset() if renumbering is None else renumbering.places - assigned_names(rule)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if self.rule.is_atomic(node.func):
            assert isinstance(node.func, ast.Attribute)
            shared, plain = ATOMIC[node.func.attr]
            array = node.args[0]
            is_owned = isinstance(array, ast.Name) and array.id in self.owned_arrays
            index = self._index(array, node.args[1])
            arguments = [self.visit(array), index, *(self.visit(argument) for argument in node.args[2:])]
            return ast.Call(ast.Name(plain if is_owned else shared, ast.Load()), arguments, [])
        callee = self.rule.outside.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(callee, Rule) and self.renumbering is not None:
            return self._call_renumbered(callee, node)
        self.generic_visit(node)
        return node

    def _call_renumbered(self, callee: Rule, node: ast.Call) -> ast.expr:
        """Hand a device's ids on as they are: whom they are handed to tells the two numberings apart by itself."""
        assert self.renumbering is not None
        named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        given = {**dict(zip(callee.parameters, node.args, strict=False)), **named}
        names = {parameter: value.id for parameter, value in given.items() if isinstance(value, ast.Name)}
        places = frozenset(parameter for parameter, name in names.items() if name in self.places)
        arrays = frozenset(parameter for parameter, name in names.items() if name in self.renumbering.arrays)
        handed = [
            ast.Name(names[parameter], ast.Load()) if parameter in places else self.visit(given[parameter])
            for parameter in callee.parameters
        ]
        function = self.renumbering.write(callee, places, arrays)
        return ast.Call(ast.Name(function, ast.Load()), [*handed, ast.Name(GLOBAL_IDS, ast.Load())], [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        array, index = self.visit(node.value), self._index(node.value, node.slice)
        if isinstance(node.value, ast.Name) and node.value.id in self.fresh and isinstance(node.ctx, ast.Load):
            return ast.Call(ast.Name("load", ast.Load()), [array, index], [])
        return ast.Subscript(array, index, node.ctx)

    def _index(self, array: ast.expr, index: ast.expr) -> ast.expr:
        """Return an index; one of a field is a device's own id."""
        is_field = self.renumbering is not None and isinstance(array, ast.Name) and array.id in self.renumbering.arrays
        first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
        if not is_field or not isinstance(first, ast.Name) or first.id not in self.places:
            return self.visit(index)
        if not isinstance(index, ast.Tuple):
            return index
        return ast.Tuple([first, *(self.visit(item) for item in index.elts[1:])], ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.places:
            return ast.parse(f"np.int64({GLOBAL_IDS}[{node.id}])", mode="eval").body
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        if node.id in self.rule.outside:
            return ast.parse(_outside_text(self.rule.outside[node.id]), mode="eval").body
        return ast.Name(_local_name(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(_local_name(node.arg))


GLOBAL_IDS = "global_ids"  # the array with the graph's id of each of a device's
_WRITTEN = frozenset(("np", "math", "global_ids", "load", *itertools.chain.from_iterable(ATOMIC.values())))


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
        return float_text(float(value))
    if isinstance(value, np.floating):
        return f"np.{value.dtype.name}({float_text(float(value))})"
    return f"np.{value.dtype.name}({int(value)})" if isinstance(value, np.integer) else repr(int(value))


def float_text(value: float) -> str:
    """Return a float's text in generated code."""
    value = float(value)
    return repr(value) if math.isfinite(value) else f"{'-' if value < 0 else ''}np.{'nan' if value != value else 'inf'}"


def write_rule(
    rule: Rule, name: str, names: dict[str, str], owned: str | None, renumbering: Renumbering | None = None,
    *, is_fresh: bool = False,
) -> str:  # fmt: skip
    """Return a rule's source under ``name``, statement for statement; ``names`` are those of the rules it calls.

    ``owned`` is the vertex that one thread has for itself (the destination of a pull, the source of a push): arrays
    updated only there need no atomics.  With ``is_fresh`` elements of contended arrays are read anew each time.
    """
    check_body(rule)
    tree = _RuleRewriter(rule, names, owned, renumbering, is_fresh).visit(copy.deepcopy(rule.tree))
    tree.name = name
    if renumbering is not None:
        tree.args.args.append(ast.arg(GLOBAL_IDS))
        reused = sorted(renumbering.places & assigned_names(rule))
        tree.body[:0] = [ast.parse(f"{place} = np.int64({GLOBAL_IDS}[{place}])").body[0] for place in reused]
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(tree)):
        tree.body.append(ast.Return(ast.Constant(False)))
    return ast.unparse(ast.fix_missing_locations(tree))
