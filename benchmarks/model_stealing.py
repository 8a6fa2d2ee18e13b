# SPDX-License-Identifier: Apache-2.0
"""What stealing gains on eight modelled V100s of a DGX-1: a skewed partition, road networks, social networks.

    python benchmarks/model_stealing.py --json stealing.json --image groups.png

A skewed partition: blocks of as many vertices of an R-MAT graph whose hubs come first, as in GUM's figure 8.
Road networks, where devices mostly meet: GUM's figure 9.  Social networks, which must not lose by it.  Counts are those
of runs on logical devices, priced by a topology and a cost model; those of the skewed partition are multiplied to as
many edges as soc-sinaweibo has.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from devices import DATA
from figures import Figure, parser, publish
from shoal.bench.scaling import ALGORITHMS, part_features
from shoal.io.files import replacing
from shoal.model import Counts, Timeline, find_cost, scaling

NUM_DEVICES, TOPOLOGY = 8, "dgx1-v100"
SINAWEIBO_EDGES = 523e6
ROADS = {"New York": "USA-road-d.NY.gr.gz", "Florida": "USA-road-FLA.pace.gr.gz"}
SOCIAL = {"Epinions": "soc-Epinions1.txt.gz", "Enron": "email-Enron.txt.gz", "Notre Dame": "web-NotreDame.txt.gz"}
Curves = dict[str, list[int]]


def main() -> None:
    """Model all cases, publish, plot the groups."""
    options = parser(__doc__, scale=20)
    options.add_argument("--data", type=Path, default=DATA, help="folder of the real graphs")
    options.add_argument("--cost", default="h200-assumed", help="cost model by name or file (h200-assumed)")
    options.add_argument("--image", metavar="FILE", help="write how many devices take part to this PNG file")
    given = options.parse_args()
    curves: Curves = {}
    figures = [figure for algorithm in ("bfs", "sssp") for figure in skewed(given.scale, algorithm, given.cost)]
    for name, file in (ROADS | SOCIAL).items():
        if (given.data / file).exists():
            figures += real(name, given.data / file, given.cost, curves)
        else:
            print(f"{name} is left out: there is no {given.data / file}")
    setting = f"modelled: {NUM_DEVICES} devices of {TOPOLOGY}, cost {given.cost}"
    kept = {name: changes(sizes) for name, sizes in curves.items()}
    publish("model_stealing", setting, figures, given.json, groups=kept)
    if given.image:
        draw(curves, given.image)


def skewed(scale: int, algorithm: str, cost: str) -> list[Figure]:
    """Return idle parts, gains of the two heaviest supersteps and of the run, with frontiers shared."""
    graph = shoal.generate.rmat(scale, shuffle=False, weights=(1, 64))
    blocks = np.arange(graph.num_vertices) * NUM_DEVICES // graph.num_vertices
    before, after = modelled(graph, algorithm, cost, ("none", "frontier"), blocks, SINAWEIBO_EDGES / graph.num_edges)
    figures = []
    for superstep in np.argsort(-before.superstep_seconds)[:2].tolist():
        gain = before.superstep_seconds[superstep] / after.superstep_seconds[superstep]
        what = f"skewed, {algorithm}, superstep {superstep}"
        figures += [
            Figure(f"{what}: idle of the least loaded, without (over 60)", 100 * before.idle_fraction(superstep), "%"),
            Figure(f"{what}: idle of the least loaded, with", 100 * after.idle_fraction(superstep), "%", 10.0),
            Figure(f"{what}: gain (at least 1.3)", gain, "x"),
        ]
    gain = before.seconds / after.seconds
    return [*figures, Figure(f"skewed, {algorithm}: gain of the run (1.2 to 2.3)", gain, "x")]


def real(name: str, path: Path, cost: str, curves: Curves) -> list[Figure]:
    """Return what leaving devices out gains on a real graph, and keep how many take part.

    Social networks count twice: as they are, and multiplied.
    """
    graph = shoal.read(path)
    graph = graph.symmetrized() if graph.is_directed else graph
    asked = "at least 3" if name in ROADS else "at least 0.98"
    factors = {"": 1.0} if name in ROADS else {"": 1.0, ", multiplied": SINAWEIBO_EDGES / graph.num_edges}
    figures = []
    algorithms = ("bfs", "sssp") if graph.is_weighted else ("bfs",)  # without weights they are one
    for algorithm, (size, factor) in itertools.product(algorithms, factors.items()):
        before, after, both = modelled(graph, algorithm, cost, ("none", "ownership", "both"), factor=factor)
        what = f"{name}{size}, {algorithm}"
        curves[what] = after.group_sizes
        print(what, before.to_dict(), after.to_dict(), both.to_dict(), sep="\n    ")
        figures += [
            Figure(f"{what}: gain by ownership stealing ({asked})", before.seconds / after.seconds, "x"),
            Figure(f"{what}: gain by both ({asked})", before.seconds / both.seconds, "x"),
        ]
    return figures


def changes(sizes: list[int]) -> list[list[int]]:
    """Return the supersteps from which on another number of devices takes part, with that number, and the end."""
    starts = [k for k, size in enumerate(sizes) if k == 0 or size != sizes[k - 1]]
    return [[k, sizes[k]] for k in starts] + [[len(sizes), sizes[-1]]]


def modelled(
    graph: shoal.Graph,
    algorithm: str,
    cost: str,
    stealing: tuple[str, ...],
    partition: Any = "auto",
    factor: float = 1.0,
) -> list[Timeline]:
    """Run once and price it with each kind of stealing."""
    placed = shoal.place(graph, f"cpu:{NUM_DEVICES}x1", partition=partition)
    options = {"direction": "push"} if algorithm == "bfs" else {}
    stats = ALGORITHMS[algorithm](placed, **options).stats.to_dict()
    counts = Counts.of(stats).scaled(factor)
    features = part_features(placed) if find_cost(cost).degree else None
    communication = stats["config"]["communication"]
    return [
        scaling(counts, TOPOLOGY, cost, communication=communication, stealing=kind, features=features)
        for kind in stealing
    ]


def draw(curves: Curves, path: str) -> None:
    """Plot how many devices take part over the supersteps."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(8, 2 * len(curves)), layout="constrained")
    for axes, (name, sizes) in zip(picture.subplots(len(curves), squeeze=False).flat, curves.items(), strict=True):
        axes.step(range(len(sizes)), sizes, where="post")
        axes.set(title=f"{name}, modelled", xlabel="superstep", ylabel="devices", ylim=(0, NUM_DEVICES + 0.5))
    with replacing(path) as temporary:
        picture.savefig(temporary, format="png", dpi=110)


if __name__ == "__main__":
    main()
