# SPDX-License-Identifier: Apache-2.0
"""Pictures of the pages about ideas: shoal runs, and what it counted is drawn.

    make pictures                            all of them, into docs/pictures
    python docs/site/pictures.py direction   one

Counts, not times: they are the same on every machine, but for those of devices that do not wait for one another.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from charts import Bar, Row, bar_chart, steps, ways

import shoal
from shoal.strategies.communication import make_schedule
from shoal.strategies.stealing import choose_thefts, cost_matrix

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
STEALING = FOLDER.parents[1] / "benchmarks" / "results" / "model_stealing.json"
SCALE = 16  # 2**16 vertices: large enough for hubs, and all pictures are there in a minute
LEAST_SCALE = 6
GRAPHS = {0: "grid", 1: "R-MAT, with hubs"}
PARTITIONS = ("segment", "metis", "biased-random", "random")


def direction(scale: int) -> str:
    """Draw what a search looks at, superstep by superstep, if it may pull and if it may not."""
    graph = shoal.generate.rmat(scale=scale, seed=1)
    source = int(np.flatnonzero(graph.degree == graph.degree[graph.degree > 0].min())[0])
    auto, push = (_supersteps(shoal.bfs(graph, source, direction=d, devices="cpu:1x1")) for d in ("auto", "push"))
    rows = [
        Row(
            f"{number}: {found['direction'][0]}",
            (
                _bar(2, found["frontier_size"][0]),
                _bar(0, found["edges_visited"][0]),
                _bar(1, pushed["edges_visited"][0]),
            ),
        )
        for number, (found, pushed) in enumerate(zip(auto, push, strict=True))
    ]
    series = {2: "vertices of the frontier", 0: "edges looked at", 1: "the same, push only"}
    return bar_chart("A search, superstep by superstep (logarithmic)", series, rows, is_log=True)


def partition(scale: int) -> str:
    """Draw the vertices that four devices send in an iteration of PageRank."""
    graphs = (_grid(scale), shoal.generate.rmat(scale=scale, seed=1))
    rows = [
        Row(name, tuple(_bar(k, _sent_in_an_iteration(graph, name)) for k, graph in enumerate(graphs)))
        for name in PARTITIONS
    ]
    return bar_chart("Vertices sent in an iteration of PageRank, 4 devices", GRAPHS, rows)


def communication(scale: int) -> str:
    """Draw the vertices that eight devices send in a search, and the messages they need for it."""
    graph = shoal.generate.rmat(scale=scale, seed=1)
    source = int(graph.degree.argmax())
    rows = []
    for name in ("selective", "broadcast", "butterfly", "ring"):
        counts = _counts(shoal.bfs(graph, source, direction="push", devices="cpu:8", communication=name))
        text = f"{counts['items_sent']:,}"
        rows.append(Row(f"{name}, {counts['messages']}", (Bar(((0, counts["items_sent"]),), text),)))
    series = {0: "vertices sent; beside each name the messages"}
    return bar_chart("What 8 devices send in a search", series, rows)


def memory(scale: int) -> str:
    """Draw the peak of a search on two graphs of as many vertices."""
    graphs = (_grid(scale), shoal.generate.rmat(scale=scale, seed=1))
    rows = [
        Row(name, tuple(_bar(k, _peak(graph, name) / 1e6, " MB") for k, graph in enumerate(graphs)))
        for name in ("fused", "fixed", "just-enough", "maximum")
    ]
    return bar_chart("Memory of a search that pushes, beside the graph", GRAPHS, rows)


def butterfly(scale: int) -> str:
    """Draw the rounds of eight devices; they do not depend on a graph."""
    schedule = make_schedule("butterfly", 8, fanout=1)
    rounds = [[schedule.peers(t, device).tolist() for device in range(8)] for t in range(schedule.num_rounds)]
    title = "A butterfly of 8 devices: who receives from whom"
    return ways(title, rounds, [f"round {number + 1}" for number in range(len(rounds))])


def fanout(scale: int) -> str:
    """Draw rounds and messages of 16 devices; they do not depend on a graph."""
    rows = [_fanout_row(f"fanout {f}", make_schedule("butterfly", 16, fanout=f)) for f in (1, 4, 16)]
    rows += [_fanout_row(name, make_schedule(name, 16)) for name in ("broadcast", "ring")]
    return bar_chart("Messages of 16 devices in a superstep", {0: "messages of all rounds"}, rows)


def priorities(scale: int) -> str:
    """Draw how often vertices are visited by devices that do not wait, with and without priorities."""
    graph = _grid(scale, weights=(1, 255))
    rows = [
        Row(name, tuple(_bar(k, _visits(graph, name, p)) for k, p in enumerate(("soft", "none"))))
        for name in ("segment", "metis", "random")
    ]
    title = "Shortest paths on a grid, 4 devices: visits of a vertex"
    return bar_chart(title, {0: 'priority="soft"', 1: 'priority="none"'}, rows)


def stealing(scale: int) -> str:
    """Draw the busiest superstep of a search that goes through the ids, and what would be stolen in it."""
    decision = decide(scale)
    loads = decision.shares.sum(axis=1)
    most = loads.max()
    rows = []
    for device, load in enumerate(loads):
        kept = decision.shares[device, device]
        stolen = decision.shares[:, device].sum() - kept
        after = Bar(((0, kept / most), (1, stolen / most)), f"{(kept + stolen) / most:.0%}")
        rows.append(Row(f"device {device}", (Bar(((2, load / most),), f"{load / most:.0%}"), after)))
    series = {2: "its edges, before", 0: "kept", 1: "stolen from others"}
    return bar_chart("A skewed superstep, before and after thefts", series, rows)


def decide(scale: int) -> Any:
    """Return the decision for loads that eight devices had in a search."""
    graph = _grid(scale)
    loads = max((step["edges_visited"] for step in _busy(graph)), key=lambda edges: max(edges) - min(edges))
    costs = cost_matrix(shoal.model.find_topology("dgx-h100").bandwidth, bytes_per_edge=16, seconds_per_edge=1e-10)
    # The graph is small, and so is what a decision needs to be asked for.
    return choose_thefts(loads, costs, least_load=1, least_gap=1, least_theft=1)


def groups(scale: int) -> str:
    """Draw how many of eight devices take part in the supersteps of runs on road networks, as was kept of a model."""
    kept = json.loads(STEALING.read_text(encoding="utf-8"))["groups"]
    curves = {name: points for name, points in kept.items() if name.split(",")[0] in ("New York", "Florida")}
    return steps("Devices that take part, by superstep (modelled)", curves, most=8)


PICTURES: dict[str, Callable[[int], str]] = {
    "direction": direction,
    "partition": partition,
    "communication": communication,
    "memory": memory,
    "butterfly": butterfly,
    "fanout": fanout,
    "priorities": priorities,
    "stealing": stealing,
    "groups": groups,
}


def main() -> None:
    """Draw those that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](SCALE), encoding="utf-8")
        print(FOLDER / f"{name}.svg")


def _grid(scale: int, weights: Any = None) -> shoal.Graph:
    return shoal.generate.grid(1 << scale // 2, 1 << (scale + 1) // 2, seed=1, weights=weights)


def _busy(graph: shoal.Graph) -> list[dict[str, Any]]:
    return _supersteps(shoal.bfs(graph, 0, direction="push", devices="cpu:8"))


def _counts(result: Any) -> dict[str, Any]:
    return result.stats.to_dict()


def _supersteps(result: Any) -> list[dict[str, Any]]:
    return _counts(result)["supersteps"]


def _bar(series: int, value: float, unit: str = "") -> Bar:
    return Bar(((series, value),), (f"{value:,}" if isinstance(value, int) else f"{value:.1f}") + unit)


def _sent_in_an_iteration(graph: shoal.Graph, name: str) -> int:
    return _counts(shoal.pagerank(graph, iterations=1, devices="cpu:4", partition=name))["items_sent"]


def _peak(graph: shoal.Graph, name: str) -> int:
    """Return the peak of the second run, for which `fixed` knows what the first one needed."""
    runs = [shoal.bfs(graph, 0, memory=name, direction="push", devices="cpu:1x1") for _ in range(2)]
    return _counts(runs[1])["peak_memory_bytes"]


def _visits(graph: shoal.Graph, name: str, priority: str) -> float:
    run = shoal.sssp(graph, 0, execution="async", devices="cpu:4", partition=name, priority=priority)
    return _counts(run)["work_items"] / graph.num_vertices


def _fanout_row(name: str, schedule: Any) -> Row:
    rounds = f"{schedule.num_rounds} round" + ("s" if schedule.num_rounds > 1 else "")
    return Row(f"{name}, {rounds}", (_bar(0, schedule.num_messages),))


if __name__ == "__main__":
    main()
