# SPDX-License-Identifier: Apache-2.0
"""Strongly connected components by trimming, one large component at once, and colouring.

Trim: a vertex that no edge enters, of those that are left, is a component of its own; so is one that none leaves.
Then the component of a vertex with many edges, the largest of most graphs, is what it reaches, and of that what reaches
it.  What is left is coloured: every vertex sends a number along its edges and keeps the least that comes; those that
keep their own are roots, and a root's component is what reaches it among the vertices of its colour.  A component has
one colour, so the next round looks at edges within colours only.  Numbers are drawn at random: on a chain of small
components the colours of a round are few and each of the next is much shorter, as in a search tree built in random
order, while ids along the chain would take a round for each.  Searches against the edges run on the reversed graph,
placed as the graph is: they are the same programs, with frontiers of their own.
Papers: Orzan, 2004 (colouring); Slota, Rajamanickam, Madduri, IPDPS 2014 (Multistep).
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.algorithms.arguments import graph_of, kind_of, make_config, reversed_of
from shoal.algorithms.verify_strong_components import verify_strong_components
from shoal.backends import find_backend
from shoal.calls import public_call
from shoal.config import RunConfig, parse_devices
from shoal.graph import Graph
from shoal.operators import advance, everything, filter, gather
from shoal.placement import Placed
from shoal.program import Constant, Phase, Program, Vertex, add, minimum
from shoal.results import ComponentsResult
from shoal.rules import atomic, rule
from shoal.run import run_configured
from shoal.stats import Stats

DECIDED = -1  # the group of a vertex whose component is known: it is nobody else's


class Trim(Program):
    """Take away the vertices that no edge of their group enters, and again, until each has one."""

    waiting = Vertex("int32", combine=add)  # edges that enter from vertices that are there
    is_gone = Vertex("bool")
    group = Constant("vertex", is_array=True)

    def start(self, group: np.ndarray) -> None:
        self.group = group

    @rule
    def enters(src, dst, group):
        return src != dst and group[src] == group[dst]

    @rule
    def count(vertex, value, waiting):
        waiting[vertex] = value

    @rule
    def goes(vertex, waiting, is_gone, group):
        if is_gone[vertex] or waiting[vertex] != 0 or group[vertex] == DECIDED:
            return False
        is_gone[vertex] = True
        return True

    @rule
    def release(src, dst, waiting, is_gone, group):
        if is_gone[dst] or group[src] != group[dst]:
            return False
        atomic.add(waiting, dst, -1)
        return True

    def count_edges(self, frontier):
        gather(everything, self.enters, finish=self.count, dtype="int64")

    def peel(self, frontier):
        return advance(filter(frontier, self.goes), self.release)

    def phases(self) -> list[Phase]:
        return [Phase(self.count_edges, max_supersteps=1), Phase(self.peel, begin="all")]


class Spread(Program):
    """Send numbers along the edges within groups; every vertex keeps the least that comes."""

    colour = Vertex("vertex", combine=minimum)
    group = Constant("vertex", is_array=True)

    def start(self, colour: np.ndarray, group: np.ndarray, begin: np.ndarray) -> np.ndarray:
        self.colour[:] = colour
        self.group = group
        return begin

    @rule
    def send(src, dst, colour, group):
        if group[src] != group[dst] or colour[src] >= colour[dst]:
            return False
        return atomic.min(colour, dst, colour[src])

    def step(self, frontier):
        return advance(frontier, self.send)


_program = functools.cache(lambda kind: kind())


@public_call
def strongly_connected_components(
    graph: Graph | Placed, *, validate: bool = False, **strategies: Any
) -> ComponentsResult:
    """Find the strongly connected components: in each, every vertex reaches every other.

    Parameters
    ----------
    validate : check the result's properties (`ValidationError` if one does not hold)
    **strategies : fields of `shoal.RunConfig`, and ``report=`` (see `shoal.report.option`)

    Examples
    --------
    >>> import shoal
    >>> r = shoal.strongly_connected_components(shoal.Graph.from_edges([0, 1, 2, 2], [1, 2, 1, 3], directed=True))
    >>> r.label.tolist(), r.count
    ([0, 1, 1, 3], 3)
    """
    plain = graph_of(graph)
    config = make_config(strategies)
    search = _Search(graph, plain, config)
    search.trim()
    if search.is_undecided():
        search.take_component_of_hub()
        search.trim()
    while search.is_undecided():
        search.colour()
        search.trim()
    label = search.label
    count = int(np.count_nonzero(label == np.arange(len(label))))
    if validate:
        verify_strong_components(plain, label, count)
    return ComponentsResult(plain, search.stats, _on_device(graph, label, config), count)


class _Search:
    """What is known of the components, as arrays of the host, and the runs that tell more."""

    stats: Stats

    def __init__(self, graph: Graph | Placed, plain: Graph, config: RunConfig) -> None:
        self.graph, self.plain, self.reverse = graph, plain, reversed_of(graph)
        self.config = replace(config, output="host")
        count, dtype = plain.num_vertices, plain.vertex_dtype
        self.label = np.full(count, -1, dtype)
        self.group = np.zeros(count, dtype)
        self.nobody = count  # a number that nobody sends
        self.num_runs = 0

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """What each vertex sends: a permutation, always the same."""
        return np.random.default_rng(0).permutation(self.plain.num_vertices).astype(self.plain.vertex_dtype)

    def is_undecided(self) -> bool:
        """Whether some vertex's component is not known yet."""
        return bool((self.group != DECIDED).any())

    def trim(self) -> None:
        """Decide on vertices that are components of their own because no edge enters, or none leaves, what is left."""
        for graph in (self.graph, self.reverse):
            state = self._run(Trim, graph, {"group": self.group})
            alone = np.flatnonzero(state["is_gone"])
            self.label[alone] = alone
            self.group[alone] = DECIDED

    def take_component_of_hub(self) -> None:
        """Decide on the component of the vertex with the most pairs of edges in and out."""
        pairs = self.plain.degree.astype(np.float64) * graph_of(self.reverse).degree
        pairs[self.group == DECIDED] = -1.0
        begin = np.array([pairs.argmax()])
        colour = np.full(self.plain.num_vertices, self.nobody, self.plain.vertex_dtype)
        colour[begin] = 0
        reached = self._spread(self.graph, colour, self.group, begin) == 0
        group = np.where(reached & (self.group != DECIDED), self.group.dtype.type(1), self.group)
        members = np.flatnonzero(self._spread(self.reverse, colour, group, begin) == 0)
        self.group = group
        self._decide(members, np.zeros_like(members))

    def colour(self) -> None:
        """Colour what is left, and decide on the component of every colour's root."""
        begin = np.flatnonzero(self.group != DECIDED)
        numbers = self.numbers
        colour = self._spread(self.graph, numbers, self.group, begin)
        group = np.where(self.group != DECIDED, colour, self.group)
        roots = begin[colour[begin] == numbers[begin]]
        own = np.full(self.plain.num_vertices, self.nobody, self.plain.vertex_dtype)
        own[roots] = numbers[roots]
        reached = self._spread(self.reverse, own, group, roots)
        members = begin[reached[begin] != self.nobody]
        self.group = group
        self._decide(members, colour[members])

    def _decide(self, members: np.ndarray, component: np.ndarray) -> None:
        """Label the members, in ascending order, by the first of each component."""
        first = np.empty(self.plain.num_vertices, self.plain.vertex_dtype)
        first[component[::-1]] = members[::-1]  # of several the last is kept, which is the smallest
        self.label[members] = first[component]
        self.group[members] = DECIDED

    def _spread(self, graph: Graph | Placed, colour: np.ndarray, group: np.ndarray, begin: np.ndarray) -> np.ndarray:
        return self._run(Spread, graph, {"colour": colour, "group": group, "begin": begin})["colour"]

    def _run(self, kind: type[Program], graph: Graph | Placed, arguments: dict[str, Any]) -> dict[str, Any]:
        outcome = run_configured(_program(kind), graph, self.config, arguments)
        if self.num_runs == 0:
            self.stats = outcome.stats
            self.stats.algorithm = "StrongComponents"
        else:
            self.stats.including(outcome.stats)
        self.num_runs += 1
        return outcome.state


def _on_device(graph: Graph | Placed, label: np.ndarray, config: RunConfig) -> Any:
    """Return the labels where the result is to be."""
    if config.output == "host" or kind_of(graph, config) == "cpu":
        return label
    spec = parse_devices(graph.devices if isinstance(graph, Placed) else config.devices)
    device = find_backend(spec.kind).make_devices(spec)[0]
    device.check_output()
    return device.upload(label)
