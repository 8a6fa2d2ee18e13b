# SPDX-License-Identifier: Apache-2.0
"""Modelled scaling beside published numbers that nothing here was fitted to: a plausibility check, not a proof.

    python benchmarks/model_validation.py --json validation.json

Gunrock's multi-GPU paper: geometric mean speedups of six K40s over one, on a PCIe root hub, whose barrier is known for
up to four and goes on along a line.  ButterFly BFS, which always pushes: what 16 V100s behind NVSwitch gain over 8 with
fanout 4.  Counts are those of runs on logical devices of this machine, of smaller graphs, multiplied to as many edges
as the papers' graphs have; an edge costs what the cost model says, scaled by memory bandwidth.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import shoal
from devices import DATA
from figures import Figure, parser, print_rows, publish
from shoal.bench.scaling import ALGORITHMS, part_features
from shoal.model import Counts, find_cost, find_topology, scaling

#: Gunrock's multi-GPU paper, section VI: speedups of six K40s; DOBFS is called flat.
PUBLISHED = {"bfs": 2.63, "sssp": 2.57, "cc": 2.00, "bc": 1.96, "pagerank": 3.86, "dobfs": 1.0}
PUBLISHED_BUTTERFLY = 1.77
ALLOWED, ALLOWED_BUTTERFLY = 0.30, 0.15
#: The geometric mean of the edges of the paper's graphs is near this; GAP-kron has 4.2e9 stored edges.
GUNROCK_EDGES, KRON_EDGES = 300e6, 4.2e9
SOCIAL = "soc-Epinions1.txt.gz"


def main() -> None:
    """Model, compare, publish."""
    options = parser(__doc__, scale=16)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--cost", default="h200-assumed", help="cost model by name or file (h200-assumed)")
    given = options.parse_args()
    graphs = {f"R-MAT {given.scale}": shoal.generate.rmat(given.scale, weights=(1, 64))}
    if (given.data / SOCIAL).exists():
        graphs["Epinions"] = shoal.read(given.data / SOCIAL).symmetrized()
    figures, rows = [], []
    for algorithm, published in PUBLISHED.items():
        speedups = [gunrock_speedup(graph, algorithm, given.cost) for graph in graphs.values()]
        seen = math.exp(sum(map(math.log, speedups)) / len(speedups))
        rows.append(row(f"{algorithm}, 6 K40s over 1", published, seen, ALLOWED))
        figures.append(Figure(f"{algorithm}: deviation from {published}", 100 * abs(seen / published - 1), "%",
                              100 * ALLOWED, len(speedups)))  # fmt: skip
    seen = butterfly_gain(given.scale, given.cost)
    rows.append(row("BFS, 16 V100s over 8, fanout 4", PUBLISHED_BUTTERFLY, seen, ALLOWED_BUTTERFLY))
    figures.append(Figure(f"butterfly: deviation from {PUBLISHED_BUTTERFLY}", 100 * abs(seen / PUBLISHED_BUTTERFLY - 1),
                          "%", 100 * ALLOWED_BUTTERFLY))  # fmt: skip
    print_rows("modelled beside published speedups", ["what", "published", "modelled", "within"], rows, {1, 2, 3})
    publish("model_validation", f"modelled; {', '.join(graphs)}; cost {given.cost}", figures, given.json)


def row(what: str, published: float, seen: float, allowed: float) -> list[str]:
    """Return a row of text."""
    verdict = "yes" if abs(seen / published - 1) <= allowed else "no"
    return [what, f"{published:.2f}", f"{seen:.2f}", f"{100 * allowed:.0f} %: {verdict}"]


def gunrock_speedup(graph: shoal.Graph, algorithm: str, cost: str) -> float:
    """Return what six K40s gain over one, as that paper ran it: random partition, direct exchange."""
    topology = find_topology("pcie-k40-quad").resized(6)
    factor = GUNROCK_EDGES / graph.num_edges
    seconds = [modelled(graph, algorithm, n, topology.resized(n), cost, factor) for n in (1, 6)]
    return seconds[0] / seconds[1]


def butterfly_gain(scale: int, cost: str) -> float:
    """Return what 16 devices gain over 8."""
    graph = shoal.generate.rmat(scale)
    topology = find_topology("dgx2-v100")
    options = {"communication": "butterfly", "fanout": 4}
    factor = KRON_EDGES / graph.num_edges
    seconds = [modelled(graph, "bfs", n, topology.resized(n), cost, factor, **options) for n in (8, 16)]
    return seconds[0] / seconds[1]


def modelled(
    graph: shoal.Graph, algorithm: str, num_devices: int, topology: Any, cost: str, factor: float, **options: Any
) -> float:
    """Return the modelled seconds of a run."""
    placed = shoal.place(graph, f"cpu:{num_devices}", partition="random")
    given = dict(options) if num_devices > 1 else {}
    if algorithm in ("bfs", "dobfs"):
        given["direction"] = "push" if algorithm == "bfs" else "auto"
    stats = ALGORITHMS[algorithm.removeprefix("do")](placed, **given).stats.to_dict()
    print(algorithm, num_devices, {key: stats[key] for key in ("num_supersteps", "edges_visited", "items_sent")})
    features = part_features(placed) if find_cost(cost).degree else None
    exchange = stats["config"] if num_devices > 1 else {"communication": "selective", "fanout": 1}
    run = scaling(Counts.of(stats).scaled(factor), topology, cost, communication=exchange["communication"],
                  fanout=exchange["fanout"], features=features)  # fmt: skip
    parts = {key: f"{1e3 * value:.3g} ms" for key, value in run.to_dict().items() if key.endswith("seconds")}
    print("   ", parts)
    return run.seconds


if __name__ == "__main__":
    main()
