# SPDX-License-Identifier: Apache-2.0
"""Checks of worklists with callbacks, on any devices: each runs a program on a graph, and knows what comes of it."""

from __future__ import annotations

import numpy as np

import oracles
import shoal
from shoal import Constant, Vertex, advance, atomic, filter, rule
from shoal.dataflow import KEEP, PASS, DistributedWorklist
from shoal.dataflow.examples import FAR, Distances
from test_worklists import Around, Loudest, Paths, to_all

NEARLY_FAR = 2**30
LIMIT = 3


class Tallied(DistributedWorklist):
    """Hops up to a limit.  An item says whose it is, in the graph's numbers, and every one that arrives is counted."""

    hops = Vertex("int64", fill=NEARLY_FAR)
    num_taken = Vertex("int64")
    limit = Constant("int64")

    def start(self, source):
        self.hops[source], self.limit = 0, LIMIT
        return [source]

    @rule
    def visit(src, dst, hops):
        return atomic.min(hops, dst, hops[src] + 1)

    @rule
    def is_within(vertex, hops, limit):
        return hops[vertex] < limit

    @rule
    def pack(vertex, num_vertices, hops):
        return hops[vertex] * num_vertices + vertex

    @rule
    def unpack(vertex, value, num_vertices, num_taken, hops, limit):
        num_taken[vertex] += 1  # no atomic: whoever takes in an item has its vertex alone
        found = value // num_vertices
        if value % num_vertices != vertex or found >= hops[vertex] or found > limit:
            return False
        hops[vertex] = found
        return True

    def step(self, frontier):
        return filter(advance(frontier, self.visit, callbacks=self.callbacks()), self.is_within)


class Asked(Around):
    """Counts how often a visit has found a vertex."""

    num_found = Vertex("int64")

    @rule
    def on_send(vertex, is_owned, num_found):
        atomic.add(num_found, vertex, 1)  # many visits may find it at once
        return KEEP if is_owned else PASS


def run(program, graph, **how):
    return shoal.run(program, graph, execution="async", **how)


def check_distances(graph, **how):
    found = run(Distances(), graph, source=0, **how).distance
    expected = oracles.sssp_distance(graph, 0)
    np.testing.assert_array_equal(found, np.where(np.isinf(expected), FAR, expected))


def check_loudest(sent, received):
    def check(graph, **how):
        count = graph.num_vertices
        numbers = np.random.default_rng(count).permutation(count)
        found = run(Loudest(sent, received), graph, numbers=numbers, **how).heard
        label = shoal.connected_components(graph, devices="cpu").label
        expected = np.full(count, -1)
        np.maximum.at(expected, label, numbers)
        np.testing.assert_array_equal(found, expected[label])

    return check


def check_removed(graph, **how):
    vertices = np.arange(graph.num_vertices)
    src = np.repeat(vertices, graph.degree)
    is_open = (src % 5 != 3) | (src == 0)
    ways = shoal.Graph.from_edges(src[is_open], graph.indices[is_open], num_vertices=len(vertices), directed=True)
    expected = oracles.bfs_distance(ways, 0).astype(np.int64)
    others = vertices % 5 != 3  # of those at which a way ends nobody need know
    found = run(Around(), graph, source=0, **how).hops
    np.testing.assert_array_equal(found[others], np.where(expected < 0, FAR, expected)[others])


def check_asked(graph, **how):
    found = run(Asked(), graph, source=0, **how)
    np.testing.assert_array_equal(found.num_found > 0, (found.hops < FAR) & (found.hops > 0))


def check_paths(graph, **how):
    """Count the ways along edges from lower vertices to higher."""
    src = np.repeat(np.arange(graph.num_vertices), graph.degree)
    is_way = src < graph.indices
    ways = shoal.Graph.from_edges(
        src[is_way], graph.indices[is_way], num_vertices=graph.num_vertices, directed=True
    )  # fmt: skip
    expected = np.zeros(graph.num_vertices, np.int64)
    expected[0] = 1
    for vertex in range(graph.num_vertices):
        np.add.at(expected, ways.indices[ways.indptr[vertex] : ways.indptr[vertex + 1]], expected[vertex])
    np.testing.assert_array_equal(run(Paths(), ways, source=0, **how).total, expected)


def check_tallied(graph, **how):
    found = run(Tallied(), graph, source=0, **how)
    expected = oracles.bfs_distance(graph, 0).astype(np.int64)
    is_near = (expected >= 0) & (expected <= LIMIT)
    np.testing.assert_array_equal(found.hops, np.where(is_near, expected, NEARLY_FAR))
    if how.get("communication") != "ring":  # where others than the owner take it in, too
        assert found.num_taken.sum() == found.stats.to_dict()["items_sent"]


CHECKS = {
    "every callback": check_distances,
    "sent to all": check_loudest(to_all, None),
    "received by all": check_loudest(None, to_all),
    "sent to and received by all": check_loudest(to_all, to_all),
    "removed": check_removed,
    "asked": check_asked,  # for one device
    "sums": check_paths,
    "tallied": check_tallied,
}
