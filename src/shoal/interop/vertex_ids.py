# SPDX-License-Identifier: Apache-2.0
"""From the ids of a file or a table to vertices 0 to n - 1.

Ids that are exactly 0 to n - 1 stay.  Otherwise the distinct ids, in ascending order, become 0 to n - 1 and are kept as
the labels of the vertices.  A table with a byte for each possible id finds the distinct ones, unless ids are so large
that it would outgrow the edges: then, and for labels that are strings, Arrow's hash table does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.backends.cpu.threads import available_cores, run_threads

#: Bytes of table for each edge; an edge has 8 bytes of its own at least.
_TABLE_BYTES_PER_EDGE = 8
_SMALL_TABLE = 2**20
_MIN_IDS_PER_RUN = 2**16


@dataclass(slots=True)
class EdgeRows:
    """The edges of a file or table: ids from 0 on, or both sides' labels as Arrow arrays, one of each for a block."""

    src: np.ndarray
    dst: np.ndarray
    weights: np.ndarray | None
    largest_id: int
    src_labels: list[Any] = field(default_factory=list)
    dst_labels: list[Any] = field(default_factory=list)
    num_rows: int = 0
    may_be_overwritten: bool = True  # the ids: others may be put in their place


class NumberedEdges(NamedTuple):
    """Edges between the vertices 0 to ``num_vertices`` - 1."""

    src: np.ndarray
    dst: np.ndarray
    num_vertices: int
    labels: Any


def number_vertices(rows: EdgeRows) -> NumberedEdges:
    """Number the vertices of a file or a table."""
    if rows.src_labels:
        return _number_labels(rows.src_labels, rows.dst_labels)
    if rows.num_rows == 0:
        return NumberedEdges(rows.src, rows.dst, 0, None)
    if rows.largest_id < _TABLE_BYTES_PER_EDGE * rows.num_rows + _SMALL_TABLE:
        return _number_by_table(rows)
    return _number_by_hashing(rows.src, rows.dst)


def _number_by_table(rows: EdgeRows) -> NumberedEdges:
    from shoal.backends.cpu.kernels import vertex_ids as kernels

    src, dst, largest_id = rows.src, rows.dst, rows.largest_id
    num_threads = len(available_cores()) if src.size >= _MIN_IDS_PER_RUN else 1
    is_present = np.zeros(largest_id + 1, np.uint8)
    for ids in (src, dst):
        run_threads(kernels.mark_present, num_threads, ids, is_present)
    labels = np.flatnonzero(is_present)
    if labels.size == largest_id + 1:
        return NumberedEdges(src, dst, labels.size, None)
    new_ids = np.cumsum(is_present, dtype=src.dtype)
    new_ids -= 1
    if not rows.may_be_overwritten:
        return NumberedEdges(new_ids[src], new_ids[dst], labels.size, labels)
    for ids in (src, dst):
        run_threads(kernels.replace_ids, num_threads, ids, new_ids)
    return NumberedEdges(src, dst, labels.size, labels)


def _number_by_hashing(src: np.ndarray, dst: np.ndarray) -> NumberedEdges:
    import pyarrow as pa

    encoded = pa.chunked_array([src, dst]).dictionary_encode()
    labels, new_ids = _ranks(encoded.chunk(0).dictionary)
    src, dst = (new_ids[chunk.indices.to_numpy()] for chunk in encoded.chunks)
    return NumberedEdges(src, dst, len(labels), labels.to_numpy().astype(np.int64, copy=False))


def _number_labels(src_labels: list[Any], dst_labels: list[Any]) -> NumberedEdges:
    """Number labels that are dictionary-encoded block by block."""
    import pyarrow as pa

    encoded = pa.chunked_array(src_labels + dst_labels).unify_dictionaries()
    labels, new_ids = _ranks(encoded.chunk(0).dictionary)
    parts = [new_ids[chunk.indices.to_numpy()] for chunk in encoded.chunks]
    middle = len(src_labels)
    return NumberedEdges(np.concatenate(parts[:middle]), np.concatenate(parts[middle:]), len(labels), labels)


def _ranks(distinct: Any) -> tuple[Any, np.ndarray]:
    """Return the values in ascending order and the rank of each."""
    import pyarrow.compute as pc

    order = pc.sort_indices(distinct)
    ranks = np.empty(len(distinct), np.int32 if len(distinct) < 2**31 else np.int64)
    ranks[order.to_numpy()] = np.arange(len(distinct), dtype=ranks.dtype)
    return distinct.take(order), ranks
