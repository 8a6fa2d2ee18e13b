# SPDX-License-Identifier: Apache-2.0
"""Rules: what they may use, and that every mistake in one is reported with its name, file and line."""

import enum
import math
from pathlib import Path

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import path_graph
from shoal import Constant, Phase, Program, Scalar, Vertex, advance, atomic, compute, reduce, rule
from shoal.errors import ProgramError

GRAPH = path_graph(4)


class Apply(Program):
    """Run one rule once on every vertex."""

    count = Vertex("int64")
    share = Vertex("float64")
    word = Vertex("uint64", fill=2**63)
    flag = Vertex("bool")
    limit = Constant("int32")
    level = Scalar("int64", fill=5)
    other_level = Scalar("int64")

    def __init__(self, used):
        self.used = used

    def start(self):
        self.limit = 9

    def step(self, frontier):
        compute(frontier, self.used)

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]


def apply(used):
    return shoal.run(Apply(used), GRAPH)


# What rules may use

SMALL = 3
HALF = 0.5
IS_ON = True
BELOW = -2
FIRST_BIT = np.uint64(1)
SINGLE = np.float32(0.25)
NOWHERE = math.inf


class Color(enum.IntEnum):
    RED = 7


RED = Color.RED


@rule
def squared(x):
    return x * x


def test_globals_numpy_math_and_other_rules():
    offset = 100  # from the enclosing function

    @rule
    def cubed(x):
        """A rule that calls a rule."""
        return x * squared(x)

    @rule
    def everything_allowed(vertex: int, num_vertices: "int", count, share, limit: np.int32, level) -> None:
        """Use all that a rule may use.

        Over several lines.
        """
        # A comment,

        total = 0
        for i in range(SMALL):
            total += cubed(i) if IS_ON else 0
        count[vertex] = total + offset + limit + level + num_vertices
        share[vertex] = np.sqrt(HALF) + math.floor(2.7) + SINGLE + abs(min(-1, 5))
        if share[vertex] > NOWHERE:
            share[vertex] = np.nan

    result = apply(everything_allowed)
    assert set(result.count) == {0 + 1 + 8 + 100 + 9 + 5 + 4}
    assert set(result.share) == {np.sqrt(0.5) + 2 + 0.25 + 1}


def test_a_bare_return_ends_a_rule_early():
    @rule
    def early(vertex, count):
        if vertex == 1:
            return
        count[vertex] = 7

    assert apply(early).count.tolist() == [7, 0, 7, 7]


# fmt: off
# fmt: on


def test_a_rule_is_its_source():
    assert squared.parameters == ("x",)
    assert squared.file == __file__
    assert "x * x" in squared.source


# Mistakes found when a rule is marked


def lines_with(mark):
    """Numbers of the lines of this file that bear a mark."""
    lines = Path(__file__).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.partition("# mark: ")[2].split("  ")[0] == mark]


def assert_located(make, name, mark, *words):
    """Assert that ``make`` raises a `ProgramError` that names the rule, this file and the marked line."""
    (line,) = lines_with(mark)
    assert_refused(make, repr(name), f"{__file__}, line {line})", *words, error=ProgramError)


TABLE = [1, 2, 3]
LOOKUP = {"a": 1}


def test_an_undefined_name():
    def make():
        @rule
        def puzzled(vertex, count):
            """With a docstring."""
            count[vertex] = 1
            count[vertex] = missing  # mark: undefined  # noqa: F821

    assert_located(make, "puzzled", "undefined", "'missing' is not defined")


def test_a_list_is_no_constant():
    def make():
        @rule
        def listed(vertex, count):
            count[vertex] = TABLE[0]  # mark: list

    assert_located(make, "listed", "list", "'TABLE' is a list", "numbers")


def test_a_dict_is_no_constant():
    def make():
        @rule
        def looked_up(vertex, count):
            count[vertex] = LOOKUP["a"]  # mark: dict

    assert_located(make, "looked_up", "dict", "'LOOKUP' is a dict")


def test_print_is_not_for_rules():
    def make():
        @rule
        def talkative(vertex, count):
            print(vertex, end="")  # mark: print

    assert_located(make, "talkative", "print", "'print'")


def test_exceptions_are_not_for_rules():
    def make():
        @rule
        def careful(vertex, count):
            try:
                count[vertex] = 1
            except ZeroDivisionError:  # mark: except
                count[vertex] = 2

    assert_located(make, "careful", "except", "'ZeroDivisionError'")


def _starred(vertex, *rest): ...
def _double_starred(vertex, **rest): ...
def _with_default(vertex, count=1): ...
def _keyword_only(*, vertex): ...
def _positional_only(vertex, /): ...


@pytest.mark.parametrize("function", [_starred, _double_starred, _with_default, _keyword_only, _positional_only])
def test_parameters_are_plain_names(function):
    line = function.__code__.co_firstlineno
    place = f"{__file__}, line {line}"
    assert_refused(lambda: rule(function), repr(function.__name__), place, "plain names", error=ProgramError)


async def _coroutine(vertex): ...


NOT_FUNCTIONS = [3, "f", len, Program, squared, staticmethod(_starred), lambda vertex: True, _coroutine]


@pytest.mark.parametrize("value", NOT_FUNCTIONS, ids=lambda value: type(value).__name__)
def test_only_a_function_is_a_rule(value):
    assert_refused(lambda: rule(value), "rule", "function", error=ProgramError)


def test_a_rule_needs_its_source():
    names = {}
    exec("def made(vertex): return True", names)
    assert_refused(lambda: rule(names["made"]), "'made'", "source", error=ProgramError)


# Mistakes found when a program is compiled


@rule
def sum_of_two(x, y):
    return x + y


@rule
def calls_with_too_few(vertex, count):
    count[vertex] = sum_of_two(vertex)  # mark: too few


@rule
def calls_with_too_many(vertex, count):
    count[vertex] = sum_of_two(1, 2, 3)  # mark: too many


@rule
def documented(vertex, count):
    """Say something.

    And more, over several lines.
    """
    # A comment and an empty line.

    near = (
        vertex
        + 1
    )  # fmt: skip
    count[vertex] = near.nothing  # mark: after comments


def _undecorated(vertex, count):
    count[vertex] = vertex.nothing  # mark: undecorated


@rule
def imports(vertex, count):
    import os  # mark: import  # noqa: F401

    count[vertex] = 1


@rule
def uses_a_context(vertex, count):
    with vertex:  # mark: with
        count[vertex] = 1


@rule
def asks_numpy_too_much(vertex, count):
    count[vertex] = np.no_such_function(vertex)  # mark: numpy


@rule
def indexes_by_name(vertex, count):
    count["vertex"] = 1  # mark: index


@rule
def yields(vertex, count):
    yield vertex  # mark: yield


@rule
def inner_fault(x):
    return x.nothing  # mark: inner


@rule
def outer(vertex, count):
    count[vertex] = inner_fault(vertex)


@rule
def bits_of_a_fraction(vertex, share):
    atomic.bit_or(share, vertex, 1)  # mark: bits


@rule
def changes_a_scalar(vertex, level):
    atomic.add(level, 0, 1)  # mark: scalar


FAULTY = {
    "too few": (calls_with_too_few, ["'y'"]),
    "too many": (calls_with_too_many, ["argument"]),
    "after comments": (documented, ["nothing"]),
    "undecorated": (rule(_undecorated), ["nothing"]),
    "import": (imports, []),
    "with": (uses_a_context, ["context"]),
    "numpy": (asks_numpy_too_much, ["no_such_function"]),
    "index": (indexes_by_name, []),
    "yield": (yields, []),
    "inner": (inner_fault, ["nothing"]),
    "bits": (bits_of_a_fraction, ["float64"]),
    "scalar": (changes_a_scalar, ["array"]),
}


class Miscounted(Apply):
    @rule
    def one(vertex, count):
        return count[vertex]

    def step(self, frontier):
        reduce(frontier, self.one, into=(self.level, self.other_level))


def test_a_fault_is_reported_again():
    """The second attempt neither succeeds nor fails in another way."""
    messages = set()
    for _ in range(2):
        with pytest.raises(ProgramError) as caught:
            apply(calls_with_too_few)
        messages.add(str(caught.value))
    assert len(messages) == 1


@rule
def of_a_vertex(vertex, unheard_of): ...


@rule
def of_an_edge(src, dst, count): ...


@rule
def of_a_value(vertex, value): ...


@rule
def of_itself(self, vertex): ...


UNKNOWN = [(of_a_vertex, "unheard_of"), (of_an_edge, "src"), (of_a_value, "value"), (of_itself, "self")]


@pytest.mark.parametrize(("used", "parameter"), UNKNOWN)
def test_a_parameter_that_is_not_provided(used, parameter):
    place = f"({__file__}, line {used.line})"
    assert_refused(lambda: apply(used), repr(used.name), place, repr(parameter), "allowed: vertex", error=ProgramError)


def test_a_rule_is_not_called_by_python():
    assert_refused(lambda: squared(3), "'squared'", __file__, "advance()", error=ProgramError)


@pytest.mark.parametrize("operation", atomic.OPERATIONS)
def test_atomics_are_for_rules_only(operation):
    arguments = [np.zeros(3), 0, 1, 2][: 4 if operation == "compare_exchange" else 3]
    call = lambda: getattr(atomic, operation)(*arguments)  # noqa: E731
    assert_refused(call, f"atomic.{operation}", "rule", error=ProgramError)


def test_atomic_is_not_made():
    with pytest.raises(TypeError, match="namespace"):
        atomic()


# Atomics that are left out where a vertex is one thread's own


@rule
def add_at(place, label):
    atomic.add(label, place, 1)


class Owned(Program):
    label = Vertex("int64")

    def __init__(self, form):
        self.form = form

    @rule
    def at_source(src, label):
        atomic.add(label, src, 1)

    @rule
    def at_moved_source(src, dst, label):
        src = dst
        atomic.add(label, src, 1)

    @rule
    def at_both(src, dst, label):
        atomic.add(label, src, 1)
        add_at(dst, label)

    def step(self, frontier):
        advance(frontier, getattr(self, self.form))

    def phases(self):
        return [Phase(self.step, max_supersteps=1)]
