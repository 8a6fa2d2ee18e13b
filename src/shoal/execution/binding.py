# SPDX-License-Identifier: Apache-2.0
"""Binding: a program's fields become arrays, ``start`` sets them and says where to begin.

What ``start`` sets by name (``self.level = levels``) counts as much as what it writes into the arrays.  Nothing it
leaves behind reaches compiled code unchecked.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from shoal.arrays import on_host
from shoal.backends.base import Device
from shoal.errors import ArgumentError, ProgramError
from shoal.graph import Graph
from shoal.program import Constant, Field, Program, Vertex, field_dtype
from shoal.values import as_number, as_numbers, shown


def begin(
    program: Program, fields: dict[str, Field], dtypes: dict[str, np.dtype], graph: Graph, device: Device,
    arguments: dict[str, Any],
) -> tuple[dict[str, Any], np.ndarray | None]:  # fmt: skip
    """Run a program's ``start``; return every field's first value, and the first frontier (None: all vertices)."""
    bound, state = _bind(program, fields, dtypes, graph.num_vertices, device)
    frontier = _as_frontier(_call_start(bound, arguments), graph.num_vertices)
    for name, declared in fields.items():
        value = getattr(bound, name, None)
        place = f"{type(program).__name__}.{name}"
        if isinstance(declared, Constant):
            state[name] = _constant(place, declared, value, dtypes[name])
        elif value is not state[name]:
            state[name] = _replacement(f"start(): {place}", value, state[name])
    return state, frontier


def state_bytes(fields: dict[str, Field], num_vertices: int, vertex_dtype: np.dtype) -> int:
    """Return the bytes of a program's fields and scalars on so many vertices."""
    total = 0
    for declared in fields.values():
        if not isinstance(declared, Constant):
            length = num_vertices * (declared.width or 1) if isinstance(declared, Vertex) else 1
            total += length * field_dtype(declared, vertex_dtype).itemsize
    return total


def _bind(
    program: Program, fields: dict[str, Field], dtypes: dict[str, np.dtype], num_vertices: int, device: Device
) -> tuple[Program, dict[str, Any]]:
    """Return a copy of the program whose fields are arrays, and those arrays; constants are to be set."""
    bound = copy.copy(program)
    state: dict[str, Any] = {}
    for name, declared in fields.items():
        if isinstance(declared, Constant):
            state[name] = None
            continue
        shape: int | tuple[int, int] = 1
        if isinstance(declared, Vertex):
            shape = (num_vertices, declared.width) if declared.width else num_vertices
        state[name] = device.allocate(shape, dtypes[name], declared.fill)
        setattr(bound, name, state[name])
    bound.num_vertices = num_vertices  # type: ignore[attr-defined]
    return bound, state


def _call_start(bound: Program, arguments: dict[str, Any]) -> Any:
    """Call ``start``, which fills fields on the host: what is on a GPU, such as an earlier result, is copied there."""
    arguments = {name: on_host(value) for name, value in arguments.items()}
    try:
        return bound.start(**arguments)
    except TypeError:
        signature = inspect.signature(bound.start)
        try:
            signature.bind(**arguments)
        except TypeError as mismatch:
            takes = ", ".join(signature.parameters) or "nothing"
            raise ArgumentError(f"{type(bound).__name__}.start: {mismatch}; it takes: {takes}") from None
        raise


def _constant(place: str, declared: Constant, value: Any, dtype: np.dtype) -> Any:
    """Return the number or array that a constant was set to."""
    if isinstance(value, Constant):
        raise ProgramError(f"{place} is a constant that start() did not set")
    return _read_only(as_numbers(place, value, dtype)) if declared.is_array else as_number(place, value, dtype)


def _replacement(place: str, value: Any, array: np.ndarray) -> np.ndarray:
    """Return what ``start`` put in the place of a field's array: as many items, or one number for all."""
    if not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0:
        return np.full(array.shape, as_number(place, value, array.dtype))
    # A copy: the caller's array must not change with the run, and two fields may have been set to one array.
    return np.array(as_numbers(place, value, array.dtype, array.shape), order="C")


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a view for compiled code, which takes constants as read-only, as memory maps and graphs' arrays are."""
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")
    view = array.view()
    view.flags.writeable = False
    return view


def _as_frontier(first: Any, num_vertices: int) -> np.ndarray | None:
    """Return the vertices that ``start`` returned, ascending and each once."""
    if first is None:
        return None
    array = _as_ids(first, f"vertices, whole numbers from 0 to {num_vertices - 1}, or None for all")
    is_ascending = bool(np.all(array[1:] > array[:-1]))  # as np.flatnonzero has them: looking costs less than sorting
    frontier = array if is_ascending else np.unique(array)
    if len(frontier) and (frontier[0] < 0 or frontier[-1] >= num_vertices):
        bad = frontier[0] if frontier[0] < 0 else frontier[-1]
        raise ArgumentError(f"start() returned vertex {bad}; allowed: 0 to {num_vertices - 1}")
    return frontier.astype(np.int64, copy=False)


def _as_ids(first: Any, allowed: str) -> np.ndarray:
    values = first
    is_listed = isinstance(first, (list, tuple, str, bytes)) or hasattr(first, "__array__")
    if not is_listed and isinstance(first, Iterable):
        values = list(first)  # a set, a generator
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise ArgumentError(f"start() returned {shown(first)}; it must return a list of {allowed}")
    if array.size == 0:
        return np.empty(0, np.int64)  # an empty list has no type of its own
    if array.dtype.kind not in "iu":
        hint = " (of flags: numpy.flatnonzero)" if array.dtype.kind == "b" else ""
        raise ArgumentError(f"start() returned {shown(first)}, of type {array.dtype}; it must return {allowed}{hint}")
    return array
