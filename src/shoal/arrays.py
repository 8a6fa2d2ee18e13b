# SPDX-License-Identifier: Apache-2.0
"""Turn what a user calls an array into the one-dimensional, read-only NumPy arrays that a graph is made of.

Arrays of Arrow, PyTorch, pandas and the like come in by their protocols, so none of these libraries is needed.
Nothing is copied that has the right type and layout already, and no value is changed: what does not fit is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import ArgumentError, GraphError
from shoal.machine import import_cupy

_WIDTHS: dict[str, np.dtype] = {"int32": np.dtype(np.int32), "int64": np.dtype(np.int64)}
_INT32_LIMIT = 2**31
#: Whole numbers up to here are exact as float64.
_EXACT_LIMIT = 2**53
#: The type of a device, in DLPack's numbers, whose memory NumPy can see.
_DLPACK_CPU = 1


def as_array(name: str, value: Any, num_dimensions: int = 1) -> np.ndarray:
    """Return ``value`` as a contiguous, aligned, native, read-only array of one dimension, or as many as given."""
    array = _import_array(name, value)
    if array.ndim != num_dimensions:
        wanted = "one dimension" if num_dimensions == 1 else f"{num_dimensions} dimensions"
        raise GraphError(f"{name} has {array.ndim} dimensions; it must be an array of {wanted}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return read_only(np.require(array, requirements=["C", "A"]))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def is_on_gpu(value: Any) -> bool:
    """Whether something is an array in the memory of a GPU, by the protocol of CuPy and others."""
    return hasattr(value, "__cuda_array_interface__")


def on_host(value: Any) -> Any:
    """Return a copy on the host of an array that is on a GPU, and all else as it is."""
    return value.get() if is_on_gpu(value) else value


def _import_array(name: str, value: Any) -> np.ndarray:
    refuse_missing(name, value)
    try:
        if is_on_gpu(value):
            return _copy_from_gpu(value)
        if not hasattr(value, "__array__"):
            if hasattr(value, "__arrow_array__"):
                value = value.__arrow_array__()
            elif hasattr(value, "__dlpack__"):
                return _from_dlpack(value)
        return np.asarray(value)
    except Exception as error:  # whatever the other library raises for data it cannot give to NumPy
        raise GraphError(f"{name} cannot be read as an array: {error}") from error


def _copy_from_gpu(value: Any) -> np.ndarray:
    """Copy an array of CuPy, PyTorch, JAX or Numba to the host, by its library's own means where there are some."""
    if hasattr(value, "get"):
        return value.get()
    if hasattr(value, "__dlpack__") and np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        try:
            return np.from_dlpack(value, device="cpu")
        except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError):
            pass  # its library copies to no other device: CuPy does
    return import_cupy("an array on a GPU").asarray(value).get()


def _from_dlpack(value: Any) -> np.ndarray:
    device, _ = value.__dlpack_device__()
    return np.from_dlpack(value) if device == _DLPACK_CPU else _copy_from_gpu(value)


def refuse_missing(name: str, value: Any) -> None:
    """Refuse Arrow arrays with nulls and masked arrays: as plain arrays they would hold anything there."""
    missing = getattr(value, "null_count", 0)
    missing = missing() if callable(missing) else missing
    if isinstance(value, np.ma.MaskedArray):
        missing = np.ma.count_masked(value)
    if missing:
        raise GraphError(f"{name} has {missing} missing values; there must be none")


def as_ids(name: str, value: Any) -> np.ndarray:
    """Return vertex ids as an int32 or int64 array; whether they are in range is for `check_ids` to say."""
    array = as_array(name, value)
    if array.size == 0 and array.dtype.kind not in "iu":
        return read_only(np.empty(0, np.int32))  # an empty list has no type of its own
    if array.dtype.kind not in "iu":
        raise GraphError(_describe_non_integer(name, array))
    return _as_signed(name, array)


def as_edge_ids(src: Any, dst: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two ends of edges as arrays of one type and size."""
    src, dst = as_ids("src", src), as_ids("dst", dst)
    if src.size != dst.size:
        raise GraphError(f"src has {src.size} ids and dst {dst.size}; there must be as many of both")
    if src.dtype != dst.dtype:
        src, dst = (read_only(ids.astype(np.int64, copy=False)) for ids in (src, dst))
    return src, dst


def _as_signed(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype in (np.int32, np.int64):
        return array
    if array.dtype == np.uint64:
        check_ids(name, array, 2**63)
    return read_only(array.astype(np.int32 if np.can_cast(array.dtype, np.int32) else np.int64))


def _describe_non_integer(name: str, array: np.ndarray) -> str:
    if array.dtype.kind == "f":
        wrong = np.flatnonzero(array != np.floor(array))
        if wrong.size:
            return f"{name}[{wrong[0]}]={array[wrong[0]]} is not a whole number; {name} must have an integer dtype"
    return f"{name}[0]={array[0]!s} has dtype {array.dtype}; {name} must have an integer dtype"


def largest_id(name: str, ids: np.ndarray) -> int:
    """Return the largest id, -1 if there is none, and refuse negative ones."""
    if ids.size == 0:
        return -1
    # As unsigned numbers the negative ones are the largest: one pass instead of two.
    largest = int(ids.view(f"u{ids.dtype.itemsize}").max())
    if largest >= 2 ** (8 * ids.dtype.itemsize - 1):
        position = int(np.argmax(ids < 0))
        raise GraphError(f"{name}[{position}]={ids[position]} is not a vertex id; ids must not be negative")
    return largest


def check_ids(name: str, ids: np.ndarray, num_vertices: int) -> None:
    """Refuse ids that are not from 0 to ``num_vertices`` - 1."""
    if ids.size == 0 or int(ids.view(f"u{ids.dtype.itemsize}").max()) < num_vertices:
        return
    position = int(np.argmax((ids < 0) | (ids >= num_vertices)))
    allowed = f"ids must be from 0 to {num_vertices - 1}" if num_vertices else "the graph has no vertices"
    raise GraphError(f"{name}[{position}]={ids[position]} is not a vertex id; {allowed}")


def check_indptr(indptr: np.ndarray, num_edges: int) -> None:
    """Refuse offsets that do not ascend from 0 to ``num_edges``."""
    if indptr[0] != 0:
        raise GraphError(f"indptr[0]={indptr[0]} is not allowed; it must be 0")
    if indptr[-1] != num_edges:
        position = indptr.size - 1
        raise GraphError(f"indptr[{position}]={indptr[-1]} is not allowed; it must be {num_edges}, the size of indices")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        position = int(np.argmax(falls))
        raise GraphError(
            f"indptr[{position + 1}]={indptr[position + 1]} is below indptr[{position}]={indptr[position]}; "
            "offsets must not descend"
        )


def as_weights(value: Any, num_edges: int, check: bool = True) -> np.ndarray | None:
    """Return weights as int32, float32 or float64, whichever holds every value exactly."""
    if value is None:
        return None
    array = as_array("weights", value)
    if array.size != num_edges:
        raise GraphError(f"weights has {array.size} values for {num_edges} edges; there must be one for each")
    if array.size == 0 and array.dtype.kind not in "biuf":
        array = array.astype(np.float64)
    if array.dtype.kind in "biu":
        return read_only(_integer_weights(array))
    if array.dtype.kind != "f":
        raise GraphError(f"weights has dtype {array.dtype}; weights must be numbers")
    return read_only(_float_weights(array, check))


def _integer_weights(array: np.ndarray) -> np.ndarray:
    if np.can_cast(array.dtype, np.int32) or array.size == 0:
        return array.astype(np.int32, copy=False)
    low, high = int(array.min()), int(array.max())
    if low >= -_INT32_LIMIT and high < _INT32_LIMIT:
        return array.astype(np.int32)
    if low >= -_EXACT_LIMIT and high <= _EXACT_LIMIT:
        return array.astype(np.float64)
    position = int(np.argmax(array) if high > _EXACT_LIMIT else np.argmin(array))
    raise GraphError(f"weights[{position}]={array[position]} is too large; whole numbers must be within 2**53")


def _float_weights(array: np.ndarray, check: bool) -> np.ndarray:
    # The smallest value is NaN if there is any NaN.
    if check and array.size and np.isnan(array.min()):
        raise GraphError(f"weights[{int(np.argmax(np.isnan(array)))}]=nan is not a number; every edge needs a weight")
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    return _narrowed(array)


def _narrowed(array: np.ndarray) -> np.ndarray:
    narrow = array.astype(np.float64)
    changed = np.flatnonzero(narrow != array)
    if changed.size:
        position = int(changed[0])
        raise GraphError(f"weights[{position}]={array[position]} does not fit in float64, the widest weight there is")
    return narrow


def choose_vertex_dtype(vertex_dtype: Any, edge_dtype: Any, num_vertices: int) -> np.dtype:
    """Return the given width of vertex ids, or the narrowest that holds ``num_vertices``."""
    if vertex_dtype is None:
        width = _WIDTHS["int32" if num_vertices < _INT32_LIMIT else "int64"]
    else:
        width = _as_width("vertex_dtype", vertex_dtype)
    if width == np.int32 and num_vertices >= _INT32_LIMIT:
        raise ArgumentError(f"vertex_dtype=int32 is too narrow for {num_vertices} vertices; it must be int64")
    if width == np.int64 and edge_dtype is not None and _as_width("edge_dtype", edge_dtype) == np.int32:
        raise ArgumentError(
            f"edge_dtype=int32 is not allowed with {num_vertices} vertices of int64; "
            "allowed pairs of vertex_dtype/edge_dtype: int32/int32, int32/int64, int64/int64"
        )
    return width


def choose_edge_dtype(edge_dtype: Any, vertex_dtype: np.dtype, num_edges: int) -> np.dtype:
    """Return the given width of edge offsets, or the narrowest that holds ``num_edges`` and suits the vertex ids."""
    if edge_dtype is None:
        return _WIDTHS["int32" if num_edges < _INT32_LIMIT and vertex_dtype == np.int32 else "int64"]
    width = _as_width("edge_dtype", edge_dtype)
    if width == np.int32 and num_edges >= _INT32_LIMIT:
        raise ArgumentError(f"edge_dtype=int32 is too narrow for {num_edges} edges; it must be int64")
    return width


def _as_width(name: str, value: Any) -> np.dtype:
    try:
        return _WIDTHS[np.dtype(value).name]
    except (KeyError, TypeError):
        raise ArgumentError(f"{name}={value!r} is not allowed; allowed: int32, int64") from None


@dataclass(frozen=True)
class GraphSizes:
    """What an estimate of memory depends on."""

    num_vertices: int
    num_edges: int
    is_directed: bool
    vertex_dtype: np.dtype
    edge_dtype: np.dtype
    weight_dtype: np.dtype | None
    max_degree: int | None  # None where it is not known

    @classmethod
    def of(cls, graph: Any) -> GraphSizes:
        """Return those of a graph."""
        weight = None if graph.weights is None else graph.weights.dtype
        return cls(graph.num_vertices, graph.num_edges, graph.is_directed, graph.vertex_dtype, graph.edge_dtype, weight,
                   graph.max_degree)  # fmt: skip

    @property
    def csr_bytes(self) -> int:
        """Bytes of the edges in one direction."""
        weight = 0 if self.weight_dtype is None else self.weight_dtype.itemsize
        rows = (self.num_vertices + 1) * self.edge_dtype.itemsize
        return rows + self.num_edges * (self.vertex_dtype.itemsize + weight)
