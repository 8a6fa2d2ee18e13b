# SPDX-License-Identifier: Apache-2.0
"""Functions that Numba compiles and CUDA C++ calls: their text in Python, their types for Numba, their calls in C++.

An array crosses as the members of Numba's array structure, one by one: two pointers that nobody uses here, the number
of items, the size of one, the data, and a shape and a stride for each dimension.  Once a function is put in place the
constants among them are gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

C_TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
    "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
    "float32": "float", "float64": "double",
}  # fmt: skip


def c_type(dtype: Any) -> str:
    """Return the name of an element type in C++."""
    return C_TYPES[np.dtype(dtype).name]


@dataclass(frozen=True)
class Argument:
    """What a function takes: a number, or an array of one or two dimensions.

    Parameters
    ----------
    value : its text in C++: of an array the pointer
    length, width : of an array, in C++; without a width it has one dimension
    """

    value: str
    dtype: np.dtype
    length: str | None = None
    width: int | None = None
    is_constant: bool = False

    def numba_type(self) -> Any:
        from numba.cuda import types
        from numba.cuda.np.numpy_support import from_dtype

        element = from_dtype(self.dtype)
        if self.length is None:
            return element
        return types.Array(element, 1 if self.width is None else 2, "C", readonly=self.is_constant)

    @property
    def declaration(self) -> str:
        if self.length is None:
            return c_type(self.dtype)
        shape = ["long long"] * (2 if self.width is None else 4)
        return ", ".join(["void*", "void*", "long long", "long long", f"{c_type(self.dtype)}*", *shape])

    @property
    def passed(self) -> str:
        if self.length is None:
            return self.value
        size = self.dtype.itemsize
        pointer = f"const_cast<{c_type(self.dtype)}*>({self.value})"
        if self.width is None:
            return f"nullptr, nullptr, {self.length}, {size}, {pointer}, {self.length}, {size}"
        return (f"nullptr, nullptr, ({self.length}) * {self.width}, {size}, {pointer}, {self.length}, {self.width}, "
                f"{size * self.width}, {size}")  # fmt: skip


@dataclass(frozen=True)
class Export:
    """A function of the generated module: how it is typed, declared and called, and what it is to its author."""

    name: str
    arguments: tuple[Argument, ...]
    result: np.dtype | None
    title: str

    def numba_signature(self) -> Any:
        from numba.cuda import types
        from numba.cuda.np.numpy_support import from_dtype

        result = types.void if self.result is None else from_dtype(self.result)
        return result(*(argument.numba_type() for argument in self.arguments))

    @property
    def declaration(self) -> str:
        result = "void" if self.result is None else c_type(self.result)
        return f'extern "C" __device__ {result} {self.name}({", ".join(a.declaration for a in self.arguments)});'

    @property
    def call(self) -> str:
        return f"{self.name}({', '.join(argument.passed for argument in self.arguments)})"
