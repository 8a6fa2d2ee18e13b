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
    if not array.mutable and name not in ("load", "prefetch"):
        raise TypingError(f"{name} cannot change a constant")


_ADDABLE = (types.Integer, types.Float)
_BITWISE = (types.Integer, types.Boolean)
_STORABLE = (*_ADDABLE, types.Boolean)


def _require_element(name, array, index, allowed):
    """Refuse an element that there is not, or that the operation is not defined for."""
    _require_array(name, array)
    if not isinstance(array.dtype, allowed):
        raise TypingError(f"{name} is not defined for {array.dtype}")
    indices = list(index) if isinstance(index, types.BaseTuple) else [index]
    if len(indices) != array.ndim or not all(isinstance(each, types.Integer) for each in indices):
        raise TypingError(f"{name} takes one whole number per dimension ({array.ndim}) as the index, not {index}")


def _storage(context, element):
    """Return how elements lie in an array: the functions from and to a value, and the integer of that width.

    A flag is a bit as a value and a byte in an array.
    """
    model = context.data_model_manager[element]
    return model.as_data, model.from_data, ir.IntType(8 * context.get_abi_sizeof(model.get_data_type()))


def _make_intrinsic(name, typer, *, prefer_literal=False):
    typer.__name__ = typer.__qualname__ = name
    return intrinsic(prefer_literal=prefer_literal)(typer)


def _make_operand(name, allowed):
    """Make ``f(array, index, value)`` that returns ``value`` as an atomic would take it: of the array's type."""

    def typer(typingctx, array, index, value):
        _require_element(name, array, index, allowed)
        return array.dtype(array, index, array.dtype), lambda context, builder, signature, args: args[2]

    return _make_intrinsic(name, typer)


as_addend = _make_operand("atomic.add", _ADDABLE)
as_bits = _make_operand("atomic.bit_or or bit_and", _BITWISE)
as_element = _make_operand("atomic", _STORABLE)


def _atomic_rmw(name, operation, ordering, allowed, float_operation=None):
    """Make an intrinsic ``f(array, index, value)`` over LLVM's ``atomicrmw``."""

    def typer(typingctx, array, index, value):
        _require_element(name, array, index, allowed)
        element = array.dtype
        chosen = float_operation if isinstance(element, types.Float) else operation

        def codegen(context, builder, signature, args):
            array_type, index_type, _ = signature.args
            to_data, from_data, _ = _storage(context, element)
            pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
            return from_data(builder, builder.atomic_rmw(chosen, pointer, to_data(builder, args[2]), ordering))

        return element(array, index, element), codegen

    return _make_intrinsic(name, typer)


fetch_add = _atomic_rmw("fetch_add", "add", "seq_cst", types.Integer)
fetch_or = _atomic_rmw("fetch_or", "or", "seq_cst", types.Integer)
fetch_and = _atomic_rmw("fetch_and", "and", "seq_cst", types.Integer)
exchange = _atomic_rmw("atomic.exchange", "xchg", "seq_cst", _STORABLE, "xchg")
atomic_add = _atomic_rmw("atomic.add", "add", "monotonic", _ADDABLE, "fadd")
atomic_or = _atomic_rmw("atomic.bit_or", "or", "monotonic", _BITWISE)
atomic_and = _atomic_rmw("atomic.bit_and", "and", "monotonic", _BITWISE)


def _is_less(builder, element, left, right):
    if isinstance(element, types.Float):
        return builder.fcmp_ordered("<", left, right)
    if isinstance(element, types.Integer) and element.signed:
        return builder.icmp_signed("<", left, right)
    return builder.icmp_unsigned("<", left, right)


def _make_minmax(name, is_min):
    """Make ``f(array, index, value)`` that stores the smaller (larger) value and says whether it changed anything.

    A plain load first: most proposals lose, and a losing proposal must not take the cache line exclusively.
    A compare-exchange loop rather than ``atomicrmw min``, so that floats and integers share one path.
    """

    def typer(typingctx, array, index, value):
        _require_element(name, array, index, _STORABLE)
        element = array.dtype

        def codegen(context, builder, signature, args):
            array_type, index_type, _ = signature.args
            pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
            value = args[2]
            to_data, from_data, bits = _storage(context, element)
            data = to_data(builder, value)
            as_bits = builder.bitcast(pointer, bits.as_pointer())
            first = builder.load_atomic(as_bits, "monotonic", bits.width // 8)
            entry = builder.block
            loop = builder.append_basic_block("minmax.loop")
            attempt = builder.append_basic_block("minmax.attempt")
            done = builder.append_basic_block("minmax.done")
            builder.branch(loop)
            builder.position_at_end(loop)
            seen = builder.phi(bits)
            seen.add_incoming(first, entry)
            current = from_data(builder, builder.bitcast(seen, data.type))
            decided = builder.block  # a flag takes blocks of its own to convert
            left, right = (value, current) if is_min else (current, value)
            builder.cbranch(_is_less(builder, element, left, right), attempt, done)
            builder.position_at_end(attempt)
            pair = builder.cmpxchg(as_bits, seen, builder.bitcast(data, bits), "monotonic", "monotonic")
            succeeded = builder.extract_value(pair, 1)
            seen.add_incoming(builder.extract_value(pair, 0), attempt)
            builder.cbranch(succeeded, done, loop)
            builder.position_at_end(done)
            changed = builder.phi(ir.IntType(1))
            changed.add_incoming(cgutils.false_bit, decided)
            changed.add_incoming(cgutils.true_bit, attempt)
            return changed

        return types.boolean(array, index, element), codegen

    return _make_intrinsic(name, typer)


_store_smaller = _make_minmax("atomic.min", is_min=True)
_store_larger = _make_minmax("atomic.max", is_min=False)


@inner(forceinline=True)
def atomic_min(array, index, value):
    """Store the smaller value; True if that was ``value``.  Compared before it is converted to the array's type."""
    as_element(array, index, value)  # refuses what is no element before it is compared
    return value < array[index] and _store_smaller(array, index, value)


@inner(forceinline=True)
def atomic_max(array, index, value):
    """Store the larger value; True if that was ``value``.  Compared before it is converted to the array's type."""
    as_element(array, index, value)  # refuses what is no element before it is compared
    return value > array[index] and _store_larger(array, index, value)


@intrinsic
def _replace(typingctx, array, index, seen, desired):
    """Store ``desired`` where the very bits of ``seen`` stand; True if it did."""
    _require_element("atomic.compare_exchange", array, index, _STORABLE)
    element = array.dtype

    def codegen(context, builder, signature, args):
        array_type, index_type, _, _ = signature.args
        pointer = _element_pointer(context, builder, array_type, args[0], index_type, args[1])
        to_data, _, bits = _storage(context, element)
        seen, desired = (builder.bitcast(to_data(builder, arg), bits) for arg in args[2:])
        pair = builder.cmpxchg(builder.bitcast(pointer, bits.as_pointer()), seen, desired, "monotonic", "monotonic")
        return builder.extract_value(pair, 1)

    return types.boolean(array, index, element, element), codegen


@inner(forceinline=True)
def compare_exchange(array, index, expected, desired):
    """Store ``desired`` where ``expected`` stands; True if it did.  Compared as numbers, before any is converted."""
    replacement = as_element(array, index, desired)
    seen = array[index]
    while seen == expected:
        if _replace(array, index, seen, replacement):
            return True
        seen = array[index]  # changed since, maybe to another that is equal
    return False


def _require_row(array, index, row, mask, width):
    """Refuse what is not a row and another of its type, and a width that is not known when it is compiled."""
    name = "atomic.add_row"
    _require_element(name, array, types.Tuple((index, types.intp)), _ADDABLE)
    if not isinstance(row, types.Array) or (row.ndim, row.dtype, row.layout) != (1, array.dtype, "C"):
        raise TypingError(f"{name} takes a row of {array.dtype}, such as field[src], not {row}")
    if not isinstance(mask, types.Integer):
        raise TypingError(f"{name} takes a whole number as the mask, not {mask}")
    if not isinstance(width, types.IntegerLiteral) or not 1 <= width.literal_value <= 64:
        raise TypingError(f"{name} takes a literal or a number from outside, 1 to 64, as the width, not {width}")


def _make_add_row(add):
    """Make ``f(array, index, row, mask, width)`` that adds ``row[k]`` to ``array[index, k]`` for every bit k of mask.

    ``add`` writes that, given the addresses of the two rows and as many bits as they have elements.
    """

    def typer(typingctx, array, index, row, mask, width):
        _require_row(array, index, row, mask, width)
        bits = ir.IntType(width.literal_value)

        def codegen(context, builder, signature, args):
            place = types.Tuple((signature.args[1], types.intp))
            start = context.make_tuple(builder, place, (args[1], context.get_constant(types.intp, 0)))
            own = _element_pointer(context, builder, array, args[0], place, start)
            other = context.make_array(row)(context, builder, args[2]).data
            resize = builder.trunc if args[3].type.width > bits.width else builder.zext
            add(builder, array.dtype, own, other, resize(args[3], bits))
            return context.get_dummy_value()

        return types.void(array, types.unliteral(index), row, types.unliteral(mask), width), codegen

    return _make_intrinsic("atomic.add_row", typer, prefer_literal=True)


def _add_elements(builder, element, own, other, bits):
    """One element at a time, those whose bit is set: an atomic is worth a branch."""
    operation = "fadd" if isinstance(element, types.Float) else "add"
    for k in range(bits.type.width):
        place = ir.Constant(_INT64, k)
        with builder.if_then(builder.trunc(builder.lshr(bits, ir.Constant(bits.type, k)), ir.IntType(1))):
            addend = builder.load(builder.gep(other, [place]))
            builder.atomic_rmw(operation, builder.gep(own, [place]), addend, "monotonic")


def _add_vector(builder, element, own, other, bits):
    """All elements at once, zero where the bit is not set.

    The compiler would not do so by itself: as far as it knows, the rows may overlap.
    """
    vector = ir.VectorType(own.type.pointee, bits.type.width)
    own, other = (builder.bitcast(pointer, vector.as_pointer()) for pointer in (own, other))
    align = element.bitwidth // 8
    chosen = builder.bitcast(bits, ir.VectorType(ir.IntType(1), bits.type.width))
    addend = builder.select(chosen, builder.load(other, align=align), ir.Constant(vector, None))
    add = builder.fadd if isinstance(element, types.Float) else builder.add
    builder.store(add(builder.load(own, align=align), addend), own, align=align)


atomic_add_row = _make_add_row(_add_elements)
plain_add_row = _make_add_row(_add_vector)


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
def whole(typingctx, value):
    """Return ``value``; a fraction is refused when it is compiled."""
    if isinstance(value, types.Float):
        raise TypingError(f"a whole number is wanted here, not a {value}")

    def codegen(context, builder, signature, args):
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


@intrinsic
def nap(typingctx, microseconds):
    """Sleep for so long, and as much longer as the system's clock is coarse (``usleep``)."""

    def codegen(context, builder, signature, args):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INT32, [_INT32]), "usleep")
        builder.call(function, [builder.trunc(args[0], _INT32)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
