# SPDX-License-Identifier: Apache-2.0
"""Labels: the names that a user's vertices have outside, in the order of the ids they have inside.

Whole numbers are an int64 array, strings a NumPy array or an Arrow array, whichever came in.  A label is found by a
scan (milliseconds for millions), so that labels cost no memory beyond themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.arrays import as_array, read_only, refuse_missing
from shoal.errors import GraphError


def as_labels(value: Any, num_vertices: int | None = None) -> Any:
    """Return labels as an int64 array or an array of strings; Arrow arrays of strings stay what they are."""
    if value is None:
        return None
    refuse_missing("labels", value)
    labels = value if _is_arrow_strings(value) else _as_numpy(as_array("labels", value))
    if num_vertices is not None and len(labels) != num_vertices:
        raise GraphError(f"labels has {len(labels)} values for {num_vertices} vertices; there must be one for each")
    return labels


def check_labels(labels: Any) -> None:
    """Refuse an array of Arrow whose offsets or text are none; to look at these would end the process."""
    if hasattr(labels, "validate"):
        try:
            labels.validate(full=True)
        except ValueError as error:  # as all that Arrow says of data
            raise GraphError(f"labels are no array of strings: {error}") from None


def _is_arrow_strings(value: Any) -> bool:
    return str(getattr(value, "type", "")) in ("string", "large_string", "string_view")


def _as_numpy(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        position = int(np.argmax(array))
        raise GraphError(f"labels[{position}]={array[position]} is too large; labels must be below 2**63")
    if array.dtype.kind in "iu" or array.size == 0:
        return read_only(array.astype(np.int64, copy=False))
    if array.dtype.kind == "O":
        return _as_strings(array)
    if array.dtype.kind not in "UT":
        raise GraphError(f"labels[0]={array[0]!s} has dtype {array.dtype}; labels must be whole numbers or strings")
    return array


def _as_strings(array: np.ndarray) -> np.ndarray:
    try:
        return read_only(array.astype(np.dtypes.StringDType(coerce=False)))
    except ValueError:
        position = next(i for i, label in enumerate(array) if not isinstance(label, str))
        message = f"labels[{position}]={array[position]!r} is not a string; labels must be all numbers or all strings"
        raise GraphError(message) from None


def find_label(labels: Any, label: Any) -> int:
    """Return the one position of ``label``."""
    found = np.flatnonzero(_equals(labels, label))
    if found.size != 1:
        raise GraphError(f"label={label!r} is the label of {found.size or 'no'} vertices; it must be that of one")
    return int(found[0])


def _equals(labels: Any, label: Any) -> Any:
    if not _is_arrow_strings(labels):
        return labels == label
    if not isinstance(label, str):
        return False
    import pyarrow.compute

    return pyarrow.compute.equal(labels, label).to_numpy(zero_copy_only=False)


def label_at(labels: Any, vertex: int) -> Any:
    """Return the label at a position as a Python int or string."""
    label = labels[vertex]
    for to_python in ("as_py", "item"):  # an Arrow or a NumPy scalar
        if hasattr(label, to_python):
            return getattr(label, to_python)()
    return label


def labels_as_arrow(labels: Any) -> Any:
    """Return labels as an Arrow array of int64 or of large_string; None for None."""
    import pyarrow as pa

    if labels is None:
        return None
    if isinstance(labels, pa.ChunkedArray):
        labels = labels.combine_chunks()
    if isinstance(labels, pa.Array):
        return labels if pa.types.is_integer(labels.type) else labels.cast(pa.large_string())
    array = np.asarray(labels)
    if array.dtype.kind in "iu":
        return pa.array(array)
    return pa.array([str(label) for label in array.tolist()], pa.large_string())


def is_numbered(labels: Any) -> bool:
    """Whether vertices are named by whole numbers."""
    return labels is None or np.asarray(labels[:0]).dtype.kind in "iu"


def names_of(labels: Any, vertices: np.ndarray) -> Any:
    """Return the names of vertices (-1: none) as an array: NumPy's for whole numbers, Arrow's for strings."""
    if labels is None:
        return vertices
    if is_numbered(labels):
        numbers = np.asarray(labels)
        return np.where(vertices < 0, -1, numbers[vertices]) if len(numbers) else numbers
    import pyarrow as pa

    return labels_as_arrow(labels).take(pa.array(vertices, mask=np.asarray(vertices) < 0))
