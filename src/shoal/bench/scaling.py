# SPDX-License-Identifier: Apache-2.0
"""run_scaling: modelled strong and weak scaling of algorithms on the devices of a machine (GUM, figure 6).

Every algorithm runs once for each number of devices and communication, on logical devices of the CPU, which do and
send what devices of any kind would.  What they counted is priced by a topology and a cost model, with and without
stealing (`shoal.model.scaling`).  Weak scaling doubles the graph with the number of devices, so it has powers of two
only, and only of graphs that are generated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import shoal
from shoal.bench.graphs import check_graph, load_graph
from shoal.errors import ArgumentError, check_choice, check_integer, check_number
from shoal.graph import Graph
from shoal.model.cost import CostModel
from shoal.model.cost_files import find_cost
from shoal.model.counts import Counts
from shoal.model.features import frontier_features
from shoal.model.pricing import PARTS, Timeline, scaling
from shoal.model.replay import STEALING
from shoal.model.topology import Topology
from shoal.model.topology_files import find_topology

#: Communications with their fanouts, which only butterfly has a use for.
EXCHANGES = (("selective", 1), ("broadcast", 1), ("butterfly", 1), ("butterfly", 4), ("butterfly", 8))
NOTE = (
    "All times are modelled: counts of runs on logical devices of a CPU, priced by a topology and a cost model. "
    "Runs without supersteps depend on the order in which messages arrive, and are left out."
)
_GENERATED = re.compile(r"(kron|urand)(\d+)")
Say = Callable[[str], None]

#: What each algorithm runs, given a placed graph and the strategies.
ALGORITHMS: dict[str, Callable[..., Any]] = {
    "bfs": lambda placed, **options: shoal.bfs(placed, _hub(placed), **options),
    "sssp": lambda placed, **options: shoal.sssp(placed, _hub(placed), **options),
    "cc": lambda placed, **options: shoal.connected_components(placed, **options),
    "bc": lambda placed, **options: shoal.betweenness_centrality(placed, sources=[_hub(placed)], **options),
    "pagerank": lambda placed, **options: shoal.pagerank(placed, iterations=20, **options),
}


@dataclass(frozen=True)
class Point:
    """One modelled run."""

    kind: str  # strong or weak
    graph: str
    algorithm: str
    num_devices: int
    communication: str
    fanout: int
    stealing: str
    timeline: Timeline

    @property
    def series(self) -> str:
        """The strategies in words."""
        fanout = f" fanout {self.fanout}" if self.communication == "butterfly" else ""
        return f"{self.communication}{fanout}, stealing {self.stealing}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**{key: value for key, value in vars(self).items() if key != "timeline"}, **self.timeline.to_dict()}


@dataclass(frozen=True)
class ScalingReport:
    """The modelled runs, and what they were priced by."""

    points: tuple[Point, ...]
    topology: Topology
    cost: CostModel
    left_out: tuple[str, ...]  # what could not be run, with the reason
    count_factor: float = 1.0

    def baseline(self, point: Point) -> float | None:
        """Return the seconds of one device on the same graph, or, of weak scaling, on the graph for one device."""
        same = ("kind", "algorithm") + (("graph",) if point.kind == "strong" else ())
        found = (p for p in self.points if p.num_devices == 1 and all(getattr(p, k) == getattr(point, k) for k in same))
        first = next(found, None)
        return first.timeline.seconds if first else None

    def speedup(self, point: Point) -> float | None:
        """Return how many times as fast as one device; of weak scaling the efficiency, 1 at best."""
        baseline = self.baseline(point)
        return baseline / point.timeline.seconds if baseline else None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "timing": "modelled",
            "note": NOTE,
            "topology": self.topology.to_dict(),
            "cost": self.cost.to_dict(),
            "count_factor": self.count_factor,
            "left_out": list(self.left_out),
            "points": [point.to_dict() | {"speedup": self.speedup(point)} for point in self.points],
        }


def run_scaling(
    topology: Topology | str,
    num_devices: Sequence[int],
    *,
    graph: str | Graph = "kron16",
    algorithms: Sequence[str] = ("bfs", "sssp", "pagerank"),
    cost: CostModel | str = "h200-assumed",
    kinds: Sequence[str] = ("strong", "weak"),
    exchanges: Sequence[tuple[str, int]] = EXCHANGES,
    stealing: Sequence[str] = STEALING,
    partition: Any = "auto",
    count_factor: float = 1.0,
    say: Say = lambda message: None,
) -> ScalingReport:
    """Run algorithms on logical devices and price what they counted on a machine.

    Parameters
    ----------
    graph : a name of ``shoal.bench.graphs.GRAPHS``, a path, or a graph; of weak scaling the one for one device
    count_factor : counts are multiplied by this, for a graph like this one that would not fit here
    """
    links = find_topology(topology)
    counts = [check_integer("devices", number, 1, 64) for number in num_devices]
    links.resized(max(counts))  # refuses what there is not, before anything runs
    for name in algorithms:
        check_choice("algorithm", name, ALGORITHMS)
    for kind in kinds:
        check_choice("kind", kind, ("strong", "weak"))
    check_number("count_factor", count_factor, 0, open_low=True, open_high=True)
    plan = _Plan(links, find_cost(cost), tuple(exchanges), tuple(stealing), partition, count_factor, say)
    points = [
        point
        for kind in kinds
        for number, name, made in _graphs(kind, graph, counts, say)
        for point in plan.points(kind, name, made, number, algorithms)
    ]
    return ScalingReport(tuple(points), links, plan.cost, tuple(dict.fromkeys(plan.left_out)), count_factor)


def _graphs(kind: str, graph: str | Graph, counts: list[int], say: Say) -> Iterator[tuple[int, str, Graph]]:
    """Yield each number of devices with its graph."""
    if kind == "strong":
        made = graph if isinstance(graph, Graph) else load_graph(check_graph(graph)).graph
        yield from ((number, graph if isinstance(graph, str) else "graph", made) for number in counts)
        return
    found = _GENERATED.fullmatch(graph) if isinstance(graph, str) else None
    if found is None:
        say("weak scaling is left out: only graphs named kronN or urandN can be made for more devices")
        return
    make = shoal.generate.rmat if found[1] == "kron" else shoal.generate.uniform
    for number in counts:
        if number & (number - 1) == 0:
            scale = int(found[2]) + number.bit_length() - 1
            yield number, f"{found[1]}{scale}", make(scale, 16, weights=(1, 255))


class _Plan:
    """What every graph and number of devices is run and priced with."""

    def __init__(
        self, topology: Topology, cost: CostModel, exchanges: tuple[tuple[str, int], ...], stealing: tuple[str, ...],
        partition: Any, count_factor: float, say: Say,
    ) -> None:  # fmt: skip
        self.topology, self.cost, self.exchanges, self.stealing = topology, cost, exchanges, stealing
        self.partition, self.count_factor, self.say = partition, count_factor, say
        self.left_out: list[str] = []

    def points(
        self, kind: str, name: str, graph: Graph, num_devices: int, algorithms: Sequence[str]
    ) -> Iterator[Point]:
        """Yield the modelled runs of all strategies on a number of devices."""
        placed = shoal.place(graph, f"cpu:{num_devices}", partition=self.partition)
        features = part_features(placed)
        for algorithm in algorithms:
            self.say(f"{kind}: {algorithm} on {name}, {num_devices} devices")
            for communication, fanout in self.exchanges if num_devices > 1 else self.exchanges[:1]:
                counts = self._count(placed, algorithm, communication, fanout)
                if counts is None:
                    continue
                for stealing in self.stealing if num_devices > 1 else self.stealing[:1]:
                    priced = scaling(
                        counts,
                        self.topology,
                        self.cost,
                        communication=communication,
                        fanout=fanout,
                        stealing=stealing,
                        features=features,
                    )
                    yield Point(kind, name, algorithm, num_devices, communication, fanout, stealing, priced)

    def _count(self, placed: Any, algorithm: str, communication: str, fanout: int) -> Counts | None:
        """Run once, and return the counts; None where the strategies and the program do not go together."""
        if fanout > placed.num_devices:
            self.left_out.append(f"{communication} of fanout {fanout} on {placed.num_devices} devices: there are fewer")
            return None
        options = {"communication": communication, "fanout": fanout} if placed.num_devices > 1 else {}
        try:
            stats = ALGORITHMS[algorithm](placed, **options).stats
        except ArgumentError as error:
            self.left_out.append(f"{algorithm}, {communication}: {error}")
            return None
        return Counts.of(stats.to_dict()).scaled(self.count_factor)


def part_features(placed: Any) -> np.ndarray:
    """Return the features of each device's part of a placed graph, as if all of it were its frontier."""
    graph = placed.graph
    in_indptr = graph.reverse().indptr if graph.is_directed else None
    owner = np.zeros(graph.num_vertices, np.int64) if placed.owner is None else np.asarray(placed.owner)
    parts = (np.flatnonzero(owner == device) for device in range(placed.num_devices))
    return np.array([frontier_features(graph.indptr, part, in_indptr) for part in parts])


def _hub(placed: Any) -> int:
    return int(placed.graph.degree.argmax())


def write_scaling(
    report: ScalingReport, plot: str | os.PathLike[str] | None = None, image: str | os.PathLike[str] | None = None
) -> None:
    """Write the curves and breakdowns as an HTML page (needs plotly) and a PNG picture (needs matplotlib)."""
    from shoal.bench.scaling_plot import write_image, write_page

    if plot is not None:
        write_page(report, plot)
    if image is not None:
        write_image(report, image)


def table_rows(report: ScalingReport) -> list[list[str]]:
    """Return a row of text for each modelled run: what it was, milliseconds, speedup, and the parts in percent."""
    rows = []
    for point in report.points:
        values = point.timeline.to_dict()
        parts = [f"{100 * values[f'{part}_seconds'] / max(point.timeline.seconds, 1e-12):.0f}" for part in PARTS]
        speedup = report.speedup(point)
        rows.append([
            point.kind, point.algorithm, point.graph, str(point.num_devices), point.series,
            f"{1e3 * point.timeline.seconds:.3g}", "" if speedup is None else f"{speedup:.2f}", *parts,
        ])  # fmt: skip
    return rows


TABLE_HEADER = ("", "algorithm", "graph", "devices", "strategies", "modelled ms", "speedup", *(f"{p} %" for p in PARTS))
