# SPDX-License-Identifier: Apache-2.0
"""Arrays that NumPy cannot reach: they do what CuPy's do, and refuse what these refuse; and a CPU that returns them.

NumPy in CuPy's place would let everything pass.  Here a function or keyword that CuPy has not got, an array of the host
where CuPy wants its own, and every conversion but ``get`` are errors, as there.
"""

from __future__ import annotations

import operator

import numpy as np

from shoal.backends.cpu.backend import CPUBackend
from shoal.backends.cpu.device import CPUDevice
from shoal.program import Vertex

#: Functions of NumPy that results are made with, and the keywords that CuPy's take.
FUNCTIONS = {
    np.any: set(),
    np.atleast_2d: set(),
    np.bincount: set(),
    np.count_nonzero: set(),
    np.empty_like: {"order", "shape"},
    np.stack: set(),
}


class FarArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on a GPU that is none."""

    __cuda_array_interface__ = property(lambda self: {})
    __hash__ = None

    def __init__(self, array):
        self.near = np.asarray(array)

    shape = property(lambda self: self.near.shape)
    dtype = property(lambda self: self.near.dtype)
    ndim = property(lambda self: self.near.ndim)
    size = property(lambda self: self.near.size)
    nbytes = property(lambda self: self.near.nbytes)
    T = property(lambda self: FarArray(self.near.T))

    def get(self, out=None):
        """Copy to the host: the one way there."""
        if out is None:
            return self.near.copy()
        out[...] = self.near
        return out

    def __array__(self, *args, **options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        if method != "__call__" or options:
            return NotImplemented
        found = ufunc(*map(_operand, inputs), **({"out": tuple(map(_operand, out))} if out else {}))
        return out[0] if out else FarArray(found)

    def __array_function__(self, func, types, args, kwargs):
        if func not in FUNCTIONS or not set(kwargs) <= FUNCTIONS[func]:
            return NotImplemented
        lists = [[_operand(part) for part in arg] if isinstance(arg, list) else _operand(arg) for arg in args]
        return FarArray(func(*lists, **kwargs))

    def __getitem__(self, place):
        return FarArray(self.near[_place(place)])

    def __setitem__(self, place, value):
        self.near[_place(place)] = _operand(value)

    def __len__(self):
        return len(self.near)

    def __iter__(self):
        return map(FarArray, self.near)

    def __bool__(self):
        return bool(self.near)

    def __int__(self):
        return int(self.near)

    def __float__(self):
        return float(self.near)

    def __index__(self):
        return operator.index(self.near)

    def item(self):
        return self.near.item()

    def view(self, dtype):
        return FarArray(self.near.view(dtype))

    def reshape(self, *shape):
        return FarArray(self.near.reshape(*shape))

    def copy(self):
        return FarArray(self.near.copy())

    def astype(self, dtype):
        return FarArray(self.near.astype(dtype))

    def max(self):
        return FarArray(self.near.max())

    def argmax(self):
        return FarArray(self.near.argmax())


def _operand(value):
    """Return the elements of a far array, or a number: of the host's arrays, which CuPy refuses, none."""
    if isinstance(value, FarArray):
        return value.near
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _place(place):
    """Return an index for the host; CuPy takes arrays of numbers from there, too."""
    if isinstance(place, tuple):
        return tuple(map(_place, place))
    return place.near if isinstance(place, FarArray) else place


def install(monkeypatch):
    """Let runs on one CPU device leave far arrays where the arrays of their device are asked for."""
    begin = CPUBackend.begin

    def begin_far(backend, shards, fields, *rest):
        session = begin(backend, shards, fields, *rest)

        def hand_over(state):
            session.end(state)
            for name, declared in fields.items():
                if isinstance(declared, Vertex):
                    state[name] = FarArray(state[name])

        session.hand_over = hand_over
        return session

    monkeypatch.setattr(CPUBackend, "begin", begin_far)
    monkeypatch.setattr(CPUDevice, "upload", lambda device, array: FarArray(array))
