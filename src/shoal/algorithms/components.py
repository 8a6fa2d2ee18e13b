# SPDX-License-Identifier: Apache-2.0
"""Connected components by sampling first (Afforest: Sutton, Ben-Nun, Barak, IPDPS 2018).

Labels are pointers into trees whose root is the smallest id of the tree; `_join` joins two trees and shortens the way
of the vertex at hand, `compress` makes every vertex point to its root.  Where ids follow the graph's shape, as on a
road network, a vertex's neighbours of lower ids point to their roots already when its turn comes, so one pass does
both.  Joining along each vertex's first two edges finds most of the largest component; it is guessed from a sample, and
then only the vertices outside it look at the rest of their edges: an edge between the two has an end outside.  In a
directed graph that end may not own the edge, so there nobody is left out.  Any label may be guessed: a bad guess costs
time, never correctness.  Devices send one another their pointers, and join along them as along edges.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from shoal.algorithms.arguments import graph_of, make_config
from shoal.algorithms.verify_components import verify_components
from shoal.calls import public_call
from shoal.config import RunConfig, parse_devices
from shoal.execution.choices import SINGLE, explain
from shoal.execution.edges import describe_edges
from shoal.graph import Graph
from shoal.operators import advance, compute, everything, filter, reduce, update
from shoal.placement import Placed
from shoal.program import Phase, Program, Scalar, Vertex, add, maximum
from shoal.results import ComponentsResult
from shoal.rules import atomic, rule
from shoal.run import run_configured
from shoal.stats import PhaseSpan, Stats

SAMPLED_EDGES = 2  # the paper's choice: a third round costs more than it saves
NUM_SAMPLES = 128  # one thread looks at them; if most vertices are in one component, most of so many are


@rule
def _join(one, other, label):
    own = label[one]
    left = own
    right = label[other]
    while left != right:
        high = max(left, right)
        low = min(left, right)
        above = label[high]
        if above == low or (above == high and atomic.compare_exchange(label, high, high, low)):
            left = low
            break
        left = label[above]
        if left != above:
            label[high] = left  # one step less for whoever comes this way next
        right = label[low]
    # Here left is above the vertex.  What is no root stays none, so its pointer may be moved up without an atomic.
    if left != own and own != one:
        label[one] = left


@rule
def _join_with_received(vertex, value, label):
    _join(vertex, value, label)
    return True


class Components(Program):
    """Label of the component of every vertex: its smallest id."""

    label = Vertex("vertex", combine=_join_with_received)
    largest = Scalar("int64", combine=maximum)
    count = Scalar("int64", combine=add)

    def __init__(self, can_skip: bool) -> None:
        self.can_skip = can_skip

    @rule
    def own_id(vertex, label):
        label[vertex] = vertex

    @rule
    def hook(src, dst, label):
        _join(src, dst, label)

    @rule
    def compress(vertex, label):
        root = label[vertex]
        above = label[root]
        while above != root:
            label[vertex] = above  # as soon as it is known: others come this way
            root = above
            above = label[root]
        return root == vertex

    @rule
    def vote(label, num_vertices):
        # Majority vote (Boyer and Moore) over evenly spread vertices.
        winner = label[0]
        lead = 0
        for vertex in range(0, num_vertices, max(num_vertices // NUM_SAMPLES, 1)):
            if label[vertex] == winner:
                lead += 1
            elif lead == 0:
                winner = label[vertex]
                lead = 1
            else:
                lead -= 1
        return winner

    @rule
    def is_outside(vertex, label, largest):
        return label[vertex] != largest

    def sample(self, frontier):
        compute(everything, self.own_id)
        advance(everything, self.hook, first_edges=SAMPLED_EDGES)
        compute(everything, self.compress)
        update(self.largest, self.vote)

    def complete(self, frontier):
        rest = filter(everything, self.is_outside) if self.can_skip else everything
        advance(rest, self.hook, skip_edges=SAMPLED_EDGES)
        reduce(everything, self.compress, into=self.count)

    def phases(self) -> list[Phase]:
        return [Phase(self.sample, max_supersteps=1), Phase(self.complete, max_supersteps=1)]


@public_call
def connected_components(graph: Graph | Placed, *, validate: bool = False, **strategies: Any) -> ComponentsResult:
    """Find the connected components; of a directed graph the weakly connected ones.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.connected_components(shoal.Graph.from_edges([0, 3], [1, 4]))
    >>> r.label.tolist(), r.count
    ([0, 0, 2, 3, 3], 3)
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    if config.execution == "async":
        result = _merged(graph, plain, config)
    else:
        outcome = run_configured(Components(can_skip=not plain.is_directed), graph, config, {})
        result = ComponentsResult(plain, outcome.stats, outcome.state["label"], int(outcome.state["count"][0]))
    if validate:
        verify_components(plain, result.label, result.count)
    return result


def _merged(graph: Graph | Placed, plain: Graph, config: RunConfig) -> ComponentsResult:
    """Find the components without supersteps: what a device is dealt does not depend on a partition."""
    from shoal.algorithms.merged_components import merge_components

    devices = graph.devices if isinstance(graph, Placed) else config.resolved()["devices"]
    config.check_devices(graph.devices if isinstance(graph, Placed) else config.devices)
    began = time.perf_counter()
    merged = merge_components(plain, devices, keeps_rows=config.stats == "full", stays=config.output == "device")
    seconds, count = time.perf_counter() - began, len(merged.traces)
    num_bytes = plain.num_vertices * plain.vertex_dtype.itemsize
    phases = [PhaseSpan("Components", "merge", 1)] if config.stats == "full" else []
    kind = parse_devices(devices).kind
    edges, why = describe_edges(plain, kind, [plain.indices])
    reasons = partial(explain, config, kind, SINGLE, "", why)
    taken = config.resolved() | {"edges": edges}
    stats = Stats(seconds, num_bytes * (count + 1), taken, merged.traces, "Components", count,
                  device_peaks=[num_bytes] * count, phases=phases, explain=reasons)  # fmt: skip
    return ComponentsResult(plain, stats, merged.label, merged.count)
