# SPDX-License-Identifier: Apache-2.0
"""A search on an R-MAT graph of scale 36 on 512 GPUs, planned: memory, traffic and time of every superstep, modelled.

    python benchmarks/planning.py --json benchmarks/results/planning.json

Nothing of that size is run.  Counts are those of R-MAT graphs with as many edges a vertex that fit here, at several
scales; what changes with the scale is continued by what an R-MAT graph is expected to have (`rmat_laws.py`), which the
tables show beside what was counted.  Links and barriers are those of 64 DGX H100 on InfiniBand, each number with its
source.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from figures import Figure, Row, parser, print_rows, print_table, to_dict
from model_tables import PLANNING
from rmat_laws import border_part, linked_part, stored_part
from shoal.bench.report import write_whole
from shoal.model import Counts, Timeline, Topology, find_topology, make_cluster, scaling

SCALE, KRON_SCALE, EDGE_FACTOR = 36, 27, 16
DEVICES_PER_MACHINE, NUM_MACHINES = 8, 64
NUM_DEVICES = DEVICES_PER_MACHINE * NUM_MACHINES
COST = "h200-assumed"
#: NVIDIA H100 SXM datasheet: 80 GB, of which a tenth is left to buffers and the driver.
DEVICE_BYTES, USABLE = 80e9, 0.9
#: NVIDIA DGX H100 datasheet: eight ConnectX-7 adapters of 400 Gb/s, one for each GPU.
NETWORK_BANDWIDTH = 400e9 / 8
#: Assumed: a message by InfiniBand between memories of GPUs.
NETWORK_LATENCY = 5e-6
#: Assumed: a tree over the machines, there and back, beside the barrier inside of a machine.
BARRIER_SECONDS = 2 * math.log2(NUM_MACHINES) * NETWORK_LATENCY + find_topology("dgx-h100").seconds_per_superstep()
ID_BYTES, SHORT_ID_BYTES, OFFSET_BYTES, DISTANCE_BYTES = 8, 4, 8, 4
#: What a search sends for a vertex that it pushed to: its id where it lives, its distance and its parent.
ITEM_BYTES = 4 + DISTANCE_BYTES + ID_BYTES
FANOUT = 8
#: Searches turn round sooner than by default (0.01): a push on many devices finds vertices of all, a pull only its own.
TURN = 1e-4

COUNTED_DEVICES = (4, 16, 64)


def main() -> None:
    """Count, continue, model, publish."""
    options = parser(__doc__)
    options.add_argument(
        "--scales", type=int, nargs="+", default=[14, 16, 18, 20], help="scales to count (14 16 18 20)"
    )
    given = options.parse_args()
    counted = [count(scale) for scale in given.scales]
    graph = expected(counted, SCALE)
    runs = {name: strategy.run(graph, cluster(NUM_MACHINES)) for name, strategy in STRATEGIES.items()}
    quickest = min(runs, key=lambda name: runs[name][1].seconds)
    tables = {
        "laws": table(law_rows(counted), NOTES["laws"]),
        "items": table([item_row(scale, n) for scale in given.scales[:2] for n in COUNTED_DEVICES], NOTES["items"]),
        "planned_memory": table(memory_rows(graph), NOTES["memory"]),
        "strategies": table([strategy_row(name, graph, *run) for name, run in runs.items()], NOTES["strategies"]),
        "supersteps": table(superstep_rows(graph, *runs[quickest]), quickest[0].upper() + quickest[1:] + "."),
        "weak": table(weak_rows(counted), NOTES["weak"]),
    }
    figures = [
        Figure("vertices", graph.num_vertices / 1e9, "* 10^9"),
        Figure("edges drawn", graph.num_vertices * EDGE_FACTOR / 1e12, "* 10^12"),
        Figure("edges stored, each in both rows", graph.num_edges / 1e12, "* 10^12"),
        Figure("a search, the quickest strategy, modelled", 1e3 * runs[quickest][1].seconds, "ms"),
    ]
    publish(
        tables, f"modelled; {NUM_DEVICES} devices of {cluster(NUM_MACHINES).name}, cost {COST}", figures, given.json
    )


NOTES = {
    "laws": "Expected: of an R-MAT graph, in closed form; of scale 27 that is what GAP-kron has. Edges to another "
    "vertex: of several edges that a device has to a vertex one counts, so these are the vertices it has copies of, "
    "and what it sends if it pushes. Frontiers, and what is looked at, are those of the last scale; supersteps grow "
    "along a straight line, with next to nothing in those that are added.",
    "items": "Each vertex that is found is sent once by every device that finds it and does not own it. How much the "
    "busiest device has is due to the largest hubs, whose part shrinks as graphs grow.",
    "memory": f"Of {DEVICE_BYTES / 1e9:.0f} GB a tenth is left for buffers. Ids take {ID_BYTES} bytes where all "
    f"vertices have one, {SHORT_ID_BYTES} where a device numbers what it has. Values are a distance and a parent, "
    f"{DISTANCE_BYTES} and {ID_BYTES} bytes.",
    "strategies": "All modelled. Broadcast and butterfly send bits, or ids where those are fewer bytes; bits of what a "
    "push found go to the owners first.",
    "weak": "Modelled, numbered across machines; butterfly and selective exchange.",
}


def table(rows: list[Row], note: str) -> dict[str, Any]:
    """Return rows as they are kept."""
    return {"rows": rows, "note": note}


@dataclass(frozen=True)
class Counted:
    """What matters of an R-MAT graph and of searches on it."""

    scale: int
    linked: float  # of the vertices
    stored: float  # of the edges drawn
    border: float  # of the edges, with so many devices as are planned for
    frontiers: np.ndarray  # of each superstep, of the vertices with edges
    pushed: np.ndarray  # of the edges, if it only pushes
    turned: np.ndarray  # of the edges, if it turns round
    directions: list[str]

    @property
    def num_vertices(self) -> float:
        """All vertices."""
        return 2.0**self.scale

    @property
    def num_edges(self) -> float:
        """Stored edges, each in the rows of both ends."""
        return 2 * EDGE_FACTOR * self.num_vertices * self.stored


def count(scale: int) -> Counted:
    """Generate a graph, search it, and return the counts."""
    graph = shoal.generate.rmat(scale, EDGE_FACTOR)
    degree = graph.degree[graph.degree > 0].astype(np.float64)
    # A vertex of middling degree: from a hub there would be one superstep less.
    source = int(np.flatnonzero(graph.degree == np.median(degree))[0])
    turned, pushed = (
        shoal.bfs(graph, source, devices="cpu:1x1", do_a=TURN, direction=direction).stats.to_dict()["supersteps"]
        for direction in ("auto", "push")
    )
    print(f"scale {scale}: {len(turned)} supersteps")
    parts = -NUM_DEVICES * np.expm1(degree * math.log1p(-1 / NUM_DEVICES))
    return Counted(
        scale,
        linked=len(degree) / graph.num_vertices,
        stored=graph.num_edges / (2 * EDGE_FACTOR * graph.num_vertices),
        border=float(parts.sum() / graph.num_edges),
        frontiers=np.array([step["frontier_size"][0] for step in pushed]) / len(degree),
        pushed=np.array([step["edges_visited"][0] for step in pushed]) / graph.num_edges,
        turned=np.array([step["edges_visited"][0] for step in turned]) / graph.num_edges,
        directions=[step["direction"][0] for step in turned],
    )


def item_row(scale: int, num_devices: int) -> Row:
    """Return how many items a search sends on logical devices, and how many are to be expected."""
    graph = shoal.generate.rmat(scale, EDGE_FACTOR)
    placed = shoal.place(graph, f"cpu:{num_devices}x1", partition="random")
    options = {"direction": "push", "communication": "selective", "duplication": "one-hop"}
    stats = shoal.bfs(placed, int(graph.degree.argmax()), **options).stats.to_dict()
    edges = np.sum([step["edges_visited"] for step in stats["supersteps"]], axis=0)
    border = border_part(scale, EDGE_FACTOR, num_devices) * graph.num_edges
    return {
        "scale": f"{scale}",
        "devices": f"{num_devices}",
        "counted": stats["items_sent"],
        "expected": border * (1 - 1 / num_devices),
        "most": float(edges.max() / edges.mean()),
    }


def expected(counted: list[Counted], scale: int) -> Counted:
    """Return what is expected of a graph of any scale, with the searches of the last one counted."""
    first, last = counted[0], counted[-1]
    slope = (len(last.pushed) - len(first.pushed)) / (last.scale - first.scale)
    tail = np.zeros(max(round(slope * (scale - last.scale)), 0))
    return Counted(
        scale,
        linked=linked_part(scale, EDGE_FACTOR),
        stored=stored_part(scale, EDGE_FACTOR),
        border=border_part(scale, EDGE_FACTOR, NUM_DEVICES),
        frontiers=np.append(last.frontiers, tail),
        pushed=np.append(last.pushed, tail),
        turned=np.append(last.turned, tail),
        directions=last.directions + ["push"] * len(tail),
    )


@functools.cache
def cluster(num_machines: int, across: bool = False) -> Topology:
    """Return the machine that is planned for, numbered machine by machine or across them."""
    machine = find_topology("dgx-h100")
    made = make_cluster(machine, num_machines, network_bandwidth=NETWORK_BANDWIDTH,
                        network_latency_seconds=NETWORK_LATENCY, barrier_seconds=BARRIER_SECONDS,
                        source="NVIDIA DGX H100 datasheet; latency and barrier assumed")  # fmt: skip
    if not across:
        return made
    return made.subset([m * DEVICES_PER_MACHINE + g for g in range(DEVICES_PER_MACHINE) for m in range(num_machines)])


@dataclass(frozen=True)
class Strategy:
    """How devices search and exchange."""

    turns: bool
    communication: str
    across: bool = False

    def run(self, graph: Counted, links: Topology) -> tuple[Counts, Timeline]:
        """Return the counts of a search, and what it takes."""
        size = links.num_devices
        topology = cluster(size // DEVICES_PER_MACHINE, across=True) if self.across else links
        counts = self.counts(graph, size)
        run = scaling(counts, topology, COST, communication=self.communication, fanout=min(FANOUT, size))
        return counts, run

    def counts(self, graph: Counted, num_devices: int) -> Counts:
        """Return what every device would do and send; all have as much to do."""
        looked = graph.turned if self.turns else graph.pushed
        edges = looked * graph.num_edges / num_devices
        if self.communication == "selective":
            # Of several edges to a vertex one sends it, and its owner receives it.
            border = border_part(graph.scale, EDGE_FACTOR, num_devices)
            items = graph.pushed * graph.num_edges * border / num_devices * (1 - 1 / num_devices)
            sent, combined = items * ITEM_BYTES, items
        else:
            # A device that pulls finds vertices of its own; one that pushes finds others', as every other may.
            pulls = np.array(graph.directions) == "pull"
            own = np.append(graph.frontiers[1:], 0) * graph.linked * graph.num_vertices / num_devices
            items = np.where(pulls, own, edges * border_part(graph.scale, EDGE_FACTOR, num_devices))
            combined = 0 * items
            bits = np.where(pulls, 1, 2) * graph.num_vertices / num_devices / 8  # to the owners first, if it pushed
            sent = np.minimum(items * ID_BYTES, bits) * (num_devices - 1)
        return Counts(*(spread(values, num_devices) for values in (edges, items, combined, sent)))


def spread(values: np.ndarray, num_devices: int) -> np.ndarray:
    """Return a count of each superstep for every device alike."""
    return np.repeat(np.rint(values).astype(np.int64)[:, None], num_devices, axis=1)


STRATEGIES = {
    "push only, selective": Strategy(turns=False, communication="selective"),
    "turning round, broadcast": Strategy(turns=True, communication="broadcast"),
    "turning round, butterfly, numbered machine by machine": Strategy(turns=True, communication="butterfly"),
    "turning round, butterfly, numbered across machines": Strategy(turns=True, communication="butterfly", across=True),
}


def law_rows(counted: list[Counted]) -> list[Row]:
    """Return what was counted of each scale, what was to be expected, and what is of larger ones."""
    known = [(graph, how) for g in counted for graph, how in ((g, "counted"), (expected(counted, g.scale), "expected"))]
    return [law_row(*row) for row in (*known, *((expected(counted, s), "expected") for s in (KRON_SCALE, SCALE)))]


def law_row(graph: Counted, how: str) -> Row:
    """Return what a graph has; searches are counted, or those of the scale planned for."""
    has_search = how == "counted" or graph.scale == SCALE
    largest = ", ".join(f"{100 * part:.2g}" for part in np.sort(graph.frontiers)[::-1][:3])
    return {
        "scale": f"{graph.scale}",
        "how": how,
        "linked": 100 * graph.linked,
        "copies": 100 * (1 - graph.stored),
        "border": 100 * graph.border,
        "supersteps": f"{len(graph.pushed)}" if has_search else "",
        "largest": largest if has_search else "",
        "pulled": 100 * graph.turned.sum() if has_search else "",
    }


def memory_rows(graph: Counted) -> list[Row]:
    """Return what a device would keep, in several ways."""
    owned, edges = graph.num_vertices / NUM_DEVICES, graph.num_edges / NUM_DEVICES
    copies = edges * graph.border
    state = DISTANCE_BYTES + ID_BYTES
    bits = 2 * graph.num_vertices / 8  # frontier and visited
    layouts = {
        "copies of all, distance and parent": (edges * ID_BYTES, graph.num_vertices * state, 0.0, 0.0),
        "copies of all, distance only": (edges * ID_BYTES, graph.num_vertices * DISTANCE_BYTES, 0.0, 0.0),
        "copies of neighbours, distance and parent": (
            edges * SHORT_ID_BYTES, (owned + copies) * state, copies * ID_BYTES, 0.0,
        ),
        "copies of neighbours, distance only": (
            edges * SHORT_ID_BYTES, (owned + copies) * DISTANCE_BYTES, copies * ID_BYTES, 0.0,
        ),
        "own values, bits of all": (edges * ID_BYTES, owned * state, 0.0, bits),
    }  # fmt: skip
    rows = []
    for layout, (ids, values, names, flags) in layouts.items():
        total = ids + owned * OFFSET_BYTES + values + names + flags
        parts = {"edges": ids, "offsets": owned * OFFSET_BYTES, "values": values, "names": names, "bits": flags}
        verdict = "yes" if total <= USABLE * DEVICE_BYTES else "no"
        rows.append(
            {"layout": layout, **{k: v / 1e9 for k, v in (parts | {"total": total}).items()}, "verdict": verdict}
        )
    return rows


def strategy_row(name: str, graph: Counted, counts: Counts, run: Timeline) -> Row:
    """Return what a strategy takes."""
    found = run.to_dict()
    return {
        "strategy": name,
        "gigabytes": counts.bytes_sent[:, 0].sum() / 1e9,
        "outside": 100 * outside(STRATEGIES[name]),
        **{part: 1e3 * found[f"{part}_seconds"] for part in ("compute", "serialization", "communication", "overhead")},
        "seconds": 1e3 * run.seconds,
        "rate": graph.num_vertices * EDGE_FACTOR / run.seconds / 1e9,
    }


def outside(strategy: Strategy) -> float:
    """Return which part of what a device receives comes by the network."""
    others = NUM_DEVICES - 1
    if strategy.across and strategy.communication == "butterfly":
        return (NUM_MACHINES - 1) / others
    return (others - (DEVICES_PER_MACHINE - 1)) / others


def superstep_rows(graph: Counted, counts: Counts, run: Timeline) -> list[Row]:
    """Return a row for each superstep."""
    return [
        {
            "superstep": str(k),
            "direction": graph.directions[k],
            "frontier": 100 * graph.frontiers[k],
            "edges": counts.edges_visited[k, 0] / 1e6,
            "megabytes": counts.bytes_sent[k, 0] / 1e6,
            "compute": 1e3 * run.compute[k, 0],
            "communication": 1e3 * run.communication[k, 0],
            "seconds": 1e3 * run.superstep_seconds[k],
        }
        for k in range(counts.num_supersteps)
    ]


def weak_rows(counted: list[Counted]) -> list[Row]:
    """Return rows for one, eight and 64 machines with as many vertices a device."""
    rows: list[Row] = []
    for machines in (1, 8, NUM_MACHINES):
        size = machines * DEVICES_PER_MACHINE
        graph = expected(counted, SCALE - (NUM_DEVICES // size).bit_length() + 1)
        turning, pushing = (
            Strategy(turns, how, across=True).run(graph, cluster(machines))[1].seconds
            for turns, how in ((True, "butterfly"), (False, "selective"))
        )
        first = rows[0] if rows else {"turning": 1e3 * turning, "pushing": 1e3 * pushing}
        rows.append({
            "devices": str(size),
            "scale": f"{graph.scale}",
            "turning": 1e3 * turning,
            "turning_efficiency": 100 * first["turning"] / (1e3 * turning),
            "pushing": 1e3 * pushing,
            "pushing_efficiency": 100 * first["pushing"] / (1e3 * pushing),
            "bits": graph.num_vertices / 8e9 * (1 - 1 / size),
        })  # fmt: skip
    return rows


def publish(tables: dict[str, Any], setting: str, figures: list[Figure], path: str | None) -> None:
    """Print the tables and the figures, and write them with their circumstances to a file."""
    for name, kept in tables.items():
        made = PLANNING[name]
        print_rows(made.title, made.header, [made.cells(row) for row in kept["rows"]], made.right)
    print_table(f"planning: {setting}", figures)
    if path is not None:
        result = to_dict("planning", setting, figures) | {"kind": "devices", "tables": tables}
        write_whole(Path(path), json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
