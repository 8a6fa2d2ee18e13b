# SPDX-License-Identifier: Apache-2.0
"""Connected components without supersteps: devices join what they are dealt, and merge their trees two by two.

One router deals rows of edges to whichever device has room.  Each hooks them into trees of its own; by the other
router, a reduction tree, it hands these to another device, which hooks them into its own, and the last to the host.
Which device had which rows, and in which order, makes no difference to what is joined in the end.
Groute (Ben-Nun et al., TOPC 2020), section 4.7, with trees in place of its atomic hooking: a device is one thread.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np

from shoal.dataflow import Context, Endpoint, Link, Router, first_available, reduction_tree
from shoal.graph import Graph
from shoal.stats import Trace, async_row

# Edges that are dealt at a time: some hundred microseconds of work, far more than dealing them costs.
DEALT_EDGES = 1 << 16
PACKET_SIZE = 1 << 16  # labels that are handed on at a time


@dataclass
class Merged:
    """Labels, the number of components, and what each device did."""

    label: np.ndarray
    count: int
    traces: list[Trace]


def merge_components(graph: Graph, devices: str, *, keeps_rows: bool) -> Merged:
    """Label the vertices of each component with its smallest."""
    with Context(devices) as context:
        workers = context.devices
        deal = Router(context, 1, len(workers), first_available, "deal")
        merge = Router(context, len(workers), len(workers) // 2 + 1, reduction_tree(workers, context.host), "merge")
        dealt = Link(context.host, deal, packet_size=2)
        devices_at = [
            _Device(place, len(workers), endpoint, graph, deal, merge) for place, endpoint in enumerate(workers)
        ]
        to_host = Link(merge, context.host, PACKET_SIZE)
        for device in devices_at:
            context.start(device.endpoint, device.work)
        context.start(context.host, _deal_rows, dealt, graph)
        label = np.empty(graph.num_vertices, graph.vertex_dtype)
        for segment in to_host:
            at = segment.number * PACKET_SIZE
            label[at : at + len(segment)] = segment.data
    return Merged(
        label, int(np.count_nonzero(label == np.arange(len(label)))), [d.trace(keeps_rows) for d in devices_at]
    )


def _deal_rows(link: Link, graph: Graph) -> None:
    """Send the bounds of rows with about as many edges each."""
    count = graph.num_edges // DEALT_EDGES + 1
    wanted = np.arange(1, count) * (graph.num_edges / count)
    bounds = np.unique([0, *np.searchsorted(graph.indptr, wanted), graph.num_vertices])
    for begin, end in itertools.pairwise(bounds):
        link.send(np.array([begin, end]))
    link.shutdown()


class _Device:
    """One device: its trees, and its places at both routers."""

    def __init__(self, place: int, count: int, endpoint: Endpoint, graph: Graph, deal: Router, merge: Router) -> None:
        self.endpoint, self.graph = endpoint, graph
        self.num_children = len([child for child in (2 * place + 1, 2 * place + 2) if child < count])
        self.dealt = Link(deal, endpoint, packet_size=2)
        self.received = Link(merge, endpoint, PACKET_SIZE) if self.num_children else None
        self.handed = Link(endpoint, merge, PACKET_SIZE)
        self.num_edges = self.num_items = 0
        self.began = self.ended = 0

    def work(self) -> None:
        """Hook what is dealt, then what other devices hand over, and hand on the result."""
        from shoal.backends.cpu.kernels.components import compress, hook_labels, hook_rows

        self.began = time.monotonic_ns()
        graph = self.graph
        label = np.arange(graph.num_vertices, dtype=graph.vertex_dtype)
        for segment in self.dealt:
            begin, end = map(int, segment.data)
            hook_rows(graph.indptr, graph.indices, begin, end, not graph.is_directed, label)
            self.num_edges += int(graph.indptr[end] - graph.indptr[begin])
        packets = max(-(-graph.num_vertices // PACKET_SIZE), 1)
        for _ in range(self.num_children * packets):
            assert self.received is not None
            pending = self.received.receive().result()
            assert pending is not None, "the others shut down after this device has handed on"
            segment = pending.wait()
            hook_labels(segment.number * PACKET_SIZE, segment.data, label)
            self.num_items += len(segment)
            pending.release()
        compress(label)
        self.handed.send(label).result()
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
