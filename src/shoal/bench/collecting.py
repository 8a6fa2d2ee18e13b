# SPDX-License-Identifier: Apache-2.0
"""Timed supersteps with the features of their frontiers, to fit a cost model to.

A search that pushes from one source has in superstep k the vertices of distance k for its frontier, so what is needed
of it is in its result and in its statistics, on whatever devices it ran.  PageRank's frontier is the whole graph.  The
time of a superstep is the least of several runs, less that of the shortest one, which is its start and its barrier.
Only supersteps that take several times as long count: of the others that start is all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from shoal.config import parse_devices
from shoal.errors import ArgumentError, check_integer
from shoal.graph import Graph
from shoal.io.formats import FORMATS, split_suffix
from shoal.model.features import frontier_features
from shoal.stats import MAX_ROWS
from shoal.strategies.stealing.frontier import LEAST_LOAD

#: So many times the shortest superstep, the start of one is a tenth of it, and noise of that no longer shows.
_LEAST_TIMES = 10
#: Supersteps of a grid are all alike: more of them would outweigh other graphs.
_MOST_SUPERSTEPS = 16
_NUM_SOURCES = 3
_PAGERANK_ITERATIONS = 6
_EDGES = 3  # place in a row
#: Nobody steals from a frontier of fewer edges, so that is what a cost model is for.
LEAST_EDGES = LEAST_LOAD
#: Fields of smaller graphs fit a core's own cache, where an edge costs a fifth to a third; six features cannot tell.
LEAST_VERTICES = 2**19
_SCALES, _EDGE_FACTORS = (19, 20), (4, 8, 12, 16, 24, 32)


@dataclass(frozen=True)
class Samples:
    """Supersteps: of which graph and algorithm, the features of the frontier, edges, and seconds for each."""

    graphs: np.ndarray
    algorithms: np.ndarray
    features: np.ndarray
    edges: np.ndarray
    seconds_per_edge: np.ndarray

    def __len__(self) -> int:
        return len(self.graphs)

    def select(self, kept: np.ndarray) -> Samples:
        """Return some of them."""
        return Samples(*(values[kept] for values in vars(self).values()))


def generated_graphs(
    scales: Sequence[int] = _SCALES, edge_factors: Sequence[int] = _EDGE_FACTORS
) -> dict[str, Callable[[], Graph]]:
    """Return what draws each generated graph, by name: R-MAT graphs, uniform ones and grids of several sizes."""
    made: dict[str, Callable[[], Graph]] = {}
    for scale in scales:
        for factor in edge_factors:
            seed = scale + factor
            made[f"rmat{scale}x{factor}"] = partial(shoal.generate.rmat, scale, factor, seed=seed)
            made[f"uniform{scale}x{factor}"] = partial(shoal.generate.uniform, scale, factor, seed=seed)
        side = round(2 ** (scale / 2))
        made[f"grid{side}"] = partial(shoal.generate.grid, side, side)
    return made


def real_graphs(folder: str | os.PathLike[str]) -> dict[str, Callable[[], Graph]]:
    """Return what reads each graph file of a folder, by name."""
    path = Path(folder)
    if not path.is_dir():
        raise ArgumentError(f"data={os.fspath(folder)!r} is not a folder; it must be one with graph files")
    files = [file for file in sorted(path.iterdir()) if _is_graph_file(file.name)]
    return {file.name.removesuffix(".gz"): partial(_simple, file) for file in files}


def _is_graph_file(name: str) -> bool:
    return any(split_suffix(name)[0] in format.suffixes for format in FORMATS.values())


def _simple(path: Path) -> Graph:
    return shoal.read(path).deduplicated().without_self_loops()


def collect(
    graphs: dict[str, Callable[[], Graph]],
    devices: str,
    repetitions: int = 5,
    *,
    least_edges: int = LEAST_EDGES,
    least_vertices: int = LEAST_VERTICES,
    say: Callable[[str], None] = lambda message: None,
) -> Samples:
    """Run searches and PageRank on graphs, one after the other, on one device, and return the supersteps that count.

    Parameters
    ----------
    graphs : what makes each graph, by name
    repetitions : runs of each, of which the least time of every superstep counts
    least_edges, least_vertices : of a superstep that counts, and of its graph
    """
    check_integer("repetitions", repetitions, 1)
    if parse_devices(devices).num_devices != 1:
        raise ArgumentError(f"devices={devices!r} are several; costs are collected on one device, such as cpu:1x1")
    rows: list[tuple[Any, ...]] = []
    for name, make in graphs.items():
        graph = make()
        found = list(_rows_of(name, graph, devices, repetitions)) if graph.num_vertices >= least_vertices else []
        found = [row for row in found if row[_EDGES] >= least_edges]
        say(f"{name}: {len(found)} supersteps that are long enough")
        rows += found
    if not rows:
        raise ArgumentError("graphs have no superstep that is long enough; larger ones are needed")
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Samples(*columns)


def _rows_of(name: str, graph: Graph, devices: str, repetitions: int) -> Iterator[tuple[Any, ...]]:
    placed = shoal.place(graph, devices)
    in_indptr = graph.reverse().indptr if graph.is_directed else None
    for source in _sources(graph):
        yield from _search(name, graph, placed, in_indptr, source, repetitions)
    yield from _pagerank(name, graph, placed, in_indptr, repetitions)


def _sources(graph: Graph) -> list[int]:
    """Return the vertex of most edges, and some that are drawn of those that have any."""
    able = np.flatnonzero(graph.degree)
    drawn = np.random.default_rng(0).choice(able, min(_NUM_SOURCES - 1, len(able)), replace=False)
    return list(dict.fromkeys([int(graph.degree.argmax()), *map(int, drawn)]))


def _search(
    name: str, graph: Graph, placed: Any, in_indptr: Any, source: int, repetitions: int
) -> Iterator[tuple[Any, ...]]:
    runs = [shoal.bfs(placed, source, direction="push") for _ in range(repetitions)]
    edges, seconds = _supersteps([run.stats.to_dict() for run in runs])
    order = np.argsort(runs[0].distance, kind="stable")
    starts = np.searchsorted(runs[0].distance[order], np.arange(len(edges) + 1))
    for k in _spread(1 + _long(seconds[1:])):  # the first one fills the fields
        queue = order[starts[k] : starts[k + 1]]
        if edges[k] == graph.degree[queue].sum():
            features = frontier_features(graph.indptr, queue, in_indptr)
            yield name, "bfs", features, edges[k], (seconds[k] - seconds[1:].min()) / edges[k]


def _pagerank(name: str, graph: Graph, placed: Any, in_indptr: Any, repetitions: int) -> Iterator[tuple[Any, ...]]:
    runs = [shoal.pagerank(placed, iterations=_PAGERANK_ITERATIONS).stats.to_dict() for _ in range(repetitions)]
    edges, seconds = _supersteps(runs)
    if edges.max() == graph.num_edges:
        features = frontier_features(graph.indptr, np.arange(graph.num_vertices), in_indptr)
        yield name, "pagerank", features, graph.num_edges, seconds[edges == graph.num_edges].min() / graph.num_edges


def _supersteps(runs: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of every superstep, and the least seconds that a run has taken for it."""
    if runs[0]["supersteps_dropped"]:
        raise ArgumentError(f"a run has more than {MAX_ROWS:,} supersteps; graphs must be of smaller diameter")
    edges = np.array([row["edges_visited"][0] for row in runs[0]["supersteps"]])
    seconds = np.array([[row["seconds"][0] for row in run["supersteps"]] for run in runs])
    return edges, seconds.min(axis=0)


def _long(seconds: np.ndarray) -> np.ndarray:
    return np.flatnonzero(seconds >= _LEAST_TIMES * seconds.min())


def _spread(supersteps: np.ndarray) -> np.ndarray:
    """Return some of many, at equal distances."""
    count = min(len(supersteps), _MOST_SUPERSTEPS)
    return supersteps[np.linspace(0, len(supersteps) - 1, count).astype(int)] if count else supersteps
