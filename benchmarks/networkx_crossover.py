# SPDX-License-Identifier: Apache-2.0
"""From which size shoal is quicker than NetworkX itself: where the numbers in `shoal_networkx.info` come from.

Random graphs of growing size, five edges a node, float weights.  Every function is timed by NetworkX, by shoal with a
conversion, and by shoal on a graph that is converted; the least of some repetitions counts, since other work on the
machine only ever adds.  A crossover is the first size, in nodes and edges together, from which shoal stays ahead.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx

from shoal_networkx.interface import backend

DEGREE = 5
#: A method is not timed on larger graphs once a call has taken so long.
PATIENCE_SECONDS = 2.0
FUNCTIONS: dict[str, dict[str, Any]] = {
    "bfs_edges": {"source": 0},
    "single_source_shortest_path_length": {"source": 0},
    "single_source_shortest_path": {"source": 0},
    "has_path": {"source": 0, "target": 1},
    "connected_components": {},
    "degree_centrality": {},
    "dijkstra_path_length": {"source": 0, "target": 1},
    "single_source_dijkstra": {"source": 0},
    "pagerank": {},
    "all_pairs_shortest_path_length": {},
    "all_pairs_dijkstra_path_length": {},
    "betweenness_centrality": {},
    "strongly_connected_components": {},
    "number_strongly_connected_components": {},
    "core_number": {},
    "triangles": {},
    "average_clustering": {},
    "label_propagation_communities": {},
    "louvain_communities": {},
    "minimum_spanning_edges": {"data": False},
    "eigenvector_centrality": {},
    "katz_centrality": {"alpha": 0.01},
    "hits": {},
}
#: These are for directed graphs only.
DIRECTED = ("strongly_connected_components", "number_strongly_connected_components")


def consume(found: Any) -> None:
    if isinstance(found, Iterator):
        deque(found, maxlen=0)


def seconds(call: Callable[[], Any], repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        consume(call())
        times.append(time.perf_counter() - began)
    return min(times)


def make_graph(num_nodes: int, directed: bool) -> nx.Graph:
    graph = nx.gnm_random_graph(num_nodes, num_nodes * DEGREE, seed=num_nodes, directed=directed)
    draw = random.Random(num_nodes)
    for _, _, data in graph.edges(data=True):
        data["weight"] = draw.random()
    return graph


def measure(name: str, graph: nx.Graph, repetitions: int) -> dict[str, float]:
    arguments = FUNCTIONS[name]
    by_networkx = getattr(nx if hasattr(nx, name) else nx.community, name)
    by_shoal = getattr(backend, name)
    kept = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    consume(by_shoal(kept, **arguments))  # compiled, and placed, before any clock runs

    def converting() -> Any:
        return by_shoal(backend.convert_from_nx(graph, edge_attrs={"weight": 1}), **arguments)

    def converted() -> Any:
        kept._made.pop("triangles", None)  # what one call keeps for the next is not what is timed here
        kept._made.pop("clustering", None)
        return by_shoal(kept, **arguments)

    return {
        "networkx": seconds(lambda: by_networkx(graph, **arguments, backend="networkx"), repetitions),
        "converting": seconds(converting, repetitions),
        "converted": seconds(converted, repetitions),
    }


def crossover(rows: list[dict[str, Any]], way: str) -> int | None:
    """Return the first size from which ``way`` stays ahead of NetworkX."""
    first = None
    for row in rows:
        first = (first or row["size"]) if row[way] < row["networkx"] else None
    return first


def describe(name: str, found: dict[str, Any]) -> str:
    last = found["rows"][-1]
    ratios = [f"{last['networkx'] / last[way]:.1f}x" for way in ("converting", "converted")]
    sizes = f"converting from {found['converting']}, converted from {found['converted']}"
    return f"{name:36} {sizes}; at {last['size']}: {ratios[0]}, {ratios[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=16, help="power of two of the most nodes")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.functions:
        rows: list[dict[str, Any]] = []
        for power in range(4, options.largest + 1):
            graph = make_graph(2**power, name in DIRECTED)
            size = len(graph) + graph.number_of_edges()
            rows.append({"size": size} | measure(name, graph, options.repetitions))
            if rows[-1]["networkx"] > PATIENCE_SECONDS:
                break
        found[name] = {"rows": rows} | {way: crossover(rows, way) for way in ("converting", "converted")}
        print(describe(name, found[name]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
