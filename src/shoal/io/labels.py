# SPDX-License-Identifier: Apache-2.0
"""The labels of a graph as one Arrow array, whatever they were given as."""

from __future__ import annotations

from typing import Any

import numpy as np


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
