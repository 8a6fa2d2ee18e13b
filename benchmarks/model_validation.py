# SPDX-License-Identifier: Apache-2.0
"""Modelled scaling beside published numbers that nothing here was fitted to: a plausibility check, not a proof.

    python benchmarks/model_validation.py --json validation.json

Gunrock's multi-GPU paper: geometric mean speedups of six K40s over one, on a PCIe root hub, whose barrier is known for
up to four and goes on along a line.  An edge costs what it took one K40 on that graph and primitive.  What two K40s
took in breadth-first search beyond half of that says what an item costs, and what sharing the work.  Six K40s, and
every other primitive, are foretold.
ButterFly BFS, which always pushes: what 16 V100s behind NVSwitch gain over 8 with fanout 4; an edge costs what Gunrock
takes for one on a V100, and so does an item, since it is looked up as an edge's end is.

Counts are those of runs on logical devices of this machine, of R-MAT graphs with as many edges a vertex and of real
graphs of the same kind.  Edges are multiplied to those of the published graph, items to its vertices, and supersteps
that its diameter adds only meet.
"""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gunrock_counts
import published_k40 as published
import shoal
from devices import DATA
from figures import Figure, Row, parser, print_rows, print_table, to_dict
from gunrock_counts import PRIMITIVES, WORD, place
from model_tables import VALIDATION
from rmat_laws import linked_part
from shoal.bench.report import write_whole
from shoal.model import CostModel, Counts, find_cost, find_topology, scaling

#: Gunrock's multi-GPU paper, section VII-B: speedups of six K40s; DOBFS is called flat.
PUBLISHED = {"bfs": 2.63, "sssp": 2.57, "cc": 2.00, "bc": 1.96, "pagerank": 3.86, "dobfs": 1.0}
PUBLISHED_BUTTERFLY = 1.77
ALLOWED, ALLOWED_BUTTERFLY = 0.30, 0.15
NUM_DEVICES = 6
#: GAP-kron (ButterFly BFS, table 1), and what a V100 takes for an edge: 15.69 ms for 212.7e6 edges of soc-orkut that a
#: search pushes along (Gunrock 0.5 on a V100-DGXS; gunrock/gunrock on GitHub, issue 711).
KRON_SCALE, KRON_VERTICES, KRON_EDGES = 27, 134.2e6, 4.2232e9
V100_NANOSECONDS = 15.69e6 / 212.7e6
#: Published: 324.87e9 edges a second on 16 devices, as a mean over roots of which the quickest and the slowest quarter
#: are left out.  A vertex of GAP-kron has edges with the probability of 0.47, so 22 of the 50 that are left do.
PUBLISHED_KRON = {16: KRON_EDGES / 324.87e9 * 50 / 22}
PUBLISHED_KRON[8] = PUBLISHED_BUTTERFLY * PUBLISHED_KRON[16]
SOCIAL, WEB = "soc-Epinions1.txt.gz", "uk-2007-05-100000.tsv.gz"
#: So many edges a vertex of a social graph, and a dense R-MAT graph is more like it than Epinions with 11.
DENSE = 40


def main() -> None:
    """Model, compare, publish."""
    options = parser(__doc__)
    options.add_argument(
        "--smaller", type=int, default=6, help="R-MAT graphs have fewer vertices by this power of 2 (6)"
    )
    options.add_argument("--scale", type=int, default=20, help="of the graph that stands in for GAP-kron (20)")
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    given = options.parse_args()
    standins = Standins(given.data, given.smaller)
    touch = touch_nanoseconds(standins)
    print(f"items touch {1 / touch:.3g} GB of memory a second on a K40")
    modelled = {
        name: {graph: speedup(standins, name, graph, touch) for graph in times}
        for name, times in published.MILLISECONDS.items()
    }
    seconds = butterfly_seconds(given.scale)
    butterfly = seconds[8] / seconds[16]
    tables = {
        "primitives": {
            "rows": [primitive_row(name, modelled[name]) for name in PUBLISHED],
            "note": NOTES["primitives"],
        },
        "estimates": {"rows": estimate_rows(standins, touch), "note": NOTES["estimates"]},
        "graphs": {"rows": [graph_row(g, standins, modelled) for g in published.GRAPHS], "note": NOTES["graphs"]},
    }
    figures = [
        *(deviation(name, math.log(PUBLISHED[name]), mean_log(modelled[name].values())) for name in PUBLISHED),
        *(butterfly_figure(n, found) for n, found in seconds.items()),
        Figure("butterfly, 16 V100s over 8, modelled", butterfly, "x"),
        Figure(f"butterfly: deviation from {PUBLISHED_BUTTERFLY}", 100 * abs(butterfly / PUBLISHED_BUTTERFLY - 1), "%",
               100 * ALLOWED_BUTTERFLY),
        Figure("memory that items touch on a K40", 1 / touch, "GB a second", None, len(published.TWO_GPUS_BFS)),
    ]  # fmt: skip
    publish(tables, f"modelled; {standins.names()}", figures, given.json)


#: Estimates of `gunrock_counts`, with what each could be instead, and the primitive that it is about.
ESTIMATES = (
    ("PAGERANK_ITERATIONS", "iterations", (16, 34), "pagerank"),
    ("CC_ROUNDS", "rounds", (2, 5), "cc"),
    ("JUMP", "bytes touched to move a pointer", (0,), "cc"),
)
NOTES = {
    "estimates": "Nothing was fitted to six devices, but these were chosen with the published numbers in sight; so "
    "were the bytes that items touch. How much they touch in a second is taken from graphs on two devices, which "
    "differ: the middle one counts; here are the slowest and the quickest.",
    "primitives": "Published: from the paper, and of the same runs' own page of results, of the graphs that it has six "
    "devices for. Direction-optimizing search is called flat in the paper, which is taken as 1.",
    "graphs": "Speedups of six K40s over one.",
}


class Standins:
    """The graphs that are there, for the published ones, each with a source in its largest part."""

    def __init__(self, data: Path, smaller: int) -> None:
        self.data, self.smaller = data, smaller
        self.kept: dict[str, tuple[shoal.Graph, int]] = {}
        self.counted: dict[tuple[str, str, int], Counts] = {}

    def name(self, graph: str) -> str:
        """Return what stands in for a published graph."""
        target = published.GRAPHS[graph]
        density = target.num_edges / target.num_vertices
        real = {"soc": SOCIAL, "web": WEB}.get(target.kind)
        if real is not None and (self.data / real).exists() and (target.kind == "web" or density < DENSE):
            return real.split(".")[0]
        if target.kind == "rmat":
            scale, factor = (int(part.lstrip("n")) for part in graph.split("_")[1:])
        else:
            scale, factor = math.floor(math.log2(target.num_vertices)), 2 ** round(math.log2(density / 2))
        return f"R-MAT {scale - self.smaller} x {factor}"

    def graph(self, name: str) -> tuple[shoal.Graph, int]:
        """Return a graph that stands in, and a source."""
        if name not in self.kept:
            self.kept[name] = with_source(self._make(name))
        return self.kept[name]

    def counts(self, primitive: str, graph: str, num_devices: int) -> Counts:
        """Return what a primitive would count on a published graph."""
        name, target = self.name(graph), published.GRAPHS[graph]
        standin, source = self.graph(name)
        key = (primitive, name, num_devices)
        if key not in self.counted:
            self.counted[key] = PRIMITIVES[primitive](place(standin, num_devices), source, num_devices)
        linked = target.num_vertices * self._linked_part(name, target)
        edges, vertices = target.num_edges / standin.num_edges, linked / np.count_nonzero(standin.degree)
        made = self.counted[key].scaled(edges, items=vertices)
        if primitive in ("cc", "pagerank"):
            return made
        # A search has about as many supersteps as half the diameter (table I); that back and forth twice as many.
        return made.padded(math.ceil(target.diameter / 2) * (2 if primitive == "bc" else 1))

    def _linked_part(self, name: str, target: published.PublishedGraph) -> float:
        """Return the part of a published graph's vertices that have edges."""
        if target.kind != "rmat":
            return 1.0
        _, scale, _, factor = name.split()
        return linked_part(int(scale) + self.smaller, int(factor))

    def names(self) -> str:
        """Return the graphs that stood in, in words."""
        return ", ".join(sorted(self.kept))

    def _make(self, name: str) -> shoal.Graph:
        if name.startswith("R-MAT"):
            _, scale, _, factor = name.split()
            return shoal.generate.rmat(int(scale), int(factor), weights=(1, 64))
        graph = shoal.read(
            self.data / next(file for file in (SOCIAL, WEB) if file.startswith(f"{name}."))
        ).symmetrized()
        weights = np.random.default_rng(0).integers(1, 65, graph.num_edges)
        return shoal.Graph.from_csr(graph.indptr, graph.indices, weights=weights.astype(np.int32), directed=True)


def with_source(graph: shoal.Graph) -> tuple[shoal.Graph, int]:
    """Return a graph with a vertex that is drawn, from which most of what has edges can be reached."""
    able = np.flatnonzero(graph.degree)
    for source in np.random.default_rng(1).choice(able, 20):
        if (shoal.bfs(graph, int(source)).distance >= 0).sum() > len(able) / 2:
            return graph, int(source)
    raise ValueError("no source was found from which half of the graph can be reached")


def speedup(standins: Standins, primitive: str, graph: str, touch: float) -> float:
    """Return what six K40s gain over one on a published graph."""
    alone = 1e-3 * published.MILLISECONDS[primitive][graph][0]
    return alone / modelled_seconds(standins, primitive, graph, NUM_DEVICES, touch)


def modelled_seconds(standins: Standins, primitive: str, graph: str, num_devices: int, touch: float) -> float:
    """Return the modelled seconds of K40s, of which one takes as long as was published."""
    alone = standins.counts(primitive, graph, 1)
    links = find_topology("pcie-k40-quad").resized(num_devices)
    meeting = alone.num_supersteps * links.resized(1).seconds_per_superstep()
    touched = 1e-9 * touch * float(alone.items_combined.sum())
    work = 1e-3 * published.MILLISECONDS[primitive][graph][0] - meeting - touched
    if work <= 0:
        raise ValueError(f"{primitive} on {graph} takes one device no longer than {alone.num_supersteps} barriers")
    edge = 1e9 * work / float(alone.edges_visited.sum())
    counts = standins.counts(primitive, graph, num_devices)
    return scaling(counts, links, constant_cost("K40", edge, touch, links.compute_scale)).seconds


def touch_nanoseconds(standins: Standins) -> float:
    """Return what a byte of memory costs a K40 that is touched for items: the middle one of the graphs."""
    return statistics.median(touches(standins))


def touches(standins: Standins) -> list[float]:
    """Return for each graph what two devices take for a byte: what half the work, links and barriers do not explain."""
    found = []
    for graph, milliseconds in published.TWO_GPUS_BFS.items():
        free, priced = (modelled_seconds(standins, "bfs", graph, 2, touch) for touch in (0.0, 1.0))
        found.append((1e-3 * milliseconds - free) / (priced - free))
    return found


def constant_cost(name: str, edge: float, item: float, compute_scale: float) -> CostModel:
    """Return a cost model of a device with so many nanoseconds for every edge, and for every item."""
    return replace(find_cost("h200-assumed"), name=name, device=name, coefficients=(edge,), nanoseconds_low=edge,
                   nanoseconds_high=edge, nanoseconds_per_item=item, compute_scale=compute_scale)  # fmt: skip


def butterfly_seconds(scale: int) -> dict[int, float]:
    """Return what 8 and 16 V100s take for a search on GAP-kron; they send ids, and pack nothing: a queue is sent."""
    graph, source = with_source(shoal.generate.rmat(scale))
    times = KRON_VERTICES * linked_part(KRON_SCALE, 16) / np.count_nonzero(graph.degree)
    seconds = {8: 0.0, 16: 0.0}
    for num_devices in seconds:
        placed = shoal.place(graph, f"cpu:{num_devices}x1", partition="segment")
        links = find_topology("dgx2-v100").resized(num_devices)
        cost = constant_cost("V100", V100_NANOSECONDS, V100_NANOSECONDS, links.compute_scale)
        starts = (source, *np.argsort(graph.degree)[[-1, -graph.num_vertices // 4]].tolist())
        for start in starts:
            result = shoal.bfs(placed, start, direction="push", communication="butterfly", fanout=4)
            counts = Counts.of(result.stats.to_dict()).with_item_bytes(WORD)
            counts = counts.scaled(KRON_EDGES / graph.num_edges, items=times)
            unpacked = replace(counts, items_sent=np.zeros_like(counts.items_sent))
            run = scaling(unpacked, links, cost, communication="butterfly", fanout=4)
            seconds[num_devices] += run.seconds / len(starts)
    return seconds


def estimate_rows(standins: Standins, touch: float) -> list[Row]:
    """Return what would come out with other estimates."""
    rows = []
    for name, words, others, primitive in ESTIMATES:
        kept = getattr(gunrock_counts, name)
        for other in others:
            setattr(gunrock_counts, name, other)
            again = Standins(standins.data, standins.smaller)
            again.kept = standins.kept
            rows.append(estimate_row(again, touch, f"{kept} {words}", f"{other}", primitive))
        setattr(gunrock_counts, name, kept)
    found = touches(standins)
    for extreme in (max(found), min(found)):
        for primitive in PUBLISHED:
            estimate, instead = (f"{1 / value:.0f} GB a second" for value in (touch, extreme))
            rows.append(estimate_row(standins, extreme, estimate, instead, primitive))
    return rows


def estimate_row(standins: Standins, touch: float, estimate: str, instead: str, primitive: str) -> Row:
    """Return a primitive's mean with another estimate."""
    graphs = published.MILLISECONDS[primitive]
    seen = math.exp(mean_log(speedup(standins, primitive, graph, touch) for graph in graphs))
    percent = f"{100 * (seen / PUBLISHED[primitive] - 1):+.0f}"
    return {"estimate": estimate, "instead": instead, "primitive": primitive, "modelled": seen, "deviation": percent}


def butterfly_figure(num_devices: int, seconds: float) -> Figure:
    """Return the modelled time, beside the published one without roots that have no edges."""
    published_ms = f"{1e3 * PUBLISHED_KRON[num_devices]:.0f}"
    return Figure(f"butterfly, {num_devices} V100s, modelled (published: {published_ms})", 1e3 * seconds, "ms")


def mean_log(values: Any) -> float:
    """Return the logarithm of the geometric mean."""
    return statistics.fmean(map(math.log, values))


def deviation(name: str, asked: float, seen: float) -> Figure:
    """Return by how much a geometric mean deviates from the published one."""
    percent = 100 * abs(math.exp(seen - asked) - 1)
    count = len(published.MILLISECONDS[name])
    return Figure(f"{name}: deviation from {PUBLISHED[name]}", percent, "%", 100 * ALLOWED, count)


def primitive_row(name: str, modelled: dict[str, float]) -> Row:
    """Return a primitive's means."""
    seen, times = math.exp(mean_log(modelled.values())), published.MILLISECONDS[name]
    percent = 100 * (seen / PUBLISHED[name] - 1)
    return {
        "primitive": name,
        "graphs": str(len(modelled)),
        "paper": PUBLISHED[name],
        "published": math.exp(mean_log(one / six for one, six in times.values())),
        "modelled": seen,
        "deviation": f"{percent:+.0f}",
        "asked": f"{100 * ALLOWED:.0f}",
        "verdict": "pass" if abs(percent) <= 100 * ALLOWED else "fail",
    }


def graph_row(graph: str, standins: Standins, modelled: dict[str, dict[str, float]]) -> Row:
    """Return the speedups on a graph, published and modelled."""
    row: Row = {"graph": graph, "stand_in": standins.name(graph)}
    for name, times in published.MILLISECONDS.items():
        one, six = times.get(graph, (0.0, 1.0))
        row[name] = f"{one / six:.2f}, {modelled[name][graph]:.2f}" if graph in times else ""
    return row


def publish(tables: dict[str, Any], setting: str, figures: list[Figure], path: str | None) -> None:
    """Print the tables and the figures, and write them with their circumstances to a file."""
    for name, kept in tables.items():
        table = VALIDATION[name]
        print_rows(table.title, table.header, [table.cells(row) for row in kept["rows"]], table.right)
    print_table(f"model_validation: {setting}", figures)
    if path is not None:
        result = to_dict("model_validation", setting, figures) | {"kind": "devices", "tables": tables}
        write_whole(Path(path), json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
