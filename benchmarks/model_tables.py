# SPDX-License-Identifier: Apache-2.0
"""The tables of rows of `model_validation.py` and `planning.py`, by their names in the JSON."""

from __future__ import annotations

from figures import RowTable

#: Gunrock's primitives, in the order of its paper.
ORDER = ("bfs", "sssp", "cc", "bc", "pagerank", "dobfs")
VALIDATION = {
    "primitives": RowTable(
        "Six K40s over one, geometric means over the graphs",
        {
            "primitive": "{primitive}",
            "graphs": "{graphs}",
            "in the paper": "{paper}",
            "of these graphs": "{published}",
            "modelled": "{modelled}",
            "deviation from the paper, %": "{deviation}",
            "asked, at most": "{asked}",
            "": "{verdict}",
        },
        num_names=1,
    ),
    "estimates": RowTable(
        "What the estimates do",
        {
            "estimate": "{estimate}",
            "instead": "{instead}",
            "primitive": "{primitive}",
            "modelled": "{modelled}",
            "deviation from the paper, %": "{deviation}",
        },
        num_names=3,
    ),
    "graphs": RowTable(
        "The same, graph by graph: published, modelled",
        {"graph": "{graph}", "stands in": "{stand_in}"} | {name: f"{{{name}}}" for name in ORDER},
        num_names=8,
    ),
}

PLANNING = {
    "laws": RowTable(
        "What changes with the scale",
        {
            "scale": "{scale}",
            "": "{how}",
            "vertices with edges, %": "{linked}",
            "edges that are copies of others, %": "{copies}",
            "edges to another vertex, of a device's in 512, %": "{border}",
            "supersteps": "{supersteps}",
            "largest frontiers, % of vertices with edges": "{largest}",
            "edges looked at where searches turn round, %": "{pulled}",
        },
        num_names=2,
    ),
    "items": RowTable(
        "Items sent by searches that push, on logical devices",
        {
            "scale": "{scale}",
            "devices": "{devices}",
            "counted": "{counted}",
            "expected": "{expected}",
            "the most edges of a device, by the mean": "{most}",
        },
        num_names=2,
    ),
    "planned_memory": RowTable(
        "Memory of one device, GB",
        {
            "what is kept": "{layout}",
            "edges": "{edges}",
            "offsets": "{offsets}",
            "values": "{values}",
            "ids of copies": "{names}",
            "bits of all vertices": "{bits}",
            "together": "{total}",
            "fits": "{verdict}",
        },
        num_names=1,
    ),
    "strategies": RowTable(
        "A search, by strategy",
        {
            "strategy": "{strategy}",
            "received by a device, GB": "{gigabytes}",
            "of it from other machines, %": "{outside}",
            "compute, ms": "{compute}",
            "packing, ms": "{serialization}",
            "transfers, ms": "{communication}",
            "barriers, ms": "{overhead}",
            "together, ms": "{seconds}",
            "edges of the graph a second, 10^9": "{rate}",
        },
        num_names=1,
    ),
    "supersteps": RowTable(
        "The quickest of these, superstep by superstep",
        {
            "superstep": "{superstep}",
            "direction": "{direction}",
            "frontier, % of vertices with edges": "{frontier}",
            "edges looked at by a device, 10^6": "{edges}",
            "received by a device, MB": "{megabytes}",
            "compute, ms": "{compute}",
            "transfers, ms": "{communication}",
            "together, ms": "{seconds}",
        },
        num_names=2,
    ),
    "weak": RowTable(
        "As many vertices a device, more devices",
        {
            "devices": "{devices}",
            "scale": "{scale}",
            "searches that turn round, ms": "{turning}",
            "efficiency, %": "{turning_efficiency}",
            "searches that push, ms": "{pushing}",
            "efficiency of these, %": "{pushing_efficiency}",
            "bits received by a device in a superstep, GB": "{bits}",
        },
        num_names=1,
    ),
}
