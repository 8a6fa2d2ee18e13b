# SPDX-License-Identifier: Apache-2.0
"""Rules: small Python functions over one edge or one vertex, compiled for every backend from one source.

A rule is never run by Python.  A backend writes its source, with the values of the globals it names, into a generated
module beside the loop that bears it; so the compiler sees one function and the disk cache sees every change.
What a rule may take, by the names of its parameters: ``src``, ``dst``, ``edge``, ``weight`` (an edge's), ``vertex``,
``value`` (what a gather has summed), ``key`` (by which a tally has), ``shared`` and ``between`` (of an intersection),
``superstep``, ``frontier_size``, ``num_vertices``, ``current_priority`` (of an
ordered advance), and the program's own fields.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from shoal.errors import ProgramError

RESERVED = ("src", "dst", "edge", "weight", "vertex", "value", "key", "shared", "between", "is_owned", "superstep",
            "frontier_size", "num_vertices", "current_priority")  # fmt: skip
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.float32)  # a float64 is a float
_MODULES = (np, math)
#: Functions of Python that a rule may call.
BUILTINS = frozenset(("range", "len", "min", "max", "abs", "int", "float", "bool", "round"))
#: What a rule may not contain, by the kind of syntax.
_REFUSED: dict[type[ast.AST], str] = {
    ast.Import: "import", ast.ImportFrom: "import", ast.Global: "global", ast.Nonlocal: "nonlocal",
    ast.FunctionDef: "a function within", ast.AsyncFunctionDef: "a function within", ast.ClassDef: "a class",
    ast.Lambda: "lambda", ast.Yield: "yield", ast.YieldFrom: "yield", ast.Await: "await",
    ast.With: "with (a context manager)", ast.Try: "try", ast.TryStar: "try",
    ast.ListComp: "a list", ast.List: "a list", ast.SetComp: "a set", ast.Set: "a set", ast.DictComp: "a dict",
    ast.Dict: "a dict", ast.GeneratorExp: "a generator", ast.JoinedStr: "an f-string",
}  # fmt: skip


class atomic:  # noqa: N801 - reads as a namespace: atomic.min(level, dst, value)
    """Updates that several edges may make to one element at once; for use inside rules only.

    ``min`` and ``max`` say whether they changed the element; ``add``, ``bit_or``, ``bit_and`` and ``exchange`` return
    the old value; ``compare_exchange(array, index, expected, desired)`` says whether it stored ``desired``;
    ``add_row`` returns nothing.
    """

    OPERATIONS = ("min", "max", "add", "bit_or", "bit_and", "exchange", "compare_exchange", "add_row")

    def __init__(self) -> None:
        raise TypeError("atomic is a namespace, not a class to make objects of")

    @staticmethod
    def min(array: Any, index: Any, value: Any) -> bool:
        """Store the smaller of ``array[index]`` and ``value``; True if that was ``value``."""
        raise ProgramError("atomic.min works only inside a rule")

    @staticmethod
    def max(array: Any, index: Any, value: Any) -> bool:
        """Store the larger of ``array[index]`` and ``value``; True if that was ``value``."""
        raise ProgramError("atomic.max works only inside a rule")

    @staticmethod
    def add(array: Any, index: Any, value: Any) -> Any:
        """Add ``value`` to ``array[index]``; the old value."""
        raise ProgramError("atomic.add works only inside a rule")

    @staticmethod
    def bit_or(array: Any, index: Any, value: Any) -> Any:
        """Set the bits of ``value`` in ``array[index]``; the old value."""
        raise ProgramError("atomic.bit_or works only inside a rule")

    @staticmethod
    def bit_and(array: Any, index: Any, value: Any) -> Any:
        """Keep only the bits of ``value`` in ``array[index]``; the old value."""
        raise ProgramError("atomic.bit_and works only inside a rule")

    @staticmethod
    def exchange(array: Any, index: Any, value: Any) -> Any:
        """Store ``value``; the old value."""
        raise ProgramError("atomic.exchange works only inside a rule")

    @staticmethod
    def compare_exchange(array: Any, index: Any, expected: Any, desired: Any) -> bool:
        """Store ``desired`` if ``array[index]`` is ``expected``; True if it was."""
        raise ProgramError("atomic.compare_exchange works only inside a rule")

    @staticmethod
    def add_row(array: Any, index: Any, row: Any, mask: Any, width: Any) -> None:
        """Add ``row[k]`` to ``array[index, k]`` for every k below ``width`` whose bit in ``mask`` is set."""
        raise ProgramError("atomic.add_row works only inside a rule")


@dataclass(frozen=True, eq=False)
class Rule:
    """A function marked with `rule`: its syntax tree, with the lines of its file, and what it takes from outside.

    ``outside`` holds a value for every such name: a number, numpy, math, `atomic` or another rule.
    """

    name: str
    parameters: tuple[str, ...]
    tree: ast.FunctionDef
    outside: dict[str, Any]
    file: str
    line: int
    source: str = field(repr=False)

    @property
    def callees(self) -> dict[str, Rule]:
        """The rules that this one calls, by the names it calls them."""
        return {name: value for name, value in self.outside.items() if isinstance(value, Rule)}

    def where(self, line: int | None = None) -> str:
        """Return the words that locate this rule, or a line of it, in an error message."""
        return _where(self.name, self.file, self.line if line is None else line)

    def is_atomic(self, node: ast.expr) -> bool:
        """Whether ``node`` is an operation of `atomic`, by whatever name the rule calls that."""
        return _is_atomic(node, self.outside)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ProgramError(f"{self.where()} cannot be called from Python; give it to an operator such as advance()")


def rule(function: Callable) -> Rule:
    """Mark a function as a rule, to be compiled for the device a program runs on.

    Examples
    --------
    >>> from shoal import rule, atomic
    >>> @rule
    ... def discover(src, dst, level):
    ...     return atomic.min(level, dst, level[src] + 1)
    >>> discover.parameters
    ('src', 'dst', 'level')
    """
    if not isinstance(function, FunctionType):
        raise ProgramError(f"@rule takes a function, not {function!r}")
    tree = _parse(function)
    parameters = _parameters(function, tree)
    outside = _resolve(function, tree, parameters)
    _place_arguments(function, tree, outside)
    code = function.__code__
    return Rule(
        function.__name__, parameters, tree, outside, code.co_filename, code.co_firstlineno, ast.unparse(tree)
    )  # fmt: skip


def check_body(rule: Rule) -> None:
    """Refuse what no backend compiles; done when a program is compiled, as with all other faults of a rule's body."""
    for node in ast.walk(rule.tree):
        if isinstance(node, (ast.stmt, ast.expr)) and type(node) in _REFUSED and node is not rule.tree:
            raise ProgramError(f"{rule.where(node.lineno)}: {_REFUSED[type(node)]} is not allowed in a rule")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = rule.outside.get(node.value.id)
            if isinstance(module, ModuleType) and not hasattr(module, node.attr):
                raise ProgramError(f"{rule.where(node.lineno)}: {module.__name__} has no {node.attr!r}")


def _where(name: str, file: str, line: int) -> str:
    return f"rule {name!r} ({file}, line {line})"


def _fault(function: FunctionType, line: int, reason: str) -> ProgramError:
    return ProgramError(f"{_where(function.__name__, function.__code__.co_filename, line)}: {reason}")


def _parse(function: FunctionType) -> ast.FunctionDef:
    """Return a rule's syntax tree, with the line numbers of its file, without docstring and annotations."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise ProgramError(f"the source of rule {function.__name__!r} cannot be found; define it in a file") from None
    tree = _first_statement(lines)
    if not isinstance(tree, ast.FunctionDef):
        raise _fault(function, first, "a rule must be a plain function (def)")
    ast.increment_lineno(tree, first - 2)
    tree.decorator_list = []
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None and len(tree.body) > 1:
        tree.body = tree.body[1:]
    return tree


def _first_statement(lines: list[str]) -> ast.stmt | None:
    """Parse indented source as it stands, under an ``if``: its comments and strings may begin at any margin."""
    try:
        if lines[0][:1].isspace():
            block = ast.parse("if True:\n" + "".join(lines)).body[0]
            return block.body[0] if isinstance(block, ast.If) else None
        return ast.parse("\n" + "".join(lines)).body[0]
    except SyntaxError:  # a lambda's lines are a piece of some statement
        return None


def _parameters(function: FunctionType, tree: ast.FunctionDef) -> tuple[str, ...]:
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs:
        line = function.__code__.co_firstlineno
        raise _fault(function, line, "parameters must be plain names, without defaults, * or **")
    return tuple(argument.arg for argument in arguments.args)


def _resolve(function: FunctionType, tree: ast.FunctionDef, parameters: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of the names that a rule takes from outside, all but the builtin functions."""
    outside: dict[str, Any] = {}
    for name, line in _free_names(tree, parameters):
        value = _look_up(function, name)
        if value is _BUILTIN:
            continue
        refusal = _refusal(function, name, value)
        if refusal is not None:
            raise _fault(function, line, f"{name!r} {refusal}")
        outside[name] = value
    return outside


_MISSING = object()
_BUILTIN = object()


def _refusal(function: FunctionType, name: str, value: Any) -> str | None:
    """Return why a rule may not use a name from outside, or None if it may."""
    if _is_itself(function, name):
        return "is the rule itself; a rule may not call itself"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return "is a number of more than 64 bits"
    if isinstance(value, (*_NUMBERS, Rule)) or value is atomic or any(value is module for module in _MODULES):
        return None
    what = "is not defined before the rule" if value is _MISSING else f"is a {type(value).__name__}"
    return f"{what}; a rule may use its parameters, numbers, numpy, math, atomic and rules defined before it"


def _is_itself(function: FunctionType, name: str) -> bool:
    """Whether ``name`` will be the function, once it is defined; in a class it is something outside the class."""
    scope = function.__qualname__.removesuffix(function.__name__)
    return name == function.__name__ and (scope == "" or scope.endswith("<locals>."))


def _look_up(function: FunctionType, name: str) -> Any:
    enclosing = function.__code__.co_freevars
    if name in enclosing:
        cell = (function.__closure__ or ())[enclosing.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # assigned later
            return _MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return _BUILTIN if name in BUILTINS else _MISSING


def _free_names(tree: ast.FunctionDef, parameters: tuple[str, ...]) -> list[tuple[str, int]]:
    """Names read in the body that are neither parameters nor assigned in it, with their first line, in order."""
    assigned = set(parameters)
    read: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read[node.id] = min(node.lineno, read.get(node.id, node.lineno))
        elif isinstance(node, ast.Name):
            assigned.add(node.id)
        elif isinstance(node, ast.arg):  # of a lambda
            assigned.add(node.arg)
    return sorted(((name, line) for name, line in read.items() if name not in assigned), key=lambda item: item[1])


def _is_atomic(node: ast.expr, outside: dict[str, Any]) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and outside.get(node.value.id) is atomic


def _place_arguments(function: FunctionType, tree: ast.FunctionDef, outside: dict[str, Any]) -> None:
    """Put the arguments of all atomics in their places, those given by name too; refuse other uses of `atomic`."""
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_atomic(node.func, outside):
            assert isinstance(node.func, ast.Attribute)
            node.args, node.keywords = _arguments(function, node, node.func.attr), []
            called.add(node.func.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and outside.get(node.id) is atomic and node not in called:
            allowed = ", ".join(atomic.OPERATIONS)
            raise _fault(function, node.lineno, f"atomic is for calls of its operations only; allowed: {allowed}")


def _arguments(function: FunctionType, call: ast.Call, operation: str) -> list[ast.expr]:
    """Return the arguments of an atomic in the order of its parameters."""
    if operation not in atomic.OPERATIONS:
        allowed = ", ".join(atomic.OPERATIONS)
        raise _fault(function, call.lineno, f"atomic.{operation} is not known; allowed: {allowed}")
    signature = inspect.signature(getattr(atomic, operation))
    form = f"atomic.{operation}({', '.join(signature.parameters)})"
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    if len(named) < len(call.keywords) or any(isinstance(argument, ast.Starred) for argument in call.args):
        raise _fault(function, call.lineno, f"{form} takes its arguments one by one, without * or **")
    try:
        return list(signature.bind(*call.args, **named).args)
    except TypeError as error:
        raise _fault(function, call.lineno, f"{form}: {error}") from None
