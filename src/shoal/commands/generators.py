# SPDX-License-Identifier: Apache-2.0
"""``shoal generate KIND FILE``: random graphs, and grids, written to a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from shoal import generate
from shoal.commands import display, ranks
from shoal.commands.examples import epilog, overview
from shoal.commands.options import Json, Quiet, expanded
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.io import write
from shoal.io.files import check_writable
from shoal.io.formats import format_to_write
from shoal.sharding.partition_files import DEFAULT_MEMORY, partition_pieces

app = typer.Typer(help="Generate a graph and write it to a file.", epilog=overview("generate"), no_args_is_help=False)

Target = Annotated[str, typer.Argument(metavar="FILE", help="The file to write; its format goes by the suffix.")]
Scale = Annotated[int, typer.Option(help="2**SCALE vertices.")]
EdgeFactor = Annotated[int, typer.Option(help="Edges drawn for each vertex.")]


@dataclass(frozen=True)
class CommonOptions:
    """What every generator takes."""

    seed: Annotated[int, typer.Option(help="The same seed gives the same graph, whatever the machine.")] = 1
    weights: Annotated[
        str | None, typer.Option(metavar="LOW:HIGH", help="Whole weights from LOW to HIGH, or float32 or float64.")
    ] = None
    vertex_dtype: Annotated[str | None, typer.Option(help="int32 or int64, if not by size.")] = None
    edge_dtype: Annotated[str | None, typer.Option(help="int32 or int64, if not by size.")] = None
    devices: Annotated[
        int | None, typer.Option(help="Write the parts of so many devices, and never have the graph in memory.")
    ] = None
    memory: Annotated[str, typer.Option(metavar="BYTES", help="With --devices: all that may be taken.")] = (
        DEFAULT_MEMORY
    )
    json: Json = False
    quiet: Quiet = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a generator."""
        return {
            "seed": self.seed,
            "weights": _parse_weights(self.weights),
            "vertex_dtype": self.vertex_dtype,
            "edge_dtype": self.edge_dtype,
        }


@dataclass(frozen=True)
class RandomOptions:
    """What the random graphs take."""

    directed: Annotated[bool, typer.Option("--directed", help="Store each edge in one direction only.")] = False
    deduplicate: Annotated[bool, typer.Option(help="Keep one of parallel edges.")] = True
    drop_self_loops: Annotated[bool, typer.Option(help="Leave out self-loops.")] = True


def _parse_weights(text: str | None) -> Any:
    if text is None or text in ("float32", "float64"):
        return text
    low, colon, high = text.partition(":")
    try:
        return int(low), int(high if colon else "")
    except ValueError:
        raise ArgumentError(f"weights={text!r} is not allowed; allowed: LOW:HIGH, float32, float64") from None


@app.command("kronecker", epilog=epilog("generate kronecker"))
@app.command("rmat", epilog=epilog("generate rmat"))
@expanded
def rmat(
    target: Target,
    scale: Scale,
    common: CommonOptions,
    random: RandomOptions,
    edge_factor: EdgeFactor = 16,
    a: Annotated[float, typer.Option(help="Probability of the upper left quadrant.")] = 0.57,
    b: Annotated[float, typer.Option(help="Probability of the upper right quadrant.")] = 0.19,
    c: Annotated[float, typer.Option(help="Probability of the lower left quadrant.")] = 0.19,
    shuffle: Annotated[bool, typer.Option(help="Rename the vertices at random.")] = True,
) -> None:
    """R-MAT (Kronecker): a graph with hubs, like a social network."""
    arguments = {"scale": scale, "edge_factor": edge_factor, "a": a, "b": b, "c": c, "shuffle": shuffle}
    _generate(generate.rmat, target, common, arguments | vars(random))


@app.command(epilog=epilog("generate uniform"))
@expanded
def uniform(
    target: Target,
    common: CommonOptions,
    random: RandomOptions,
    scale: Annotated[int | None, typer.Option(help="2**SCALE vertices.")] = None,
    edge_factor: Annotated[int | None, typer.Option(help="Edges drawn for each vertex (16).")] = None,
    num_vertices: Annotated[int | None, typer.Option(help="Number of vertices, in place of a scale.")] = None,
    num_edges: Annotated[int | None, typer.Option(help="Number of edges drawn, in place of a factor.")] = None,
) -> None:
    """Uniform: both ends of every edge drawn at random."""
    sizes = {"scale": scale, "edge_factor": edge_factor, "num_vertices": num_vertices, "num_edges": num_edges}
    _generate(generate.uniform, target, common, sizes | vars(random))


@app.command(epilog=epilog("generate grid"))
@expanded
def grid(
    target: Target,
    rows: Annotated[int, typer.Option(help="Number of rows.")],
    columns: Annotated[int, typer.Option(help="Number of columns.")],
    common: CommonOptions,
    drop: Annotated[float, typer.Option(help="Probability with which each edge is left out.")] = 0.0,
) -> None:
    """Grid of four neighbours, like a road network."""
    _generate(generate.grid, target, common, {"rows": rows, "columns": columns, "drop": drop})


def _generate(make: Callable[..., Graph], target: str, common: CommonOptions, arguments: dict[str, Any]) -> None:
    if common.devices is not None:
        _generate_parts(make, target, common.devices, common, arguments)
        return
    format_to_write(target, None)  # what cannot be written is refused before anything is drawn
    check_writable(target)
    with display.stages(common.quiet) as begin:
        begin("drawing the graph")
        started = time.perf_counter()
        graph = make(**arguments, **common.arguments())
        seconds = time.perf_counter() - started
        begin(f"writing {target}")
        write(graph, target)
    facts = {"vertices": graph.num_vertices, "stored_edges": graph.num_edges, "seconds": seconds, "written": target}
    if common.json:
        display.print_json(facts)
    elif not common.quiet:
        display.print_facts(f"{make.__name__} graph", facts)


#: Generators whose edges can be drawn piece by piece.
_PIECES: dict[Any, Callable[..., generate.Pieces]] = {
    generate.rmat: generate.rmat_pieces,
    generate.uniform: generate.uniform_pieces,
}


def _generate_parts(
    make: Callable[..., Graph], target: str, devices: int, common: CommonOptions, arguments: dict[str, Any]
) -> None:
    """Draw a graph into the parts of devices, piece by piece; on the ranks of an MPI job, each those of its devices."""
    if make not in _PIECES:
        allowed = ", ".join(known.__name__ for known in _PIECES)
        raise ArgumentError(f"devices={devices} is not possible for {make.__name__}; allowed: {allowed}")
    if common.vertex_dtype or common.edge_dtype:
        raise ArgumentError("vertex-dtype and edge-dtype do not go with devices: widths go by size")
    pieces = _PIECES[make](seed=common.seed, weights=_parse_weights(common.weights), **arguments)
    is_quiet = common.quiet or not ranks.is_first()  # one of a job speaks for all
    with display.stages(is_quiet) as begin:
        begin("drawing the graph")
        started = time.perf_counter()
        found = partition_pieces(pieces, target, devices, memory=common.memory, in_edges=True)
        seconds = time.perf_counter() - started
    facts = {
        "vertices": found["vertices"],
        "stored_edges": found["stored_edges"],
        "seconds": seconds,
        "written": target,
    }
    if common.json and ranks.is_first():
        display.print_json(facts)
    elif not is_quiet:
        display.print_facts(f"{make.__name__} graph for {devices} devices", facts)
