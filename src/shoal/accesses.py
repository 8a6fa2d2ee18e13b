# SPDX-License-Identifier: Apache-2.0
"""What a rule does to its arrays, and at which vertex.

`find_accesses` says of every array that a rule takes where it is read and written: at the vertex that one of the rule's
parameters names (``level[src]``), or anywhere.  `owned_arrays` says which of them need no atomics: those written only
at a vertex that one thread has for itself.  `contended_arrays` says which a rule must read anew each time: those that
it changes by atomics at vertices of its own choice.  Every place counts where an array may be touched: an assignment,
an atomic, a rule that is called with it, a function that may store into its argument; under the array's own name,
another one, or that of a row of it.  In doubt a place is anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from shoal.rules import BUILTINS, Rule

ANYWHERE = "anywhere"
EVERY_VERTEX = "every vertex"  # for `owned_arrays`: one thread has them all for itself


@dataclass(frozen=True)
class Access:
    """A rule touches ``array`` at the vertex that its parameter ``place`` names, or `ANYWHERE`."""

    array: str
    place: str
    reads: bool = False
    writes: bool = False


def find_accesses(rule: Rule) -> frozenset[Access]:
    """Return what a rule does to its parameters; one that is used by itself, not indexed, is read anywhere."""
    return frozenset(_Accesses(rule).find())


def owned_arrays(rule: Rule, owned: str | None) -> set[str]:
    """Return the parameters that the rule updates only at ``owned``, a vertex that no other thread has."""
    if owned == EVERY_VERTEX:
        return set(rule.parameters) - assigned_names(rule)
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


def contended_arrays(rule: Rule) -> frozenset[str]:
    """Return the parameters that a rule changes by atomics and reads at vertices that no parameter names.

    It may try again until it finds what another thread has stored there, so what it read before is not good enough.
    """
    accesses = find_accesses(rule)
    anywhere = {access.array for access in accesses if access.place == ANYWHERE}
    return frozenset(anywhere & {access.array for access in accesses if access.reads} & _atomic_arrays(rule))


def reads_elements_only(rule: Rule, arrays: frozenset[str]) -> bool:
    """Whether all reads of ``arrays`` are by an index, an atomic, or a called rule to which they are contended."""
    known: set[ast.expr] = set()
    for node in ast.walk(rule.tree):
        if isinstance(node, ast.Subscript) and not any(isinstance(i, ast.Slice) for i in _indices(node.slice)):
            known.add(node.value)
        elif isinstance(node, ast.Call) and rule.is_atomic(node.func):
            known.add(node.args[0])
        elif isinstance(node, ast.Call):
            callee, given = _handed(rule, node)
            contended = frozenset() if callee is None else contended_arrays(callee)
            if callee is not None and reads_elements_only(callee, contended):
                known.update(argument for name, argument in given.items() if name in contended)
    names = [node for node in ast.walk(rule.tree) if isinstance(node, ast.Name) and node.id in arrays]
    return all(name in known for name in names)


def assigned_names(rule: Rule) -> set[str]:
    """Return the names that a rule assigns to."""
    return set(_Body(rule).aliases)


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
                assert isinstance(call.func, ast.Attribute)
                rank = len(_indices(call.args[1])) + (call.func.attr == "add_row")  # its index names no element
                self.ranks[name] = max(rank, self.ranks.get(name, 1))
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
                yield from ((array, None) for array in self.written_arguments(call))

    def _calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.rule.tree) if isinstance(node, ast.Call))

    def written_arguments(self, call: ast.Call) -> Iterable[ast.expr]:
        """Return the arguments of a call that it may store into."""
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


class _Accesses:
    """Collects the accesses of one rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule, self.body = rule, _Body(rule)
        self.explained: set[ast.expr] = set()  # names that stand in an access which is known
        statements = (node for node in ast.walk(rule.tree) if isinstance(node, ast.Expr))
        self.unused = {statement.value for statement in statements}  # whose value nobody takes

    def find(self) -> Iterator[Access]:
        for node in ast.walk(self.rule.tree):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                yield from self._at(node.target.value, node.target.slice, reads=True)
            if isinstance(node, ast.Subscript):
                is_read = isinstance(node.ctx, ast.Load)
                yield from self._at(node.value, node.slice, reads=is_read, writes=not is_read)
            elif isinstance(node, ast.Call) and self.rule.is_atomic(node.func):
                yield from self._at(node.args[0], node.args[1], reads=node not in self.unused, writes=True)
            elif isinstance(node, ast.Call):
                yield from self._by_call(node)
        for name in self._names():
            if name not in self.explained:
                yield Access(name.id, ANYWHERE, reads=True)

    def _names(self) -> Iterator[ast.Name]:
        loaded = (n for n in ast.walk(self.rule.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        return (name for name in loaded if name.id in self.rule.parameters)

    def _at(self, array: ast.expr, index: ast.expr, *, reads: bool = False, writes: bool = False) -> Iterator[Access]:
        first = _indices(index)[0]
        if self._is_parameter(array):
            assert isinstance(array, ast.Name)
            self.explained.add(array)
            place = ANYWHERE
            if self._is_parameter(first):
                assert isinstance(first, ast.Name)
                self.explained.add(first)
                place = first.id
            yield Access(array.id, place, reads, writes)
        elif writes:
            yield from self._somewhere(array)

    def _by_call(self, call: ast.Call) -> Iterator[Access]:
        callee, given = _handed(self.rule, call)
        if callee is not None:
            for access in find_accesses(callee):
                yield from self._by_callee(access, given)
            return
        if isinstance(call.func, ast.Name) and call.func.id == "len":
            self.explained.update(argument for argument in call.args if isinstance(argument, ast.Name))
        for argument in self.body.written_arguments(call):
            yield from self._somewhere(argument)

    def _by_callee(self, access: Access, given: dict[str, ast.expr]) -> Iterator[Access]:
        array, place = given.get(access.array), given.get(access.place)
        if array is None or not self._is_parameter(array):
            if array is not None and access.writes:
                yield from self._somewhere(array)
            return
        assert isinstance(array, ast.Name)
        self.explained.add(array)
        is_known = place is not None and self._is_parameter(place)
        if is_known and isinstance(place, ast.Name):
            self.explained.add(place)
            yield Access(array.id, place.id, access.reads, access.writes)
        else:
            yield Access(array.id, ANYWHERE, access.reads, access.writes)

    def _somewhere(self, array: ast.expr) -> Iterator[Access]:
        for name in self.body.origins(array) & set(self.rule.parameters):
            yield Access(name, ANYWHERE, writes=True)

    def _is_parameter(self, node: ast.expr | None) -> bool:
        """Whether an expression is a parameter that always means what it meant at first."""
        return isinstance(node, ast.Name) and node.id in self.rule.parameters and node.id not in self.body.aliases


def _handed(rule: Rule, call: ast.Call) -> tuple[Rule | None, dict[str, ast.expr]]:
    """Return the rule that a call calls, if it does, and what it is given for each of its parameters."""
    callee = rule.outside.get(call.func.id) if isinstance(call.func, ast.Name) else None
    if not isinstance(callee, Rule) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None, {}
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return callee, {**dict(zip(callee.parameters, call.args, strict=False)), **named}


def _atomic_arrays(rule: Rule) -> set[str]:
    """Return the parameters that atomics change, of the rule or of those that it calls."""
    body, found = _Body(rule), set()
    for call in (node for node in ast.walk(rule.tree) if isinstance(node, ast.Call)):
        if rule.is_atomic(call.func):
            found |= body.origins(call.args[0])
            continue
        callee, given = _handed(rule, call)
        changed = set() if callee is None else _atomic_arrays(callee)
        found |= set().union(*(body.origins(argument) for name, argument in given.items() if name in changed))
    return found & set(rule.parameters)


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
