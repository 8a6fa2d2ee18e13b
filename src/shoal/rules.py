# SPDX-License-Identifier: Apache-2.0
"""Rules: small Python functions over one edge or one vertex, compiled for every backend from one source.

A rule is never run by Python.  A backend writes its source, with the values of the globals it names, into a generated
module beside the loop that bears it; so the compiler sees one function and the disk cache sees every change.
What a rule may take, by the names of its parameters: ``src``, ``dst``, ``edge``, ``weight`` (an edge's), ``vertex``,
``value`` (what a gather has summed), ``superstep``, ``frontier_size``, ``num_vertices``, ``current_priority`` (of an
ordered advance), and the program's own fields.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from shoal.errors import ProgramError

RESERVED = ("src", "dst", "edge", "weight", "vertex", "value", "superstep", "frontier_size", "num_vertices",
            "current_priority")  # fmt: skip
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_MODULES = {np: "numpy", math: "math"}


class atomic:  # noqa: N801 - reads as a namespace: atomic.min(level, dst, value)
    """Updates that several edges may make to one element at once; for use inside rules only.

    ``min`` and ``max`` say whether they changed the element; ``add``, ``bit_or``, ``bit_and`` and ``exchange`` return
    the old value; ``compare_exchange(array, index, expected, desired)`` says whether it stored ``desired``.
    """

    OPERATIONS = ("min", "max", "add", "bit_or", "bit_and", "exchange", "compare_exchange")

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


@dataclass(frozen=True, eq=False)
class Rule:
    """A function marked with `rule`: its source as a syntax tree and the globals it uses."""

    name: str
    parameters: tuple[str, ...]
    tree: ast.FunctionDef
    constants: dict[str, bool | int | float]
    modules: dict[str, str]
    callees: tuple[Rule, ...]
    file: str
    line: int
    source: str = field(repr=False)

    def where(self) -> str:
        """Return the words that locate this rule in an error message."""
        return f"rule {self.name!r} ({self.file}, line {self.line})"

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
    tree, source = _parse(function)
    parameters = _parameters(function, tree)
    constants, modules, callees = _resolve_globals(function, tree, parameters)
    code = function.__code__
    return Rule(
        function.__name__, parameters, tree, constants, modules, callees, code.co_filename, code.co_firstlineno, source
    )


def _parse(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise ProgramError(f"the source of rule {function.__name__!r} cannot be found; define it in a file") from None
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise ProgramError(f"rule {function.__name__!r} must be a plain function (def)")
    tree.decorator_list = []
    tree.returns = None
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None and len(tree.body) > 1:
        tree.body = tree.body[1:]
    return tree, ast.unparse(tree)


def _parameters(function: FunctionType, tree: ast.FunctionDef) -> tuple[str, ...]:
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or arguments.posonlyargs:
        code = function.__code__
        raise ProgramError(
            f"rule {function.__name__!r} ({code.co_filename}, line {code.co_firstlineno}): "
            "parameters must be plain names, without defaults, * or **"
        )
    return tuple(argument.arg for argument in arguments.args)


def _resolve_globals(
    function: FunctionType, tree: ast.FunctionDef, parameters: tuple[str, ...]
) -> tuple[dict[str, bool | int | float], dict[str, str], tuple[Rule, ...]]:
    """Sort the names that a rule takes from outside into constants, modules and other rules."""
    constants: dict[str, bool | int | float] = {}
    modules: dict[str, str] = {}
    callees: list[Rule] = []
    for name, line in _free_names(tree, parameters):
        value = _look_up(function, name)
        if value is atomic or value is _BUILTIN:
            continue
        if isinstance(value, _NUMBERS):
            constants[name] = value.item() if isinstance(value, np.generic) else value
        elif isinstance(value, ModuleType) and value in _MODULES:
            modules[name] = _MODULES[value]
        elif isinstance(value, Rule):
            callees.append(value)
        else:
            raise ProgramError(_refusal(function, name, value, line))
    return constants, modules, tuple(callees)


def _refusal(function: FunctionType, name: str, value: Any, line: int) -> str:
    code = function.__code__
    what = "is not defined" if value is _MISSING else f"is a {type(value).__name__}"
    place = f"{code.co_filename}, line {code.co_firstlineno + line - 1}"
    return (
        f"rule {function.__name__!r} ({place}): {name!r} {what}; "
        "a rule may use its parameters, numbers, numpy, math, atomic and other rules"
    )


_MISSING = object()
_BUILTIN = object()
_ALLOWED_BUILTINS = frozenset(("range", "len", "min", "max", "abs", "int", "float", "bool", "round", "True", "False"))


def _look_up(function: FunctionType, name: str) -> Any:
    closure = inspect.getclosurevars(function)
    if name in closure.nonlocals:
        return closure.nonlocals[name]
    if name in function.__globals__:
        return function.__globals__[name]
    return _BUILTIN if name in _ALLOWED_BUILTINS else _MISSING


def _free_names(tree: ast.FunctionDef, parameters: tuple[str, ...]) -> list[tuple[str, int]]:
    """Names read in the body that are neither parameters nor assigned in it, with their line, in order."""
    assigned = set(parameters)
    read: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                read.setdefault(node.id, node.lineno)
            else:
                assigned.add(node.id)
    return [(name, line) for name, line in read.items() if name not in assigned]
