# SPDX-License-Identifier: Apache-2.0
"""Connected components without supersteps: devices join what they are dealt, and merge their trees two by two.

One router deals rows of edges to whichever device has room.  Each hooks them into trees of its own; by the other
router, a reduction tree, it hands these to another device, which hooks them into its own, and the last to the host.
Which device had which rows, and in which order, makes no difference to what is joined in the end.
Groute (Ben-Nun et al., TOPC 2020), section 4.7; how trees are joined is the device's business (`Trees`).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.backends import find_backend
from shoal.backends.base import Trees
from shoal.config import parse_devices
from shoal.dataflow import Context, Endpoint, Link, Router, first_available, reduction_tree
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.stats import Trace, async_row

#: Kinds of devices that cannot, and why.
_NOT_ON = {"mpi": "components without supersteps go from device to device by links, which one process has"}


@dataclass
class Merged:
    """Labels, the number of components, and what each device did."""

    label: Any
    count: int
    traces: list[Trace]


def merge_components(graph: Graph, devices: str, *, keeps_rows: bool, stays: bool = False) -> Merged:
    """Label the vertices of each component with its smallest; the labels may stay on the first device."""
    spec = parse_devices(devices)
    if spec.kind in _NOT_ON:
        raise ArgumentError(
            f"execution='async' is not possible on {spec.kind}: {_NOT_ON[spec.kind]}; allowed: auto, bsp"
        )  # fmt: skip
    made = find_backend(spec.kind).make_devices(spec)
    if stays:
        made[0].check_output()
    with Context(devices) as context:
        workers = context.devices
        deal = Router(context, 1, len(workers), first_available, "deal")
        merge = Router(context, len(workers), len(workers) // 2 + 1, reduction_tree(workers, context.host), "merge")
        dealt = Link(context.host, deal, packet_size=1)
        devices_at = [
            _Device(place, len(workers), endpoint, graph, device.make_trees(graph), deal, merge)
            for place, (endpoint, device) in enumerate(zip(workers, made, strict=True))
        ]
        trees, packet_size = devices_at[0].trees, devices_at[0].packet_size
        to_host = Link(merge, context.host, packet_size)
        for device in devices_at:
            context.start(device.endpoint, device.work)
        context.start(context.host, _deal_rows, dealt, graph, trees.portion_edges)
        label = np.empty(graph.num_vertices, graph.vertex_dtype)
        for segment in to_host:
            at = segment.number * packet_size
            label[at : at + len(segment)] = segment.data
    count = int(np.count_nonzero(label == np.arange(len(label))))
    return Merged(trees.label if stays else label, count, [device.trace(keeps_rows) for device in devices_at])


def packet_labels(trees: Trees | type[Trees], num_vertices: int) -> int:
    """Return the labels of a packet: no more than there are."""
    return max(min(trees.packet_labels, num_vertices), 1)


def _deal_rows(link: Link, graph: Graph, portion_edges: int) -> None:
    """Send the bounds of rows with about as many edges each; there is nothing else to send."""
    count = graph.num_edges // portion_edges + 1
    wanted = np.arange(1, count) * (graph.num_edges / count)
    bounds = np.unique([0, *np.searchsorted(graph.indptr, wanted), graph.num_vertices])
    for begin, end in itertools.pairwise(bounds.tolist()):
        link.send([], metadata=(begin, end))
    link.shutdown()


class _Device:
    """One device: its trees, and its places at both routers."""

    def __init__(
        self, place: int, count: int, endpoint: Endpoint, graph: Graph, trees: Trees, deal: Router, merge: Router
    ) -> None:
        self.endpoint, self.graph, self.trees = endpoint, graph, trees
        self.packet_size = packet_labels(trees, graph.num_vertices)
        self.num_children = len([child for child in (2 * place + 1, 2 * place + 2) if child < count])
        self.dealt = Link(deal, endpoint, packet_size=1)
        self.received = Link(merge, endpoint, self.packet_size) if self.num_children else None
        self.handed = Link(endpoint, merge, self.packet_size)
        self.num_edges = self.num_items = 0
        self.began = self.ended = 0

    def work(self) -> None:
        """Hook what is dealt, then what other devices hand over, and hand on the result."""
        self.began = time.monotonic_ns()
        graph, trees = self.graph, self.trees
        trees.begin()
        for segment in self.dealt:
            begin, end = segment.metadata
            trees.hook_rows(begin, end)
            self.num_edges += int(graph.indptr[end] - graph.indptr[begin])
        packets = max(-(-graph.num_vertices // self.packet_size), 1)
        for _ in range(self.num_children * packets):
            assert self.received is not None
            pending = self.received.receive().result()
            assert pending is not None, "the others shut down after this device has handed on"
            segment = pending.wait()
            trees.hook_labels(segment.number * self.packet_size, segment.data)
            self.num_items += len(segment)
            pending.release()
        trees.compress()
        self.handed.send(trees.label).result()
        self.handed.shutdown()
        self.ended = time.monotonic_ns()

    def trace(self, keeps_rows: bool) -> Trace:
        """Return what the device did, in counts: what it was dealt, handed on, and was handed."""
        found, sent = Trace(keeps_rows), self.graph.num_vertices
        found.add(async_row(
            self.began, self.ended, work_items=self.graph.num_vertices, edges_visited=self.num_edges, messages=1,
            items_sent=sent, bytes_sent=sent * self.graph.vertex_dtype.itemsize, items_combined=self.num_items,
        ))  # fmt: skip
        return found
