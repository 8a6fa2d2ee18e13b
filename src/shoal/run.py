# SPDX-License-Identifier: Apache-2.0
"""run(): place the graph, execute the program, gather the result."""

from __future__ import annotations

from typing import Any

from shoal.arrays import on_host
from shoal.calls import public_call
from shoal.config import CONFIG_NAMES, DEFAULT, RunConfig
from shoal.errors import ArgumentError
from shoal.graph import Graph
from shoal.placement import Placed, placed_for
from shoal.program import Constant, Program, Vertex
from shoal.stats import Stats


class ProgramResult:
    """The final vertex state and scalars of a program, by name, and the run's statistics.

    With ``output="device"`` the arrays are where the run was, on a GPU as CuPy's; scalars are numbers of the host.
    """

    def __init__(self, values: dict[str, Any], stats: Stats) -> None:
        self.__dict__.update(values)
        self.stats = stats

    def to_host(self) -> ProgramResult:
        """Return the same result with all arrays as NumPy's."""
        values = {name: on_host(value) for name, value in vars(self).items() if name != "stats"}
        return ProgramResult(values, self.stats)

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(self) if name != "stats")
        return f"ProgramResult({names}; {self.stats!r})"


@public_call
def run(program: Program, graph: Graph | Placed, **options: Any) -> ProgramResult:
    """Run a program on a graph.

    Parameters
    ----------
    program : what to run
    graph : a graph, or a placed one
    **options : fields of `RunConfig`, ``report=`` (see `shoal.report.option`) and ``checkpoint=`` (see
        `shoal.checkpoint.option`); all others go to the program's ``start``

    Returns
    -------
    ProgramResult
        with an array for every vertex field, a number for every scalar, and ``stats``
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"program={program!r} is not a shoal.Program (did you forget to make an object of it?)")
    strategies = {name: options.pop(name) for name in list(options) if name in CONFIG_NAMES}
    config = RunConfig(**strategies) if strategies else DEFAULT
    outcome = run_configured(program, graph, config, options)
    values = {}
    for name, declared in outcome.fields.items():
        if not isinstance(declared, Constant):
            values[name] = outcome.state[name] if isinstance(declared, Vertex) else outcome.state[name][0]
    return ProgramResult(values, outcome.stats)


def run_configured(program: Program, graph: Graph | Placed, config: RunConfig, arguments: dict[str, Any]) -> Any:
    """Run a program under a ready configuration and return its final state and statistics."""
    placed = placed_for(graph, config)
    from shoal.execution.bsp import execute

    return execute(program, placed, config, arguments)
