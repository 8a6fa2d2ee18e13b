# SPDX-License-Identifier: Apache-2.0
"""The command line: ``shoal COMMAND ...``; each family of commands is a module of `shoal.commands`.

Whatever a user can get wrong ends here as one line on standard error that begins with ``shoal: error:``, and exit
status 2.  Results go to standard output, progress to standard error and only on a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from shoal import __version__
from shoal.commands import (
    benchmark,
    communities,
    compiling,
    files,
    generators,
    launching,
    machine,
    partition,
    plan,
    ranks,
    report,
    resuming,
    scores,
    search,
    structure,
    validation,
    whole_graph,
)
from shoal.commands.examples import epilog, overview
from shoal.commands.options import INTERRUPTED
from shoal.commands.resuming import TERMINATED, EndedEarlyError, MadeAgain, ending_early, made_by
from shoal.commands.settings import explain_usage
from shoal.errors import ShoalError

BAD_INPUT = 2

#: The base of typer's own complaints; typer exports only this leaf of it, and where it lives depends on the version.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    name="shoal",
    help="Graph analytics: run algorithms on graph files, and make, convert, inspect and check such files.",
    epilog=overview(),
    pretty_exceptions_enable=False,
)

_ALGORITHMS = "Algorithms"
_FILES = "Graph files"
_RUNS = "Runs"
_REST = "Machine"

for name, command, panel in (
    ("bfs", search.bfs, _ALGORITHMS),
    ("sssp", search.sssp, _ALGORITHMS),
    ("cc", whole_graph.cc, _ALGORITHMS),
    ("bc", whole_graph.bc, _ALGORITHMS),
    ("ebc", whole_graph.ebc, _ALGORITHMS),
    ("pagerank", whole_graph.pagerank, _ALGORITHMS),
    ("triangles", communities.triangles, _ALGORITHMS),
    ("clustering", communities.clustering, _ALGORITHMS),
    ("transitivity", communities.transitivity, _ALGORITHMS),
    ("lpa", communities.lpa, _ALGORITHMS),
    ("louvain", communities.louvain, _ALGORITHMS),
    ("eigenvector", scores.eigenvector, _ALGORITHMS),
    ("katz", scores.katz, _ALGORITHMS),
    ("hits", scores.hits, _ALGORITHMS),
    ("scc", structure.scc, _ALGORITHMS),
    ("msf", structure.msf, _ALGORITHMS),
    ("core", structure.core, _ALGORITHMS),
    ("kcore", structure.kcore, _ALGORITHMS),
    ("convert", files.convert, _FILES),
    ("info", files.info, _FILES),
    ("partition", partition.partition, _FILES),
    ("validate", validation.validate, _FILES),
    ("resume", resuming.resume, _RUNS),
    ("report", report.report, _RUNS),
    ("compare", report.compare, _RUNS),
    ("devices", machine.devices, _REST),
    ("compile", compiling.compile, _REST),
    ("plan", plan.plan, _REST),
    ("bench", benchmark.bench, _REST),
):
    app.command(name, rich_help_panel=panel, epilog=epilog(name))(command)
# All that stands behind its own options is another command's.
app.command(
    "mpi-run",
    rich_help_panel=_RUNS,
    epilog=epilog("mpi-run"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(launching.mpi_run)
app.add_typer(generators.app, name="generate", rich_help_panel=_FILES)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Print the version, or without a command the help."""
    if version:
        print(f"shoal {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with ending_early(), made_by(words):
            status = app(args=words, prog_name="shoal", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except SystemExit as end:
        if end.code == TERMINATED:
            print("shoal: terminated", file=sys.stderr)
        return end.code if isinstance(end.code, int) else BAD_INPUT
    except BrokenPipeError:
        return _end_quietly()
    except MemoryError as error:
        return _complain(str(error) or "there is not enough memory")
    except MadeAgain as again:
        return main(again.words)
    except EndedEarlyError as error:
        print(f"shoal: {error}", file=sys.stderr)
        return TERMINATED
    except ShoalError as error:
        return _complain(str(error)) if ranks.should_complain(error) else BAD_INPUT
    except _UsageError as error:
        if not ranks.is_first():
            return BAD_INPUT
        return _complain(explain_usage(error.format_message(), error) + _allowed_commands(error))
    if status == INTERRUPTED:
        print("shoal: interrupted", file=sys.stderr)
    return status if isinstance(status, int) else 0


def _complain(message: str) -> int:
    print("shoal: error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


def _allowed_commands(error: Any) -> str:
    """Return the words that say which commands there are, if it was a command that was wrong."""
    commands = getattr(getattr(error.ctx, "command", None), "commands", {})
    return f" Allowed: {', '.join(commands)}." if "command" in error.format_message() and commands else ""


def _end_quietly() -> int:
    """Nobody reads the output any more (``shoal ... | head``): do not let the interpreter complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
