# SPDX-License-Identifier: Apache-2.0
"""The parameters of a generated loop and their types."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.program import Constant, Field

#: Parameters of every loop, before the program's fields and the partial values of its reductions.
LOOP_PARAMETERS = (
    "thread", "num_threads", "control", "work", "trace", "levels", "knobs",
    "indptr", "indices", "weights", "in_indptr", "in_indices", "in_weights",
    "queue", "bitmap_a", "bitmap_b", "remaining", "outbox", "blocks", "links", "bins", "published",
)  # fmt: skip
#: Behind those, of a loop that intersects or tallies: see `shoal.backends.cpu.scratch`.
SCRATCH_PARAMETERS = ("marks", "keys", "totals")
#: And of one that intersects on several devices: the lists that they have sent one another.
LIST_PARAMETERS = ("list_indptr", "list_indices")
#: Parameters of a loop that is one of several, behind those: see `shoal.backends.cpu.border`.
SHARD_PARAMETERS = (
    "world", "owner", "address", "global_ids", "owned", "copy_at", "copy_peers", "copy_ids", "border", "dirty",
    "voices", "receive_at", "receive_from", "num_receivers", "mail_at", "edge_ids", "mail_bits", "mail_ids",
)  # fmt: skip

#: And behind those, of one whose devices give vertices to one another: see `shoal.backends.cpu.kernels.dealing`.
DEAL_PARAMETERS = ("deals", "sent_at", "sent_rows", "sent_weights", "sent_ids")
#: Of one whose devices may hand their parts over: see `shoal.backends.cpu.kernels.grouping`.
GROUP_PARAMETERS = ("group",)

#: Parameters of a loop without supersteps, before the program's fields: see `shoal.backends.cpu.worklist_run`.
WORK_PARAMETERS = ("control", "indptr", "indices", "weights", "blocks", "links", "bins", "waiting", "spill", "found")
#: And behind them, where there are several devices.
CHANNEL_PARAMETERS = (
    "world", "owner", "address", "global_ids", "listed", "dirty", "voices", "edge_ids", "hops", "channels", "mail_at",
    "mail_room", "mail_ids",
)  # fmt: skip


def numba_signature(
    fields: dict[str, Field],
    dtypes: dict[str, np.dtype],
    source: Any,
    vertex: np.dtype,
    edge: np.dtype,
    weight: np.dtype | None,
) -> Any:
    """Return the type of a phase's loop for the given element types."""
    from numba import from_dtype, types

    def array(dtype: Any, ndim: int = 1, readonly: bool = False) -> Any:
        return types.Array(from_dtype(np.dtype(dtype)), ndim, "C", readonly=readonly)

    graph = [array(edge, readonly=True), array(vertex, readonly=True), array(weight or np.int32, readonly=True)]
    bitmap, words = array(np.uint64), array(np.int64)
    fixed = [
        types.int64, types.int64, words, words, array(np.int64, 2), words, array(np.float64),
        *graph, *graph,
        array(vertex), bitmap, bitmap, bitmap, array(vertex, 2), array(vertex), words, array(np.int64, 2), words,
    ]  # fmt: skip
    own: list[Any] = []
    for name, declared in fields.items():
        if isinstance(declared, Constant) and not declared.is_array:
            own.append(from_dtype(dtypes[name]))
        else:
            ndim = 2 if getattr(declared, "width", None) else 1
            own.append(array(dtypes[name], ndim, readonly=isinstance(declared, Constant)))

    def values(name: str) -> Any:
        return array(dtypes[name], 2 if getattr(fields[name], "width", None) else 1)

    ids, table, devices = array(vertex, readonly=True), array(np.int64, readonly=True), array(np.uint16, readonly=True)
    if source.is_asynchronous:
        work = [types.int64, types.int64, words, *graph, array(vertex), words, array(np.int64, 2), bitmap, bitmap,
                array(np.int64, 2)]  # fmt: skip
        if source.flow.sharing is None:
            return types.void(*work, *own)
        between = [words, devices, ids, ids, array(vertex), bitmap, bitmap, array(edge, readonly=True), table, words,
                   table, table, array(vertex)]  # fmt: skip
        return types.void(*work, *own, *between, *map(values, source.mailed))
    partials = [array(dtype) for dtype in source.partials.values()]
    flow, behind = source.flow, []
    if flow.intersects or flow.tallies:
        behind = [array(np.int32, 2), array(np.int64, 2), array(np.float64, 2)]
    if flow.sharing is None:
        return types.void(*fixed, *own, *partials, *behind)
    if flow.intersects:
        behind += [array(np.int64, readonly=True), array(vertex, readonly=True)]
    shared = [words, devices, ids, ids, ids, table, devices, ids, array(vertex), bitmap, bitmap, table, table, table,
              table, array(edge, readonly=True), bitmap, array(vertex)]  # fmt: skip
    shared += [words, *graph, array(edge, readonly=True)] if source.deals else []
    shared += [array(np.float64)] * source.regroups
    carried = [values(name) for name in (*source.mailed, *source.remembered)]
    return types.void(*fixed, *own, *partials, *behind, *shared, *carried, *partials)
