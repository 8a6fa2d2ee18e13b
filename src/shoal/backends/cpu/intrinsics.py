# SPDX-License-Identifier: Apache-2.0
"""LLVM atomics, clock and hints for code that Numba compiles.

Every function here is a Numba intrinsic: it has no Python body and exists only inside compiled code.
Read-modify-write operations on vertex state are monotonic (relaxed): supersteps are separated by barriers, which order
everything else.  Operations on the control block are sequentially consistent, since they are the barriers.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import basic_indexing

from shoal.backends.cpu.compiler import inner

_INT64 = ir.IntType(64)
_INT32 = ir.IntType(32)


def _element_pointer(context, builder, array_type, array, index_type, index):
    """Address of ``array[index]``; ``index`` is an integer or a tuple of them, never negative."""
    structure = context.make_array(array_type)(context, builder, array)
    if isinstance(index_type, types.BaseTuple):
        indices = cgutils.unpack_tuple(builder, index)
        index_types = list(index_type)
    else:
        indices, index_types = [index], [index_type]
    indices = [context.cast(builder, i, t, types.intp) for i, t in zip(indices, index_types, strict=True)]
    pointer, _, _ = basic_indexing(
        context,
        builder,
        array_type,
        structure,
        [types.intp] * len(indices),
        indices,
        boundscheck=False,
    )
    return pointer


def _require_array(name, array):
    if not isinstance(array, types.Array):
        raise TypingError(f"{name} takes an array, not {array}")


def _atomic_rmw(name, integer_op, ordering, float_op=None, result=lambda element: element, finish=None):
    """Make an intrinsic ``f(array, index, value)`` over LLVM's ``atomicrmw``."""

    def typer(typingctx, array, index, value):
        _require_array(name, array)
        element = array.dtype
        is_float = isinstance(element, types.Float)
        operation = float_op if is_float else integer_op(element)
        if operation is None:
            raise TypingError(f"{name} is not defined for {element}")

        def codegen(context, builder, signature, args):
            array_type, index_type, _ = signature.args
            pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
            old = builder.atomic_rmw(operation, pointer, args[2], ordering)
            return finish(builder, element, old, args[2]) if finish else old

        return result(element)(array, index, element), codegen

    typer.__name__ = typer.__qualname__ = name
    return intrinsic(typer)


def _less(builder, element, left, right):
    if element.signed:
        return builder.icmp_signed("<", left, right)
    return builder.icmp_unsigned("<", left, right)


fetch_add = _atomic_rmw("fetch_add", lambda element: "add", "seq_cst")
exchange = _atomic_rmw("exchange", lambda element: "xchg", "seq_cst", float_op="xchg")
atomic_add = _atomic_rmw("atomic_add", lambda element: "add", "monotonic", float_op="fadd")
atomic_or = _atomic_rmw("atomic_or", lambda element: "or", "monotonic")
atomic_and = _atomic_rmw("atomic_and", lambda element: "and", "monotonic")


def _make_minmax(name, is_min):
    """Make ``f(array, index, value)`` that stores the smaller (larger) value and says whether it changed anything.

    A plain load first: most proposals lose, and a losing proposal must not take the cache line exclusively.
    A compare-exchange loop rather than ``atomicrmw min``, so that floats and integers share one path.
    """

    def typer(typingctx, array, index, value):
        _require_array(name, array)
        element = array.dtype
        bits = ir.IntType(element.bitwidth)

        def codegen(context, builder, signature, args):
            array_type, index_type, _ = signature.args
            pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
            value = args[2]
            as_bits = builder.bitcast(pointer, bits.as_pointer())

            def better(current):
                left, right = (value, current) if is_min else (current, value)
                if isinstance(element, types.Float):
                    return builder.fcmp_ordered("<", left, right)
                return _less(builder, element, left, right)

            first = builder.load_atomic(as_bits, "monotonic", element.bitwidth // 8)
            entry = builder.block
            loop = builder.append_basic_block("minmax.loop")
            attempt = builder.append_basic_block("minmax.attempt")
            done = builder.append_basic_block("minmax.done")
            builder.branch(loop)
            builder.position_at_end(loop)
            seen = builder.phi(bits)
            seen.add_incoming(first, entry)
            current = builder.bitcast(seen, value.type)
            builder.cbranch(better(current), attempt, done)
            builder.position_at_end(attempt)
            pair = builder.cmpxchg(as_bits, seen, builder.bitcast(value, bits), "monotonic", "monotonic")
            succeeded = builder.extract_value(pair, 1)
            seen.add_incoming(builder.extract_value(pair, 0), attempt)
            builder.cbranch(succeeded, done, loop)
            builder.position_at_end(done)
            changed = builder.phi(ir.IntType(1))
            changed.add_incoming(cgutils.false_bit, loop)
            changed.add_incoming(cgutils.true_bit, attempt)
            return changed

        return types.boolean(array, index, element), codegen

    typer.__name__ = typer.__qualname__ = name
    return intrinsic(typer)


_store_smaller = _make_minmax("atomic_min", is_min=True)
_store_larger = _make_minmax("atomic_max", is_min=False)


@inner(forceinline=True)
def atomic_min(array, index, value):
    """Store the smaller value; True if that was ``value``.  Compared before it is converted to the array's type."""
    return value < array[index] and _store_smaller(array, index, value)


@inner(forceinline=True)
def atomic_max(array, index, value):
    """Store the larger value; True if that was ``value``.  Compared before it is converted to the array's type."""
    return value > array[index] and _store_larger(array, index, value)


@intrinsic
def compare_exchange(typingctx, array, index, expected, desired):
    """Store ``desired`` where ``expected`` stands; True if it did."""
    _require_array("compare_exchange", array)
    element = array.dtype
    bits = ir.IntType(element.bitwidth)

    def codegen(context, builder, signature, args):
        array_type, index_type, _, _ = signature.args
        pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
        expected, desired = (builder.bitcast(arg, bits) for arg in args[2:])
        pair = builder.cmpxchg(builder.bitcast(pointer, bits.as_pointer()), expected, desired, "monotonic", "monotonic")
        return builder.extract_value(pair, 1)

    return types.boolean(array, index, element, element), codegen


@intrinsic
def load(typingctx, array, index):
    """Read an element that another thread may be writing: never kept in a register; acquires what was stored before."""
    _require_array("load", array)
    element = array.dtype

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
        return builder.load_atomic(pointer, "seq_cst", element.bitwidth // 8)

    return element(array, index), codegen


@intrinsic
def store(typingctx, array, index, value):
    """Write an element that another thread may be reading."""
    _require_array("store", array)
    element = array.dtype

    def codegen(context, builder, signature, args):
        array_type, index_type, _ = signature.args
        pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
        builder.store_atomic(args[2], pointer, "seq_cst", element.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, element), codegen


@intrinsic
def nonnegative(typingctx, value):
    """Return ``value`` and promise the compiler that it is not negative, so that indexing needs no wrap-around."""

    def codegen(context, builder, signature, args):
        builder.assume(builder.icmp_signed(">=", args[0], ir.Constant(args[0].type, 0)))
        return args[0]

    return value(value), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of ``array[index]`` (to read)."""
    _require_array("prefetch", array)

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
        byte_pointer = ir.IntType(8).as_pointer()
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, _INT32, _INT32, _INT32]),
            "llvm.prefetch.p0i8",
        )
        flags = [ir.Constant(_INT32, flag) for flag in (0, 3, 1)]  # read, keep in every level, data
        builder.call(function, [builder.bitcast(pointer, byte_pointer), *flags])
        return context.get_dummy_value()

    return types.void(array, index), codegen


@intrinsic
def trailing_zeros(typingctx, word):
    """Position of the lowest set bit of a non-zero word."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], cgutils.true_bit)

    return word(word), codegen


@intrinsic
def population_count(typingctx, word):
    """Number of set bits of a word."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return word(word), codegen


@intrinsic
def nanoseconds(typingctx):
    """Monotonic clock."""

    def codegen(context, builder, signature, args):
        timespec = ir.LiteralStructType([_INT64, _INT64])
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_INT32, [_INT32, timespec.as_pointer()]),
            "clock_gettime",
        )
        slot = cgutils.alloca_once(builder, timespec)
        builder.call(function, [ir.Constant(_INT32, 1), slot])  # 1: CLOCK_MONOTONIC
        seconds = builder.load(cgutils.gep_inbounds(builder, slot, 0, 0))
        rest = builder.load(cgutils.gep_inbounds(builder, slot, 0, 1))
        return builder.add(builder.mul(seconds, ir.Constant(_INT64, 10**9)), rest)

    return types.int64(), codegen


@intrinsic
def give_way(typingctx):
    """Let another thread run on this core (``sched_yield``)."""

    def codegen(context, builder, signature, args):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INT32, []), "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen
