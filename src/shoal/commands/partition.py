# SPDX-License-Identifier: Apache-2.0
"""``shoal partition``: what each way to divide a graph among devices costs, and the parts as files."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer

from shoal.commands import display
from shoal.commands.options import Json, Quiet, ReadingOptions, expanded
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.graph import Graph
from shoal.io.files import check_new_folder
from shoal.io.shards import write_shards
from shoal.sharding.partition_files import DEFAULT_DUPLICATION, DEFAULT_MEMORY, partition_files
from shoal.strategies.duplication import DUPLICATIONS, build_subgraphs, describe_partition
from shoal.strategies.partition import MAX_DEVICES, PARTITIONERS, partition_graph

_ALL = "all"
#: Smaller on disk, unless each device's edges mention nearly every vertex.
_DEFAULT_DUPLICATION = "one-hop"


#: Of a graph that is read piece by piece, where its degrees alone say who gets what.
_DEFAULT_STREAMED = "segment"


@expanded
def partition(
    paths: Annotated[
        list[str], typer.Argument(metavar="GRAPH...", help="A graph file; several files are one graph's edges.")
    ],
    devices: Annotated[int, typer.Option(help="Number of devices.")],
    reading: ReadingOptions,
    partition: Annotated[
        str, typer.Option(metavar="NAMES", help=f"{', '.join(PARTITIONERS)}; several with commas, or {_ALL}.")
    ] = _ALL,
    seed: Annotated[int, typer.Option(help="The same seed gives the same partition.")] = 0,
    output: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write the devices' parts into a new folder; of one partition.")
    ] = None,
    duplication: Annotated[
        str | None, typer.Option(help=f"Vertices copied into a part: {' or '.join(DUPLICATIONS)}.")
    ] = None,
    in_edges: Annotated[bool, typer.Option("--in-edges", help="Write incoming edges too.")] = False,
    memory: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Read the files piece by piece, in so much memory in all: 2GiB."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Divide a graph among devices, and show balance, cut edges and borders; or divide one larger than memory."""
    check_integer("devices", devices, 1, MAX_DEVICES)
    check_integer("seed", seed, 0, 2**64 - 1)
    if memory is not None or len(paths) > 1:
        options = {"partition": _DEFAULT_STREAMED if partition == _ALL else partition, "partition_seed": seed,
                   "duplication": duplication or DEFAULT_DUPLICATION, "in_edges": in_edges,
                   "memory": memory or DEFAULT_MEMORY}  # fmt: skip
        _partition_streamed(paths, devices, output, options | vars(reading), json, quiet)
        return
    path, names = paths[0], _parse_names(partition)
    _check_output(output, names, duplication, in_edges)
    with display.stages(quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        graph = reading.read(path)
        facts: dict[str, Any] = {
            "vertices": graph.num_vertices,
            "stored_edges": graph.num_edges,
            "devices": devices,
            "seed": seed,
            "load_seconds": time.perf_counter() - started,
            "partitions": [],
        }
        for name in names:
            begin(f"partitioning by {name}")
            row, owner = _try_partition(graph, devices, name, seed, may_fail=partition == _ALL)
            facts["partitions"].append(row)
        if output is not None:
            begin(f"writing {output}")
            chosen = duplication or _DEFAULT_DUPLICATION
            parts = build_subgraphs(graph, owner, devices, chosen, with_in_edges=in_edges)
            write_shards(output, graph, parts, names[0], chosen)
            facts["written"] = output
    if json:
        display.print_json(facts)
    elif not quiet:
        _print(path, facts)


def _partition_streamed(
    paths: list[str], devices: int, output: str | None, options: dict[str, Any], is_json: bool, is_quiet: bool
) -> None:
    """Write the parts of a graph that is never in memory as a whole."""
    if output is None:
        raise ArgumentError(f"{'memory=' + repr(options['memory'])}: a graph that is read piece by piece is written as "
                            "parts; it needs --output")  # fmt: skip
    with display.stages(is_quiet) as begin:
        begin(f"partitioning {', '.join(paths)}")
        started = time.perf_counter()
        facts = partition_files(paths, output, devices, **options)
        seconds = time.perf_counter() - started
    facts |= {"devices": devices, "partition": options["partition"], "seconds": seconds, "written": output}
    if is_json:
        display.print_json(facts)
    elif not is_quiet:
        edges = facts.pop("device_edges")
        vertices = facts.pop("device_vertices")
        rate = facts["edges_read"] / seconds
        display.print_facts(f"{', '.join(paths)} on {devices} devices", facts | {"edges read a second": rate})
        display.print_rows("parts", {"device": range(devices), "vertices": vertices, "edges": edges})


def _parse_names(text: str) -> list[str]:
    """Return the partitions asked for, each once."""
    if text == _ALL:
        return list(PARTITIONERS)
    names = dict.fromkeys(name.strip() for name in text.split(","))
    allowed = [*PARTITIONERS, _ALL] if len(names) == 1 else list(PARTITIONERS)
    return [check_choice("partition", name, allowed) for name in names]


def _check_output(output: str | None, names: list[str], duplication: str | None, in_edges: bool) -> None:
    """Refuse what cannot be written before the graph is read."""
    if duplication is not None:
        check_choice("duplication", duplication, DUPLICATIONS)
    if output is not None:
        if len(names) != 1:
            raise ArgumentError(
                f"output={output!r} needs one partition, not {len(names)}; give one of {', '.join(PARTITIONERS)}"
            )
        check_new_folder("output", output)
    elif duplication is not None or in_edges:
        option = "in-edges" if duplication is None else f"duplication={duplication!r}"
        raise ArgumentError(f"{option} says how parts are written; it needs --output")


def _try_partition(
    graph: Graph, num_devices: int, name: str, seed: int, may_fail: bool
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return the row of one partition and the partition; one that ``may_fail`` and is not possible here says why."""
    started = time.perf_counter()
    try:
        owner = partition_graph(graph, num_devices, name, seed)
    except ArgumentError as error:
        if not may_fail:
            raise
        return {"partition": name, "error": str(error)}, None
    seconds = time.perf_counter() - started
    report = describe_partition(graph, owner, num_devices)
    return {"partition": name, "seconds": seconds} | report.to_dict(), owner


def _print(path: str, facts: dict[str, Any]) -> None:
    rows = [row for row in facts["partitions"] if "error" not in row]
    columns = {
        "partition": [row["partition"] for row in rows],
        "seconds": [f"{row['seconds']:.3g}" for row in rows],
        "vertex\nbalance": [f"{row['vertex_balance']:.3f}" for row in rows],
        "edge\nbalance": [f"{row['edge_balance']:.3f}" for row in rows],
        "edges\ncut %": [f"{100 * row['cut_fraction']:.1f}" for row in rows],
        "border,\nsum": [row["border_total"] for row in rows],
        "border,\nlargest": [row["border_max"] for row in rows],
    }
    display.print_rows(f"{path} on {facts['devices']} devices", columns)
    for row in facts["partitions"]:
        if "error" in row:
            print(row["error"])
    if "written" in facts:
        print(f"written: {facts['written']}")
