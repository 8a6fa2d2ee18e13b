# SPDX-License-Identifier: Apache-2.0
"""``shoal plan``: what each way to run an algorithm on several devices would take, and which of them ``auto`` is.

Of a GPU it shows what the run would hold there, and what on the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.commands import display
from shoal.commands.machine import describe_gpus
from shoal.commands.options import GraphPath, Json, Quiet, ReadingOptions, expanded
from shoal.config import AXES, DEFAULT, MAX_DEVICES, parse_devices
from shoal.errors import ArgumentError, check_choice, check_integer
from shoal.graph import Graph
from shoal.machine import format_bytes
from shoal.memory import MemoryEstimate, estimate_memory

if TYPE_CHECKING:
    from shoal.planner import Comparison

Plan = tuple[Callable[[str], None], dict[str, Any]]  # how to show it, given the graph's path, and the same for JSON
#: Algorithms that run one program on the graph as it is: what they take on several devices is known before.
PLANNED = ("bfs", "sssp", "cc", "bc", "pagerank", "eigenvector", "katz", "hits", "scc", "msf", "core", "kcore")
PARTS = ("graph_bytes", "state_bytes", "buffer_bytes", "other_bytes", "total_bytes")


@expanded
def plan(
    path: GraphPath,
    devices: Annotated[str, typer.Option(help="Number of devices, at least 2; or cuda, cuda:K: a GPU.")],
    reading: ReadingOptions,
    algorithm: Annotated[str, typer.Option(help=f"{', '.join(PLANNED)}.")] = "bfs",
    fanout: Annotated[int, typer.Option(help="Of a butterfly: 1 to the number of devices.")] = DEFAULT.fanout,
    partition_seed: Annotated[int, typer.Option(help="Of random partitions.")] = DEFAULT.partition_seed,
    memory: Annotated[str, typer.Option(help=f"Of a GPU: {', '.join(AXES['memory'])}.")] = DEFAULT.memory,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what each strategy for several devices would take: memory, messages, items sent; or the memory of a GPU."""
    num_devices = _num_devices(devices)
    check_choice("algorithm", algorithm, PLANNED)
    check_integer("fanout", fanout, 1, num_devices)
    check_integer("partition_seed", partition_seed, 0, 2**64 - 1)
    check_choice("memory", memory, AXES["memory"])
    if num_devices > 1 and memory != "auto":
        raise ArgumentError(f"memory={memory!r} is planned for a GPU only; allowed with devices={devices}: auto")
    with display.stages(quiet) as begin:
        begin(f"reading {path}")
        started = time.perf_counter()
        graph = reading.read(path)
        load_seconds = time.perf_counter() - started
        begin("estimating memory" if num_devices == 1 else "comparing strategies")
        if num_devices == 1:
            show, facts = _plan_gpu(graph, devices, algorithm, memory)
        else:
            how = {"fanout": fanout, "partition_seed": partition_seed}
            show, facts = _plan_devices(graph, num_devices, algorithm, **how)
    if json:
        display.print_json(facts | {"load_seconds": load_seconds})
    elif not quiet:
        show(path)


def _num_devices(devices: str) -> int:
    """Return how many devices are asked for, 1 if that is a GPU."""
    if devices.startswith("cuda"):
        return parse_devices(devices).num_devices
    try:
        number = int(devices)
    except ValueError:
        raise ArgumentError(f"devices={devices!r} is not allowed; it must be a whole number from 2 to {MAX_DEVICES}, "
                            "cuda or cuda:K (the GPU of that number)") from None  # fmt: skip
    return check_integer("devices", number, 2, MAX_DEVICES)


def _plan_devices(graph: Graph, num_devices: int, algorithm: str, **options: int) -> Plan:
    from shoal.planner import compare_strategies  # it loads what writes programs

    compared = compare_strategies(graph, num_devices, algorithm, **options)
    return lambda path: _print(path, compared), _facts(compared)


def _plan_gpu(graph: Graph, devices: str, algorithm: str, memory: str) -> Plan:
    estimate = estimate_memory(graph, algorithm, devices=devices, memory=memory)
    assert estimate.gpu is not None
    number = parse_devices(devices).numbers[0]
    found = next((gpu for gpu in describe_gpus() if gpu["name"] == f"cuda:{number}"), {})
    there = {name: found.get(name) for name in ("memory_bytes", "available_memory_bytes")}
    parts = {"gpu": _parts(estimate.gpu), "host": _parts(estimate)}
    facts = {"algorithm": algorithm, "devices": devices, "memory": memory, **parts, **there}
    return lambda path: _print_gpu(path, facts), facts


def _parts(estimate: MemoryEstimate) -> dict[str, int]:
    return {name: getattr(estimate, name) for name in PARTS}


def _print_gpu(path: str, facts: dict[str, Any]) -> None:
    columns = {"memory of": ["the GPU", "the host"]}
    for name in PARTS:
        columns[name.removesuffix("_bytes")] = [format_bytes(facts[place][name]) for place in ("gpu", "host")]
    display.print_rows(f"{facts['algorithm']} on {path}, {facts['devices']}", columns)
    if facts["memory_bytes"] is not None:
        available, total = (format_bytes(facts[name]) for name in ("available_memory_bytes", "memory_bytes"))
        print(f"the GPU has {total}, of which {available} are available")


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
        "memory": [format_bytes(max(run.memory_bytes)) for run in runs],
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
