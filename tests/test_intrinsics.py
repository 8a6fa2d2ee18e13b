# SPDX-License-Identifier: Apache-2.0
"""Atomics: four threads on one element, for every element type, and what each operation returns."""

import numba
import numpy as np
import pytest

from shoal.backends.cpu import intrinsics, runtime
from shoal.backends.cpu.threads import available_cores, run_threads

pytestmark = pytest.mark.host_only("about the CPU's atomics")

INTEGERS = ["int32", "int64", "uint8", "uint64"]
FLOATS = ["float32", "float64"]
NUM_THREADS = 4
ROUNDS = 5000

compiled = numba.njit(nogil=True, error_model="numpy")


@compiled
def add_often(thread, num_threads, cell, old):
    for i in range(old.shape[1]):
        old[thread, i] = intrinsics.atomic_add(cell, 0, 1)


@compiled
def lower_often(thread, num_threads, cell, values):
    wins = 0
    for i in range(values.shape[1]):
        if intrinsics.atomic_min(cell, 0, values[thread, i]):
            wins += 1
    return wins


@compiled
def raise_often(thread, num_threads, cell, values):
    wins = 0
    for i in range(values.shape[1]):
        if intrinsics.atomic_max(cell, 0, values[thread, i]):
            wins += 1
    return wins


@compiled
def set_bits(thread, num_threads, cell, old):
    for bit in range(8):
        old[thread, bit] = intrinsics.atomic_or(cell, 0, 1 << bit)


@compiled
def clear_bits(thread, num_threads, cell, old):
    for bit in range(8):
        old[thread, bit] = intrinsics.atomic_and(cell, 0, 255 - (1 << bit))


@compiled
def exchange_often(thread, num_threads, cell, values):
    """Put in values and keep what comes out."""
    for i in range(values.shape[1]):
        values[thread, i] = intrinsics.exchange(cell, 0, values[thread, i])


@compiled
def count_up(thread, num_threads, cell, counts):
    """Add one by compare-exchange; a failed attempt is tried again."""
    for _ in range(counts.shape[1]):
        while True:
            seen = intrinsics.load(cell, 0)
            if intrinsics.compare_exchange(cell, 0, seen, seen + 1):
                break
        counts[thread, 0] += 1


def cell_of(dtype, value=0):
    return np.array([value, 77], dtype)  # the second shows a write that is too wide


def table(dtype, width=ROUNDS):
    return np.zeros((NUM_THREADS, width), dtype)


def proposals(dtype):
    """A different, random order of numbers for every thread."""
    generator = np.random.default_rng(7)
    return np.array([generator.permutation(np.arange(1, 101)) for _ in range(NUM_THREADS)], dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_add_loses_nothing_and_returns_what_was(dtype):
    cell = cell_of(dtype)
    rounds = 60 if dtype == "uint8" else ROUNDS
    old = table(dtype, rounds)
    run_threads(add_often, NUM_THREADS, cell, old)
    assert cell.tolist() == [NUM_THREADS * rounds, 77]
    assert sorted(old.ravel().tolist()) == list(range(NUM_THREADS * rounds))


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_min_and_max_keep_the_best_and_say_who_won(dtype):
    low, high = cell_of(dtype, 101), cell_of(dtype, 0)
    lowered = run_threads(lower_often, NUM_THREADS, low, proposals(dtype))
    raised = run_threads(raise_often, NUM_THREADS, high, proposals(dtype))
    assert (low.tolist(), high.tolist()) == ([1, 77], [100, 77])
    assert 1 <= sum(lowered) <= 100
    assert 1 <= sum(raised) <= 100


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_an_equal_proposal_does_not_win(dtype):
    cell = cell_of(dtype, 5)
    assert not lower_often(0, 1, cell, np.full((1, 3), 5, dtype))
    assert not raise_often(0, 1, cell, np.full((1, 3), 5, dtype))


def test_min_of_signed_and_unsigned_numbers():
    signed, unsigned = cell_of("int64", 3), cell_of("uint64", 2**64 - 1)
    assert lower_often(0, 1, signed, np.array([[-4]])) == 1
    assert lower_often(0, 1, unsigned, np.array([[2**63]], np.uint64)) == 1
    assert (signed[0], unsigned[0]) == (-4, 2**63)


@pytest.mark.parametrize("dtype", FLOATS)
def test_min_and_max_of_what_is_not_a_number(dtype):
    cell = cell_of(dtype, 5)
    values = np.array([[np.nan, np.inf, -np.inf]], dtype)
    assert lower_often(0, 1, cell, values) == 1
    assert cell[0] == -np.inf
    assert raise_often(0, 1, cell, values) == 1
    assert cell[0] == np.inf


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_set_and_cleared_once(dtype):
    cell = cell_of(dtype)
    old = table(dtype, 8)
    run_threads(set_bits, NUM_THREADS, cell, old)
    assert cell.tolist() == [255, 77]
    masks = np.array([1 << bit for bit in range(8)], dtype)
    assert ((old & masks) == 0).sum(axis=0).tolist() == [1] * 8
    run_threads(clear_bits, NUM_THREADS, cell, old)
    assert cell.tolist() == [0, 77]
    assert ((old & masks) != 0).sum(axis=0).tolist() == [1] * 8


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_exchange_hands_every_value_on(dtype):
    cell = cell_of(dtype, 200)
    values = proposals(dtype)
    before = sorted([*values.ravel().tolist(), 200])
    run_threads(exchange_often, NUM_THREADS, cell, values)
    assert sorted([*values.ravel().tolist(), cell[0].item()]) == before
    assert cell[1] == 77


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_compare_exchange_stores_once_per_value(dtype):
    cell = cell_of(dtype)
    run_threads(count_up, NUM_THREADS, cell, table(np.int64, 60))
    assert cell.tolist() == [NUM_THREADS * 60, 77]


@compiled
def claim_flags(thread, num_threads, flags, wins):
    for i in range(flags.shape[0]):
        if not intrinsics.exchange(flags, i, True):
            wins[thread] += 1


def test_exchange_of_flags():
    """Exactly one thread finds a flag unset."""
    flags, wins = np.zeros(2000, bool), np.zeros(NUM_THREADS, np.int64)
    run_threads(claim_flags, NUM_THREADS, flags, wins)
    assert flags.all()
    assert wins.sum() == 2000


@compiled
def add_in_rows(thread, num_threads, array):
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            intrinsics.atomic_add(array, (row, column), 1.5)


def test_elements_of_two_dimensions():
    array = np.zeros((50, 3))
    run_threads(add_in_rows, NUM_THREADS, array)
    assert (array == 6).all()


def row_adder(function, width):
    """A kernel that adds the second row to the first and, overlapping itself, to itself."""

    @compiled
    def add_rows(thread, num_threads, array, mask):
        function(array, 0, array[1], mask, width)
        function(array, 1, array[1], mask, width)

    return add_rows


@pytest.mark.parametrize("function", [intrinsics.atomic_add_row, intrinsics.plain_add_row], ids=["atomic", "plain"])
@pytest.mark.parametrize("width", [1, 3, 4, 8, 16])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_rows_are_added_where_the_mask_says(function, width, dtype):
    add_rows = row_adder(function, width)
    for mask in (np.uint8(0), np.uint8(0b1010_0101), np.uint16(0xFFFF), np.int64(-1), np.int64(6)):
        array = np.arange(3 * width).reshape(3, width).astype(dtype)
        chosen = [int(mask) >> k & 1 for k in range(width)]
        added = (array[1] * np.array(chosen, dtype)).astype(dtype)
        expected = np.array([array[0] + added, array[1] + added, array[2]], dtype)
        add_rows(0, 1, array, mask)
        assert (array == expected).all()


def test_rows_lose_nothing_that_threads_add():
    array = np.ones((2, 4))

    @compiled
    def add_often(thread, num_threads, array):
        for _ in range(ROUNDS):
            intrinsics.atomic_add_row(array, 0, array[1], 0b0101, 4)

    run_threads(add_often, NUM_THREADS, array)
    assert array[0].tolist() == [1 + NUM_THREADS * ROUNDS, 1, 1 + NUM_THREADS * ROUNDS, 1]


@pytest.mark.parametrize(
    ("row", "mask", "width", "word"),
    [
        (np.zeros(4, np.float32), 1, 4, "row of float64"),
        (np.zeros((2, 4))[:, 1], 1, 4, "row of float64"),
        (np.zeros(4), 1.0, 4, "mask"),
        (np.zeros(4), 1, 0, "width"),
        (np.zeros(4), 1, 65, "width"),
    ],
)
def test_what_is_no_row_is_refused(row, mask, width, word):
    for function in (intrinsics.atomic_add_row, intrinsics.plain_add_row):
        add = compiled(lambda array, row, mask, function=function: function(array, 0, row, mask, width))
        with pytest.raises(numba.core.errors.TypingError, match=word):
            add(np.zeros((2, 4)), row, mask)


TWINS = {
    "min": (intrinsics.atomic_min, runtime.plain_min),
    "max": (intrinsics.atomic_max, runtime.plain_max),
    "add": (intrinsics.atomic_add, runtime.plain_add),
    "or": (intrinsics.atomic_or, runtime.plain_or),
    "and": (intrinsics.atomic_and, runtime.plain_and),
    "exchange": (intrinsics.exchange, runtime.plain_exchange),
    "compare_exchange": (
        compiled(lambda array, index, value: intrinsics.compare_exchange(array, index, value, 1.5)),
        compiled(lambda array, index, value: runtime.plain_compare_exchange(array, index, value, 1.5)),
    ),
}
CASES = [
    ("int32", 5, 2**31),
    ("int32", -1, -1.5),
    ("int32", 3, 2**32 + 3),
    ("int64", 3, 2.5),
    ("uint64", 7, -1),
    ("uint64", 2**64 - 1, -1),
    ("uint8", 255, 1),
    ("float32", 0.5, 0.1),
    ("float64", -0.0, 0.0),
    ("float64", np.nan, 1.0),
    ("float64", 1.0, np.nan),
    ("bool", True, False),
    ("bool", False, 2),
]
#: What the operations are not defined for.
UNDEFINED = {"add": ("bool",), "or": FLOATS, "and": FLOATS}


def outcome(function, dtype, element, value):
    """What the operation returned and left, bit by bit; None if it cannot be compiled."""
    cell = cell_of(dtype, element)
    try:
        returned = compiled(lambda array, value: function(array, 0, value))(cell, value)
    except numba.core.errors.TypingError as error:
        if f"is not defined for {dtype}" not in str(error):
            raise
        return None
    return np.array([returned], cell.dtype).tobytes(), cell.tobytes()


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize(("dtype", "element", "value"), CASES)
def test_the_twin_without_atomics_does_the_same(name, dtype, element, value):
    """A rule means the same where a vertex is one thread's own and where it is not."""
    atomic, plain = (outcome(function, dtype, element, value) for function in TWINS[name])
    assert atomic == plain
    assert (atomic is None) == (dtype in UNDEFINED.get(name, ()))


def test_numbers_are_compared_before_they_are_converted():
    cell = cell_of("int32", 3)
    replace = compiled(lambda array, expected: intrinsics.compare_exchange(array, 0, expected, 9))
    assert not replace(cell, 2**32 + 3)
    assert not replace(cell, 3.5)
    assert replace(cell, 3.0)
    assert cell.tolist() == [9, 77]


@compiled
def multiply(thread, num_threads, factor):
    return factor * thread + num_threads


@pytest.mark.parametrize("num_threads", [1, 2, 7])
def test_run_threads_returns_what_each_returned(num_threads):
    assert run_threads(multiply, num_threads, 10) == [10 * thread + num_threads for thread in range(num_threads)]


def test_run_threads_raises_what_a_kernel_raised():
    def fail(thread, num_threads):
        if thread == 1:
            raise ValueError("thread 1")

    with pytest.raises(ValueError, match="thread 1"):
        run_threads(fail, 3)


def test_run_threads_leaves_the_caller_on_its_cores():
    before = available_cores()
    run_threads(multiply, len(before), 1)
    assert available_cores() == before
