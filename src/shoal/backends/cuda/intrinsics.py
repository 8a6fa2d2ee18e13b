# SPDX-License-Identifier: Apache-2.0
"""What rules and serial parts call on a GPU, by the names they have on a CPU (see ``backends/cpu/intrinsics.py``).

Every atomic is a function of ``kernels/atomics.cuh``, one for each type of element: an intrinsic here finds the address
and calls it, and link-time optimisation puts it in place.  Importing this module needs numba-cuda, but no GPU.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError
from numba.cuda.extending import intrinsic
from numba.cuda.np.arrayobj import basic_indexing

from shoal.backends.loops.control import LINE, WORLD_ROWS


def inner(function=None, **options):
    """Mark a function that is put in place wherever it is called; compiling it alone would need a GPU."""
    decorate = cuda.jit(device=True, inline="always")
    return decorate if function is None else decorate(function)


_ADDABLE = (types.Integer, types.Float)
_BITWISE = (types.Integer, types.Boolean)
_STORABLE = (*_ADDABLE, types.Boolean)
_INT32 = ir.IntType(32)


def suffix_of(element) -> str:
    """Return the end of the names of the atomics on a type of element."""
    if isinstance(element, types.Boolean):
        return "u8"
    kind = "f" if isinstance(element, types.Float) else "i" if element.signed else "u"
    return f"{kind}{element.bitwidth}"


def _require_element(name, array, index, allowed):
    """Refuse an element that there is not, or that the operation is not defined for."""
    if not isinstance(array, types.Array):
        raise TypingError(f"{name} takes an array, not {array}")
    if not array.mutable:
        raise TypingError(f"{name} cannot change a constant")
    if not isinstance(array.dtype, allowed):
        raise TypingError(f"{name} is not defined for {array.dtype}")
    indices = list(index) if isinstance(index, types.BaseTuple) else [index]
    if len(indices) != array.ndim or not all(isinstance(each, types.Integer) for each in indices):
        raise TypingError(f"{name} takes one whole number per dimension ({array.ndim}) as the index, not {index}")


def _element_pointer(context, builder, array_type, array, index_type, index):
    """Address of ``array[index]``; ``index`` is an integer or a tuple of them."""
    structure = context.make_array(array_type)(context, builder, array)
    if isinstance(index_type, types.BaseTuple):
        indices, index_types = cgutils.unpack_tuple(builder, index), list(index_type)
    else:
        indices, index_types = [index], [index_type]
    indices = [context.cast(builder, i, t, types.intp) for i, t in zip(indices, index_types, strict=True)]
    pointer, _, _ = basic_indexing(context, builder, array_type, structure, [types.intp] * len(indices), indices)
    return pointer


def _call(builder, name, result, arguments):
    signature = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), arguments)


def _make_intrinsic(name, typer):
    typer.__name__ = typer.__qualname__ = name
    return intrinsic(typer)


def _make_operand(name, allowed):
    """Make ``f(array, index, value)`` that returns ``value`` as an atomic would take it: of the array's type."""

    def typer(typingctx, array, index, value):
        _require_element(name, array, index, allowed)
        return array.dtype(array, index, array.dtype), lambda context, builder, signature, args: args[2]

    return _make_intrinsic(name, typer)


as_addend = _make_operand("atomic.add", _ADDABLE)
as_bits = _make_operand("atomic.bit_or or bit_and", _BITWISE)
as_element = _make_operand("atomic", _STORABLE)


def _make_atomic(name, function, allowed, *, is_flag=False, num_values=1):
    """Make ``f(array, index, *values)`` over ``shoal_<function>_<type>``: it returns an element, or a flag."""

    def generate(array, index, values):
        _require_element(name, array, index, allowed)
        element = array.dtype

        def codegen(context, builder, signature, args):
            model = context.data_model_manager[element]
            pointer = _element_pointer(context, builder, array, args[0], signature.args[1], args[1])
            data = [model.as_data(builder, value) for value in args[2:]]
            result = _INT32 if is_flag else data[0].type
            found = _call(builder, f"shoal_{function}_{suffix_of(element)}", result, [pointer, *data])
            if is_flag:
                return builder.icmp_unsigned("!=", found, ir.Constant(_INT32, 0))
            return model.from_data(builder, found)

        returned = types.boolean if is_flag else element
        return returned(array, index, *[element] * len(values)), codegen

    def with_one(typingctx, array, index, value):
        return generate(array, index, [value])

    def with_two(typingctx, array, index, seen, desired):
        return generate(array, index, [seen, desired])

    return _make_intrinsic(name, with_one if num_values == 1 else with_two)


atomic_add = _make_atomic("atomic.add", "add", _ADDABLE)
atomic_or = _make_atomic("atomic.bit_or", "or", _BITWISE)
atomic_and = _make_atomic("atomic.bit_and", "and", _BITWISE)
exchange = _make_atomic("atomic.exchange", "exchange", _STORABLE)
_store_smaller = _make_atomic("atomic.min", "min", _STORABLE, is_flag=True)
_store_larger = _make_atomic("atomic.max", "max", _STORABLE, is_flag=True)
_replace = _make_atomic("atomic.compare_exchange", "replace", _STORABLE, is_flag=True, num_values=2)


@inner
def atomic_min(array, index, value):
    """Store the smaller value; True if that was ``value``.  Compared before it is converted to the array's type."""
    as_element(array, index, value)  # refuses what is no element before it is compared
    return value < array[index] and _store_smaller(array, index, value)


@inner
def atomic_max(array, index, value):
    """Store the larger value; True if that was ``value``.  Compared before it is converted to the array's type."""
    as_element(array, index, value)  # refuses what is no element before it is compared
    return value > array[index] and _store_larger(array, index, value)


@inner
def compare_exchange(array, index, expected, desired):
    """Store ``desired`` where ``expected`` stands; True if it did.  Compared as numbers, before any is converted."""
    replacement = as_element(array, index, desired)
    seen = load(array, index)
    while seen == expected:
        if _replace(array, index, seen, replacement):
            return True
        seen = load(array, index)  # changed since, maybe to another that is equal
    return False


@intrinsic
def _require_row(typingctx, array, index, row, mask, width):
    """Refuse what is not a row and another of its type, with whole numbers for the bits and the elements."""
    name = "atomic.add_row"
    _require_element(name, array, types.Tuple((types.intp, types.intp)), _ADDABLE)
    if not isinstance(row, types.Array) or (row.ndim, row.dtype, row.layout) != (1, array.dtype, "C"):
        raise TypingError(f"{name} takes a row of {array.dtype}, such as field[src], not {row}")
    for what, given in (("index", index), ("mask", mask), ("width", width)):
        if not isinstance(given, types.Integer):
            raise TypingError(f"{name} takes a whole number as the {what}, not {given}")
    signature = types.void(array, index, row, mask, width)
    return signature, lambda context, builder, signature, args: context.get_dummy_value()


@inner
def atomic_add_row(array, index, row, mask, width):
    """Add ``row[k]`` to ``array[index, k]`` for every bit k of the mask; the width is a constant, so this unrolls."""
    _require_row(array, index, row, mask, width)
    for k in range(width):
        if (np.uint64(mask) >> np.uint64(k)) & np.uint64(1) != np.uint64(0):
            accumulate(array, (index, k), row[k])


@inner
def plain_add_row(array, index, row, mask, width):
    """The same where only the calling thread writes the row."""
    _require_row(array, index, row, mask, width)
    for k in range(width):
        if (np.uint64(mask) >> np.uint64(k)) & np.uint64(1) != np.uint64(0):
            array[index, k] += row[k]


@intrinsic
def load(typingctx, array, index):
    """Read an element that another thread may be writing."""
    element = array.dtype

    def codegen(context, builder, signature, args):
        pointer = _element_pointer(context, builder, array, args[0], signature.args[1], args[1])
        model = context.data_model_manager[element]
        found = _call(builder, f"shoal_load_{suffix_of(element)}", model.get_data_type(), [pointer])
        return model.from_data(builder, found)

    return element(array, index), codegen


def _make_action(name, function):
    """Make ``f(array, index, value)`` over ``shoal_<function>_<type>``, which returns nothing."""

    def typer(typingctx, array, index, value):
        element = array.dtype

        def codegen(context, builder, signature, args):
            pointer = _element_pointer(context, builder, array, args[0], signature.args[1], args[1])
            data = context.data_model_manager[element].as_data(builder, args[2])
            _call(builder, f"shoal_{function}_{suffix_of(element)}", ir.VoidType(), [pointer, data])
            return context.get_dummy_value()

        return types.void(array, index, element), codegen

    return _make_intrinsic(name, typer)


#: Write an element that another thread may be reading.
store = _make_action("store", "store")
#: Add to an element, of a type that `_require_row` has allowed.
accumulate = _make_action("atomic.add_row", "accumulate")


@intrinsic
def meet(typingctx, control, world):
    """Wait for all devices; see kernels/exchange.cuh."""

    def codegen(context, builder, signature, args):
        zero = context.get_constant(types.intp, 0)
        places = [_element_pointer(context, builder, kind, array, types.intp, zero)
                  for kind, array in zip(signature.args, args, strict=True)]  # fmt: skip
        _call(builder, "shoal_meet_devices", ir.VoidType(), places)
        return context.get_dummy_value()

    return types.void(control, world), codegen


@inner
def posted(world, device, what):
    """Return the place of what a device tells the others."""
    return WORLD_ROWS + device * LINE + what


@intrinsic
def whole(typingctx, value):
    """Return ``value``; a fraction is refused when it is compiled."""
    if isinstance(value, types.Float):
        raise TypingError(f"a whole number is wanted here, not a {value}")
    return value(value), lambda context, builder, signature, args: args[0]


@intrinsic
def nanoseconds(typingctx):
    """The GPU's clock."""
    return types.int64(), lambda context, builder, signature, args: _call(
        builder, "shoal_nanoseconds", ir.IntType(64), []
    )


# Twins of the atomics for an element that only the calling thread writes (the destination of a pull).  They refuse the
# same types and convert their operands in the same way.


@inner
def plain_min(array, index, value):
    proposal = as_element(array, index, value)
    if value < array[index] and proposal < array[index]:
        array[index] = proposal
        return True
    return False


@inner
def plain_max(array, index, value):
    proposal = as_element(array, index, value)
    if value > array[index] and proposal > array[index]:
        array[index] = proposal
        return True
    return False


@inner
def plain_add(array, index, value):
    old = array[index]
    array[index] = old + as_addend(array, index, value)
    return old


@inner
def plain_or(array, index, value):
    old = array[index]
    array[index] = old | as_bits(array, index, value)
    return old


@inner
def plain_and(array, index, value):
    old = array[index]
    array[index] = old & as_bits(array, index, value)
    return old


@inner
def plain_exchange(array, index, value):
    old = array[index]
    array[index] = as_element(array, index, value)
    return old


@inner
def plain_compare_exchange(array, index, expected, desired):
    replacement = as_element(array, index, desired)
    if array[index] == expected:
        array[index] = replacement
        return True
    return False


__all__ = [
    "atomic_add", "atomic_add_row", "atomic_and", "atomic_max", "atomic_min", "atomic_or", "compare_exchange",
    "exchange", "inner", "load", "math", "meet", "nanoseconds", "np", "plain_add", "plain_add_row", "plain_and",
    "plain_compare_exchange", "plain_exchange", "plain_max", "plain_min", "plain_or", "posted", "store", "whole",
]  # fmt: skip
