# SPDX-License-Identifier: Apache-2.0
"""Trees of vertices on a GPU device, which all its threads join (``kernels/components.cuh``).

Devices that share a GPU have labels of their own and one copy of the edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.backends.cuda.building import kernel_text
from shoal.backends.cuda.modules import load_kernel
from shoal.errors import Allocating
from shoal.machine import import_cupy

if TYPE_CHECKING:
    from shoal.backends.cuda.device import CUDADevice
    from shoal.graph import Graph

HEADER = "components.cuh"
KERNELS = ("begin_labels", "hook_rows", "hook_labels", "compress")


class CUDATrees:
    """The trees of one device: see `shoal.backends.base.Trees`.

    It is made by any thread; the rest is for the device's own, on its stream.
    """

    # Dealing and launching a portion takes the host some ten microseconds.  At ten billion edges a second so many keep
    # a GPU busy for forty times that, and a graph of a few hundred million edges still has a hundred portions.
    portion_edges = 1 << 22
    packet_labels = 1 << 20  # four megabytes: even to the host a copy takes longer than it takes to begin one

    def __init__(self, device: CUDADevice, graph: Graph) -> None:
        self.graph, self.cupy = graph, import_cupy()
        self._launched: Any = None
        with device.use(), Allocating("connected_components: the labels and edges on", device.name):
            self._indptr, self._indices, _ = device.place_whole(graph).edges(incoming=False)
            self.label = self.cupy.empty(graph.num_vertices, graph.vertex_dtype)
            self._text = kernel_text(HEADER, graph.vertex_dtype, graph.edge_dtype)
            for name in KERNELS:  # compiled now, and not by each device's thread
                load_kernel(self._text, name)
            self.cupy.cuda.get_current_stream().synchronize()  # the device's own stream does not wait for this one

    def begin(self) -> None:
        """Let every vertex be a tree."""
        load_kernel(self._text, "begin_labels").over(len(self.label), self.label)

    def hook_rows(self, begin: int, end: int) -> None:
        """Join both ends of the edges of some rows; returns when those of the call before are joined.

        Without that wait a device would be dealt rows as fast as they can be launched, however far behind it is.
        """
        first, last = (int(self.graph.indptr[row]) for row in (begin, end))
        numbers = (np.uint64(number) for number in (first, begin, end))
        skips_upper = np.bool_(not self.graph.is_directed)
        load_kernel(self._text, "hook_rows").over(
            last - first, *numbers, self._indptr, self._indices, skips_upper, self.label
        )
        before, self._launched = self._launched, self.cupy.cuda.get_current_stream().record()
        if before is not None:
            before.synchronize()

    def hook_labels(self, begin: int, labels: Any) -> None:
        """Join the vertices from ``begin`` on with their labels on another device."""
        load_kernel(self._text, "hook_labels").over(len(labels), np.uint64(begin), labels, self.label)

    def compress(self) -> None:
        """Label every vertex with its root."""
        load_kernel(self._text, "compress").over(len(self.label), self.label)
