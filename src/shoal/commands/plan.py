# SPDX-License-Identifier: Apache-2.0
"""``shoal plan``: what each way to run an algorithm on several devices would take, and which of them ``auto`` is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.commands import display
from shoal.commands.flow import ALGORITHMS
from shoal.commands.options import GraphPath, Json, Quiet, ReadingOptions, expanded
from shoal.config import DEFAULT, MAX_DEVICES
from shoal.errors import check_choice, check_integer

if TYPE_CHECKING:
    from shoal.planner import Comparison


@expanded
def plan(
    path: GraphPath,
    devices: Annotated[int, typer.Option(help="Number of devices, at least 2.")],
    reading: ReadingOptions,
    algorithm: Annotated[str, typer.Option(help=f"{', '.join(ALGORITHMS)}.")] = "bfs",
    fanout: Annotated[int, typer.Option(help="Of a butterfly: 1 to the number of devices.")] = DEFAULT.fanout,
    partition_seed: Annotated[int, typer.Option(help="Of random partitions.")] = DEFAULT.partition_seed,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what each strategy for several devices would take: memory, messages and items sent."""
    from shoal.planner import compare_strategies  # it loads what writes programs

    check_integer("devices", devices, 2, MAX_DEVICES)
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_integer("fanout", fanout, 1, devices)
    check_integer("partition_seed", partition_seed, 0, 2**64 - 1)
    with display.stages(quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        graph = reading.read(path)
        load_seconds = time.perf_counter() - started
        begin("comparing strategies")
        compared = compare_strategies(graph, devices, algorithm, fanout=fanout, partition_seed=partition_seed)
    if json:
        display.print_json(_facts(compared) | {"load_seconds": load_seconds})
    elif not quiet:
        _print(path, compared)


def _facts(compared: Comparison) -> dict[str, Any]:
    """Return the comparison for JSON."""
    return {
        "algorithm": compared.algorithm,
        "devices": compared.num_devices,
        "strategies": [run.to_dict() for run in compared.runs],
        "auto": _auto(compared) | {"reason": compared.reason},
        "impossible": compared.impossible,
    }


def _auto(compared: Comparison) -> dict[str, str]:
    chosen = next(run for run in compared.runs if run.is_auto)
    return {axis: getattr(chosen, axis) for axis in ("partition", "duplication", "communication")}


def _print(path: str, compared: Comparison) -> None:
    runs = compared.runs
    columns: dict[str, list[Any]] = {
        "partition": [run.partition for run in runs],
        "dupli-\ncation": [run.duplication for run in runs],
        "commu-\nnication": [run.communication for run in runs],
        "memory": [display.format_bytes(max(run.memory_bytes)) for run in runs],
        "messages": [run.messages for run in runs],
        "items": [max(run.items) for run in runs],
        "": ["auto" if run.is_auto else "" for run in runs],
    }
    display.print_rows(f"{compared.algorithm} on {path}, {compared.num_devices} devices", columns)
    print("memory: of the device that needs most; messages: of all devices in a superstep, at most;")
    print(f"items: of the device that sends most, in a {runs[0].items_per}, at most")
    print(f"auto: {', '.join(_auto(compared).values())}: {compared.reason}")
    for reason in compared.impossible.values():
        print(reason)
