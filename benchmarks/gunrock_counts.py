# SPDX-License-Identifier: Apache-2.0
"""What Gunrock's programs would count on several GPUs, from runs of shoal on a graph that stands in for the paper's.

Table I of the multi-GPU paper says what each primitive does and sends.  A search that pushes is the same in both.  The
others differ from shoal's own programs, so their counts are made of its supersteps:

    sssp      relaxes without buckets, and sends an id and a distance
    dobfs     broadcasts ids of what was found after every superstep, where shoal sends bits
    bc        goes forward as the search, with five values an item, and back level by level, two values broadcast
    pagerank  20 iterations; which vertices are sent is known, so only values are
    cc        2 to 5 rounds (here 3), in which a device looks along its edges, moves the pointers of all vertices, of
              which it has copies, and broadcasts two words for each

What is broadcast is packed once, and combined by all others.  Items are counted by the bytes of memory that their
kernels touch, so that one number prices them all: a look at a vertex's entry anywhere moves a sector of `SECTOR`
bytes, and another if it is written.  Splitting a frontier by owners asks for the owner and the vertex's number there,
marks it, and counts the marks up; a broadcast spares that, and lists that are known beforehand do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import shoal
from shoal.model import Counts

WORD = 4
#: A Kepler GPU's second-level cache reads and writes so many bytes at once.
SECTOR = 32
#: How many there were is not published.  By what an edge takes in an iteration on four K40s (tables IV and V of the
#: paper: 0.32 ns of web graphs, 0.96 ns of twitter-mpi) one K40 had time for 16 to 34 of them, 20 in the middle.
PAGERANK_ITERATIONS = 20
CC_ROUNDS = 3


@dataclass(frozen=True)
class Item:
    """What travels for a vertex, and the bytes of memory touched to pack and to combine it."""

    num_bytes: int
    packing: int
    combining: int


#: Owner, number there, a mark and its sum, each written and read, and the id read and written.
_SPLIT = 2 * SECTOR + 4 * WORD + 2 * WORD
_IMPROVE = 2 * SECTOR + 2 * WORD  # the id, the vertex's entry read and written, and its place in the next frontier
_VALUE_OUT, _VALUE_IN = SECTOR + WORD, 2 * SECTOR + WORD  # gathered and written; read and scattered
LABEL = Item(WORD, _SPLIT, _IMPROVE)
DISTANCE = Item(2 * WORD, _SPLIT + _VALUE_OUT, _IMPROVE + WORD)
PATHS = Item(5 * WORD, _SPLIT + 4 * _VALUE_OUT, _IMPROVE + 4 * _VALUE_IN)
DEPENDENCY = Item(2 * WORD, 2 * WORD + _VALUE_OUT, _IMPROVE + WORD)
RANK = Item(WORD, WORD + _VALUE_OUT, WORD + _VALUE_IN)
FOUND = Item(WORD, 2 * WORD, _IMPROVE)
JUMP = SECTOR + 2 * WORD  # a vertex's pointer, read and written, and that of the vertex it leads to
COMPONENT = Item(2 * WORD, 2 * WORD, 4 * WORD)  # all vertices in their order: nothing is scattered


def search(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of a search that pushes and sends ids."""
    return _sent(shoal.bfs(placed, source, direction="push", **_selective(num_devices)), LABEL)


def shortest_paths(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of relaxing whatever improved, without an order."""
    return _sent(shoal.sssp(placed, source, delta=np.inf, parents=False, **_selective(num_devices)), DISTANCE)


def directed_search(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of a search that pulls where that is less, and broadcasts ids of what was found."""
    stats = shoal.bfs(placed, source, direction="auto").stats.to_dict()
    return _broadcast(_column(stats, "edges_visited"), _found(stats), FOUND)


def betweenness(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of both sweeps from one source."""
    result = shoal.bfs(placed, source, direction="push", **_selective(num_devices))
    stats = result.stats.to_dict()
    levels, edges = _column(stats, "frontier_size")[::-1], _column(stats, "edges_visited")[::-1]
    return _joined(_sent(result, PATHS), _broadcast(edges, levels, DEPENDENCY))


def pagerank(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of iterations that are all alike."""
    one = _sent(shoal.pagerank(placed, iterations=2, **_selective(num_devices)), RANK)
    return Counts(*(np.repeat(values[-1:], PAGERANK_ITERATIONS, axis=0) for values in vars(one).values()))


def components(placed: Any, source: int, num_devices: int) -> Counts:
    """Return the counts of rounds over all edges, after which every device sends all its values to all others."""
    graph = placed.graph
    owner = np.zeros(graph.num_vertices, np.int64) if placed.owner is None else np.asarray(placed.owner)
    edges = np.bincount(owner, graph.degree, num_devices).astype(np.int64)
    values = np.full(num_devices, graph.num_vertices)
    rounds = (CC_ROUNDS, 1)
    sent = _broadcast(np.tile(edges, rounds), np.tile(values, rounds), COMPONENT)
    return replace(sent, items_combined=sent.items_combined + np.tile(values, rounds) * JUMP)


PRIMITIVES: dict[str, Callable[[Any, int, int], Counts]] = {
    "bfs": search,
    "sssp": shortest_paths,
    "cc": components,
    "bc": betweenness,
    "pagerank": pagerank,
    "dobfs": directed_search,
}


def place(graph: shoal.Graph, num_devices: int) -> Any:
    """Return the graph on devices, each vertex on one that is drawn, as in the paper."""
    return shoal.place(graph, f"cpu:{num_devices}x1", partition="random")


def _selective(num_devices: int) -> dict[str, str]:
    return {"communication": "selective"} if num_devices > 1 else {}


def _sent(result: Any, item: Item) -> Counts:
    """Return the counts of a run whose items go to their vertex's owner."""
    counted = Counts.of(result.stats.to_dict())
    touched = counted.items_sent * item.packing + counted.items_combined * item.combining
    sent = counted.items_sent * item.num_bytes
    return Counts(counted.edges_visited, np.zeros_like(sent), touched, sent)


def _broadcast(edges: np.ndarray, items: np.ndarray, item: Item) -> Counts:
    """Return the counts where each device's items go to all others."""
    others = edges.shape[1] - 1
    combined = items.sum(axis=1, keepdims=True) - items
    touched = items * item.packing * min(others, 1) + combined * item.combining
    return Counts(edges, np.zeros_like(items), touched, items * others * item.num_bytes)


def _column(stats: dict[str, Any], name: str) -> np.ndarray:
    return np.array([row[name] for row in stats["supersteps"]], np.int64)


def _found(stats: dict[str, Any]) -> np.ndarray:
    """Return what every device found in each superstep: the next one's frontier."""
    sizes = _column(stats, "frontier_size")
    return np.vstack([sizes[1:], np.zeros_like(sizes[:1])])


def _joined(*parts: Counts) -> Counts:
    return Counts(*map(np.vstack, zip(*(vars(part).values() for part in parts), strict=True)))
