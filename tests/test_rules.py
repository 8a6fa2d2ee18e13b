# SPDX-License-Identifier: Apache-2.0
"""Rules: what they may use, and that every mistake in one is reported with its name, file and line."""

import enum
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import shoal
from checks import assert_refused
from graphs import path_graph
from shoal import Constant, Phase, Program, Scalar, Vertex, advance, atomic, compute, reduce, rule
from shoal import atomic as indivisible
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
UNKNOWN_SHARE = -math.nan
LOWEST_SHARE = np.float32(-np.inf)
NEGATIVE_ZERO = -0.0
HUGE = 2**70
HALF_PRECISION = np.float16(0.5)


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
        share[vertex] = math.sqrt(HALF) + math.floor(2.7) + SINGLE + abs(min(-1, 5)) + np.maximum(HALF, SMALL)
        if share[vertex] > NOWHERE:
            share[vertex] = np.nan

    result = apply(everything_allowed)
    assert set(result.count) == {0 + 1 + 8 + 100 + 9 + 5 + 4}
    assert set(result.share) == {np.sqrt(0.5) + 2 + 0.25 + 1 + 3}


@pytest.mark.host_only("numba-cuda has some of NumPy's functions only, and math's")
def test_functions_of_numpy():
    @rule
    def rooted(vertex, share):
        share[vertex] = np.sqrt(HALF) + np.exp(0.0) + np.floor(2.5)

    assert set(apply(rooted).share) == {np.sqrt(0.5) + 1 + 2}


def test_a_negative_constant_is_one_number():
    @rule
    def below(vertex, count, share):
        count[vertex] = BELOW**2
        share[vertex] = -BELOW

    result = apply(below)
    assert set(result.count) == {4}
    assert set(result.share) == {2}


def test_a_constant_keeps_its_type():
    """Beside a signed number an unsigned one may count as signed: its highest bit would be the sign."""

    @rule
    def wide(vertex, word, share):
        share[vertex] = (word[vertex] | FIRST_BIT) > 0
        word[vertex] = word[vertex] >> FIRST_BIT

    result = apply(wide)
    assert set(result.word) == {2**62}
    assert set(result.share) == {1}


def test_a_constant_may_be_a_member_of_an_enumeration():
    @rule
    def colored(vertex, count):
        count[vertex] = RED

    assert set(apply(colored).count) == {7}


def test_constants_that_are_no_finite_numbers():
    @rule
    def odd(vertex, share):
        if vertex == 0:
            share[vertex] = UNKNOWN_SHARE
        elif vertex == 1:
            share[vertex] = LOWEST_SHARE
        elif vertex == 2:
            share[vertex] = NEGATIVE_ZERO
        else:
            share[vertex] = -NOWHERE

    share = apply(odd).share
    assert np.isnan(share[0])
    assert share[1:].tolist() == [-np.inf, 0, -np.inf]
    assert np.signbit(share[2])


def test_a_rule_may_go_by_another_name():
    power = squared

    @rule
    def renamed(vertex, count):
        count[vertex] = power(vertex)

    assert apply(renamed).count.tolist() == [0, 1, 4, 9]


def test_atomic_may_go_by_another_name():
    @rule
    def renamed(vertex, count):
        indivisible.add(count, 0, 1)

    assert apply(renamed).count.tolist() == [4, 0, 0, 0]


def test_atomics_take_their_arguments_by_name():
    @rule
    def named(vertex, count):
        atomic.add(array=count, index=0, value=1)

    assert apply(named).count.tolist() == [4, 0, 0, 0]


def test_atomics_on_flags():
    @rule
    def first_one(vertex, flag, count):
        if not atomic.exchange(flag, 0, True):
            count[0] += 1

    assert apply(first_one).count[0] == 1


def test_a_bare_return_ends_a_rule_early():
    @rule
    def early(vertex, count):
        if vertex == 1:
            return
        count[vertex] = 7

    assert apply(early).count.tolist() == [7, 0, 7, 7]


def test_names_of_its_own_may_be_those_of_generated_code():
    @rule
    def crossed(vertex, flag, count):
        exchange = atomic.exchange(flag, vertex, True)
        math = vertex * FIRST_BIT
        atomic_add = atomic.add(count, vertex, 1 + exchange)
        count[vertex] += math + atomic_add

    assert apply(crossed).count.tolist() == [1, 2, 3, 4]


def test_every_atomic_but_add_is_for_flags():
    @rule
    def every(vertex, flag, count):
        count[vertex] = atomic.bit_or(flag, vertex, True)
        count[vertex] += 2 * atomic.bit_and(flag, vertex, True)
        count[vertex] += 4 * atomic.min(flag, vertex, False)
        count[vertex] += 8 * atomic.max(flag, vertex, True)
        count[vertex] += 16 * atomic.compare_exchange(flag, vertex, True, False)
        count[vertex] += 32 * atomic.exchange(flag, vertex, True)

    result = apply(every)
    assert set(result.count) == {2 + 4 + 8 + 16}
    assert result.flag.all()


# fmt: off
def test_lines_at_the_margin_are_no_matter():
    @rule
    def ragged(vertex, count):
        """A docstring
that goes on at the margin,
        and a comment that does.
        """
# count[vertex] = 5
        count[vertex] = 6

    assert set(apply(ragged).count) == {6}
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


def test_a_rule_may_not_call_itself():
    def make():
        @rule
        def endless(vertex, count):
            return endless(vertex, count)  # mark: itself

    assert_located(make, "endless", "itself")


def test_a_rule_may_not_call_one_defined_later():
    def make():
        @rule
        def early(vertex, count):
            return late(vertex)  # mark: later

        @rule
        def late(vertex):
            return True

    assert_located(make, "early", "later", "'late'")


def test_an_unknown_atomic():
    def make():
        @rule
        def subtracting(vertex, count):
            atomic.subtract(count, vertex, 1)  # mark: subtract

        apply(subtracting)

    assert_located(make, "subtracting", "subtract", "subtract")


def test_an_atomic_that_is_not_called():
    def make():
        @rule
        def handed_on(vertex, count):
            add = atomic.add  # mark: not called
            add(count, vertex, 1)

    assert_located(make, "handed_on", "not called", "compare_exchange")


def test_an_atomic_with_an_unknown_argument():
    def make():
        @rule
        def misnamed(vertex, count):
            atomic.add(count, place=vertex, value=1)  # mark: unknown argument

    assert_located(make, "misnamed", "unknown argument", "atomic.add(array, index, value)")


def test_a_number_that_is_too_large():
    def make():
        @rule
        def large(vertex, count):
            count[vertex] = HUGE  # mark: large

    assert_located(make, "large", "large", "'HUGE'", "64 bits")


def test_a_number_of_a_type_that_is_not_compiled():
    def make():
        @rule
        def halved(vertex, share):
            share[vertex] = HALF_PRECISION  # mark: half

    assert_located(make, "halved", "half", "'HALF_PRECISION' is a float16")


def test_an_atomic_with_too_few_arguments():
    def make():
        @rule
        def short(vertex, count):
            atomic.add()  # mark: no arguments

        apply(short)

    assert_located(make, "short", "no arguments", "atomic.add")


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
def tries(vertex, count):
    try:  # mark: try
        count[vertex] = 1
    finally:
        count[vertex] = 2


@rule
def uses_a_lambda(vertex, count):
    twice = lambda x: 2 * x  # mark: lambda  # noqa: E731
    count[vertex] = twice(vertex)


@rule
def declares_a_global(vertex, count):
    global SMALL  # mark: global
    SMALL = 4


@rule
def defines_a_function(vertex, count):
    def within():  # mark: function
        pass

    count[vertex] = 1


@rule
def makes_a_list(vertex, count):
    for i in [1, 2]:  # mark: made list
        count[vertex] += i


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
    """Over two

    lines.
    """
    # A comment.
    near = sum_of_two(
        x,
        1,
    )
    if near > 1:
        near += 1
    elif near > 0:
        near = x.nothing  # mark: inner
    return near


@rule
def late_condition(vertex, count):
    # fmt: off
    total = 0; total += 1  # noqa: E702
    # fmt: on
    for i in range(3):
        # Between.
        if i == vertex:
            continue
        total += (i
                  * 2)  # fmt: skip
        while total > vertex.nothing:  # mark: condition
            total -= 1
    else:
        count[vertex] = total


@rule
def outer(vertex, count):
    count[vertex] = inner_fault(vertex)


@rule
def bits_of_a_fraction(vertex, share):
    atomic.bit_or(share, vertex, 1)  # mark: bits


@rule
def sum_of_flags(vertex, flag):
    atomic.add(flag, vertex, True)  # mark: flags


@rule
def two_indices(vertex, count):
    atomic.min(count, (vertex, 0), 1)  # mark: two indices


@rule
def row_of_a_narrow_field(vertex, count):
    atomic.add_row(count, vertex, count[vertex:], 1, 1)  # mark: narrow row


@rule
def adds_text(vertex, count):
    count[vertex] = vertex + "1"  # mark: text


@rule
def changes_a_scalar(vertex, level):
    atomic.add(level, 0, 1)  # mark: scalar


FAULTY = {
    "too few": (calls_with_too_few, ["'y'"]),
    "too many": (calls_with_too_many, ["argument"]),
    "after comments": (documented, ["nothing"]),
    "undecorated": (rule(_undecorated), ["nothing"]),
    "import": (imports, ["import"]),
    "with": (uses_a_context, ["context"]),
    "try": (tries, ["try"]),
    "lambda": (uses_a_lambda, ["lambda"]),
    "global": (declares_a_global, ["global"]),
    "function": (defines_a_function, ["function"]),
    "made list": (makes_a_list, ["list"]),
    "numpy": (asks_numpy_too_much, ["no_such_function"]),
    "index": (indexes_by_name, []),
    "yield": (yields, ["yield"]),
    "inner": (inner_fault, ["nothing"]),
    "condition": (late_condition, ["nothing"]),
    "flags": (sum_of_flags, ["atomic.add", "bool"]),
    "two indices": (two_indices, ["dimension"]),
    "narrow row": (row_of_a_narrow_field, ["atomic.add_row", "dimension"]),
    "text": (adds_text, ["add(int64"]),
    "bits": (bits_of_a_fraction, ["float64"]),
    "scalar": (changes_a_scalar, ["array"]),
}


@pytest.mark.host_only("a GPU's compiler names the rule, not the line in it")
@pytest.mark.parametrize("mark", FAULTY)
def test_a_fault_is_reported_where_it_is(mark):
    faulty, words = FAULTY[mark]
    assert_located(lambda: apply(outer if mark == "inner" else faulty), faulty.name, mark, *words)


class Miscounted(Apply):
    @rule
    def one(vertex, count):
        return count[vertex]

    def step(self, frontier):
        reduce(frontier, self.one, into=(self.level, self.other_level))


def test_a_reduction_into_two_wants_two_values():
    assert_refused(lambda: shoal.run(Miscounted(None), GRAPH), "'one'", __file__, error=ProgramError)


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
    function = getattr(atomic, operation)
    call = lambda: function(*inspect.signature(function).parameters)  # noqa: E731
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


@pytest.mark.host_only("about code that is written for the CPU")
@pytest.mark.parametrize(
    ("form", "is_plain"), [("at_source", True), ("at_moved_source", False), ("at_both", False)]
)  # fmt: skip
def test_atomics_are_left_out_only_where_nobody_else_writes(form, is_plain):
    """In a push a source is one thread's; what is written elsewhere too, or under its name only, is not."""
    from shoal.backends.cpu.generator import write_phase
    from shoal.operators import record

    program = Owned(form)
    (phase,) = program.phases()
    text = write_phase(record(program, phase.step), phase, {}, is_weighted=False, title="Owned").text
    assert ("plain_add(label, src" in text) == is_plain
