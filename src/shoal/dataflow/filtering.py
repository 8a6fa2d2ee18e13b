# SPDX-License-Identifier: Apache-2.0
"""Predicate-based filtering: the items of an array that a condition keeps, found by all devices.

The host sends segments to whichever device has room, so that a faster one gets more of them, and puts what comes back
in the order of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.dataflow.context import Context, Endpoint
from shoal.dataflow.link import PACKET_SIZE, Link
from shoal.dataflow.memory import one_dimensional
from shoal.dataflow.router import Router, first_available
from shoal.errors import ArgumentError, check_integer


@dataclass(frozen=True)
class Filtered:
    """The items that were kept, in their order, and how many segments each device had."""

    values: np.ndarray
    segments: dict[str, int]


def filter_array(
    array: Any, predicate: Callable[[Any], Any], *, devices: str = "cpu", segment_size: int = PACKET_SIZE
) -> Filtered:
    """Return the items of an array for which a predicate holds.

    Parameters
    ----------
    predicate : takes an array and returns as many truth values; devices call it at the same time.  At devices of a GPU
        both are CuPy arrays
    devices : as in `shoal.dataflow.Context`
    segment_size : items that a device takes at a time

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.dataflow import filter_array
    >>> filter_array(np.arange(10), lambda items: items % 4 == 1, devices="cpu:2", segment_size=3).values.tolist()
    [1, 5, 9]
    """
    check_integer("segment_size", segment_size, 1)
    with Context(devices) as context:
        items = one_dimensional("filter_array: array", array, context.host.memory)
        count = len(context.devices)
        scatter = Router(context, 1, count, first_available, "scatter")
        collect = Router(context, count, 1, first_available, "collect")
        to_devices = Link(context.host, scatter, segment_size)
        to_host = Link(collect, context.host, segment_size, num_buffers=2 * count)
        counts = dict.fromkeys((device.name for device in context.devices), 0)
        for device in context.devices:
            ways = Link(scatter, device, segment_size), Link(device, collect, segment_size)
            context.start(device, _work, device, *ways, predicate, counts)
        context.start(context.host, _distribute, to_devices, items, segment_size)
        parts = {segment.metadata: segment.data.copy() for segment in to_host}
    kept = [parts[number] for number in sorted(parts)]
    return Filtered(np.concatenate(kept) if kept else items[:0], counts)


def _distribute(link: Link, items: np.ndarray, size: int) -> None:
    for number, at in enumerate(range(0, len(items), size)):
        link.send(items[at : at + size], metadata=number)
    link.shutdown()


def _work(
    device: Endpoint, incoming: Link, outgoing: Link, predicate: Callable[[Any], Any], counts: dict[str, int]
) -> None:
    for segment in incoming:
        is_kept = device.memory.as_array(predicate(segment.data))
        if is_kept.dtype != bool or is_kept.shape != segment.data.shape:
            raise ArgumentError(f"filter_array: predicate returned {is_kept.shape} of {is_kept.dtype} for "
                                f"{segment.data.shape} items; as many bool are allowed")  # fmt: skip
        outgoing.send(segment.data[is_kept], metadata=segment.metadata)
        counts[device.name] += 1
    outgoing.shutdown()
