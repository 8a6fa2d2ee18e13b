# SPDX-License-Identifier: Apache-2.0
"""What many commands take, declared once.

A group of options is a dataclass whose fields are annotated as typer's parameters are.  A command has one parameter of
that class; `expanded` puts the group's fields in its place, so that typer sees them and the command gets the object.
Numbers are parsed here, so that a wrong one is named in the complaint.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

import typer

from shoal.commands import settings
from shoal.commands.logs import logging_at
from shoal.commands.vertex_names import find_vertices
from shoal.config import AXES, CONFIG_NAMES, DEFAULT, RunConfig
from shoal.errors import ArgumentError, ShoalError
from shoal.graph import Graph

INTERRUPTED = 130  # what a shell reports for a process that SIGINT ended
_READING = "Reading the graph"
_RUNNING = "Running"
_DEVICES = "Many devices"
_KEEPING = "Checkpoints"
_OUTPUT = "Output"
_SETTINGS = "Settings"

GraphPath = Annotated[str, typer.Argument(metavar="GRAPH", help="A graph file; its format goes by suffix and content.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else there.", rich_help_panel=_OUTPUT)
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings (shoal.toml, if it is there).",
        rich_help_panel=_SETTINGS,
        is_eager=True,  # before the options whose defaults it changes
        callback=settings.apply,
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(help="What to log on standard error: debug, info, warning or error.", rich_help_panel=_SETTINGS),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=_OUTPUT)]


@dataclass(frozen=True)
class ReadingOptions:
    """How a graph file is read: keyword arguments of `shoal.read`."""

    format: Annotated[
        str | None, typer.Option(help="Format of the file, if not by suffix and content.", rich_help_panel=_READING)
    ] = None
    directed: Annotated[
        bool | None,
        typer.Option("--directed/--undirected", help="If not as the file says.", rich_help_panel=_READING),
    ] = None
    num_vertices: Annotated[
        int | None, typer.Option(help="Ids are 0 to so many less one, with gaps too.", rich_help_panel=_READING)
    ] = None
    deduplicate: Annotated[
        bool, typer.Option("--deduplicate", help="Keep one of parallel edges.", rich_help_panel=_READING)
    ] = False
    drop_self_loops: Annotated[
        bool, typer.Option("--drop-self-loops", help="Leave out self-loops.", rich_help_panel=_READING)
    ] = False

    def refuse_for_shards(self) -> None:
        """Refuse what only the reading of a graph file can do."""
        for name, default in ((field.name, field.default) for field in fields(self)):
            if getattr(self, name) != default:
                raise ArgumentError(f"{name}={getattr(self, name)!r} is not allowed with a folder of shards: what is "
                                    "in it was said when it was partitioned")  # fmt: skip

    def read(self, path: str) -> Graph:
        """Read the graph."""
        from shoal.io import read

        return read(path, **vars(self))


@dataclass(frozen=True)
class SearchOptions:
    """Where a search starts and ends, by the file's own ids."""

    source: Annotated[
        list[str],
        typer.Option("--source", metavar="ID", help="Where to start: the file's own id. Repeat it for a batch."),
    ]
    target: Annotated[
        list[str] | None, typer.Option("--target", metavar="ID", help="Stop when it is reached. May be repeated.")
    ] = None
    parents: Annotated[bool, typer.Option("--parents/--no-parents", help="Whether to give each vertex's parent.")] = (
        True
    )

    def arguments(self, graph: Graph) -> dict[str, Any]:
        """Return the arguments of a search, with the graph's vertices."""
        return {
            "source": find_vertices(graph, "source", self.source),
            "targets": find_vertices(graph, "target", self.target),
            "parents": self.parents,
        }


@dataclass(frozen=True)
class RunOptions:
    """How an algorithm is run (the fields of `RunConfig`) and what becomes of its result."""

    devices: Annotated[
        str,
        typer.Option(
            help="cpu, cpu:N (N devices), cpu:NxT (of T threads each), cuda, cuda:all, cuda:0-3, mpi (ranks), auto.",
            rich_help_panel=_RUNNING,
        ),
    ] = DEFAULT.devices
    partition: Annotated[str, typer.Option(help="Who gets which vertices", rich_help_panel=_DEVICES)] = (
        DEFAULT.partition
    )
    partition_seed: Annotated[int, typer.Option(help="Of random partitions.", rich_help_panel=_DEVICES)] = (
        DEFAULT.partition_seed
    )
    duplication: Annotated[
        str, typer.Option(help="Of which vertices devices have copies", rich_help_panel=_DEVICES)
    ] = DEFAULT.duplication
    communication: Annotated[str, typer.Option(help="Who tells whom", rich_help_panel=_DEVICES)] = DEFAULT.communication
    shards: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The graph's parts, as shoal partition wrote them.", rich_help_panel=_DEVICES),
    ] = None
    fanout: Annotated[
        int, typer.Option(help="Of a butterfly: 1 to the number of devices.", rich_help_panel=_DEVICES)
    ] = DEFAULT.fanout
    execution: Annotated[str, typer.Option(help="In supersteps or without", rich_help_panel=_RUNNING)] = (
        DEFAULT.execution
    )
    stealing: Annotated[
        str,
        typer.Option(help="Who visits the edges of others' vertices", rich_help_panel=_RUNNING),
    ] = DEFAULT.stealing
    priority: Annotated[str, typer.Option(help="What goes first without supersteps", rich_help_panel=_RUNNING)] = (
        DEFAULT.priority
    )
    memory: Annotated[str, typer.Option(help="How much room frontiers get", rich_help_panel=_RUNNING)] = DEFAULT.memory
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="For each device, beside the graph: 500MB, 2GiB.", rich_help_panel=_RUNNING),
    ] = None
    direction: Annotated[str, typer.Option(help="Along edges, or against them", rich_help_panel=_RUNNING)] = (
        DEFAULT.direction
    )
    load_balance: Annotated[
        str,
        typer.Option(help="Who visits a vertex's edges on a GPU", rich_help_panel=_RUNNING),
    ] = DEFAULT.load_balance
    do_a: Annotated[float, typer.Option(help="Push turns to pull when FV > BV do_a.", rich_help_panel=_RUNNING)] = (
        DEFAULT.do_a
    )
    do_b: Annotated[float, typer.Option(help="Pull turns back when FV < BV do_b.", rich_help_panel=_RUNNING)] = (
        DEFAULT.do_b
    )
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same parents in every run.", rich_help_panel=_RUNNING)
    ] = DEFAULT.deterministic
    stats: Annotated[str, typer.Option(help="full (a row per superstep) or totals.", rich_help_panel=_RUNNING)] = (
        DEFAULT.stats
    )
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Keep in a folder what is done, so that `shoal resume DIR` can go on.",
            rich_help_panel=_KEEPING,
        ),
    ] = None
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="How often: a number of supersteps, or a time such as 30s or 5min (60s).",
            rich_help_panel=_KEEPING,
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on from --checkpoint.", rich_help_panel=_KEEPING)] = False
    validate: Annotated[
        bool, typer.Option("--validate", help="Check the result's properties.", rich_help_panel=_RUNNING)
    ] = False
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the result: .parquet, .csv or .npz.", rich_help_panel=_OUTPUT),
    ] = None
    gather: Annotated[
        bool,
        typer.Option(
            "--gather", help="On ranks: write one file, not a folder of each rank's.", rich_help_panel=_OUTPUT
        ),
    ] = False
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Show the run: .html (a page), .json (its trace) or .perfetto.json.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None
    json: Json = False
    quiet: Quiet = False

    def strategies(self) -> dict[str, Any]:
        """Return the fields of `RunConfig`, checked; a command's output is a file, so that field is the default."""
        chosen = {name: getattr(self, name) for name in sorted(CONFIG_NAMES - {"output"})}
        RunConfig(**chosen)
        return chosen

    def keeping(self) -> dict[str, Any]:
        """Return the arguments about checkpoints."""
        return {"checkpoint": self.checkpoint, "checkpoint_every": self.checkpoint_every, "resume": self.resume}


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command`` with the fields of its option groups as parameters of its own, and what every command takes.

    That is ``--config`` and ``--log-level``.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _parameters_of(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    parameters = [parameter.replace(annotation=_parsed(parameter.annotation)) for parameter in parameters]
    parameters += _COMMON

    @functools.wraps(command)
    def run(*, context: typer.Context, config: str | None, log_level: str, **given: Any) -> None:
        objects = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        try:
            with logging_at(log_level):
                settings.log(context)
                command(**given, **objects)
        except ShoalError as error:
            raise type(error)(settings.explain(str(error), context)) from error
        except KeyboardInterrupt:  # some versions of typer would print a line of their own
            raise typer.Exit(INTERRUPTED) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def _option(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_COMMON = [
    _option("context", typer.Context),
    _option("config", Config, None),
    _option("log_level", LogLevel, "warning"),
]


def whole_number(text: Any) -> int:
    """Return the whole number that a user typed."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not allowed; it must be a whole number") from None


def number(text: Any) -> float:
    """Return the number that a user typed."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not allowed; it must be a number") from None


_PARSERS: dict[Any, Callable[[Any], Any]] = {int: whole_number, float: number}


def _parsed(annotation: Any) -> Any:
    """Return an option's annotation such that a wrong number is refused with its value, which typer leaves out."""
    kind, *notes = get_args(annotation)
    kinds = {int, float} & ({kind} | set(get_args(kind)))
    if not kinds:
        return annotation
    note = copy.copy(notes[0])
    note.parser = _PARSERS[kinds.pop()]
    return Annotated[kind, note]


def _named(name: str, annotation: Any) -> Any:
    """Return an option's annotation such that its help has the names of a strategy, and a shell completes them."""
    if name not in AXES:
        return annotation
    kind, *notes = get_args(annotation)
    note = copy.copy(notes[0])
    *others, last = AXES[name]
    if note.help and not note.help.endswith("."):
        note.help = f"{note.help}: {', '.join(others)} or {last}."
    note.autocompletion = lambda incomplete: [choice for choice in AXES[name] if choice.startswith(incomplete)]
    return Annotated[kind, note]


def _parameters_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(group)}
    return [_option(name, _named(name, hints[name]), default) for name, default in defaults.items()]
