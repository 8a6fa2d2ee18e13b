# SPDX-License-Identifier: Apache-2.0
"""Fields: which declarations are allowed, and which values start() may give them."""

import numpy as np
import pytest

import shoal
from checks import assert_refused
from samples import SIX, Hops, Totals, everyone
from shoal import Constant, Scalar, Vertex, atomic, rule
from shoal.config import DEFAULT
from shoal.errors import ProgramError, ShoalError
from shoal.run import run_configured

# Values set in start()


def test_values_set_in_start_are_the_first_values():
    def begin(self):
        self.amount[0] = 2
        self.seen[3] = 100

    assert shoal.run(Totals(begin), SIX).seen.tolist() == [21, 21, 21, 121, 21, 21]


def _replace_a_vertex_field(self):
    self.seen = np.arange(6)


def _replace_a_scalar(self):
    self.amount = 2.0


@pytest.mark.parametrize("begin", [_replace_a_vertex_field, _replace_a_scalar])
def test_a_field_replaced_in_start_is_not_lost(begin):
    """An assignment to the name instead of the elements works or is refused; it is not ignored."""
    before = shoal.run(Totals(lambda self: None), SIX).seen.tolist()
    try:
        result = shoal.run(Totals(begin), SIX)
    except ShoalError as error:
        assert "start" in str(error)  # noqa: PT017
    else:
        assert result.seen.tolist() != before


def test_fields_set_by_name_are_copied_and_may_change_places():
    values = np.arange(6, dtype=np.int64)

    def begin(self):
        self.seen, self.own = values, 3
        self.seen, self.own = self.own, self.seen
        self.amount = [0]
        return []

    result = shoal.run(Totals(begin), SIX)
    assert (result.seen.tolist(), result.own.tolist(), result.amount) == ([3] * 6, list(range(6)), 0)
    shoal.run(Totals(lambda self: setattr(self, "seen", values)), SIX)
    assert values.tolist() == list(range(6))


REPLACED = {
    "too short": (("seen", [1, 2]), ["Totals.seen", "(2,)", "(6,)"]),
    "a table": (("seen", np.zeros((6, 1))), ["Totals.seen", "(6, 1)", "(6,)"]),
    "fractions": (("seen", np.arange(6) / 2), ["Totals.seen[1]=0.5", "int64"]),
    "too large": (("own", [0, 0, 2**31, 0, 0, 0]), ["Totals.own[2]=2147483648", "int32"]),
    "too large for a float": (("seen", [0, 0, 0, 0, 0, 2.0**63]), ["Totals.seen[5]", "int64"]),
    "nan": (("seen", np.nan), ["Totals.seen=nan", "int64"]),
    "a word": (("amount", "much"), ["Totals.amount='much'", "float64"]),
    "nothing": (("amount", None), ["Totals.amount=None", "float64"]),
    "several for one": (("amount", [1.0, 2.0]), ["Totals.amount", "(2,)", "(1,)"]),
    "rows": (("seen", [[1], [2, 3]]), ["Totals.seen", "array"]),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_replacement_is_refused(name):
    setting, words = REPLACED[name]
    program = Totals(lambda self: setattr(self, *setting))
    assert_refused(lambda: shoal.run(program, SIX), "start()", *words, error=ProgramError)


# Constants


def test_a_constant_array_may_be_read_only():
    """A graph's own arrays are."""
    assert shoal.run(Totals(everyone), SIX, weight_of=np.diff(SIX.indptr)).extra == 20
    degree = SIX.degree.astype(np.int32)
    degree.flags.writeable = False
    assert shoal.run(Totals(everyone), SIX, weight_of=degree).extra == 20


def test_a_constant_array_is_not_copied(tmp_path):
    np.full(6, 3, np.int32).tofile(tmp_path / "weights")
    mapped = np.memmap(tmp_path / "weights", np.int32, mode="r")
    outcome = run_configured(Totals(everyone), SIX, DEFAULT, {"weight_of": mapped})
    assert np.shares_memory(outcome.state["weight_of"], mapped)
    assert outcome.state["extra"][0] == 2 * 18


def test_a_constant_array_may_have_any_layout():
    odd_place = np.frombuffer(b"-" + np.arange(0, 12, 2).astype(np.int32).tobytes(), np.int32, offset=1)
    apart = np.arange(12, dtype=np.int32)[::2]
    for values in (odd_place, apart, np.arange(0, 12, 2).astype(">i4"), list(range(0, 12, 2))):
        assert shoal.run(Totals(everyone), SIX, weight_of=values).extra == 60


class Meddler(Totals):
    @rule
    def see(vertex, weight_of):
        atomic.add(weight_of, vertex, 1)


class Painter(Totals):
    @rule
    def see(vertex, weight_of):
        weight_of[vertex] = 1


@pytest.mark.parametrize("program", [Meddler, Painter])
def test_a_rule_does_not_change_a_constant(program):
    assert_refused(lambda: shoal.run(program(everyone), SIX), "'see'", error=ProgramError)


CONSTANTS = {
    "a fraction": ({"factor": 2.5}, ["factor", "2.5", "int32"]),
    "too large": ({"factor": 2**40}, ["factor", str(2**40), "int32"]),
    "a word": ({"factor": "two"}, ["factor", "'two'"]),
    "nothing": ({"factor": None}, ["factor", "None"]),
    "an array for a number": ({"factor": [1, 2]}, ["factor", "number"]),
    "fractions in an array": ({"weight_of": [0.5] * 6}, ["weight_of", "int32"]),
    "a table for an array": ({"weight_of": [[1, 2, 3], [4, 5, 6]]}, ["weight_of", "dimension"]),
    "a number for an array": ({"weight_of": 7}, ["weight_of", "array"]),
    "words for an array": ({"weight_of": ["a"] * 6}, ["weight_of", "array", "int32"]),
    "a number too large in an array": ({"weight_of": [0, 2**31]}, ["weight_of[1]=2147483648", "int32"]),
    "no number": ({"factor": np.nan}, ["factor=nan", "int32"]),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_refused(name):
    options, words = CONSTANTS[name]
    assert_refused(lambda: shoal.run(Totals(everyone), SIX, **options), *words, error=ShoalError)


class Forgetful(Totals):
    def start(self):
        self.factor = 1


def test_a_constant_that_start_does_not_set():
    assert_refused(lambda: shoal.run(Forgetful(everyone), SIX), "Forgetful", "weight_of", error=ProgramError)


# Fields

FIELDS = {
    "unknown type": ({"level": Vertex("int33")}, ["level", "int33"]),
    "type of no number": ({"level": Vertex("str")}, ["level", "str"]),
    "fill too large": ({"level": Vertex("int8", fill=1000)}, ["level", "1000", "int8"]),
    "fill of another kind": ({"level": Vertex("int32", fill="x")}, ["level", "'x'"]),
    "no width": ({"level": Vertex("int32", width=0)}, ["level", "width"]),
    "reserved": ({"src": Vertex("int32")}, ["src", "reserved"]),
    "taken by the result": ({"stats": Vertex("int32")}, ["stats"]),
    "taken by a method": ({"start": Vertex("int32")}, ["start", "every program"]),
    "no type": ({"level": Vertex(None)}, ["level", "None", "int32"]),
    "complex": ({"level": Vertex("complex128")}, ["level", "complex128"]),
    "dates": ({"level": Vertex("datetime64[s]")}, ["level", "datetime64"]),
    "objects": ({"level": Vertex("object")}, ["level", "object"]),
    "bytes the other way": ({"level": Vertex(">i4")}, ["level", ">i4"]),
    "type of a constant": ({"limit": Constant("int33")}, ["limit", "int33"]),
    "fill one too large": ({"level": Vertex("uint8", fill=256)}, ["level", "256", "uint8", "255"]),
    "fill one too small": ({"level": Vertex("uint8", fill=-1)}, ["level", "-1", "uint8"]),
    "fill of half": ({"level": Vertex("int32", fill=0.5)}, ["level", "0.5", "int32"]),
    "fill beyond floats": ({"level": Vertex("float32", fill=1e39)}, ["level", "1e+39", "float32"]),
    "fill of a scalar": ({"total": Scalar("int32", fill=None)}, ["total", "None", "int32"]),
    "fill beyond ids": ({"level": Vertex("vertex", fill=2**31)}, ["level", "2147483648", "int32"]),
    "negative width": ({"level": Vertex("int32", width=-1)}, ["level", "width=-1"]),
    "half a width": ({"level": Vertex("int32", width=1.5)}, ["level", "width=1.5"]),
    "a flag for a width": ({"level": Vertex("int32", width=True)}, ["level", "width=True"]),
    "unknown combiner": ({"level": Vertex("int32", combine="add")}, ["level", "combine='add'", "minimum"]),
    "no combiner": ({"total": Scalar("int32", combine=None)}, ["total", "combine=None"]),
    "replaced": ({"level": 5}, ["level", "5", "Vertex"]),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_is_refused(name):
    fields, words = FIELDS[name]
    program = type("Odd", (Hops,), fields)
    assert_refused(lambda: shoal.run(program(), SIX, source=0), "Odd", *words, error=ShoalError)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "f8", np.float64, np.dtype("uint64")])
def test_types_that_fields_may_have(dtype):
    program = type("Even", (Totals,), {"more": Vertex(dtype, fill=1, width=2), "limit": Scalar(dtype, fill=True)})
    result = shoal.run(program(everyone), SIX)
    assert result.more.dtype == result.limit.dtype == np.dtype(dtype)
    assert result.more.tolist() == [[1, 1]] * 6
    assert result.limit == 1


def test_fills_at_the_ends_of_types():
    ends = {
        "low": Scalar("int64", fill=-(2**63)),
        "high": Scalar("uint64", fill=2**64 - 1),
        "far": Scalar("float32", fill=-np.inf),
    }
    result = shoal.run(type("Ends", (Totals,), ends)(everyone), SIX)
    assert (result.low, result.high, result.far) == (-(2**63), 2**64 - 1, -np.inf)
