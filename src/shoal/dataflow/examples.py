# SPDX-License-Identifier: Apache-2.0
"""Small programs of `shoal.dataflow`: a filter on devices of different speed, and a worklist with all its callbacks.

``python -m shoal.dataflow.examples`` runs the filter.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from shoal.dataflow.filtering import Filtered, filter_array
from shoal.dataflow.worklist import KEEP, PASS, REMOVE, DistributedWorklist
from shoal.program import Vertex
from shoal.rules import atomic, rule

FAR = 2**62


def filter_on_uneven_devices(num_segments: int = 200, segment_seconds: float = 0.002, slower: float = 4.0) -> Filtered:
    """Filter by two devices, one of which is so many times slower: the other gets about as many times the segments."""

    def is_even(items: np.ndarray) -> np.ndarray:
        is_slow = threading.current_thread().name.endswith(":1")
        time.sleep(segment_seconds * (slower if is_slow else 1.0))
        return items % 2 == 0

    return filter_array(np.arange(num_segments * 100), is_even, devices="cpu:2", segment_size=100)


class Distances(DistributedWorklist):
    """Shortest paths with every callback written out, as in Groute's listing: an item is a vertex and a distance."""

    distance = Vertex("int64", fill=FAR)

    def start(self, source: int) -> list[int]:
        self.distance[source] = 0
        return [source]

    @rule
    def visit(src, dst, weight, distance):
        return atomic.min(distance, dst, distance[src] + weight)

    @rule
    def pack(vertex, distance):
        return distance[vertex]

    @rule
    def unpack(vertex, value, distance):
        if value >= distance[vertex]:
            return False
        distance[vertex] = value
        return True

    @rule
    def on_send(is_owned):
        return KEEP if is_owned else PASS

    @rule
    def on_receive(vertex, value, is_owned, distance):
        if value >= distance[vertex]:
            return REMOVE  # something as good has been here
        return KEEP if is_owned else PASS

    @rule
    def priority(vertex, distance):
        return distance[vertex] // 64


def main() -> None:
    """Filter, and say who did how much."""
    began = time.perf_counter()
    filtered = filter_on_uneven_devices()
    print(f"segments {filtered.segments}, {len(filtered.values)} items kept, {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
